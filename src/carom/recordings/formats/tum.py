"""Trajectories of the TUM kind: rows of `time x y z qx qy qz qw`, w last unless a comment says it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from carom.core.errors import RecordingError
from carom.recordings.formats.clean import rate_of, track
from carom.recordings.formats.pose_rows import are_unit, head_of, if_far, order_named, rises, rows_of, seconds, sniffed
from carom.recordings.formats.take import ReadOptions, Take
from carom.recordings.formats.text_rows import LENGTHS, numbers

NAME = "TUM trajectory"
WIDTH = 8


def recognise(path: Path, head: bytes) -> float:
    """By eight numbers in each row: a time that rises, and four numbers at the end that make a unit quaternion."""
    found = sniffed(head)
    if found is None or found[1].shape[1] != WIDTH:
        return 0.0
    separator, rows, comments = found
    if not are_unit(rows[:, 4:]) or not rises(rows[:, 0]):
        return 0.0
    if separator != " " and any(len(line.split(separator)) == WIDTH for line in comments):
        return 0.0  # a table whose names say what its columns are
    return 0.9 if any("qx" in comment and "qw" in comment for comment in comments) else 0.8


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The one body of a trajectory, which is called as its file is."""
    separator, _, comments = sniffed(head_of(path)) or (" ", None, [])
    rows = rows_of(path, separator)
    data, told = numbers(rows, 0, WIDTH)
    said = list(told)
    wrong = next((p for p, cells in enumerate(rows.cells[: len(data)]) if len(cells) != WIDTH), None)
    if wrong is not None:
        got = len(rows.cells[wrong])
        raise rows.fault(f"expected 8 numbers (time x y z qx qy qz qw), got {got}", code="row-length", row=wrong)
    if len(data) == 0:
        raise rows.fault("no row of numbers; expected rows of time x y z qx qy qz qw", code="empty")
    time, unit = seconds(path, data[:, 0], options.time_unit, options.rate)
    if unit is not None:
        said.append(f"times are in {unit}")
    order, words = _order(path, separator, order_named(comments), options)
    said += words
    quaternion = data[:, 4:] if order == "wxyz" else data[:, [7, 4, 5, 6]]
    if options.quaternion_order is None and order == "xyzw" and _looks_w_first(data[:, 4:]):
        said.append(
            "quaternions are read with w last, as TUM has it, but their first number is near 1 throughout: if that is "
            "w, say --quaternion wxyz"
        )
    made, done = track(path.stem, time, data[:, 1:4] * LENGTHS[options.length_unit or "m"], quaternion, zero=True)
    said += [*done, *if_far(made.position)]
    return (
        Take(path.stem, NAME, tracks=(made,), clock="stamps of the rows", rate=rate_of(made.time), said=tuple(said)),
    )


def _order(path: Path, separator: str, named: str | None, options: ReadOptions) -> tuple[str, list[str]]:
    """Where w is: as the user says it, as names in a comment do, else last, as the format has it between spaces."""
    if options.quaternion_order is not None:
        return options.quaternion_order, []
    if named is not None:
        return named, ["quaternions have w first, as the comment says"] if named == "wxyz" else []
    if separator == " ":
        return "xyzw", []
    raise RecordingError(
        f"{path}: eight numbers in each row, without names: TUM has w last and spaces between them, EuRoC w first, "
        "commas and nanoseconds, and this is neither; say --quaternion wxyz or --quaternion xyzw"
    )


def _looks_w_first(last_four: np.ndarray) -> bool:
    """Whether a body that hardly turns would have w first: else it would be upside down all the time."""
    return bool(np.nanmedian(np.abs(last_four[:, 0])) > 0.98) if np.isfinite(last_four[:, 0]).any() else False
