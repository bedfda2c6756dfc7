"""Value and velocity of sampled motion at one instant, from one side of it only, with their standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.core.rotations import from_scipy, to_scipy
from carom.state import Array

MOST_CORRELATED = 0.9  #: residuals more alike than this would make the inflation of the errors meaningless
ENOUGH = 9  #: samples from which on a robust fit may distrust some
FAR = 2.5  #: standard deviations beyond which a robust fit trusts a sample less


@dataclass(frozen=True)
class LocalFit:
    """A polynomial fitted to samples [N, D] and evaluated at one time."""

    value: Array  #: [D] unit of the samples
    velocity: Array  #: [D] that unit per second
    value_std: Array  #: [D] standard error of `value`
    velocity_std: Array  #: [D] standard error of `velocity`
    residual_rms: Array  #: [D] scatter of the samples about the fit, corrected for the fitted coefficients
    count: int  #: samples used
    order: int  #: of the polynomial
    coefficients: Array  #: [order + 1, D] powers of (time - at), from constant upwards

    @property
    def usable(self) -> bool:
        """Whether there were samples enough for a velocity."""
        return self.order >= 1


def fit_polynomial(
    time: Array,
    samples: Array,
    at: float,
    *,
    order: int = 2,
    noise: Array | float | None = None,
    weights: Array | None = None,
) -> LocalFit:
    """Weighted least squares over all given samples, evaluated at `at`; lost samples (NaN) are left out.

    The order is lowered where samples are few (two samples more than coefficients, or it fits noise). The
    standard errors use the larger of the residuals' scatter and `noise`, and grow where neighbouring residuals
    are alike, because then there are fewer independent samples than rows.

    >>> t = np.linspace(0.0, 0.1, 11)
    >>> fit = fit_polynomial(t, (3.0 * t)[:, None], 0.1, order=1)
    >>> round(float(fit.velocity[0]), 9)
    3.0
    """
    samples = samples[:, None] if samples.ndim == 1 else samples
    unmeasured = np.asarray(np.isnan(samples).all(axis=0))
    if len(samples) and unmeasured.any() and not unmeasured.all():
        rest = fit_polynomial(time, np.where(unmeasured, 0.0, samples), at, order=order, noise=noise, weights=weights)
        return _with_nan(rest, unmeasured)
    good = np.isfinite(samples).all(axis=-1) & np.isfinite(time)
    t, y = time[good] - at, samples[good]
    count, width = y.shape
    order = max(min(order, count - 3 if count > 3 else count - 1), 0)
    if count == 0:
        nan = np.full(width, np.nan)
        return LocalFit(nan, nan, nan, nan, nan, 0, 0, nan[None])
    scale = max(float(np.max(np.abs(t))), 1e-12)  # so that powers of time are alike in size
    matrix = np.vander(t / scale, order + 1, increasing=True)
    w = np.ones(count) if weights is None else np.sqrt(weights[good])
    covariance = _inverse((matrix * w[:, None]).T @ (matrix * w[:, None]))
    coefficients = covariance @ ((matrix * (w**2)[:, None]).T @ y)
    residual = (y - matrix @ coefficients) * w[:, None]
    dof = count - order - 1
    rms = np.sqrt((residual**2).sum(axis=0) / dof) if dof > 0 else np.full(width, np.nan)
    floor = np.zeros(width) if noise is None else np.broadcast_to(np.asarray(noise, dtype=float), (width,))
    sigma = np.where(np.isfinite(rms), np.maximum(np.nan_to_num(rms), floor), floor if noise is not None else np.nan)
    sigma = sigma * _inflation(residual, dof)
    std = np.sqrt(np.clip(np.diag(covariance), 0, None))
    coefficients = coefficients / (scale ** np.arange(order + 1))[:, None]
    nan = np.full(width, np.nan)
    return LocalFit(
        value=coefficients[0],
        velocity=coefficients[1] if order >= 1 else nan,
        value_std=std[0] * sigma,
        velocity_std=std[1] / scale * sigma if order >= 1 else nan,
        residual_rms=rms,
        count=count,
        order=order,
        coefficients=coefficients,
    )


def _with_nan(fit: LocalFit, columns: NDArray[np.bool_]) -> LocalFit:
    """The same fit with some columns marked as not measured."""

    def blank(values: Array) -> Array:
        return np.where(columns, np.nan, values)

    return replace(
        fit,
        value=blank(fit.value),
        velocity=blank(fit.velocity),
        value_std=blank(fit.value_std),
        velocity_std=blank(fit.velocity_std),
        residual_rms=blank(fit.residual_rms),
        coefficients=blank(fit.coefficients),
    )


def _inverse(normal: Array) -> Array:
    try:
        return np.asarray(np.linalg.inv(normal))
    except np.linalg.LinAlgError:  # samples at (almost) one time: the least of the solutions
        return np.asarray(np.linalg.pinv(normal))


def _inflation(residual: Array, dof: int) -> Array:
    """How much the errors grow [D] because neighbouring residuals are alike (first-order autocorrelation)."""
    if dof < 6:
        return np.ones(residual.shape[1])  # too few to tell
    power = (residual**2).sum(axis=0)
    alike = np.where(power > 0, (residual[1:] * residual[:-1]).sum(axis=0) / np.where(power > 0, power, 1.0), 0.0)
    # a fit with few free samples makes white noise look anti-correlated; only growth is of interest
    rho = np.clip(alike, 0.0, MOST_CORRELATED)
    return np.asarray(np.sqrt((1 + rho) / (1 - rho)))


def measured_rows(samples: Array) -> NDArray[np.bool_]:
    """Rows [T] without a lost sample; a column that was never measured does not count."""
    if samples.ndim == 1:
        return np.isfinite(samples)
    never = np.isnan(samples).all(axis=0)
    if never.all():
        return np.zeros(len(samples), dtype=bool)
    return np.asarray(np.isfinite(samples[:, ~never]).all(axis=-1))


def fit_before(
    time: Array,
    samples: Array,
    at: float,
    *,
    span: float = 0.06,
    at_least: int = 6,
    order: int = 2,
    noise: Array | float | None = None,
    not_before: float = -np.inf,
) -> LocalFit:
    """Fit over the last `span` seconds strictly before `at` (reaching further back for `at_least` samples)."""
    index = np.flatnonzero(measured_rows(samples) & (time < at) & (time >= not_before))
    if len(index):
        wanted = max(int((time[index] >= at - span - 1e-12).sum()), at_least)
        index = index[-wanted:]
    return fit_polynomial(time[index], samples[index], at, order=order, noise=noise)


def fit_after(
    time: Array,
    samples: Array,
    at: float,
    *,
    span: float,
    order: int = 2,
    noise: Array | float | None = None,
    not_after: float = np.inf,
) -> LocalFit:
    """Fit over the samples of [at, at + span], none after `not_after`, evaluated at `at`."""
    keep = (time >= at - 1e-9) & (time <= min(at + span + 1e-9, not_after))
    return fit_polynomial(time[keep], samples[keep], at, order=order, noise=noise)


def fit_robust(
    time: Array, samples: Array, at: float, *, order: int = 2, noise: Array | float = 1e-5, rounds: int = 6
) -> LocalFit:
    """As `fit_polynomial`, with samples far from the fit counting less (their pull falls off with distance)."""
    good = measured_rows(samples)
    t, y = time[good], samples[good]
    there = np.isfinite(y).all(axis=0)
    typical = float(np.mean(np.broadcast_to(np.asarray(noise, dtype=float), there.shape)[there])) if len(y) else 0.0
    weights = np.ones(len(t))
    fit = fit_polynomial(t, y, at, order=order, noise=noise)
    for _ in range(rounds):
        if fit.count < ENOUGH:
            break  # too few to tell a stray sample from noise
        residual = y - np.vander(t - at, fit.order + 1, increasing=True) @ fit.coefficients
        away = np.linalg.norm(residual[:, there], axis=-1)
        far = FAR * max(1.4826 * float(np.median(away)) / np.sqrt(there.sum()), typical)
        weights = (far / np.maximum(away, far)) ** 2 if far > 0 else np.ones(len(t))
        fit = fit_polynomial(t, y, at, order=order, noise=noise, weights=weights)
    return fit


def fit_rotation(
    time: Array, quaternion: Array, at: float, *, order: int = 2, noise: float | None = None
) -> tuple[Array, LocalFit]:
    """Orientation at `at` [4] (w first) and a fit whose velocity is the angular velocity in the world frame [3] rad/s.

    The samples become rotation vectors about a reference that is moved to the fitted orientation, where the
    rate of the rotation vector is the angular velocity itself.
    """
    from scipy.spatial.transform import Rotation

    good = np.isfinite(quaternion).all(axis=-1) & np.isfinite(time)
    if not good.any():
        return np.full(4, np.nan), fit_polynomial(time[:0], np.zeros((0, 3)), at)
    t = time[good]
    rotation = to_scipy(quaternion[good])
    reference = rotation[int(np.argmin(np.abs(t - at)))]
    fit = fit_polynomial(t, _turned(rotation, reference), at, order=order, noise=noise)
    for _ in range(2):
        reference = Rotation.from_rotvec(fit.value) * reference
        fit = fit_polynomial(t, _turned(rotation, reference), at, order=order, noise=noise)
    return from_scipy(reference), fit


def _turned(rotation: Any, reference: Any) -> Array:
    """Rotation vectors [N, 3] from the reference, continuous beyond half a turn."""
    vectors = np.asarray((rotation * reference.inv()).as_rotvec(), dtype=np.float64)
    middle = int(np.argmin(np.linalg.norm(vectors, axis=-1)))
    # a rotation vector has a twin, one turn less the other way: from the reference outwards, take the nearer one
    for order in (range(middle + 1, len(vectors)), range(middle - 1, -1, -1)):
        previous = vectors[middle]
        for i in order:
            angle = float(np.linalg.norm(vectors[i]))
            if angle > 1.0:
                turns = np.round((previous @ vectors[i] / angle - angle) / (2 * np.pi))
                vectors[i] *= 1 + 2 * np.pi * turns / angle
            previous = vectors[i]
    return vectors
