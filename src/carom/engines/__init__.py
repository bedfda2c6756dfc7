"""Engines behind one contract: what comes of bodies and strikes, whoever simulates them."""

from carom.engines.contract import Rollout, Simulator, Status, Validation
from carom.engines.mjx.strikes import MjxSimulator
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.engines.slider import Slider, slider_for

__all__ = ["MjxSimulator", "MujocoSimulator", "Rollout", "Simulator", "Slider", "Status", "Validation", "slider_for"]
