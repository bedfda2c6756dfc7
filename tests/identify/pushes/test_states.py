"""States read off samples: servos start at once, slow blocks do not rest, noisy joints are smoothed."""

from __future__ import annotations

import numpy as np
import pytest

from carom.identify.pushes.states import joints_at, read_at, settled

TIME = np.arange(0.0, 1.0, 0.005)
LATE, FORCE = 0.006, 19.0  #: [s] after which a set-point acts, [m/s^2]


def kicked(begin: float, speed: float) -> np.ndarray:
    """Places [T, 1] of a joint that moves evenly, and is pushed from a little after an instant on."""
    since = np.maximum(TIME - begin - LATE, 0.0)
    return np.asarray((speed * TIME + FORCE / 2 * since**2)[:, None])


def test_what_a_set_point_does_later_is_not_read_into_the_state_before() -> None:
    begin = np.array([0.0, 0.5])
    for at, speed in zip(begin, (0.0, 0.2), strict=True):
        place, turning = joints_at(TIME, kicked(at, speed), np.array([at]))
        assert place[0, 0] == pytest.approx(speed * at, abs=1e-6)
        assert turning[0, 0] == pytest.approx(speed, abs=1e-3)
        # both sides together would have made of it a tool that is on its way already
        assert read_at(TIME, kicked(at, speed), np.array([at]))[1][0, 0] > speed + 0.05


def test_joints_that_move_when_a_recording_begins_do_so() -> None:
    _, turning = joints_at(TIME, 0.3 * TIME[:, None] - 0.1 * TIME[:, None] ** 2, np.array([0.0, 0.1]))
    np.testing.assert_allclose(turning[:, 0], [0.3, 0.28], atol=1e-9)


def test_noisy_joints_and_lost_samples_are_read_from_both_sides() -> None:
    at = np.array([0.1, 0.4, 0.7])
    samples = 0.2 * TIME[:, None] + 1.5e-4 * np.random.default_rng(0).normal(size=(len(TIME), 1))
    np.testing.assert_allclose(joints_at(TIME, samples, at)[1][:, 0], 0.2, atol=0.01)
    samples[60:63] = np.nan
    assert np.isfinite(joints_at(TIME, samples, at)[1]).all()


@pytest.mark.parametrize("period", [0.005, 0.05])
def test_a_slow_block_does_not_rest_however_close_the_instants_are(period: float) -> None:
    at = np.arange(0.0, 3.0, period)
    path = np.column_stack([0.02 * np.clip(at - 1, 0, 1), 0 * at, 0 * at])
    value, velocity = path.copy(), np.gradient(path, period, axis=0)
    unsure = np.tile([6e-5, 6e-5, 1e-3, 3e-3, 3e-3, 5e-2], (len(at), 1))
    resting = settled(at, value, velocity, unsure)
    assert resting[at < 0.9].all()
    assert resting[at > 2.1].all()
    assert not resting[(at > 1.1) & (at < 1.9)].any()
    assert (velocity[resting] == 0).all()
