"""Search methods behind one ask/tell: each asks about a whole generation, and is told what came of it.

Points are in the unit cube. A method that wants derivatives is told how the residuals change with the point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, final

import numpy as np

from carom.core.cma import Cma as CmaSearch
from carom.core.spread import even_spread
from carom.state import Array

STALE = 8  #: generations in which CMA-ES has to gain something
FAILED = 1e12  #: loss of a strike that failed or missed: large, and finite, so that a search can go on


class Method(Protocol):
    """One way to search."""

    wants_derivatives: bool

    def ask(self) -> Array:
        """The next generation [M, D]; empty when the method has converged."""
        ...

    def tell(self, points: Array, loss: Array, residual: Array, derivative: Array | None) -> None:
        """Losses [M], residuals [M, R] and, if wanted, their derivatives [M, R, D]."""
        ...


def _spread(dimension: int, count: int, seed: int) -> Array:
    """Points spread evenly over the unit cube."""
    return even_spread(count, dimension, np.random.default_rng([seed, 21]))


@final
class Cma:
    """CMA-ES (Hansen) from the best of an even spread of points, then from the next best that lies elsewhere."""

    wants_derivatives = False

    def __init__(self, dimension: int, seed: int, *, first: int = 128, population: int = 48) -> None:
        self._first, self._seed, self._population = _spread(dimension, first, seed), seed, population
        self._starts: list[Array] = []
        self._search: CmaSearch | None = None
        self._best: list[float] = []

    def ask(self) -> Array:
        return self._first if self._search is None else self._search.ask()

    def tell(self, points: Array, loss: Array, residual: Array, derivative: Array | None) -> None:
        if self._search is None:
            self._starts = _apart(points[np.argsort(loss)])
            self._begin()
            return
        self._search.tell(loss)
        self._best.append(min([float(loss.min()), *self._best[-1:]]))
        stuck = len(self._best) > STALE and self._best[-1] > 0.97 * self._best[-1 - STALE]
        if (stuck or self._search.converged) and self._starts:
            self._begin()

    def _begin(self) -> None:
        self._best = []
        self._search = CmaSearch(self._starts.pop(0), sigma=0.12, population=self._population, seed=self._seed)


def _apart(points: Array) -> list[Array]:
    """The first of points [M, D], and every later one that lies far from those before."""
    kept: list[Array] = []
    while len(points):
        kept.append(points[0])
        points = points[np.linalg.norm(points - points[0], axis=1) > 0.3]
    return kept


@final
class Cem:
    """The cross-entropy method: a Gaussian drawn in on the best few, from an even spread of points, then elsewhere."""

    wants_derivatives = False

    def __init__(self, dimension: int, seed: int, *, first: int = 128, population: int = 64, elite: int = 8) -> None:
        self._next, self._elite, self._population = _spread(dimension, first, seed), elite, population
        self._rng = np.random.default_rng([seed, 22])
        self._best: tuple[Array, Array] | None = None
        self._starts: list[Array] = []  # where to look again, once the best is found out
        self._told = False
        self._least = 0.1  # spread that is kept at least, halved each time: one lucky point does not end the search

    def ask(self) -> Array:
        return self._next

    def tell(self, points: Array, loss: Array, residual: Array, derivative: Array | None) -> None:
        if not self._told:
            self._starts, self._told = _apart(points[np.argsort(loss)])[1:], True
        if self._best is not None:
            points, loss = np.concatenate([points, self._best[0]]), np.concatenate([loss, self._best[1]])
        order = np.argsort(loss)[: self._elite]
        self._best = points[order], loss[order]
        near = points[order][np.linalg.norm(points[order] - points[order[0]], axis=1) < 0.3]  # one valley, not two
        spread = np.maximum(near.std(axis=0), self._least)
        self._least /= 2
        if spread.max() < 1e-3:
            if not self._starts:
                self._next = np.empty((0, points.shape[1]))
                return
            near, spread, self._best, self._least = self._starts.pop(0)[None], np.full(points.shape[1], 0.1), None, 0.05
        draw = near.mean(axis=0) + spread * self._rng.standard_normal((self._population, points.shape[1]))
        self._next = np.clip(draw, 0.0, 1.0)


@final
class Gradient:
    """Levenberg-Marquardt from several starts at once: the best of an even spread, each with its own damping."""

    wants_derivatives = True

    def __init__(self, dimension: int, seed: int, *, first: int = 32, starts: int = 8, rounds: int = 8) -> None:
        self._first, self._starts, self._rounds = _spread(dimension, first, seed), starts, rounds
        self._at: Array | None = None

    def ask(self) -> Array:
        if self._at is None:
            return self._first
        if self._rounds <= 0 or self._settled.all():
            return np.empty((0, self._first.shape[1]))
        self._rounds -= 1
        return self._trial[~self._settled]

    def tell(self, points: Array, loss: Array, residual: Array, derivative: Array | None) -> None:
        if derivative is None:
            derivative = np.zeros((*residual.shape, points.shape[1]))
        residual, derivative = np.nan_to_num(residual), np.nan_to_num(derivative)
        if self._at is None:
            best = np.argsort(loss)[: self._starts]
            self._at, self._loss = points[best].copy(), loss[best].copy()
            self._residual, self._derivative = residual[best].copy(), derivative[best].copy()
            self._damping = np.full(len(best), 1e-2)
            self._settled = self._loss >= FAILED
        else:
            rows = np.flatnonzero(~self._settled)
            better = loss < self._loss[rows]
            gained = rows[better]
            self._settled[gained] |= self._loss[gained] - loss[better] < 1e-4 * self._loss[gained]
            self._at[gained], self._loss[gained] = points[better], loss[better]
            self._residual[gained], self._derivative[gained] = residual[better], derivative[better]
            self._damping[gained] /= 4
            self._damping[rows[~better]] *= 8
            self._settled |= (self._damping > 1e4) | (self._loss < 1e-9)
        self._trial = self._step()

    def _step(self) -> Array:
        """Where to look next, from every start; a point on its bound moves along it."""
        if self._at is None:
            return self._first
        gradient = np.einsum("nrd,nr->nd", self._derivative, self._residual)
        free = ~(((self._at <= 0) & (gradient > 0)) | ((self._at >= 1) & (gradient < 0)))
        slope = self._derivative * free[:, None, :]
        square = np.einsum("nri,nrj->nij", slope, slope)
        size = np.einsum("nii->ni", square)
        damped = square + (self._damping[:, None] * (size + 1e-6) + 1e-10)[:, :, None] * np.eye(square.shape[1])
        step = -np.linalg.solve(damped, (gradient * free)[..., None])[..., 0]
        return np.asarray(np.clip(self._at + np.clip(step, -0.25, 0.25), 0.0, 1.0))


METHODS: Mapping[str, Callable[[int, int], Method]] = {
    "cma": lambda dimension, seed: Cma(dimension, seed),
    "cem": lambda dimension, seed: Cem(dimension, seed),
    "gradient": lambda dimension, seed: Gradient(dimension, seed),
}
