"""Sensitivities as planes through many points near by: contacts make residuals rugged, differences would show that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from carom.identify import trust
from carom.state import Array

NEAR = 5  #: points per parameter through which a plane is laid
SHARES = (1.0, 0.5, 0.25)  #: of a step that are tried


def plane_through(offset: Array, values: Array, ridge: float) -> tuple[Array, Array, float]:
    """The plane [1 + A, R] through values [C, R] at offsets [C, A], its covariance over the variance, the variance."""
    count = offset.shape[1]
    design = np.concatenate([np.ones((len(offset), 1)), offset], axis=1)
    plane, inverse, squares = trust.regression(design, values, [0.0, *([ridge] * count)])
    return plane, inverse, squares / max(len(offset) - count - 1, 1) / values.shape[1]


def fit_through(
    residuals: Callable[[Array], Array], unit: Array, reach: float, seed: int, *, near: int = NEAR
) -> trust.Fit:
    """Residuals [N, R] and their derivatives at a point [A], from a plane through many points within `reach` of it.

    `residuals` gives [C, N, R] for points [C, A]; `near` is how many points there are for each parameter.
    """
    count = len(unit)
    offset = np.random.default_rng(seed).uniform(-reach, reach, (near * count + 1, count))
    offset[0] = 0.0
    points = np.clip(unit + offset, 0.0, 1.0)
    residual = residuals(points)
    plane, inverse, variance = plane_through(points - unit, residual.reshape(len(points), -1), 0.04 * reach**2)
    jacobian = np.moveaxis(plane[1:].reshape(count, *residual.shape[1:]), 0, -1)
    doubt = variance * inverse[1:, 1:]
    return trust.Fit(unit, plane[0].reshape(residual.shape[1:]), jacobian, doubt, np.zeros((0, count)), np.zeros(0))


def tried_along(fit: trust.Fit, reach: float) -> Array:
    """Points [K, A] along the Gauss-Newton step from a fit's point, at most two reaches away in any direction."""
    step = trust.newton_step(fit, most=2 * reach)
    return np.asarray(np.clip(fit.unit + np.multiply.outer(SHARES, step), 0.0, 1.0))
