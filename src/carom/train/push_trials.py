"""Trials of a policy of pushes in whatever pushes: how often it succeeds, and how near it comes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.envs.pushing import PushingBatch, PushingTask
from carom.envs.pushing.batch import SEEN, Draws, Pushes
from carom.envs.pushing.files import fingerprint_of
from carom.state import Array
from carom.train.policy import Policy
from carom.train.trials import Rate, rate_of


@dataclass(frozen=True)
class PushTrials:
    """N pushes, each to the end of its episode."""

    success: NDArray[np.bool_]  #: [N] at the end the block is where it should be, and nothing has left before
    away: Array  #: [N] of the block from its goal at the end [m]
    turned: Array  #: [N] the turn that is missing then [rad]
    outside: NDArray[np.bool_]  #: [N] block or tool has left, or the block has tipped over; not seen on a robot
    reached: NDArray[np.bool_]  #: [N] at some time the block was where it should be

    def rate(self) -> Rate:
        """Share of successes with its 95 % interval."""
        return rate_of(self.success)


def check_task(policy: Policy, task: PushingTask) -> None:
    """Refuse a task in which a policy's actions would mean other pushes than it was trained with."""
    learned, here = policy.made_by.get("pushing"), fingerprint_of(task)
    if not isinstance(learned, dict):
        raise CaromError(f"expected a policy of pushes, got one for {policy.environment or 'another task'}")
    other = sorted(key for key in here if learned.get(key) != here[key])
    if other or policy.sizes[0] != task.observed:
        key = other[0] if other else "observation"
        was, now = learned.get(key, policy.sizes[0]), here.get(key, task.observed)
        raise CaromError(f"the policy was trained with {key} {was}, here it is {now}: train one for this task")


def try_in_simulator(
    policy: Policy, task: PushingTask, simulator: Pushes, *, trials: int = 100, draws: Draws = (), seed: int = 0
) -> PushTrials:
    """Let a policy push in a simulator, all trials in lock step."""
    check_task(policy, task)
    batch = PushingBatch(task, simulator, count=trials, draws=draws, seed=seed)
    seen, outside, reached = batch.observe(), np.zeros(trials, dtype=bool), np.zeros(trials, dtype=bool)
    for _ in range(task.steps):
        outcome = batch.step(policy.act(seen))
        seen, outside = outcome.observation, outside | outcome.outside
        reached |= outcome.success & ~outside
    away, turned = task.errors(batch.state, batch.goals)
    return PushTrials(outcome.success & ~outside, away, turned, outside, reached)


def still_policy(task: PushingTask) -> Policy:
    """A robot that does nothing, to compare with."""
    ends, one = np.full(task.observed, SEEN, dtype=np.float32), np.ones(task.acts, dtype=np.float32)
    return Policy(
        "ppo",
        "",
        "tanh",
        False,
        (np.zeros((task.acts, task.observed), dtype=np.float32),),
        (0 * one,),
        -ends,
        ends,
        -one,
        one,
        made_by={"pushing": fingerprint_of(task)},
    )
