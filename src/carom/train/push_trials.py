"""Trials of a policy of pushes: in whatever pushes, and on a robot or a stand-in; how often and how near."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.envs.pushing import PushingBatch, PushingTask
from carom.envs.pushing.batch import SEEN, Draws, Pushes
from carom.envs.pushing.files import fingerprint_of
from carom.envs.pushing.task import half_angle
from carom.reality.push_contract import PushReality, PushTasks
from carom.recordings import read
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


def try_in_reality(
    policy: Policy, task: PushingTask, reality: PushReality, folder: Path, *, trials: int = 20, seed: int = 0
) -> PushTrials:
    """Let a policy push on a robot or a stand-in, which records into `folder`; the ends are read off the recordings."""
    check_task(policy, task)
    start, goals = task.sample(trials, np.random.default_rng([seed, 1]))
    yaw = 2 * np.arctan2(goals.quaternion[:, 3], goals.quaternion[:, 0])
    tasks = PushTasks(start, np.column_stack([goals.position[:, :2], yaw]), task.steps)
    recorded = read(reality.deploy(task.controller(policy.act, goals), tasks, folder, seed=seed)).trajectories
    if len(recorded) != trials:
        raise CaromError(f"{folder}: expected a recording of each of {trials} pushes, got {len(recorded)}")
    place, turn, reached = np.full((trials, 2), np.nan), np.full((trials, 4), np.nan), np.zeros(trials, dtype=bool)
    for row, trajectory in enumerate(recorded):
        block = trajectory.targets[0]
        angle, position = trajectory.yaw(block), trajectory.position_world[block][:, :2]
        seen = np.isfinite(position).all(axis=1) & np.isfinite(angle)
        if seen.any():
            way, turns = np.hypot(*(position[seen] - goals.position[row, :2]).T), about_z(angle[seen])
            place[row], turn[row] = position[seen][-1], turns[-1]
            reached[row] = task.near(way, 2 * half_angle(turns, goals.quaternion[[row]])).any()
    away = np.hypot(*(place - goals.position[:, :2]).T)
    turned = 2 * half_angle(turn, goals.quaternion)
    return PushTrials(task.near(away, turned), away, turned, np.zeros(trials, dtype=bool), reached)
