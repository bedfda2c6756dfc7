"""Which way a striker faces, however its frame was drawn.

Planar strikes need a striker whose x axis lies in the plane and whose z axis points up. Many tools are drawn
otherwise: a flange's z axis runs along the tool. Such a frame is drawn anew: x becomes the axis nearest to the mean
approach (or the one that the header states, `forward`), z the one nearest to the vertical. Heading, pitch and roll
follow. Frames that stand upright stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import RecordingError
from carom.core.rotations import axes, from_scipy, multiply, to_body, to_world, unit
from carom.recordings.sampled import first_motion
from carom.recordings.trajectory import Recordings, Trajectory
from carom.scenes.shapes import Body, Shape
from carom.state import Array

UPRIGHT = 0.8  #: cosine between a frame's z axis and the vertical, from where on it stands upright
ALIKE = 0.7  #: length of the mean of unit vectors of approach, from where on they have a direction
WINDOW = 0.1  #: [s] before contact, over which an approach is looked at
LEAST = 0.005  #: [m] travelled in it: less is no approach
NAMES = ("x", "y", "z", "-x", "-y", "-z")
SIX = np.concatenate([np.eye(3), -np.eye(3)])


def faced(recordings: Recordings) -> Recordings:
    """The same recordings, strikers' frames drawn anew where they do not stand upright, or where the header says so."""
    turned: dict[str, tuple[Array, str]] = {}
    for name, body in recordings.bodies.items():
        if body.role == "striker":
            found = _turn(recordings, name, body)
            if found is not None:
                turned[name] = found
    if not turned:
        return recordings
    return replace(
        recordings,
        bodies={name: _redrawn(body, turned.get(name)) for name, body in recordings.bodies.items()},
        trajectories=tuple(_with_frames(t, turned) for t in recordings.trajectories),
        facing={name: words for name, (_, words) in turned.items()},
    )


def approach_window(trajectory: Trajectory, striker: str) -> NDArray[np.int64]:
    """Rows of the last moments before a striker's contact with a target, as indices; empty if there is no approach."""
    if not trajectory.targets or striker not in trajectory.position_world:
        return np.zeros(0, dtype=np.int64)
    target = trajectory.targets[0]
    path, own = trajectory.position_world[target], trajectory.position_world[striker]
    seen = np.flatnonzero(np.isfinite(own).all(axis=-1) & np.isfinite(path).all(axis=-1))
    if len(seen) < 4:
        return np.zeros(0, dtype=np.int64)
    onset = first_motion(trajectory.time, path[:, :2], trajectory.period)
    nearest = seen[int(np.argmin(np.linalg.norm((path - own)[seen, :2], axis=-1)))]
    at = float(trajectory.time[nearest] if onset is None else onset.time)
    rows = seen[(trajectory.time[seen] < at) & (trajectory.time[seen] >= at - WINDOW)]
    far = len(rows) > 1 and np.linalg.norm(own[rows[-1], :2] - own[rows[0], :2]) > LEAST
    return rows.astype(np.int64) if far else np.zeros(0, dtype=np.int64)


def approaches_in_frame(trajectories: Sequence[Trajectory], striker: str) -> tuple[Array, Array]:
    """Directions of approach and of the vertical in the striker's own frame, unit vectors [K, 3] each."""
    forward, upward = [], []
    for trajectory in trajectories:
        quaternion = trajectory.quaternion_world.get(striker)
        rows = approach_window(trajectory, striker)
        if quaternion is None or not len(rows) or not np.isfinite(quaternion[rows[[0, -1]]]).all():
            continue
        way = trajectory.position_world[striker][rows[-1]] - trajectory.position_world[striker][rows[0]]
        way[2] = 0.0
        own = unit(quaternion[rows[-1]])
        forward.append(to_body(own, way / np.linalg.norm(way)))
        upward.append(to_body(own, np.array([0.0, 0.0, 1.0])))
    return np.array(forward).reshape(-1, 3), np.array(upward).reshape(-1, 3)


def _turn(recordings: Recordings, name: str, body: Body) -> tuple[Array, str] | None:
    """Quaternion [4] from the new frame to the recorded one, and what it means in words; None: leave it."""
    forward, upward = approaches_in_frame(recordings.trajectories, name)
    if not len(forward):
        return None
    up, ahead = upward.mean(axis=0), forward.mean(axis=0)
    if body.forward is not None:
        x = np.asarray(body.forward, dtype=float) / np.linalg.norm(body.forward)
        words = "forward as the header states"
    elif up[2] > UPRIGHT or np.linalg.norm(ahead) < ALIKE:
        return None
    else:
        best = int(np.argmax(SIX @ ahead))
        x, words = SIX[best], f"forward {NAMES[best]}"
    across = up - (up @ x) * x
    if body.forward is None:
        best = int(np.argmax(SIX @ across))
        z, words = SIX[best], f"{words}, up {NAMES[best]}"
    else:
        z = across / np.linalg.norm(across)
    if np.linalg.norm(across) < 0.1:
        raise RecordingError(
            f"{recordings.path}: body '{name}': its forward axis points up or down; state another one as `forward:`"
        )
    from scipy.spatial.transform import Rotation  # slow to import

    return from_scipy(Rotation.from_matrix(np.column_stack([x, np.cross(z, x), z]))), words


def _with_frames(trajectory: Trajectory, turned: dict[str, tuple[Array, str]]) -> Trajectory:
    quaternion = {
        name: q if q is None or name not in turned else multiply(q, turned[name][0])
        for name, q in trajectory.quaternion_world.items()
    }
    bodies = {name: _redrawn(body, turned.get(name)) for name, body in trajectory.bodies.items()}
    return replace(trajectory, quaternion_world=quaternion, bodies=bodies)


def _redrawn(body: Body, turned: tuple[Array, str] | None) -> Body:
    """The body in its new frame; shapes that lie get the box around them."""
    if turned is None:
        return body
    if body.com is not None:
        x, y, z = to_body(turned[0], np.asarray(body.com)).tolist()
        body = replace(body, com=(x, y, z))
    return replace(body, shape=_lying(body, turned[0]), forward=None)


def _lying(body: Body, turn: Array) -> Shape | None:
    shape = body.shape
    if shape is None or shape.kind == "sphere":
        return shape
    if to_world(turn, np.array([0.0, 0.0, 1.0]))[2] > 1 - 1e-6 and shape.is_round:
        return shape
    if shape.kind == "box" or shape.is_round:
        wide = 2 * float(shape.radius or 0.0)
        size = np.array(shape.size if shape.kind == "box" else (wide, wide, shape.full_height))
        around = np.abs(axes(turn)) @ size  # the new frame's axes in the recorded one, one per row
        return Shape("box", size=(float(around[0]), float(around[1]), float(around[2])))
    raise RecordingError(
        f"body '{body.name}': a striker of shape {shape.kind} must stand upright in its own frame; declare its shape "
        "as a box, or as a sphere where its tip is"
    )
