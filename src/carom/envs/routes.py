"""Routes: straight segments one after the other, built-in (like Fig. 6c of CLASH) or from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from carom.core.errors import CaromError, short
from carom.core.yaml_files import YamlError, read_yaml, refuse_duplicates
from carom.envs.task import LENGTH, SHORTEST, checked_length, directions
from carom.state import Array, wrap_angle

MOST_SEGMENTS = 100
SHARPEST = np.pi / 2  #: [rad] of a bend
LONGEST_NAME = 100  #: characters
FARTHEST = 100.0  #: [m]
KEYS = ("name", "points", "heading_spread")  #: of a route's file
SLACK = 1e-6  #: relative: what rounding to decimals does to a leg or a bend


@dataclass(frozen=True)
class Route:
    """Where a block is to go. It starts on the first point, heading along the first segment."""

    name: str
    points: Array  #: [K+1, 2] ends of the segments, none longer than `length` [m]
    heading_spread: float = 0.0  #: the heading at the start is uniform within plus or minus this [rad]
    length: float = LENGTH  #: of the segments that a policy is made for [m]

    def __post_init__(self) -> None:
        where = f"route '{self.name}'"
        points = _checked_corners(self.points, where, checked_length(self.length))
        longest = float(np.linalg.norm(np.diff(points, axis=0), axis=1).max())
        if longest > self.length * (1 + SLACK):
            raise CaromError(
                f"{where}: expected segments of at most {self.length:g} m, got {longest:g} m; divide them "
                "(route_through)"
            )
        spread = self.heading_spread
        if isinstance(spread, bool) or not isinstance(spread, int | float) or not 0 <= spread <= np.pi:
            raise CaromError(f"{where}: heading_spread: expected a number from 0 to pi [rad], got {spread!r:.60}")
        object.__setattr__(self, "points", points)

    @property
    def segments(self) -> int:
        """K: how many segments, and sub-goals."""
        return len(self.points) - 1


def route_through(name: str, corners: ArrayLike, *, heading_spread: float = 0.0, length: float = LENGTH) -> Route:
    """The route along straight legs through these corners [M, 2] [m]; those over `length` [m] are divided evenly.

    >>> route_through("hall", [[0, 0], [0.5, 0]]).points.tolist()
    [[0.0, 0.0], [0.25, 0.0], [0.5, 0.0]]
    """
    ends = _checked_corners(corners, f"route '{name}'", checked_length(length))
    points = [ends[:1]]
    for start, end in pairwise(ends):
        parts = int(np.ceil(np.linalg.norm(end - start) / length - SLACK))
        points.append(start + np.arange(1, parts + 1)[:, None] / parts * (end - start))
    return Route(name, np.concatenate(points), heading_spread, length)


def route_from(what: int | str | Path | Route, *, length: float = LENGTH) -> Route:
    """A built-in route by its number, one from a file, both in segments of `length` [m]; or one as it is."""
    if isinstance(what, Route):
        return what
    if str(what) in BENDS:
        return _bent(str(what), *BENDS[str(what)], checked_length(length))
    path = Path(str(what))
    if isinstance(what, bool | int) or not path.suffix:
        raise CaromError(f"route: expected one of {', '.join(BENDS)} or a file (.yaml), got '{what}'")
    return _read(path, length)


def _read(path: Path, length: float) -> Route:
    try:
        content, node = read_yaml(path)
        refuse_duplicates(node)
    except YamlError as fault:
        line = "" if fault.line is None else f", line {fault.line}"
        raise CaromError(f"{path}{line}: expected YAML (points: [[x, y], ...]): {fault.message}") from fault
    if not isinstance(content, Mapping):
        raise CaromError(f"{path}: expected keys {', '.join(KEYS)}, got {type(content).__name__}")
    for key in content:
        if key not in KEYS:
            raise CaromError(f"{path}: unknown key '{short(key)}'; known: {', '.join(KEYS)}")
    if "points" not in content:
        raise CaromError(f"{path}: points: expected [[x, y], ...] in metres, got nothing")
    name = content.get("name", path.stem)
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise CaromError(f"{path}: name: expected a text of one line, got {name!r:.60}")
    try:
        corners = _checked_corners(content["points"], "points", length)
        return route_through(name, corners, heading_spread=content.get("heading_spread", 0.0), length=length)
    except CaromError as problem:
        raise CaromError(f"{path}: {problem}") from problem


def _number_pairs(given: Any, where: str) -> Array:
    """Points [M, 2]; what is no pair of numbers is refused by its place."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple):
        raise CaromError(f"{where}: expected a list of points [x, y] in metres, got {type(given).__name__}")
    if not 2 <= len(given) <= MOST_SEGMENTS + 1:
        raise CaromError(f"{where}: expected 2 to {MOST_SEGMENTS + 1} points, got {len(given)}")
    given = [point.tolist() if isinstance(point, np.ndarray) else point for point in given]
    for index, point in enumerate(given):
        pair = isinstance(point, list | tuple) and len(point) == 2
        if not pair or any(isinstance(v, bool) or not isinstance(v, int | float) for v in point):
            raise CaromError(f"{where}[{index}]: expected two numbers [x, y] in metres, got {point!r:.60}")
        if not all(abs(v) <= FARTHEST for v in point):  # NaN is not, either
            raise CaromError(f"{where}[{index}]: expected finite metres within {FARTHEST:g}, got {point!r:.60}")
    return np.array(given, dtype=np.float64)


def _checked_corners(given: Any, where: str, length: float) -> Array:
    """Corners [M, 2] of a route that can be gone in segments of a length [m]."""
    corners = _number_pairs(given, where)
    legs = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    for index in np.flatnonzero(legs < SHORTEST * (1 - SLACK)):
        raise CaromError(
            f"{where}[{index + 1}]: expected at least {SHORTEST:g} m from the point before, got {legs[index]:g} m"
        )
    count = int(np.ceil(legs / length - SLACK).sum())
    if count > MOST_SEGMENTS:
        raise CaromError(
            f"{where}: expected at most {MOST_SEGMENTS} segments of {length:g} m, got {count}; points are in metres"
        )
    bends = np.abs(wrap_angle(np.diff(directions(corners))))
    for index in np.flatnonzero(bends > SHARPEST * (1 + SLACK)):
        raise CaromError(
            f"{where}[{index + 1}]: expected a bend of at most 90 degrees, got {np.degrees(bends[index]):.0f}; "
            "go round it in more points"
        )
    return corners


def _bent(name: str, bends: ArrayLike, heading_spread: float, length: float) -> Route:
    """Whole segments from the origin along +x, with these bends [deg] between them."""
    along = np.radians(np.concatenate([[0.0], np.cumsum(np.asarray(bends, dtype=np.float64))]))
    steps = length * np.stack([np.cos(along), np.sin(along)], axis=-1)
    return Route(name, np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)]), heading_spread, length)


#: Bends [deg] and spread of the heading at the start [rad]. Harder from 1 to 3, as in the paper; its figure gives no
#: angles, so the bends are ours.
BENDS: Mapping[str, tuple[tuple[float, ...], float]] = {
    "1": ((), np.pi / 6),
    "2": ((30.0,), np.pi / 6),
    "3": ((30.0, -45.0), 0.0),
}
ROUTES: Mapping[str, Route] = {name: route_from(name) for name in BENDS}
