"""Predictors of where a pushed block goes, from the tool's path alone: none knows the recorded pushes that it predicts.

The trivial ones (it stays, it moves with the tool), the simplest physical one (quasi-static, on an ellipsoidal limit
surface of even pressure), and MuJoCo as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from carom.core.rotations import yaw
from carom.engines.guided import GuidedSimulator
from carom.engines.patch import patch_of
from carom.identify.pushes import Windows
from carom.recordings.geometry import planar_gap
from carom.scenes.pushing import GuidedScene
from carom.state import Array, Motion, rotate

NEAR = 0.001  #: [m] between outlines that counts as touching
USUAL_FRICTION = 0.3  #: of a tool, where nobody knows


def stays_put(scene: GuidedScene, windows: Windows) -> Array:
    """Poses [W, I, 3] of a block that nothing moves."""
    return np.repeat(_starts(windows)[:, None], windows.block.shape[1], axis=1)


def with_the_tool(scene: GuidedScene, windows: Windows) -> Array:
    """A block that goes where the tool goes, as one body with it, from when they first touch."""
    out = stays_put(scene, windows)
    for row, path in enumerate(_tool_paths(windows)):
        gap = planar_gap(scene.block, np.repeat(out[row, :1], len(path), axis=0), scene.tool, path)
        touching = np.flatnonzero(gap < NEAR)
        if not len(touching):
            continue
        first = int(touching[0])
        ticks = (len(path) - 1) // (out.shape[1] - 1)
        for i in range(out.shape[1]):
            now = i * ticks
            if now > first:
                turned = path[now, 2] - path[first, 2]
                arm = rotate(out[row, 0, :2] - path[first, :2], np.asarray(turned))
                out[row, i, :2], out[row, i, 2] = path[now, :2] + arm, out[row, 0, 2] + turned
    return out


def quasi_static(scene: GuidedScene, windows: Windows, friction: float = USUAL_FRICTION) -> Array:
    """A block without inertia, on an ellipsoidal limit surface of even pressure, pushed at its nearest point.

    With c the ratio of the greatest torque to the greatest force of friction, a force f at arm r moves the block by a
    twist (f, r x f / c^2) up to a factor, so the point that is pushed moves by A f with A = I + p p^T / c^2, p = (-r_y,
    r_x). Sticking, A f is the tool's step; slipping, f lies on the edge of the friction cone and A f goes as deep.
    """
    patch = patch_of(scene.block)
    lever = patch.lever if patch is not None else 0.03
    com = scene.block.planar_com
    shape = scene.tool.shape
    assert shape is not None
    radius = float(shape.radius or 0.0) if shape.is_round else 0.0
    feelers = np.zeros((1, 2)) if shape.is_round else np.asarray(shape.planar_outline)
    paths, out = _tool_paths(windows), stays_put(scene, windows)
    ticks = (paths.shape[1] - 1) // (out.shape[1] - 1)
    pose = _starts(windows)
    for k in range(1, paths.shape[1]):
        for row in range(len(pose)):
            points = paths[row, k, :2] + rotate(feelers, np.full(len(feelers), paths[row, k, 2]))
            pose[row] = _pushed(scene, pose[row], points, radius, com, lever, friction)
        if k % ticks == 0:
            out[:, k // ticks] = pose
    return out


def mujoco_as_it_comes(scene: GuidedScene, windows: Windows) -> Array:
    """MuJoCo with its default friction, the block on its corners."""
    return in_mujoco(scene, windows, {})


def in_mujoco(scene: GuidedScene, windows: Windows, values: Mapping[str, float]) -> Array:
    """MuJoCo with these values."""
    simulator = GuidedSimulator(scene, tuple(values), period=windows.period)
    return _poses(simulator.replay(windows.start, windows.controls, dict(values)), windows)


@dataclass(frozen=True)
class Baseline:
    """A predictor and what it is."""

    words: str
    predict: Callable[[GuidedScene, Windows], Array]  #: poses [W, I, 3]


BASELINES: Mapping[str, Baseline] = {
    "stays-put": Baseline("the block does not move", stays_put),
    "with-tool": Baseline("it moves rigidly with the tool from the first touch", with_the_tool),
    "quasi-static": Baseline("no inertia, ellipsoidal limit surface of even pressure, tool friction 0.3", quasi_static),
    "mujoco-default": Baseline("MuJoCo's default friction, the block on its corners", mujoco_as_it_comes),
}


def _starts(windows: Windows) -> Array:
    start = windows.start
    return np.column_stack([start.position[:, 0, :2], yaw(start.quaternion[:, 0])])


def _tool_paths(windows: Windows) -> Array:
    """Places of the tool [W, K ticks + 1, 3] from the start on."""
    steps = windows.controls.reshape(len(windows), -1, 3)
    return np.concatenate([windows.start.joint_position[:, None], steps], axis=1)


def _poses(motion: Motion, windows: Windows) -> Array:
    turn = np.unwrap(yaw(motion.quaternion[:, :, 0]), axis=1)
    return np.concatenate([motion.position[:, :, 0, :2], turn[..., None]], axis=-1)[:, :: windows.every]


def _pushed(
    scene: GuidedScene, pose: Array, points: Array, radius: float, com: Array, lever: float, friction: float
) -> Array:
    """The block's pose after the tool has come to these points [F, 2], the deepest of which pushes."""
    assert scene.block.shape is not None
    local = rotate(points - pose[:2], np.full(len(points), -pose[2]))
    depth, normal, foot = 0.0, np.zeros(2), np.zeros(2)
    for part in scene.block.shape.planar_parts:
        for point in local:
            distance, where, outward = _nearest(part, point)
            if radius - distance > depth:
                depth, normal, foot = radius - distance, outward, where
    if depth <= 0.0:
        return pose
    arm = foot - com
    into, across = -normal, np.array([normal[1], -normal[0]])
    p = np.array([-arm[1], arm[0]])
    a = np.eye(2) + np.outer(p, p) / lever**2
    force = np.linalg.solve(a, depth * into)
    if abs(force @ across) > friction * (force @ into):
        edge = into + np.sign(force @ across) * friction * across
        force = edge * depth / max(float(into @ a @ edge), 1e-9)
    turn = float(p @ force) / lever**2
    moved_com = com + force
    origin = moved_com - rotate(com, np.asarray(turn))
    return np.append(pose[:2] + rotate(origin, np.asarray(pose[2])), pose[2] + turn)


def _nearest(part: Array, point: Array) -> tuple[float, Array, Array]:
    """Signed distance of a point from a convex outline, its nearest point there, and the normal outwards."""
    edge = np.roll(part, -1, axis=0) - part
    rel = point - part
    along = np.clip((rel * edge).sum(axis=1) / (edge * edge).sum(axis=1), 0.0, 1.0)
    foot = part + along[:, None] * edge
    away = np.linalg.norm(point - foot, axis=1)
    outward = np.column_stack([edge[:, 1], -edge[:, 0]]) / np.linalg.norm(edge, axis=1)[:, None]
    height = (rel * outward).sum(axis=1)
    if (height < 0).all():
        best = int(np.argmax(height))
        return float(height[best]), foot[best], outward[best]
    best = int(np.argmin(away))
    normal = (point - foot[best]) / max(float(away[best]), 1e-12)
    return float(away[best]), foot[best], normal
