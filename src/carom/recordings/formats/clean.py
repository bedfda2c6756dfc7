"""Samples of other makers' files made fit for use: order of stamps, lost samples, signs and lengths of quaternions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import RecordingError
from carom.recordings.formats.take import Track
from carom.state import Array

Rows = NDArray[np.intp]
LOST = (-16512.0,)  #: numbers that some makers write for a point that was not seen
LATE = 1.0  #: [s] by which a sample may come after a later one; stamps that run back farther belong to a clock set anew
FAR_FROM_UNIT = 0.05  #: from the length 1 by which a quaternion may be off (rounding) before its sample is lost
FARTHEST = 1e6  #: [m]; what lies farther away is no measurement


def ordered(time: Array) -> tuple[Rows, tuple[str, ...]]:
    """Rows [R] that make stamps [T] strictly increasing, and what had to be done for that.

    Samples that came late are put in their place. Of samples with the same stamp the first stays. Where a clock was set
    back, what follows stays out until the stamps pass the latest one before.

    >>> rows, said = ordered(np.array([0.0, 0.1, 0.1, 0.3, 0.2]))
    >>> rows.tolist(), said
    ([0, 1, 4, 3], ('1 stamps repeat: the first sample of each stays', '1 samples came late: put in their place'))
    """
    said: list[str] = []
    finite = np.isfinite(time)
    rows = np.flatnonzero(finite)
    if len(rows) < len(time):
        said.append(f"{len(time) - len(rows)} samples without a stamp are left out")
    if len(rows) == 0:
        return rows, tuple(said)
    latest = np.maximum.accumulate(time[rows])
    behind = latest - time[rows]
    reset = behind > LATE
    if reset.any():
        said.append(f"{int(reset.sum())} samples are left out: their clock was set back by {behind.max():.3g} s")
        rows = rows[~reset]
    order = np.argsort(time[rows], kind="stable")
    late = int((np.diff(time[rows]) < 0).sum())
    rows = rows[order]
    new = np.concatenate([[True], np.diff(time[rows]) > 0])
    if not new.all():
        said.append(f"{int((~new).sum())} stamps repeat: the first sample of each stays")
    if late:
        said.append(f"{late} samples came late: put in their place")
    return rows[new], tuple(said)


def continuous(quaternion: Array) -> Array:
    """The same rotations [T, 4] with signs such that neighbours are near each other; NaN stays NaN.

    >>> continuous(np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]]))[1].tolist()
    [1.0, -0.0, -0.0, -0.0]
    """
    good = np.flatnonzero(np.isfinite(quaternion).all(axis=-1))
    if len(good) < 2:
        return quaternion
    turned = quaternion.copy()
    flips = np.einsum("ti,ti->t", quaternion[good[1:]], quaternion[good[:-1]]) < 0
    turned[good[1:]] *= np.where(np.cumsum(flips) % 2 == 1, -1.0, 1.0)[:, None]
    return turned


def lost_points(position: Array, *, zero: bool = False) -> Array:
    """Positions [..., 3] with NaN where a maker's mark for a lost point stands; `zero`: three zeros are one too."""
    gone = np.asarray(~np.isfinite(position).all(axis=-1) | np.isin(position, LOST).any(axis=-1))
    if zero:
        gone |= (position == 0).all(axis=-1)
    return np.where(gone[..., None], np.nan, position)


def track(
    name: str, time: Array, position: Array, quaternion: Array | None, *, zero: bool = False
) -> tuple[Track, tuple[str, ...]]:
    """A body's track from rows as a file has them, and what was done to them.

    Positions in metres, quaternions w-first. Stamps are put in order, lost samples become NaN (`zero`: a pose of all
    zeros is one), quaternions get unit length and signs without jumps.
    """
    if not len(time) == len(position) == (len(time) if quaternion is None else len(quaternion)):
        raise RecordingError(f"body '{name}': its columns have different lengths")
    rows, said = ordered(time)
    found = list(said)
    position = lost_points(np.asarray(position, dtype=np.float64)[rows], zero=zero and quaternion is None)
    far = np.abs(np.nan_to_num(position)).max(axis=-1, initial=0.0) > FARTHEST
    if far.any():
        found.append(f"{int(far.sum())} samples lie more than {FARTHEST:g} m away: taken as lost")
        position[far] = np.nan
    if quaternion is not None:
        quaternion, words = _tidy(np.asarray(quaternion, dtype=np.float64)[rows])
        found += words
        lost = ~np.isfinite(quaternion).all(axis=-1)
        if zero:
            position[lost & (np.nan_to_num(position) == 0).all(axis=-1)] = np.nan
        quaternion[~np.isfinite(position).all(axis=-1)] = np.nan
        if lost.all() and len(rows) and np.isfinite(position).any():
            found.append("no orientation was measured")
            quaternion = None
    return Track(name, time[rows], position, quaternion), tuple(f"{name}: {words}" for words in found)


def _tidy(quaternion: Array) -> tuple[Array, list[str]]:
    said: list[str] = []
    with np.errstate(invalid="ignore", over="ignore"):
        length = np.linalg.norm(quaternion, axis=-1)
        empty = ~np.isfinite(length) | (length < 1e-6)
        wrong = ~empty & (np.abs(length - 1) > FAR_FROM_UNIT)
        if wrong.any():
            example = float(length[wrong][0])
            said.append(f"{int(wrong.sum())} quaternions are not of length 1 ({example:.3g} and others): taken as lost")
        tidy = np.where((empty | wrong)[:, None], np.nan, quaternion / np.where(length > 0, length, 1.0)[:, None])
    turned = continuous(tidy)
    same = np.einsum("ti,ti->t", turned, tidy)
    flipped = int((np.diff(np.sign(same[np.isfinite(same)])) != 0).sum())
    if flipped:
        said.append(f"the sign of the quaternion jumps {flipped} times: made continuous")
    return turned, said


def rate_of(time: Array) -> float | None:
    """Samples per second [Hz], the median of the rows; None where there are too few.

    Stamps rounded to milliseconds would make the median of the steps wrong: the mean is taken where it is near.
    """
    if len(time) < 2:
        return None
    steps = np.diff(time)
    median = float(np.median(steps))
    near = steps[np.abs(steps - median) < 0.5 * median]
    return float(f"{1.0 / float(near.mean()):.9g}") if len(near) and median > 0 else None
