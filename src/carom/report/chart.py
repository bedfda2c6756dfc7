"""What a figure of the report is made of: panels with marks, rows with bars, a matrix; each with the numbers behind it.

A figure says what is drawn and where; `draw.py` and the page's template make SVG and HTML of it. Text that may be long
(titles, legends, values) is HTML and wraps; inside of a panel there are only axes and their labels. So the same page
reads on a phone and on a desk.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from carom.core.errors import CaromError
from carom.report.style import LINE
from carom.state import Array

Cell = str | float | int | bool | None
Cells = tuple[Cell, ...]


@final
@dataclass(frozen=True)
class Data:
    """The numbers behind a figure, to be taken along as CSV; column names have their units."""

    columns: tuple[str, ...]
    rows: tuple[Cells, ...]

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise CaromError(f"data, row {number}: expected {len(self.columns)} cells, got {len(row)}")

    def csv(self) -> str:
        """Comma-separated values with a header.

        >>> Data(("name", "speed [m/s]"), (("a, b", 0.25), ("c", float("nan")))).csv().splitlines()
        ['name,speed [m/s]', '"a, b",0.25', 'c,']
        """
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(self.columns)
        out.writerows([_written(cell) for cell in row] for row in self.rows)
        return text.getvalue()


def _written(cell: Cell) -> str:
    if cell is None or cell != cell:
        return ""
    return f"{float(cell):.6g}" if isinstance(cell, float | np.floating) else str(cell)


@final
@dataclass(frozen=True, eq=False)
class Line:
    """A line through points; what is not finite is a gap."""

    x: ArrayLike
    y: ArrayLike
    colour: str
    name: str = ""  #: in the legend; none: it is not there
    width: float = 1.6  #: [px]
    dash: str = ""  #: of SVG, for instance "5 4"
    fill: str = ""  #: colour of what it encloses
    axis: bool = False  #: whether it only guides the eye, and does not count for the range


@final
@dataclass(frozen=True, eq=False)
class Points:
    """Dots, with what they say when pointed at, and error bars in y."""

    x: ArrayLike
    y: ArrayLike
    colour: str
    name: str = ""
    size: float = 3.2  #: radius [px]
    labels: Sequence[str] = ()
    error: ArrayLike | None = None  #: half length of each bar, in the unit of y


@final
@dataclass(frozen=True, eq=False)
class Bars:
    """Upright bars from zero."""

    x: ArrayLike  #: middle of each
    y: ArrayLike
    colour: str
    name: str = ""
    width: float = 0.8  #: in the unit of x
    labels: Sequence[str] = ()


@final
@dataclass(frozen=True, eq=False)
class Arrows:
    """Arrows from `start` [N, 2] to `end` [N, 2]."""

    start: ArrayLike
    end: ArrayLike
    colour: str
    name: str = ""
    width: float = 1.6


Mark = Line | Points | Bars | Arrows


@final
@dataclass(frozen=True, eq=False)
class Moving:
    """A mark in the frame of a body that moves: one pose (x, y, yaw) per instant [F, 3]; not finite: not to be seen."""

    mark: Line | Points
    poses: Array


@final
@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    x_label: str
    y_label: str
    marks: tuple[Mark, ...]
    title: str = ""
    x_range: tuple[float, float] | None = None  #: None: what the marks need, with some air
    y_range: tuple[float, float] | None = None
    equal: bool = False  #: whether a metre is as long in x as in y
    log_y: bool = False
    height: float | None = None  #: of the axes [px]; None: what suits
    x_numbers: bool = True  #: whether x has numbers on it
    moving: tuple[Moving, ...] = ()


@final
@dataclass(frozen=True)
class Chart:
    """Panels side by side where there is room, else below each other."""

    panels: tuple[Panel, ...]
    data: Data
    words: str = ""  #: what it shows in one line; **bold** is markup
    across: int = 3  #: panels side by side, where there is room
    clock: tuple[float, ...] = ()  #: instants of what moves [s]
    play_seconds: float = 4.0  #: that the whole takes when it plays

    def marks(self) -> Iterator[Mark]:
        """All marks, in the order in which they are drawn."""
        for panel in self.panels:
            yield from panel.marks
            yield from (m.mark for m in panel.moving)

    def named(self, name: str) -> list[Mark]:
        """The marks of this name, in the order in which they are drawn."""
        return [mark for mark in self.marks() if mark.name == name]

    def legend(self) -> list[Mark]:
        """One mark for every name."""
        first: dict[str, Mark] = {}
        for mark in self.marks():
            if mark.name:
                first.setdefault(mark.name, mark)
        return list(first.values())


@final
@dataclass(frozen=True)
class Span:
    """A piece of a row's track, as shares of its length."""

    start: float
    end: float
    colour: str
    thin: bool = False  #: a whisker over a bar


@final
@dataclass(frozen=True)
class Row:
    """A name, a value in words, and a track with spans and perhaps a dot."""

    label: str
    value: str
    spans: tuple[Span, ...]
    dot: float | None = None  #: share of the track
    colour: str = LINE  #: of the dot
    group: str = ""  #: in the legend
    strong: bool = False  #: set apart from the others


@final
@dataclass(frozen=True)
class Rows:
    """Horizontal bars or intervals, one below the other; names and values wrap."""

    rows: tuple[Row, ...]
    axis: tuple[str, ...]  #: words below the track, from its start to its end
    data: Data
    words: str = ""

    def legend(self) -> list[tuple[str, str]]:
        """Name and colour of every group."""
        return list({row.group: (row.group, row.colour) for row in self.rows if row.group}.values())


@final
@dataclass(frozen=True)
class Matrix:
    """Numbers from -1 to 1 in coloured cells; rows have names, columns the rows' numbers."""

    labels: tuple[str, ...]
    values: Array  #: [A, A]; not finite: empty
    data: Data
    words: str = ""
