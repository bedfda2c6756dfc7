"""Planar states: shapes checked at the door, rotations and angles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carom.core.errors import CaromError
from carom.state import Impacts, Strikes, rotate, wrap_angle


def some_strikes(count: int = 4) -> Strikes:
    rng = np.random.default_rng(0)
    return Strikes(*rng.normal(size=(4, count, 3)))


def test_rows_of_the_wrong_shape_are_refused_by_name() -> None:
    zero = np.zeros((2, 3))
    with pytest.raises(CaromError, match=r"^striker_pose: expected an array of shape \(2, 3\), got \(3, 3\)$"):
        Strikes(zero, zero, np.zeros((3, 3)), zero)
    with pytest.raises(CaromError, match=r"^posture: expected an array of shape \(2, 4\), got \(2, 3\)$"):
        Strikes(zero, zero, zero, zero, zero)


def test_rows_can_be_picked_by_slice_mask_and_index() -> None:
    strikes = some_strikes()
    assert len(strikes[1:3]) == 2
    np.testing.assert_array_equal(
        strikes[np.array([True, False, False, True])].striker_pose, strikes.striker_pose[[0, 3]]
    )
    np.testing.assert_array_equal(strikes[[2]].target_velocity, strikes.target_velocity[2:3])
    assert strikes[1:3].posture.shape == (2, 4)


def test_impacts_keep_names_and_rows_together() -> None:
    strikes = some_strikes(3)
    post = np.arange(9.0).reshape(3, 3)
    impacts = Impacts(strikes, post, np.ones((3, 3)), ("a.csv", "b.csv", "c.csv"))
    picked = impacts[[2, 0]]
    assert picked.names == ("c.csv", "a.csv")
    np.testing.assert_array_equal(picked.post, post[[2, 0]])
    assert impacts[np.array([False, True, False])].names == ("b.csv",)
    with pytest.raises(CaromError, match=r"^names: expected 3 names, one for each strike, got 1$"):
        Impacts(strikes, post, post, ("a.csv",))


def test_rotation_is_counter_clockwise_and_invertible() -> None:
    np.testing.assert_allclose(rotate([1.0, 0.0], np.pi / 2), [0.0, 1.0], atol=1e-15)
    vectors, yaw = np.random.default_rng(1).normal(size=(5, 2)), np.linspace(-3, 3, 5)
    np.testing.assert_allclose(rotate(rotate(vectors, yaw), -yaw), vectors, atol=1e-14)


@given(st.floats(-50, 50))
def test_wrapped_angle_is_the_same_direction_within_half_a_turn(angle: float) -> None:
    wrapped = float(wrap_angle(angle))
    assert -np.pi < wrapped <= np.pi + 1e-12
    assert np.cos(wrapped) == pytest.approx(np.cos(angle), abs=1e-9)
    assert np.sin(wrapped) == pytest.approx(np.sin(angle), abs=1e-9)
