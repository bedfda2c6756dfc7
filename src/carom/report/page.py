"""The report: one HTML file that opens anywhere, offline, with its figures alive and its tables readable without them.

>>> import tempfile
>>> from pathlib import Path
>>> from carom.report import Table, write_report
>>> table = Table("Accuracy", ("method", "accuracy@0.1"), (("carom", 0.93), ("ridge", 0.61)), note="100 test strikes")
>>> path = write_report(Path(tempfile.mkdtemp()) / "report.html", [table], title="Ten strikes")
>>> "accuracy@0.1" in path.read_text(encoding="utf-8")
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, final

from carom.core.artefacts import write_text
from carom.core.errors import CaromError


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
    rows: tuple[tuple[str | float | int | bool | None, ...], ...]
    note: str = ""
    highlight: str = ""  #: rows whose first cell is this are set apart

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                expected = f"{len(self.columns)} cells, one for each column"
                raise CaromError(f"table '{self.title}', row {number}: expected {expected}, got {len(row)}")


@final
@dataclass(frozen=True)
class Figure:
    """A plotly figure with a caption that says what to see in it."""

    title: str
    figure: Any  #: plotly.graph_objects.Figure
    caption: str = ""


Section = Text | Table | Figure


def write_report(path: Path, sections: Sequence[Section], *, title: str, subtitle: str = "") -> Path:
    """Write the page to `path`, whole or not at all; returns the path."""
    path = Path(path)
    if not path.name or path.is_dir():
        raise CaromError(f"report: expected the name of an HTML file to write, got the folder {path}")
    html = render(sections, title=title, subtitle=subtitle)
    write_text(path, html)
    return path


def render(sections: Sequence[Section], *, title: str, subtitle: str = "") -> str:
    """The page as a string. Plotly's script is in it once, and only if there is a figure."""
    blocks = [_block(section, number) for number, section in enumerate(sections, start=1)]
    script = _plotly_script() if any(isinstance(s, Figure) for s in sections) else ""
    return str(_template().render(title=title, subtitle=subtitle, blocks=blocks, script=script))


def _block(section: Section, number: int) -> dict[str, Any]:
    """What the template needs of one section."""
    anchor = f"s{number}"
    if isinstance(section, Text):
        paragraphs = [_marked(p) for p in section.paragraphs]
        return {"kind": "text", "id": anchor, "title": section.title, "paragraphs": paragraphs}
    if isinstance(section, Table):
        numeric = [_is_numeric(section, i) for i in range(len(section.columns))]
        rows = [{"cells": [_cell(c) for c in row], "best": _is(row, section.highlight)} for row in section.rows]
        return {
            "kind": "table",
            "id": anchor,
            "title": section.title,
            "columns": list(zip(section.columns, numeric, strict=True)),
            "rows": rows,
            "numeric": numeric,
            "note": section.note,
        }
    return {
        "kind": "figure",
        "id": anchor,
        "title": section.title,
        "caption": section.caption,
        "html": _figure_html(section.figure, f"figure-{number}"),
    }


def _is(row: tuple[str | float | int | bool | None, ...], name: str) -> bool:
    return bool(name) and bool(row) and row[0] == name


def _is_numeric(table: Table, column: int) -> bool:
    """Whether a column is set flush right: it holds numbers, or text that starts like one (`0.93 ± 0.02`)."""
    cells = [_cell(row[column]) for row in table.rows if row[column] is not None]
    return bool(cells) and all(c[:1].isdigit() or c[:1] in "-−–+±" for c in cells)


def _cell(value: str | float | int | bool | None) -> str:
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
    import re

    from markupsafe import Markup, escape

    text = str(escape(paragraph))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text))  # escaped above


def _figure_html(figure: Any, element: str) -> Any:
    from markupsafe import Markup

    config = {
        "displaylogo": False,
        "responsive": True,
        "showSendToCloud": False,  # recordings are not to leave the machine by a wrong click
        "modeBarButtonsToRemove": ["lasso2d", "select2d"],
    }
    html = figure.to_html(
        full_html=False, include_plotlyjs=False, include_mathjax=False, div_id=element, config=config, auto_play=False
    )
    return Markup(html)  # plotly escapes what it embeds


@lru_cache(maxsize=1)
def _plotly_script() -> Any:
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


@lru_cache(maxsize=1)
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("carom.report", "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.j2")
