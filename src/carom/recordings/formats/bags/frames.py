"""Transforms between frames, as tf has them, chained to one fixed frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from carom.core.rotations import from_scipy, multiply, to_scipy, to_world
from carom.recordings.formats.take import Track
from carom.state import Array

FIXED = ("world", "map", "odom")  #: of several roots, the first of these is the fixed frame


@dataclass(frozen=True)
class Edge:
    """The pose of a frame in its parent's over time; one that never changes has one sample."""

    parent: str
    child: str
    topic: str
    track: Track
    static: bool


@dataclass(frozen=True)
class Tree:
    """Frames, each with at most one parent."""

    edges: Mapping[str, Edge]  #: by child
    fixed: str  #: the frame that all is chained to

    def path(self, frame: str) -> tuple[Edge, ...] | None:
        """The edges from the fixed frame to this one; None: they are not joined."""
        found: list[Edge] = []
        while frame != self.fixed:
            edge = self.edges.get(frame)
            if edge is None or len(found) > len(self.edges):
                return None
            found.append(edge)
            frame = edge.parent
        return tuple(reversed(found))

    def in_fixed(self, track: Track, frame: str) -> Track | None:
        """A track that is given in a frame, in the fixed one, at its own times; None: the frames are not joined."""
        path = self.path(frame)
        if path is None:
            return None
        position, quaternion = track.position, track.quaternion
        for edge in reversed(path):
            place, turn = _at(edge, track.time)
            position = place + to_world(turn, position)
            quaternion = None if quaternion is None else multiply(turn, quaternion)
        return Track(track.name, track.time, position, quaternion)

    def pose_of(self, frame: str) -> Track | None:
        """The motion of a frame in the fixed one, at the stamps of the last moving edge; None: it never moves."""
        path = self.path(frame) or ()
        moving = [number for number, edge in enumerate(path) if not edge.static]
        if not moving:
            return None
        last = path[moving[-1]]
        time = last.track.time
        still = np.zeros((len(time), 3)), np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))
        own = Track(frame, time, *still)
        return self.in_fixed(own, frame)


def tree_of(edges: Iterable[Edge], said: list[str]) -> Tree | None:
    """The tree that these edges make. Of several parents of a frame, the one with the most samples counts."""
    chosen: dict[str, Edge] = {}
    for edge in edges:
        there = chosen.get(edge.child)
        if there is not None and (there.parent, there.topic) != (edge.parent, edge.topic):
            kept, other = sorted((there, edge), key=lambda each: -len(each.track.time))
            said.append(
                f"frame '{edge.child}' is given twice: {kept.topic} (in '{kept.parent}') counts, {other.topic} (in "
                f"'{other.parent}') does not"
            )
            edge = kept
        chosen[edge.child] = edge
    roots = sorted({edge.parent for edge in chosen.values()} - set(chosen))
    if not roots:
        return None
    below = {root: sum(_root(chosen, child) == root for child in chosen) for root in roots}
    fixed = min(roots, key=lambda name: (FIXED.index(name) if name in FIXED else len(FIXED), -below[name], name))
    if len(roots) > 1:
        others = ", ".join(f"'{name}'" for name in roots if name != fixed)
        said.append(f"frames with several roots: '{fixed}' is the fixed one; nothing joins it to {others}")
    return Tree(chosen, fixed)


def _root(edges: Mapping[str, Edge], frame: str) -> str | None:
    for _ in range(len(edges) + 1):
        if frame not in edges:
            return frame
        frame = edges[frame].parent
    return None  # they run in a circle


def _at(edge: Edge, time: Array) -> tuple[Array, Array]:
    """Position and quaternion of an edge at other times; NaN where it was not measured before and after."""
    track = edge.track
    turn = track.quaternion if track.quaternion is not None else np.full((len(track.time), 4), np.nan)
    good = np.isfinite(track.position).all(axis=-1) & np.isfinite(turn).all(axis=-1)
    stamps, places, turns = track.time[good], track.position[good], turn[good]
    if len(stamps) == 0:
        return np.full((len(time), 3), np.nan), np.full((len(time), 4), np.nan)
    if edge.static or len(stamps) == 1:
        return np.tile(places[-1], (len(time), 1)), np.tile(turns[-1], (len(time), 1))
    from scipy.spatial.transform import Slerp

    inside = (time >= stamps[0]) & (time <= stamps[-1])
    found = np.full((len(time), 4), np.nan)
    if inside.any():
        found[inside] = from_scipy(Slerp(stamps, to_scipy(turns))(time[inside]))
    place = np.column_stack([np.interp(time, stamps, places[:, axis]) for axis in range(3)])
    place[~inside] = np.nan
    return place, found
