"""Wasserstein distances (order 1): what one more transition does to a set of them, and how far two sets are apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from carom.core.errors import CaromError
from carom.state import Array

PROJECTIONS = 64  #: directions of the sliced distance


def of_one_more(data: ArrayLike, points: ArrayLike) -> Array:
    """W1(P + one point, P) [N]: by how much each of these points [N, D] would move the data's distribution [M, D].

    With P = 1/M sum delta(x_i) and Q = (M P + delta(y)) / (M + 1), P - Q is (P - delta(y)) / (M + 1). By duality W1 is
    linear in it, and from a single point everything is carried to every x_i. So it is the mean distance of the point
    to the data over M + 1: exact, without a search.

    >>> of_one_more([[0.0], [2.0]], [[1.0], [4.0]]).tolist()
    [0.3333333333333333, 1.0]
    """
    x, y = (np.asarray(a, dtype=np.float64) for a in (data, points))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or not len(x):
        raise CaromError(f"expected data [M, D] and points [N, D] of as many columns, got {x.shape} and {y.shape}")
    return np.asarray(mean_distances(x, y) / (len(x) + 1))


def mean_distances(data: Array, points: Array) -> Array:
    """Mean Euclidean distance [N] of points [N, D] to data [M, D], by one matrix product."""
    square = (points**2).sum(axis=1)[:, None] + (data**2).sum(axis=1) - 2 * points @ data.T
    return np.asarray(np.sqrt(np.maximum(square, 0.0)).mean(axis=1))


def wasserstein_1d(a: ArrayLike, b: ArrayLike) -> float:
    """W1 of two sets of numbers [N] and [M]: the area between their cumulative distributions.

    >>> wasserstein_1d([0.0, 1.0], [2.0, 3.0])
    2.0
    """
    x, y = np.sort(np.asarray(a, dtype=np.float64)), np.sort(np.asarray(b, dtype=np.float64))
    if not len(x) or not len(y):
        raise CaromError("a distance between sets needs a number or more in each")
    both = np.sort(np.concatenate([x, y]))
    below = [np.searchsorted(s, both[:-1], side="right") / len(s) for s in (x, y)]
    return float((np.abs(below[0] - below[1]) * np.diff(both)).sum())


def sliced_wasserstein(a: ArrayLike, b: ArrayLike, *, projections: int = PROJECTIONS, seed: int = 0) -> float:
    """Sliced W1 of two sets [N, D] and [M, D]: the mean of W1 along random directions. At most W1 itself."""
    x, y = (np.asarray(s, dtype=np.float64) for s in (a, b))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise CaromError(f"expected two arrays [N, D] with the same columns, got shapes {x.shape} and {y.shape}")
    drawn = np.random.default_rng(seed).standard_normal((projections, x.shape[1]))
    ways = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return float(np.mean([wasserstein_1d(x @ way, y @ way) for way in ways]))
