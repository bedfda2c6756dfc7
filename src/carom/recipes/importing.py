"""`carom import`: other makers' files become a folder of recordings, and its header says what was done."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any, final

from carom.core.artefacts import versions
from carom.core.errors import CaromError, RecordingError, short, unknown_name
from carom.core.folders import replacing
from carom.core.locks import locked
from carom.core.progress import Progress, silent
from carom.recipes.result import PrintedTable, Result, command
from carom.recordings.formats.header import HEADER_NAME, HeaderModel
from carom.recordings.formats.take import Take
from carom.recordings.formats.writer import write
from carom.recordings.imports.bodies import (
    ground_of,
    plain_bodies,
    read_bodies,
    tracked_of,
    with_bodies,
    without_others,
)
from carom.recordings.imports.cutting import Event, between, cut
from carom.recordings.imports.joining import Imported, ImportOptions, Part, parts_of_all, recordings_of, takes_of
from carom.recordings.imports.mapping import parse_map
from carom.recordings.imports.upright import TURNS
from carom.recordings.tracked import Tracked
from carom.recordings.trajectory import Recordings, Trajectory
from carom.scenes.shapes import ROLES

OWN = (HEADER_NAME, "*.csv", "*.stl", "*.obj", "*.STL", "*.OBJ")  #: what an import writes into its folder
PLURAL = {"strike": "strikes", "toss": "tosses", "push": "pushes", "event": "events"}
MOST_WORDS = 60  #: lines in the header about what was done
FEWEST = 2  #: samples of a recording
WITH_ANGLES = ("Vicon", "Qualisys", "plain table", "LeRobot", "HDF5")  #: formats that may not say what three angles are


@final
@dataclass(frozen=True)
class ImportResult(Result):
    """A folder of recordings made from other makers' files."""

    out: Path
    recordings: Recordings

    @property
    def about(self) -> Mapping[str, Any]:
        """What was read, done and left out, as the header has it."""
        return self.recordings.imported

    def to_dict(self) -> dict[str, Any]:
        return {
            "folder": str(self.out),
            **self.about,
            "bodies": {name: body.role for name, body in self.recordings.bodies.items()},
            "recordings": [
                {"file": t.name, "samples": len(t), "seconds": float(t.time[-1] - t.time[0]), **t.tags}
                for t in self.recordings.trajectories
            ],
        }

    def tables(self) -> Sequence[PrintedTable]:
        read = [
            [each["file"], each["format"], each["samples"], each["rate"] or "-", each["up"].split(":")[0]]
            for each in self.about["files"]
        ]
        shown = [[name, body.role, _seen(name, self.recordings)] for name, body in self.recordings.bodies.items()]
        return (
            PrintedTable("read", ("file", "format", "samples", "rate [Hz]", "up"), read),
            PrintedTable(
                f"{len(self.recordings)} recordings in {self.out}", ("body", "role", "samples with its pose [%]"), shown
            ),
        )

    def notes(self) -> Sequence[str]:
        up = [f"up: {each['file']}: {each['up']}" for each in self.about["files"]]
        done = [f"done: {words}" for words in self.about["done"]]
        left = [f"left out: {words}" for words in self.about["left_out"]]
        without = plain_bodies(self.recordings.bodies)
        if without:
            left.append(
                f"state shape, size and mass of {', '.join(without)} in {self.out / HEADER_NAME} (or --bodies FILE): "
                "other makers' files do not have them"
            )
        return (*dict.fromkeys(up), *done, *left)

    def next_commands(self) -> Sequence[str]:
        return (command("check", self.out),)


def _seen(name: str, recordings: Recordings) -> str:
    import numpy as np

    poses = [t.position_world[name] for t in recordings.trajectories if name in t.position_world]
    share = float(np.mean(np.concatenate([np.isfinite(p).all(axis=-1) for p in poses]))) if poses else 0.0
    turned = any(t.quaternion_world.get(name) is not None for t in recordings.trajectories)
    return f"{100 * share:.4g}" + ("" if turned else ", without orientation")


def import_files(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    names: Sequence[str] = (),
    bodies: str | Path | None = None,
    cutting: Event | bool = False,
    options: ImportOptions | None = None,
    progress: Progress = silent,
) -> ImportResult:
    """Turn files of other makers' systems into a folder in the recordings format.

    `names` are what `--map` takes. `cutting` makes one recording per event: True for the kind that is there.
    """
    folder = Path(out)
    options = replace(options or ImportOptions(), wanted=tuple(parse_map(text) for text in names))
    if not files:
        raise CaromError("no file; give one or more recordings of other makers' systems")
    stated = _stated(folder, None if bodies is None else Path(bodies))
    takes: list[tuple[Take, ...]] = []
    for number, file in enumerate(files):
        progress("read", number, len(files))
        takes.append(takes_of(Path(file), options))
    progress("read", len(files), len(files))
    every = [take for each in takes for take in each]
    _all_named(options, every)
    if options.read.angles is not None and not any(take.format.startswith(WITH_ANGLES) for take in every):
        raise CaromError(f"--angles: {every[0].format} states how bodies are turned; leave it out")
    read = parts_of_all([Path(file) for file in files], takes, options)
    joined, parts = recordings_of(read, options), [part for each in read for part in each]
    roles = {each.name or each.left: each.role for each in options.wanted if each.role}
    tracked: dict[str, Tracked] = {}
    said_of_frames: list[str] = []
    if stated is not None:
        header, place = stated
        known = {name for each in joined for name in each.trajectory.bodies}
        header = header if bodies is not None else without_others(header, known)
        tracked, said_of_frames = _frames(header, place, known, parts)
        said = {name: role for name, role in roles.items() if role}
        joined = tuple(
            replace(each, trajectory=with_bodies(each.trajectory, header, place, roles=said)) for each in joined
        )
    pieces, words = _cut(joined, cutting)
    about = _about(parts, joined, [*said_of_frames, *words])
    trajectories = tuple(_numbered(pieces))
    recordings = Recordings(
        folder,
        trajectories[0].bodies,
        trajectories,
        stated[0].gravity if stated else None,
        ground_of(*stated) if stated else None,
        imported=about,
    )
    with locked(folder), replacing(folder, OWN) as fresh:
        write(fresh, recordings, tracked=tracked)
    return ImportResult(folder, recordings)


def _frames(
    header: HeaderModel, place: Path, known: Collection[str], parts: Sequence[Part]
) -> tuple[dict[str, Tracked], list[str]]:
    """Where the tracked frames of bodies lie in their own, and what is to be said of it.

    Shapes are stated for upright bodies. A maker whose world is y-up draws the bodies' frames so, too: unless the user
    says where such a frame is, its vertical is the shape's.
    """
    stated = tracked_of(header, place, known)
    standing: dict[str, Tracked] = {}
    for name in known:
        seen = [part for part in parts if name in part.roles]
        axes = {part.up.axis if name in part.standing else "z" for part in seen}
        shaped = name in header.bodies and header.bodies[name].shape is not None
        if shaped and name not in stated and len(axes) == 1 and axes != {"z"}:
            standing[name] = Tracked(quaternion=TURNS[axes.pop()])
    if not standing:
        return stated, []
    words = f"{', '.join(standing)}: the frame stands on the file's vertical, and so does the shape (see `tracked`)"
    return {**standing, **stated}, [words]


def _all_named(options: ImportOptions, takes: Sequence[Take]) -> None:
    """Raise if a name of `--map` is in none of the files."""
    known = {track.name for take in takes for track in take.tracks}
    known |= {name for take in takes for cloud in take.markers for name in cloud.names}
    if not known:
        return  # what there is instead is said by what looks for bodies
    for each in options.wanted:
        names = (each.left, *each.right)
        if not any(fnmatchcase(there.lower(), name.lower()) for there in known for name in names):
            raise RecordingError(f"--map: {unknown_name('body', each.left, sorted(known))}")
        close = get_close_matches(each.right[0], ROLES, n=1, cutoff=0.75) if each.either else []
        if close and each.left in known and each.right[0] not in known:
            raise RecordingError(
                f"--map '{short(each.left)}={short(each.right[0])}': expected a role (did you mean '{close[0]}'?); to "
                f"give the body this name, say '{short(each.left)}={short(each.right[0])}:ROLE'"
            )


def _stated(folder: Path, bodies: Path | None) -> tuple[HeaderModel, Path] | None:
    """What is stated of bodies: in a file, or in the header that an earlier import into this folder wrote."""
    there = folder / HEADER_NAME
    if there.is_file():
        header, place = read_bodies(folder)
        from carom.recordings.formats.header import read_header

        if not read_header(folder).imported:
            raise CaromError(f"{folder} holds recordings that were not imported; choose another folder")
        if bodies is None and any(model.shape or model.mass for model in header.bodies.values()):
            return header, place
    return None if bodies is None else read_bodies(bodies)


def _cut(joined: Sequence[Imported], cutting: Event | bool) -> tuple[list[Trajectory], list[str]]:
    """The recordings, cut into events if that is wanted, and what was left out."""
    if not cutting:
        return [each.trajectory for each in joined], []
    kind: Event | None = None if cutting is True else cutting
    found: list[Trajectory] = []
    words: list[str] = []
    for each in joined:
        take = each.trajectory
        made = cut(take, kind)
        for place, piece in enumerate(made.pieces):
            begin, end = f"{piece.begin:.3f}", f"{piece.end:.3f}"
            part = between(take, piece.begin, piece.end, f"{take.name}_{piece.event}_{place:03d}")
            if len(part) >= FEWEST:
                found.append(replace(part, tags={**take.tags, "event": piece.event, "cut": f"{begin} s to {end} s"}))
        counts = ", ".join(f"{count} x {reason}" for reason, count in made.others.items())
        event = PLURAL[made.pieces[0].event if made.pieces else kind or "event"]
        words.append(
            f"{take.name}: cut into {len(made.pieces)} {event}" + (f"; motions left out: {counts}" if counts else "")
        )
    if not found:
        raise RecordingError(
            f"--cut: no {kind or 'strike, toss or push'} was found ({'; '.join(words)}); import the take whole, "
            "without --cut, and look at it with carom check; name target and striker with --map"
        )
    return found, words


def _numbered(pieces: Sequence[Trajectory]) -> list[Trajectory]:
    return [replace(each, name=f"{each.name.removesuffix('.csv')}.csv") for each in pieces]


def _about(parts: Sequence[Part], joined: Sequence[Imported], cuts: Sequence[str]) -> dict[str, Any]:
    """What the header says of an import."""
    several = len({part.file for part in parts}) > 1
    done: list[str] = []
    left: list[str] = []
    for part in parts:
        name = f"{part.file.name}: " if several else ""
        done += [name + words for words in part.said]
        left += [name + words for words in part.left_out]
    for each in joined:
        done += [words for words in each.said if not words.startswith("left out: ")]
        left += [words.removeprefix("left out: ") for words in each.said if words.startswith("left out: ")]
    return {
        "with": versions(())["carom"],
        "files": [_of_file(part) for part in parts],
        "done": _brief([*done, *cuts]),
        "left_out": _brief(left),
    }


def _brief(words: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(words))
    return found if len(found) <= MOST_WORDS else [*found[:MOST_WORDS], f"and {len(found) - MOST_WORDS} more lines"]


def _of_file(part: Part) -> dict[str, Any]:
    take = part.take
    made: dict[str, Any] = {"file": part.file.name}
    if take.name not in (part.file.stem, part.file.name):
        made["take"] = take.name
    return made | {
        "format": f"{take.format} {take.version}".strip(),
        "sha256": sha256(part.file.read_bytes()).hexdigest() if part.file.is_file() else None,
        "samples": max((len(track.time) for track in part.tracks), default=0),
        "rate": None if take.rate is None else float(f"{take.rate:.9g}"),
        "clock": take.clock,
        "up": f"{part.up.axis}: {part.up.how}",
    }
