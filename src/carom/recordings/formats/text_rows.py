"""Text files of capture systems as rows of cells: encodings, line ends, decimal commas, a last row that is cut off."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from carom.recordings.faults import FaultError
from carom.recordings.formats.tables import MOST_CELLS
from carom.state import Array

LARGEST = 1_500_000_000  #: [bytes] of a text file
WIDEST = 200_000  #: cells of a row
LOOK_BACK = 30  #: rows whose last cells tell how many decimals the last one should have
LENGTHS = {  #: [m] what makers call their units
    "m": 1.0, "meter": 1.0, "meters": 1.0, "metre": 1.0, "metres": 1.0,
    "cm": 0.01, "centimeter": 0.01, "centimeters": 0.01, "centimetres": 0.01,
    "mm": 0.001, "millimeter": 0.001, "millimeters": 0.001, "millimetres": 0.001,
    "inch": 0.0254, "inches": 0.0254, "in": 0.0254, "foot": 0.3048, "feet": 0.3048, "ft": 0.3048,
}  # fmt: skip
_BLANK = frozenset(
    {"", "nan", "-nan", "nan(ind)", "-nan(ind)", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "null", "none", "n/a"}
)


@dataclass(frozen=True)
class Rows:
    """The rows of a text file that are not empty."""

    path: Path
    cells: list[list[str]]  #: stripped of spaces and quotes
    lines: list[int]  #: 1-based line of each row, as an editor shows it
    ended: bool  #: whether the last line has its end: a file that was cut off seldom does

    def fault(self, message: str, *, code: str, row: int | None = None, column: str | None = None) -> FaultError:
        """A `FaultError` at a row of this file (an index of `cells`)."""
        place = None if row is None or not self.lines else self.lines[min(row, len(self.lines) - 1)]
        return FaultError(message, code=code, file=self.path, row=place, column=column)


def text_of(head: bytes) -> str | None:
    """The text in the first bytes of a file; None if it is none."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace")
    if b"\0" in head:
        return None
    return head.decode("utf-8-sig", errors="replace")


def separator_of(path: Path, sign: str) -> str:
    """What separates cells: semicolons or tabs where `sign`, a regular expression of a row with `SEP`, has them."""
    with path.open("rb") as file:
        text = text_of(file.read(1 << 16)) or ""
    return next((mark for mark in ";\t" if re.search(sign.replace("SEP", mark), text, flags=re.I | re.M)), ",")


def read_text(path: Path) -> str:
    """The whole text of a file: UTF-8 or UTF-16, else Latin-1 (names only may suffer)."""
    try:
        if path.stat().st_size > LARGEST:
            raise FaultError(
                f"{path.stat().st_size / 1e6:.0f} MB of text; expected at most {LARGEST / 1e6:.0f} MB: export a part",
                code="too-large",
                file=path,
            )
        content = path.read_bytes()
    except OSError as error:
        raise FaultError(f"cannot be read: {error.strerror or error}", code="no-file", file=path) from error
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise FaultError("not a text file here; take a copy that is whole", code="bad-file", file=path, row=line)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def read_rows(path: Path, separator: str) -> Rows:
    """The rows of a text file whose cells are separated by `separator`; `" "` stands for any white space."""
    text = read_text(path)
    ended = text.endswith(("\n", "\r"))
    cells: list[list[str]] = []
    lines: list[int] = []
    for number, line in enumerate(re.split(r"\r*\n|\r", text), start=1):
        if not line.strip():
            continue
        if separator == " ":
            found = line.split()
        elif '"' in line:
            try:
                found = next(csv.reader([line], delimiter=separator), [])
            except csv.Error:
                found = line.split(separator)
        else:
            found = line.split(separator)
        if len(found) > WIDEST:
            raise FaultError(f"{len(found)} cells; expected at most {WIDEST}", code="bad-file", file=path, row=number)
        cells.append([cell.strip().strip('"').strip() for cell in found])
        lines.append(number)
    return Rows(path, cells, lines, ended)


def number(cell: str) -> float:
    """The number in a cell, NaN where it is blank; a `ValueError` where it is none.

    >>> number("1.5"), number("1,5"), number("")
    (1.5, 1.5, nan)
    """
    try:
        value = float(cell)
    except ValueError:
        if cell.lower() in _BLANK:
            return float("nan")
        return float(cell.replace(",", ".")) if cell.count(",") == 1 and "." not in cell else float("")
    if "_" in cell:  # Python reads 1_000 as a number
        raise ValueError(cell)
    return value if np.isfinite(value) else float("nan")


def numbers(rows: Rows, first: int, width: int, *, past: int | None = None) -> tuple[Array, tuple[str, ...]]:
    """Rows `first` to `past` as numbers [T, width], blank and missing cells NaN, and what had to be done for that.

    A last row that was cut off is left out.
    """
    said: list[str] = []
    last = len(rows.cells) if past is None else past
    if last == len(rows.cells) and not rows.ended and last > first and _cut(rows, first, last, width):
        last -= 1
        said.append("the file ends within a row: that row is left out")
    if (last - first) * width > MOST_CELLS:
        raise rows.fault(f"{last - first} rows of {width} columns; export a part of the take", code="too-large")
    found = np.full((max(last - first, 0), width), np.nan)
    for index in range(first, last):
        cells = rows.cells[index][:width]
        try:
            found[index - first, : len(cells)] = [number(cell) for cell in cells]
        except ValueError as error:
            column, cell = next((k, c) for k, c in enumerate(cells) if not is_number(c))
            raise rows.fault(
                f"expected a number or an empty cell, got {cell[:40]!r}; correct the cell, or export the file again",
                code="not-a-number",
                row=index,
                column=str(column + 1),
            ) from error
    return found, tuple(said)


def is_number(cell: str) -> bool:
    """Whether a cell holds a number or is blank."""
    try:
        number(cell)
    except ValueError:
        return False
    return True


def _cut(rows: Rows, first: int, last: int, width: int) -> bool:
    """Whether the last row of a file without a last line end is short, or its last number has too few decimals."""
    cells = rows.cells[last - 1]
    before = rows.cells[max(first, last - 1 - LOOK_BACK) : last - 1]
    usual = min((len(row) for row in before), default=width)
    if len(cells) < min(usual, width) or not is_number(cells[-1]):
        return True
    same = {_decimals(row[len(cells) - 1]) for row in before if len(row) >= len(cells) and row[len(cells) - 1]}
    if not same:
        return False
    # where decimals vary, half of a number looks like a whole one
    return not cells[-1] or len(same) > 1 or same == {0} or _decimals(cells[-1]) < min(same)


def _decimals(cell: str) -> int:
    return len(cell) - cell.index(".") - 1 if "." in cell else 0


def unique(names: Sequence[str], unnamed: str) -> tuple[str, ...]:
    """Names without repeats; those that are empty are numbered.

    >>> unique(["a", "", "a"], "marker")
    ('a', 'marker 2', 'a (2)')
    """
    found: list[str] = []
    for place, name in enumerate(names, start=1):
        plain = " ".join(name.split()) or f"{unnamed} {place}"
        again, fresh = 1, plain
        while fresh in found:
            again += 1
            fresh = f"{plain} ({again})"
        found.append(fresh)
    return tuple(found)
