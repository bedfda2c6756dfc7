"""The task of CLASH, section IV-C, as pure functions: strike a block from sub-goal to sub-goal.

A *heading pose* is (x, y, heading) [m, m, rad]: the block's place, and the direction in which a square blow on the
middle of a side (see `sides.py`) sends it. Corners [K+1, 2] [m] are the ends of K segments; a sub-goal is a heading
pose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.envs.sides import sides_of
from carom.scenes.strike import StrikeScene
from carom.state import Array, rotate, wrap_angle

LENGTH = 0.3  #: [m] of a segment, unless another is asked for
SHORTEST, LONGEST = 0.08, 10.0  #: [m] of a segment: shorter ones are wider than long
HALF_WIDTH = 0.04  #: [m] of the corridor
REACH = 0.04  #: [m] within which a sub-goal is reached
AHEAD = 0.1  #: [m] the side to strike is the one that looks most towards the segment's line this far ahead
STRIKES = 5  #: T: strikes allowed for one sub-goal
PENALTY = -10.0  #: r_0, for leaving the safe zone
SPEED = (0.2, 0.8)  #: [m/s] of a strike (v_pre, Table I)
ARC = (np.pi / 12, 11 * np.pi / 12)  #: [rad] of the semi-cylinder's arc that may be struck (theta, Table I)
DEFLECTION = np.pi / 12  #: [rad] of a strike from the inward normal, at most (theta_1, Table I)
TERMS = ("R1", "R2", "R3", "R4")  #: of the reward (Table V)
FAR = 10.0  #: where positions in the observation are clipped
WAY = np.arange(1, 65) / 64  #: places on the way to the next rest that are looked at; where it set out counts as inside
ROUNDING = 1e-9  #: [m] so that a block on the very edge is inside


def task_scene(scene: StrikeScene) -> StrikeScene:
    """The scene with the strikes that an action stands for: Table I's, the arc side of a semi-cylinder only.

    So an action means the same in every engine and on every reality that a policy meets.
    """
    low, high = max(SPEED[0], scene.speed[0]), min(SPEED[1], scene.speed[1])
    if not low < high:
        raise CaromError(
            f"scene '{scene.name}': strikes of {scene.speed[0]:g} to {scene.speed[1]:g} m/s; the environments strike "
            f"with {SPEED[0]:g} to {SPEED[1]:g} m/s"
        )
    arc = scene.arc if scene.shape.kind != "semi-cylinder" or scene.arc is not None else ARC
    return replace(scene, speed=(low, high), deflection=min(DEFLECTION, scene.deflection), arc=arc)


def strikes_of(scene: StrikeScene) -> dict[str, Any]:
    """What actions stand for in a scene, to be kept with a policy: the block, and the ranges of its strikes."""
    scene, kind = task_scene(scene), scene.shape.kind
    meant: dict[str, Any] = {
        "shape": "extruded" if kind == "mesh" else kind,  # of a mesh a policy keeps no more than its outline
        "size_m": [round(float(v), 4) for v in np.ptp(scene.outline.vertices, axis=0)],
        "arc_rad": None if scene.arc is None else [round(float(v), 4) for v in scene.arc],
        "deflection_rad": round(float(scene.deflection), 4),
        "speed_m_s": [round(float(v), 4) for v in scene.speed],
    }
    if scene.arc is None:
        meant["headings_rad"] = [round(side.heading, 4) for side in sides_of(scene)]
    return meant


def place_in(scene: StrikeScene) -> Array:
    """The point of the block that has to reach sub-goals, in its own frame [2] [m].

    The middle of a semi-cylinder's flat side, which is its frame's origin; of any other block the centre of mass,
    wherever its frame may be.
    """
    return np.zeros(2) if scene.shape.kind == "semi-cylinder" else np.asarray(scene.target.planar_com)


def checked_length(length: float) -> float:
    """A length of segments [m] that makes sense."""
    if isinstance(length, bool) or not SHORTEST <= length <= LONGEST:  # NaN is not, either
        raise CaromError(f"length of a segment: expected {SHORTEST:g} to {LONGEST:g} m, got {length}")
    return float(length)


def directions(corners: Array) -> Array:
    """Direction of each segment [K] [rad]."""
    leg = np.diff(corners, axis=0)
    return np.arctan2(leg[:, 1], leg[:, 0])


def sub_goals(corners: Array) -> Array:
    """The high-level planner: each segment's end, and the direction from there to the next one's [K, 3].

    The last sub-goal has no next: its own segment's direction.
    """
    along = directions(corners)
    return np.column_stack([corners[1:], np.append(along[1:], along[-1])])


def way_ahead(place: Array, start: Array, goal: Array) -> Array:
    """Direction in which blocks at places [N, 2] should go [N] [rad]: to their segment's line, `AHEAD` farther on."""
    leg = goal[:, :2] - start
    length = np.sqrt(leg[:, 0] * leg[:, 0] + leg[:, 1] * leg[:, 1])
    along = leg / length[:, None]
    reached = np.clip(((place - start) * along).sum(axis=1) + AHEAD, 0.0, length)
    towards = start + reached[:, None] * along - place
    return np.asarray(np.arctan2(towards[:, 1], towards[:, 0]))


def observe(pose: Array, start: Array, goal: Array, length: float = LENGTH) -> NDArray[np.float32]:
    """What a policy sees [N, 6], of heading poses [N, 3], starts of their segments [N, 2] and sub-goals [N, 3].

    Place in the segment's frame (along by the `length` [m] of segments, across by half the corridor), the sub-goal from
    the block (in the frame of its heading, by the length), cosine and sine of the missing turn. Turning the table
    changes nothing.
    """
    leg = goal[:, :2] - start
    place = rotate(pose[:, :2] - start, -np.arctan2(leg[:, 1], leg[:, 0])) / [length, HALF_WIDTH]
    ahead = rotate(goal[:, :2] - pose[:, :2], -pose[:, 2]) / length
    turn = goal[:, 2] - pose[:, 2]
    near = np.clip(np.concatenate([place, ahead], axis=1), -FAR, FAR)
    return np.column_stack([near, np.cos(turn), np.sin(turn)]).astype(np.float32)


def errors(pose: Array, goal: Array) -> tuple[Array, Array]:
    """Distances to the sub-goals [N] [m], and the turns that are missing, in (-pi, pi] [N] [rad]."""
    x, y, turn = (goal - pose).T
    return np.sqrt(x * x + y * y), wrap_angle(turn)


def rewards(
    distance: Array, turn: Array, strikes: NDArray[np.int64], reached: NDArray[np.bool_], left: NDArray[np.bool_]
) -> Array:
    """The four terms of Table V [N, 4] after a strike; `strikes` [N] counts it."""
    return np.column_stack(
        [
            np.exp(-(distance**2)),
            np.where(reached, (1 + np.cos(turn)) / 2, 0.0),
            np.where(reached, STRIKES - strikes, 0.0),
            np.where(left, PENALTY, 0.0),
        ]
    )


def inside(points: Array, corners: Array) -> NDArray[np.bool_]:
    """Whether points [..., 2] lie in the safe zone: within half the corridor's width of any segment's line."""
    return np.asarray(_near(points, corners).any(axis=-1))


def _near(points: Array, corners: Array) -> NDArray[np.bool_]:
    """Whether points [..., 2] lie in the zone of each segment [..., K]."""
    leg = np.diff(corners, axis=0)
    x, y = (points[..., axis, None] - corners[:-1, axis] for axis in (0, 1))
    along_x, along_y = leg.T
    share = np.clip((x * along_x + y * along_y) / (leg**2).sum(axis=-1), 0.0, 1.0)
    x, y = x - share * along_x, y - share * along_y
    return np.asarray(np.sqrt(x * x + y * y) <= HALF_WIDTH + ROUNDING)


def left_zone(before: Array, after: Array, corners: Array) -> NDArray[np.bool_]:
    """Whether blocks left the safe zone [N] on their straight way from one rest [N, 2] to the next [N, 2].

    A slide is straight within millimetres, and rests are what every engine and every robot knows. The zone of one
    segment is convex, so only a way from one segment's zone to another's has to be looked at on its way.
    """
    start, end = _near(before, corners), _near(after, corners)
    left = np.asarray(~end.any(axis=1))
    across = np.flatnonzero(~left & ~(start & end).any(axis=1))
    if len(across):
        way = before[across, None, :] + WAY[:, None] * (after - before)[across, None, :]
        left[across] = ~inside(way, corners).all(axis=1)
    return left
