"""Text and tables as a terminal shows them.

Nothing that a user wrote is taken for markup or for a command to the terminal, and no number and no name is broken:
long text wraps between words, and a table that is too wide becomes lines.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from carom.recipes.result import PrintedTable

SHORT = 26  #: characters up to which a cell stays on one line
NARROWEST = (24, 12)  #: characters of a column of text, at least, so that it can be read: better, and still well
FRAME = 3  #: characters of a table's lines and blanks per column; one more at the end


def harmless(text: str) -> str:
    r"""The text with everything that a terminal would act on, or cannot show, as an escape.

    >>> harmless("\x1b[31mred [m/s]")
    '\\x1b[31mred [m/s]'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(value: Any) -> str:
    """A value as the text of a cell; what is not known is a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return harmless(f"{value:.4g}" if isinstance(value, float) else str(value))


def draw(console: Console, table: PrintedTable) -> None:
    """Print a table as wide as the console, or as lines where it does not fit; then what is to be said of it."""
    width = max(console.width, 40)
    columns = [harmless(name) for name in table.columns]
    rows = [[shown(value) for value in row] for row in table.rows]
    _lines(console, textwrap.wrap(harmless(table.title), width, **_WHOLE_WORDS))
    found = (_widths(columns, rows, width, narrowest) for narrowest in NARROWEST)
    widths = next((fitting for fitting in found if fitting is not None), None)
    if widths is None:
        _lines(console, _upright(columns, rows, width))
    else:
        console.print(_framed(table, columns, rows, widths), highlight=False)
    for note in table.notes:
        _lines(console, textwrap.wrap(harmless(note), width, subsequent_indent="  ", **_WHOLE_WORDS))


_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def _lines(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def _framed(table: PrintedTable, columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Table:
    made = Table()
    for i, (name, width) in enumerate(zip(columns, widths, strict=True)):
        numeric = i > 0 and any(isinstance(row[i], int | float) for row in table.rows)
        made.add_column(Text(name), justify="right" if numeric else "left", width=width, overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, narrowest: int) -> list[int] | None:
    """How wide each column is; None if they don't fit side by side without a broken number or name."""
    room = width - FRAME * len(columns) - 1
    natural, least = [], []
    for i, name in enumerate(columns):
        cells = [row[i] for row in rows]
        widest = max((cell_len(cell) for cell in cells), default=0)
        words = [cell_len(word) for cell in cells for word in cell.split()]
        needed = widest if widest <= SHORT else max([narrowest, *words])
        natural.append(max(widest, cell_len(name)))
        least.append(max([needed, *(cell_len(word) for word in name.split())]))
    if sum(least) > room:
        return None
    spare = room - sum(least)
    for i in sorted(range(len(columns)), key=lambda i: natural[i] - least[i]):  # small wishes first
        more = min(natural[i] - least[i], spare)
        least[i], spare = least[i] + more, spare - more
    return least


def _upright(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A table as lines: each row under its first cell; of two columns, a row is a line."""
    lines: list[str] = []
    for row in rows:
        pairs = [(row[0], row[1])] if len(columns) == 2 else list(zip(columns[1:], row[1:], strict=True))
        if len(columns) != 2:
            lines += textwrap.wrap(row[0], width, initial_indent="", **_WHOLE_WORDS) or ["-"]
        for name, value in pairs:
            if value:
                text = f"{name}: {value}" if name else value
                lines += textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="      ", **_WHOLE_WORDS)
    return lines
