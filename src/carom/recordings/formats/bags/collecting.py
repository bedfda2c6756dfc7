"""From a bag's messages to a take: poses by topic and frame, joints as signals, times by the best clock there is."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from carom.core.errors import RecordingError
from carom.recordings.formats.bags.channels import Messages, Wanted
from carom.recordings.formats.bags.decoding import DamageError, Values
from carom.recordings.formats.bags.frames import Edge, Tree, tree_of
from carom.recordings.formats.bags.shapes import Pose, PoseFinder, stamp_keys, stamp_of
from carom.recordings.formats.bags.topics import FORCES, JOINTS, UNSURE, Topics
from carom.recordings.formats.clean import ordered, rate_of, track
from carom.recordings.formats.take import NoPosesError, ReadOptions, Signal, Take, Track
from carom.state import Array

SCALES = {"m": 1.0, "cm": 0.01, "mm": 0.001}
TOO_FAR = 50.0  #: [m]: few labs are as large, and many trackers write millimetres
WRONG_STAMP = 60.0  #: [s] by which single header stamps differ from what their neighbours differ from times of receipt
MOST_BODIES = 500
WIDTH = 9  #: numbers of a row: header stamp, time of receipt, x, y, z, qx, qy, qz, qw


@dataclass
class _Source:
    """The poses of one body on one topic, in the order of the file."""

    name: str
    topic: str
    parent: str
    child: str  #: of a transform between frames; else empty
    rows: array[float] = field(default_factory=lambda: array("d"))


@dataclass
class _Gathered:
    """What a bag's messages hold."""

    sources: dict[tuple[str, ...], _Source] = field(default_factory=dict)
    signals: dict[tuple[str, str], array[float]] = field(default_factory=dict)  #: stamp, receipt, value of each sample
    damaged: int = 0
    too_many: int = 0

    def pose(self, topic: str, pose: Pose, received: float) -> None:
        """Add a pose."""
        key = (topic, pose.parent, pose.child if pose.transform else "", pose.label, str(pose.index))
        source = self.sources.get(key)
        if source is None:
            if len(self.sources) >= MOST_BODIES:
                self.too_many += 1
                return
            child = pose.child if pose.transform else ""
            name = child or pose.label or (topic if pose.index is None else f"{topic}[{pose.index}]")
            source = self.sources[key] = _Source(name, topic, pose.parent, child)
        stamp = float("nan") if pose.stamp is None else pose.stamp
        rest = pose.numbers if len(pose.numbers) == 7 else (*pose.numbers, *(float("nan"),) * 4)
        source.rows.extend((stamp, received, *rest))

    def signal(self, topic: str, name: str, stamp: float, received: float, value: float) -> None:
        """Add a number of a signal."""
        self.signals.setdefault((topic, name), array("d")).extend((stamp, received, value))


def bag_take(
    path: Path,
    format: str,
    options: ReadOptions,
    messages: Callable[[Wanted, list[str]], Messages],
    *,
    version: str = "",
    said: tuple[str, ...] = (),
) -> Take:
    """All poses and joints of a bag, whose messages `messages(wants, said)` gives, as one take."""
    topics, told = Topics.of(path, options.definitions), list(said)
    gathered = _gather(topics, messages, told)
    if gathered.damaged:
        told.append(f"{gathered.damaged} messages are damaged, or do not fit the definition of their type: left out")
    if gathered.too_many:
        told.append(f"more than {MOST_BODIES} bodies: {gathered.too_many} poses of further ones are left out")
    clock, shift = _clock(gathered, options, told)
    tracks, left_out = _tracks(gathered, clock, shift, SCALES[options.length_unit or "m"], told)
    if options.length_unit is None and _reach(tracks) > TOO_FAR:
        told.append(f"positions reach {_reach(tracks):.4g} m: if the numbers are millimetres, state that unit")
    signals = _signals(gathered, clock)
    if not tracks and not signals:
        reason = topics.without_poses() if not gathered.sources else "; ".join(left_out)
        raise NoPosesError(f"{path}: {reason}" + "".join(f"; {words}" for words in told))
    rates = [rate for each in tracks if (rate := rate_of(each.time))]
    return Take(
        name=path.stem if path.is_file() else path.name,
        format=format,
        version=version,
        tracks=tracks,
        signals=signals,
        clock="header stamps" if clock == "header" else "times of receipt",
        rate=max(rates, default=None),
        said=tuple(dict.fromkeys(told)),
        left_out=(*left_out, *topics.left_out()),
    )


def _gather(topics: Topics, messages: Callable[[Wanted, list[str]], Messages], told: list[str]) -> _Gathered:
    gathered, finders, fruitless = _Gathered(), dict[str, PoseFinder](), dict[str, int]()
    for channel, nanoseconds, data in messages(topics.wants, told):
        topic, received = channel.topic, nanoseconds * 1e-9
        if fruitless.get(topic, 0) > UNSURE:
            continue
        try:
            values = topics.decoders[channel](data)
            if channel.kind == JOINTS:
                _joints(gathered, topic, values, received)
                continue
            if channel.kind == FORCES:
                _forces(gathered, topic, values, received)
                continue
            poses = list(finders.setdefault(topic, PoseFinder())(values))
        except (DamageError, KeyError, ValueError, TypeError):
            gathered.damaged += 1
            continue
        if not poses and channel.encoding in ("json", "protobuf"):
            fruitless[topic] = fruitless.get(topic, 0) + 1
            topics.others[topic] = channel.kind
        for pose in poses:
            gathered.pose(topic, pose, received)
    return gathered


def _joints(gathered: _Gathered, topic: str, values: Values, received: float) -> None:
    stamp = stamp_of(values, stamp_keys(values))
    for what in ("position", "velocity", "effort"):
        for name, value in zip(values["name"], values[what], strict=False):
            at = float("nan") if stamp is None else stamp
            gathered.signal(topic, f"{name}.{what}", at, received, float(value))


def _forces(gathered: _Gathered, topic: str, values: Values, received: float) -> None:
    stamp = stamp_of(values, stamp_keys(values))
    for what in ("force", "torque"):
        for axis in "xyz":
            at = float("nan") if stamp is None else stamp
            gathered.signal(topic, f"{what}.{axis}", at, received, float(values[f"wrench.{what}.{axis}"]))


def _clock(gathered: _Gathered, options: ReadOptions, told: list[str]) -> tuple[str, float]:
    """Which stamps count, and what is added to times of receipt where a topic has no others [s]."""
    stamps = [np.frombuffer(s.rows).reshape(-1, WIDTH)[:, :2] for s in gathered.sources.values()]
    stamps += [np.frombuffer(rows).reshape(-1, 3)[:, :2] for rows in gathered.signals.values()]
    without = [not _moves(each[:, 0]) for each in stamps]
    if options.clock == "received" or not stamps:
        return "received", 0.0
    if all(without):
        if options.clock == "header":
            raise RecordingError("expected header stamps, got none in this bag; leave the choice of the clock away")
        told.append("no header stamps: times of receipt count")
        return "received", 0.0
    late = np.concatenate([each[:, 1] - each[:, 0] for each, none in zip(stamps, without, strict=True) if not none])
    delay = float(np.nanmedian(late))
    if abs(delay) > WRONG_STAMP:
        told.append(f"header stamps lie {delay:.6g} s before the times of receipt: another clock, or simulated time")
    if any(without):
        told.append(f"topics without header stamps: their times of receipt less {delay:.4g} s, as the others' stamps")
    return "header", -delay


def _moves(stamps: Array) -> bool:
    good = stamps[np.isfinite(stamps)]
    return len(good) > 0 and (len(good) == 1 or float(np.ptp(good)) > 0)


def _times(rows: Array, clock: str, shift: float) -> Array:
    """The times of samples [T] s, from their stamps and times of receipt."""
    if clock == "received":
        return np.asarray(rows[:, 1])
    if not _moves(rows[:, 0]):
        return np.asarray(rows[:, 1] + shift)
    time = rows[:, 0].copy()
    off = time - rows[:, 1]
    with np.errstate(invalid="ignore"):
        wrong = np.abs(off - np.nanmedian(off)) > WRONG_STAMP
    if 0 < wrong.sum() < 0.05 * len(time) or (wrong.sum() == 1 and len(time) > 2):
        time[wrong] = np.nan  # a damaged one: else all that follows it would count as late
    return time


def _tracks(
    gathered: _Gathered, clock: str, shift: float, scale: float, told: list[str]
) -> tuple[tuple[Track, ...], tuple[str, ...]]:
    """The bodies' tracks, and what is left out."""
    edges: list[Edge] = []
    posed: list[tuple[_Source, Track]] = []
    left_out: list[str] = []
    for source in gathered.sources.values():
        rows = np.frombuffer(source.rows).reshape(-1, WIDTH)
        static = bool(source.child) and (source.topic.endswith("tf_static") or len(rows) == 1)
        quaternion = None if np.isnan(rows[:, 5:]).all() else rows[:, [8, 5, 6, 7]]
        time = np.arange(len(rows), dtype=np.float64) if static else _times(rows, clock, shift)
        made, said = track(source.name, time, rows[:, 2:5] * scale, quaternion)
        told += said
        if source.child:
            edges.append(Edge(source.parent, source.child, source.topic, made, static))
        elif len(made.time) < 2:
            left_out.append(f"{source.name}: {len(made.time)} sample" + "s" * (len(made.time) != 1))
        else:
            posed.append((source, made))
    tree = tree_of(edges, told) if edges else None
    found = [_placed(source, made, tree, told) for source, made in posed]
    _say_frames(posed, tree, told)
    if tree is not None:
        moving, rest = _moving(tree)
        found += moving
        if rest:
            left_out.append(f"frames that do not move in '{tree.fixed}': {', '.join(rest[:20])}")
    return _unique(found), tuple(left_out)


def _placed(source: _Source, made: Track, tree: Tree | None, told: list[str]) -> Track:
    """A track in the tree's fixed frame, if its own is joined to it."""
    if tree is None or source.parent in ("", tree.fixed):
        return made
    moved = tree.in_fixed(made, source.parent)
    if moved is None:
        told.append(f"{source.name} is in frame '{source.parent}', which nothing joins to '{tree.fixed}': left there")
        return made
    told.append(f"{source.name}: chained from frame '{source.parent}' to '{tree.fixed}'")
    return moved


def _say_frames(posed: list[tuple[_Source, Track]], tree: Tree | None, told: list[str]) -> None:
    if tree is not None:
        told.append(f"frames of tf are chained to '{tree.fixed}'")
        return
    frames = sorted({source.parent for source, _ in posed if source.parent})
    if len(frames) == 1:
        told.append(f"poses are in frame '{frames[0]}'")
    elif frames:
        told.append(f"poses are in different frames, and the bag does not say how these lie: {', '.join(frames)}")


def _moving(tree: Tree) -> tuple[list[Track], list[str]]:
    found: list[Track] = []
    rest: list[str] = []
    for frame in tree.edges:
        made = tree.pose_of(frame)
        if made is not None and len(made.time) > 1:
            found.append(made)
        elif tree.path(frame) is not None:
            rest.append(frame)
    return found, sorted(rest)


def _unique(tracks: list[Track]) -> tuple[Track, ...]:
    """Tracks with names that differ: a second one of a name gets a number."""
    names: dict[str, int] = {}
    found: list[Track] = []
    for each in tracks:
        names[each.name] = names.get(each.name, 0) + 1
        name = each.name if names[each.name] == 1 else f"{each.name} ({names[each.name]})"
        found.append(Track(name, each.time, each.position, each.quaternion))
    return tuple(found)


def _signals(gathered: _Gathered, clock: str) -> tuple[Signal, ...]:
    topics: dict[str, set[str]] = {}
    for topic, name in gathered.signals:
        topics.setdefault(name, set()).add(topic)
    found: list[Signal] = []
    for (topic, name), flat in gathered.signals.items():
        values = np.frombuffer(flat).reshape(-1, 3)
        time = _times(values, clock, 0.0)
        rows, _ = ordered(time)
        if len(rows):
            full = name if len(topics[name]) == 1 else f"{topic}.{name}"
            found.append(Signal(full, time[rows], values[rows, 2]))
    return tuple(found)


def _reach(tracks: tuple[Track, ...]) -> float:
    """How far from the origin bodies get [m]."""
    far = [float(np.nanmax(np.abs(each.position))) for each in tracks if np.isfinite(each.position).any()]
    return max(far, default=0.0)
