"""Reality, the contract a robot or a stand-in fulfils, and the built-in stand-ins."""

from carom.reality.bullet import BulletReality, bullet_missing, bullet_standin
from carom.reality.bullet_settings import BULLET_SETTINGS, BulletSetting
from carom.reality.contract import Reality, sample_commands
from carom.reality.mocap import Mocap
from carom.reality.settings import ALL_SETTINGS, SETTINGS, SHAPES, Effects, Setting
from carom.reality.standin import StandIn, Truth, standin

__all__ = [
    "ALL_SETTINGS",
    "BULLET_SETTINGS",
    "SETTINGS",
    "SHAPES",
    "BulletReality",
    "BulletSetting",
    "Effects",
    "Mocap",
    "Reality",
    "Setting",
    "StandIn",
    "Truth",
    "bullet_missing",
    "bullet_standin",
    "sample_commands",
    "standin",
]
