"""A scene of pushing whose tool goes where it was recorded to go, whatever the block does: no robot, no servos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import mujoco
import numpy as np

from carom.core.errors import SceneError
from carom.core.rotations import about_z
from carom.scenes.pushing.writing import (
    CONTACTS,
    FEET,
    FOOT,
    OF_BLOCK,
    SPREAD,
    write_block,
    write_contact_parameters,
    write_spread,
    write_tool,
)
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body, Shape
from carom.state import Array, SceneState

STEP = 0.005  #: [s] of the engine
JOINTS = ("along", "across", "turn")  #: of the tool: x, y and yaw in the world
HEAVY = 1e5  #: [kg] the tool: no block holds it up
FRICTION = 1.0  #: of all contacts where nobody says: MuJoCo's own
MASS = 0.2  #: [kg] of a block whose mass nobody stated
MOST_FEET = 8
LOW = 0.15  #: of the block's height: where the tool pushes, so that it does not tilt the block on its feet


@final
@dataclass(frozen=True)
class GuidedScene(Scene):
    """One block on a table, and a tool that is led along a path; block and tool as recordings declare them."""

    name: str
    block: Body
    tool: Body

    def __post_init__(self) -> None:
        for body in (self.block, self.tool):
            if body.shape is None:
                raise SceneError(f"scene '{self.name}': body '{body.name}' needs a shape: pushes are felt by outlines")

    @property
    def takes(self) -> tuple[str, ...]:
        """See `Scene`."""
        return (*CONTACTS, "restitution", SPREAD, *OF_BLOCK, "tool_offset_x", "tool_offset_y")

    @property
    def block_body(self) -> str:
        """Name of the body that is pushed."""
        return "block"

    @property
    def tool_body(self) -> str:
        """Name of the body that pushes."""
        return "tool"

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Of the tool."""
        return JOINTS

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled scene."""
        return self.spec().compile()

    @property
    def timestep(self) -> float:
        """Of the engine [s]."""
        return STEP

    @property
    def height(self) -> float:
        """Of the block [m]."""
        return self._shape.full_height

    @property
    def rest_height(self) -> float:
        """Height at which the block is simulated, its frame at half its height [m]."""
        return self.height / 2

    @property
    def _shape(self) -> Shape:
        assert self.block.shape is not None
        return self.block.shape

    @cached_property
    def corners(self) -> Array:
        """Points of the block's base that are furthest out, in its frame [1, F, 2] [m]."""
        outline = np.concatenate(self._shape.planar_parts)
        if len(outline) > MOST_FEET:
            outline = outline[np.linspace(0, len(outline), MOST_FEET, endpoint=False).astype(int)]
        return np.asarray(outline[None])

    def tool_position(self, joints: Array) -> Array:
        """Where the tool's frame is, seen from above [N, 3] [m]."""
        return np.column_stack([joints[:, :2], np.zeros(len(joints))])

    def placed(self, block: Array, joints: Array) -> SceneState:
        """At rest with blocks at x, y, yaw [N, 3] [m, m, rad] and tools likewise."""
        position = np.column_stack([block[:, :2], np.full(len(block), self.rest_height)])
        velocity, spin = np.zeros((2, len(block), 1, 3))
        return SceneState(("block",), position[:, None], about_z(block[:, 2])[:, None], velocity, spin, JOINTS, joints)

    def spec(self, *, step: float | None = None, parameters: Sequence[str] = ()) -> mujoco.MjSpec:
        """See `Scene`. The block stands on feet: how far out they are is `pressure_spread`."""
        spec = mujoco.MjSpec()
        spec.modelname = self.name
        spec.option.timestep = step or STEP
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        apart: dict[str, Any] = {"contype": 0, "conaffinity": 0}
        spec.worldbody.add_geom(name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2, 2, 0.1], **apart)
        block = spec.worldbody.add_body(name="block", pos=[0, 0, self.rest_height], simple=False)
        block.add_freejoint(name="block")
        solids = _add_solid(spec, block, "block", self._shape, self.height, apart)
        _weigh(block, self.block, self.height)
        for i, (x, y) in enumerate(self.corners[0]):
            place = [x, y, FOOT - self.rest_height]
            block.add_geom(
                name=f"{FEET}{i}", type=mujoco.mjtGeom.mjGEOM_SPHERE, pos=place, size=[FOOT, 0, 0], mass=0, **apart
            )
        tool = spec.worldbody.add_body(name="tool", pos=[0, 0, LOW * self.height], gravcomp=1)
        for name, kind, axis in zip(JOINTS, _KINDS, np.eye(3)[[0, 1, 2]], strict=True):
            tool.add_joint(name=name, type=kind, axis=axis)
        assert self.tool.shape is not None
        hands = _add_solid(spec, tool, "tool", self.tool.shape, LOW * self.height, apart)
        tool.mass, tool.inertia, tool.explicitinertial = HEAVY, [HEAVY] * 3, True
        condim = 4 if "torsional_friction" in parameters else 3
        friction = [FRICTION, FRICTION, 0.005, 1e-4, 1e-4]
        pairs = [(f"ground-{i}", "ground", f"{FEET}{i}") for i in range(len(self.corners[0]))]
        pairs += [(f"striker-{h}-{s}", h, s) for h in hands for s in solids]
        for name, one, other in pairs:
            spec.add_pair(name=name, geomname1=one, geomname2=other, condim=condim, friction=friction)
        return spec

    def write(self, batch: Any, values: Mapping[str, Array]) -> None:
        """See `Scene`."""
        write_contact_parameters(self.name, batch, values)
        write_block(self, batch, values)
        if SPREAD in values:
            write_spread(self, batch, values[SPREAD])
        if {"tool_offset_x", "tool_offset_y"} & values.keys():
            write_tool(self, batch, values)


_SLIDE, _HINGE = mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE
_KINDS = (_SLIDE, _SLIDE, _HINGE)


def _add_solid(
    spec: mujoco.MjSpec, body: Any, name: str, shape: Shape, height: float, apart: Mapping[str, Any]
) -> list[str]:
    """Geoms of a shape stood upright about its body's frame, as high as this: their names."""
    if shape.is_round:
        half = height / 2
        body.add_geom(
            name=name, type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[shape.radius or 0.0, half, 0], mass=1, **apart
        )
        return [name]
    made = []
    for i, part in enumerate(shape.planar_parts):
        own = f"{name}_{i}"
        low, high = part.min(axis=0), part.max(axis=0)
        middle = (low + high) / 2
        if len(part) == 4 and np.allclose(np.abs(part - middle), (high - low) / 2):
            size = [*((high - low) / 2), height / 2]
            body.add_geom(name=own, type=mujoco.mjtGeom.mjGEOM_BOX, pos=[*middle, 0], size=size, mass=1, **apart)
        else:
            corners = np.concatenate(
                [np.column_stack([part, np.full(len(part), z)]) for z in (-height / 2, height / 2)]
            )
            spec.add_mesh(name=own, uservert=corners.astype(np.float32).ravel())
            body.add_geom(name=own, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=own, mass=1, **apart)
        made.append(own)
    return made


def _weigh(made: Any, body: Body, height: float) -> None:
    """Mass, centre of mass and inertia of a block as declared, or of even density."""
    assert body.shape is not None
    mass = MASS if body.mass is None else body.mass
    second = body.shape.planar_moments[2]
    across = second / 2 + height**2 / 12
    upright = second if body.inertia is None else float(np.asarray(body.inertia)[2]) / mass
    made.mass, made.ipos = mass, [*body.planar_com, 0.0]
    made.inertia, made.explicitinertial = [mass * across, mass * across, mass * min(upright, 2 * across)], True
