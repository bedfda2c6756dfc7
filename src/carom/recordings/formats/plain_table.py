"""Any other table of numbers, with or without names of columns, mapped to bodies by these names or by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from carom.core.errors import RecordingError, short
from carom.recordings.formats.clean import ordered, rate_of, track
from carom.recordings.formats.plain_columns import TIME_UNITS, Columns, column_time, guessed, has_columns, mapped
from carom.recordings.formats.plain_text import without_text
from carom.recordings.formats.plain_turns import turns_of
from carom.recordings.formats.pose_rows import unit_of
from carom.recordings.formats.take import Axis, NoPosesError, ReadOptions, Signal, Take, Track
from carom.recordings.formats.text_rows import LENGTHS, Rows, is_number, numbers, read_rows, text_of
from carom.state import Array

NAME = "plain table (CSV)"
SEPARATORS = (",", ";", "\t", " ")
MOST_LINES = 60  #: of a table's begin: comments, names, units
WIDE = 30.0  #: [m]; bodies farther away were hardly measured in metres


def recognise(path: Path, head: bytes) -> float:
    """Half sure where columns' names tell of a body's place; a little where there are rows of numbers at all."""
    text = text_of(head)
    if text is None:
        return 0.0
    lines = [line for line in text.splitlines()[:MOST_LINES] if line.strip()]
    if len(lines) < 2:
        return 0.0
    separator = _separator(lines)
    plain = [line for line in lines if not line.lstrip().startswith(("#", "%"))]
    rows = [_split(line, separator) for line in plain]
    if not any(_is_row(cells) for cells in rows[:12]):
        return 0.0
    names = _names(lines, separator)
    return 0.5 if names and guessed(names, column_time(names, ReadOptions())[0], "body") else 0.2


def claims(path: Path, options: ReadOptions) -> bool:
    """Whether what the user names are columns of this table."""
    if not options.sources or not path.is_file():
        return False
    with path.open("rb") as file:
        text = text_of(file.read(1 << 16))
    lines = [line for line in (text or "").splitlines() if line.strip()][:MOST_LINES]
    if len(lines) < 2:
        return False
    separator = _separator(lines)
    names = _names(lines, separator)
    if not names:
        first = next((cells for line in lines if _is_row(cells := _split(line, separator))), [])
        names = [str(i + 1) for i in range(len(first))]
    return has_columns(names, options.sources)


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The bodies in a table."""
    with path.open("rb") as file:
        text = text_of(file.read(1 << 16)) or ""
    begin = [line for line in text.splitlines() if line.strip()][:MOST_LINES]
    separator = _separator(begin)
    rows = read_rows(path, separator)
    top = next((i for i, cells in enumerate(rows.cells) if _is_row(cells)), None)
    if top is None:
        raise rows.fault("no row of numbers; expected a table of samples", code="bad-file")
    names = _names(begin, separator) or [str(i + 1) for i in range(len(rows.cells[top]))]
    at, unit = column_time(names, options)
    rows, said = without_text(rows, top, len(names), at)
    told = list(said)
    data, said = numbers(rows, top, len(names))
    told += said
    if separator == " ":
        _refuse_short(rows, top, top + len(data), len(names))
    time, clock = _clock(rows, names, data, at, unit, options, told)
    bodies = _bodies(path, names, at, options)
    tracks = tuple(body_track(path, columns, names, time, data, options, told) for columns in bodies)
    used = {c for columns in bodies for c in (*columns.at.values(), *(columns.ordered or ()))} | {at}
    kept, _ = ordered(time)
    signals = tuple(
        Signal(name, time[kept], data[kept, column])
        for column, name in enumerate(names)
        if column not in used and np.isfinite(data[:, column]).any()
    )
    planar = any("z" not in columns.at for columns in bodies)
    up: Axis | None = "z" if planar else None
    return (
        Take(
            name=path.stem,
            format=NAME,
            tracks=tracks,
            signals=signals,
            up=up,
            clock=clock,
            rate=rate_of(tracks[0].time),
            said=tuple(dict.fromkeys(told)),
        ),
    )


def _refuse_short(rows: Rows, top: int, past: int, width: int) -> None:
    """Raise where a row between spaces has fewer cells: which one is empty cannot be seen."""
    wrong = next((at for at in range(top, past) if len(rows.cells[at]) < width), None)
    if wrong is not None:
        raise rows.fault(
            f"expected {width} numbers between spaces, got {len(rows.cells[wrong])}: which is missing cannot be told; "
            "write nan in its place, or separate with commas",
            code="row-length",
            row=wrong,
        )


def _split(line: str, separator: str) -> list[str]:
    cells = line.split() if separator == " " else line.split(separator)
    return [cell.strip().strip('"').strip() for cell in cells]


def _separator(lines: Sequence[str]) -> str:
    """The separator that gives the last of these lines most cells of numbers."""
    last = [line for line in lines if not line.lstrip().startswith(("#", "%"))][-2:-1] or lines[-1:]
    counts = {
        mark: sum(bool(cell) and is_number(cell) for cell in _split(last[0], mark)) - 0.1 * place
        for place, mark in enumerate((";", "\t", ",", " "))
    }
    return max(counts, key=lambda mark: counts[mark])


def _is_row(cells: Sequence[str]) -> bool:
    """Whether there are numbers, and hardly anything else: labels and dates may stand among them."""
    filled = [cell for cell in cells if cell]
    count = sum(map(is_number, filled))
    return len(cells) >= 2 and len(filled) >= 1 and (count == len(filled) or (count >= 3 and 2 * count > len(filled)))


def _names(lines: Sequence[str], separator: str) -> list[str]:
    """Names of columns: the last line before the numbers that has as many cells and no number; comment signs go."""
    found: list[str] = []
    for line in lines:
        cells = _split(re.sub(r"^\s*#\s*", "", line), separator)
        if not line.lstrip().startswith(("#", "%")) and _is_row(cells):
            if cells and not cells[-1] and len(found) == len(cells) - 1:
                return found  # numbers that end in a separator
            return found if len(found) == len(cells) else []
        if len(cells) >= 2 and not any(is_number(cell) and cell for cell in cells):
            units = all(cell.strip("[]() ").lower() in (*LENGTHS, *TIME_UNITS, "rad", "deg", "", "-") for cell in cells)
            found = found if units and found and "x" not in cells else cells
    return []


def _clock(
    rows: Rows,
    names: Sequence[str],
    data: Array,
    at: int | None,
    unit: str | None,
    options: ReadOptions,
    told: list[str],
) -> tuple[Array, str]:
    """Stamps [T] s and what they are."""
    if options.rate is not None and options.time is None:
        told.append(f"times are row numbers over {options.rate:g} Hz")
        return np.arange(len(data)) / options.rate, "row numbers over the rate"
    if at is None:
        raise rows.fault(
            f"no column of times among {short(', '.join(names[:12]))}; name it with --time COLUMN, or give --rate HZ",
            code="missing-column",
        )
    stamps = data[:, at]
    known = options.time_unit or (unit.lower() if unit else None)
    factor = TIME_UNITS[known] if known else _time_unit(rows, names[at], stamps, told)
    time = stamps * factor
    finite = time[np.isfinite(time)]
    if len(finite) > 10 and len(np.unique(finite)) < 0.5 * len(finite):
        raise rows.fault(
            f"column '{short(names[at])}' has {len(np.unique(finite))} different stamps in {len(finite)} rows (Unix "
            "time in 32 bits?); name another with --time, or give --rate HZ",
            code="bad-value",
        )
    return np.asarray(time), f"column '{names[at]}'"


def _time_unit(rows: Rows, name: str, stamps: Array, told: list[str]) -> float:
    """Seconds in a stamp's unit, from how large stamps and their steps are."""
    good = stamps[np.isfinite(stamps)]
    if len(good) < 2:
        raise rows.fault(f"column '{short(name)}' has {len(good)} numbers; expected stamps", code="empty")
    unit = unit_of(good)
    step = float(np.median(np.abs(np.diff(good))))
    if unit is None:
        what = "counts frames: give --rate HZ, or say" if step == 1 else f"has steps of {step:.4g}: say"
        raise rows.fault(f"column '{short(name)}' {what} its unit with --time-unit", code="bad-value")
    if unit == "s":
        return 1.0
    told.append(f"column '{name}' is in {unit}, from its size (steps of {step:g})")
    return TIME_UNITS[unit]


def _bodies(path: Path, names: Sequence[str], at: int | None, options: ReadOptions) -> list[Columns]:
    if options.sources and has_columns(names, options.sources):
        try:
            return [mapped(body, wanted, names) for body, wanted in options.sources.items() if len(wanted) or body]
        except RecordingError as error:
            raise RecordingError(f"{path}: {error}") from error
    found = guessed(names, at, path.stem)
    if not found:
        raise NoPosesError(
            f"{path}: no rigid bodies: no columns that are a body's place among {short(', '.join(names[:12]))}; name "
            "them with --map 'BODY=X,Y,Z,QW,QX,QY,QZ' (names of columns or their numbers from 1)"
        )
    twice = next((names[c] for each in found for c in each.at.values() if names.count(names[c]) > 1), None)
    if twice is not None:
        raise RecordingError(
            f"{path}: {names.count(twice)} columns are called '{short(twice)}', which does not say whose they are; "
            "name them by their numbers from 1, with --map 'BODY=3-9'"
        )
    return found


def body_track(
    path: Path, columns: Columns, names: Sequence[str], time: Array, data: Array, options: ReadOptions, told: list[str]
) -> Track:
    unit = options.length_unit or columns.units.get("length")
    place = np.stack(
        [data[:, columns.at[axis]] if axis in columns.at else np.zeros(len(data)) for axis in "xyz"], axis=-1
    )
    if "z" not in columns.at:
        place[~np.isfinite(place).all(axis=-1)] = np.nan
        told.append(f"{columns.name}: no column z: it moves in the plane z = 0")
    if unit is None:
        far = float(np.nanmax(np.abs(place), initial=0.0))
        if far > WIDE:
            raise RecordingError(
                f"{path}: body '{short(columns.name)}' is up to {far:.4g} away, which is far for metres; say the unit "
                "with --length-unit mm (or cm, m)"
            )
        told.append(f"{columns.name}: lengths are taken as metres (at most {far:.3g})")
    elif LENGTHS[unit] != 1:
        told.append(f"{columns.name}: {unit} converted to metres")
    quaternion = turns_of(path, columns, data, options, told)
    made, words = track(columns.name, time, place * LENGTHS[unit or "m"], quaternion, zero=quaternion is not None)
    told += words
    return made
