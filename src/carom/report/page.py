"""The report: one HTML file that opens anywhere, offline, on a phone as on a desk. Its figures are SVG in the page.

>>> import tempfile
>>> from pathlib import Path
>>> from carom.report import Table, write_report
>>> table = Table("Accuracy", ("method", "accuracy@0.1"), (("carom", 0.93), ("ridge", 0.61)), note="100 test strikes")
>>> path = write_report(Path(tempfile.mkdtemp()) / "report.html", [table], title="Ten strikes")
>>> "accuracy@0.1" in path.read_text(encoding="utf-8")
True
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, final

from carom.core.artefacts import write_text
from carom.core.errors import CaromError
from carom.report import draw
from carom.report.chart import Cell, Chart, Data, Matrix, Rows
from carom.report.style import BLUE, RED, mixed

NARROW = 3  #: columns up to which a table stays a table on a phone; wider ones become one card for each row


@final
@dataclass(frozen=True)
class Text:
    """Paragraphs in plain words."""

    title: str
    paragraphs: tuple[str, ...]  #: plain text; `code` in backquotes and **bold** are the only markup


@final
@dataclass(frozen=True)
class Table:
    """Rows a person can read and copy. Numbers are set to three digits; give strings where that is not wanted."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str  #: in plain words what is shown and what is good
    highlight: str = ""  #: rows whose first cell is this are set apart

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                expected = f"{len(self.columns)} cells, one for each column"
                raise CaromError(f"table '{self.title}', row {number}: expected {expected}, got {len(row)}")


@final
@dataclass(frozen=True)
class Figure:
    """A figure with a caption."""

    title: str
    figure: Chart | Rows | Matrix
    caption: str  #: in plain words what is shown and what is good


@final
@dataclass(frozen=True)
class Step:
    """One thing to do, and the command to type."""

    words: str  #: why; markup as in `Text`
    command: str = ""  #: none: it is not done by a command


@final
@dataclass(frozen=True)
class Next:
    """What to do next: the last section of every report."""

    steps: tuple[Step, ...]
    title: str = "What to do next"


Section = Text | Table | Figure | Next


def write_report(path: Path, sections: Sequence[Section], *, title: str, subtitle: str = "") -> Path:
    """Write the page to `path`, whole or not at all; returns the path."""
    path = Path(path)
    if not path.name or path.is_dir():
        raise CaromError(f"report: expected the name of an HTML file to write, got the folder {path}")
    html = render(sections, title=title, subtitle=subtitle)
    write_text(path, html)
    return path


def render(sections: Sequence[Section], *, title: str, subtitle: str = "") -> str:
    """The page as a string. The script that plays motions is in it only if something moves."""
    blocks = [_block(section, number) for number, section in enumerate(sections, start=1)]
    plays = any(block.get("clock") for block in blocks)
    return str(_template().render(title=title, subtitle=subtitle, blocks=blocks, plays=plays))


def _block(section: Section, number: int) -> dict[str, Any]:
    """What the template needs of one section."""
    common = {"id": f"s{number}", "title": section.title}
    if isinstance(section, Text):
        return common | {"kind": "text", "paragraphs": [_marked(p) for p in section.paragraphs]}
    if isinstance(section, Next):
        return common | {"kind": "next", "steps": [(_marked(s.words), s.command) for s in section.steps]}
    if isinstance(section, Table):
        numeric = [_is_numeric(section, i) for i in range(len(section.columns))]
        rows = [{"cells": [_cell(c) for c in row], "best": _is(row, section.highlight)} for row in section.rows]
        return common | {
            "kind": "table",
            "columns": list(zip(section.columns, numeric, strict=True)),
            "rows": rows,
            "cards": len(section.columns) > NARROW,
            "note": section.note,
        }
    figure = section.figure
    shared = {"words": _marked(figure.words), "caption": section.caption, **_download(section.title, figure.data)}
    return common | shared | _drawn(figure)


def _drawn(figure: Chart | Rows | Matrix) -> dict[str, Any]:
    """What the template needs of the kind of figure."""
    if isinstance(figure, Chart):
        legend = [(draw.swatch(mark), mark.name) for mark in figure.legend()]
        panels = [(panel.title, draw.svg(panel)) for panel in figure.panels]
        moves = {"clock": draw.times(figure), "milliseconds": round(1000 * figure.play_seconds)} if figure.clock else {}
        return {"kind": "chart", "panels": panels, "across": min(figure.across, len(panels)), "legend": legend, **moves}
    if isinstance(figure, Rows):
        return {"kind": "rows", "rows": figure.rows, "axis": figure.axis, "legend": figure.legend()}
    cells = [[_shade(value) for value in row] for row in figure.values]
    return {"kind": "matrix", "rows": list(zip(figure.labels, cells, strict=True))}


def _shade(value: float) -> tuple[str, str]:
    """A number from -1 to 1 as text and as the colour behind it."""
    if value != value:
        return "", "transparent"
    return f"{value:.2f}".replace("0.", ".", 1), mixed(BLUE if value > 0 else RED, 0.6 * abs(value))


def _download(title: str, data: Data) -> dict[str, str]:
    """The numbers of a figure as a link that holds them itself, and the name of the file that it makes."""
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "figure"
    held = base64.b64encode(data.csv().encode()).decode()
    return {"file": f"{name}.csv", "link": f"data:text/csv;charset=utf-8;base64,{held}"}


def _is(row: tuple[Cell, ...], name: str) -> bool:
    return bool(name) and bool(row) and row[0] == name


def _is_numeric(table: Table, column: int) -> bool:
    """Whether a column is set flush right: it holds numbers, or text that starts like one (`0.93 ± 0.02`)."""
    cells = [_cell(row[column]) for row in table.rows if row[column] is not None]
    return bool(cells) and all(c[:1].isdigit() or c[:1] in "-−–+±" for c in cells)


def _cell(value: Cell) -> str:
    """One cell as text.

    >>> _cell(0.123456), _cell(12), _cell(None), _cell(True), _cell(1234567.0), _cell(float("nan"))
    ('0.123', '12', '–', 'yes', '1.23e+06', '–')
    """
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def _marked(paragraph: str) -> Any:
    """A paragraph with its backquotes and double stars turned into tags, everything else escaped."""
    from markupsafe import Markup, escape

    text = str(escape(paragraph))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text))  # escaped above


@lru_cache(maxsize=1)
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("carom.report", "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.j2")
