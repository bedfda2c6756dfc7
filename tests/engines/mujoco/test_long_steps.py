"""Slides of struck targets in longer steps: where they end, what stays as it is, and that no striker is met again."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from carom.engines import MujocoSimulator
from carom.engines.approach import at_distance, time_to_touch
from carom.engines.mujoco import long_steps
from carom.engines.mujoco.long_steps import LONG, OFF, STANDING, slower_batch, steps_alone
from carom.learn.impact.sample import sample_strikes
from carom.scenes.strike import builtin
from carom.state import Array, Strikes, rotate

SQUARE = builtin("square")


class Pushed:
    """Targets leave along the striker's way, a little faster than it, with a spin."""

    lag = 0.0

    def outcome(self, strikes: Strikes) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
        post, flags = 1.2 * strikes.striker_velocity, np.ones(len(strikes), dtype=bool)
        post[:, 2] = 4.0
        return post, flags, ~flags


def strikes(count: int) -> Strikes:
    return at_distance(SQUARE, sample_strikes(SQUARE, count, np.random.default_rng(3)), 0.02, {})


def engine() -> MujocoSimulator:
    return MujocoSimulator(SQUARE, {"ground_friction": 0.25}, threads=1, answer=Pushed())


def test_longer_steps_end_where_short_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    initial = strikes(40)
    longer = engine().rollout(initial, 2.0, frames=5)
    monkeypatch.setattr(long_steps, "SETTLED", 100.0)
    short = engine().rollout(initial, 2.0, frames=5)
    np.testing.assert_array_equal(longer.contact_time, short.contact_time)
    np.testing.assert_array_equal(longer.post, short.post)
    np.testing.assert_array_equal(longer.status, short.status)
    away = longer.rest - short.rest
    assert 0 < np.median(np.linalg.norm(away[:, :2], axis=1)) < 2e-3  # steps of 1 ms are off those of 0.25 ms as much
    along = rotate(away[:, :2], -np.arctan2(short.post[:, 1], short.post[:, 0]))[:, 0]
    assert abs(along.mean()) < 5e-4  # no way is lost by braking sooner
    assert np.median(np.abs(away[:, 2])) < 0.05


def test_a_striker_that_has_struck_is_not_met_again() -> None:
    longer = slower_batch(engine().model, threads=1)
    assert longer.model.pair_margin[longer.model.pair("striker").id] == OFF
    assert longer.model.opt.timestep == pytest.approx(LONG * engine().model.opt.timestep)


def test_a_striker_is_moved_only_while_it_comes_nearer() -> None:
    initial, most = strikes(20), np.full(20, 10_000)
    steps = steps_alone(SQUARE, initial, 1e-3, most)
    near = time_to_touch(SQUARE, initial) / 1e-3
    assert ((near - steps >= STANDING) | (steps == 0)).all()
    assert (near - steps < STANDING + 1).all() or (steps == 0).any()
    assert (steps_alone(SQUARE, initial, 1e-3, np.full(20, 3)) <= 3).all()
    moving = Strikes(initial.target_pose, np.full((20, 3), 0.01), initial.striker_pose, initial.striker_velocity)
    assert not steps_alone(SQUARE, moving, 1e-3, most).any()
    passing = Strikes(initial.target_pose, np.zeros((20, 3)), initial.striker_pose + 10.0, initial.striker_velocity)
    assert not steps_alone(SQUARE, passing, 1e-3, most).any()
