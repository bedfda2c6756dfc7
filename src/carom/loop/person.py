"""A person in the loop: what to record is written down, the loop stops, and goes on when the recordings are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from carom.core.artefacts import write_text
from carom.core.errors import CaromError
from carom.recipes.checking import check
from carom.recipes.result import PrintedTable
from carom.recordings.formats.header import HEADER_NAME
from carom.state import Array

WANTED = "wanted.csv"


@dataclass(frozen=True)
class Request:
    """What a person is asked to record."""

    words: str
    columns: tuple[str, ...]  #: with units
    rows: Array  #: [N, C]
    folder: Path  #: where the recordings go
    listed: Path  #: the same rows as CSV
    extra: Mapping[str, str]  #: further facts, such as where the policy is

    def table(self) -> PrintedTable:
        """For a terminal."""
        rows = [[f"{i}", *(f"{v:.4g}" for v in row)] for i, row in enumerate(self.rows, start=1)]
        return PrintedTable("record these", ("", *self.columns), rows, (self.words,))


class Waiting(Exception):  # noqa: N818 (no error: the loop waits for a person)
    """The loop cannot go on before a person has recorded something."""

    def __init__(self, request: Request) -> None:
        super().__init__(request.words)
        self.request = request


def recorded_by_person(
    folder: Path, *, what: str, columns: Sequence[str], rows: Array, words: str, extra: Mapping[str, str] | None = None
) -> Path:
    """The folder of recordings if a person has filled it, checked as `carom check` does; else stops the loop.

    `rows` [N, C] are the recordings that are asked for. They are also written beside the folder as `wanted.csv`.
    """
    listed = folder.parent / WANTED
    write_text(listed, _csv(columns, rows))
    if not (folder / HEADER_NAME).is_file():
        told = (
            f"{words} Record these {len(rows)} {what}, put {HEADER_NAME} and one file for each into {folder}, and run "
            "the same command again."
        )
        raise Waiting(Request(told, tuple(columns), np.asarray(rows), folder, listed, dict(extra or {})))
    report = check(folder)
    if (problem := report.problem()) is not None:
        raise CaromError(f"{problem}; put it right there, and run the same command again")
    count = report.report.readable
    if count < len(rows):
        raise CaromError(
            f"{folder}: expected recordings of {len(rows)} {what} (see {listed}), got {count}; add those that are "
            "missing, and run the same command again"
        )
    return folder


def _csv(columns: Sequence[str], rows: Array) -> str:
    lines = [",".join(("number", *columns))]
    lines += [",".join([str(i), *(f"{v:.6g}" for v in row)]) for i, row in enumerate(rows, start=1)]
    return "\n".join(lines) + "\n"
