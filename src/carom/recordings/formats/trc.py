"""TRC (Motion Analysis, OpenSim): trajectories of markers, separated by tabs, commas or spaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from carom.core.errors import short
from carom.recordings.formats.clean import lost_points, ordered, rate_of
from carom.recordings.formats.stated import compare_counts, compare_rates, stamps
from carom.recordings.formats.take import Markers, NoPosesError, ReadOptions, Take
from carom.recordings.formats.text_rows import LENGTHS, Rows, is_number, numbers, read_rows, text_of, unique

NAME = "TRC markers"


def recognise(path: Path, head: bytes) -> float:
    """Sure where the first line says `PathFileType`."""
    text = text_of(head)
    if text is None:
        return 0.0
    if text.lstrip().startswith("PathFileType"):
        return 1.0
    return 0.85 if re.match(r"\s*DataRate[\t, ]+CameraRate[\t, ]", text) else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The markers of a TRC file."""
    rows = read_rows(path, _separator(path))
    top = next((i for i, cells in enumerate(rows.cells[:20]) if cells[0].lower().startswith("frame")), None)
    if top is None or top == 0:
        raise rows.fault("no row that begins with 'Frame#'; expected names of markers", code="bad-file")
    stated = _stated(rows, top)
    named = rows.cells[top][2:]
    first = top + 1
    while first < len(rows.cells) and not _is_row(rows.cells[first]):
        first += 1
    if first == len(rows.cells):
        raise rows.fault("a header and no rows; expected samples", code="empty")
    names = [name for name in named if name]
    if not names:
        raise NoPosesError(f"{path}: no rigid bodies: a TRC file without markers")
    width = 2 + 3 * len(names)
    data, said = numbers(rows, first, width)
    time, clock, words = stamps(data[:, 0], data[:, 1], stated.get("DataRate"), options.rate)
    unit_name = options.length_unit or stated.get("Units", "")
    if unit_name and unit_name.lower() not in LENGTHS:
        raise rows.fault(
            f"unknown unit of length {short(unit_name)!r}; give it with --length-unit", code="bad-value", row=2
        )
    unit = LENGTHS[unit_name.lower() or "mm"]
    kept, done = ordered(time)
    position = data[:, 2:].reshape(len(data), len(names), 3)[kept]
    told = [*said, *words, *done]
    told += [f"{unit_name or 'mm (not stated)'} converted to metres"] if unit != 1 else []
    told += compare_counts(stated.get("NumFrames"), len(data))
    told += compare_counts(stated.get("NumMarkers"), len(names), "markers")
    told += compare_rates(stated.get("DataRate"), rate_of(time[kept]))
    markers = Markers(unique(names, "marker"), time[kept], lost_points(position, zero=True) * unit)
    return (
        Take(
            name=path.stem,
            format=NAME,
            version=rows.cells[0][1] if rows.cells[0][0] == "PathFileType" and len(rows.cells[0]) > 1 else "",
            markers=(markers,),
            clock=clock,
            rate=rate_of(markers.time),
            said=tuple(told),
        ),
    )


def _separator(path: Path) -> str:
    with path.open("rb") as file:
        text = text_of(file.read(20000)) or ""
    rows = [line for line in text.splitlines() if line.strip()][2:]
    if not rows or any("\t" in line for line in rows):
        return "\t"
    return "," if all("," in line for line in rows) else " "


def _stated(rows: Rows, top: int) -> Mapping[str, str]:
    """The header's values by their keys: a row of keys stands above a row of values."""
    for keys, values in zip(rows.cells[: top - 1], rows.cells[1:top], strict=False):
        if "DataRate" in keys:
            return dict(zip(keys, values, strict=False))
    return {}


def _is_row(cells: list[str]) -> bool:
    return len(cells) > 2 and bool(cells[0]) and is_number(cells[0]) and is_number(cells[1]) and bool(cells[1])
