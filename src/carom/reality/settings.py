"""The six settings of the stand-ins, three materials on two kinds of sand as in CLASH (section IV-A), and their shapes.

The numbers are plausible, not measured: restitution falls with speed nearly as that of yielding solids does (to the
power -1/4), and the prints' springiness and mass are uneven enough that a calibrated MuJoCo misses one strike in four
or so; on the paper's real blocks it missed more (accuracy 0.5 to 0.64). What a folder written by a stand-in declares is
what a lab would know: shapes and the target's mass. Everything else here is for the methods to find out; of the
`Effects`, a mass off centre is the only one that a parameter of the models (`com_x`, `com_y`) can express.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from carom.core.errors import SceneError, unknown_name
from carom.scenes.shapes import Shape


@dataclass(frozen=True)
class Effects:
    """What a stand-in does beyond rigid bodies with constant coefficients; every one can be switched off alone.

    Sizes only: directions and phases are drawn from the stand-in's seed, as they come with a print or a table.
    """

    com_offset: float = 0.002  #: distance of the true centre of mass from the centroid [m]; the pressure follows it
    restitution_variation: float = 0.1  #: largest relative change of restitution around the block; two harmonics
    impulse_scatter: float = 0.02  #: relative sd of the impulse from strike to strike
    friction_scatter: float = 0.01  #: relative sd of both frictions from strike to strike
    striker_mass: tuple[float, float] | None = (3.2, 5.6)  #: effective, along the arm's axes [kg]; None: immovable
    contact_duration: float = 0.004  #: [s]; the ground drags the target meanwhile; 0: an instant
    pressure_tilt: float = 0.12  #: relative change of pressure times friction, middle to edge of the base
    facing_error: float = 0.015  #: sd of a flat striker's yaw [rad]; recorded like any pose
    pads: float = 0.0  #: share of the restitution lost in blows on soft pads at the block's two ends (along its x axis)

    @classmethod
    def none(cls) -> Effects:
        """A reality of rigid bodies and constant coefficients, apart from restitution that depends on speed."""
        return cls(0.0, 0.0, 0.0, 0.0, None, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Setting:
    """One material on one ground."""

    name: str
    material: str
    ground: str
    density: float  #: of the printed block, its infill included [kg/m^3]
    restitution: float  #: energetic, at a normal approach speed of 0.5 m/s
    restitution_exponent: float  #: restitution falls with the speed to this power
    friction: float  #: between striker and target
    ground_friction: float  #: between target and table
    effects: Effects = field(default_factory=Effects)
    ground_rise: float = 0.0  #: relative growth of the ground friction with the slip, at high speed [1]


#: density, restitution, its exponent, friction, contact duration, com offset, restitution variation, striker masses
_MATERIALS: Mapping[str, tuple[float, float, float, float, float, float, float, tuple[float, float]]] = {
    "resin": (1150.0, 0.62, 0.18, 0.34, 0.003, 0.0025, 0.25, (3.4, 5.8)),
    "nylon": (820.0, 0.72, 0.20, 0.20, 0.005, 0.0030, 0.28, (3.0, 5.2)),
    "petg-cf": (960.0, 0.50, 0.22, 0.27, 0.004, 0.0030, 0.28, (3.2, 5.6)),
}
#: ground friction of the sand, and what its dust leaves of the friction between striker and target
_GROUNDS: Mapping[str, tuple[float, float]] = {"high": (0.45, 1.0), "low": (0.22, 0.85)}
_GROUND_FACTOR: Mapping[str, float] = {"resin": 1.0, "nylon": 0.92, "petg-cf": 1.06}


def _settings() -> dict[str, Setting]:
    made = {}
    for material, (density, e, p, mu, duration, offset, variation, masses) in _MATERIALS.items():
        for ground, (grip, dust) in _GROUNDS.items():
            made[f"{material}-{ground}"] = Setting(
                name=f"{material}-{ground}",
                material=material,
                ground=ground,
                density=density,
                restitution=e,
                restitution_exponent=p,
                friction=round(mu * dust, 3),
                ground_friction=round(grip * _GROUND_FACTOR[material], 3),
                effects=Effects(
                    com_offset=offset, restitution_variation=variation, striker_mass=masses, contact_duration=duration
                ),
            )
    return made


#: the paper's six
SETTINGS: Mapping[str, Setting] = _settings()


def _oiled() -> Setting:
    """Nylon on an oiled table: slides are long, and friction grows with the slip.

    The numbers are about those of the real box in `carom bench robot-hits`: 0.10 at rest, 0.18 to 0.2 at 1 m/s.
    """
    return replace(SETTINGS["nylon-low"], name="nylon-oiled", ground="oiled", ground_friction=0.10, ground_rise=1.0)


def _padded() -> Setting:
    """Nylon with felt on its two ends, bare in the middle, on a film of oil: harder on purpose.

    Its sizes were chosen, on strikes that no benchmark uses, so that the blows of calibrated MuJoCo are about as
    accurate (0.56) as on the paper's blocks (0.5 to 0.64): one restitution cannot be that of both nylon and felt, nor
    one friction that of an oil film, 0.015 at rest and 0.09 at 1 m/s. Both change smoothly, so ten strikes can tell.
    Both make straight blows go farther than MuJoCo says, the mistake that a policy cannot put right.
    """
    plain = SETTINGS["nylon-low"]
    return replace(
        plain,
        name="nylon-padded",
        ground="oil film",
        ground_friction=0.015,
        ground_rise=6.0,
        effects=replace(plain.effects, pads=0.6),
    )


def _waxed() -> Setting:
    """Nylon on a waxed table: a light blow goes far."""
    return replace(SETTINGS["nylon-low"], name="nylon-waxed", ground="waxed", ground_friction=0.05)


def _scattered() -> Setting:
    """Nylon whose blows and slides differ more from strike to strike: what is planned rarely comes out just so."""
    plain = SETTINGS["nylon-low"]
    effects = replace(plain.effects, impulse_scatter=0.05, friction_scatter=0.03)
    return replace(plain, name="nylon-scattered", effects=effects)


#: further ones, where small mistakes grow: for policies, which can put right what they see
HARDER: Mapping[str, Setting] = {setting.name: setting for setting in (_oiled(), _padded(), _waxed(), _scattered())}
ALL_SETTINGS: Mapping[str, Setting] = {**SETTINGS, **HARDER}

SHAPES: Mapping[str, Shape] = {
    "semi-cylinder": Shape("semi-cylinder", radius=0.05, height=0.05),
    "square": Shape("box", size=(0.08, 0.08, 0.05)),
    "triangle": Shape(
        "extruded",
        height=0.05,
        outline=tuple(
            (round(0.1 / np.sqrt(3) * float(np.cos(a)), 6), round(0.1 / np.sqrt(3) * float(np.sin(a)), 6))
            for a in np.radians([-150.0, -30.0, 90.0])
        ),
    ),
}

#: [m] heights, and the lengths of the two strikers; each is held stiffly, so a folder declares no mass for it
STRIKERS: Mapping[str, Shape] = {
    "round": Shape("cylinder", radius=0.02, height=0.04),
    "flat": Shape("box", size=(0.02, 0.04, 0.04)),
}


def find_setting(name: str) -> Setting:
    """The setting of that name, or a message with those there are."""
    if name not in ALL_SETTINGS:
        raise SceneError(unknown_name("setting", name, ALL_SETTINGS))
    return ALL_SETTINGS[name]


def find_shape(shape: str | Shape | ArrayLike, *, height: float = 0.05) -> Shape:
    """The shape of that name; a `Shape` as it is; or a convex outline [V, 2] [m] extruded to `height` [m]."""
    if isinstance(shape, str):
        if shape not in SHAPES:
            raise SceneError(unknown_name("shape", shape, SHAPES))
        return SHAPES[shape]
    if isinstance(shape, Shape):
        return shape
    outline = np.asarray(shape, dtype=np.float64)
    if outline.ndim != 2 or outline.shape[1] != 2:
        raise SceneError(f"shape: expected a name, a Shape or an outline of shape (V, 2), got shape {outline.shape}")
    return Shape("extruded", outline=tuple((float(x), float(y)) for x, y in outline), height=height)
