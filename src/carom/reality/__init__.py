"""Reality, the contract a robot or a stand-in fulfils, and the built-in stand-ins."""

from carom.reality.contract import Reality, sample_commands
from carom.reality.mocap import Mocap
from carom.reality.settings import ALL_SETTINGS, SETTINGS, SHAPES, Effects, Setting
from carom.reality.standin import StandIn, Truth, standin

__all__ = [
    "ALL_SETTINGS",
    "SETTINGS",
    "SHAPES",
    "Effects",
    "Mocap",
    "Reality",
    "Setting",
    "StandIn",
    "Truth",
    "sample_commands",
    "standin",
]
