"""How a row of a recording is named to a person."""

from __future__ import annotations

from carom.recordings.trajectory import Trajectory

FIRST_ROW = 2  #: line of the first sample of a CSV file, below its header


def row_of(trajectory: Trajectory, index: int) -> int:
    """The 1-based line (CSV) or sample (npz, Parquet) of a row."""
    return index + FIRST_ROW if trajectory.path.suffix == ".csv" else index + 1
