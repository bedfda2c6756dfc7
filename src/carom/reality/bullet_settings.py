"""Settings of the stand-ins whose physics is Bullet's: eight blocks, each struck and sliding in another way.

They were chosen for variety of physics, before any method was run on them and without a look at how one does: four
outlines of polygons, a half disc and a disc; hard contacts from dull to springy, one with a restitution that falls with
the speed, and soft contacts of springs and dampers; slippery and gripping strikers, round and flat-faced, that nothing
stops, or that an arm holds with a limited force, or that coast; mass in the middle and off it; smooth and sticky
grounds, with feet far out or near the middle, and pads that resist spin. The numbers are plausible, not measured.

A block stands on three small feet, which say where its weight rests. Under a flat base Bullet would choose the points
anew in every step, and the load of a fourth foot would be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from carom.core.errors import SceneError, unknown_name
from carom.reality.settings import SHAPES
from carom.scenes.shapes import Shape

Points = tuple[tuple[float, float], ...]

BALL = Shape("sphere", radius=0.02)  #: on a rod, at the height of the block's middle
FACE = Shape("box", size=(0.02, 0.04, 0.03))
STIFF = (60.0, 60.0)  #: [kg] a striker that no block slows by more than a hundredth


@dataclass(frozen=True)
class BulletSetting:
    """One block on one ground and one striker. A folder declares shapes and the masses that a lab would know."""

    name: str
    shape: Shape
    mass: float  #: of the block [kg]
    feet: Points  #: where it stands, in its frame [m]
    friction: float  #: between striker and block
    ground_friction: float
    restitution: float = 0.0  #: of the normal velocity, of a hard contact; where it falls with the speed: at rest
    falls_over: float = np.inf  #: [m/s] of normal approach speed over which restitution falls by a factor e
    spring: tuple[float, float] | None = None  #: a soft contact's stiffness [N/m] and damping [N s/m]; None: hard
    striker: Shape = BALL
    striker_mass: tuple[float, float] = STIFF  #: effective, along the arm's two axes; the first is not smaller [kg]
    drive: float = 0.0  #: force along each axis with which the arm keeps the striker's speed [N]; 0: it coasts
    mass_known: bool = False  #: whether a lab would know the striker's mass: it does if nothing holds the striker
    com: tuple[float, float] = (0.0, 0.0)  #: true centre of mass from the shape's centroid [m]; not declared
    pads: float = 0.0  #: friction against spin of each foot: torque over load [m]
    facing_error: float = 0.0  #: sd of a flat striker's yaw [rad]; recorded like any pose
    scatter: float = 0.01  #: relative sd of restitution and both frictions from strike to strike

    def restitution_at(self, speed: float) -> float:
        """Restitution at a normal approach speed [m/s]: constant, or falling as an exponential does."""
        return float(self.restitution * np.exp(-speed / self.falls_over))


def _regular(corners: int, radius: float, turn: float = 0.0) -> Points:
    angles = turn + 2 * np.pi * np.arange(corners) / corners
    return tuple((round(float(radius * np.cos(a)), 6), round(float(radius * np.sin(a)), 6)) for a in angles)


def _three(x: float, low: float, high: float) -> Points:
    return (-x, low), (x, low), (0.0, high)


_TRAPEZIUM = Shape("extruded", outline=((-0.06, -0.03), (0.06, -0.03), (0.035, 0.03), (-0.035, 0.03)), height=0.04)
_SETTINGS = (
    BulletSetting(  # a springy, slippery blow on a long box
        "bullet-hard",
        Shape("box", size=(0.12, 0.07, 0.05)),
        mass=0.42,
        feet=_three(0.05, -0.028, 0.03),
        restitution=0.85,
        friction=0.15,
        ground_friction=0.30,
    ),
    BulletSetting(  # a dull one that grips, on a hexagon that soon stops
        "bullet-dull",
        Shape("extruded", outline=_regular(6, 0.05), height=0.05),
        mass=0.35,
        feet=_regular(3, 0.035),
        restitution=0.15,
        friction=0.55,
        ground_friction=0.40,
    ),
    BulletSetting(  # rubber: some 9 ms of contact, in which the arm goes on pushing
        "bullet-soft",
        SHAPES["semi-cylinder"],
        mass=0.24,
        feet=_three(0.035, 0.008, 0.04),
        spring=(3.0e4, 35.0),
        friction=0.35,
        ground_friction=0.20,
        striker_mass=(4.5, 3.0),
        drive=10.0,
    ),
    BulletSetting(  # a puck struck by another that is hardly heavier
        "bullet-light",
        Shape("cylinder", radius=0.045, height=0.04),
        mass=0.40,
        feet=_regular(3, 0.03, turn=0.5),
        restitution=0.65,
        friction=0.25,
        ground_friction=0.15,
        striker_mass=(0.6, 0.6),
        mass_known=True,
    ),
    BulletSetting(  # a flat face that lands on one of its ends, and then perhaps on the other
        "bullet-flat",
        Shape("box", size=(0.09, 0.08, 0.05)),
        mass=0.38,
        feet=_three(0.035, -0.03, 0.034),
        restitution=0.40,
        friction=0.30,
        ground_friction=0.28,
        striker=FACE,
        facing_error=0.015,
    ),
    BulletSetting(  # mass well off the middle, an arm that yields unlike in its two directions
        "bullet-uneven",
        SHAPES["triangle"],
        mass=0.28,
        feet=_regular(3, 0.04, turn=np.pi / 2),
        restitution=0.60,
        friction=0.20,
        ground_friction=0.25,
        striker_mass=(5.0, 2.5),
        com=(0.004, -0.004),
    ),
    BulletSetting(  # restitution from 0.68 at 0.2 m/s to 0.35 at 0.8 m/s
        "bullet-falling",
        SHAPES["square"],
        mass=0.33,
        feet=_three(0.03, -0.028, 0.032),
        restitution=0.85,
        falls_over=0.9,
        friction=0.30,
        ground_friction=0.35,
    ),
    BulletSetting(  # soft pads near the middle resist spin; a sticky, softer blow, mass a little off
        "bullet-pads",
        _TRAPEZIUM,
        mass=0.26,
        feet=_three(0.02, -0.015, 0.02),
        spring=(1.2e5, 45.0),
        friction=0.70,
        ground_friction=0.22,
        striker_mass=(6.0, 4.0),
        drive=20.0,
        com=(-0.003, 0.0),
        pads=0.002,
    ),
)
BULLET_SETTINGS: Mapping[str, BulletSetting] = {setting.name: setting for setting in _SETTINGS}


def find_bullet_setting(name: str) -> BulletSetting:
    """The setting of that name, or a message with those there are."""
    if name not in BULLET_SETTINGS:
        raise SceneError(unknown_name("setting", name, BULLET_SETTINGS))
    return BULLET_SETTINGS[name]
