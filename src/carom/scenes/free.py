"""Scenes of free bodies: tossed on a board, pushed into each other, gliding on an air table; and their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from carom.core.errors import SceneError, unknown_name
from carom.scenes.parameters import Parameter
from carom.scenes.shapes import Body, Shape
from carom.scenes.solids import calibrated_body
from carom.state import Array

LONGEST_STEP = 0.0009  #: [s] of the engine; a hard contact lasts a few milliseconds
PAD_HEIGHT, PAD_INSET = 0.0025, 0.08  #: of a face that rubs unlike its edges: how far it stands out, and ends, per side
SOLID = ("box", "sphere", "cylinder", "disc", "mesh")  #: shapes that a free body can have


@dataclass(frozen=True)
class FreeScene:
    """Bodies that move freely, over level ground or (`planar`) over an air table that they never leave.

    >>> scene = toss_scene()
    >>> scene.widths
    array([0.1])
    """

    name: str
    bodies: tuple[Body, ...]  #: each with a shape and a mass
    gravity: float = 9.81  #: [m/s^2] downwards
    ground_height: float = 0.0  #: [m] of the plane they fall or slide on
    planar: bool = False  #: bodies move in x, y and yaw only and nothing holds them back

    def __post_init__(self) -> None:
        if not self.bodies:
            raise SceneError(f"scene '{self.name}' has no body that moves")
        for body in self.bodies:
            if body.shape is None or body.shape.kind not in SOLID:
                kind = "none" if body.shape is None else body.shape.kind
                raise SceneError(f"body '{body.name}': a free body needs a shape of {', '.join(SOLID)}; got {kind}")
            if body.mass is None:
                raise SceneError(f"body '{body.name}': a free body needs a mass [kg]")

    @property
    def widths(self) -> Array:
        """The positional scale w_i of each body in Eq. 1 [B] [m]: its mean extent, or the diameter of a round one."""
        return np.array([b.solid.width for b in self.bodies])


def toss_scene(side: float = 0.1, mass: float = 0.37) -> FreeScene:
    """A cube tossed on a board: the built-in `toss`."""
    return FreeScene("toss", (Body("cube", "target", Shape("box", size=(side, side, side)), mass=mass),))


def cubes_scene(count: int = 1, side: float = 0.1, mass: float = 0.37) -> FreeScene:
    """A cube pushed into `count` others (one to ten), which stand like pins: the built-in `cubes`."""
    if not 1 <= count <= 10:
        raise SceneError(f"cubes: expected one to ten other cubes, got {count}")
    shape = Shape("box", size=(side, side, side))
    others = [Body(f"cube_{i}", "target", shape, mass=mass) for i in range(1, count + 1)]
    return FreeScene("cubes", (Body("pushed", "striker", shape, mass=mass), *others))


def _p(name: str, unit: str, low: float, high: float, default: float, log: bool, about: str) -> tuple[str, Parameter]:
    return name, Parameter(name, unit, low, high, default, log, about)


#: What can be identified from whole trajectories. Bounds of the first eight: Table II of the few-shot paper.
FREE: Mapping[str, Parameter] = dict(
    (
        _p("friction", "1", 0.0, 1.0, 0.3, False, "mu: sliding friction of every contact"),
        _p("face_friction", "1", 0.0, 1.0, 0.3, False, "friction of a box that lies on a face; `friction`: of edges"),
        _p("time_constant", "s", 0.001, 0.1, 0.02, True, "solref: time constant of a contact"),
        _p("damping_ratio", "1", 0.1, 10.0, 1.0, True, "solref: damping ratio of a contact"),
        _p("impedance_least", "1", 0.9, 0.95, 0.9, False, "solimp: d_0"),
        _p("impedance_most", "1", 0.95, 0.99, 0.95, False, "solimp: d_width"),
        _p("impedance_width", "m", 0.0001, 0.01, 0.001, True, "solimp: width"),
        _p("impedance_midpoint", "1", 0.001, 0.1, 0.05, True, "solimp: midpoint"),
        _p("impedance_power", "1", 1.0, 5.0, 2.0, False, "solimp: power"),
        _p("stiffness", "1/s^2", 200.0, 300_000.0, 20_000.0, True, "direct solref: stiffness over effective mass"),
        _p("damping", "1/s", 2.0, 3000.0, 200.0, True, "direct solref: damping over effective mass"),
        _p("torsional_friction", "m", 1e-5, 0.05, 0.005, True, "friction against spin about a contact's normal"),
        _p("rolling_friction", "m", 1e-6, 0.01, 0.0001, True, "friction against rolling"),
        _p("mass_scale", "1", 0.5, 2.0, 1.0, True, "mass over the declared one"),
        _p("inertia_scale", "1", 0.5, 2.0, 1.0, True, "inertia over the declared one"),
        _p("com_x", "m", -0.01, 0.01, 0.0, False, "centre of mass against the declared one, along the body's x"),
        _p("com_y", "m", -0.01, 0.01, 0.0, False, "centre of mass against the declared one, along the body's y"),
        _p("com_z", "m", -0.01, 0.01, 0.0, False, "centre of mass against the declared one, along the body's z"),
        _p("com_offset", "m", 0.0, 0.012, 0.0, False, "centre of mass from the middle, towards one of the faces"),
        _p("length_scale", "1", 0.9, 1.1, 1.0, False, "recorded lengths over real ones"),
        _p("gravity", "m/s^2", 9.2, 10.2, 9.81, False, "free fall as recorded"),
        _p("tilt_x", "rad", -0.03, 0.03, 0.0, False, "lean of the ground's normal towards x"),
        _p("tilt_y", "rad", -0.03, 0.03, 0.0, False, "lean of the ground's normal towards y"),
        _p("edge_radius", "m", 1e-5, 0.012, 1e-5, False, "rounding of the edges of boxes"),
    )
)
TABLE_II = (
    "friction",
    "time_constant",
    "damping_ratio",
    "impedance_least",
    "impedance_most",
    "impedance_width",
    "impedance_midpoint",
    "impedance_power",
)
DIRECT = ("friction", "stiffness", "damping")  #: contact in the direct form of solref


def free_parameters(names: Sequence[str]) -> tuple[Parameter, ...]:
    """The parameters of these names; raises for an unknown one and for both forms of solref at once."""
    for name in names:
        if name not in FREE:
            raise SceneError(unknown_name("parameter", name, FREE))
    if {"stiffness", "damping"} & set(names) and {"time_constant", "damping_ratio"} & set(names):
        raise SceneError("stiffness and damping are one form of solref, time_constant and damping_ratio the other")
    return tuple(FREE[name] for name in names)


def resolved(parameters: Sequence[Parameter], step: float) -> tuple[Parameter, ...]:
    """The parameters with bounds that an engine's step [s] resolves: contacts harder than that gain energy."""
    most = {"damping": 1.0 / step, "stiffness": (0.5 / step) ** 2}
    return tuple(replace(p, high=min(p.high, most.get(p.name, p.high))) for p in parameters)


def timestep(period: float) -> float:
    """Step of the engine [s] that divides a sample period [s] evenly."""
    return period / max(int(np.ceil(period / LONGEST_STEP)), 1)


def free_spec(scene: FreeScene, *, step: float = LONGEST_STEP, condim: int = 3, pads: bool = False) -> mujoco.MjSpec:
    """MjSpec with one free body per body, the ground, and a contact pair for each two that can meet.

    With `pads`, boxes get faces of their own, a hair prouder than their edges, that meet the ground alone: labels,
    tape and polish rub unlike a bare edge does.
    """
    spec = mujoco.MjSpec()
    spec.modelname = scene.name
    spec.option.timestep = step
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.gravity = [0, 0, 0 if scene.planar else -scene.gravity]
    geoms = []
    if not scene.planar:
        spec.worldbody.add_geom(
            name="ground",
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[5, 5, 0.1],
            pos=[0, 0, scene.ground_height],
            contype=0,
            conaffinity=0,
        )
        geoms.append("ground")
    for body in scene.bodies:
        _add_body(spec, scene, body)
        geoms.append(body.name)
    for i, one in enumerate(geoms):
        for other in geoms[i + 1 :]:
            spec.add_pair(name=f"{one}-{other}", geomname1=one, geomname2=other, condim=condim)
    if pads and not scene.planar:
        for body in scene.bodies:
            for pad in _add_pads(spec, body):
                spec.add_pair(name=f"ground-{pad}", geomname1="ground", geomname2=pad, condim=condim)
    return spec


def _add_pads(spec: mujoco.MjSpec, body: Body) -> list[str]:
    """Three slabs through a box, each ending in two faces; massless, they touch the ground only."""
    if body.shape is None or body.shape.kind != "box":
        return []
    names = []
    for axis, name in enumerate(("x", "y", "z")):
        pad = f"{body.name}_face_{name}"
        size = pad_size(np.asarray(body.shape.size) / 2, axis)
        kind = mujoco.mjtGeom.mjGEOM_BOX
        spec.body(body.name).add_geom(name=pad, type=kind, size=size, mass=0, contype=0, conaffinity=0, group=3)
        names.append(pad)
    return names


def pad_size(half: Array, axis: int) -> Array:
    """Half lengths [..., 3] of the slab that ends in a box's two faces across an axis, from its own half lengths."""
    size = np.asarray(half) * (1 - 2 * PAD_INSET)
    size[..., axis] = np.asarray(half)[..., axis] * (1 + 2 * PAD_HEIGHT)
    return np.asarray(size)


def _add_body(spec: mujoco.MjSpec, scene: FreeScene, body: Body) -> None:
    made = spec.worldbody.add_body(name=body.name)
    if scene.planar:
        for axis, kind, direction in (
            ("x", "SLIDE", (1, 0, 0)),
            ("y", "SLIDE", (0, 1, 0)),
            ("yaw", "HINGE", (0, 0, 1)),
        ):
            joint = getattr(mujoco.mjtJoint, f"mjJNT_{kind}")
            made.add_joint(name=f"{body.name}_{axis}", type=joint, axis=direction)
    else:
        made.add_freejoint(name=body.name)
    geom = _geom(spec, body)
    made.add_geom(name=body.name, contype=0, conaffinity=0, mass=body.mass, **geom)
    if body.inertia is not None or body.com is not None:
        made.explicitinertial = True
        made.mass, made.ipos = body.mass, body.centre
        inertia = body.solid_inertia
        if len(inertia) == 6:
            made.fullinertia = inertia
        else:
            made.inertia = inertia
    made.simple = False  # its centre of mass may be moved per simulation


def _geom(spec: mujoco.MjSpec, body: Body) -> dict[str, object]:
    shape = body.solid
    if shape.kind == "box":
        return {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": [s / 2 for s in shape.size]}
    if shape.kind == "sphere":
        return {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [float(shape.radius or 0), 0, 0]}
    if shape.kind == "mesh":
        spec.add_mesh(name=body.name, uservert=np.asarray(shape.corners, dtype=np.float32).ravel())
        return {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": body.name}
    half = shape.full_height / 2
    return {"type": mujoco.mjtGeom.mjGEOM_CYLINDER, "size": [float(shape.radius or 0), half, 0]}


def calibrated(scene: FreeScene, values: Mapping[str, float]) -> FreeScene:
    """The scene with the parameters that belong to its bodies and its gravity written in; contact stays apart."""
    heavy, even = np.array([1.0, 0.0, 0.0]), np.zeros(3)  # the side of the first body that is heavy is called x here
    bodies = tuple(calibrated_body(b, values, even if i else heavy) for i, b in enumerate(scene.bodies))
    return replace(scene, bodies=bodies, gravity=float(values.get("gravity", scene.gravity)))
