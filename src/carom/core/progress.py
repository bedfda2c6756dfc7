"""How long-running work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  #: what is done, how much of it, of how much
Steps = Callable[[int, int], None]  #: the same for one thing: how much is done, of how much


def silent(what: str, done: int, total: int) -> None:
    """A `Progress` that nobody watches."""


def steps_of(progress: Progress | None, what: str) -> Steps | None:
    """The `Steps` of one thing, reported to a `Progress`; None stays None."""
    return None if progress is None else lambda done, total: progress(what, done, total)
