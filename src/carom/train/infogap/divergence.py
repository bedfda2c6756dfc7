"""How far a simulator is from reality: the Kullback-Leibler divergence KL(real || simulated), by several estimators.

Real and simulated transitions of the same inputs are paired: row i of both began in the same state, with the same
action. Then the divergence of the two *conditional* distributions of what comes next is what counts, and it needs no
density: it is the residual in units of measurement noise (`conditional_kl`, the default). The others take the two sets
for independent samples of marginal distributions, as the paper does (section II-D). They are kept for comparison.

All results are in nats. Zero means no gap. An estimate from few samples may lie below zero; `gap` cuts it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree
from scipy.special import logsumexp

from carom.core.errors import CaromError, unknown_name
from carom.state import Array

NEIGHBOURS = 4  #: of the nearest-neighbour estimator
FEWEST = 8  #: samples of each set that a density can be estimated from
RIDGE = 1e-9  #: share of the mean variance that is added to a covariance, so that it can be inverted
CHUNK = 512  #: rows of a kernel density at a time: bounds the memory
LEAST = 1e-12  #: distance between samples that counts as none


def conditional_kl(real: ArrayLike, simulated: ArrayLike, noise: ArrayLike) -> float:
    """KL of what really came next against what was simulated, given the same inputs [nats]; the default.

    Rows [N, D] are paired; `noise` [D] is the standard deviation of a measured difference, in the columns' units. Both
    are Gaussians of that width around their means, so a row's divergence is half the squared residual in units of
    noise. Noise in the real rows alone would give D/2; it is taken off, so a perfect simulator gives 0 in the mean.

    >>> conditional_kl([[1.0], [3.0]], [[0.0], [0.0]], [1.0])
    2.0
    """
    a, b = _pair(real, simulated)
    if len(a) != len(b):
        raise CaromError(f"paired transitions: expected as many simulated as real ones, got {len(b)} and {len(a)}")
    return float(0.5 * (residuals(a, b, noise) ** 2 - 1).sum(axis=1).mean())


def residuals(real: ArrayLike, simulated: ArrayLike, noise: ArrayLike) -> Array:
    """What paired transitions [N, D] differ by, in units of measurement noise [D]."""
    a, b = _pair(real, simulated)
    sd = np.asarray(noise, dtype=np.float64)
    if sd.shape != a.shape[1:] or not (np.isfinite(sd).all() and (sd > 0).all()):
        raise CaromError(f"noise: expected {a.shape[1]} positive numbers, one for each column, got {sd.tolist()}")
    return np.asarray((a - b) / sd)


def gaussian_kl(real: ArrayLike, simulated: ArrayLike) -> float:
    """KL of two Gaussians with the samples' means and covariances [nats]: exact if they are Gaussian."""
    a, b = _pair(real, simulated)
    width = a.shape[1]
    if min(len(a), len(b)) < width + 2:
        raise CaromError(f"Gaussian KL of {width} columns: expected {width + 2} rows or more, got {len(a)}, {len(b)}")
    p, q = (np.atleast_2d(np.cov(x, rowvar=False)) for x in (a, b))
    tiny = RIDGE * max(float(np.trace(p) + np.trace(q)) / (2 * width), LEAST)
    p, q = p + tiny * np.eye(width), q + tiny * np.eye(width)
    away = b.mean(axis=0) - a.mean(axis=0)
    factor = cho_factor(q, lower=True)
    logs = np.linalg.slogdet(q)[1] - np.linalg.slogdet(p)[1]
    return float(0.5 * (np.trace(cho_solve(factor, p)) + away @ cho_solve(factor, away) - width + logs))


def kde_kl(real: ArrayLike, simulated: ArrayLike) -> float:
    """The paper's estimate [nats]: kernel densities of both sets, compared at the real samples.

    Gaussian kernels with Scott's bandwidth; a sample is left out of its own density. Kernels widen both densities, so
    a large divergence comes out too small, and beyond a handful of columns the figure means little.
    """
    a, b = _scaled(*_pair(real, simulated))
    if min(len(a), len(b)) < FEWEST:
        raise CaromError(f"kernel densities: expected {FEWEST} samples or more of each, got {len(a)} and {len(b)}")
    return float((_log_density(a, a, own=True) - _log_density(a, b, own=False)).mean())


def knn_kl(real: ArrayLike, simulated: ArrayLike, *, neighbours: int = NEIGHBOURS) -> float:
    """KL from distances to the nearest neighbours [nats] (Wang, Kulkarni, Verdu 2009).

    Asymptotically without bias for independent samples. Paired ones are not: where the truth is 0 it says less.
    """
    a, b = _scaled(*_pair(real, simulated))
    if min(len(a), len(b)) < FEWEST:
        raise CaromError(f"nearest neighbours: expected {FEWEST} samples or more of each, got {len(a)} and {len(b)}")
    if not 1 <= neighbours < min(len(a), len(b) + 1):
        raise CaromError(f"neighbours: expected 1 to {min(len(a) - 1, len(b))} for these samples, got {neighbours}")
    within = np.atleast_2d(cKDTree(a).query(a, k=neighbours + 1)[0])[:, -1]
    across = np.asarray(cKDTree(b).query(a, k=neighbours)[0]).reshape(len(a), -1)[:, -1]
    ratio = np.log(np.maximum(across, LEAST) / np.maximum(within, LEAST))
    return float(a.shape[1] * ratio.mean() + np.log(len(b) / (len(a) - 1)))


#: the marginal ones, by name
MARGINAL: Mapping[str, Callable[[ArrayLike, ArrayLike], float]] = {
    "gaussian": gaussian_kl,
    "kde": kde_kl,
    "knn": knn_kl,
}
ESTIMATORS = ("conditional", *MARGINAL)


def gap(estimator: str, real: ArrayLike, simulated: ArrayLike, noise: ArrayLike) -> float:
    """The gap by the estimator of this name, never below zero [nats]; `noise` [D] counts for the conditional one."""
    if estimator not in ESTIMATORS:
        raise CaromError(unknown_name("estimator", estimator, ESTIMATORS))
    if estimator == "conditional":
        return max(conditional_kl(real, simulated, noise), 0.0)
    return max(MARGINAL[estimator](real, simulated), 0.0)


def _pair(real: ArrayLike, simulated: ArrayLike) -> tuple[Array, Array]:
    a, b = (np.asarray(x, dtype=np.float64) for x in (real, simulated))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise CaromError(f"expected two arrays [N, D] with the same columns, got shapes {a.shape} and {b.shape}")
    if len(a) < 2 or len(b) < 2:
        raise CaromError(f"a divergence needs 2 samples or more of each, got {len(a)} and {len(b)}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise CaromError("a divergence needs finite samples; some are NaN or infinite")
    return a, b


def _scaled(a: Array, b: Array) -> tuple[Array, Array]:
    """Both sets in units of their common standard deviations; columns that never change are left out."""
    spread = np.concatenate([a, b]).std(axis=0)
    moves = spread > LEAST
    if not moves.any():
        raise CaromError("a divergence of samples that are all the same is not defined")
    return a[:, moves] / spread[moves], b[:, moves] / spread[moves]


def _log_density(at: Array, data: Array, *, own: bool) -> Array:
    """Logarithm of a kernel density of `data` [M, D] at points [N, D]; `own`: the points are the data, left out."""
    count, width = data.shape
    bandwidth = np.maximum(data.std(axis=0, ddof=1), LEAST) * count ** (-1 / (width + 4))
    x, y = at / bandwidth, data / bandwidth
    parts = []
    for start in range(0, len(x), CHUNK):
        rows = slice(start, min(start + CHUNK, len(x)))
        away = -0.5 * ((x[rows, None] - y[None]) ** 2).sum(axis=-1)
        if own:
            away[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = -np.inf
        parts.append(logsumexp(away, axis=1))
    kernels = count - 1 if own else count
    return np.asarray(np.concatenate(parts) - np.log(kernels * (2 * np.pi) ** (width / 2)) - np.log(bandwidth).sum())
