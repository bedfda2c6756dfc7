"""The page of any result: its figures, its tables with what they mean, what it says, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from carom.recipes.result import PrintedTable, Result, brief
from carom.report import Next, Section, Step, Table, Text, write_report
from carom.report.chart import Cell

REPORT = "report.html"
MEANT = "The numbers are those that the command prints; with the option --json it writes them with all digits."
#: why one does what a command does, where the result itself does not say
WHY = {
    "predict": "Predict recorded strikes with it, best those that it was not made from.",
    "plan": "Plan a strike with it. With `--export` the plan is written for a robot.",
    "rollout": "Try it where it was not trained: along routes, on a stand-in or on a robot of your own.",
    "identify": "Make these recordings, put them into the same folder, and identify again.",
    "view": "Look at the motions in 3-D in the browser, recorded beside simulated.",
}


def result_page(
    path: Path,
    result: Result,
    *,
    title: str,
    subtitle: str = "",
    short: Sequence[str] = (),
    figures: Sequence[Section] = (),
    steps: Sequence[Step] | None = None,
) -> Path:
    """Write the page; `short` are the paragraphs that one reads first, `steps` None: the result's own commands."""
    sections: list[Section] = [Text("In short", tuple(short))] if short else []
    sections += [*figures, *(table_section(table) for table in result.tables())]
    if notes := tuple(result.notes()):
        sections.append(Text("What else there is to say", notes))
    sections.append(Next(tuple(steps_of(result.next_commands()) if steps is None else steps)))
    return write_report(path, sections, title=title, subtitle=subtitle)


def table_section(table: PrintedTable) -> Table:
    """A printed table as a section."""
    rows = tuple(tuple(_cell(v) for v in row) for row in table.rows)
    columns = tuple(name or "no." for name in table.columns)
    note = " ".join(f"{n[:1].upper()}{n[1:].rstrip('.')}." for n in table.notes)
    first = table.title.split(" ", 1)[0]
    title = table.title if not first.isalpha() else f"{first.capitalize()}{table.title[len(first) :]}"
    return Table(title, columns, rows, f"{note} {MEANT}".strip())  # a file's name stays as it is


def _cell(value: object) -> Cell:
    return value if value is None or isinstance(value, str | int | float | bool) else brief(value)


def steps_of(commands: Sequence[str]) -> list[Step]:
    """Commands with why one types them."""
    return [Step(WHY.get(c.split()[1], "Go on with it."), c) for c in commands]
