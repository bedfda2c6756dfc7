"""Scenes of free bodies: tossed on a board, pushed into each other, gliding on an air table; and their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import mujoco
import numpy as np

from carom.core.errors import SceneError
from carom.core.rotations import of_tilt
from carom.scenes.free_writing import centres, pad_size, write_bodies, write_sizes
from carom.scenes.parameters import FREE, write_contacts, write_contacts_into
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body, Shape
from carom.scenes.solids import calibrated_body
from carom.state import Array

LONGEST_STEP = 0.0009  #: [s] of the engine; a hard contact lasts a few milliseconds
SOLID = ("box", "sphere", "cylinder", "disc", "mesh")  #: shapes that a free body can have


@final
@dataclass(frozen=True)
class FreeScene(Scene):
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

    @property
    def takes(self) -> tuple[str, ...]:
        """See `Scene`."""
        return tuple(FREE)

    def spec(self, *, step: float | None = None, parameters: Sequence[str] = ()) -> mujoco.MjSpec:
        """See `Scene`; faces get pads of their own, and contacts more friction, where the parameters want it."""
        condim = 6 if "rolling_friction" in parameters else 4 if "torsional_friction" in parameters else 3
        return free_spec(self, step=step or LONGEST_STEP, condim=condim, pads="face_friction" in parameters)

    def write(self, batch: Any, values: Mapping[str, Array]) -> None:
        """See `Scene`."""
        write_contacts(batch, values)
        write_bodies(self, batch, values, self.centres(values, batch.nsim))
        if {"length_scale", "edge_radius"} & values.keys():
            ones = np.ones(batch.nsim)
            write_sizes(self, batch, values.get("length_scale", ones), values.get("edge_radius", 0 * ones))

    @cached_property
    def _declared(self) -> Array:
        """Centres of mass in the bodies' frames [B, 3] [m], as MuJoCo has them."""
        return np.array(self.spec().compile().body_ipos[1 : 1 + len(self.bodies)])

    def centres(self, values: Mapping[str, Array], count: int) -> Array:
        """Centres of mass with these parameters [N] in the bodies' frames [N, B, 3] [m]."""
        return centres(self._declared, values, count)

    def spec_with(self, values: Mapping[str, float], *, step: float | None = None) -> mujoco.MjSpec:
        """The scene's MJCF with these parameters written in, as MuJoCo opens it."""
        spec = calibrated(self, values).spec(step=step, parameters=tuple(values))
        write_contacts_into(spec, values)
        if {"tilt_x", "tilt_y"} & values.keys():
            spec.geom("ground").quat = of_tilt(values.get("tilt_x", 0.0), values.get("tilt_y", 0.0))
        if radius := values.get("edge_radius", 0.0):
            rounding = {body.name: radius for body in self.bodies if body.solid.kind == "box"}
            for name in rounding:
                spec.geom(name).size = np.asarray(spec.geom(name).size) - radius
            for pair in spec.pairs:
                pair.margin = rounding.get(pair.geomname1, 0.0) + rounding.get(pair.geomname2, 0.0)
        return spec


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
