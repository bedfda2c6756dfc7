"""Files with one pose per row and nothing else, as localisation writes them: what TUM, EuRoC and KITTI share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from carom.recordings.formats.text_rows import Rows, is_number, number, read_rows, text_of
from carom.state import Array

COMMENTS = ("#", "%", "//")
MOST_LOOKED_AT = 200  #: rows of a file's beginning
NEAR_ONE = 0.02  #: by which the length of a quaternion in a text file may differ from one
SECOND, MILLISECOND, MICROSECOND, NANOSECOND = 1.0, 1e-3, 1e-6, 1e-9
UNITS = {"s": SECOND, "ms": MILLISECOND, "us": MICROSECOND, "ns": NANOSECOND}


def first_rows(head: bytes, separator: str) -> tuple[Array, list[str]] | None:
    """The numbers in a file's beginning [R, C] and its comments; None unless every row has as many numbers."""
    text = text_of(head)
    if text is None:
        return None
    lines = text.splitlines()
    if len(lines) > 1 and not text.endswith(("\n", "\r")):
        lines = lines[:-1]  # it may go on
    comments = [line.strip() for line in lines if line.lstrip().startswith(COMMENTS)]
    rows: list[list[float]] = []
    for line in lines:
        plain = line.strip()
        if not plain or plain.startswith(COMMENTS):
            continue
        cells = (
            plain.split() if separator == " " else [cell.strip() for cell in plain.rstrip(separator).split(separator)]
        )
        if not rows and not any(map(is_number, cells)):
            comments.append(plain)  # names of columns
            continue
        if not all(map(is_number, cells)) or (rows and len(cells) != len(rows[0])):
            return None
        rows.append([number(cell) for cell in cells])
        if len(rows) == MOST_LOOKED_AT:
            break
    return (np.array(rows), comments) if rows else None


def rows_of(path: Path, separator: str) -> Rows:
    """The rows of a file without its comments, and without names of columns before the first number."""
    rows = read_rows(path, separator)
    keep = [
        place
        for place, cells in enumerate(rows.cells)
        if cells and not cells[0].startswith(COMMENTS) and (is_number(cells[0]) and cells[0] != "")
    ]
    odd = [p for p in range(keep[0] if keep else 0, len(rows.cells)) if not rows.cells[p][0].startswith(COMMENTS)]
    return replace(rows, cells=[rows.cells[p] for p in odd], lines=[rows.lines[p] for p in odd])


def are_unit(quaternion: Array) -> bool:
    """Whether these [R, 4] are quaternions of length 1, those of lost samples (zeros, NaN) aside."""
    length = np.linalg.norm(quaternion, axis=-1)
    good = np.isfinite(length) & (length > 0)
    return bool(good.any()) and bool((np.abs(length[good] - 1) < NEAR_ONE).mean() > 0.9)


def rises(time: Array) -> bool:
    """Whether these are stamps: most of them come after the one before."""
    return len(time) < 2 or bool((np.diff(time) > 0).mean() > 0.8)


def seconds(time: Array, unit: str | None) -> tuple[Array, str | None]:
    """Stamps in seconds and the unit that they were in, if that is none; a clock's size tells it."""
    if unit is None:
        largest = float(np.nanmax(np.abs(time))) if np.isfinite(time).any() else 0.0
        unit = "ns" if largest > 1e17 else "us" if largest > 1e14 else "ms" if largest > 1e11 else "s"
    return time * UNITS[unit], None if unit == "s" else unit
