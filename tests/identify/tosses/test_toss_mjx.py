"""Derivatives of whole motions through MJX: near those of MuJoCo, and good enough to find parameters by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from free_recordings import toss

from carom.core.errors import CaromError
from carom.identify.tosses.gauss_newton import fit_around, polished
from carom.identify.tosses.mjx import mjx_fit
from carom.identify.tosses.problem import MotionProblem
from carom.scenes.free import free_parameters, resolved, timestep

TRUTH = {"friction": 0.25, "stiffness": 12_000.0, "damping": 90.0}


@pytest.fixture(scope="module")
def problem():
    motions = toss(Path("tosses"), 8, seed=1, truth=TRUTH, samples=60).motions
    return MotionProblem.of(motions, resolved(free_parameters(tuple(TRUTH)), timestep(motions.period)), {}, threads=1)


@pytest.fixture(scope="module")
def linearised(problem):
    pytest.importorskip("mujoco.mjx", reason="MJX is an extra: pip install carom[mjx]")
    return mjx_fit(problem)


@pytest.fixture(scope="module")
def truth(problem):
    return np.array([float(p.to_unit(TRUTH[p.name])) for p in problem.parameters])


def test_derivatives_point_where_those_of_mujoco_do(problem, linearised, truth):
    """MJX has friction pyramids, MuJoCo cones: they agree roughly, not to the last digit."""
    ours, planes = (f(problem, truth, 0.03, 0).jacobian.reshape(-1, 3) for f in (linearised, fit_around))
    cosine = (ours * planes).sum(axis=0) / np.linalg.norm(ours, axis=0) / np.linalg.norm(planes, axis=0)
    assert (cosine > 0.5).all(), cosine


def test_steps_along_them_find_the_truth(problem, linearised, truth):
    start = truth + 0.05
    loss, unit, _, _ = polished(problem, start, 0, linearised=linearised)
    assert loss < 0.2 * problem.losses(start, short=True)[0]
    assert np.abs(unit - truth).max() < 0.015


def test_parameters_without_derivatives_are_named(problem):
    motions = problem.motions
    other = MotionProblem.of(motions, free_parameters(("friction", "tilt_x")), {}, threads=1)
    with pytest.raises(CaromError, match=r"no derivatives for tilt_x; it takes friction, .* Use --method cma"):
        mjx_fit(other)
