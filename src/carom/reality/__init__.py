"""Reality, the contract a robot or a stand-in fulfils, and the built-in stand-ins."""

from carom.reality.bullet import BulletReality, bullet_missing, bullet_standin
from carom.reality.bullet_settings import BULLET_SETTINGS, BulletSetting
from carom.reality.contract import Reality, sample_commands
from carom.reality.mocap import Mocap
from carom.reality.push_contract import Controller, PushCommands, PushReality, PushTasks, follow
from carom.reality.push_settings import INEXPRESSIBLE, PUSH_SETTINGS, PushEffects, PushSetting
from carom.reality.push_standin import PushStandIn, push_standin
from carom.reality.settings import ALL_SETTINGS, SETTINGS, SHAPES, Effects, Setting
from carom.reality.standin import StandIn, Truth, standin

__all__ = [
    "ALL_SETTINGS",
    "BULLET_SETTINGS",
    "INEXPRESSIBLE",
    "PUSH_SETTINGS",
    "SETTINGS",
    "SHAPES",
    "BulletReality",
    "BulletSetting",
    "Controller",
    "Effects",
    "Mocap",
    "PushCommands",
    "PushEffects",
    "PushReality",
    "PushSetting",
    "PushStandIn",
    "PushTasks",
    "Reality",
    "Setting",
    "StandIn",
    "Truth",
    "bullet_missing",
    "bullet_standin",
    "follow",
    "push_standin",
    "sample_commands",
    "standin",
]
