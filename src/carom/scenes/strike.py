"""Strike scenes: a striker hits a target that rests on the ground. Built-in, from a file, or from recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from carom.core.errors import SceneError, unknown_name
from carom.scenes.outline import Outline
from carom.scenes.parameters import TABLE_I, Parameter, known, with_bounds, write_contacts
from carom.scenes.scene import Scene
from carom.scenes.shapes import HEAVIEST, LIGHTEST, LONGEST, SHORTEST, STRIKER_HEIGHT, Body, Shape
from carom.state import Array

if TYPE_CHECKING:
    import mujoco

FASTEST = 1000.0  #: [m/s] of a striker
KINEMATIC_MASS = 1000.0  #: [kg] a striker held by a stiff arm: so heavy that no target slows it
#: Contact parameters of each teacher: MuJoCo's are Table I of CLASH. The rigid one is a formula and is not distilled.
TEACHERS: Mapping[str, tuple[str, ...]] = {
    "mujoco": ("striker_friction", "ground_friction", "striker_damping", "ground_damping"),
    "compliant": (
        "striker_friction",
        "ground_friction",
        "restitution",
        "restitution_slope",
        "contact_time",
        "tangential_stiffness",
    ),
    "rigid": ("striker_friction", "restitution", "restitution_slope"),
}
DISTILLED = ("mujoco", "compliant")  #: teachers that networks learn from


@dataclass(frozen=True)
class Striker:
    """What hits: round, or with a flat face; held stiffly (`mass` None) or with an effective mass."""

    radius: float | None = None  #: of a round striker [m]; None: flat face
    width: float | None = None  #: of a flat face [m]
    height: float = STRIKER_HEIGHT  #: [m]
    mass: float | None = None  #: effective mass [kg]; None: held stiffly
    forward: float = 0.0  #: direction of the flat face's outward normal in the striker's frame [rad]

    def __post_init__(self) -> None:
        if (self.radius is None) == (self.width is None):
            raise SceneError("striker: give either a radius (round) or a width (flat face), in metres")
        for name in ("radius", "width", "height", "mass"):
            value = getattr(self, name)
            low, high = (LIGHTEST, HEAVIEST) if name == "mass" else (SHORTEST, LONGEST)
            if value is not None and not low <= value <= high:
                raise SceneError(f"striker: {name} must be positive, got {value} (expected {low:g} to {high:g})")

    @property
    def flat(self) -> bool:
        return self.radius is None


@final
@dataclass(frozen=True)
class StrikeScene(Scene):
    """A target at rest on the ground and a striker: everything the impact depends on, with its ranges."""

    name: str
    target: Body
    striker: Striker
    unknown: tuple[Parameter, ...] = ()  #: geometry and mass that were not measured, with bounds: part of `P`
    bounds: tuple[Parameter, ...] = ()  #: contact parameters with other bounds than usual
    speed: tuple[float, float] = (0.2, 0.8)  #: v_pre [m/s] (Table I)
    deflection: float = np.pi / 12  #: largest angle between velocity and inward normal [rad] (theta_1, Table I)
    face_angle: float = 0.2  #: largest angle between a flat face and the target's side [rad]
    arc: tuple[float, float] | None = None  #: semi-cylinder: range of theta on the arc [rad] (Table I)

    def __post_init__(self) -> None:
        if self.target.shape is None:
            raise SceneError(f"scene '{self.name}': target '{self.target.name}' needs a shape")
        if self.target.shape.kind == "compound":
            raise SceneError(
                f"scene '{self.name}': a compound can be pushed, not struck: give the target a convex shape"
            )
        if self.target.mass is None:
            raise SceneError(f"scene '{self.name}': target '{self.target.name}' needs a mass [kg]")
        if not 0 < self.speed[0] < self.speed[1] <= FASTEST:
            raise SceneError(
                f"scene '{self.name}': speed must be two positive numbers, lower first, got {self.speed} "
                f"(at most {FASTEST:g} m/s)"
            )
        if not self.striker.flat:
            for p in self.unknown:
                if p.name in ("face_width", "face_tilt"):
                    raise SceneError(f"scene '{self.name}': '{p.name}' needs a flat face, this striker is round")

    @cached_property
    def outline(self) -> Outline:
        """The target's outline seen from above, in its body's frame."""
        return Outline(self.shape.planar_outline)

    @property
    def shape(self) -> Shape:
        if self.target.shape is None:  # refused at construction
            raise SceneError(f"scene '{self.name}': target has no shape")
        return self.target.shape

    @property
    def mass(self) -> float:
        """Mass of the target [kg]."""
        return float(self.target.mass or 0.0)

    @property
    def gyration_radius(self) -> float:
        """k: the target's radius of gyration about the vertical [m]."""
        return self.target.gyration_radius

    @property
    def striker_mass(self) -> float:
        """Effective mass of the striker [kg]."""
        return KINEMATIC_MASS if self.striker.mass is None else self.striker.mass

    def parameters(self, teacher: str = "mujoco") -> tuple[Parameter, ...]:
        """`P` for this scene and teacher: contact parameters first, then what was declared unknown."""
        if teacher not in TEACHERS:
            raise SceneError(unknown_name("teacher", teacher, TEACHERS))
        override = {p.name: p for p in self.bounds}
        contact = tuple(override.get(name, known(name)) for name in TEACHERS[teacher])
        skip = set() if teacher == "compliant" else {"striker_inertia"}
        return contact + tuple(p for p in self.unknown if p.name not in skip)

    @property
    def takes(self) -> tuple[str, ...]:
        """See `Scene`: Table I, the striker's mass and face, and where the target's mass is."""
        return (*TABLE_I, "striker_mass", "face_width", "face_tilt", "face_offset", "com_x", "com_y")

    def spec(self, *, step: float | None = None, parameters: Sequence[str] = ()) -> mujoco.MjSpec:
        """See `Scene`; a free `target` on a `ground` plane, and a `striker` on two slides and a hinge."""
        from carom.scenes.mjcf import strike_spec  # here: MuJoCo is slow to import, most scenes don't need it

        spec = strike_spec(self)
        if step is not None:
            spec.option.timestep = step
        return spec

    def write(self, batch: Any, values: Mapping[str, Array]) -> None:
        """See `Scene`. Where the face is (`face_tilt`, `face_offset`) is part of the strikes, not of the model."""
        model = batch.model
        target, striker = model.body("target").id, model.body("striker").id
        write_contacts(batch, values)
        batch.expand("body_ipos")[:, target, :2] = self.mass_centres(values, batch.nsim)
        if "striker_mass" in values:
            batch.expand("body_mass")[:, striker] = values["striker_mass"]
        if "face_width" in values:
            geom = model.geom("striker").id
            batch.expand("geom_size")[:, geom, 1] = values["face_width"] / 2
            size = batch.expand("geom_size")[:, geom]
            batch.expand("geom_rbound")[:, geom] = np.linalg.norm(size, axis=-1)

    def mass_centres(self, values: Mapping[str, Array], count: int) -> Array:
        """Centres of mass in the target's frame [N, 2] [m]."""
        com = np.broadcast_to(self.target.planar_com, (count, 2)).copy()
        for i, name in enumerate(("com_x", "com_y")):
            com[:, i] += values.get(name, 0.0)
        return com

    def signature(self) -> dict[str, Any]:
        """What a model made for this scene depends on, for its header and for refusing other scenes."""
        return {
            "target": {
                "outline_m": np.round(self.outline.vertices, 6).tolist(),
                "height_m": round(self.shape.full_height, 6),
                "mass_kg": round(self.mass, 6),
                "com_m": np.round(self.target.planar_com, 6).tolist(),
                "gyration_radius_m": round(self.gyration_radius, 6),
            },
            "striker": {"radius_m": self.striker.radius, "width_m": self.striker.width, "mass_kg": self.striker.mass},
            "unknown": {p.name: [p.low, p.high] for p in self.unknown},
        }


def com_unknown(shape: Shape, share: float = 0.05) -> tuple[Parameter, ...]:
    """Centre of mass as an unknown, within this share of the target's size: no printed block is uniform."""
    size = float(np.ptp(shape.planar_outline, axis=0).min())
    return tuple(with_bounds(name, (-share * size, share * size)) for name in ("com_x", "com_y"))


def _builtin(name: str, shape: Shape, mass: float, **options: Any) -> StrikeScene:
    striker = options.pop("striker", Striker(radius=0.02))
    unknown = (*com_unknown(shape), *options.pop("unknown", ()))
    return StrikeScene(name, Body("block", "target", shape, mass), striker, unknown, **options)


def builtin(name: str) -> StrikeScene:
    """A built-in scene: semi-cylinder, square, triangle (CLASH, Fig. 6a), or box with a robot's spherical tool.

    >>> builtin("square").shape.size
    (0.08, 0.08, 0.05)
    """
    if name not in BUILTIN:
        raise SceneError(unknown_name("scene", name, BUILTIN))
    if name == "semi-cylinder":
        arc = (np.pi / 12, 11 * np.pi / 12)
        return _builtin(name, Shape("semi-cylinder", radius=0.05, height=0.05), 0.15, arc=arc)
    if name == "square":
        return _builtin(name, Shape("box", size=(0.08, 0.08, 0.05)), 0.25)
    if name == "triangle":
        side, h = 0.1, 0.1 * np.sqrt(3) / 2
        corners = ((-side / 2, -h / 3), (side / 2, -h / 3), (0.0, 2 * h / 3))
        return _builtin(name, Shape("extruded", outline=corners, height=0.05), 0.17)
    mass = with_bounds("striker_mass", (4.4 / 3, 4.4 * 3))  # a robot's arm: 4.4 kg along the blow, more or less
    tool = Striker(radius=0.0145, height=0.029, mass=4.4)
    box = Shape("box", size=(0.232, 0.232, 0.232))
    return _builtin(name, box, 0.4, striker=tool, unknown=(mass,), speed=(0.15, 1.5), deflection=0.3)


BUILTIN = ("semi-cylinder", "square", "triangle", "box")


def width_across(shape: Shape, forward: float) -> float:
    """Width of the face that a shape shows in a direction of its frame [rad], seen from above [m]."""
    extent = np.ptp(shape.planar_outline, axis=0)
    return float(abs(np.sin(forward)) * extent[0] + abs(np.cos(forward)) * extent[1])


def from_bodies(target: Body, striker: Body | None, *, name: str | None = None, forward: float = 0.0) -> StrikeScene:
    """The scene of a recording: target and striker as its header declares them.

    A striker declared as a small sphere says where the tool's tip is, not what its face looks like: it
    becomes a flat face of unknown width, tilt and offset. Cylinders and discs are taken as round, boxes as
    flat, at their word. `forward` is the direction of approach in the striker's frame [rad].
    """
    if target.shape is None:
        raise SceneError(f"body '{target.name}' has no shape: a scene cannot be derived from these recordings")
    size = float(np.ptp(target.shape.planar_outline, axis=0).min())
    if striker is None or striker.shape is None:
        raise SceneError("the recordings declare no striker with a shape: a strike scene needs one (role: striker)")
    unknown = list(com_unknown(target.shape))
    if striker.mass is not None:
        unknown.append(with_bounds("striker_mass", (striker.mass / 3, striker.mass * 3)))
    small_tip = striker.shape.kind == "sphere" and float(striker.shape.radius or 0) <= 0.15 * size
    curved = target.shape.is_round or target.shape.kind == "semi-cylinder"  # an offset face meets a curve elsewhere
    if striker.shape.is_round and (curved or not small_tip):
        tip = Striker(radius=striker.shape.radius, height=striker.shape.full_height, mass=striker.mass)
    else:
        tip_is_known = striker.shape.kind != "sphere"
        width = width_across(striker.shape, forward) if tip_is_known else 0.2 * size
        tip = Striker(width=width, height=striker.shape.full_height, mass=striker.mass, forward=forward)
        if not tip_is_known:
            unknown += [
                with_bounds("face_width", (0.02 * size, 0.7 * size)),
                with_bounds("face_tilt", (-0.15, 0.15)),
                with_bounds("face_offset", (-0.15 * size, 0.15 * size)),
                known("striker_inertia"),
            ]
            unknown[:2] = com_unknown(target.shape, 0.2)
    return StrikeScene(
        name or f"{target.name}-by-{striker.name}", target, tip, tuple(unknown), speed=(0.15, 1.5), deflection=0.3
    )
