"""Pushing one body at another: goals that can be reached, one push an episode, alone and together."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import carom.envs  # noqa: F401 - registers the environment
from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.engines import MujocoEngine
from carom.envs.push import HIGH, LOW, OBSERVED, REACHED, PushEnv, observation, push_of, reward
from carom.plan import PushTasks, push_scene, push_tasks
from carom.scenes.free import toss_scene
from carom.state import SceneState

VALUES = {"friction": 0.25}


@pytest.fixture(scope="module")
def engine() -> MujocoEngine:
    return MujocoEngine(push_scene(), tuple(VALUES), threads=1)


@pytest.fixture(scope="module")
def tasks(engine: MujocoEngine) -> PushTasks:
    return push_tasks(engine, 24, values=VALUES, seed=3)


def test_goals_are_where_some_push_goes(engine: MujocoEngine, tasks: PushTasks) -> None:
    away = np.linalg.norm(tasks.goal - tasks.place("moved"), axis=-1)
    assert (away > 0.03).all()
    rng = np.random.default_rng(0)
    least = np.full(len(tasks), np.inf)
    for _ in range(60):
        speed = rng.uniform(0.8, 1.8, len(tasks))
        push = np.stack([speed, 0.08 * speed * rng.uniform(-1, 1, len(tasks)), rng.uniform(-1, 1, len(tasks))], -1)
        least = np.minimum(least, tasks.misses(engine, push, VALUES))
    assert np.median(least) < 0.03


def test_what_is_seen_and_done_does_not_depend_on_where_north_is(engine: MujocoEngine, tasks: PushTasks) -> None:
    turn, way = about_z(np.array(0.7)), np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    start = tasks.start
    position = start.position.copy()
    position[..., :2] = position[..., :2] @ way.T + [0.3, -0.2]
    w, z = turn[0], turn[3]
    q = start.quaternion
    quaternion = np.stack(
        [
            w * q[..., 0] - z * q[..., 3],
            w * q[..., 1] - z * q[..., 2],
            w * q[..., 2] + z * q[..., 1],
            w * q[..., 3] + z * q[..., 0],
        ],
        axis=-1,
    )
    moved = PushTasks(
        SceneState(start.bodies, position, quaternion, start.velocity, start.spin),
        tasks.goal @ way.T + [0.3, -0.2],
        tasks.duration,
    )
    np.testing.assert_allclose(observation(moved), observation(tasks), atol=1e-6)
    push = np.tile([1.2, 0.05, 0.5], (len(tasks), 1))
    here, there = tasks.misses(engine, push, VALUES), moved.misses(engine, push, VALUES)
    assert np.median(np.abs(here - there)) < 2e-3


def test_pushes_stay_within_bounds_and_nearer_is_better() -> None:
    assert push_of(np.array([[-5.0, -1.0, 0.0]])) == pytest.approx(np.array([[LOW[0], LOW[1], (LOW + HIGH)[2] / 2]]))
    assert push_of(np.ones((1, 3))) == pytest.approx(HIGH[None])
    got = reward(np.array([0.0, REACHED - 1e-6, REACHED + 1e-6, 0.2]))
    assert (np.diff(got) < 0).all()
    assert got[1] - got[2] == pytest.approx(1.0, abs=1e-3)


def test_the_environment_is_as_gymnasium_wants_it() -> None:
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("carom/Push-v0")
    check_env(env.unwrapped, skip_render_check=True)
    seen, _ = env.reset(seed=4)
    again, _ = env.reset(seed=4)
    np.testing.assert_array_equal(seen, again)
    assert seen.shape == (OBSERVED,)


def test_many_pushes_at_once_are_what_single_ones_are(engine: MujocoEngine, tasks: PushTasks) -> None:
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    from carom.envs.sb3 import PushVecEnv

    env = PushVecEnv(engine, tasks, 6, values=VALUES)
    env.seed(1)
    seen = env.reset()
    rows = [int(np.flatnonzero((observation(tasks) == s).all(-1))[0]) for s in seen]
    actions = np.random.default_rng(2).uniform(-0.3, 0.3, (6, 3)).astype(np.float32)
    _, got, done, infos = env.step(actions)
    assert done.all()
    single = PushEnv(engine=engine, values=VALUES, tasks=tasks)
    for n, row in enumerate(rows):
        single._task = tasks[np.array([row])]
        _, alone, ended, _, told = single.step(actions[n])
        assert ended
        assert alone == pytest.approx(float(got[n]), abs=1e-6)
        assert told["miss"] == pytest.approx(infos[n]["miss"], abs=1e-9)
        np.testing.assert_array_equal(infos[n]["terminal_observation"], seen[n])


def test_wrong_tasks_are_refused(tasks: PushTasks) -> None:
    with pytest.raises(CaromError, match="expected one of the bodies pushed, moved, got 'ball'"):
        PushTasks(tasks.start, tasks.goal, pushed="ball")
    with pytest.raises(CaromError, match="goal: expected two finite numbers"):
        PushTasks(tasks.start, tasks.goal[:3])
    with pytest.raises(CaromError, match=r"push_tasks needs the scene of push_scene\(\), got 'toss'"):
        push_tasks(MujocoEngine(toss_scene()), 3)
    stuck = MujocoEngine(push_scene(), ("friction",), threads=1)
    with pytest.raises(CaromError, match="of 40 random pushes 0 move the second body; is the friction too high"):
        push_tasks(stuck, 2, values={"friction": 4.0}, duration=0.3)
