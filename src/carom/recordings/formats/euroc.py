"""Trajectories of the EuRoC kind: CSV with stamps in nanoseconds, x, y, z, qw, qx, qy, qz (w first), and more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from carom.core.errors import RecordingError
from carom.recordings.formats.clean import ordered, rate_of, track
from carom.recordings.formats.pose_rows import NANOSECOND, UNITS, are_unit, first_rows, if_far, rises, rows_of, unit_of
from carom.recordings.formats.take import ReadOptions, Signal, Take
from carom.recordings.formats.text_rows import LENGTHS, numbers, read_rows
from carom.state import Array

NAME = "EuRoC trajectory"
SENSORS = ("state_groundtruth_estimate0", "mocap0", "vicon0", "pose0", "leica0", "gt0")  #: folders, the best one first
PLAIN = ("timestamp", "p_x", "p_y", "p_z", "q_w", "q_x", "q_y", "q_z")
WIDTHS = (4, 8, 17)
EARLIEST = 1e17  #: [ns] of a clock that counts nanoseconds


def recognise(path: Path, head: bytes) -> float:
    """By the names of its columns; without them, by stamps in nanoseconds and unit quaternions after the place."""
    if path.is_dir():
        return 0.9 if _data_files(path) else 0.0
    found = first_rows(head, ",")
    if found is None:
        return 0.0
    rows, comments = found
    names = _names(comments[-1:], rows.shape[1])
    if names is not None:
        return 0.95
    # 0.45 and no more for 4 columns: any table may have them
    if rows.shape[1] not in WIDTHS or not rises(rows[:, 0]) or not (rows[:, 0] > EARLIEST).all():
        return 0.0
    return 0.85 if rows.shape[1] > 4 and are_unit(rows[:, 4:8]) else 0.3


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The body of a file; of a folder, a body for each sensor that measured poses."""
    if path.is_file():
        return (_read(path, path.parent.name if path.name == "data.csv" else path.stem, options),)
    files = _data_files(path)
    if not files:
        raise RecordingError(f"{path}: expected folders like mav0/{SENSORS[0]} with a data.csv, got none")
    takes = [_read(file, file.parent.name, options) for file in files]
    return (
        Take(
            path.resolve().name,
            NAME,
            tracks=tuple(each for take in takes for each in take.tracks),
            signals=tuple(
                Signal(f"{file.parent.name}.{each.name}", each.time, each.values, each.unit)
                for file, take in zip(files, takes, strict=True)
                for each in take.signals
            ),
            clock=takes[0].clock,
            rate=takes[0].rate,
            said=tuple(f"{f.parent.name}: {words}" for f, t in zip(files, takes, strict=True) for words in t.said),
            left_out=("cameras and inertial sensors; where sensors sit on the body (sensor.yaml)",),
        ),
    )


def _data_files(folder: Path) -> list[Path]:
    return [
        place / name / "data.csv"
        for place in (folder, folder / "mav0")
        for name in SENSORS
        if (place / name / "data.csv").is_file()
    ]


def _names(lines: Sequence[str], width: int, *, loosely: bool = False) -> list[str] | None:
    """The short names of a header's columns, as `PLAIN` has them; None where there is no header of EuRoC's.

    `loosely`: also names that others give to the same columns.
    """
    for line in lines:
        cells = [re.sub(r"\[.*?\]", "", cell).strip(" #\"'").lower() for cell in line.split(",")]
        short = [re.sub(r"^([pqv])_(?:[a-z]+_)*([wxyz])$", r"\1_\2", cell) for cell in cells]
        if loosely:
            short = [re.sub(r"^(?:p|t|pos|position|translation)?[_.]?([xyz])$", r"p_\1", cell) for cell in short]
            short = [
                re.sub(r"^(?:q|quat|quaternion|orientation|rotation)[_.]?([wxyz])$", r"q_\1", cell) for cell in short
            ]
        if short[0].startswith("timestamp") and {"p_x", "p_y", "p_z"} <= set(short) and len(short) == width:
            return ["timestamp", *short[1:]]
    return None


def _header(path: Path, width: int) -> tuple[list[str] | None, str]:
    for cells in read_rows(path, ",").cells[:20]:
        line = ",".join(cells)
        if (names := _names([line], width, loosely=True)) is not None:
            return names, line
    return None, ""


def _read(path: Path, name: str, options: ReadOptions) -> Take:
    rows = rows_of(path, ",")
    if not rows.cells:
        raise rows.fault("no row of numbers; expected rows of timestamp, x, y, z, qw, qx, qy, qz", code="empty")
    width = len(rows.cells[0]) - (rows.cells[0][-1] == "")
    names, line = _header(path, width)
    data, told = numbers(rows, 0, width)
    said = list(told)
    if names is None:
        if width not in WIDTHS:
            raise rows.fault(f"expected 4, 8 or 17 numbers, got {width}", code="row-length", row=0)
        names = [*PLAIN[:width], *(f"column {place}" for place in range(9, width + 1))]
        said.append("no names of columns: taken as EuRoC's, with w first" if width > 4 else "no names of columns")
    time = data[:, 0] * _unit(line, data[:, 0], options, said)
    place = data[:, [names.index(f"p_{axis}") for axis in "xyz"]] * _length(line, names, options, said)
    turn = _quaternion(names, data, options, said)
    made, words = track(name, time, place, turn, zero=True)
    kept, _ = ordered(time)
    known = {"timestamp", "p_x", "p_y", "p_z", "q_w", "q_x", "q_y", "q_z"}
    signals = tuple(Signal(n, time[kept], data[kept, c]) for c, n in enumerate(names) if n not in known)
    said += [*words, *if_far(made.position)]
    clock = "stamps of the rows"
    return Take(name, NAME, tracks=(made,), signals=signals, clock=clock, rate=rate_of(made.time), said=tuple(said))


def _unit(line: str, stamps: Array, options: ReadOptions, said: list[str]) -> float:
    """Seconds in one of the file's units of time."""
    if options.time_unit is not None:
        return UNITS[options.time_unit]
    stated = re.search(r"timestamp\s*\[\s*(ns|us|ms|s)\s*\]", line.lower())
    shown = unit_of(stamps)
    if shown == "s" and (stated is None or stated[1] == "ns"):  # a header may promise nanoseconds over seconds
        said.append("stamps are too small for nanoseconds: taken as seconds")
        return 1.0
    return UNITS[stated[1]] if stated else NANOSECOND


def _length(line: str, names: Sequence[str], options: ReadOptions, said: list[str]) -> float:
    """Metres in the file's unit of length, which a header may state."""
    cells = line.split(",")
    stated = re.search(r"\[\s*(\w+)\s*\]", cells[names.index("p_x")]) if len(cells) == len(names) else None
    unit = options.length_unit or (stated[1].lower() if stated and stated[1].lower() in LENGTHS else "m")
    said += [] if unit == "m" else [f"{unit} converted to metres"]
    return LENGTHS[unit]


def _quaternion(names: Sequence[str], data: Array, options: ReadOptions, said: list[str]) -> Array | None:
    if not {"q_w", "q_x", "q_y", "q_z"} <= set(names):
        said.append("no orientation in this file")
        return None
    at = [names.index(f"q_{axis}") for axis in "wxyz"]
    if options.quaternion_order == "xyzw" and at == sorted(at):
        at = [*at[3:], *at[:3]]  # the user knows better than the names
        said.append("quaternions are read with w last, as asked for")
    return data[:, at]
