"""The settings of the stand-ins for pushes: tables and tools, and effects that MuJoCo may not have.

The numbers are plausible, not measured. A folder that such a stand-in writes declares what a laboratory would know: the
block's shape and its weight as someone once noted it, and the tool's radius. All else is to be found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from carom.core.errors import SceneError, unknown_name


@dataclass(frozen=True)
class PushEffects:
    """What a stand-in for pushes does beyond one friction for each surface; every one can be switched off alone.

    Those marked (*) a tuned MuJoCo can express. Directions and phases are drawn from the stand-in's seed.
    """

    anisotropy: float = 0.2  #: ground friction across the table's grain over that along it, less 1
    unevenness: float = 0.08  #: largest relative change of the ground friction over the table, in waves of 0.15 m
    rise: float = 0.25  #: relative growth of the ground friction with the slip
    pressure_tilt: float = 0.15  #: relative change of pressure from the middle to the edge of the base
    com_offset: float = 0.004  #: (*) distance of the centre of mass from where the shape says [m]
    torsion: float = 0.004  #: (*) torque against spin beyond the patch's, over friction times weight [m]
    joint_friction: float = 0.04  #: (*) of the joints, as a share of the greatest force of each
    delay: float = 0.03  #: (*) until a command takes effect [s]
    misalignment: float = 0.003  #: (*) distance of the tool's tip from where it is thought to be [m]
    friction_scatter: float = 0.02  #: relative sd of both frictions from push to push
    inertia: bool = True  #: False: the quasi-static limit, in which a block stops where its push ends

    @classmethod
    def none(cls) -> PushEffects:
        """Blocks on an even, isotropic table, and a tool that does at once what it is told."""
        return cls(**{f.name: 0.0 for f in fields(cls) if f.name != "inertia"})  # type: ignore[arg-type]

    def expressible(self) -> PushEffects:
        """Those of these effects that a parameter of a MuJoCo scene expresses (*), without the others."""
        return replace(self, anisotropy=0.0, unevenness=0.0, rise=0.0, pressure_tilt=0.0, friction_scatter=0.0)


#: those that no parameter of a MuJoCo scene expresses
INEXPRESSIBLE = ("anisotropy", "unevenness", "rise", "pressure_tilt", "friction_scatter")
EFFECTS = tuple(f.name for f in fields(PushEffects))  #: names of all


@dataclass(frozen=True)
class PushSetting:
    """One block on one table, pushed by one tool."""

    name: str
    ground_friction: float  #: between block and table
    tool_friction: float  #: between block and tool
    mass_scale: float  #: true mass over the declared one
    effects: PushEffects = field(default_factory=PushEffects)


PUSH_SETTINGS: Mapping[str, PushSetting] = {
    s.name: s
    for s in (
        PushSetting("plain", 0.35, 0.35, 1.0, PushEffects.none()),
        PushSetting("laminate", 0.22, 0.25, 1.25),
        PushSetting("felt", 0.50, 0.40, 0.85, PushEffects(anisotropy=0.35, rise=0.1, delay=0.045, torsion=0.007)),
        PushSetting("steel", 0.16, 0.15, 1.6, PushEffects(anisotropy=0.1, rise=0.4, misalignment=0.005)),
    )
}


def find_push_setting(name: str) -> PushSetting:
    """The setting of that name, or a message with those there are."""
    if name not in PUSH_SETTINGS:
        raise SceneError(unknown_name("setting of pushes", name, PUSH_SETTINGS))
    return PUSH_SETTINGS[name]
