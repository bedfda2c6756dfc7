"""Progress for whoever watches: a bar on a terminal, now and then a line in a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import rich.progress
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from carom.cli.drawing import harmless
from carom.core.progress import Progress

EVERY = 10.0  #: [s] after which a log gets a line even if nothing has happened
AT_MOST = 1.0  #: [s] between two lines of a log, at least
WAITING = "working"  #: until the work says what it does


@contextmanager
def watched(console: Console) -> Iterator[Progress]:
    """Progress on a console: call with what is done, how much, of how much."""
    with _bar(console) if console.is_terminal else _log(console) as progress:
        yield progress


@contextmanager
def _bar(console: Console) -> Iterator[Progress]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn())
    counts = (TextColumn("{task.completed:.0f}/{task.total:.0f}"), TimeElapsedColumn(), TimeRemainingColumn())
    with rich.progress.Progress(*columns, *counts, console=console, transient=True) as progress:
        tasks: dict[str, Any] = {WAITING: progress.add_task(WAITING, total=1)}

        def update(what: str, done: int, total: int) -> None:
            if WAITING in tasks:
                progress.remove_task(tasks.pop(WAITING))
            if what not in tasks:
                tasks[what] = progress.add_task(harmless(what), total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield update


@contextmanager
def _log(console: Console) -> Iterator[Progress]:
    lines = Lines(lambda line: console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True))
    ended = Event()

    def beat() -> None:
        while not ended.wait(AT_MOST):
            lines.beat()

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield lines.update
    finally:
        ended.set()
        thread.join()


class Lines:
    """A line for each stage of some work, and one every `EVERY` seconds; it is a `Progress`."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._say, self._clock, self._lock = say, clock, Lock()
        self._begun = self._said = clock()
        self._what, self._done, self._total = WAITING, 0, 0
        self._told = ""

    def update(self, what: str, done: int, total: int) -> None:
        """Note what is done; a new stage gets a line unless there has just been one."""
        with self._lock:
            self._what, self._done, self._total = what, done, total
            quiet = self._clock() - self._said
            if (what != self._told and quiet >= AT_MOST) or quiet >= EVERY:
                self._line()

    def beat(self) -> None:
        """Say what is being done if nothing was said for a while, or if a stage has not had its line."""
        with self._lock:
            quiet = self._clock() - self._said
            if quiet >= EVERY or (self._what not in (self._told, WAITING) and quiet >= AT_MOST):
                self._line()

    def _line(self) -> None:
        self._said, self._told = self._clock(), self._what
        counted = f": {self._done} of {self._total}" if self._total else ""
        self._say(harmless(f"... {self._what}{counted}, after {self._said - self._begun:.0f} s"))
