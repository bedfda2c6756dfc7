"""Where a tracked point falls freely, in whatever direction: pieces of its path that bend as gravity bends them.

Pieces of several lengths are tried. Short ones find the flights of balls between bounces; in long ones the wobble of a
body whose tracked point is off its centre of mass cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carom.core.constants import GRAVITY
from carom.state import Array

SPANS = (0.1, 0.2, 0.4)  #: [s] of pieces
SHORTEST = 0.06  #: [s] of further pieces, where it is known which way is down
EVEN = 1e-3  #: of a piece's half, by which stamps of an even clock may be off
FEWEST = 6  #: samples of a piece
OFF = 0.08  #: of gravity, by which the acceleration of free fall may be off
BEND = 26.8  #: error of a quadratic's bend, over scatter / (span^2 sqrt(samples))
UNSURE = 0.1  #: of gravity, by which that error may be off
DIRECTIONS = {
    name: sign * np.eye(3)[axis] for axis, word in enumerate("xyz") for name, sign in ((word, 1.0), (f"-{word}", -1.0))
}


@dataclass(frozen=True)
class Pieces:
    """Quadratic fits to overlapping pieces of a path."""

    begin: Array  #: [K] s
    end: Array  #: [K] s
    bend: Array  #: [K, 3] acceleration
    last: Array  #: [K, 3] velocity at the end of each piece


def pieces_of(time: Array, position: Array, spans: Sequence[float] = SPANS) -> Pieces:
    """Fits whose bend is known well enough to tell a fall, over all spans."""
    good = np.flatnonzero(np.isfinite(position).all(axis=-1))
    found = [_fits(time[good], position[good], span) for span in spans]
    begin, end, bend, last = (np.concatenate([each[k] for each in found]) for k in range(4))
    return Pieces(begin, end, bend, last)


def falls_along(pieces: Pieces, axis: str, factor: float = 1.0) -> Array:
    """Which pieces [K] fall freely with this axis ("z", "-y") up, if lengths are `factor` times too large.

    A slide with friction near 1 is braked as hard as a throw upward, but it never turns back: the end must go down.
    """
    down = -GRAVITY * factor * DIRECTIONS[axis]
    near = np.linalg.norm(pieces.bend - down, axis=-1) < OFF * GRAVITY * factor
    return np.asarray(near & (pieces.last @ down > 0))


def _fits(time: Array, position: Array, span: float) -> tuple[Array, Array, Array, Array]:
    nothing = np.zeros(0), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3))
    if len(time) <= FEWEST:
        return nothing
    period = float(np.median(np.diff(time)))
    count = max(round(span / period), FEWEST)
    if len(time) <= count or count * period > 2 * span:
        return nothing
    rows = np.arange(0, len(time) - count, max(count // 4, 1))[:, None] + np.arange(count)
    t = time[rows]
    whole = t[:, -1] - t[:, 0] < 1.5 * count * period  # without long gaps
    t, p = t[whole], position[rows[whole]]
    if not len(t):
        return nothing
    middle = t.mean(axis=1, keepdims=True)
    half = np.maximum(np.abs(t - middle).max(axis=1), 1e-12)[:, None]
    within = (t - middle) / half
    if np.ptp(within, axis=0).max() < EVEN:
        within = within[:1]  # one clock that beats evenly: one fit serves all pieces
    basis = within[..., None] ** np.arange(3)
    fit = np.linalg.pinv(basis) @ p
    left = np.linalg.norm((p - basis @ fit).std(axis=1), axis=-1) * np.sqrt(count / max(count - 3, 1))
    scale = half[:, 0]
    bend = 2 * fit[:, 2] / scale[:, None] ** 2
    size = np.maximum(np.linalg.norm(bend, axis=-1), 1e-12)
    sure = BEND * left / ((2 * scale) ** 2 * np.sqrt(count)) < UNSURE * size
    last = fit[:, 1] / scale[:, None] + bend * scale[:, None]
    return t[sure, 0], t[sure, -1], bend[sure], last[sure]
