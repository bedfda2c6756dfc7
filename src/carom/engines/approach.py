"""When a striker touches its target, and where both are then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.scenes.strike import StrikeScene
from carom.scenes.sweep import flat_travel, round_travel
from carom.state import Array, Strikes, rotate

ALREADY = 0.003  #: [m] a striker that is this deep in the target touches now; one that is further has passed it


def face_pose(scene: StrikeScene, strikes: Strikes, geometry: dict[str, Array]) -> tuple[Array, Array]:
    """Middle of the striker's face in the world [N, 2], and the direction it looks [N] (round: its centre, its yaw).

    Unknown geometry (`face_tilt`, `face_offset`) moves the face against the frame that was recorded.
    """
    pose = strikes.striker_pose
    yaw = pose[:, 2] + scene.striker.forward + geometry.get("face_tilt", 0.0)
    sideways = np.stack([-np.sin(yaw), np.cos(yaw)], axis=-1)
    offset = np.broadcast_to(np.asarray(geometry.get("face_offset", 0.0)), (len(pose),))
    return pose[:, :2] + offset[:, None] * sideways, yaw


def seen_face(scene: StrikeScene, strikes: Strikes, geometry: dict[str, Array]) -> tuple[Array, Array]:
    """`face_pose` in the target's frame."""
    face, yaw = face_pose(scene, strikes, geometry)
    target = strikes.target_pose
    return rotate(face - target[:, :2], -target[:, 2]), yaw - target[:, 2]


def touching(scene: StrikeScene, strikes: Strikes, geometry: dict[str, Array]) -> tuple[Array, Array]:
    """Face position [N, 2] and direction [N] of the striker, in the target's frame, moved along the line of approach
    until it just touches: what was recorded says where the striker goes, geometry says where it stops."""
    local, direction = seen_face(scene, strikes, geometry)
    target = strikes.target_pose
    velocity = rotate(strikes.striker_velocity[:, :2] - strikes.target_velocity[:, :2], -target[:, 2])
    speed = np.linalg.norm(velocity, axis=-1, keepdims=True)
    towards = velocity / np.maximum(speed, 1e-9)
    reach = 4 * float(np.ptp(scene.outline.vertices, axis=0).max())
    ahead = ((local - scene.outline.vertices.mean(axis=0)) * towards).sum(axis=-1, keepdims=True)
    local = local - towards * (ahead + reach)  # from well outside
    if scene.striker.flat:
        width = np.broadcast_to(np.asarray(geometry.get("face_width", scene.striker.width)), (len(local),))
        facing = np.stack([np.cos(direction), np.sin(direction)], axis=-1)
        way = flat_travel(scene.outline, local, towards, facing, width)
    else:
        way = round_travel(scene.outline, local, towards, float(scene.striker.radius or 0.0))
    beyond = np.where(np.isfinite(way), way, 2 * reach)  # one that passes by stops there
    return local + towards * beyond[:, None], direction


def at_distance(scene: StrikeScene, strikes: Strikes, distance: float, geometry: dict[str, Array]) -> Strikes:
    """The same strikes a moment earlier: strikers moved along their approach to `distance` [m] before they touch."""
    face, _ = touching(scene, strikes, geometry)
    yaw = strikes.target_pose[:, 2]
    goal = strikes.target_pose[:, :2] + rotate(face, yaw)
    relative = strikes.striker_velocity[:, :2] - strikes.target_velocity[:, :2]
    speed = np.maximum(np.linalg.norm(relative, axis=-1, keepdims=True), 1e-9)
    moved = strikes.striker_pose.copy()
    moved[:, :2] += goal - face_pose(scene, strikes, geometry)[0] - distance * relative / speed
    return replace(strikes, striker_pose=moved)


def time_to_touch(scene: StrikeScene, state: Strikes) -> Array:
    """Seconds [N] until strikers touch their targets if both keep their velocities, spins apart; inf: never."""
    yaw = state.target_pose[:, 2]
    apart = np.stack([state.striker_pose - state.target_pose, state.striker_velocity - state.target_velocity])
    local, relative = rotate(apart[..., :2], -yaw)
    speed = np.sqrt(relative[:, 0] * relative[:, 0] + relative[:, 1] * relative[:, 1])
    towards = relative / np.maximum(speed, 1e-12)[:, None]
    if scene.striker.flat:
        direction = state.striker_pose[:, 2] + scene.striker.forward - yaw
        facing = np.stack([np.cos(direction), np.sin(direction)], axis=-1)
        width = np.full(len(local), float(scene.striker.width or 0.0))
        way = flat_travel(scene.outline, local, towards, facing, width)
    else:
        way = round_travel(scene.outline, local, towards, float(scene.striker.radius or 0.0))
    ahead = np.isfinite(way) & (way > -ALREADY) & (speed > 1e-9)
    return np.where(ahead, np.maximum(way, 0.0) / np.maximum(speed, 1e-9), np.inf)


def advanced(state: Strikes, time: Array) -> Strikes:
    """States as they are after `time` [N] [s] without contact; targets that rest stay."""
    step = time[:, None]
    return Strikes(
        state.target_pose + step * state.target_velocity,
        state.target_velocity,
        state.striker_pose + step * state.striker_velocity,
        state.striker_velocity,
        state.posture,
    )


def speed_of(scene: StrikeScene, velocity: Array) -> Array:
    """|(vx, vy, k wz)| [N] [m/s]."""
    return np.asarray(np.linalg.norm(velocity * [1.0, 1.0, scene.gyration_radius], axis=-1))
