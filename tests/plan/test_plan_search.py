"""Planned strikes: one that is known to exist is found again, one that is not is said to be out of reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from carom.core.errors import CaromError
from carom.engines.contact_frames import contact_frames
from carom.engines.contract import Status
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.engines.slider import slider_for
from carom.hybrid.draws import hybrid_draws
from carom.hybrid.learned_impact import LearnedImpact
from carom.hybrid.simulator import HybridSimulator
from carom.learn.impact.adapted_model import Prediction
from carom.learn.impact.ranges import within_learned
from carom.learn.impact.student import Student, teach
from carom.plan import Plan, StrikeSpace, approach, plan_strike, strike_space
from carom.plan.differentiate import differentiable_rest, rest_and_derivative
from carom.plan.search import HORIZON, TAU, Budget, residuals
from carom.recipes.planning import SearchOptions, search_strike
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Strikes

POSE = np.array([0.3, -0.2, 0.7])
U = np.random.default_rng(5).random((60, 3))


@dataclass(frozen=True)
class Analytic:
    """A rigid impact with restitution and smooth friction, in closed form; uncertain by 3 % of the approach speed."""

    scene: StrikeScene
    restitution: float = 0.4
    friction: float = 0.3

    def predict(self, strikes: Strikes) -> Prediction:
        frames = contact_frames(self.scene, strikes)
        k2, mass = self.scene.gyration_radius**2, self.scene.mass
        arm = np.einsum("nai,na->ni", frames.axes, frames.lever)
        turn = arm[:, None, 0] * frames.axes[:, :, 1] - arm[:, None, 1] * frames.axes[:, :, 0]  # [N, 2] along t, n
        yielding = 1 + turn[:, 1] ** 2 / k2 + mass / self.scene.striker_mass
        along_n = (1 + self.restitution) * frames.velocity[:, 1] / yielding
        along_t = self.friction * along_n * np.tanh(3 * frames.velocity[:, 0] / frames.speed)
        push = np.column_stack([along_t, along_n])  # impulse over mass
        post = np.column_stack([np.einsum("na,nai->ni", push, frames.axes), (push * turn).sum(axis=1) / k2])
        std = 0.03 * frames.speed[:, None] * np.array([1.0, 1.0, 1 / np.sqrt(k2)])
        return Prediction(post, std, within_learned(self.scene, frames))


def hybrid_of(scene: StrikeScene, student: Student) -> HybridSimulator:
    return HybridSimulator(LearnedImpact(scene, student, slider_for(scene, 0.3)), threads=1)


@pytest.fixture(scope="module")
def hybrid() -> HybridSimulator:
    scene = builtin("square")
    return hybrid_of(scene, teach(Analytic(scene), steps=400))


@pytest.fixture(scope="module")
def space(hybrid: HybridSimulator) -> StrikeSpace:
    return strike_space(hybrid.scene, POSE)


@pytest.fixture(scope="module")
def rest(hybrid: HybridSimulator, space: StrikeSpace) -> np.ndarray:
    """Where the strikes of U bring the target [60, 3]: poses that one strike is known to reach."""
    run = hybrid.rollout(space.initial(U), HORIZON)
    assert (run.status == Status.AT_REST).all()
    assert not run.from_engine.any()
    return run.rest


def rolled_out(plan: Plan, simulator: HybridSimulator | MujocoSimulator) -> np.ndarray:
    return simulator.rollout(approach(simulator.scene, plan.commands), HORIZON).rest[0]


@pytest.mark.parametrize("method", ["gradient", "cma"])
def test_a_strike_that_exists_is_found_again(hybrid, space, rest, method):
    for i in range(4):
        plan = plan_strike(hybrid, space, rest[i], method=method)
        assert plan.loss < 1e-6, i
        assert plan.reachable
        assert plan.position_error < 1e-3
        assert abs(plan.yaw_error) < 1e-2
        np.testing.assert_allclose(rolled_out(plan, hybrid), plan.rest, atol=1e-9)  # the commands do what it says
        assert plan.loss == pytest.approx((residuals(plan.rest[None], rest[i]) ** 2).sum(), rel=1e-9)
        assert plan.to_dict()["reachable"] is True
        assert plan.method == method


def test_the_cross_entropy_method_comes_close(hybrid, space, rest):
    losses = [plan_strike(hybrid, space, rest[i], method="cem").loss for i in range(4)]
    assert max(losses) < 5e-4
    assert min(losses) < 1e-5


def test_a_pose_out_of_reach_is_said_to_be(hybrid, space, rest):
    wanted = np.array([3.0, 2.0, 0.5])
    at_random = (residuals(rest, wanted) ** 2).sum(axis=1).min()
    for method in ("gradient", "cma", "cem"):
        plan = plan_strike(hybrid, space, wanted, method=method)
        assert not plan.reachable
        assert np.isfinite([plan.position_error, plan.yaw_error, plan.loss, *plan.rest]).all()
        assert plan.position_error > 1.0
        assert plan.loss < at_random  # the nearest it can
        assert plan.loss == pytest.approx(plan.position_error**2 + TAU * plan.yaw_error**2)
        np.testing.assert_allclose(rolled_out(plan, hybrid), plan.rest, atol=1e-9)
        assert np.linalg.norm(plan.commands.velocity[0]) == pytest.approx(space.speed[1], rel=0.01)


def test_reachable_is_within_the_tolerance(hybrid, space, rest):
    plan = plan_strike(hybrid, space, rest[0], method="gradient", tolerance=(1e-12, 0.1))
    assert not plan.reachable
    assert replace(plan, tolerance=(0.01, 0.1)).reachable
    assert not replace(plan, tolerance=(0.01, 0.0)).reachable


def test_a_full_turn_more_is_the_same_goal(hybrid, space, rest):
    plain, turned = (plan_strike(hybrid, space, rest[1] + [0, 0, a], method="gradient") for a in (0.0, 2 * np.pi))
    np.testing.assert_allclose(turned.commands.contact_point, plain.commands.contact_point, atol=1e-6)
    np.testing.assert_allclose(turned.commands.velocity, plain.commands.velocity, atol=1e-6)
    assert turned.loss < 1e-6
    assert abs(turned.yaw_error) < 1e-3


@pytest.mark.parametrize(("method", "budget"), [("cma", 100), ("cma", 10), ("cem", 150), ("gradient", 35)])
def test_the_budget_is_kept_exactly(hybrid, space, rest, method, budget):
    seen = []
    plan = plan_strike(
        hybrid, space, rest[2], method=method, budget=budget, progress=lambda done, of: seen.append((done, of))
    )
    assert plan.evaluations == budget
    assert [h[0] for h in plan.history] == [done for done, _ in seen]
    assert seen[-1] == (budget, budget)
    assert all(a < b for (a, _), (b, _) in pairwise(seen))
    best = [h[1] for h in plan.history]
    assert best == sorted(best, reverse=True)


def test_a_goal_stops_early(hybrid, space, rest):
    full = plan_strike(hybrid, space, rest[0], method="cma")
    early = plan_strike(hybrid, space, rest[0], method="cma", budget=Budget(goal=1e-4))
    assert early.loss <= 1e-4
    assert early.evaluations < full.evaluations / 2
    assert early.history[-2][1] > 1e-4  # not a generation later than needed
    few = plan_strike(hybrid, space, rest[0], method="gradient", budget=Budget(goal=1e-4))
    assert few.evaluations <= 96


def test_same_seed_same_plan(hybrid, space, rest):
    plans = [plan_strike(hybrid, space, rest[3], budget=150, seed=s) for s in (1, 1, 2)]
    np.testing.assert_array_equal(plans[0].commands.velocity, plans[1].commands.velocity)
    assert not np.array_equal(plans[0].commands.velocity, plans[2].commands.velocity)


def test_the_derivative_is_that_of_the_rollout(hybrid, space, rest):
    found, slope = rest_and_derivative(hybrid, space, U)
    assert np.abs(found[:, :2] - rest[:, :2]).max() < 1e-4
    assert np.abs(found[:, 2] - rest[:, 2]).max() < 1e-3
    step = 1e-3
    # not across the end of a side, where contact point and normal jump
    length = 0.25
    inside = np.abs(np.mod(U[:, 0], length) - length / 2) < length / 2 - 2 * step
    with torch.no_grad():
        ends = [
            [differentiable_rest(hybrid, space, torch.as_tensor(U + sign * step * e)).numpy() for sign in (1, -1)]
            for e in np.eye(3)
        ]
    difference = np.stack([(a - b) / (2 * step) for a, b in ends], axis=2)
    off = np.abs(difference - slope).max(axis=(1, 2)) / np.abs(slope).max(axis=(1, 2))
    # the network is float32, and the slider's count of steps jumps here and there: 1 % is what both leave
    assert np.median(off[inside]) < 2e-3
    assert (off[inside] < 0.03).mean() > 0.9
    assert np.abs(slope).max(axis=(0, 1)).min() > 1e-2  # every coordinate of a strike matters


def test_on_an_arc_the_derivative_agrees_up_to_the_polygon():
    """The space knows the exact arc; rollouts meet the polygon of 48 edges that stands for it.

    A round striker rests on a corner of the polygon where it would roll on the arc, so that the contact point is up to
    0.5 mm off, and a target that turns by radians ends up to a tenth of one elsewhere. The plan's own numbers are the
    rollout's.
    """
    scene = builtin("semi-cylinder")
    arc = hybrid_of(scene, teach(Analytic(scene), steps=300))
    place = strike_space(scene, POSE)
    run = arc.rollout(place.initial(U), HORIZON)
    found, _ = rest_and_derivative(arc, place, U)
    assert np.linalg.norm(found[:, :2] - run.rest[:, :2], axis=1).max() < 5e-3
    assert np.abs(found[:, 2] - run.rest[:, 2]).max() < 0.2
    plan = plan_strike(arc, place, run.rest[1], method="gradient")
    assert plan.reachable
    assert plan.loss == pytest.approx((residuals(plan.rest[None], run.rest[1]) ** 2).sum())


def test_a_guarded_outcome_counts_as_the_simulator_has_it(hybrid, space):
    """A network that creates energy: the derivative's path has no guard, the plan's own numbers have."""
    scene = hybrid.scene
    wild = hybrid_of(scene, teach(Analytic(scene, restitution=1.5), steps=200))
    assert wild.rollout(space.initial(U), HORIZON).guarded.any()
    wanted = rest_and_derivative(wild, space, U[:1])[0][0]
    plan = plan_strike(wild, space, wanted, method="gradient")
    np.testing.assert_allclose(rolled_out(plan, wild), plan.rest, atol=1e-9)
    assert plan.loss == pytest.approx(plan.position_error**2 + TAU * plan.yaw_error**2)


def test_a_robust_plan_weighs_the_draws(hybrid, space, rest):
    draws = hybrid_draws(hybrid, 3, friction_spread=0.03, seed=1)
    plain = plan_strike(hybrid, space, rest[0], method="gradient")
    assert np.isnan(plain.rest_std).all()
    for method, budget in (("gradient", None), ("cma", 800)):
        robust = plan_strike(draws, space, rest[0], method=method, budget=budget)
        assert np.isfinite(robust.rest_std).all()
        assert (robust.rest_std > 0).all()
        assert robust.loss >= plain.loss
        each = np.array([rolled_out(robust, draw) for draw in draws])
        np.testing.assert_allclose(robust.rest, each.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(robust.rest_std, each.std(axis=0, ddof=1), atol=1e-9)
        mean = (residuals(each, rest[0]) ** 2).sum(axis=1).mean()
        assert robust.loss == pytest.approx(mean)
        unaware = np.array([rolled_out(plain, draw) for draw in draws])
        assert robust.loss < 1.05 * (residuals(unaware, rest[0]) ** 2).sum(axis=1).mean()


def test_any_simulator_can_plan():
    simulator = MujocoSimulator(builtin("square"), threads=1)
    space = strike_space(simulator.scene, POSE)
    wanted = simulator.rollout(space.initial(U[:1]), HORIZON).rest[0]
    plan = plan_strike(simulator, space, wanted, method="cma", budget=160)
    assert plan.evaluations == 160
    assert plan.loss < plan.history[0][1]
    assert plan.loss < 1e-3
    np.testing.assert_allclose(rolled_out(plan, simulator), plan.rest, atol=1e-9)
    with pytest.raises(CaromError, match="'gradient' needs the hybrid with the slider; other engines take 'cma'"):
        plan_strike(simulator, space, wanted, method="gradient")


def test_the_gradient_refuses_what_it_cannot_differentiate(hybrid, space, rest):
    exact = HybridSimulator(replace(hybrid.impact, model=Analytic(hybrid.scene)), threads=1)
    with pytest.raises(CaromError, match="needs the hybrid's small network, not the corrected model itself"):
        plan_strike(exact, space, rest[0], method="gradient")
    in_mujoco = HybridSimulator(hybrid.impact, sliding="mujoco", threads=1)
    with pytest.raises(CaromError, match="needs the hybrid with the slider"):
        plan_strike(in_mujoco, space, rest[0], method="gradient")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "newton"),
        ({"wanted": [0.0]}, r"target: expected three finite numbers, x y yaw \[m, m, rad\]"),
        ({"wanted": [0.0, 1.0, float("inf")]}, "target: expected three finite numbers"),
        ({"budget": 0}, "budget: expected 1 evaluation or more, got 0"),
    ],
)
def test_bad_questions_are_refused(hybrid, space, options, message):
    given = {"wanted": np.zeros(3), **options}
    with pytest.raises(CaromError, match=message):
        plan_strike(hybrid, space, given.pop("wanted"), **given)


def test_a_place_without_a_yaw_is_reached_at_least_as_well(hybrid, space, rest):
    """Where any yaw will do, Eq. 5 has only the distance left: the strike found for the pose does no better."""
    pose = plan_strike(hybrid, space, rest[0], budget=400)
    place = plan_strike(hybrid, space, rest[0][:2], budget=400)
    assert np.isnan(place.wanted[2])
    assert place.yaw_error == 0.0
    assert place.to_dict()["wanted_pose"][2] is None
    assert place.loss == pytest.approx(place.position_error**2, rel=1e-6)
    assert place.loss <= pose.loss + 1e-6
    slope = plan_strike(hybrid, space, rest[0][:2], method="gradient")
    assert slope.position_error < 0.01


def test_plans_are_robust_where_the_model_is_unsure(hybrid, space, rest, monkeypatch):
    """By default: draws that agree leave the plain plan, and state its spread; draws that do not are planned for."""
    asked = SearchOptions(method="gradient")
    plain = plan_strike(hybrid, space, rest[0], method="gradient")
    for spread, same in ((0.001, True), (0.3, False)):
        draws = list(hybrid_draws(hybrid, 3, friction_spread=spread, seed=1))
        if same:
            draws = [hybrid] * 3
        monkeypatch.setattr("carom.recipes.planning.draws_of", lambda *_, draws=draws, **__: draws)
        found = search_strike(None, hybrid, space, rest[0], asked)
        assert np.isfinite(found.rest_std).all()
        assert bool(np.allclose(found.rest, plain.rest, atol=1e-12)) is same
        assert bool((found.rest_std[:2] < 1e-9).all()) is same
    left = search_strike(None, hybrid, space, rest[0], SearchOptions(method="gradient", robust=False))
    assert np.isnan(left.rest_std).all()
