"""Where bodies and joints are in a model's `qpos` and `qvel`, and the way from a `SceneState` there and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import mujoco
import numpy as np

from carom.core.errors import CaromError
from carom.core.rotations import about_z, to_body, to_world, yaw
from carom.state import Array, SceneState

FREE, SLIDE, HINGE = (int(getattr(mujoco.mjtJoint, f"mjJNT_{kind}")) for kind in ("FREE", "SLIDE", "HINGE"))


@final
@dataclass(frozen=True)
class Place:
    """A body that moves by itself."""

    name: str
    qpos: int  #: of its first number
    qvel: int
    planar: bool  #: moves by x, y and yaw only
    height: float  #: of a planar one [m]


@final
@dataclass(frozen=True)
class Layout:
    """The bodies that move by themselves, and all other joints."""

    places: tuple[Place, ...]
    joints: tuple[str, ...]
    joint_qpos: tuple[int, ...]
    joint_qvel: tuple[int, ...]

    @property
    def bodies(self) -> tuple[str, ...]:
        return tuple(place.name for place in self.places)

    def check(self, state: SceneState) -> None:
        """Refuse a state of other bodies or joints."""
        for what, own, given in (("bodies", self.bodies, state.bodies), ("joints", self.joints, state.joints)):
            if own != given:
                wanted, got = (", ".join(names) or "none" for names in (own, given))
                raise CaromError(f"start: expected the {what} {wanted}, got {got}")

    def put(self, state: SceneState, qpos: Array, qvel: Array) -> None:
        """Write states into `qpos` and `qvel` [N, ...]."""
        for i, place in enumerate(self.places):
            put_body(
                place, qpos, qvel, state.position[:, i], state.quaternion[:, i], state.velocity[:, i], state.spin[:, i]
            )
        qpos[:, list(self.joint_qpos)] = state.joint_position
        qvel[:, list(self.joint_qvel)] = state.joint_velocity

    def poses(self, qpos: Array, height: Array) -> tuple[Array, Array, Array]:
        """Positions [N, B, 3], quaternions [N, B, 4] and joints [N, J] from `qpos`; planar bodies at heights [N, B]."""
        count = len(qpos)
        position, quaternion = np.zeros((count, len(self.places), 3)), np.zeros((count, len(self.places), 4))
        for i, place in enumerate(self.places):
            if place.planar:
                x, y, turn = qpos[:, place.qpos : place.qpos + 3].T
                position[:, i] = np.column_stack([x, y, height[:, i]])
                quaternion[:, i] = about_z(turn)
            else:
                position[:, i] = qpos[:, place.qpos : place.qpos + 3]
                quaternion[:, i] = qpos[:, place.qpos + 3 : place.qpos + 7]
        return position, quaternion, qpos[:, list(self.joint_qpos)]

    def state(self, qpos: Array, qvel: Array, height: Array) -> SceneState:
        """The states that `qpos` and `qvel` are."""
        position, quaternion, joints = self.poses(qpos, height)
        velocity, spin = np.zeros_like(position), np.zeros_like(position)
        for i, place in enumerate(self.places):
            if place.planar:
                velocity[:, i, :2], spin[:, i, 2] = qvel[:, place.qvel : place.qvel + 2], qvel[:, place.qvel + 2]
            else:
                velocity[:, i] = qvel[:, place.qvel : place.qvel + 3]
                spin[:, i] = to_world(quaternion[:, i], qvel[:, place.qvel + 3 : place.qvel + 6])
        return SceneState(
            self.bodies, position, quaternion, velocity, spin, self.joints, joints, qvel[:, list(self.joint_qvel)]
        )


def put_body(
    place: Place, qpos: Array, qvel: Array, position: Array, quaternion: Array, velocity: Array, spin: Array
) -> None:
    """Write one body's states [N, .] into `qpos` and `qvel`."""
    at, going = place.qpos, place.qvel
    if place.planar:
        qpos[:, at : at + 3] = np.column_stack([position[:, :2], yaw(quaternion)])
        qvel[:, going : going + 3] = np.column_stack([velocity[:, :2], spin[:, 2]])
        return
    qpos[:, at : at + 3], qpos[:, at + 3 : at + 7] = position, quaternion
    qvel[:, going : going + 3] = velocity
    # the border where MuJoCo wants the angular velocity in the body's frame
    qvel[:, going + 3 : going + 6] = to_body(quaternion, spin)


def _is_planar(model: mujoco.MjModel, body: int, own: list[int]) -> bool:
    """Whether a body moves in the world's plane by the joints NAME_x, NAME_y and NAME_yaw, from its origin."""
    name, kinds = model.body(body).name, [int(model.jnt_type[j]) for j in own]
    named = [model.joint(j).name for j in own] == [f"{name}_{axis}" for axis in ("x", "y", "yaw")]
    if not (named and kinds == [SLIDE, SLIDE, HINGE] and model.body_parentid[body] == 0):
        return False
    straight = np.array_equal(model.jnt_axis[own], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    return bool(straight and not model.body_pos[body, :2].any() and model.body_quat[body, 0] == 1.0)


def layout_of(model: mujoco.MjModel) -> Layout:
    """The layout of a compiled model; refuses ball joints."""
    places: list[Place] = []
    joints: list[int] = []
    for body in range(1, model.nbody):
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        own = list(range(first, first + count))
        name = model.body(body).name
        kinds = [int(model.jnt_type[j]) for j in own]
        if kinds == [FREE] or _is_planar(model, body, own):
            at, going = int(model.jnt_qposadr[first]), int(model.jnt_dofadr[first])
            places.append(Place(name, at, going, kinds != [FREE], float(model.body_pos[body, 2])))
        else:
            joints += own
    if any(int(model.jnt_type[j]) not in (SLIDE, HINGE) for j in joints):
        raise CaromError("ball joints, and free joints beside others, are not supported: use hinges and slides")
    return Layout(
        tuple(places),
        tuple(model.joint(j).name or f"joint_{j}" for j in joints),
        tuple(int(model.jnt_qposadr[j]) for j in joints),
        tuple(int(model.jnt_dofadr[j]) for j in joints),
    )
