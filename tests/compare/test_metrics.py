"""Metrics: the kinetic-energy norm, accuracy (Eq. 4) and calibration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carom.compare.metrics import accuracy, coverage, relative_error, summary
from carom.core.errors import CaromError
from carom.state import rotate

K = 0.03
RNG = np.random.default_rng(0)
MEASURED = RNG.normal(size=(50, 3)) * [0.4, 0.4, 8.0]
PREDICTED = MEASURED + 0.1 * RNG.normal(size=(50, 3)) * [0.4, 0.4, 8.0]


def test_squared_error_is_the_ratio_of_kinetic_energies() -> None:
    mass = 0.15

    def energy(v: np.ndarray) -> np.ndarray:
        return 0.5 * mass * (v[:, 0] ** 2 + v[:, 1] ** 2) + 0.5 * mass * K**2 * v[:, 2] ** 2

    expected = energy(PREDICTED - MEASURED) / energy(MEASURED)
    np.testing.assert_allclose(relative_error(PREDICTED, MEASURED, K) ** 2, expected, rtol=1e-12)


@given(yaw=st.floats(-4, 4), factor=st.floats(1e-2, 1e2))
def test_error_does_not_depend_on_the_world_frame_or_on_the_unit_of_speed(yaw: float, factor: float) -> None:
    def seen(v: np.ndarray) -> np.ndarray:
        return factor * np.column_stack([rotate(v[:, :2], yaw), v[:, 2]])

    np.testing.assert_allclose(
        relative_error(seen(PREDICTED), seen(MEASURED), K), relative_error(PREDICTED, MEASURED, K), rtol=1e-9
    )


def test_predicting_no_motion_is_an_error_of_one() -> None:
    np.testing.assert_allclose(relative_error(np.zeros_like(MEASURED), MEASURED, K), 1.0)


def test_failed_predictions_count_as_wrong() -> None:
    predicted = PREDICTED.copy()
    predicted[3, 1], predicted[7] = np.nan, np.inf
    error = relative_error(predicted, MEASURED, K)
    assert np.isinf(error[[3, 7]]).all()
    assert np.isfinite(np.delete(error, [3, 7])).all()


def test_a_target_that_stayed_at_rest() -> None:
    zero = np.zeros((2, 3))
    assert relative_error([[0, 0, 0], [0.1, 0, 0]], zero, K).tolist() == [0.0, np.inf]


def test_accuracy_counts_errors_strictly_below_alpha() -> None:
    assert accuracy([0.05, 0.1, 0.2, 0.0999], 0.1) == 0.5
    assert summary([0.01, 0.06, 0.2]) == {
        "accuracy@0.1": pytest.approx(2 / 3),
        "accuracy@0.05": pytest.approx(1 / 3),
        "median-relative-error": 0.06,
    }


def test_coverage_of_a_calibrated_and_of_an_overconfident_prediction() -> None:
    rng = np.random.default_rng(1)
    std = rng.uniform(0.5, 2.0, (20_000, 3))
    measured = std * rng.normal(size=std.shape)
    assert coverage(np.zeros_like(std), std, measured) == {
        "coverage@0.5": pytest.approx(0.5, abs=0.01),
        "coverage@0.9": pytest.approx(0.9, abs=0.01),
    }
    assert coverage(np.zeros_like(std), std / 3, measured, levels=(0.9,))["coverage@0.9"] < 0.5


def test_wrong_input_is_refused_with_what_came() -> None:
    with pytest.raises(CaromError, match=r"shape \(N, 3\), got \(50, 2\) and \(50, 3\)"):
        relative_error(PREDICTED[:, :2], MEASURED, K)
    with pytest.raises(CaromError, match=r"radius of gyration.*got -1"):
        relative_error(PREDICTED, MEASURED, -1.0)
    broken = MEASURED.copy()
    broken[4, 2] = np.nan
    with pytest.raises(CaromError, match="strike 4 is not finite"):
        relative_error(PREDICTED, broken, K)
    with pytest.raises(CaromError, match="empty"):
        summary([])
    with pytest.raises(CaromError, match="between 0 and 1, got 90"):
        coverage(PREDICTED, np.ones_like(PREDICTED), MEASURED, levels=(90,))
