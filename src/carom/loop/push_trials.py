"""What a policy of pushes is worth in reality: trials, and one start and goal repeated in every round (Table I)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from carom.core.rotations import yaw
from carom.engines.pushing import PERIOD
from carom.envs.pushing import Goals, PushingTask
from carom.loop.push_data import PushModel
from carom.reality.push_contract import PushTasks
from carom.reality.push_standin import PushStandIn
from carom.recordings import Recordings
from carom.state import Array, SceneState, wrap_angle
from carom.train.policy import Policy

MOTIONS = "motions.json"  #: in a deployment: the one start and goal, for figures
REPEATS = 5  #: of the one start and goal
SEEN = 20.0  #: greatest number in an observation, in its units
OWN = 7  #: of the random numbers that draw the one start and goal, the same in every round and for every method


def controller(task: PushingTask, policy: Policy, goals: Goals) -> Callable[[SceneState], Array]:
    """What a reality is given: numbers that a sensor lost do not reach the policy."""
    return task.controller(lambda seen: policy.act(np.clip(np.nan_to_num(seen), -SEEN, SEEN)), goals)


def pose_of(goals: Goals) -> Array:
    """Goals from above [N, 3]: x, y, yaw."""
    return np.column_stack([goals.position[:, :2], yaw(goals.quaternion)])


def outcomes(task: PushingTask, ends: Array, goals: Goals) -> list[dict[str, float]]:
    """How far blocks ended [N, 3] from their goals, and whether that counts as done."""
    joints = np.tile(task.scene.home(1).joint_position, (len(ends), 1))
    state = task.scene.placed(np.nan_to_num(ends, nan=1e3), joints)
    away, turned = task.errors(state, goals)
    done = task.success(state, goals)
    return [
        {"position_error_m": float(a), "yaw_error_rad": float(t), "success": float(d)}
        for a, t, d in zip(away, turned, done, strict=True)
    ]


def success_of(task: PushingTask, recorded: Recordings, goals: Goals) -> list[dict[str, float]]:
    """The outcomes of recorded pushes, by the last pose that was seen of each."""
    ends = []
    for t in recorded.trajectories[: len(goals)]:
        target = t.targets[0]
        path = np.column_stack([t.position_world[target][:, :2], t.yaw(target)])
        seen = path[np.isfinite(path).all(axis=1)]
        ends.append(seen[-1] if len(seen) else np.full(3, np.nan))
    return outcomes(task, np.array(ends), goals[slice(len(ends))])


@final
@dataclass(frozen=True)
class Trials:
    """Trials of a policy on a stand-in. They cost nothing there, and no one learns from them."""

    task: PushingTask
    lab: PushStandIn
    policy: Policy
    seed: int

    def many(self, count: int, number: int) -> list[dict[str, float]]:
        """Outcomes of trials, with other starts and goals in every round, the same ones for every method."""
        start, goals = self.task.sample(count, np.random.default_rng([self.seed, number, 905]))
        tasks = PushTasks(start, pose_of(goals), self.task.steps)
        poses = self.lab.watch(controller(self.task, self.policy, goals), tasks, seed=self.seed + 31 * number + 1)
        return outcomes(self.task, poses[:, -1], goals)

    def repeated(self, model: PushModel) -> tuple[dict[str, Any], dict[str, float]]:
        """One start and goal, several times: motions for figures, and the KL in x and y (Table I) [nats].

        Real places at an instant scatter about their mean; the simulated place is another mean with the same scatter.
        So the KL is half the squared distance of the means in units of the scatter, here in the mean over the instants.
        """
        start, goals = self.task.sample(1, np.random.default_rng([self.seed, OWN]))
        rows = np.zeros(REPEATS, dtype=np.int64)
        starts, several = start[rows], goals[rows]
        tasks = PushTasks(starts, pose_of(several), self.task.steps)
        act = controller(self.task, self.policy, several)
        real = self.lab.watch(act, tasks, seed=self.seed + 17)
        one = controller(self.task, self.policy, goals)
        said = [model.drive(start, one, self.task.steps)[0]]
        said += [model.drive(start, one, self.task.steps, draw=d)[0] for d in range(len(model.draws))]
        scatter = np.maximum(real[..., :2].std(axis=0), self.lab.mocap.position_noise)
        off = np.nan_to_num(said[0][:, :2] - real[..., :2].mean(axis=0), nan=1.0) / scatter
        kl = 0.5 * (off**2).mean(axis=0)
        away = np.linalg.norm(said[0][None, :, :2] - real[..., :2], axis=-1).mean(axis=0)
        motions = {
            "time_s": (PERIOD * np.arange(self.task.steps + 1)).tolist(),
            "real_m_rad": np.round(real, 6).tolist(),
            "simulated_m_rad": np.round(said[0], 6).tolist(),
            "draws_m_rad": np.round(np.array(said[1:]), 6).tolist(),
            "error_m": np.round(away, 6).tolist(),
            "goal_m_rad": pose_of(goals)[0].tolist(),
        }
        turn = wrap_angle(said[0][:, 2] - real[..., 2]).mean()
        return motions, {"kl_x": float(kl[0]), "kl_y": float(kl[1]), "turn_off_rad": float(turn)}
