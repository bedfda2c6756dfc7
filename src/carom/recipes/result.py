"""What every recipe returns: a result that prints itself as tables and writes itself as JSON."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PrintedTable:
    """A table for people."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()  #: lines under it: what its figures mean


class Result(ABC):
    """What a recipe found or made."""

    @abstractmethod
    def to_dict(self) -> Any:
        """The result as plain values that JSON can hold."""

    @abstractmethod
    def tables(self) -> Sequence[PrintedTable]:
        """What the command prints."""

    def notes(self) -> Sequence[str]:
        """Further lines for a person: files that were written, what was left out."""
        return ()

    def next_commands(self) -> Sequence[str]:
        """What to type next, with the paths of this result; printed where there is no problem."""
        return ()

    def problem(self) -> str | None:
        """Why the command ends with exit code 2 although there is a result; None if all is well."""
        return None


def command(*words: object) -> str:
    """A command of Carom as one types it into a shell.

    >>> command("check", "my lab")
    "carom check 'my lab'"
    """
    return shlex.join(["carom", *map(str, words)])


def table_of(title: str, facts: Mapping[str, Any]) -> PrintedTable:
    """Facts as a table of two columns."""
    return PrintedTable(title, ("what", "value"), [[name, brief(value)] for name, value in facts.items()])


def brief(value: Any) -> str:
    """A value on one line of a table: ranges as low to high, dicts as their names and values.

    >>> brief({"size": [0.1, 0.25], "bodies": [1, 1]})
    'size 0.1 to 0.25, bodies 1'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {brief(v)}" for k, v in value.items() if v is not None)
    if isinstance(value, list):
        if any(isinstance(v, list) for v in value):
            return "; ".join(brief(v) for v in value)
        return " to ".join(dict.fromkeys(map(brief, value))) if len(value) == 2 else ", ".join(map(brief, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
