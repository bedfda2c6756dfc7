"""Vicon CSV: Tracker's objects, Nexus's trajectories and segments; devices and model outputs are named and left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from carom.core.errors import short
from carom.core.rotations import from_scipy
from carom.recordings.formats import three_angles
from carom.recordings.formats.clean import lost_points, ordered, rate_of, track
from carom.recordings.formats.take import Markers, NoPosesError, ReadOptions, Take, Track
from carom.recordings.formats.text_rows import (
    LENGTHS,
    Rows,
    is_number,
    number,
    numbers,
    read_rows,
    separator_of,
    text_of,
    unique,
)
from carom.state import Array

NAME = "Vicon CSV (Tracker, Nexus)"
SECTIONS = (
    "objects", "trajectories", "segments", "devices", "joints", "model outputs", "events", "trajectories - unlabeled",
    "unlabeled trajectories", "centers of mass", "bones",
)  # fmt: skip
POSES = ("objects", "segments", "bones")
POINTS = ("trajectories",)


@dataclass(frozen=True)
class Section:
    """One table of such a file: rows of `Rows.cells`."""

    kind: str
    rate: float  #: [Hz], NaN where the line says none
    names: int  #: row with the names of bodies; that of the labels if there is none
    labels: int  #: row with the labels of columns
    first: int  #: first row of numbers
    past: int


@dataclass(frozen=True)
class Group:
    """Columns of one body or marker by their labels (`TX`, `RW`, `X`)."""

    name: str
    columns: dict[str, int]


def recognise(path: Path, head: bytes) -> float:
    """Sure where the file begins with the name of a section, a rate, and columns that begin with `Frame,Sub Frame`."""
    text = text_of(head)
    if text is None:
        return 0.0
    lines = [re.split(r"[,;\t]", line) for line in text.splitlines()[:8]]
    first = lines[0][0].strip().strip('"').lower() if lines else ""
    columns = any([cell.strip().lower() for cell in line[:2]] == ["frame", "sub frame"] for line in lines)
    if first in SECTIONS:
        return 1.0 if columns or len(lines) < 5 else 0.7
    return 0.85 if columns else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The take in a Vicon export."""
    rows = read_rows(path, separator_of(path, r'^"?FrameSEP"?Sub Frame'))
    sections = _sections(rows)
    tracks, points, told, left = list[Track](), list[Markers](), list[str](), list[str]()
    clock = ""
    for section in sections:
        if section.kind not in (*POSES, *POINTS):
            left.append(f"section '{section.kind.title()}': no poses")
            continue
        groups = _groups(rows, section)
        data, done = numbers(rows, section.first, _width(rows, section), past=section.past)
        told += done
        if not len(data):
            left.append(f"section '{section.kind.title()}': no rows")
            continue
        rate = options.rate or section.rate
        if not rate > 0:
            raise rows.fault(
                "the line after the section's name states no rate, and there is no column of times; give --rate HZ",
                code="missing-key",
                row=section.names,
            )
        time = _times(data[:, 0], data[:, 1], rate)
        clock = "frame numbers over the rate"
        unit = _units(rows, section, options)
        if section.kind in POINTS:
            points += _points(groups, time, data, unit)
        else:
            made, words = _bodies(rows, section, groups, time, data, unit, options.angles)
            tracks += made
            told += words
    if not tracks and not points:
        found = ", ".join(dict.fromkeys(s.kind.title() for s in sections)) or "no section"
        raise NoPosesError(
            f"{path}: no rigid bodies: a Vicon export of {found}; poses are in Tracker's 'Objects', points in Nexus's "
            "'Trajectories': export those"
        )
    told.append("lengths converted to metres") if any(LENGTHS["mm"] == u for u in _all_units(rows, sections)) else None
    return (
        Take(
            name=path.stem,
            format=NAME,
            tracks=tuple(tracks),
            markers=tuple(points),
            clock=clock,
            rate=rate_of((tracks or points)[0].time),
            said=tuple(dict.fromkeys(told)),
            left_out=tuple(left),
        ),
    )


def _times(frame: Array, part: Array, rate: float) -> Array:
    """Stamps [T] s from frames, which count from 1, and their parts, which count from 0; `rate` is that of the rows."""
    parts = np.nan_to_num(part)
    most = int(parts.max(initial=0.0)) + 1
    return np.asarray(((frame - 1) * most + parts) / rate)


def _sections(rows: Rows) -> list[Section]:
    """Tables of the file: each begins with a name, a rate, names of bodies, labels of columns and units."""
    tops = [
        i
        for i, cells in enumerate(rows.cells)
        if [cell.lower() for cell in cells[:2]] == ["frame", "sub frame"] and not is_number(cells[0])
    ]
    found = []
    for place, top in enumerate(tops):
        begin = next((i for i in range(top, max(top - 5, -1), -1) if rows.cells[i][0].lower() in SECTIONS), top)
        kind = rows.cells[begin][0].lower() if begin != top else _guess(rows.cells[top])
        rate = next((v for i in range(begin, top) if (v := _single(rows.cells[i])) is not None), float("nan"))
        past = len(rows.cells)
        if place + 1 < len(tops):
            following = tops[place + 1]
            past = next(
                (i for i in range(following, following - 5, -1) if rows.cells[i][0].lower() in SECTIONS), following
            )
        first = top + 1
        while first < past and not _is_row(rows.cells[first]):
            first += 1
        names = max(top - 1, begin if begin != top else 0)
        found.append(Section(kind, rate, names, top, first, past))
    if not found:
        kind = rows.cells[0][0] if rows.cells else ""
        if kind.lower() in ("objects", *SECTIONS):
            raise rows.fault(
                f"'{kind}' without a row 'Frame,Sub Frame,...'; the file is cut off: export it again", code="bad-file"
            )
        raise rows.fault("no row 'Frame,Sub Frame,...'; expected a Vicon export", code="bad-file")
    return found


def _guess(labels: Sequence[str]) -> str:
    return "objects" if any(label.upper().startswith("TX") for label in labels) else "trajectories"


def _single(cells: Sequence[str]) -> float | None:
    """The number in a row that holds nothing else."""
    if not cells[0] or any(cells[1:]):
        return None
    try:
        return number(cells[0])
    except ValueError:
        return None


def _is_row(cells: Sequence[str]) -> bool:
    return bool(cells[0]) and is_number(cells[0])


def _width(rows: Rows, section: Section) -> int:
    return len(rows.cells[section.labels])


def _labels(rows: Rows, section: Section) -> list[str]:
    return [label.upper() for label in rows.cells[section.labels]]


def _units(rows: Rows, section: Section, options: ReadOptions) -> dict[int, float]:
    """Factor to metres or radians for each column, from the row of units; millimetres and radians where none is."""
    labels = _labels(rows, section)
    stated = rows.cells[section.labels + 1] if section.first > section.labels + 1 else []
    found = {}
    for column, label in enumerate(labels):
        unit = stated[column].lower() if column < len(stated) else ""
        if label.startswith("R"):
            found[column] = np.pi / 180 if unit.startswith("deg") or unit == "°" else 1.0
        else:
            found[column] = LENGTHS[options.length_unit] if options.length_unit else LENGTHS.get(unit, LENGTHS["mm"])
    return found


def _all_units(rows: Rows, sections: Sequence[Section]) -> set[float]:
    return {u for s in sections if s.kind in (*POSES, *POINTS) for u in _units(rows, s, ReadOptions()).values()}


def _groups(rows: Rows, section: Section) -> list[Group]:
    """Columns by body: a name stands above the first of its columns, often above some later ones too."""
    labels = _labels(rows, section)
    above = rows.cells[section.names] if section.names < section.labels else []
    groups: list[Group] = []
    for column in range(2, len(labels)):
        written = above[column] if column < len(above) else ""
        name = _plain(written) if written else (groups[-1].name if groups else "")
        if not groups or (written and name != groups[-1].name) or labels[column] in groups[-1].columns:
            groups.append(Group(name, {}))
        if labels[column]:
            groups[-1].columns[labels[column]] = column
    return groups


def _plain(name: str) -> str:
    """A body's name without Tracker's additions: 'Global Angle box:box' is 'box'."""
    words = re.sub(r"^(global|local)\s+(angle|translation|position|rotation)?\s*(\([^)]*\))?\s*", "", name, flags=re.I)
    first, _, second = words.partition(":")
    return first if second and first.strip() == second.strip() else words


def _points(groups: Sequence[Group], time: Array, data: Array, unit: dict[int, float]) -> list[Markers]:
    chosen = [g for g in groups if {"X", "Y", "Z"} <= set(g.columns)]
    if not chosen:
        return []
    rows, _ = ordered(time)
    position = np.stack([_columns(data, g, ("X", "Y", "Z"), unit) for g in chosen], axis=1)[rows]
    return [Markers(unique([g.name for g in chosen], "marker"), time[rows], lost_points(position, zero=True))]


def _columns(data: Array, group: Group, labels: Sequence[str], unit: dict[int, float]) -> Array:
    return np.stack([data[:, group.columns[label]] * unit[group.columns[label]] for label in labels], axis=-1)


def _bodies(
    rows: Rows,
    section: Section,
    groups: Sequence[Group],
    time: Array,
    data: Array,
    unit: dict[int, float],
    asked: str | None,
) -> tuple[list[Track], list[str]]:
    chosen = [g for g in groups if {"TX", "TY", "TZ"} <= set(g.columns)]
    above = rows.cells[section.names] if section.names < section.labels else []
    three = [g for g in chosen if {"RX", "RY", "RZ"} <= set(g.columns) and "RW" not in g.columns]
    kind, told = three_angles.kind_of(asked, above, [_turning(data, g, unit) for g in three])
    tracks = []
    for name, group in zip(unique([g.name for g in chosen], "body"), chosen, strict=True):
        position = _columns(data, group, ("TX", "TY", "TZ"), unit)
        made, done = track(name, time, position, _rotation(data, group, unit, kind), zero=True)
        tracks.append(made)
        told += done
    if not chosen:
        raise rows.fault(
            f"no columns TX, TY, TZ under '{short(rows.cells[section.names][-1])}'; expected an object's position",
            code="missing-column",
            row=section.labels,
        )
    return tracks, told


def _three(data: Array, group: Group, unit: dict[int, float]) -> tuple[Array, Array]:
    """Three angles [T, 3] rad, and in which rows a body was seen [T]."""
    angles = _columns(data, group, ("RX", "RY", "RZ"), unit)
    place = np.stack([data[:, group.columns[label]] for label in ("TX", "TY", "TZ")], axis=-1)
    lost = ~np.isfinite(angles).all(axis=-1) | ((place == 0).all(axis=-1) & (angles == 0).all(axis=-1))
    return angles, np.asarray(~lost)


def _turning(data: Array, group: Group, unit: dict[int, float]) -> three_angles.Turning:
    angles, seen = _three(data, group, unit)
    return three_angles.Turning(angles[seen], _columns(data, group, ("TX", "TY", "TZ"), unit)[seen])


def _rotation(data: Array, group: Group, unit: dict[int, float], kind: str) -> Array | None:
    """Quaternions [T, 4] w-first from RX RY RZ RW (w last), or from three angles of a kind."""
    if not {"RX", "RY", "RZ"} <= set(group.columns):
        return None
    if "RW" in group.columns:
        return np.stack([data[:, group.columns[label]] for label in ("RW", "RX", "RY", "RZ")], axis=-1)
    angles, seen = _three(data, group, unit)
    found = np.full((len(data), 4), np.nan)
    if seen.any():
        found[seen] = from_scipy(three_angles.read_as(kind, angles[seen]))
    return found
