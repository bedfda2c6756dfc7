"""OptiTrack Motive CSV, versions 1.2 to 1.25 and what looks like them; the row form 1.1 is read by `motive_rows`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from carom.core.errors import short
from carom.core.rotations import from_scipy
from carom.recordings.formats.clean import lost_points, ordered, rate_of, track
from carom.recordings.formats.stated import compare_counts, compare_rates, stamps
from carom.recordings.formats.take import Markers, NoPosesError, ReadOptions, Take, Track
from carom.recordings.formats.text_rows import LENGTHS, Rows, numbers, read_rows, separator_of, text_of, unique
from carom.state import Array

NAME = "OptiTrack Motive CSV"
KEYS = (
    "Format Version", "Take Name", "Take Notes", "Capture Frame Rate", "Export Frame Rate", "Capture Start Time",
    "Capture Start Frame", "Total Frames in Take", "Total Exported Frames", "Rotation Type", "Length Units",
    "Coordinate Space",
)  # fmt: skip
BODIES = ("rigid body", "bone", "trained markerset bone")
POINTS = ("marker", "markerset marker", "unlabeled marker")
EXPECTED = ("rigid body marker", "bone marker")  #: where a solved body has its markers: no measurement
ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


@dataclass(frozen=True)
class Group:
    """The columns of one body or marker."""

    kind: str  #: lower case: "rigid body", "marker", ...
    name: str
    columns: Mapping[tuple[str, str], int]  #: (what, axis), lower case -> column


def recognise(path: Path, head: bytes) -> float:
    """Sure where the first line is Motive's; likely where its four rows of labels stand above the columns."""
    text = text_of(head)
    if text is None:
        return 0.0
    if text.lstrip().lstrip('"').startswith("Format Version"):
        return 1.0
    return 0.9 if re.search(r"^([,;])Type\1.*\n(.*\n){0,4}Frame[,;]Time", text[:20000].replace("\r", "")) else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The take in a Motive export."""
    rows = read_rows(path, separator_of(path, r'^"?FrameSEP"?Time'))
    stated = _stated(rows)
    top = next((i for i, cells in enumerate(rows.cells[:12]) if cells[0].lower() == "frame" and len(cells) > 1), None)
    if top is None:
        raise rows.fault(
            "no row of columns that begins with 'Frame,Time' in the first lines; export the take again, with header",
            code="bad-file",
        )
    groups = _groups(rows, top)
    left = _blanked(rows, top, groups)
    data, said = numbers(rows, top + 1, len(rows.cells[top]))
    if len(data) == 0:
        raise rows.fault("a header and no rows; expected samples", code="empty")
    unit, words = _unit(rows, stated, options)
    told = [*said, *words]
    time, clock, words = stamps(data[:, 0], data[:, 1], stated.get("Export Frame Rate"), options.rate)
    told += words
    tracks, words = _tracks(rows, groups, time, data, stated, unit)
    told += words
    points, words = _points(groups, time, data, unit, bodies=bool(tracks))
    left += words
    if not tracks and not points:
        raise NoPosesError(
            f"{path}: no rigid bodies: the take has {len(data)} frames and neither bodies nor markers; define a rigid "
            "body in Motive, or export its markers"
        )
    if stated.get("Coordinate Space", "").lower() == "local":
        told.append("bones were exported in local coordinates: only rigid bodies are read")
    told += compare_counts(stated.get("Total Exported Frames"), len(data))
    told += compare_rates(stated.get("Export Frame Rate"), rate_of(time))
    return (
        Take(
            name=path.stem,
            format=NAME,
            version=stated.get("Format Version", ""),
            tracks=tracks,
            markers=points,
            clock=clock,
            rate=rate_of(time),
            said=tuple(told),
            left_out=tuple(left),
        ),
    )


def _stated(rows: Rows) -> dict[str, str]:
    """The first line's values by key: names and notes may hold commas, so keys are looked for."""
    cells = rows.cells[0] if rows.cells else []
    places = [i for i, cell in enumerate(cells) if cell in KEYS]
    return {
        cells[at]: ",".join(cells[at + 1 : following]).strip()
        for at, following in zip(places, [*places[1:], len(cells)], strict=True)
    }


def _groups(rows: Rows, top: int) -> list[Group]:
    """Columns by body and marker, from the rows of labels above the columns' own."""
    first = 1 if rows.cells[0][0] in KEYS else 0
    width = len(rows.cells[top])
    labels = [_wide(cells, width) for cells in rows.cells[first:top]]
    named = {cells[1].lower(): cells for cells in labels if cells[1]}
    kinds = next(
        (cells for cells in labels if any(c.lower() in (*BODIES, *POINTS, *EXPECTED) for c in cells[2:])), None
    )
    if kinds is None and "name" in named:
        kinds = _kinds(named["name"], labels[-1])  # somebody has taken the row of types away
        labels = [kinds, *labels]
    if kinds is None:
        return []
    at = next(i for i, cells in enumerate(labels) if cells is kinds)
    names = named.get("name", labels[at + 1] if at + 1 < len(labels) else kinds)
    ids = named.get("id", labels[at + 2] if at + 2 < len(labels) - 1 else [""] * width)
    what, axes = labels[-1], rows.cells[top]
    groups: list[Group] = []
    before: tuple[str, str, str] | None = None
    columns: dict[tuple[str, str], int] = {}
    for column in range(2, width):
        key = (kinds[column].lower(), names[column], ids[column])
        place = (what[column].lower(), axes[column].lower())
        if not key[0]:
            continue
        if key != before or place in columns:
            columns = {}
            groups.append(Group(key[0], key[1], columns))
        columns[place] = column
        before = key
    return groups


def _blanked(rows: Rows, top: int, groups: Sequence[Group]) -> list[str]:
    """Empty columns that belong to no body or marker, such as time codes, which are no numbers; their names."""
    used = {0, 1, *(column for group in groups for column in group.columns.values())}
    spare = [column for column in range(len(rows.cells[top])) if column not in used]
    for cells in rows.cells[top + 1 :]:
        for column in spare:
            if column < len(cells):
                cells[column] = ""
    return [f"column {short(name)}" for column in spare if (name := rows.cells[top][column])]


def _kinds(names: Sequence[str], what: Sequence[str]) -> list[str]:
    """Types of columns where no row states them: what is turned is a body, what has a place only is a marker."""
    turned = {name for name, each in zip(names, what, strict=True) if each.lower() == "rotation"}
    return ["", "", *("Rigid Body" if name in turned else "Marker" if name else "" for name in names[2:])]


def _wide(cells: Sequence[str], width: int) -> list[str]:
    return [*cells, *([""] * (width - len(cells)))][: max(width, 2)] + [""] * max(0, 2 - max(len(cells), width))


def _unit(rows: Rows, stated: Mapping[str, str], options: ReadOptions) -> tuple[float, list[str]]:
    if options.length_unit is not None:
        return LENGTHS[options.length_unit], [f"lengths are in {options.length_unit}, as you say"]
    name = stated.get("Length Units", "")
    if not name:
        return 1.0, ["the header states no unit of length: metres taken"]
    if name.lower() not in LENGTHS:
        raise rows.fault(f"unknown unit of length {short(name)!r}; give it with --length-unit", code="bad-value", row=0)
    factor = LENGTHS[name.lower()]
    return factor, [] if factor == 1 else [f"{name.lower()} converted to metres"]


def _tracks(
    rows: Rows, groups: Sequence[Group], time: Array, data: Array, stated: Mapping[str, str], unit: float
) -> tuple[tuple[Track, ...], list[str]]:
    local = stated.get("Coordinate Space", "").lower() == "local"
    chosen = [
        g
        for g in groups
        if g.kind in BODIES and not (local and g.kind != "rigid body") and ("position", "x") in g.columns
    ]
    tracks, told = [], list[str]()
    for name, group in zip(unique([g.name for g in chosen], "body"), chosen, strict=True):
        position = _columns(data, group, "position", "xyz") * unit
        quaternion, words = _rotation(rows, data, group, stated.get("Rotation Type", ""))
        made, done = track(name, time, position, quaternion, zero=True)
        tracks.append(made)
        told += [word for word in (*words, *done) if word not in told]
    return tuple(tracks), told


def _columns(data: Array, group: Group, what: str, axes: str) -> Array:
    columns = [group.columns.get((what, axis)) for axis in axes]
    return np.stack([data[:, c] if c is not None else np.full(len(data), np.nan) for c in columns], axis=-1)


def _rotation(rows: Rows, data: Array, group: Group, kind: str) -> tuple[Array | None, list[str]]:
    """Quaternions [T, 4] w-first of a body, from quaternions (w last) or Euler angles [deg]."""
    if ("rotation", "x") not in group.columns:
        return None, []
    if ("rotation", "w") in group.columns:
        return _columns(data, group, "rotation", "wxyz"), []
    order = kind.upper() if kind.upper() in ORDERS else ""
    if not order:
        raise rows.fault(
            f"body '{short(group.name)}' has three angles and the header's Rotation Type is {short(kind)!r}; expected "
            f"Quaternion or one of {', '.join(ORDERS)}: export the take again with quaternions",
            code="bad-value",
            row=0,
        )
    from scipy.spatial.transform import Rotation

    angles = _columns(data, group, "rotation", order.lower())
    found = np.full((len(data), 4), np.nan)
    good = np.isfinite(angles).all(axis=-1)
    if good.any():
        # Motive's are relative: about the first axis, then the new second, then the new third
        found[good] = from_scipy(Rotation.from_euler(order, angles[good], degrees=True))
    return found, [f"Euler angles {order} (each about the axis as turned before) became quaternions"]


def _points(
    groups: Sequence[Group], time: Array, data: Array, unit: float, *, bodies: bool
) -> tuple[tuple[Markers, ...], list[str]]:
    """Measured markers, and what was left out beside them."""
    left = list[str]()
    with_place = [g for g in groups if ("position", "x") in g.columns]
    measured = [g for g in with_place if g.kind in POINTS]
    expected = [g for g in with_place if g.kind in EXPECTED]
    if expected and (bodies or measured):
        left.append(
            f"{len(expected)} expected places of markers: they follow from the bodies' poses, nobody measured them"
        )
    elif expected:
        measured = expected
    others = sorted({g.kind for g in groups} - {*BODIES, *POINTS, *EXPECTED})
    left += [f"columns of type {short(kind)}" for kind in others]
    quality = sum(what not in ("position", "rotation") for g in groups for what, _ in g.columns)
    if quality:
        left.append(f"{quality} columns of errors and qualities")
    if not measured:
        return (), left
    rows, _ = ordered(time)
    position = np.stack([_columns(data, g, "position", "xyz") for g in measured], axis=1)[rows]
    names = unique([g.name for g in measured], "marker")
    return (Markers(names, time[rows], lost_points(position, zero=True) * unit),), left
