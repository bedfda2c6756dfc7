"""Planes through points near by: slopes come back, and steps go along a valley that is far longer than wide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.identify.planes import Valley, fit_through

SLOPE = np.array([[100.0, 99.0], [1.0, -1.0], [0.5, 0.4]])
BEST = np.array([0.7, 0.2])


def residuals(points: np.ndarray) -> np.ndarray:
    """[C, 3 recordings, 1], with a little ruggedness."""
    linear = (points - BEST) @ SLOPE.T
    return (linear + 0.02 * np.sin(300 * points.sum(axis=1))[:, None])[..., None]


def test_slopes_come_back_in_spite_of_ruggedness() -> None:
    fit = fit_through(residuals, np.array([0.5, 0.5]), 0.05, 0)
    np.testing.assert_allclose(fit.jacobian[:, 0], SLOPE, atol=2.0)
    valley = Valley.even(2, 0.05)
    points = valley.scattered(fit.unit, 1)
    again = valley.fit(fit.unit, points, residuals(points))
    np.testing.assert_allclose(again.jacobian[:, 0], SLOPE, atol=4.0)
    np.testing.assert_array_equal(points[0], fit.unit)


def test_a_valley_is_long_where_the_loss_is_flat() -> None:
    unit = np.array([0.55, 0.35])
    valley = Valley.even(2, 0.02)
    for turn in range(6):
        points = valley.scattered(unit, turn)
        found = residuals(points)
        fit = valley.fit(unit, points, found)
        ahead = valley.along(fit)
        every, values = np.concatenate([points, ahead]), np.concatenate([found, residuals(ahead)])
        best = int(np.argmin((values**2).sum(axis=(1, 2))))
        unit, valley = every[best], Valley.of(replace(fit, residual=values[best]))
    np.testing.assert_allclose(unit, BEST, atol=0.05)
    assert ((points >= 0) & (points <= 1)).all()


def test_numbers_that_jump_count_little() -> None:
    rng = np.random.default_rng(0)

    def jumping(points: np.ndarray) -> np.ndarray:
        even = (points - BEST) @ np.array([[60.0, 20.0], [20.0, -40.0], [10.0, 8.0]]).T
        return np.concatenate([even, 300 * rng.choice([-1.0, 1.0], (len(points), 1))], axis=1)[..., None]

    unit, valley = BEST + np.array([0.02, -0.015]), Valley.even(2, 0.03)
    points = valley.scattered(unit, 0)
    values = jumping(points)
    fit, counts = valley.smooth(unit, points, values)
    assert (counts[:3] > 0.5).all()
    assert (counts[3] < 0.01).all()
    step, plain = valley.along(fit)[0], valley.along(valley.fit(unit, points, values))[0]
    np.testing.assert_allclose(step, BEST, atol=0.01)
    assert np.abs(plain - BEST).max() > 2 * np.abs(step - BEST).max()
