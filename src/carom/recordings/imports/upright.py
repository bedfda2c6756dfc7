"""Which axis of a foreign file points up: found from free fall, from motion in a plane or from rest; turned to z-up.

Axes are turned, never swapped: a swap would mirror the world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from carom.core.rotations import axes as body_axes
from carom.core.rotations import multiply, to_body, to_world
from carom.recordings.formats.take import Track
from carom.recordings.imports.falling import DIRECTIONS, falls_along, pieces_of
from carom.state import Array

HALF = float(np.sqrt(0.5))
#: turns that make an axis of the file the z axis: (w, x, y, z)
TURNS: Mapping[str, tuple[float, float, float, float]] = {
    "z": (1.0, 0.0, 0.0, 0.0),
    "y": (HALF, HALF, 0.0, 0.0),
    "x": (HALF, 0.0, -HALF, 0.0),
    "-z": (0.0, 1.0, 0.0, 0.0),
    "-y": (HALF, -HALF, 0.0, 0.0),
    "-x": (HALF, 0.0, HALF, 0.0),
}
AXES = ("x", "y", "z")
FEWEST_FALLS = 3  #: pieces of a path in free fall that show a direction
CLEARLY = 3.0  #: times as often as along any other axis must something fall along one
MILLIMETRES = 1000.0
LEVEL = 0.003  #: [m] by which a body may rise while it moves in a plane, and
LEVEL_SHARE = 0.05  #: of its lesser way across the plane
ACROSS = 0.015  #: [m] that it must move both ways in its plane
SPEED = 0.02  #: [m/s] below which a body rests
RESTS = 0.3  #: [s] that a rest lasts
STANDING, MOSTLY = 0.9, 0.9  #: cosine of an axis that points up, and share of the samples in which it does
TURNED = 0.15  #: [rad] between rests, or over a motion, that show an axis
ALONG = 0.995  #: cosine between that axis and one of the file's
MOST_TRACKS = 60


@dataclass(frozen=True)
class Upward:
    """The axis that is up, and how that was found."""

    axis: str
    how: str


def fallen(tracks: Sequence[Track], factor: float = 1.0) -> Upward | None:
    """The axis opposite to which bodies fall freely, if lengths are `factor` times too large."""
    total: dict[str, int] = {}
    most: tuple[int, str] = (0, "")
    for track in tracks[:MOST_TRACKS]:
        pieces = pieces_of(track.time, track.position)
        for axis in DIRECTIONS:
            count = int(falls_along(pieces, axis, factor).sum())
            total[axis] = total.get(axis, 0) + count
            most = max(most, (count, track.name))
    first, second = sorted(total, key=lambda axis: -total[axis])[:2] if total else ("z", "z")
    if not total or total[first] < FEWEST_FALLS or total[first] < CLEARLY * total[second]:
        return None
    return Upward(first, f"{most[1]} falls freely against it")


def in_millimetres(tracks: Sequence[Track]) -> bool:
    """Whether bodies fall with gravity only if what was read as metres is millimetres."""
    return fallen(tracks) is None and fallen(tracks, MILLIMETRES) is not None


def levelled(tracks: Sequence[Track]) -> Upward | None:
    """The axis across which bodies move in a plane, rest at one height, and about which they turn."""
    found: dict[str, list[str]] = {}
    for track in tracks[:MOST_TRACKS]:
        for axis, how in _levels(track):
            found.setdefault(axis, []).append(f"{track.name} {how}")
    if len(found) != 1:
        return None
    ((axis, hows),) = found.items()
    if axis == "x":
        return None  # no maker's frame lies so: something moves in an upright plane
    return Upward(axis, f"{hows[0]}, and is taken to look upward")


def _levels(track: Track) -> list[tuple[str, str]]:
    good = np.isfinite(track.position).all(axis=-1)
    if good.sum() < 12:
        return []
    position = track.position[good]
    low, high = np.quantile(position, [0.02, 0.98], axis=0)
    flat = _flat(high - low)
    turned = _turned(track, np.flatnonzero(good)[[0, -1]])
    if flat is not None and (turned is None or turned == flat):
        return [(flat, "moves in the plane across it")]
    rests = _rests(track)
    if len(rests) < 2:
        return []
    places = np.array([np.median(track.position[rows], axis=0) for rows in rests])
    flat = _flat(np.ptp(places, axis=0))
    if flat is not None:
        return [(flat, f"rests in {len(rests)} places at one height along it")]
    return []


def _flat(way: Array) -> str | None:
    """The one axis along which something does not move while it does along both others."""
    order = np.argsort(way)
    least, middle = float(way[order[0]]), float(way[order[1]])
    return AXES[int(order[0])] if middle > ACROSS and least < min(LEVEL, LEVEL_SHARE * middle) else None


def _turned(track: Track, rows: Sequence[int] | np.ndarray) -> str | None:
    """The axis of the file about which a body is turned between two samples; None: it is not; "none": a slanted one."""
    if track.quaternion is None or not np.isfinite(track.quaternion[list(rows)]).all():
        return None
    first, last = (body_axes(track.quaternion[row]).T for row in rows)
    turn = last @ first.T
    vector = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    size = float(np.linalg.norm(vector))
    if size < TURNED:
        return None
    along = np.abs(vector) / size
    return AXES[int(np.argmax(along))] if along.max() > ALONG else "none"


def _rests(track: Track) -> list[np.ndarray]:
    """Rows of each rest."""
    good = np.flatnonzero(np.isfinite(track.position).all(axis=-1))
    time, position = track.time[good], track.position[good]
    after = np.searchsorted(time, time + 0.1).clip(0, len(time) - 1)
    lasting = time[after] - time
    with np.errstate(invalid="ignore", divide="ignore"):
        speed = np.linalg.norm(position[after] - position, axis=-1) / np.where(lasting > 0.05, lasting, np.nan)
    quiet = np.concatenate([[False], np.nan_to_num(speed, nan=1.0) < SPEED, [False]])
    edges = np.flatnonzero(np.diff(quiet.astype(int)))
    return [
        good[start:end]
        for start, end in zip(edges[::2], edges[1::2], strict=True)
        if time[end - 1] - time[start] > RESTS
    ]


def stands_on(track: Track, axis: str) -> bool:
    """Whether the frame of a track, which is z-up by now, stands on the axis that was up in its file, and not on its z.

    Motive and others draw a body's frame along the axes of their world. Where those are y-up, so is the body.
    """
    if axis == "z" or track.quaternion is None:
        return False
    seen = track.quaternion[np.isfinite(track.quaternion).all(axis=-1)]
    upward = to_world(seen, to_body(np.array(TURNS[axis]), np.array([0.0, 0.0, 1.0])))[:, 2]
    return len(seen) > 0 and float((upward > STANDING).mean()) > MOSTLY


def turned(track: Track, axis: str) -> Track:
    """A track in a frame whose z axis is this axis of the file."""
    turn = np.array(TURNS[axis])
    position = track.position @ body_axes(turn)  # rows of `axes` are columns of the rotation's matrix
    quaternion = None if track.quaternion is None else multiply(turn, track.quaternion)
    return Track(track.name, track.time, np.asarray(position), quaternion)
