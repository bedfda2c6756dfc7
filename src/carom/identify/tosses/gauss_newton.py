"""Sensitivities of short motions around a point, and Gauss-Newton steps with them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from carom.identify import trust
from carom.identify.planes import NEAR, fit_through, plane_through, tried_along
from carom.identify.tosses.problem import MotionProblem
from carom.identify.tosses.simulate import Starts
from carom.recordings.starts import SPIN_STD, VELOCITY_STD
from carom.state import Array

REACHES = (0.05, 0.04, 0.03, 0.02, 0.015, 0.01)  #: half widths of the neighbourhoods, in unit space, step by step


class End(NamedTuple):
    """Where a search on short motions ended."""

    loss: float
    unit: Array  #: [A]
    problem: MotionProblem  #: with its sides
    sides: Array | None  #: [N] index into `SIDES`; None: the mass is not looked for


def fit_around(problem: MotionProblem, unit: Array, reach: float, seed: int) -> trust.Fit:
    """Residuals of the first moments and their sensitivities at a point [A], from a plane through many points near it.

    Contacts make residuals rugged: differences of two points would show the ruggedness. And of the first moments
    only: after a few bounces no plane could show how outcomes depend on parameters.
    """
    return fit_through(lambda points: problem.residuals(points, short=True), unit, reach, seed)


def polished(problem: MotionProblem, unit: Array, seed: int, sides: Array | None = None) -> End:
    """Gauss-Newton steps from a point, kept where short motions fit better.

    Where the simulator can explain the recordings, this finds what a search would need hundreds of generations for.
    """
    here = problem if sides is None else problem.with_sides(sides)
    best = float(here.losses(unit, short=True)[0])
    for turn, reach in enumerate(REACHES):
        points = tried_along(fit_around(here, unit, reach, seed + turn), reach)
        losses = here.losses(points, short=True)
        if losses.min() < best:
            unit, best = points[int(np.argmin(losses))], float(losses.min())
        if sides is not None:
            again, errors = problem.best_sides(unit)
            if (again != sides).any():
                sides, best = again, float(errors.min(axis=0).mean())
                here = problem.with_sides(sides)
    return End(best, unit, here, sides)


def with_refined_starts(problem: MotionProblem, unit: Array, seed: int) -> MotionProblem:
    """The problem with the velocities at every start as nuisance parameters, fitted to the first moments.

    They stay near what the flight says (`VELOCITY_STD`, `SPIN_STD`), the nearer the worse the simulator explains the
    recordings: then it is more likely to be the simulator that errs. A start is kept where nothing is gained.
    """
    starts, count = problem.motions.starts, len(problem.motions)
    shape = (count, len(problem.scene.bodies), 6)
    std = np.repeat([VELOCITY_STD, SPIN_STD], 3)
    width = shape[1] * 6
    many = NEAR * width + 1
    offset = np.random.default_rng(seed).uniform(-1.0, 1.0, (many, *shape))
    offset[0] = 0.0
    tried = starts[np.tile(np.arange(count), many)]
    residual = problem.residuals_of(problem.simulate_from(_moved(tried, (offset * std).reshape(-1, *shape[1:])), unit))
    variance = max(float((residual[0] ** 2).mean()), 1e-12)
    found = np.zeros(shape)
    for n in range(count):
        plane, _, scatter = plane_through(offset[:, n].reshape(many, width), residual[:, n], 0.04)
        noise = variance + scatter
        gram = plane[1:] @ plane[1:].T / noise + np.eye(width)
        found[n] = -np.linalg.solve(gram, plane[1:] @ plane[0] / noise).reshape(shape[1:])
    twice = starts[np.tile(np.arange(count), 2)]
    both = problem.simulate_from(_moved(twice, np.concatenate([0 * found, found * std])), unit)
    before, after = problem.errors(both)
    moved = _moved(starts, np.where((after < before)[:, None, None], found * std, 0.0))
    return replace(problem, motions=replace(problem.motions, starts=moved))


def _moved(starts: Starts, by: Array) -> Starts:
    """Starts with their velocities and spins changed by [N, B, 6]."""
    return replace(starts, velocity=starts.velocity + by[..., :3], spin=starts.spin + by[..., 3:])
