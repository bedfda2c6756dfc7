"""Columns of text in a table of numbers: labels are left out, dates become seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from carom.core.errors import short
from carom.recordings.formats.text_rows import Rows, is_number

LOOK = 40  #: rows that tell whether a column has text


def without_text(rows: Rows, top: int, width: int, time: int | None) -> tuple[Rows, tuple[str, ...]]:
    """The rows with empty cells in the place of text, and what was done; dates in the column of times are seconds."""
    first = rows.cells[top : top + LOOK]
    text = [c for c in range(width) if _mostly_text([row[c] for row in first if c < len(row) and row[c]])]
    if not text:
        return rows, ()
    said: list[str] = []
    dated = time is not None and time in text and all(seconds_of(row[time]) is not None for row in first if row[time:])
    cells = [list(row) for row in rows.cells]
    for row in cells[top:]:
        for column in text:
            if column >= len(row):
                continue
            moment = seconds_of(row[column]) if dated and column == time else None
            row[column] = "" if moment is None else f"{moment:.9f}"
    if dated:
        said.append("dates became seconds since 1970 (UTC where they state no zone)")
    others = [column for column in text if not (dated and column == time)]
    if others:
        names = rows.cells[top - 1] if top else []
        listed = ", ".join(short(names[c]) if c < len(names) else str(c + 1) for c in others)
        said.append(f"columns of text are left out: {listed}")
    return replace(rows, cells=cells), tuple(said)


def _mostly_text(cells: Sequence[str]) -> bool:
    return 2 * sum(not is_number(cell) for cell in cells) > len(cells)


def seconds_of(cell: str) -> float | None:
    """Seconds since 1970 of a date with a time; None where there is none.

    >>> seconds_of("1970-01-02T00:00:00.5Z"), seconds_of("later")
    (86400.5, None)
    """
    try:
        moment = datetime.fromisoformat(cell.replace("/", "-"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
