"""OptiTrack's older CSV, version 1.1 (Tracking Tools, Motive 1.0 to 1.4): each row's first cell says what it is."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from carom.recordings.formats.clean import lost_points, ordered, rate_of, track
from carom.recordings.formats.stated import compare_counts
from carom.recordings.formats.take import Markers, NoPosesError, ReadOptions, Take, Track
from carom.recordings.formats.text_rows import LENGTHS, Rows, number, read_rows, text_of, unique
from carom.state import Array

NAME = "OptiTrack CSV 1.1 (rows)"
BODY, MARKER = 11, 5  #: cells of a body in a frame's row (id, x y z, qx qy qz qw, three angles), and of a marker
BODY_ROWS = ("rigidbody", "trackable")
MOST_MARKERS = 400  #: unlabelled ones get a new number each time they appear


def recognise(path: Path, head: bytes) -> float:
    """Sure where rows begin with their kind and one of them is a frame's."""
    text = text_of(head)
    if text is None:
        return 0.0
    first = re.match(r"\s*(comment|righthanded|lefthanded|info)\b", text, flags=re.IGNORECASE)
    frame = re.search(r"^frame,\s*\d+,\s*-?[\d.]+", text, flags=re.IGNORECASE | re.MULTILINE)
    known = re.search(r"^info,\s*(version|framecount|rigidbodycount|trackablecount)", text, flags=re.I | re.M)
    if first and (frame or known):
        return 0.97
    return 0.8 if re.match(r"frame,\s*\d+,\s*-?[\d.]+,\s*\d+", text, flags=re.IGNORECASE) else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The take in such a file."""
    rows = read_rows(path, ",")
    told, left = list[str](), list[str]()
    info = {cells[1].lower(): cells[2] for cells in rows.cells if cells[0].lower() == "info" and len(cells) > 2}
    mirrored = any(cells[0].lower() == "lefthanded" for cells in rows.cells[:200])
    frames = [i for i, cells in enumerate(rows.cells) if cells[0].lower() == "frame"]
    names = _names(rows, frames[0] if frames else len(rows.cells))
    if len(frames) > 1 and frames[-1] == len(rows.cells) - 1 and not rows.ended:
        frames.pop()  # its last cell is a name, of which a half looks like a whole one
        told.append("the last row has no line end, and may be cut off: it is left out")
    if not frames:
        raise rows.fault("no row that begins with 'frame'; expected samples", code="empty")
    time = np.full(len(frames), np.nan)
    poses: dict[str, Array] = {}
    points: dict[tuple[str, str], dict[int, list[float]]] = {}
    for place, at in enumerate(frames):
        time[place] = _frame(rows, at, place, len(frames), poses, points)
    unit = LENGTHS[options.length_unit or "m"]
    sign = np.array([1.0, 1.0, -1.0]) if mirrored else np.ones(3)
    told += _without_stale(rows, frames, poses, names)
    tracks, words = _tracks(poses, names, time, unit * sign, mirrored)
    markers, lost = _markers(points, time, unit * sign)
    left += lost
    told += words
    if mirrored:
        told.append("the file is left-handed: its z axis is turned around")
    told += compare_counts(info.get("framecount"), len(frames))
    if not tracks and not markers:
        raise NoPosesError(f"{path}: no rigid bodies: {len(frames)} frames with neither bodies nor markers")
    return (
        Take(
            name=path.stem,
            format=NAME,
            version=info.get("version", ""),
            tracks=tracks,
            markers=markers,
            clock="stamps of the rows",
            rate=rate_of(time[ordered(time)[0]]),
            said=tuple(told),
            left_out=tuple(left),
        ),
    )


def _names(rows: Rows, before: int) -> dict[str, str]:
    """Names of bodies by their numbers, from the rows that define them."""
    return {
        cells[2]: cells[1]
        for cells in rows.cells[:before]
        if cells[0].lower() in BODY_ROWS and len(cells) > 2 and not _is_index(cells[1])
    }


def _is_index(cell: str) -> bool:
    return cell.lstrip("-").isdigit()


def _whole(cells: list[str]) -> bool:
    """Whether a frame's row has as many cells as it says."""
    try:
        bodies = int(cells[3])
        markers = int(cells[4 + BODY * bodies])
    except (ValueError, IndexError):
        return False
    return len(cells) >= 5 + BODY * bodies + MARKER * markers


def _frame(
    rows: Rows,
    at: int,
    place: int,
    count: int,
    poses: dict[str, Array],
    points: dict[tuple[str, str], dict[int, list[float]]],
) -> float:
    """Put a frame's poses and points where they belong; its time [s]."""
    cells = rows.cells[at]
    if not _whole(cells):
        raise rows.fault(
            f"expected counts of bodies and markers, and {BODY} and {MARKER} cells for each, got {len(cells)} cells; "
            "export the take again",
            code="row-length",
            row=at,
        )
    try:
        bodies = int(cells[3])
        for body in range(bodies):
            first = 4 + BODY * body
            pose = poses.setdefault(cells[first], np.full((count, 7), np.nan))
            pose[place] = [number(cell) for cell in cells[first + 1 : first + 8]]
        first = 5 + BODY * bodies
        for marker in range(int(cells[first - 1])):
            x, y, z, ident, name = cells[first + MARKER * marker : first + MARKER * (marker + 1)]
            points.setdefault((name, ident), {})[place] = [number(x), number(y), number(z)]
        return number(cells[2])
    except ValueError as error:
        raise rows.fault(f"not a row of numbers ({error})", code="not-a-number", row=at) from error


def _without_stale(rows: Rows, frames: list[int], poses: dict[str, Array], names: dict[str, str]) -> list[str]:
    """Empty poses of frames in which a body was not tracked: its last pose stands there; and what is to be said of it.

    A row after a frame's own says for how many frames a body was lost: kind, frame, time, name, number, frames.
    """
    place = {rows.cells[at][1]: number for number, at in enumerate(frames)}
    stale: dict[str, list[int]] = {}
    for cells in rows.cells[frames[0] :]:
        if (
            cells[0].lower() in BODY_ROWS
            and len(cells) > 5
            and cells[5].isdigit()
            and int(cells[5]) > 0
            and cells[1] in place
        ):
            stale.setdefault(cells[4], []).append(place[cells[1]])
    told = []
    for ident, found in stale.items():
        if ident in poses and len(found) < len(frames):
            poses[ident][found] = np.nan
            told.append(
                f"{names.get(ident, f'body {ident}')}: {len(found)} poses are from before it was lost: left out"
            )
    return told


def _tracks(
    poses: dict[str, Array], names: dict[str, str], time: Array, scale: Array, mirrored: bool
) -> tuple[tuple[Track, ...], list[str]]:
    tracks, told = [], list[str]()
    called = unique([names.get(ident, f"body {ident}") for ident in poses], "body")
    for name, pose in zip(called, poses.values(), strict=True):
        turn = pose[:, [6, 3, 4, 5]] * (np.array([1.0, -1.0, -1.0, 1.0]) if mirrored else 1.0)
        lost = (pose[:, :3] == 0).all(axis=-1) & ((pose[:, 3:6] == 0).all(axis=-1))
        turn[lost] = np.nan  # Tracking Tools writes an untracked body at the origin, not turned
        position = np.where(lost[:, None], np.nan, pose[:, :3]) * scale
        made, words = track(name, time, position, turn)
        tracks.append(made)
        told += words
    return tuple(tracks), told


def _markers(
    points: dict[tuple[str, str], dict[int, list[float]]], time: Array, scale: Array
) -> tuple[tuple[Markers, ...], list[str]]:
    if not points:
        return (), []
    seen = Counter({key: len(each) for key, each in points.items()})
    kept = [key for key, _ in seen.most_common(MOST_MARKERS)]
    left = [f"{len(points) - len(kept)} markers that were seldom seen"] if len(kept) < len(points) else []
    position = np.full((len(time), len(kept), 3), np.nan)
    for column, key in enumerate(kept):
        for place, point in points[key].items():
            position[place, column] = point
    rows, _ = ordered(time)
    names = unique([name or f"marker {ident}" for name, ident in kept], "marker")
    return (Markers(names, time[rows], lost_points(position, zero=True)[rows] * scale),), left
