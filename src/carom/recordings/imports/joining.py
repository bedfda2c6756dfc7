"""Recordings from foreign files: which bodies, on one clock, z-up; several files as one recording, or one each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.errors import RecordingError, short
from carom.recordings.formats.found import read_take
from carom.recordings.formats.take import ReadOptions, Signal, Take, Track
from carom.recordings.imports.clocks import on_one_clock, shifted, signal_at
from carom.recordings.imports.frames import brought_over
from carom.recordings.imports.mapping import Named, chosen_bodies, roles_of, sources_of
from carom.recordings.imports.offsets import Offset, offset_of
from carom.recordings.imports.rigid_fit import body_of
from carom.recordings.imports.upright import Upward, stands_on, turned
from carom.recordings.imports.verticals import UnknownUpError, upward
from carom.recordings.trajectory import Trajectory
from carom.scenes.shapes import Body

COMMANDS = re.compile(r"(^|[._/])(action|command|cmd|ctrl|control|setpoint|desired|reference)", flags=re.IGNORECASE)
MOST_COMMANDS = 100
LATE_CLOCK = 1e5  #: [s]; stamps beyond it count from 1970 or so, and are made to begin at 0


@dataclass(frozen=True)
class ImportOptions:
    """What a user says about files, because they do not say it themselves."""

    wanted: tuple[Named, ...] = ()
    up: str | None = None
    offset: float | None = None  #: [s] to be added to the second file's stamps
    read: ReadOptions = field(default_factory=ReadOptions)


@dataclass(frozen=True)
class Part:
    """One take of one file: its bodies in metres and z-up, on their own clocks."""

    file: Path
    take: Take
    tracks: tuple[Track, ...]
    roles: Mapping[str, str | None]
    up: Upward
    standing: tuple[str, ...]  #: bodies whose frames stand on the axis that was up in the file, not on their z
    said: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Imported:
    """A recording made of one take or of several, and what was done for it."""

    trajectory: Trajectory
    parts: tuple[Part, ...]
    begin: float  #: [s] of the first sample, on the clock of the first file
    offsets: tuple[Offset, ...]
    said: tuple[str, ...]


def takes_of(path: Path, options: ImportOptions) -> tuple[Take, ...]:
    """The takes of a file or folder, as its reader gives them."""
    read = replace(options.read, sources={**options.read.sources, **sources_of(options.wanted)})
    takes = read_take(path, read)
    if not takes:
        raise RecordingError(f"{path}: no recording in it; expected one or more")
    return takes


def parts_of(
    path: Path, options: ImportOptions, takes: Sequence[Take] | None = None, *, alone: bool = True
) -> tuple[Part, ...]:
    """The takes of a file or folder, each with its bodies upright; `alone`: no other file is imported with it."""
    found = takes_of(path, options) if takes is None else takes
    return tuple(_part(path, take, options, alone) for take in found)


def parts_of_all(
    files: Sequence[Path], takes: Sequence[Sequence[Take]], options: ImportOptions
) -> list[tuple[Part, ...]]:
    """The takes of several files. Where one does not show which axis is up, others of its format with the same bodies
    may show it."""
    alone = len(files) == 1
    found: list[tuple[Part, ...] | UnknownUpError] = []
    for path, each in zip(files, takes, strict=True):
        try:
            found.append(parts_of(path, options, each, alone=alone))
        except UnknownUpError as error:
            found.append(error)
    known = [part for parts in found if isinstance(parts, tuple) for part in parts]
    return [
        parts if isinstance(parts, tuple) else _with_others(path, options, each, known, parts)
        for path, each, parts in zip(files, takes, found, strict=True)
    ]


def _with_others(
    path: Path, options: ImportOptions, takes: Sequence[Take], known: Sequence[Part], error: UnknownUpError
) -> tuple[Part, ...]:
    """The takes of a file with the axis up that like files agree on; else the error."""
    bodies = {track.name for take in takes for track in take.tracks}
    like = [p for p in known if p.take.format == takes[0].format and bodies & {t.name for t in p.take.tracks}]
    axes = {part.up.axis for part in like}
    if len(axes) != 1:
        raise error
    up = Upward(axes.pop(), f"as {like[0].file.name} shows it, in which the same bodies are")
    parts = parts_of(path, replace(options, up=up.axis), takes, alone=False)
    return tuple(replace(part, up=up) for part in parts)


def _part(path: Path, take: Take, options: ImportOptions, alone: bool) -> Part:
    said: list[str] = []
    chosen = chosen_bodies(path, take, options.wanted, said, alone=alone)
    up = upward(path, take, chosen, options.up)
    tracks, standing = [], []
    for body in chosen:
        if body.track is not None:
            found = next(track for track in take.tracks if track.name == body.track)
            tracks.append(replace(turned(found, up.axis), name=body.name))
            standing += [body.name] if stands_on(tracks[-1], up.axis) else []
            if body.name != body.track:
                said.append(f"'{body.track}' is called {body.name} here")
        else:
            made, words = body_of(str(path), _upright(take, up.axis), body.name, body.markers)
            tracks.append(made)
            said += words
    unseen = [track.name for track in tracks if not np.isfinite(track.position).any()]
    needed = [body.name for body in chosen if body.name in unseen and body.role in ("target", "striker", "tool")]
    if needed or len(unseen) == len(tracks):
        name = short((needed or unseen)[0])
        raise RecordingError(f"{path}: body '{name}' was never seen: all of its samples are lost")
    if unseen:
        said.append(f"left out: bodies that were never seen: {', '.join(map(short, unseen[:12]))}")
        tracks = [track for track in tracks if track.name not in unseen]
    left = [word.removeprefix("left out: ") for word in said if word.startswith("left out: ")]
    said = [word for word in said if not word.startswith("left out: ")]
    roles = {body.name: body.role for body in chosen if body.name not in unseen}
    return Part(path, take, tuple(tracks), roles, up, tuple(standing), (*take.said, *said), (*take.left_out, *left))


def _upright(take: Take, axis: str) -> Take:
    """A take's markers in a frame that is z-up."""
    turn = Track("", np.zeros(1), np.zeros((1, 3)))
    return replace(
        take,
        markers=tuple(
            replace(
                cloud,
                position=turned(replace(turn, position=cloud.position.reshape(-1, 3)), axis).position.reshape(
                    cloud.position.shape
                ),
            )
            for cloud in take.markers
        ),
    )


def recordings_of(files: Sequence[tuple[Part, ...]], options: ImportOptions) -> tuple[Imported, ...]:
    """Recordings from the takes of each file. Files that show the same bodies are recordings one after the other;
    files that show different ones are parts of the same recordings."""
    files = _shared_names(files)
    groups: dict[frozenset[str], list[Part]] = {}
    for parts in files:
        for part in parts:
            groups.setdefault(frozenset(track.name for track in part.tracks), []).append(part)
    counts = {len(group) for group in groups.values()}
    if len(counts) > 1:
        listed = "; ".join(f"{len(group)} with {', '.join(sorted(names))}" for names, group in groups.items())
        raise RecordingError(
            f"{files[0][0].file}: files of different bodies are joined one by one, but there are {listed}; import them "
            "in several steps, or name the bodies alike with --map"
        )
    joined = [tuple(each) for each in zip(*groups.values(), strict=True)]
    found = tuple(_joined(parts, options) for parts in joined)
    names = [each.trajectory.name for each in found]
    if len(set(names)) < len(names):
        found = tuple(
            replace(each, trajectory=replace(each.trajectory, name=f"{each.trajectory.name}_{place:03d}"))
            for place, each in enumerate(found)
        )
    return found


def _shared_names(files: Sequence[tuple[Part, ...]]) -> list[tuple[Part, ...]]:
    """Bodies that are called as their files are, without the numbers of these files: hit_01 and hit_02 are both hit."""
    lone = [parts[0] for parts in files if len(parts) == 1 and len(parts[0].tracks) == 1]
    if len(files) < 2 or len(lone) < len(files) or any(p.tracks[0].name != p.take.name for p in lone):
        return list(files)
    stems = [re.sub(r"[\W_]*\d+$", "", part.take.name) for part in lone]
    if len(set(stems)) > 1 or not stems[0]:
        return list(files)
    name = stems[0]
    return [
        (
            replace(
                part,
                tracks=(replace(part.tracks[0], name=name),),
                roles={name: part.roles[part.tracks[0].name]},
                said=(*part.said, f"the body is called {name}, as all files are without their numbers"),
            ),
        )
        for part in lone
    ]


def _joined(parts: Sequence[Part], options: ImportOptions) -> Imported:
    """One recording from parts that show different bodies, each on its own clock."""
    told: list[str] = []
    said_roles = {name: role for part in parts for name, role in part.roles.items()}
    names = list(dict.fromkeys(track.name for part in parts for track in part.tracks))
    roles = roles_of(names, said_roles, told)
    first, *others = parts
    tracks = list(first.tracks)
    offsets: list[Offset] = []
    signals = list(first.take.signals)
    for part in others:
        offset = offset_of(first.tracks, part.tracks, roles, options.offset, (first.file.name, part.file.name))
        offsets.append(offset)
        told.append(offset.words)
        theirs = [shifted(track, offset.seconds) for track in part.tracks]
        there = {track.name for track in tracks}
        tracks += [t for t in brought_over(first.tracks, theirs, part.file.name, told) if t.name not in there]
        signals += [replace(s, time=s.time + offset.seconds) for s in part.take.signals]
    main = next((k for k, track in enumerate(tracks) if roles[track.name] == "target"), 0)
    placed = on_one_clock(tracks, main, told)
    time = placed[main].time
    begin = float(time[0])
    controls = _commands(signals, time, told)
    if abs(begin) > LATE_CLOCK:
        time = time - begin
        told.append(f"times begin at 0, which is {begin:.9f} s on the file's clock")
    trajectory = Trajectory(
        name=_plain(first.take.name),
        path=first.file,
        time=time,
        position_world={track.name: track.position for track in placed},
        quaternion_world={track.name: track.quaternion for track in placed},
        bodies={track.name: Body(track.name, roles[track.name]) for track in placed},
        tags=_tags(parts, offsets, begin),
        controls=controls,
    )
    return Imported(trajectory, tuple(parts), begin, tuple(offsets), tuple(told))


def _commands(signals: Sequence[Signal], time: np.ndarray, told: list[str]) -> dict[str, np.ndarray]:
    """Signals that are commands, at the stamps of the recording; others are not part of the format."""
    commands = [signal for signal in signals if COMMANDS.search(signal.name)][:MOST_COMMANDS]
    rest = len(signals) - len(commands)
    if rest:
        told.append(f"left out: {rest} signals that are neither poses nor commands")
    if commands:
        told.append(f"{len(commands)} commands became columns ctrl.*")
    return {re.sub(r"[^\w.\-]+", "_", signal.name): signal_at(signal, time) for signal in commands}


def _tags(parts: Sequence[Part], offsets: Sequence[Offset], begin: float) -> dict[str, Any]:
    tags: dict[str, Any] = {"source": parts[0].file.name if len(parts) == 1 else [part.file.name for part in parts]}
    if abs(begin) > LATE_CLOCK:
        tags["begins"] = begin
    if offsets:
        tags["offsets"] = [offset.seconds for offset in offsets]
    return tags


def _plain(name: str) -> str:
    return re.sub(r"[^\w\-+.]+", "_", name).strip("._")[:80] or "take"
