"""Sensitivities as planes through many points near by: contacts make residuals rugged, differences would show that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from carom.identify import trust
from carom.state import Array

NEAR = 5  #: points per parameter through which a plane is laid
SHARES = (1.0, 0.5, 0.25)  #: of a step that are tried
WORSE = 0.5  #: share of the loss by which it changes over a valley's half width


def plane_through(offset: Array, values: Array, ridge: float) -> tuple[Array, Array, float]:
    """The plane [1 + A, R] through values [C, R] at offsets [C, A], its covariance over the variance, the variance."""
    count = offset.shape[1]
    design = np.concatenate([np.ones((len(offset), 1)), offset], axis=1)
    plane, inverse, squares = trust.regression(design, values, [0.0, *([ridge] * count)])
    return plane, inverse, squares / max(len(offset) - count - 1, 1) / values.shape[1]


def fit_through(residuals: Callable[[Array], Array], unit: Array, reach: float, seed: int) -> trust.Fit:
    """Residuals [N, R] and their derivatives at a point [A], from a plane through many points within `reach` of it.

    `residuals` gives [C, N, R] for points [C, A].
    """
    count = len(unit)
    offset = np.random.default_rng(seed).uniform(-reach, reach, (NEAR * count + 1, count))
    offset[0] = 0.0
    points = np.clip(unit + offset, 0.0, 1.0)
    residual = residuals(points)
    plane, inverse, variance = plane_through(points - unit, residual.reshape(len(points), -1), 0.04 * reach**2)
    jacobian = np.moveaxis(plane[1:].reshape(count, *residual.shape[1:]), 0, -1)
    doubt = variance * inverse[1:, 1:]
    return trust.Fit(unit, plane[0].reshape(residual.shape[1:]), jacobian, doubt, np.zeros((0, count)), np.zeros(0))


@dataclass(frozen=True)
class Valley:
    """How far from a point to look, along which directions: far where a loss is flat, near where it is steep."""

    axes: Array  #: [A, A] directions as columns
    size: Array  #: [A] half widths along them, in the unit cube

    @classmethod
    def even(cls, count: int, reach: float) -> Valley:
        """The same in all directions."""
        return cls(np.eye(count), np.full(count, reach))

    @classmethod
    def of(cls, fit: trust.Fit, least: float = 0.004, most: float = 0.15) -> Valley:
        """The neighbourhood over which the loss of a fit changes by about half."""
        level, axes = np.linalg.eigh(np.einsum("nra,nrb->ab", fit.jacobian, fit.jacobian))
        loss = float((fit.residual**2).sum())
        return cls(axes, np.clip(np.sqrt(WORSE * loss / np.maximum(level, 1e-12)), least, most))

    def scattered(self, unit: Array, seed: int, near: int = NEAR) -> Array:
        """Points [near * A + 1, A] around a point, itself first."""
        spread = np.random.default_rng(seed).uniform(-1.0, 1.0, (near * len(unit) + 1, len(unit)))
        spread[0] = 0.0
        return np.asarray(np.clip(unit + (spread * self.size) @ self.axes.T, 0.0, 1.0))

    def fit(self, unit: Array, points: Array, residual: Array) -> trust.Fit:
        """The plane through residuals [C, N, R] at points [C, A], as residuals at `unit` and their derivatives."""
        count = len(unit)
        offset = (points - unit) @ self.axes / self.size
        plane, _, _ = plane_through(offset, residual.reshape(len(points), -1), 0.04)
        slope = np.tensordot((self.axes / self.size), plane[1:], axes=1).reshape(count, *residual.shape[1:])
        none = np.zeros((count, count))
        level = plane[0].reshape(residual.shape[1:])
        return trust.Fit(unit, level, np.moveaxis(slope, 0, -1), none, np.zeros((0, count)), np.zeros(0))

    def smooth(self, unit: Array, points: Array, residual: Array) -> tuple[trust.Fit, Array]:
        """The plane as in `fit`, and how much each number counts [N, R], in which the fit's residuals are given.

        What a plane can't follow is noise to whoever reads derivatives off it: where contacts make a number jump from
        point to point, its variance is one, as of all numbers, and that of its jumps. Jumps also look like slopes, and
        thousands of them like knowledge: the fit says in `doubt` how much of its slopes they are.
        """
        count = len(unit)
        offset = (points - unit) @ self.axes / self.size
        plane, inverse, _ = plane_through(offset, residual.reshape(len(points), -1), 0.04)
        level = plane[0] + offset @ plane[1:]
        jumps = ((residual.reshape(len(points), -1) - level) ** 2).sum(axis=0) / max(len(points) - 1 - count, 1)
        counts = 1 / np.sqrt(1 + jumps.reshape(residual.shape[1:]))
        fit, steep = self.fit(unit, points, residual), self.axes / self.size
        doubt = float(np.mean(jumps / (1 + jumps))) * steep @ inverse[1:, 1:] @ steep.T
        jacobian = fit.jacobian * counts[..., None]
        return replace(fit, residual=fit.residual * counts, jacobian=jacobian, doubt=doubt), counts

    def along(self, fit: trust.Fit) -> Array:
        """Points [K, A] along the Gauss-Newton step of a fit, at most two half widths away in any direction."""
        step = np.clip(trust.moved_by(fit, fit.residual) @ self.axes / self.size, -2.0, 2.0) * self.size
        return np.asarray(np.clip(fit.unit + np.outer(SHARES, step @ self.axes.T), 0.0, 1.0))


def tried_along(fit: trust.Fit, reach: float) -> Array:
    """Points [K, A] along the Gauss-Newton step from a fit's point, at most two reaches away in any direction."""
    step = trust.newton_step(fit, most=2 * reach)
    return np.asarray(np.clip(fit.unit + np.multiply.outer(SHARES, step), 0.0, 1.0))
