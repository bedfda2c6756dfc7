"""Qualisys Track Manager TSV: trajectories of markers (3D), and rigid bodies (6D)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from carom.core.errors import short
from carom.core.rotations import from_scipy
from carom.recordings.formats.clean import lost_points, ordered, rate_of, track
from carom.recordings.formats.stated import compare_counts, compare_rates, stamps
from carom.recordings.formats.take import Markers, NoPosesError, ReadOptions, Take, Track
from carom.recordings.formats.text_rows import LENGTHS, Rows, is_number, numbers, read_rows, text_of, unique
from carom.recordings.formats.three_angles import EULER, read_as
from carom.state import Array

NAME = "Qualisys QTM TSV"
KEYS = (
    "FILE_VERSION", "NO_OF_FRAMES", "NO_OF_CAMERAS", "NO_OF_MARKERS", "NO_OF_BODIES", "FREQUENCY", "NO_OF_ANALOG",
    "ANALOG_FREQUENCY", "DESCRIPTION", "TIME_STAMP", "DATA_INCLUDED", "MARKER_NAMES", "BODY_NAMES", "TRAJECTORY_TYPES",
    "EVENT", "NO_OF_SAMPLES", "NO_OF_DATA_TYPES", "FORCE_PLATE_NAME", "CHANNEL_NAMES", "SKELETON_NAMES", "UNITS",
)  # fmt: skip
LABELS = ("X", "Y", "Z", "ROLL", "PITCH", "YAW", "RESIDUAL", "QX", "QY", "QZ", "QW", *(f"ROT[{i}]" for i in range(9)))
BODY = ("X", "Y", "Z", "ROLL", "PITCH", "YAW", "RESIDUAL", *(f"ROT[{i}]" for i in range(9)))
NEAR_UNIT = 0.02  #: of orthonormal, by which a matrix may be off before its sample is lost


@dataclass(frozen=True)
class Group:
    """Columns of one marker or body by their labels, upper case."""

    name: str
    columns: dict[str, int] = field(default_factory=dict)


def recognise(path: Path, head: bytes) -> float:
    """Sure where the first lines are keys of such a header."""
    text = text_of(head)
    if text is None:
        return 0.0
    lines = text.lstrip().splitlines()[:6]
    known = sum(line.split("\t")[0].strip() in KEYS for line in lines)
    return 1.0 if known >= 2 else 0.9 if known and len(lines) < 3 else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The take in a TSV export of markers or of bodies."""
    rows = read_rows(path, "\t")
    count = next((i for i, cells in enumerate(rows.cells) if cells[0] not in KEYS), len(rows.cells))
    stated = {cells[0]: cells[1:] for cells in rows.cells[:count]}
    value = {key: (cells[0] if cells else "") for key, cells in stated.items()}
    _refuse_others(rows, value)
    groups, first, width, timed = _columns_of(rows, count, stated)
    data, told = numbers(rows, first, width)
    if not len(data):
        raise rows.fault("a header and no rows; expected samples", code="empty")
    words: Sequence[str]
    if timed:
        time, clock, words = stamps(data[:, 0], data[:, 1], value.get("FREQUENCY"), options.rate)
    else:
        time, clock, words = stamps(
            np.arange(float(len(data))), np.full(1, np.nan), value.get("FREQUENCY"), options.rate
        )
    if len(time) != len(data) or not np.isfinite(time).any():
        raise rows.fault("neither a column Time nor a FREQUENCY; give --rate HZ", code="missing-column", row=count)
    unit = LENGTHS[options.length_unit or "mm"]
    tracks, done = _tracks(rows, groups, time, data, unit, options.angles)
    markers = _markers([g for g in groups if not _is_body(g)], time, data, unit)
    if not tracks and not markers:
        raise NoPosesError(f"{path}: no rigid bodies: {len(data)} frames and no column of a marker or a body")
    stamps_used = (tracks or markers)[0].time
    said = [*told, *words, f"{options.length_unit or 'mm'} converted to metres", *done]
    said += compare_counts(value.get("NO_OF_FRAMES"), len(data))
    said += compare_counts(value.get("NO_OF_MARKERS"), len(groups) - len(tracks), "markers") if markers else []
    said += compare_rates(value.get("FREQUENCY"), rate_of(stamps_used))
    left = ["columns of residuals"] if any("RESIDUAL" in g.columns for g in groups) else []
    return (
        Take(
            name=path.stem,
            format=NAME,
            version=value.get("FILE_VERSION", ""),
            tracks=tracks,
            markers=markers,
            clock=clock,
            rate=rate_of(stamps_used),
            said=tuple(said),
            left_out=tuple(left),
        ),
    )


def _refuse_others(rows: Rows, value: Mapping[str, str]) -> None:
    kind = value.get("DATA_INCLUDED", "")
    if kind.upper() == "2D":
        raise NoPosesError(f"{rows.path}: no rigid bodies: 2D data of cameras; export 3D or 6D")
    if "MARKER_NAMES" not in value and "BODY_NAMES" not in value and kind.upper() not in ("3D", "6D"):
        what = (
            "force plates" if "FORCE_PLATE_NAME" in value else "analog channels" if "NO_OF_SAMPLES" in value else kind
        )
        if what:
            raise NoPosesError(f"{rows.path}: no rigid bodies: a QTM export of {short(what)}; export 3D or 6D")


def _columns_of(rows: Rows, count: int, stated: Mapping[str, list[str]]) -> tuple[list[Group], int, int, bool]:
    """Markers and bodies with their columns, the first row of numbers, how many columns, whether two are times."""
    names = stated.get("BODY_NAMES") or stated.get("MARKER_NAMES") or []
    size = len(BODY) if stated.get("BODY_NAMES") else 3
    if count >= len(rows.cells):
        raise rows.fault("a header and no rows; expected samples", code="empty")
    labels = rows.cells[count]
    if all(is_number(cell) for cell in labels):  # exported without names of columns
        given = _trimmed(labels)
        timed = len(given) % size == 2
        offset = 2 if timed else 0
        if (len(given) - offset) % size:
            raise rows.fault(
                f"expected {size} columns for each of {len(names)} names, got {len(given)}; export it with a header",
                code="row-length",
                row=count,
            )
        many = (len(given) - offset) // size
        called = unique([*names[:many], *([""] * (many - len(names)))], "marker")
        parts = BODY if size > 3 else BODY[:3]
        groups = [
            Group(name, {label: offset + size * i + k for k, label in enumerate(parts)})
            for i, name in enumerate(called)
        ]
        return groups, count, len(given), timed
    labels = _trimmed(labels)
    timed = labels[0].lower() == "frame" and len(labels) > 1 and labels[1].lower() == "time"
    bodies = bool(stated.get("BODY_NAMES"))
    return _grouped(rows, count, labels, 2 if timed else 0, bodies=bodies), count + 1, len(labels), timed


def _trimmed(cells: Sequence[str]) -> list[str]:
    """Cells without the empty ones at the end."""
    past = len(cells)
    while past and not cells[past - 1]:
        past -= 1
    return list(cells[:past])


def _grouped(rows: Rows, count: int, labels: Sequence[str], offset: int, *, bodies: bool) -> list[Group]:
    groups: list[Group] = []
    others: list[str] = []
    for column in range(offset, len(labels)):
        name, label = _split(labels[column])
        if not labels[column]:
            continue  # between two bodies
        if bodies and not label:
            others.append(labels[column])  # angles have the names that a user gives them
            continue
        if not label:
            raise rows.fault(
                f"unknown column {short(labels[column])!r}; expected names that end in X, Y, Z, Rot[0] and the like",
                code="bad-value",
                row=count,
                column=str(column + 1),
            )
        if not groups or label in groups[-1].columns or (name and name != groups[-1].name):
            groups.append(Group(name))
        groups[-1].columns[label] = column
    if others and not all(_has_matrix(g) or "QW" in g.columns for g in groups):
        raise rows.fault(
            f"angles are called {short(', '.join(others[:3]))}, which does not say what they are; export the rotation "
            "matrices with them",
            code="bad-value",
            row=count,
        )
    called = unique([g.name for g in groups], "marker")
    return [Group(name, g.columns) for name, g in zip(called, groups, strict=True)]


def _split(cell: str) -> tuple[str, str]:
    """A column's body and what it holds of it: 'box X' is x of box, 'Rot[0]' is of the body before."""
    match = re.fullmatch(r"(?:(.*)[ _])?(\S+)", cell)
    if match and match[2].upper() in LABELS:
        return (match[1] or "").strip(), match[2].upper()
    return "", ""


def _has_matrix(group: Group) -> bool:
    return all(f"ROT[{i}]" in group.columns for i in range(9))


def _is_body(group: Group) -> bool:
    return any(label in group.columns for label in ("ROT[0]", "ROLL", "QW"))


def _markers(groups: Sequence[Group], time: Array, data: Array, unit: float) -> tuple[Markers, ...]:
    chosen = [g for g in groups if {"X", "Y", "Z"} <= set(g.columns)]
    if not chosen:
        return ()
    rows, _ = ordered(time)
    position = np.stack([data[:, [g.columns[axis] for axis in "XYZ"]] for g in chosen], axis=1)[rows]
    return (Markers(tuple(g.name for g in chosen), time[rows], lost_points(position, zero=True) * unit),)


def _tracks(
    rows: Rows, groups: Sequence[Group], time: Array, data: Array, unit: float, asked: str | None
) -> tuple[tuple[Track, ...], list[str]]:
    tracks, told = [], list[str]()
    for group in groups:
        if not (_is_body(group) and {"X", "Y", "Z"} <= set(group.columns)):
            continue
        position = data[:, [group.columns[axis] for axis in "XYZ"]]
        quaternion, words = _rotation(rows, data, group, asked)
        lost = ~np.isfinite(quaternion).all(axis=-1) & (
            (position == 0).all(axis=-1) | ~np.isfinite(position).any(axis=-1)
        )
        position = np.where(lost[:, None], np.nan, position) * unit
        made, done = track(group.name, time, position, quaternion)
        tracks.append(made)
        told += [word for word in (*words, *done) if word not in told]
    return tuple(tracks), told


def _rotation(rows: Rows, data: Array, group: Group, asked: str | None) -> tuple[Array, list[str]]:
    """Quaternions [T, 4] w-first from the matrix, which is written column after column; all zeros: not seen."""
    from scipy.spatial.transform import Rotation

    found = np.full((len(data), 4), np.nan)
    columns = group.columns
    if "QW" in columns:
        four = data[:, [columns[label] for label in ("QW", "QX", "QY", "QZ")]]
        return np.where((four == 0).all(axis=-1)[:, None], np.nan, four), []
    if _has_matrix(group):
        flat = data[:, [columns[f"ROT[{i}]"] for i in range(9)]]
        matrix = flat.reshape(-1, 3, 3).transpose(0, 2, 1)
        good = np.asarray(np.isfinite(flat).all(axis=-1))
        good[good] = np.abs(matrix[good] @ matrix[good].transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2)) < NEAR_UNIT
        good[good] = np.linalg.det(matrix[good]) > 0
        if good.any():
            found[good] = from_scipy(Rotation.from_matrix(matrix[good]))
        seen = np.isfinite(flat).all(axis=-1) & (flat != 0).any(axis=-1)
        wrong = int((seen & ~good).sum())
        return found, [f"{wrong} matrices are no rotations: taken as lost"] if wrong else []
    at = [columns[label] for label in ("ROLL", "PITCH", "YAW") if label in columns]
    if at != sorted(at) and asked is None:
        raise rows.fault(
            f"the angles of body '{short(group.name)}' are not in QTM's own order (Roll, Pitch, Yaw), and there is no "
            "rotation matrix beside them; export 6D data with rotation matrices, or say what they are with --angles",
            code="bad-value",
        )
    angles = data[:, at]
    known = np.asarray(np.isfinite(angles).all(axis=-1))
    place = data[:, [columns[axis] for axis in "XYZ"]]
    known &= ~((angles == 0).all(axis=-1) & (place == 0).all(axis=-1))
    if angles.shape[1] == 3 and known.any():
        found[known] = from_scipy(read_as(asked or EULER, np.radians(angles[known])))
    if asked is not None:
        return found, [f"no matrix: roll, pitch and yaw [deg] are read as {asked}, as you say"]
    return found, [
        "no matrix: roll, pitch and yaw [deg] are read as QTM's default, x, then the new y, then the new z (say "
        "--angles if yours are others)"
    ]
