"""Sensitivities of short motions around a point, and Gauss-Newton steps with them."""

from __future__ import annotations

import numpy as np

from carom.identify import trust
from carom.identify.motion_problem import MotionProblem
from carom.state import Array

NEAR = 5  #: points per parameter through which a plane is laid
REACHES = (0.05, 0.04, 0.03, 0.02, 0.015, 0.01)  #: half widths of the neighbourhoods, in unit space, step by step
SHARES = (1.0, 0.5, 0.25)  #: of a step that are tried


def fit_around(problem: MotionProblem, unit: Array, reach: float, seed: int) -> trust.Fit:
    """Residuals of the first moments and their sensitivities at a point [A], from a plane through many points near it.

    Contacts make residuals rugged: differences of two points would show the ruggedness. And of the first moments
    only: after a few bounces no plane could show how outcomes depend on parameters.
    """
    count = len(unit)
    offset = np.random.default_rng(seed).uniform(-reach, reach, (NEAR * count + 1, count))
    offset[0] = 0.0
    points = np.clip(unit + offset, 0.0, 1.0)
    residual = problem.residuals(points, short=True)
    design = np.concatenate([np.ones((len(points), 1)), points - unit], axis=1)
    ridge = 0.04 * reach**2
    inverse = np.linalg.inv(design.T @ design + np.diag([0.0, *([ridge] * count)]))
    flat = residual.reshape(len(points), -1)
    plane = inverse @ design.T @ flat
    variance = float(((flat - design @ plane) ** 2).sum()) / max(len(points) - count - 1, 1) / flat.shape[1]
    jacobian = np.moveaxis(plane[1:].reshape(count, *residual.shape[1:]), 0, -1)
    doubt = variance * inverse[1:, 1:]
    return trust.Fit(unit, plane[0].reshape(residual.shape[1:]), jacobian, doubt, np.zeros((0, count)), np.zeros(0))


def polished(
    problem: MotionProblem, unit: Array, seed: int, sides: Array | None = None
) -> tuple[float, Array, MotionProblem, Array | None]:  # fmt: skip
    """Gauss-Newton steps from a point, kept where short motions fit better; loss, point, and the sides after it.

    Where the simulator can explain the recordings, this finds what a search would need hundreds of generations for.
    """
    here = problem if sides is None else problem.with_sides(sides)
    best = float(here.losses(unit, short=True)[0])
    for turn, reach in enumerate(REACHES):
        step = trust.newton_step(fit_around(here, unit, reach, seed + turn), most=2 * reach)
        points = np.clip(unit + np.multiply.outer(SHARES, step), 0.0, 1.0)
        losses = here.losses(points, short=True)
        if losses.min() < best:
            unit, best = points[int(np.argmin(losses))], float(losses.min())
        if sides is not None:
            again, errors = problem.best_sides(unit)
            if (again != sides).any():
                sides, best = again, float(errors.min(axis=0).mean())
                here = problem.with_sides(sides)
    return best, unit, here, sides
