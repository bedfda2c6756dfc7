"""Batches of pushing tasks: episodes, rows that start anew, draws of parameters, states that are gone on from."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from carom.core.errors import CaromError
from carom.engines.pushing import push_simulator
from carom.envs import PushBlockEnv
from carom.envs.pushing import PushingBatch, pushing_task
from carom.envs.pushing.vector import PushingVecEnv
from carom.scenes.pushing import OWN

TASK = pushing_task("planar-cube")
DRAWS = [{"ground_friction": 0.1, "mass_scale": 0.5}, {"ground_friction": 0.9, "mass_scale": 2.0}]


def batch(count: int = 3, steps: int = 5, draws: object = (), seed: int = 0) -> PushingBatch:
    names = tuple(draws[0]) if draws else ()  # type: ignore[index]
    return PushingBatch(
        replace(TASK, steps=steps), push_simulator(TASK.scene, names), count=count, draws=draws, seed=seed
    )


def actions(count: int, number: int = 0) -> np.ndarray:
    return np.random.default_rng(number).uniform(-1, 1, (count, 2))


def test_an_episode_is_what_the_simulator_says_of_the_tasks_set_points() -> None:
    made, simulator = batch(), push_simulator(TASK.scene)
    state, goals = made.state, made.goals
    run = simulator.open(state)
    for k in range(5):
        outcome = made.step(actions(3, k))
        state = run.step(TASK.controls(state, actions(3, k)))
        np.testing.assert_allclose(outcome.observation, TASK.observe(state, goals), atol=1e-6)
        np.testing.assert_allclose(outcome.reward, TASK.reward(state, goals))
        assert outcome.truncated.all() == (k == 4)


def test_rows_that_start_anew_leave_the_others_on_their_way() -> None:
    made, whole = batch(4, 20), batch(4, 20)
    for k in range(8):
        if k == 4:
            before = made.observe()
            after = made.reset([1])
            assert not np.allclose(before[1], after[1])
            np.testing.assert_allclose(before[[0, 2, 3]], after[[0, 2, 3]], atol=1e-5)
        one, other = made.step(actions(4, k)), whole.step(actions(4, k))
    np.testing.assert_allclose(one.observation[[0, 2, 3]], other.observation[[0, 2, 3]], atol=1e-4)
    assert made.elapsed.tolist() == [8, 4, 8, 8]


def test_a_saved_state_goes_on_bit_for_bit() -> None:
    made = batch(3, 30, DRAWS)
    for k in range(12):
        if k == 6:
            made.reset([0, 2])
        if k == 9:
            saved = made.saved()
        seen = made.step(actions(3, k)).observation
    other = batch(3, 30, DRAWS, seed=5)
    other.restore(saved)
    for k in range(9, 12):
        again = other.step(actions(3, k)).observation
    np.testing.assert_array_equal(seen, again)
    np.testing.assert_array_equal(made.reset([1]), other.reset([1]))
    with pytest.raises(CaromError, match="state: expected one of 2 pushing tasks"):
        batch(2).restore(saved)


def test_each_episode_has_one_of_the_draws() -> None:
    """A cube that is let go with a speed slides the way its own friction lets it."""
    made = batch(64, 30, DRAWS)
    assert 16 < made.draw.sum() < 48
    first = made.draw.copy()
    made.reset()
    assert (made.draw != first).any()
    start = made.task.scene.placed(np.tile([0.0, 0.0, 0.0], (64, 1)), np.tile([-0.3, 0.0], (64, 1)))
    start.velocity[:, 0, 0] = 0.4
    kinds = ("position", "quaternion", "velocity", "spin", "joint_position", "joint_velocity")
    made.restore({**made.saved(), "start": {name: getattr(start, name) for name in kinds}})
    for _ in range(20):
        made.step(np.zeros((64, 2)))
    slid = made.state.position[:, 0, 0]
    friction = np.array([draw["ground_friction"] for draw in DRAWS])[made.draw]
    np.testing.assert_allclose(slid, 0.4**2 / (2 * friction * 9.81), rtol=0.15)


def test_who_leaves_is_cut_off_and_not_done() -> None:
    made = batch(2, 40)
    outward = np.sign(made.state.joint_position)
    for _ in range(40):
        outcome = made.step(outward)
        if outcome.outside.any():
            break
    assert outcome.outside.any()
    assert outcome.truncated[outcome.outside].all()
    assert made.elapsed.max() < 40


def test_what_the_engine_gives_up_is_cut_off_with_finite_numbers() -> None:
    made = batch(2, 10)
    broken = made.saved()
    broken["start"]["position"][1] = np.nan
    made.restore(broken)
    outcome = made.step(np.zeros((2, 2)))
    assert outcome.truncated.tolist() == [False, True]
    assert np.isfinite(outcome.observation).all()
    assert np.isfinite(outcome.reward).all()


def test_vec_env_starts_anew_and_tells_the_last_observation() -> None:
    env = PushingVecEnv(batch(3, 5))
    env.seed(7)
    first = env.reset()
    total = np.zeros(3)
    for k in range(5):
        seen, reward, done, infos = env.step(actions(3, k).astype(np.float32))
        total += reward
    assert done.all()
    assert (env.batch.elapsed == 0).all()
    for row, info in enumerate(infos):
        assert info["TimeLimit.truncated"]
        assert info["episode"]["l"] == 5
        assert info["episode"]["r"] == pytest.approx(total[row], rel=1e-5)
        assert not np.allclose(info["terminal_observation"], seen[row])
        np.testing.assert_allclose(info["terminal_observation"][5:8], first[row, 5:8])  # the goal of the old episode
    env.seed(7)
    np.testing.assert_array_equal(env.reset(), first)


@pytest.mark.parametrize("scene", OWN)
def test_the_gymnasium_environment_passes_the_checks(scene: str) -> None:
    env = gymnasium.make("carom/PushBlock-v0", scene=scene)
    check_env(env.unwrapped, skip_render_check=True)
    check_env_sb3(env.unwrapped)


def test_the_single_environment_is_a_batch_of_one() -> None:
    env = PushBlockEnv(scene="planar-cube", values={"ground_friction": 0.1})
    seen, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(seen, again)
    for _ in range(TASK.steps):
        _, reward, terminated, truncated, info = env.step(np.zeros(2, dtype=np.float32))
        assert reward < 0
        assert not terminated
    assert truncated
    assert info == {"is_success": False, "outside": False}


def test_wrong_use_is_refused() -> None:
    with pytest.raises(CaromError, match="count: expected 1 task or more, got 0"):
        batch(0)
    with pytest.raises(CaromError, match=r"actions: expected 3 rows of 2 finite numbers, got shape \(3, 3\)"):
        batch().step(np.zeros((3, 3)))
    with pytest.raises(CaromError, match=r"draw 1: expected the parameters of the first \(mass_scale\), got com_x"):
        PushingBatch(TASK, push_simulator(TASK.scene), count=1, draws=[{"mass_scale": 1.0}, {"com_x": 0.0}])
    with pytest.raises(CaromError, match="draw 0: expected finite values"):
        PushingBatch(TASK, push_simulator(TASK.scene), count=1, draws=[{"mass_scale": np.nan}])
