"""What every command shares: options, tables for people, JSON for machines, progress bars."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import rich.progress
import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from carom.core.artefacts import plain
from carom.core.errors import CaromError
from carom.core.progress import Progress
from carom.recipes.result import Result

errors = Console(stderr=True)

Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help="also write the result as JSON ('-': stdout)")]
Seed = Annotated[int, typer.Option(min=0, help="random seed; the same seed gives the same result")]
Threads = Annotated[
    int, typer.Option(min=0, help="threads of the engine; 0: all cores. The result does not depend on it")
]
RecordingsArg = Annotated[Path, typer.Argument(help="folder in the recordings format")]


class Out:
    """Where results go: a table for people on stdout, JSON for machines."""

    def __init__(self, json_file: str | None) -> None:
        self.json_file = json_file
        self.console = Console(stderr=json_file == "-", width=None if sys.stdout.isatty() else 150)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        table = Table(title=title, title_justify="left")
        for i, name in enumerate(columns):
            numeric = i > 0 and any(isinstance(row[i], int | float) for row in rows)
            table.add_column(name, justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row))
        self.console.print(table)

    def show(self, result: Result) -> None:
        """All of a result: JSON, tables, further lines, and what is wrong with it."""
        self.write(result.to_dict())
        for made in result.tables():
            self.table(made.title, made.columns, made.rows)
        for note in result.notes():
            errors.print(note, soft_wrap=True)
        if (problem := result.problem()) is not None:
            raise CaromError(problem)

    def write(self, result: Any) -> None:
        if self.json_file is None:
            return
        text = json.dumps(plain(result), indent=1, allow_nan=False)
        if self.json_file == "-":
            print(text)
            return
        from carom.core.artefacts import atomically

        path = Path(self.json_file)
        path.parent.mkdir(parents=True, exist_ok=True)
        atomically(path, lambda file: file.write((text + "\n").encode()))


def run(json_file: str | None, recipe: Callable[[Progress], Result]) -> None:
    """Follow a recipe with a progress bar, and show its result."""
    printer = Out(json_file)
    with bar() as progress:
        result = recipe(progress)
    printer.show(result)


@contextmanager
def bar() -> Iterator[Progress]:
    """A progress bar on stderr: call with what is done, how much, of how much."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    quiet = not errors.is_terminal  # a log file wants lines, not a bar
    with rich.progress.Progress(*columns, *times, console=errors, transient=True, disable=quiet) as progress:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield update
