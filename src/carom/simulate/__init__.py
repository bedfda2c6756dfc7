"""Engines behind one contract: what comes of strikes, from approach to rest."""

from carom.simulate.calibrate import Sliding, sliding_from
from carom.simulate.contract import Rollout, Simulator, Status, Validation
from carom.simulate.hybrid import HybridSimulator
from carom.simulate.impact import LearnedImpact
from carom.simulate.mjx_batch import MjxSimulator
from carom.simulate.model import HybridModel, load_hybrid, make_hybrid, save_hybrid
from carom.simulate.mujoco_batch import MujocoSimulator
from carom.simulate.slider import Slider, slider_for
from carom.simulate.step import HybridStep
from carom.simulate.student import Student, teach

__all__ = [
    "HybridModel",
    "HybridSimulator",
    "HybridStep",
    "LearnedImpact",
    "MjxSimulator",
    "MujocoSimulator",
    "Rollout",
    "Simulator",
    "Slider",
    "Sliding",
    "Status",
    "Student",
    "Validation",
    "load_hybrid",
    "make_hybrid",
    "save_hybrid",
    "slider_for",
    "sliding_from",
    "teach",
]
