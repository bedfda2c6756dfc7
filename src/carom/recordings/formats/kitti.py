"""Trajectories of the KITTI kind: each row the upper three rows of a pose's 4 by 4 matrix, and no times."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from carom.core.errors import RecordingError
from carom.core.rotations import from_scipy
from carom.recordings.formats.clean import rate_of, track
from carom.recordings.formats.pose_rows import head_of, rows_of, seconds, sniffed
from carom.recordings.formats.take import ReadOptions, Take
from carom.recordings.formats.text_rows import LENGTHS, numbers
from carom.state import Array

NAME = "KITTI poses"
WIDTH = 12
WIDTHS = (WIDTH, 16)  #: with the last row of the matrix, 0 0 0 1, or without
SKEW = 0.01  #: by which a matrix of rounded numbers may differ from a rotation


def recognise(path: Path, head: bytes) -> float:
    """By twelve numbers in each row that hold a rotation."""
    found = sniffed(head)
    if found is None or found[1].shape[1] not in WIDTHS:
        return 0.0
    rows = found[1]
    if rows.shape[1] == WIDTHS[1] and not (np.abs(rows[:, WIDTH:] - [0, 0, 0, 1]) < SKEW).all():
        return 0.0
    return 0.85 if _are_rotations(rows[:, :WIDTH].reshape(-1, 3, 4)[:, :, :3]).mean() > 0.9 else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The one body of a file, which is called as its file is; its times are beside it, or follow from `--rate`."""
    separator, first, _ = sniffed(head_of(path)) or (" ", None, [])
    width = WIDTHS[1] if first is not None and first.shape[1] == WIDTHS[1] else WIDTH
    rows = rows_of(path, separator)
    data, told = numbers(rows, 0, width)
    wrong = next((p for p, cells in enumerate(rows.cells[: len(data)]) if len(cells) != width), None)
    if wrong is not None:
        got = len(rows.cells[wrong])
        raise rows.fault(f"expected {width} numbers (rows of a matrix), got {got}", code="row-length", row=wrong)
    if len(data) == 0:
        raise rows.fault("no row of numbers; expected rows of 12 numbers", code="empty")
    said = list(told)
    matrix = data[:, :WIDTH].reshape(-1, 3, 4)
    good = _are_rotations(matrix[:, :, :3])
    if not good.all():
        said.append(f"{int((~good).sum())} matrices are no rotations: taken as lost")
    quaternion = np.full((len(data), 4), np.nan)
    if good.any():
        from scipy.spatial.transform import Rotation

        quaternion[good] = from_scipy(Rotation.from_matrix(matrix[good, :, :3]))
    time, clock = _times(path, len(data), options, said)
    place = np.where(good[:, None], matrix[:, :, 3], np.nan) * LENGTHS[options.length_unit or "m"]
    made, words = track(path.stem, time, place, quaternion)
    said += (*words, "KITTI's own frame is that of its camera: x to the right, y down, z ahead")
    return (Take(path.stem, NAME, tracks=(made,), clock=clock, rate=rate_of(made.time), said=tuple(said)),)


def _are_rotations(matrices: Array) -> np.ndarray:
    """Which of the matrices [R, 3, 3] are rotations [R]."""
    with np.errstate(all="ignore"):
        off = np.abs(matrices @ np.swapaxes(matrices, 1, 2) - np.eye(3)).max(axis=(1, 2))
        return np.asarray((off < SKEW) & (np.linalg.det(matrices) > 0))


def _times(path: Path, count: int, options: ReadOptions, said: list[str]) -> tuple[Array, str]:
    """Times of the rows [T] s, and where they are from."""
    if options.rate is not None:
        return np.arange(count) / options.rate, f"row numbers over {options.rate:g} Hz"
    folder = path.parent
    beside = (
        folder / f"{path.stem}_times.txt",
        folder / "times.txt",
        folder.parent / "sequences" / path.stem / "times.txt",
        folder.parent / "times.txt",
    )
    file = next((place for place in beside if place.is_file()), None)
    if file is None:
        raise RecordingError(
            f"{path}: KITTI's poses have no times, and there is no times.txt beside them; give --rate HZ, or the file"
        )
    rows = rows_of(file, " ")
    stamps, told = numbers(rows, 0, 1)
    if len(stamps) < count or not np.isfinite(stamps[:count, 0]).all():
        raise RecordingError(f"{file}: expected {count} times, one for each row of {path.name}, got {len(stamps)}")
    said += told
    if len(stamps) > count:
        said.append(f"{file.name} has {len(stamps)} times for {count} poses: the first ones count")
    time, _ = seconds(file, stamps[:count, 0], options.time_unit)
    return time, f"{file.name} beside it"
