"""The batch's logic with blocks put where the test says: reached, left, exhausted, missed."""

from __future__ import annotations

import numpy as np
import pytest
from placed_blocks import EXACT, SCENE, on_route, placed

from carom.core.errors import CaromError
from carom.engines import MujocoSimulator
from carom.envs import SegmentStarts, StrikeBatch, engine_strike, make_batch, route_through
from carom.scenes.strike import builtin

MIDDLE = np.zeros((1, 3))


def test_reached_with_the_second_strike() -> None:
    batch, strike = placed()
    strike.next = [(0.2, 0.01, 0.1)]
    first = batch.step(MIDDLE)
    assert (first.terminated[0], first.strikes[0], first.subgoals[0]) == (False, 1, 0)
    assert first.terms[0] == pytest.approx([np.exp(-(0.1**2 + 0.01**2)), 0, 0, 0])
    strike.next = [(0.27, 0.0, 0.2)]
    last = batch.step(MIDDLE)
    assert last.terms[0] == pytest.approx([np.exp(-(0.03**2)), (1 + np.cos(0.2)) / 2, 3, 0])
    assert last.reward[0] == pytest.approx(last.terms[0].sum())
    assert (last.terminated[0], last.success[0], last.strikes[0], last.subgoals[0]) == (True, True, 2, 1)
    assert (last.position_error[0], last.orientation_error[0]) == (pytest.approx(0.03), pytest.approx(-0.2))


def test_left_the_zone() -> None:
    batch, strike = placed()
    strike.next = [(0.2, 0.06, 0.0)]
    end = batch.step(MIDDLE)
    assert end.terms[0, 1:].tolist() == [0, 0, -10]
    assert (end.terminated[0], end.left_zone[0], end.success[0], end.strike_failed[0]) == (True, True, False, False)


def test_out_of_strikes_is_an_end() -> None:
    batch, strike = placed()
    strike.next = [(0.1, 0.0, 0.0)]
    ends = [bool(batch.step(MIDDLE).terminated[0]) for _ in range(5)]
    assert ends == [False] * 4 + [True]
    with pytest.raises(CaromError, match="row 0 has ended; reset it"):
        batch.step(MIDDLE)
    batch.reset()
    assert batch.step(MIDDLE).strikes[0] == 1


def test_missed_strike_counts_and_leaves_the_block() -> None:
    batch, strike = placed()
    strike.next = [None]
    end = batch.step(MIDDLE)
    assert (end.strike_failed[0], end.terminated[0], end.strikes[0]) == (True, False, 1)
    assert batch.pose[0].tolist() == [0, 0, 0]
    assert end.terms[0] == pytest.approx([np.exp(-0.09), 0, 0, 0])


def test_route_goes_on_with_the_next_sub_goal() -> None:
    batch, strike = on_route(3)
    corners = batch.points
    strike.next = [(*corners[1], 0.3)]
    one = batch.step(MIDDLE)
    assert (one.reached[0], one.terminated[0], one.subgoals[0], one.strikes[0]) == (True, False, 1, 1)
    assert one.terms[0, 1:] == pytest.approx([(1 + np.cos(np.radians(30) - 0.3)) / 2, 4, 0])
    assert batch.strikes[0] == 0
    away = np.radians(30) - 0.3
    turn = np.radians(-15) - 0.3
    seen = [0, 0, np.cos(away), np.sin(away), np.cos(turn), np.sin(turn)]  # the next segment's frame and sub-goal
    assert one.observation[0] == pytest.approx(seen, abs=1e-6)
    strike.next = [(*corners[2], 0.0)]
    batch.step(MIDDLE)
    strike.next = [(*corners[3], 0.0)]
    end = batch.step(MIDDLE)
    assert (end.terminated[0], end.success[0], end.subgoals[0]) == (True, True, 3)


def test_actions_are_clipped_and_nonsense_refused() -> None:
    batch, strike = placed()
    strike.next = [(0.1, 0.0, 0.0)]
    batch.step([[9.0, -9.0, 9.0]])
    batch.step([[1.0, -1.0, 1.0]])
    assert strike.calls[0].velocity == pytest.approx(strike.calls[1].velocity)
    assert np.linalg.norm(strike.calls[0].velocity) == pytest.approx(SCENE.speed[1])
    with pytest.raises(CaromError, match="row 0"):
        batch.step([[0.0, np.nan, 0.0]])
    with pytest.raises(CaromError, match=r"shape \(1, 3\)"):
        batch.step([[0.0, 0.0]])
    assert len(strike.calls) == 2


def test_only_active_rows_are_struck() -> None:
    batch, strike = placed(count=3)
    strike.next = [(0.1, 0.0, 0.0), (0.29, 0.0, 0.0)]
    end = batch.step(np.zeros((3, 3)), active=[True, False, True])
    assert len(strike.calls) == 1
    assert len(strike.calls[0]) == 2
    assert end.terminated.tolist() == [False, False, True]
    assert end.reward[1] == 0
    assert batch.strikes.tolist() == [1, 0, 0]
    strike.next = [(0.2, 0.0, 0.0), (0.3, 0.0, 0.0)]
    assert batch.step(np.zeros((3, 3)), active=~batch.ended).terminated.tolist() == [False, True, False]


def test_state_is_plain_and_restores() -> None:
    engines = [MujocoSimulator(SCENE, {"ground_friction": f}, threads=1) for f in (0.2, 0.3)]
    batch = make_batch(engines, SegmentStarts(), count=3, seed=5)
    actions = np.random.default_rng(0).uniform(-1, 1, (4, 3, 3))
    actions[..., 2] = -1.0
    batch.step(actions[0])
    saved = batch.state()
    assert all(value.dtype != object for value in saved.values())

    def go_on(b: StrikeBatch) -> list[np.ndarray]:
        seen = []
        for action in actions[1:]:
            b.reset(b.ended)
            seen.append(b.step(action).observation)
        return seen

    expected = go_on(batch)
    other = make_batch(engines, SegmentStarts(), count=3, seed=99)
    other.restore(saved)
    assert np.array_equal(go_on(other), expected)
    with pytest.raises(CaromError, match="expected shape"):
        make_batch(engines, SegmentStarts(), count=2).restore(saved)
    with pytest.raises(CaromError, match="missing: pose"):
        other.restore({k: v for k, v in saved.items() if k != "pose"})


def test_each_episode_has_an_engine_of_its_own_by_chance() -> None:
    """And keeps it; a row's choice does not depend on the others."""
    used: dict[int, int] = {}

    def named(number: int) -> object:
        def strike(commands: object) -> tuple[np.ndarray, np.ndarray]:
            used[number] = used.get(number, 0) + len(commands)  # type: ignore[arg-type]
            return np.zeros((len(commands), 3)), np.zeros(len(commands), dtype=bool)  # type: ignore[arg-type]

        return strike

    strikes = [named(i) for i in range(3)]
    batch = StrikeBatch(strikes, SCENE, starts=EXACT, count=60, seed=1)  # type: ignore[arg-type]
    first = batch.engine.copy()
    batch.step(np.zeros((60, 3)))
    assert [used[i] for i in range(3)] == np.bincount(first, minlength=3).tolist()
    assert min(used.values()) > 8
    batch.step(np.zeros((60, 3)))
    assert np.array_equal(batch.engine, first)
    alone = StrikeBatch(strikes, SCENE, starts=EXACT, seed=1 + 7)  # type: ignore[arg-type]
    assert alone.engine[0] == first[7]
    batch.reset()
    assert not np.array_equal(batch.engine, first)
    batch.reset(seeds=[1 + row for row in range(60)])
    assert np.array_equal(batch.engine, first)


def test_square_blow_moves_the_block_along_in_mujoco() -> None:
    strike = engine_strike(MujocoSimulator(SCENE, threads=1))
    batch = StrikeBatch(strike, SCENE, starts=EXACT, seed=0)
    batch.step([[0.0, 0.0, -0.5]])
    assert batch.pose[0, 0] > 0.03
    assert abs(batch.pose[0, 1]) < 0.003
    assert abs(batch.pose[0, 2]) < 0.05


def test_engines_of_other_scenes_are_refused() -> None:
    from carom.scenes.strike import builtin

    with pytest.raises(CaromError, match="simulator 1: expected scene 'semi-cylinder'"):
        make_batch([MujocoSimulator(SCENE), MujocoSimulator(builtin("square"))], EXACT)
    with pytest.raises(CaromError, match="empty list"):
        make_batch([], EXACT)


def test_short_legs_keep_the_scale() -> None:
    batch, _ = on_route(route_through("short", [[0, 0], [0.15, 0]]))
    assert batch.observe()[0] == pytest.approx([0, 0, 0.5, 0, 1, 0], abs=1e-6)


def test_what_is_seen_of_some_rows_is_what_is_seen_of_all() -> None:
    scene = builtin("square")  # several sides, so that which one is struck has to be found
    batch = StrikeBatch(
        lambda c: (c.target_pose, np.ones(len(c), bool)), scene, starts=SegmentStarts(), count=9, seed=2
    )
    rows = np.array([7, 1, 4])
    np.testing.assert_array_equal(batch.observe(rows), batch.observe()[rows])
    np.testing.assert_array_equal(batch.restart(np.arange(9) % 4 == 3), [3, 7])


def test_a_block_with_one_side_is_not_asked_which(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, strike = placed()
    strike.next = [(0.1, 0.0, 0.0)]
    monkeypatch.setattr("carom.envs.batch.way_ahead", None)
    batch.step(MIDDLE)
    assert batch.side.tolist() == [0]


def test_infos_say_of_each_task_what_the_arrays_say() -> None:
    batch, strike = placed()
    strike.next = [(0.2, 0.06, 0.3)]
    outcome = batch.step(MIDDLE)
    (told,), arrays = outcome.infos(), outcome.info()
    terms = arrays.pop("reward_terms")
    assert told.pop("reward_terms") == {name: value[0].item() for name, value in terms.items()}
    assert told == {name: value[0].item() for name, value in arrays.items()}
