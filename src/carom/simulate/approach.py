"""When a striker touches its target, and where both are then."""

from __future__ import annotations

import numpy as np

from carom.scenes.strike import StrikeScene
from carom.scenes.sweep import flat_travel, round_travel
from carom.state import Array, Strikes, rotate

ALREADY = 0.003  #: [m] a striker that is this deep in the target touches now; one that is further has passed it


def time_to_touch(scene: StrikeScene, state: Strikes) -> Array:
    """Seconds [N] until strikers touch their targets if both keep their velocities, spins apart; inf: never."""
    yaw = state.target_pose[:, 2]
    local = rotate(state.striker_pose[:, :2] - state.target_pose[:, :2], -yaw)
    relative = rotate(state.striker_velocity[:, :2] - state.target_velocity[:, :2], -yaw)
    speed = np.linalg.norm(relative, axis=-1)
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
        state.target_pose + step * state.target_velocity, state.target_velocity,
        state.striker_pose + step * state.striker_velocity, state.striker_velocity, state.posture,
    )  # fmt: skip


def speed_of(scene: StrikeScene, velocity: Array) -> Array:
    """|(vx, vy, k wz)| [N] [m/s]."""
    return np.asarray(np.linalg.norm(velocity * [1.0, 1.0, scene.gyration_radius], axis=-1))
