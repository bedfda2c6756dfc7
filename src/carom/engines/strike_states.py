"""Strikes in the states of a strike scene's model, and back: `qpos` [N, 10], `qvel` [N, 9].

The target's free joint comes first, then the striker's two slides and hinge, which move the middle of its face. What is
seen of a strike is [..., 9]: target pose, velocity of its declared centre of mass, striker pose. MuJoCo and MJX share
this: with `xp=jax.numpy`, the functions that take it run inside a compiled program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.core.rotations import about_z
from carom.engines.approach import face_pose, touching
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes, rotate

CLEARANCE = 2e-5  #: [m] gap at which a blow alone starts
PLANAR = [0, 1, 5]  #: of a free joint's six velocities


def turned(vector: Any, yaw: Any, xp: Any = np) -> Any:
    """Planar vectors [..., 2] turned by yaw [...]."""
    c, s, x, y = xp.cos(yaw), xp.sin(yaw), vector[..., 0], vector[..., 1]
    return xp.stack([c * x - s * y, s * x + c * y], axis=-1)


def at_point(velocity: Any, arm: Any, xp: Any = np) -> Any:
    """Velocities [..., 3] of the points at `arm` [..., 2] on bodies that move at `velocity` [..., 3]."""
    x, y, spin = velocity[..., 0], velocity[..., 1], velocity[..., 2]
    return xp.stack([x - spin * arm[..., 1], y + spin * arm[..., 0], spin], axis=-1)


def seen_states(qpos: Any, qvel: Any, yaw: Any, com: Any, face: tuple[Any, Any], xp: Any = np) -> Any:
    """What is seen of strikes [..., 9]; the target's yaw is near `yaw` [...], small tipping is left out.

    `com` [2] is the target's declared centre of mass, `face` the middle of the striker's face from its frame, in the
    face's own frame [..., 2], and the direction in which it looks there [...].
    """
    now = 2 * xp.arctan2(qpos[..., 6], qpos[..., 3])
    now = now + 2 * np.pi * xp.round((yaw - now) / (2 * np.pi))
    velocity = at_point(xp.concatenate([qvel[..., :2], qvel[..., 5:6]], axis=-1), turned(com, now, xp), xp)
    frame = qpos[..., 7:9] - turned(face[0], qpos[..., 9], xp)
    facing = (qpos[..., 9] - face[1])[..., None]
    return xp.concatenate([qpos[..., :2], now[..., None], velocity, frame, facing], axis=-1)


def put(qpos: Array, qvel: Array, target: tuple[Array, Array], face: tuple[Array, Array]) -> None:
    """Write poses and velocities [N, 3] of the target's frame and of the striker's face; all else stays."""
    (pose, velocity), (face_at, face_velocity) = target, face
    qpos[:, :2], qpos[:, 3:7], qpos[:, 7:10] = pose[:, :2], about_z(pose[:, 2]), face_at
    qvel[:, PLANAR], qvel[:, 6:9] = velocity, face_velocity


def put_strikes(scene: StrikeScene, strikes: Strikes, geometry: dict[str, Array], qpos: Array, qvel: Array) -> Array:
    """Write strikes where they are; returns the middles of the faces from the strikers' frames, in the faces' own."""
    middle, yaw = face_pose(scene, strikes, geometry)
    arm = rotate(middle - strikes.striker_pose[:, :2], -yaw)
    target = at_point(strikes.target_velocity, -turned(scene.target.planar_com, strikes.target_pose[:, 2]))
    face = np.column_stack([middle, yaw]), at_point(strikes.striker_velocity, rotate(arm, yaw))
    put(qpos, qvel, (strikes.target_pose, target), face)
    return arm


def put_touching(
    scene: StrikeScene, strikes: Strikes, geometry: dict[str, Array], com: Array, qpos: Array, qvel: Array
) -> None:
    """Write strikes in their targets' frames, strikers moved along their approach to where they just touch.

    `com` [..., 2] is the point of the targets that moves at their velocities.
    """
    middle, direction = touching(scene, strikes, geometry)
    yaw = strikes.target_pose[:, 2]
    going, struck = (
        np.column_stack([rotate(v[:, :2], -yaw), v[:, 2]]) for v in (strikes.striker_velocity, strikes.target_velocity)
    )
    speed = np.maximum(np.linalg.norm(going[:, :2], axis=-1, keepdims=True), 1e-9)
    # the velocity recorded is the frame's; that of a face that is offset differs where the striker turns
    arm = rotate(face_pose(scene, strikes, geometry)[0] - strikes.striker_pose[:, :2], -yaw)
    face = np.column_stack([middle - going[:, :2] / speed * CLEARANCE, direction]), at_point(going, arm)
    put(qpos, qvel, (np.zeros((len(strikes), 3)), at_point(struck, -com)), face)
