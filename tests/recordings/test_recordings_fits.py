"""One-sided fits: they recover known motion, say honestly how well, and never look across an impact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from carom.recordings.differentiate import fit_after, fit_before, fit_polynomial, fit_robust, fit_rotation


@settings(max_examples=40, deadline=None)
@given(
    start=st.floats(-1, 1),
    speed=st.floats(-3, 3),
    bend=st.floats(-10, 10),
    origin=st.floats(-1e4, 1e4),
    lost=st.sets(st.integers(0, 19), max_size=10),
)
def test_quadratic_is_recovered_at_any_time_origin_and_with_lost_samples(start, speed, bend, origin, lost):
    t = np.arange(20) * 0.005
    y = (start + speed * t + 0.5 * bend * t**2)[:, None]
    y[list(lost)] = np.nan
    fit = fit_polynomial(t + origin, y, origin + 0.02)
    assert fit.count == 20 - len(lost)
    # the clock itself rounds: at origin 1e4 a stamp is good to 2e-12 s
    assert fit.velocity[0] == pytest.approx(speed + bend * 0.02, abs=1e-7)
    assert fit.value[0] == pytest.approx(start + speed * 0.02 + 0.5 * bend * 0.02**2, abs=1e-8)


def test_standard_errors_are_honest():
    rng = np.random.default_rng(1)
    t = np.arange(13) * 0.005
    pulls = []
    for _ in range(600):
        y = 0.8 * t + 2.0 * t**2 + 1e-4 * rng.standard_normal(13)
        fit = fit_polynomial(t, y, float(t[-1]))
        pulls.append((fit.velocity[0] - (0.8 + 4.0 * t[-1])) / fit.velocity_std[0])
    assert np.mean(pulls) == pytest.approx(0.0, abs=0.15)
    assert 0.85 < np.std(pulls) < 1.3


def test_errors_grow_when_neighbouring_residuals_are_alike():
    rng = np.random.default_rng(2)
    t = np.arange(40) * 0.005
    white = 1e-4 * rng.standard_normal((40, 200))
    red = np.zeros_like(white)
    for i in range(1, 40):
        red[i] = 0.8 * red[i - 1] + white[i] * 0.6
    ratios = []
    for noise in (white, red):
        fit = fit_polynomial(t, noise, 0.0)
        ratios.append(float(np.std(fit.velocity) / np.median(fit.velocity_std)))
    assert ratios[0] < 1.25
    assert ratios[1] < 2.0  # without the correction it is about 3
    plain = np.median(np.std(red, axis=0)) / np.median(np.std(white, axis=0))
    assert plain < 1.5, "the two noises must be alike in size for this comparison to mean something"


def test_fits_do_not_smear_an_impact():
    t = np.arange(0, 0.6, 0.005)
    y = np.where(t < 0.3, 0.0, 1.2 * (t - 0.3))[:, None]
    before, after = fit_before(t, y, 0.3), fit_after(t, y, 0.3, span=0.06)
    assert abs(before.velocity[0]) < 1e-9
    assert after.velocity[0] == pytest.approx(1.2, abs=1e-9)
    changed = y.copy()
    changed[t >= 0.3] += 5.0
    assert fit_before(t, changed, 0.3).velocity[0] == before.velocity[0]


def test_fit_before_reaches_back_for_six_samples():
    t = np.arange(0, 0.5, 0.05)
    fit = fit_before(t, (2 * t)[:, None], 0.47, span=0.06)
    assert fit.count == 6
    assert fit.velocity[0] == pytest.approx(2.0)


def test_few_samples_lower_the_order_and_none_give_nan():
    t = np.array([0.0, 0.01, 0.02])
    assert fit_polynomial(t[:2], 3 * t[:2], 0.0).order == 1
    assert fit_polynomial(t[:1], 3 * t[:1], 0.0).order == 0
    empty = fit_polynomial(t, np.full((3, 2), np.nan), 0.0)
    assert not empty.usable
    assert np.isnan(empty.velocity).all()


def test_unmeasured_column_stays_nan_and_does_not_spoil_the_others():
    t = np.arange(10) * 0.01
    fit = fit_polynomial(t, np.column_stack([3 * t, np.full(10, np.nan)]), 0.0)
    assert fit.velocity[0] == pytest.approx(3.0)
    assert np.isnan(fit.velocity[1])


def test_robust_fit_ignores_a_block_of_late_samples():
    t = np.arange(20) * 0.005
    y = np.column_stack([0.8 * t, 0.1 * t])
    y[8:10] += [0.004, 0.0005]
    plain, robust = fit_polynomial(t, y, 0.1), fit_robust(t, y, 0.1)
    assert abs(robust.velocity[0] - 0.8) < 0.2 * abs(plain.velocity[0] - 0.8)


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.6, -0.8, 0.0), (0.5, 0.5, 0.70710678)])
@pytest.mark.parametrize("speed", [0.3, 12.0, 45.0])
def test_angular_velocity_in_the_world_frame(axis, speed):
    t = np.arange(12) * 0.00675
    start = Rotation.from_euler("xyz", [1.0, -0.4, 2.5])
    spin = speed * np.asarray(axis)
    turned = Rotation.from_rotvec(np.outer(t, spin)) * start
    quaternion = turned.as_quat()[:, [3, 0, 1, 2]]
    quaternion[::3] *= -1  # the sign of a quaternion means nothing
    orientation, fit = fit_rotation(t, quaternion, float(t[-1]))
    assert fit.velocity == pytest.approx(spin, abs=1e-6 * speed + 1e-9)
    assert abs(orientation @ quaternion[-1]) == pytest.approx(1.0, abs=1e-9)
