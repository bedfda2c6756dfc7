"""The sides of a block that may be struck: what the place in an action means, and where a square blow sends the block.

A side is what lies between two sharp corners of the outline: a straight face, or a curve. A curve that turns by 150
degrees or more can send the block wherever it has to go, as the semi-cylinder's arc does. It is struck alone, and is
divided into windows that overlap. A block is struck on whichever of its sides or windows looks most along the way. The
semi-cylinder itself is as in the paper: its whole arc is one side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from carom.plan.space import CORNER, Stretches, StrikeSpace, strike_space
from carom.scenes.outline import SMOOTH_TURN, Outline
from carom.scenes.strike import StrikeScene
from carom.state import Array, wrap_angle

WIDEST = 5 * np.pi / 12  #: [rad] of a curve to either side of its middle: Table I's 15 to 165 degrees of a half circle
WINDOW = np.pi / 6  #: [rad] between the middles of a curve's windows, and of each to either side of its own
PIECES = 96  #: straight pieces that stand for a curve
LEVER = (
    1.0  #: radii of gyration from the centre of mass: blows farther out on a face spin a block more than they send it
)
SHORT = 0.5  #: of the longest side: shorter ones are bevels, which nobody aims at


@dataclass(frozen=True)
class Side:
    """A stretch of the outline, and the direction in which a square blow on its middle sends the block."""

    heading: float  #: in the block's own frame [rad]
    space: StrikeSpace  #: the strikes on it
    curved: bool
    leads: bool = True  #: whether it may be the one that heads on when a segment begins


def sides_of(scene: StrikeScene) -> tuple[Side, ...]:
    """The sides of a scene's target that may be struck; that which heads along its own x axis, or nearly, is first."""
    whole = strike_space(scene, np.zeros(3))
    if scene.arc is not None:
        return (Side(float(wrap_angle(np.mean(scene.arc) + np.pi)), whole, True),)
    found = [Side(wrapped(middle), replace(whole, part=part), *how) for middle, part, *how in _stretches(scene)]
    return tuple(sorted(found, key=lambda side: (not side.leads, round(abs(side.heading), 9))))


def said(sides: tuple[Side, ...]) -> str:
    """The sides in words, for people."""
    if sides[0].curved and sum(side.leads for side in sides) == 1:
        return f"the arc whose middle sends it {np.degrees(sides[0].heading):.0f} degrees from its x axis"
    if len(sides) == 1:
        return f"the face that sends it {np.degrees(sides[0].heading):.0f} degrees from its x axis"
    return f"any of {len(sides)} {'stretches' if sides[0].curved else 'sides'}, the one that looks most along the way"


def wrapped(outward: float) -> float:
    """The heading [rad] of a side whose outward normal has this direction [rad]."""
    return float(wrap_angle(outward + np.pi))


def _stretches(scene: StrikeScene) -> list[tuple[float, Stretches, bool, bool]]:
    """Outward normal at the middle [rad], stretches, whether it is curved and whether it leads, of each side."""
    outline = scene.outline
    normal = outline.edges[1]
    angle = np.unwrap(np.arctan2(normal[:, 1], normal[:, 0]))  # counter-clockwise: it only grows
    sharp = np.flatnonzero(_turns(normal) >= SMOOTH_TURN)  # corners at the starts of these edges
    ends = np.concatenate([[0.0], np.cumsum(outline.lengths)])
    if not len(sharp):
        around = (0.0, 2 * float(ends[-1]))
        middles = np.arange(-np.pi, np.pi - 1e-9, WINDOW)
        return [(float(m), _curve(outline, around, float(m), WINDOW), True, True) for m in middles]
    runs = []
    for first, after in zip(sharp, [*sharp[1:], sharp[0] + len(normal)], strict=True):
        last = (after - 1) % len(normal)
        start, length = float(ends[first]), float(outline.lengths[np.arange(first, after) % len(normal)].sum())
        turning = float(np.mod(angle[last] - angle[first], 2 * np.pi)) if after - first > 1 else 0.0
        usable = (start + CORNER * length, start + (1 - CORNER) * length)
        runs.append((usable, float(angle[first]) + turning / 2, turning))
    steering = [run for run in runs if run[2] >= 2 * WIDEST]
    if steering:
        return [window for usable, middle, _ in steering for window in _windows(outline, usable, middle)]
    longest = max(usable[1] - usable[0] for usable, _, _ in runs)
    chosen = [run for run in runs if run[0][1] - run[0][0] >= SHORT * longest and _square(scene, run[0])]
    chosen = chosen or [min(runs, key=lambda run: np.abs(_levers(scene, run[0])).min())]
    return [
        (middle, _curve(outline, usable, middle, WIDEST), True, True)
        if turning
        else (middle, _pieces(outline, np.array(_steady(scene, usable))), False, True)
        for usable, middle, turning in chosen
    ]


def _windows(outline: Outline, usable: tuple[float, float], middle: float) -> list[tuple[float, Stretches, bool, bool]]:
    """Windows along a curve that steers, as far as `WIDEST` from its middle; a segment begins with the middle one."""
    found = []
    for away in np.arange(-2, 3) * WINDOW:
        low, high = max(away - WINDOW, -WIDEST), min(away + WINDOW, WIDEST)
        part = _curve(outline, usable, middle + (low + high) / 2, (high - low) / 2)
        found.append((middle + float(away), part, True, bool(away == 0)))
    return found


def _turns(normal: Array) -> Array:
    """How far the outline turns at the start of each edge [V] [rad]."""
    return np.asarray(np.arccos(np.clip((np.roll(normal, 1, axis=0) * normal).sum(-1), -1, 1)))


def _curve(outline: Outline, usable: tuple[float, float], middle: float, width: float) -> Stretches:
    """The stretch between two arc lengths [m] where the outward normal is within `width` of the `middle` [rad]."""
    along = np.linspace(*usable, 16 * PIECES + 1)
    _, outward = outline.point_at(along)
    near = np.abs(wrap_angle(np.arctan2(outward[:, 1], outward[:, 0]) - middle)) <= width
    first = int(np.argmax(near & ~np.roll(near, 1))) if not near.all() else 0
    last = first + int(np.argmin(np.append(near[first:], False))) - 1
    return _pieces(outline, np.linspace(along[first], along[last], PIECES + 1))


def _pieces(outline: Outline, along: Array) -> Stretches:
    """Straight pieces between the points of an outline at these arc lengths [m]."""
    point, outward = outline.point_at(along)
    return point[:-1], np.diff(point, axis=0), outward[:-1], outward[1:]


def _levers(scene: StrikeScene, usable: tuple[float, float]) -> Array:
    """Lever arms of square blows about the centre of mass along a stretch [m]."""
    point, outward = scene.outline.point_at(np.linspace(*usable, PIECES + 1))
    away = point - scene.target.planar_com
    return np.asarray(away[:, 0] * outward[:, 1] - away[:, 1] * outward[:, 0])


def _steady(scene: StrikeScene, usable: tuple[float, float]) -> tuple[float, float]:
    """The part of a face within `LEVER` of the centre of mass; all of it if there is none."""
    first, *_, last = _levers(scene, usable)
    most = LEVER * scene.gyration_radius
    shares = np.clip((np.array([-most, most]) - first) / (last - first), 0.0, 1.0)
    low, high = usable[0] + np.sort(shares) * (usable[1] - usable[0])
    return (float(low), float(high)) if low < high else usable


def _square(scene: StrikeScene, usable: tuple[float, float]) -> bool:
    """Whether a square blow on the stretch can send the block on its way without spin."""
    lever = _levers(scene, usable)
    return bool(lever.min() <= 0 <= lever.max())
