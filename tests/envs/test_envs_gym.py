"""The same tasks through Gymnasium, its vector environments and Stable-Baselines3."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from placed_blocks import EXACT, SCENE, Pushes, placed

from carom.core.errors import CaromError
from carom.engines import MujocoSimulator, Simulator
from carom.envs import (
    RouteStarts,
    SegmentStarts,
    StrikeRouteEnv,
    StrikeSegmentEnv,
    StrikeVectorEnv,
    make_batch,
    route_from,
)
from carom.envs.render import animation, frame

sb3_checker = pytest.importorskip("stable_baselines3.common.env_checker")
from stable_baselines3.common.vec_env import VecMonitor  # noqa: E402

from carom.envs.sb3 import StrikeVecEnv  # noqa: E402

ENGINE, MUJOCO = Pushes(), MujocoSimulator(SCENE, threads=1)
IDS = ("carom/StrikeSegment-v0", "carom/StrikeRoute-v0")


@pytest.mark.parametrize("name", IDS)
def test_checkers_find_nothing(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, simulator=ENGINE, render_mode="rgb_array")
        check_env(env.unwrapped)
        sb3_checker.check_env(env.unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_registered(name: str) -> None:
    env = gymnasium.make(name, simulator=ENGINE)
    assert env.spec is not None
    assert env.spec.max_episode_steps is None
    env.reset(seed=0)
    _, _, _, truncated, info = env.step(np.zeros(3, dtype=np.float32))
    assert truncated is False
    assert set(info) == {
        "reward_terms",
        "strikes",
        "subgoals",
        "is_success",
        "left_zone",
        "position_error",
        "orientation_error",
        "strike_failed",
    }
    assert set(info["reward_terms"]) == {"R1", "R2", "R3", "R4"}
    vector = gymnasium.make_vec(name, num_envs=2, vectorization_mode="vector_entry_point", simulator=ENGINE)
    assert isinstance(vector.unwrapped, StrikeVectorEnv)
    assert vector.reset(seed=0)[0].shape == (2, 6)
    assert gymnasium.spec(name).to_json()


def test_default_engine_is_mujoco() -> None:
    env = StrikeSegmentEnv()
    first, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    other, _ = env.reset()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert env.step(np.zeros(3, dtype=np.float32))[4]["strike_failed"] is False


def _actions(steps: int, count: int) -> np.ndarray:
    actions = np.random.default_rng(0).uniform(-0.6, 0.6, (steps, count, 3)).astype(np.float32)
    actions[..., 2] = -0.9  # gentle: some rows live on
    return actions


@pytest.mark.parametrize(
    ("kind", "options", "engine"), [("segment", {}, ENGINE), ("segment", {}, MUJOCO), ("route", {"route": 2}, ENGINE)]
)
def test_single_vector_and_sb3_rows_are_the_same(kind: str, options: dict[str, Any], engine: Simulator) -> None:
    count, steps = (3, 4) if engine is MUJOCO else (7, 40)
    single = StrikeSegmentEnv if kind == "segment" else StrikeRouteEnv
    vector = StrikeVectorEnv(count, kind=kind, simulator=engine, **options)
    sync = gymnasium.vector.SyncVectorEnv(
        [lambda: single(simulator=engine, **options)] * count, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP
    )
    starts = SegmentStarts() if kind == "segment" else RouteStarts(route_from(2))
    ours = StrikeVecEnv(make_batch(engine, starts, count=count))
    ours.seed(7)
    first, second, third = vector.reset(seed=7)[0], sync.reset(seed=7)[0], ours.reset()
    assert np.array_equal(first, second)
    assert np.array_equal(first, third)
    ended, lived = 0, 0
    for action in _actions(steps, count):
        one, two, three = vector.step(action), sync.step(action), ours.step(action)
        for a, b in zip(one[:4], two[:4], strict=True):
            assert _same(a, b)
        _same_infos(one[4], two[4])
        assert _same(one[0], three[0])
        assert _same(one[1].astype(np.float32), three[1])
        assert np.array_equal(one[2], three[2])
        for row in np.flatnonzero(one[2]):
            info = three[3][row]
            assert _same(info["terminal_observation"], one[4]["final_obs"][row])
            assert info["TimeLimit.truncated"] is False
            assert info["position_error"] == one[4]["final_info"]["position_error"][row]
            assert info["reward_terms"]["R1"] == one[4]["final_info"]["reward_terms"]["R1"][row]
        ended, lived = ended + int(one[2].sum()), lived + int((~one[2]).sum())
    assert ended
    assert lived


def _same(a: Any, b: Any) -> bool:
    """The same up to rounding: sums over one row and over many go in another order."""
    return bool(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-6, atol=1e-7))


def _same_infos(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        if isinstance(value, dict):
            _same_infos(value, theirs[name])
        elif value.dtype == object:
            for a, b in zip(value, theirs[name], strict=True):
                assert (a is None and b is None) or _same(a, b)
        else:
            assert _same(value, theirs[name]), name


def test_sb3_tells_returns_and_works_with_a_monitor() -> None:
    batch, strike = placed(EXACT, 2)
    env = StrikeVecEnv(batch)
    monitored = VecMonitor(env)
    monitored.reset()
    strike.next = [(0.1, 0.0, 0.0), (0.1, 0.0, 0.0)]
    _, first, done, infos = monitored.step(np.zeros((2, 3), dtype=np.float32))
    assert not done.any()
    assert [set(info["reward_terms"]) for info in infos] == [{"R1", "R2", "R3", "R4"}] * 2
    assert infos[0] is not infos[1]
    assert not any("episode" in info for info in infos)
    assert infos[0] is not infos[1]
    strike.next = [(0.3, 0.0, 0.0), (0.2, 0.0, 0.0)]
    seen, second, done, infos = env.step(np.zeros((2, 3), dtype=np.float32))
    assert done.tolist() == [True, False]
    assert infos[0]["is_success"] is True
    assert infos[0]["episode"]["r"] == pytest.approx(float(first[0] + second[0]))
    assert infos[0]["episode"]["l"] == 2
    assert seen[0] == pytest.approx([0, 0, 1, 0, 1, 0], abs=1e-6)  # a new start
    saved = env.state()
    other = StrikeVecEnv(placed(EXACT, 2)[0])
    assert np.array_equal(other.restore(saved), seen)
    assert other.lengths.tolist() == [0, 2]
    with pytest.raises(CaromError, match="step_async first"):
        env.step_wait()


def test_options_that_do_not_exist_are_refused() -> None:
    with pytest.raises(CaromError, match="unknown kind"):
        StrikeVectorEnv(2, kind="segmnt", simulator=ENGINE)
    with pytest.raises(CaromError, match="unknown option of kind 'route'"):
        StrikeVectorEnv(2, kind="route", simulator=ENGINE, start_radius=0.1)
    with pytest.raises(CaromError, match="render_mode"):
        StrikeSegmentEnv(simulator=ENGINE, render_mode="human")
    with pytest.raises(CaromError, match="1 task or more"):
        StrikeVectorEnv(0, simulator=ENGINE)


def test_frames_show_the_strike(tmp_path: Path) -> None:
    env = StrikeRouteEnv(simulator=ENGINE, route=3, render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    env.step(np.array([0.0, 0.0, -0.5], dtype=np.float32))
    after = env.render()
    assert before is not None
    assert after is not None
    assert before.dtype == np.uint8
    assert before.shape == after.shape
    assert before.shape[1:] == (480, 3)
    assert (before != after).any()
    animation([before, after], tmp_path / "a.gif")
    assert (tmp_path / "a.gif").read_bytes()[:3] == b"GIF"
    up = route_from(1).points[:, ::-1] * 1.0
    from carom.envs import Route

    tall = frame(make_batch(ENGINE, RouteStarts(Route("up", up))))
    assert tall.shape[1] == 480
    assert tall.shape[0] < 1100
    with pytest.raises(CaromError, match="one frame or more"):
        animation([], tmp_path / "b.gif")
