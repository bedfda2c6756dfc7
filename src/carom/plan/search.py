"""The strike that brings a target where it is wanted (CLASH, section IV-B): one loop for every method and engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Steps
from carom.engines.contract import Rollout, Simulator, Status
from carom.plan.differentiate import rest_and_derivative
from carom.plan.methods import FAILED, METHODS
from carom.plan.space import StrikeSpace
from carom.state import Array, StrikeCommands, wrap_angle

TAU = 0.01  #: [m^2/rad^2] weight of orientation against position in Eq. 5
FARTHEST = 100.0  #: [m]
HORIZON = 4.0  #: [s] within which a struck target comes to rest
BUDGET = {"cma": 1000, "cem": 1000, "gradient": 100}  #: evaluations


@dataclass(frozen=True)
class Plan:
    """A planned strike, and what is expected of it."""

    commands: StrikeCommands  #: one strike
    wanted: Array  #: [3] x, y, yaw of the target's frame [m, m, rad]; yaw NaN: any
    rest: Array  #: [3] where it is expected to come to rest
    rest_std: Array  #: [3] standard deviation of that over the model's uncertainty; NaN if it was not asked for
    loss: float  #: Eq. 5 [m^2] of the strike in the simulator; its mean over the draws of a robust plan
    evaluations: int  #: strikes tried; a robust plan simulates each once for every draw
    seconds: float
    history: tuple[tuple[int, float, float], ...]  #: (evaluations, best loss, seconds) after each generation
    tolerance: tuple[float, float]  #: [m], [rad]
    method: str

    @property
    def position_error(self) -> float:
        """Expected distance from the wanted position [m]."""
        return float(np.linalg.norm(self.rest[:2] - self.wanted[:2]))

    @property
    def yaw_error(self) -> float:
        """Expected turn away from the wanted yaw, in (-pi, pi] [rad]; zero where any will do."""
        return float(np.nan_to_num(wrap_angle(self.rest[2] - self.wanted[2])))

    @property
    def reachable(self) -> bool:
        """Whether one strike is expected to do it."""
        return self.position_error <= self.tolerance[0] and abs(self.yaw_error) <= self.tolerance[1]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, units in the names."""
        return {
            "reachable": self.reachable,
            "contact_point_target_frame_m": self.commands.contact_point[0].tolist(),
            "velocity_target_frame_m_s": self.commands.velocity[0].tolist(),
            "target_pose": self.commands.target_pose[0].tolist(),
            "wanted_pose": [float(v) if np.isfinite(v) else None for v in self.wanted],
            "expected_pose": self.rest.tolist(),
            "expected_pose_std": self.rest_std.tolist() if np.isfinite(self.rest_std).all() else None,
            "position_error_m": self.position_error,
            "yaw_error_rad": self.yaw_error,
            "loss_m2": self.loss,
            "method": self.method,
            "evaluations": self.evaluations,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Budget:
    """When to stop a search."""

    evaluations: int | None = None  #: None: the method's own number
    goal: float = -np.inf  #: loss [m^2] that is good enough


def plan_strike(
    simulators: Simulator | Sequence[Simulator],
    space: StrikeSpace,
    wanted: Array,
    *,
    method: str = "cma",
    budget: int | Budget | None = None,
    tolerance: tuple[float, float] = (0.01, 0.1),
    seed: int = 0,
    progress: Steps | None = None,
) -> Plan:
    """Search the strike that minimises Eq. 5; over several simulators (draws of an uncertain one) its mean.

    `wanted` is a pose [3], or a place [2] where any yaw will do.
    Stops after `budget` evaluations, or when the method has converged.
    """
    target = _checked(wanted, method, tolerance)
    engines = list(simulators) if isinstance(simulators, Sequence) else [simulators]
    until = budget if isinstance(budget, Budget) else Budget(budget)
    limit, started = BUDGET[method] if until.evaluations is None else until.evaluations, perf_counter()
    if limit < 1:
        raise CaromError(f"budget: expected 1 evaluation or more, got {limit}")
    search = METHODS[method](3, seed)
    best: tuple[float, Array] | None = None
    done, history = 0, []
    while done < limit:
        points = search.ask()[: limit - done]
        if not len(points):
            break
        loss, residual, derivative = _evaluate(engines, space, target, points, search.wants_derivatives)
        done += len(points)
        if done < limit:  # the last generation may be cut short, and nobody asks after it
            search.tell(points, loss, residual, derivative)
        top = int(np.argmin(loss))
        if best is None or loss[top] < best[0]:
            best = float(loss[top]), points[top]
        history.append((done, best[0], perf_counter() - started))
        if progress:
            progress(min(done, limit), limit)
        if best[0] <= until.goal:
            break
    if best is None or best[0] >= FAILED:
        raise CaromError("no strike within the bounds touches the target; widen the bounds or move the target")
    rest, spread, final = _expected(engines, space, best[1], target)
    seconds, commands = perf_counter() - started, space.commands(best[1][None])
    return Plan(commands, target, rest, spread, final, done, seconds, tuple(history), tolerance, method)


def _checked(wanted: Array, method: str, tolerance: tuple[float, float]) -> Array:
    """The wanted pose [3], if all of this can be asked for."""
    if method not in METHODS:
        raise CaromError(unknown_name("method", method, METHODS))
    target = np.asarray(wanted, dtype=np.float64)
    if target.shape == (2,):
        target = np.append(target, np.nan)
    if target.shape != (3,) or not np.isfinite(target[:2]).all() or np.isinf(target[2]):
        raise CaromError(f"target: expected three finite numbers, x y yaw [m, m, rad], or x y, got {wanted}")
    if np.abs(target[:2]).max() > FARTHEST:
        raise CaromError(f"target: x and y are in metres, got {target[0]:g} {target[1]:g}: that is beyond any table")
    if not (np.isfinite(tolerance).all() and min(tolerance) > 0):
        raise CaromError(f"tolerance: expected two positive numbers [m] [rad], got {tolerance[0]:g} {tolerance[1]:g}")
    return target


def _expected(
    engines: Sequence[Simulator], space: StrikeSpace, point: Array, target: Array
) -> tuple[Array, Array, float]:
    """Mean and spread [3] of the poses at rest, and Eq. 5, of one strike: as the engines have it, guards and all."""
    rests = np.array([_rollout(engine, space, point[None]).rest[0] for engine in engines])
    rest, spread = mean_and_spread(rests)
    return rest, spread, float((residuals(rests, target) ** 2).sum(axis=1).mean())


def mean_and_spread(rests: Array) -> tuple[Array, Array]:
    """Mean and standard deviation [3] of poses at rest [E, 3], turns counted the short way; NaN spread of one pose."""
    poses = np.column_stack([rests[:, :2], rests[0, 2] + wrap_angle(rests[:, 2] - rests[0, 2])])
    return poses.mean(axis=0), poses.std(axis=0, ddof=1) if len(rests) > 1 else np.full(3, np.nan)


def _rollout(engine: Simulator, space: StrikeSpace, points: Array) -> Rollout:
    return engine.rollout(space.initial(points), HORIZON)


def residuals(rest: Array, wanted: Array) -> Array:
    """What Eq. 5 sums the squares of [N, 3] [m]: position, and the wrapped angle times the root of tau.

    Where no yaw is wanted (NaN) the last is zero.
    """
    away = rest - wanted
    turn = wrap_angle(away[..., 2:]) if np.isfinite(wanted[2]) else np.zeros_like(away[..., 2:])
    return np.concatenate([away[..., :2], np.sqrt(TAU) * turn], axis=-1)


def _evaluate(
    engines: Sequence[Simulator], space: StrikeSpace, wanted: Array, points: Array, derivatives: bool
) -> tuple[Array, Array, Array | None]:
    """Losses [M], residuals [M, 3E] over the root of E, their derivatives [M, 3E, 3]; failures get a large loss."""
    parts: list[Array] = []
    slopes: list[Array] = []
    failed = np.zeros(len(points), dtype=bool)
    for engine in engines:
        if derivatives:
            rest, slope = rest_and_derivative(engine, space, points)
            slopes.append(slope * np.array([1.0, 1.0, np.sqrt(TAU) * np.isfinite(wanted[2])])[None, :, None])
        else:
            run = _rollout(engine, space, points)
            rest = run.rest
            failed |= (run.status == Status.FAILED) | (run.status == Status.MISSED) | ~np.isfinite(rest).all(axis=1)
        parts.append(residuals(rest, wanted))
    residual = np.concatenate(parts, axis=1) / np.sqrt(len(engines))
    loss = np.where(failed, FAILED, (residual**2).sum(axis=1))
    together = np.concatenate(slopes, axis=1) / np.sqrt(len(engines)) if derivatives else None
    return np.nan_to_num(loss, nan=FAILED), residual, together
