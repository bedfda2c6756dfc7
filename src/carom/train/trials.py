"""Trials of a policy along a route, and their rates with intervals (the paper's SR and SGCR)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from carom.core.errors import CaromError
from carom.envs.batch import Strike, StrikeBatch
from carom.envs.routes import Route
from carom.envs.starts import RouteStarts
from carom.envs.task import STRIKES, strikes_of
from carom.scenes.strike import StrikeScene
from carom.state import Array
from carom.train.policy import Policy

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """A share of trials or segments, and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Rates:
    """What trials come to."""

    success: Rate  #: SR: trials that reached the last sub-goal
    subgoals: Rate  #: SGCR: sub-goals reached, of all


@dataclass(frozen=True)
class Trials:
    """N trials along one route, each to its end."""

    route: Route
    success: NDArray[np.bool_]  #: [N] the last sub-goal was reached
    completed: NDArray[np.int64]  #: [N] sub-goals reached
    strikes: NDArray[np.int64]  #: [N] in the whole trial
    left_zone: NDArray[np.bool_]  #: [N] ended because the block left the safe zone
    path: Array  #: [N, S+1, 3] x, y, yaw of the target's frame at each rest [m, m, rad], start first; NaN after the end

    def rates(self) -> Rates:
        """SR and SGCR with intervals; trials are the units, as segments of one trial depend on each other."""
        shares = self.completed / self.route.segments
        return Rates(rate_of(self.success, self.distinct), rate_of(shares, self.distinct))

    @property
    def distinct(self) -> int:
        """How many trials went differently: from one start, an engine without noise repeats one trial N times."""
        return len(np.unique(np.nan_to_num(self.path).reshape(len(self.path), -1), axis=0))


def rate_of(shares: NDArray[np.generic], distinct: int | None = None) -> Rate:
    """Mean of one share in [0, 1] for each trial, with its 95 % interval.

    Wilson's interval, for as many yes-or-no trials as would spread alike: of plain successes it is Wilson's own, and it
    keeps its width where all trials agree. Of trials that repeat each other only the `distinct` ones count for it.

    >>> rate_of(np.array([1.0] * 10)).low.__round__(3)
    0.722
    """
    each = np.asarray(shares, dtype=np.float64)
    if each.ndim != 1 or not len(each):
        raise CaromError(f"expected the shares of one trial or more, got shape {each.shape}")
    p, n = float(each.mean()), float(distinct or len(each))
    spread = float(each.var())
    if spread > 1e-12:  # less is rounding
        n *= p * (1 - p) / spread
    z = float(norm.ppf((1 + CONFIDENCE) / 2))
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return Rate(p, max(0.0, min(p, float(middle - half))), min(1.0, max(p, float(middle + half))))


def run_trials(
    policy: Policy,
    strike: Strike | Sequence[Strike],
    scene: StrikeScene,
    route: Route,
    *,
    trials: int = 100,
    seed: int = 0,
) -> Trials:
    """Let a policy strike along a route, all trials in lock step; trial i starts as seed + i says.

    Refuses a scene in which its actions would mean other strikes, or another block, than it was trained with.
    """
    if trials < 1:
        raise CaromError(f"trials: expected 1 or more, got {trials}")
    _check_strikes(policy, scene)
    return trials_of(policy, StrikeBatch(strike, scene, starts=RouteStarts(route), count=trials, seed=seed), route)


def trials_of(policy: Policy, batch: StrikeBatch, route: Route) -> Trials:
    """Let a policy strike the blocks of a fresh batch, whose segments are those of the route, each to its end."""
    path = [batch.target_pose]
    strikes = np.zeros(batch.count, dtype=np.int64)
    left = np.zeros(batch.count, dtype=bool)
    for _ in range(STRIKES * route.segments):
        active = ~batch.ended
        if not active.any():
            break
        outcome = batch.step(policy.act(batch.observe()), active)
        strikes += active
        left |= outcome.left_zone
        path.append(np.where(active[:, None], batch.target_pose, np.nan))
    return Trials(route, batch.stage == route.segments, batch.stage.copy(), strikes, left, np.stack(path, axis=1))


def _check_strikes(policy: Policy, scene: StrikeScene) -> None:
    learned, here = policy.made_by.get("strikes_mean"), strikes_of(scene)
    for key, value in here.items():
        if isinstance(learned, Mapping) and learned.get(key) != value:
            raise CaromError(
                f"the policy was trained with {key} {learned.get(key)}, this reality has {value}: train one for it"
            )
