"""Reality, the contract a robot or a stand-in fulfils, and the built-in stand-ins."""

from carom.loop.mocap import Mocap
from carom.loop.reality import Reality, sample_commands
from carom.loop.settings import ALL_SETTINGS, SETTINGS, SHAPES, Effects, Setting
from carom.loop.standin import StandIn, Truth, standin

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
