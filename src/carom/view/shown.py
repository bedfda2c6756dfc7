"""What a viewer shows, before anything is drawn: motions, arrows, ghosts and errors over time. Only arrays and words.

A `Show` has takes: one recording, one planned strike, one trial. A take has tracks: the recorded motion and each
simulated one, with the same bodies. All of it is computed once, when a take is first asked for; a frame only looks up
poses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from carom.report import Section
from carom.report.style import CYCLE
from carom.scenes.shapes import Shape
from carom.state import Array
from carom.view.solids import triangles

RECORDED = "recorded"
#: of the recorded motion, then of simulated ones; the page's legend and its plots have the same
RECORDED_COLOUR = "#4a5563"
COLOURS = tuple(c for c in CYCLE)
#: seconds for which an arrow stays after its moment
ARROW_STAYS = 0.35


@dataclass(frozen=True)
class Track:
    """Bodies over time, as one source has them: a recording, or an engine. What is not finite is not shown."""

    name: str  #: `RECORDED`, or the engine's name as a person reads it
    bodies: tuple[str, ...]  #: B names
    time: Array  #: [T] since the take's zero [s], increasing
    position: Array  #: [T, B, 3] of the bodies' frames, world [m]
    quaternion: Array  #: [T, B, 4] w-first, world from body
    colour: str = RECORDED_COLOUR
    ghosts: tuple[Ghost, ...] = ()  #: other motions that are as likely


@dataclass(frozen=True)
class Ghost:
    """One draw of an uncertain motion; times are those of its track."""

    position: Array  #: [T, B, 3] [m]
    quaternion: Array  #: [T, B, 4]


@dataclass(frozen=True)
class Arrow:
    """An impulse, a force times a sample's length, or a velocity, at a point."""

    track: str  #: whose it is; it is shown with that track
    time: float  #: from when on it is shown [s]
    until: float  #: [s]
    point: Array  #: [3] where it acts, world [m]
    vector: Array  #: [3] in `unit`, world
    words: str  #: what it is, with its size and unit
    unit: str = "N s"
    ends: bool = False  #: whether it ends at its point, as a blow does; else it begins there


@dataclass(frozen=True)
class Mark:
    """A body that stands still in a colour of its own: where it is wanted, where it is expected."""

    name: str
    body: str  #: whose shape it has
    position: Array  #: [3] [m]
    quaternion: Array  #: [4]
    colour: str


@dataclass(frozen=True)
class Take:
    """One recording, plan or trial: everything that is shown of it."""

    name: str
    shapes: Mapping[str, Shape]  #: of each body that has a shape
    tracks: tuple[Track, ...]
    arrows: tuple[Arrow, ...] = ()
    marks: tuple[Mark, ...] = ()
    ground: float | None = 0.0  #: height of the ground [m]; None: there is none
    tilt: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)  #: quaternion of the ground
    words: tuple[str, ...] = ()  #: what a reader should know of it
    paths: Mapping[str, Array] = field(default_factory=dict)  #: lines on the ground by name [P, 3] [m]
    extra: tuple[Section, ...] = ()  #: more of the page under the scene
    judged: tuple[str, ...] = ()  #: bodies whose errors count; none: all. A striker is led, not predicted

    @property
    def ends(self) -> tuple[float, float]:
        """First and last instant of all tracks [s]."""
        return min(float(t.time[0]) for t in self.tracks), max(float(t.time[-1]) for t in self.tracks)

    @property
    def recorded(self) -> Track | None:
        """The recorded motion, where there is one."""
        return next((t for t in self.tracks if t.name == RECORDED), None)

    def box(self) -> tuple[Array, Array]:
        """Lowest and highest coordinates [3] of everything that is shown [m], bodies' sizes included."""
        places = [m.position for m in self.marks]
        for track in self.tracks:
            good = track.position.reshape(-1, 3)
            places.extend(good[np.isfinite(good).all(axis=1)])
        reach = max((float(np.linalg.norm(triangles(s)[0], axis=1).max()) for s in self.shapes.values()), default=0.05)
        points = np.array(places).reshape(-1, 3)
        if not len(points):
            return -np.ones(3), np.ones(3)
        return points.min(axis=0) - reach, points.max(axis=0) + reach


@dataclass(frozen=True)
class Show:
    """All that one call of `carom view` serves."""

    title: str
    names: tuple[str, ...]  #: of the takes, in the order in which they are offered
    make: Callable[[int], Take]  #: computes a take; called once for each that is looked at
    words: tuple[str, ...] = ()  #: about the whole: what is shown beside what, what was left out
    taken: dict[int, Take] = field(default_factory=dict)

    def take(self, index: int) -> Take:
        """A take, computed when it is first asked for."""
        if index not in self.taken:
            self.taken[index] = self.make(index)
        return self.taken[index]


def poses_at(time: Array, position: Array, quaternion: Array, now: float) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Positions [B, 3], unit quaternions [B, 4], and whether a body is to be seen [B], between the samples.

    Before its first and after its last sample a body stays where it was then. A gap of lost samples is bridged.

    >>> time = np.array([0.0, 1.0, 2.0])
    >>> place = np.array([[[0.0, 0, 0]], [[np.nan, 0, 0]], [[2.0, 0, 0]]])
    >>> poses_at(time, place, np.tile([1.0, 0, 0, 0], (3, 1, 1)), 1.5)[0].tolist()
    [[1.5, 0.0, 0.0]]
    """
    count = position.shape[1]
    places, turns, seen = np.zeros((count, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)), np.zeros(count, dtype=bool)
    for body in range(count):
        good = np.flatnonzero(np.isfinite(position[:, body]).all(axis=1))
        if not len(good):
            continue
        places[body] = [np.interp(now, time[good], position[good, body, axis]) for axis in range(3)]
        seen[body] = True
        known = good[np.isfinite(quaternion[good, body]).all(axis=1)]
        if len(known):
            turns[body] = _turn_at(time[known], quaternion[known, body], now)
    return places, turns, seen


def _turn_at(time: Array, quaternion: Array, now: float) -> Array:
    """A unit quaternion [4] on the short way between the two samples around `now`."""
    after = int(np.clip(np.searchsorted(time, now), 0, len(time) - 1))
    before = max(after - 1, 0)
    a, b = quaternion[before], quaternion[after]
    b = b if float(a @ b) >= 0 else -b
    span = float(time[after] - time[before])
    share = 0.0 if span <= 0 else float(np.clip((now - time[before]) / span, 0.0, 1.0))
    mixed = (1 - share) * a + share * b
    length = float(np.linalg.norm(mixed))
    return np.asarray(mixed / length) if length > 0 else np.array([1.0, 0.0, 0.0, 0.0])


def arrows_at(take: Take, now: float, tracks: frozenset[str] | set[str]) -> list[int]:
    """Which arrows are to be seen now: of tracks that are on, and of what was measured but has no motion here."""
    known = {track.name for track in take.tracks}
    shown = [i for i, a in enumerate(take.arrows) if a.track in tracks or a.track not in known]
    return [i for i in shown if take.arrows[i].time <= now <= take.arrows[i].until]


def arrow_scale(take: Take) -> dict[str, float]:
    """Metres per unit for each unit, so that the greatest arrow is about as long as the largest body is wide."""
    width = max((float(s.extent.max()) for s in take.shapes.values()), default=0.1)
    greatest: dict[str, float] = {}
    for arrow in take.arrows:
        greatest[arrow.unit] = max(greatest.get(arrow.unit, 0.0), float(np.linalg.norm(arrow.vector)))
    return {unit: width / most for unit, most in greatest.items() if most > 0}


def errors_of(take: Take) -> dict[str, tuple[Array, dict[str, tuple[Array, Array]]]]:
    """By simulated track: times [T] of the recorded samples it covers, and by body the distance [T] [m] and the angle
    [T] [rad] between simulated and recorded; empty without a recording."""
    real = take.recorded
    if real is None:
        return {}
    found = {}
    for track in take.tracks:
        if track.name == real.name:
            continue
        rows = np.flatnonzero((real.time >= track.time[0] - 1e-9) & (real.time <= track.time[-1] + 1e-9))
        every = [poses_at(track.time, track.position, track.quaternion, float(t)) for t in real.time[rows]]
        bodies = {}
        for name in (n for n in track.bodies if n in real.bodies and n in (take.judged or real.bodies)):
            own, theirs = track.bodies.index(name), real.bodies.index(name)
            place = np.array([p[own] for p, _, _ in every]).reshape(-1, 3)
            turn = np.array([q[own] for _, q, _ in every]).reshape(-1, 4)
            away = np.linalg.norm(place - real.position[rows, theirs], axis=-1)
            cosine = np.abs((turn * real.quaternion[rows, theirs]).sum(axis=-1))
            bodies[name] = (away, np.asarray(2 * np.arccos(np.clip(cosine, 0.0, 1.0))))
        found[track.name] = (real.time[rows], bodies)
    return found
