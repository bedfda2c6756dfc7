"""The graph simulator as an engine: rows that go wrong, parameters as tensors, warnings, engines that share a model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from carom.core.errors import CaromError
from carom.learn.graph import GraphEngine, GraphModel, new_network
from carom.scenes.free import toss_scene
from carom.state import SceneState, Status

DEFAULTS = {"friction": 0.3, "face_friction": 0.3, "stiffness": 5000.0, "damping": 100.0}


@pytest.fixture
def model() -> GraphModel:
    torch.manual_seed(0)
    return GraphModel(new_network(), 0.01, DEFAULTS, {"friction": (0.1, 0.5), "stiffness": (500.0, 200_000.0)})


def lying(rows: int) -> SceneState:
    one, none = np.ones((rows, 1, 1)), np.zeros((rows, 1, 3))
    return SceneState(("cube",), one * [0.0, 0.0, 0.05], one * [1.0, 0.0, 0.0, 0.0], none, none)


@pytest.mark.parametrize(("what", "much"), [("spin", 1e12), ("velocity", 1e21)])
def test_a_row_that_goes_wrong_on_the_way_changes_no_other(model: GraphModel, what: str, much: float) -> None:
    start = lying(3)
    getattr(start, what)[0] = much
    motion = GraphEngine(model, toss_scene()).open(start).rollout(0.1, frames=11)
    assert (motion.status == Status.FAILED).tolist() == [True, False, False]
    alone = GraphEngine(model, toss_scene()).open(lying(2)).rollout(0.1, frames=11)
    np.testing.assert_array_equal(motion.position[1:], alone.position)


def test_a_lost_body_stays_where_it_was_last_seen(model: GraphModel) -> None:
    start = lying(1)
    start.velocity[0, 0] = [20_000.0, 0.0, 500.0]
    path = GraphEngine(model, toss_scene()).open(start).rollout(0.1, frames=11).position[0, :, 0, 0]
    assert (np.diff(path) >= 0).all()
    assert path[-1] > 500


def test_parameters_as_tensors_are_parameters_as_values(model: GraphModel) -> None:
    engine = GraphEngine(model, toss_scene(), ("friction", "stiffness", "damping"), dtype=torch.float64)
    start = lying(2)
    start.velocity[:, 0, 0] = 0.6
    values = {"stiffness": 80_000.0, "damping": 500.0}

    def end(friction: torch.Tensor) -> torch.Tensor:
        return engine.follow(start, 20, values=values, contact={"friction": friction}).position[:, -1, 0, 0]

    friction = torch.tensor([0.2, 0.25], dtype=torch.float64, requires_grad=True)
    told = {**values, "friction": friction.detach().numpy()}
    plain = engine.follow(start, 20, values=told).position[:, -1, 0, 0]
    assert torch.allclose(end(friction), plain, atol=1e-12)
    (slope,) = torch.autograd.grad(end(friction).sum(), friction)
    step = 1e-6
    with torch.no_grad():
        difference = (end(friction + step) - end(friction - step)) / (2 * step)
    assert slope.numpy() == pytest.approx(difference.numpy(), rel=1e-3)
    assert (difference.abs() > 1e-4).all()


def test_what_follow_cannot_take_is_refused(model: GraphModel) -> None:
    engine = GraphEngine(model, toss_scene())
    with pytest.raises(CaromError, match=r"unknown parameter of a contact 'frictoin' \(did you mean 'friction'\?\)"):
        engine.follow(lying(1), 2, contact={"frictoin": torch.tensor([0.2])})
    other = SceneState(("ball",), *(getattr(lying(1), n) for n in ("position", "quaternion", "velocity", "spin")))
    with pytest.raises(CaromError, match="start: expected the bodies cube"):
        engine.follow(other, 2)


@pytest.mark.parametrize(("name", "value"), [("friction", 0.9), ("friction", 0.05), ("stiffness", 1.0)])
def test_it_says_where_it_guesses(model: GraphModel, name: str, value: float) -> None:
    engine = GraphEngine(model, toss_scene(), (name,))
    with pytest.warns(UserWarning, match=f"guesses outside of what it was trained with: {name}"):
        engine.open(lying(1), {name: value})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GraphEngine(model, toss_scene(), ("friction",)).open(lying(1), {"friction": 0.2})


def test_engines_of_one_model_leave_it_as_it_is(model: GraphModel) -> None:
    single = GraphEngine(model, toss_scene())
    double = GraphEngine(model, toss_scene(), dtype=torch.float64)
    for engine in (single, double, single):
        motion = engine.open(lying(1)).rollout(0.05, frames=2)
        assert np.isfinite(motion.position).all()
    assert next(model.network.parameters()).dtype == torch.float32


def test_a_run_counts_where_bodies_may_touch(model: GraphModel) -> None:
    start = lying(3)
    start.position[2, 0, 2] = 5.0
    run = GraphEngine(model, toss_scene()).open(start)
    assert run.candidates == 0
    run.step(model.step)
    assert run.candidates == 8, "four corners of each cube that lies"
