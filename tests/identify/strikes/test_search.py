"""Grid search and CMA-ES recover what strikes were simulated with, and say what strikes cannot tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_strikes import simulated

from carom.core.errors import CaromError
from carom.identify import cma, grid
from carom.identify.strikes.trials import StrikeProblem, Trials
from carom.scenes.parameters import with_bounds
from carom.scenes.strike import builtin
from carom.state import Impacts

TRUE = {"striker_friction": 0.25, "ground_friction": 0.35, "striker_damping": 0.6}
CONTACT = ["striker_friction", "striker_damping", "ground_damping"]
GROUND = {"ground_friction": 0.35}
SCENE = builtin("semi-cylinder")
IMPACTS = simulated(SCENE, TRUE, 10, seed=3)


@pytest.mark.parametrize("method", [grid, cma])
def test_known_friction_and_damping_are_recovered(method):
    seen = []
    # ground friction comes from slides, as in the paper: an impact alone tells little of it
    found = method(SCENE, IMPACTS, parameters=CONTACT, fixed=GROUND, seed=0, progress=lambda *done: seen.append(done))
    for name in ("striker_friction", "striker_damping"):
        estimate = found[name]
        assert estimate.value == pytest.approx(TRUE[name], rel=0.1), name
        # a contact with such a damping lasts so long that recordings do not show well when it is over
        assert estimate.verdict == ("identified" if "friction" in name else "weakly identified"), estimate.reason
        assert estimate.low < estimate.value < estimate.high
        assert estimate.low / 1.05 < TRUE[name] < estimate.high * 1.05
    assert found.training.accuracy >= 0.9
    assert found.held_out is not None
    assert found.held_out.accuracy >= 0.9
    assert found.evaluations <= 2600 + 9 * 10 * len(CONTACT)  # the budget, and what the intervals take
    assert seen[-1][0] <= seen[-1][1] == 2500


def test_parameter_without_effect_is_reported_not_searched():
    found = grid(SCENE, IMPACTS, seed=0, budget=900)
    estimate = found["ground_damping"]
    assert estimate.verdict == "not identifiable from these recordings"
    assert "no more than chance" in estimate.reason
    assert (estimate.low, estimate.high) == estimate.bounds
    default = next(p.default for p in SCENE.parameters() if p.name == "ground_damping")
    assert estimate.value == default


def test_nothing_but_a_parameter_without_effect_is_an_error_at_the_start():
    with pytest.raises(CaromError, match=r"nothing to identify.*ground_damping"):
        grid(SCENE, IMPACTS, parameters=["ground_damping"], seed=0)


def test_fixed_values_are_held_and_the_same_seed_gives_the_same_values():
    runs = [cma(SCENE, IMPACTS, fixed={"ground_friction": 0.35}, budget=900, seed=4) for _ in range(2)]
    assert runs[0]["ground_friction"].verdict == "given"
    assert runs[0]["ground_friction"].value == 0.35
    parameters = SCENE.parameters()
    np.testing.assert_array_equal(runs[0].values(parameters), runs[1].values(parameters))


def test_one_parameter_alone_with_its_own_bounds():
    narrow = with_bounds("striker_damping", (0.1, 0.4))  # the truth, 0.6, is outside
    found = cma(
        SCENE, IMPACTS, parameters=[narrow], fixed={k: v for k, v in TRUE.items() if "friction" in k}, budget=700
    )
    assert found["striker_damping"].verdict == "on a bound"
    assert found["striker_damping"].value == pytest.approx(0.4, rel=0.02)


def test_intervals_hold_the_truth_where_outcomes_are_read_before_the_contact_is_over():
    """A tracker sees a soft contact as one at its middle: what the ground takes in the other half does not show."""
    post = IMPACTS.post.copy()
    speed = np.linalg.norm(post[:, :2], axis=1, keepdims=True)
    post[:, :2] *= 1 + 0.015 * 9.81 * TRUE["ground_friction"] / speed  # 15 ms early
    early = replace(IMPACTS, post=post)
    found = cma(SCENE, early, parameters=CONTACT, fixed=GROUND, seed=0, threads=1)["striker_damping"]
    assert found.value < 0.9 * TRUE["striker_damping"]  # the bias is there
    assert found.low < TRUE["striker_damping"] < found.high


def test_an_interval_reaches_as_far_as_the_strikes_allow_where_nothing_slips():
    """Beyond the friction at which no strike slips all are alike: the optimum's curvature says nothing of that."""
    sticky = simulated(SCENE, {**TRUE, "striker_friction": 0.6}, 8, seed=5, noise=0.004)
    found = cma(SCENE, sticky, parameters=CONTACT, fixed=GROUND, seed=0, threads=1)["striker_friction"]
    assert found.low < 0.6 < found.high
    assert found.high > 0.9


def test_strikes_that_miss_cost_much_but_stay_finite():
    away = IMPACTS.strikes.striker_velocity * -1  # moves away from the target: never touches
    strikes = type(IMPACTS.strikes)(
        *(getattr(IMPACTS.strikes, n) for n in ("target_pose", "target_velocity", "striker_pose")), away
    )
    impacts = Impacts(strikes, IMPACTS.post, IMPACTS.post_std, IMPACTS.names)
    missing, right = (StrikeProblem.of(SCENE, i) for i in (impacts, IMPACTS))
    middle = np.full((2, len(missing.active)), 0.5)
    loss = Trials(missing, budget=1000).run(middle)
    assert np.isfinite(loss).all()
    assert missing.effort.evaluations == 2 * len(impacts)
    assert loss.min() > Trials(right, budget=1000).run(middle[:1])[0]


def test_messages_name_what_is_wrong():
    with pytest.raises(CaromError, match="did you mean 'striker_friction'"):
        grid(SCENE, IMPACTS, fixed={"striker_fricton": 0.3})
    with pytest.raises(CaromError, match="every parameter is fixed"):
        grid(SCENE, IMPACTS, fixed={p.name: p.default for p in SCENE.parameters()})
    with pytest.raises(CaromError, match="must be a finite number"):
        cma(SCENE, IMPACTS, fixed={"ground_friction": float("nan")})
    empty = IMPACTS[np.zeros(0, dtype=int)]
    with pytest.raises(CaromError, match="no impacts to identify from"):
        cma(SCENE, empty)
    broken = Impacts(IMPACTS.strikes, IMPACTS.post * np.nan, IMPACTS.post_std, IMPACTS.names)
    with pytest.raises(CaromError, match=r"hit_0.*not a number"):
        grid(SCENE, broken)
