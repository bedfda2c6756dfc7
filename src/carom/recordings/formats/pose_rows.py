"""Files with one pose per row and nothing else, as localisation writes them: what TUM, EuRoC and KITTI share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from carom.core.errors import RecordingError
from carom.recordings.formats.text_rows import Rows, is_number, number, read_rows, text_of
from carom.state import Array

COMMENTS = ("#", "%", "//")
SEPARATORS = (" ", ",", ";")  #: a space stands for tabs, too
MOST_LOOKED_AT = 200  #: rows of a file's beginning
NEAR_ONE = 0.02  #: by which the length of a quaternion in a text file may differ from one
SECOND, MILLISECOND, MICROSECOND, NANOSECOND = 1.0, 1e-3, 1e-6, 1e-9
UNITS = {"s": SECOND, "ms": MILLISECOND, "us": MICROSECOND, "ns": NANOSECOND}
TOO_FAR = 50.0  #: [m]
SINCE_1970 = (5e8, 1e10)  #: [s] between which stamps lie that count from 1970
SLOWEST = 2.0  #: [s] between samples: what is slower is in another unit


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


def sniffed(head: bytes) -> tuple[str, Array, list[str]] | None:
    """What separates the numbers of a file of poses, its first rows [R, C] and its comments; None: it is none."""
    for separator in SEPARATORS:
        found = first_rows(head, separator)
        if found is not None and found[0].shape[1] > 1:
            return separator, *found
    return None


def if_far(place: Array) -> list[str]:
    """A word on places [T, 3] m that no lab holds: vehicles go so far, and so do millimetres read as metres."""
    far = float(np.nanmax(np.abs(place), initial=0.0))
    if far <= TOO_FAR:
        return []
    return [f"positions reach {far:.4g} m: if the numbers are millimetres, say --length-unit mm"]


def head_of(path: Path) -> bytes:
    """The beginning of a file, as those who recognise it are shown it."""
    with path.open("rb") as file:
        return file.read(1 << 16)


def order_named(comments: Sequence[str]) -> Literal["wxyz", "xyzw"] | None:
    """Where w is, as the names of columns in some comment say it.

    >>> order_named(["# ground truth", "# timestamp tx ty tz qw qx qy qz"])
    'wxyz'
    """
    for line in comments:
        plain = re.sub(r"\[.*?\]", "", line.lower())
        found = "".join(
            re.findall(r"(?:^|[\s,;#])(?:q|quat|orientation|rot)(?:_[a-z]+)*[._]?([wxyz])(?=$|[\s,;])", plain)
        )
        if found in ("wxyz", "xyzw"):
            return found  # type: ignore[return-value]
    return None


def unit_of(stamps: Array) -> str | None:
    """What unit stamps are in, from their size and their steps; None where these do not tell.

    Stamps that count from 1970 are known by their size. Others are taken to be of a recording at 5 Hz or faster.

    >>> unit_of(np.array([1.6e18, 1.6e18 + 1e7])), unit_of(np.array([0.0, 1e7])), unit_of(np.array([0.0, 8.33]))
    ('ns', 'ns', None)
    """
    good = stamps[np.isfinite(stamps)]
    if not len(good):
        return "s"
    largest = float(np.abs(good).max())
    step = float(np.median(np.abs(np.diff(good)))) if len(good) > 1 else 0.0
    for unit, size in UNITS.items():
        if SINCE_1970[0] < largest * size < SINCE_1970[1] and step * size < SLOWEST:
            return unit
    whole = bool((good == np.round(good)).all())
    if step < SLOWEST:
        return None if whole and step == 1 else "s"
    if not whole and step < 2e5:
        return None
    return "ns" if step >= 2e5 else "us" if step >= 500 else "ms"


def seconds(path: Path, time: Array, unit: str | None, rate: float | None = None) -> tuple[Array, str | None]:
    """Stamps in seconds, and the unit that they were in, if that is none: as the user says it, else as they show it."""
    known = unit or unit_of(time)
    if known is not None:
        return time * UNITS[known], None if known == "s" else known
    step = float(np.median(np.abs(np.diff(time[np.isfinite(time)]))))
    if step == 1 and rate:
        return time / rate, None
    what = "count rows" if step == 1 else f"are in steps of {step:.4g}"
    raise RecordingError(
        f"{path}: its stamps {what}: say their unit with --time-unit ns, us, ms or s"
        + (", or give --rate HZ" * (step == 1))
    )
