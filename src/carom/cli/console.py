"""Where results go: tables for people, JSON for machines; what to do next, and what is wrong."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, final

from rich.console import Console
from rich.text import Text

from carom.cli.drawing import draw, harmless
from carom.cli.watching import watched
from carom.core.artefacts import plain, write_text
from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.core.work import on as work_on
from carom.recipes.result import PrintedTable, Result

PIPED = 120  #: characters of a line where there is no terminal and COLUMNS says nothing


@final
class Screen(Console):
    """A console that leaves it to `main` what happens when nobody reads on."""

    def on_broken_pipe(self) -> None:
        raise


errors = Screen(stderr=True)
WARNING = "warning"  #: how a line begins that is said even to those who want quiet
_quiet = False


def hush(quiet: bool) -> None:
    """Say no more than results, warnings and errors from here on; or all again."""
    global _quiet
    _quiet = quiet


def say(line: str, *, whole: bool = False) -> None:
    """A line for a person, on stderr. On a terminal it wraps between words, unless it is to be copied as a `whole`."""
    if _quiet and not line.startswith(WARNING):
        return
    errors.print(Text(harmless(line)), soft_wrap=whole or not errors.is_terminal)


class Out:
    """Where the result of a command goes."""

    def __init__(self, json_file: str | None) -> None:
        self.json_file = json_file
        to_errors = json_file == "-"
        stream = sys.stderr if to_errors else sys.stdout
        width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPED
        self.console = Screen(stderr=to_errors, width=width)

    def table(self, table: PrintedTable) -> None:
        draw(self.console, table)

    def show(self, result: Result, *, more: Sequence[str] = ()) -> None:
        """All of a result: JSON, tables, further lines and `more`, what is wrong with it or what to do next."""
        self.write(result.to_dict())
        for made in result.tables():
            self.table(made)
        for note in (*result.notes(), *more):
            say(note)
        if (problem := result.problem()) is not None:
            raise CaromError(problem)
        for command in result.next_commands():
            say(f"next: {command}", whole=True)

    def write(self, result: Any) -> None:
        if self.json_file is None:
            return
        text = json.dumps(plain(result), indent=1, allow_nan=False)
        if self.json_file == "-":
            print(text)
        else:
            write_text(Path(self.json_file), text + "\n")


def run(json_file: str | None, recipe: Callable[[Progress], Result], *, on: str | None = None) -> None:
    """Follow a recipe, with its progress, and show its result; `on` says where its pieces are made."""
    printer = Out(json_file)
    with working(on) as (progress, cost):
        result = recipe(progress)
    printer.show(result, more=cost())


@contextmanager
def working(on: str | None) -> Iterator[tuple[Progress, Callable[[], Sequence[str]]]]:
    """Progress that is shown while pieces are made where `on` says; and what that has cost, to be asked in the end."""
    with work_on(on) as workers, nullcontext(silent) if _quiet else watched(errors) as progress:
        yield progress, lambda: workers.costs()
