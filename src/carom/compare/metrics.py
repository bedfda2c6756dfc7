"""How good predictions of impacts are: relative error in the kinetic-energy norm, accuracy (Eq. 4), calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from carom.core.errors import CaromError
from carom.state import Array


def relative_error(predicted: ArrayLike, measured: ArrayLike, k: float) -> Array:
    """Error of predicted outcomes over the size of the measured ones [N], in the norm of (vx, vy, k*wz).

    Both are planar velocities [N, 3]; `k` is the target's radius of gyration [m]. A prediction that is not finite has
    an infinite error: a method that fails on a strike has not predicted it. So has any motion predicted for a target
    that was measured at rest.

    >>> relative_error([[0.9, 0.0, 0.0]], [[1.0, 0.0, 0.0]], 0.03).round(3).tolist()
    [0.1]
    """
    p, m = _pair(predicted, measured)
    if not (np.isfinite(k) and k > 0):
        raise CaromError(f"k: expected the target's radius of gyration, a positive length [m], got {k}")
    scale = np.array([1.0, 1.0, k])
    error = np.linalg.norm((p - m) * scale, axis=-1)
    size = np.linalg.norm(m * scale, axis=-1)
    ratio = np.divide(error, size, out=np.where(error == 0.0, 0.0, np.inf), where=size > 0)
    return np.where(np.isfinite(p).all(axis=-1), ratio, np.inf)


def accuracy(error: ArrayLike, alpha: float) -> float:
    """Share of the test strikes whose relative error [N] is below `alpha` (Eq. 4 of CLASH).

    >>> accuracy([0.02, 0.08, 0.3, float("inf")], 0.1)
    0.5
    """
    e = np.asarray(error, dtype=np.float64).ravel()
    if not len(e):
        raise CaromError("accuracy of no strikes at all: the test set is empty")
    return float((e < alpha).mean())


def summary(error: ArrayLike) -> dict[str, float]:
    """The three figures that every comparison of methods shows, from relative errors [N]."""
    e = np.asarray(error, dtype=np.float64).ravel()
    return {
        "accuracy@0.1": accuracy(e, 0.1),
        "accuracy@0.05": accuracy(e, 0.05),
        "median-relative-error": float(np.median(e)),
    }


def coverage(
    predicted: ArrayLike, std: ArrayLike, measured: ArrayLike, levels: Sequence[float] = (0.5, 0.9)
) -> dict[str, float]:
    """Share of all measured components that fall into the central intervals predicted for them, by level.

    A calibrated model has `coverage@0.9` near 0.9; below it, the model is surer than it may be.
    """
    p, m = _pair(predicted, measured)
    s, _ = _pair(std, measured)
    for level in levels:
        if not 0 < level < 1:
            raise CaromError(f"levels: expected numbers between 0 and 1, got {level}")
    distance = np.abs(m - p)
    return {f"coverage@{level:g}": float((distance <= norm.ppf(0.5 + level / 2) * s).mean()) for level in levels}


def _pair(predicted: ArrayLike, measured: ArrayLike) -> tuple[Array, Array]:
    p, m = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    if m.ndim != 2 or m.shape[1] != 3 or p.shape != m.shape:
        raise CaromError(f"expected predicted and measured (vx, vy, wz) of shape (N, 3), got {p.shape} and {m.shape}")
    if not len(m):
        raise CaromError("no strikes to score: the arrays are empty")
    if not np.isfinite(m).all():
        raise CaromError(f"measured outcome of strike {int(np.argmin(np.isfinite(m).all(axis=1)))} is not finite")
    return p, m
