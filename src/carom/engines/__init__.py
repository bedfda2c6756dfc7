"""Engines behind one contract: what comes of bodies, robots and strikes, whoever simulates them."""

from carom.engines.contract import Engine, Rollout, Run, Simulator, Validation
from carom.engines.mjx.strikes import MjxSimulator
from carom.engines.mujoco.engine import MujocoEngine
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.engines.slider import Slider, slider_for
from carom.state import Status

__all__ = [
    "Engine",
    "MjxSimulator",
    "MujocoEngine",
    "MujocoSimulator",
    "Rollout",
    "Run",
    "Simulator",
    "Slider",
    "Status",
    "Validation",
    "slider_for",
]
