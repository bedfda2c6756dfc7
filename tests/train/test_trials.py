from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from carom.core.errors import CaromError
from carom.envs.routes import route_from
from carom.envs.sides import sides_of
from carom.envs.task import STRIKES, strikes_of
from carom.scenes.strike import builtin
from carom.state import StrikeCommands
from carom.train import Policy, Trials, rate_of, run_trials

SCENE = builtin("semi-cylinder")


def policy(bias: tuple[float, float, float] = (0, 0, 0)) -> Policy:
    """The same action whatever it sees."""
    weights, low = np.zeros((3, 6), np.float32), np.full(3, -1, np.float32)
    seen = np.full(6, 10, np.float32)
    return Policy("ppo", "test", "tanh", False, (weights,), (np.float32(bias),), -seen, seen, low, -low)


def along_heading(length: float):
    """A block that goes that far where it heads, whatever the blow."""

    def strike(commands: StrikeCommands) -> tuple[np.ndarray, np.ndarray]:
        pose = commands.target_pose.copy()
        heading = pose[:, 2] + sides_of(SCENE)[0].heading
        pose[:, :2] += length * np.column_stack([np.cos(heading), np.sin(heading)])
        return pose, np.ones(len(pose), dtype=bool)

    return strike


def test_counts_what_happened_on_a_route() -> None:
    result = run_trials(policy(), along_heading(0.1), SCENE, route_from(3), trials=5, seed=0)
    # heading 0 all the way: the first sub-goal after three strikes, then out of the zone at the bend
    assert not result.success.any()
    assert (result.completed == 1).all()
    assert result.left_zone.all()
    assert (result.strikes >= 4).all()
    assert result.rates().success.value == 0
    assert result.rates().subgoals.value == pytest.approx(1 / 3)
    # its start is always the same and the strike has no noise: five times the same trial says as much as one
    assert result.distinct == 1
    assert result.rates().success == rate_of(np.zeros(1))
    assert result.rates().subgoals.high - result.rates().subgoals.low > 0.5
    np.testing.assert_allclose(result.path[:, 3, :2], np.tile([0.3, 0.0], (5, 1)), atol=1e-12)


def test_trials_end_one_by_one_and_the_path_stops_with_them() -> None:
    result = run_trials(policy(), along_heading(0.1), SCENE, route_from(1), trials=200, seed=7)
    assert 0.05 < result.rates().success.value < 0.6  # straight enough headings arrive
    rests = np.isfinite(result.path[:, :, 0]).sum(axis=1) - 1
    np.testing.assert_array_equal(rests, result.strikes)
    assert (result.strikes[result.success] == 3).all()
    again = run_trials(policy(), along_heading(0.1), SCENE, route_from(1), trials=200, seed=7)
    np.testing.assert_array_equal(again.path, result.path)
    other = run_trials(policy(), along_heading(0.1), SCENE, route_from(1), trials=200, seed=1000)
    assert not np.array_equal(other.path, result.path, equal_nan=True)


def test_strikes_run_out() -> None:
    result = run_trials(policy(), along_heading(0.0), SCENE, route_from(2), trials=3)
    assert (result.strikes == STRIKES).all()
    assert (result.completed == 0).all()
    assert not result.left_zone.any()


def test_refuses_blocks_and_strikes_that_a_policy_was_not_trained_with() -> None:
    learned = replace(policy(), made_by={"strikes_mean": strikes_of(SCENE)})
    assert len(run_trials(learned, along_heading(0.1), SCENE, route_from(1), trials=1).success) == 1
    with pytest.raises(CaromError, match="trained with shape semi-cylinder, this reality has box"):
        run_trials(learned, along_heading(0.1), builtin("square"), route_from(1), trials=1)
    with pytest.raises(CaromError, match=r"trained with speed_m_s \[0.2, 0.8\], this reality has \[0.2, 0.5\]"):
        run_trials(learned, along_heading(0.1), replace(SCENE, speed=(0.2, 0.5)), route_from(1), trials=1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "expected rests"),
        ((np.zeros((1, 3)), np.ones(1, bool)), r"shape \(3, 3\) and 3 booleans, got shapes \(1, 3\)"),
        ((np.zeros((3, 2)), np.ones(3, bool)), r"got shapes \(3, 2\)"),
        ((np.zeros((3, 3)), np.zeros((3, 3))), r"\(float64\)"),
    ],
)
def test_a_strike_of_ones_own_that_answers_otherwise_is_told_so(answer: object, said: str) -> None:
    with pytest.raises(CaromError, match=said):
        run_trials(policy(), lambda commands: answer, SCENE, route_from(1), trials=3)  # type: ignore[arg-type,return-value]


def test_refuses_no_trials() -> None:
    with pytest.raises(CaromError, match="trials: expected 1 or more"):
        run_trials(policy(), along_heading(0.1), SCENE, route_from(1), trials=0)


@pytest.mark.parametrize(("yes", "of"), [(0, 20), (1, 20), (13, 20), (20, 20), (97, 100)])
def test_success_has_wilsons_interval(yes: int, of: int) -> None:
    expected = binomtest(yes, of).proportion_ci(method="wilson")
    got = rate_of(np.arange(of) < yes)
    assert (got.value, got.low, got.high) == pytest.approx((yes / of, expected.low, expected.high))


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
def test_intervals_hold_what_they_promise(p: float) -> None:
    """Three segments, each reached with probability p and only after the one before: SGCR is known."""
    rng = np.random.default_rng(0)
    reached = np.cumprod(rng.random((2000, 60, 3)) < p, axis=2).sum(axis=2)
    truth = {"success": p**3, "subgoals": (p + p**2 + p**3) / 3}
    held = {"success": 0, "subgoals": 0}
    for completed in reached:
        none, path = np.zeros(0), np.arange(180.0).reshape(60, 1, 3)
        rates = Trials(route_from(3), completed == 3, completed, none, none, path).rates()
        for name, value in truth.items():
            rate = getattr(rates, name)
            held[name] += rate.low <= value <= rate.high
    for count in held.values():
        assert 0.92 < count / 2000 < 0.985
