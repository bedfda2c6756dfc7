"""Scenes of pushing: a robot with position servos moves a block over a table, as in the real-sim-real paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import mujoco
import numpy as np

from carom.core.errors import SceneError, unknown_name
from carom.core.rotations import about_z
from carom.scenes.pushing.blocks import MASS, add_block, boxes_of, corners_of
from carom.scenes.pushing.kinematics import Chain, chain_to
from carom.scenes.pushing.paired import pair_contacts, tool_point
from carom.scenes.pushing.robots import robot_xml
from carom.scenes.pushing.writing import FEET, FOOT, SPREAD, TAKES, write_contact_parameters, write_robot
from carom.scenes.scene import MjcfScene, Scene
from carom.state import Array, SceneState

STEP = 0.005  #: [s] of the engine: at 10 ms a free cube rocks by degrees
OWN = ("planar-cube", "planar-t", "arm-cube", "arm-t")  #: names of the built-in scenes
PLACES = {"planar": (0.1, 0.0), "arm": (0.36, 0.0)}  #: [m] of the block when a scene is opened
FRICTION = 0.3  #: of all contacts, where nobody says


@final
@dataclass(frozen=True)
class PushScene(Scene):
    """One block on a table, one robot, and the contacts between block, table and tool; nothing else meets.

    >>> scene = push_scene("planar-t")
    >>> scene.joint_names, scene.home(1).joint_position.tolist()
    (('tool_x', 'tool_y'), [[0.0, 0.0]])
    """

    name: str
    robot: str = "planar"  #: or arm
    block: str = "cube"  #: or t
    mass: float = MASS  #: of the block [kg]
    own: MjcfScene | None = None  #: a user's MJCF in place of robot and block, with the roles target and tool

    def __post_init__(self) -> None:
        if not np.isfinite(self.mass) or self.mass <= 0:
            raise SceneError(f"scene '{self.name}': the block needs a positive mass [kg], got {self.mass}")
        if self.own is None:
            robot_xml(self.robot), boxes_of(self.block)
            return
        for role in ("target", "tool"):
            if role not in self.own.roles:
                raise SceneError(
                    f"scene '{self.name}': pushing needs the role {role}; roles: {{target: BODY, tool: BODY}}"
                )
        _check_joints(self.model, self.name)
        servo_of(self.model, self.name)
        _check_moving(self.model, self.name, self.own.roles)

    @property
    def takes(self) -> tuple[str, ...]:
        """See `Scene`. How `actuator_delay` acts is in `carom.engines.pushing`."""
        return TAKES

    @property
    def block_body(self) -> str:
        """Name of the body that is pushed."""
        return "block" if self.own is None else self.own.roles["target"]

    @property
    def tool_body(self) -> str:
        """Name of the body that pushes."""
        return "tool" if self.own is None else self.own.roles["tool"]

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled scene, without parameters: for its sizes and ranges."""
        try:
            return self.spec().compile()
        except ValueError as error:
            raise SceneError(f"scene '{self.name}' does not compile: {str(error).splitlines()[0]}") from error

    @property
    def timestep(self) -> float:
        """Of the engine [s]."""
        return float(self.model.opt.timestep)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Of the robot, in the order of `SceneState.joints`."""
        model = self.model
        own = [j for j in range(model.njnt) if int(model.jnt_type[j]) != 0]
        return tuple(model.joint(j).name for j in own)

    @cached_property
    def servos(self) -> tuple[int, ...]:
        """Index among the joints of the joint that each actuator moves: its set-point is a position of it."""
        return servo_of(self.model, self.name)

    @cached_property
    def limits(self) -> Array:
        """Least and greatest set-point of each actuator [U, 2] [rad], [m]."""
        return np.array(self.model.actuator_ctrlrange, dtype=np.float64)

    @cached_property
    def chain(self) -> Chain:
        """From the world to the tool's tip."""
        model = self.model
        body = model.body(self.tool_body).id
        return chain_to(model, body, tool_point(model, body), self.joint_names)

    def tool_position(self, joints: Array) -> Array:
        """Where the tool's tip is [N, 3] [m] by its declared geometry, for joints [N, J]."""
        return self.chain.positions(np.asarray(joints, dtype=np.float64))

    @cached_property
    def rest_height(self) -> float:
        """Height of the block's frame when it lies on the table [m], as it is drawn."""
        return float(self.model.body(self.block_body).pos[2])

    @property
    def corners(self) -> Array:
        """Corners of the block's boxes from above, in its frame [B, 4, 2] [m]; of a user's block, of its extent."""
        if self.own is None:
            return corners_of(self.block)
        half = float(np.max(self.model.geom_rbound[self.model.geom_bodyid == self.model.body(self.block_body).id]))
        return np.asarray(half / np.sqrt(2) * np.array([[[1, 1], [-1, 1], [-1, -1], [1, -1]]]))

    def home(self, count: int) -> SceneState:
        """The scene as it is drawn, `count` times."""
        body = self.model.body(self.block_body)
        position, turn = np.tile(body.pos, (count, 1, 1)), np.tile(body.quat, (count, 1, 1))
        own = [int(self.model.joint(name).qposadr[0]) for name in self.joint_names]
        joints, (velocity, spin) = np.tile(self.model.qpos0[own], (count, 1)), np.zeros((2, count, 1, 3))
        return SceneState((self.block_body,), position, turn, velocity, spin, self.joint_names, joints)

    def placed(self, block: Array, joints: Array) -> SceneState:
        """At rest with blocks at x, y, yaw [N, 3] [m, m, rad] on the table, and joints [N, J]."""
        start = self.home(len(block))
        position = np.column_stack([block[:, :2], np.full(len(block), self.rest_height)])
        turn = about_z(block[:, 2])
        return SceneState(
            start.bodies, position[:, None], turn[:, None], start.velocity, start.spin, start.joints, joints
        )

    def spec(self, *, step: float | None = None, parameters: Sequence[str] = ()) -> mujoco.MjSpec:
        """See `Scene`; the solver's settings are MuJoCo's own."""
        if self.own is not None:
            spec = self.own.spec(step=step)
        else:
            spec = mujoco.MjSpec.from_string(robot_xml(self.robot))
            spec.option.timestep = step or STEP
            spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
            spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
            for geom in spec.geoms:
                geom.contype = geom.conaffinity = 0
            plane = mujoco.mjtGeom.mjGEOM_PLANE
            spec.worldbody.add_geom(name="ground", type=plane, size=[2, 2, 0.1], rgba=[0.93, 0.93, 0.9, 1.0])
            add_block(spec, self.block, self.mass, PLACES[self.robot])
        spec.modelname = self.name
        if SPREAD in parameters:
            for i, (x, y) in enumerate(self.corners.reshape(-1, 2)):
                spec.body(self.block_body).add_geom(
                    name=f"{FEET}{i}",
                    type=mujoco.mjtGeom.mjGEOM_SPHERE,
                    pos=[x, y, FOOT - self.rest_height],
                    size=[FOOT, 0, 0],
                    mass=0,
                    contype=0,
                    conaffinity=0,
                )
        condim = 4 if "torsional_friction" in parameters else 3
        pair_contacts(
            spec, self.block_body, self.tool_body, condim=condim, friction=None if self.own else FRICTION, feet=FEET
        )
        spec.body(self.block_body).simple = False  # its centre of mass may be moved per row
        return spec

    def write(self, batch: Any, values: Mapping[str, Array]) -> None:
        """See `Scene`."""
        write_contact_parameters(self.name, batch, values)
        write_robot(self, batch, values)


def _check_joints(model: mujoco.MjModel, name: str) -> None:
    """Refuse joints that are not hinges or slides, and those that recordings could not name."""
    for j in range(model.njnt):
        kind, body = mujoco.mjtJoint(int(model.jnt_type[j])), model.body(int(model.jnt_bodyid[j])).name
        if kind == mujoco.mjtJoint.mjJNT_BALL:
            raise SceneError(f"scene '{name}': body '{body}' has a ball joint; pushing needs hinges and slides")
        if kind != mujoco.mjtJoint.mjJNT_FREE and not model.joint(j).name:
            raise SceneError(f"scene '{name}': a joint of body '{body}' has no name; give it one, recordings use it")


def servo_of(model: mujoco.MjModel, name: str) -> tuple[int, ...]:
    """Index among the joints of the joint that each actuator moves; refuses what is not a position servo."""
    found = []
    joints = [j for j in range(model.njnt) if int(model.jnt_type[j]) != 0]
    for i in range(model.nu):
        on_joint = int(model.actuator_trntype[i]) == int(mujoco.mjtTrn.mjTRN_JOINT)
        servo = model.actuator_gainprm[i, 0] > 0 and model.actuator_biasprm[i, 1] == -model.actuator_gainprm[i, 0]
        if not (on_joint and servo and model.actuator_ctrllimited[i]):
            raise SceneError(f"scene '{name}': actuator {i}: pushing needs position servos on joints, with a ctrlrange")
        found.append(joints.index(int(model.actuator_trnid[i, 0])))
    if not found:
        raise SceneError(f"scene '{name}' has no actuators; pushing needs position servos on joints")
    return tuple(found)


def _check_moving(model: mujoco.MjModel, name: str, roles: Mapping[str, str]) -> None:
    """Refuse a target that does not move freely, a tool that does, and other bodies that do."""
    free = [model.body(model.jnt_bodyid[j]).name for j in range(model.njnt) if int(model.jnt_type[j]) == 0]
    if free != [roles["target"]]:
        got = ", ".join(free) or "none"
        raise SceneError(
            f"scene '{name}': pushing needs one free joint, that of the target {roles['target']}; got {got}"
        )
    body = model.body(roles["tool"]).id
    while body and body != model.body(roles["target"]).id:
        body = int(model.body_parentid[body])
    if body:
        raise SceneError(f"scene '{name}': the tool {roles['tool']} is part of the target {roles['target']}")


def push_scene(name: str) -> PushScene:
    """The built-in scene of pushing of this name."""
    if name not in OWN:
        raise SceneError(unknown_name("scene of pushing", name, OWN))
    robot, _, block = name.partition("-")
    return PushScene(name, robot=robot, block=block)
