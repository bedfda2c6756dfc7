"""`carom rollout` of a policy of pushes: tried in its simulator, on a stand-in or on a robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress, silent
from carom.core.rotations import about_z
from carom.engines.pushing import push_simulator
from carom.envs.pushing import PushingBatch, PushingTask
from carom.envs.pushing.batch import SEEN
from carom.envs.pushing.files import load_task
from carom.envs.pushing.render import frame
from carom.envs.pushing.task import half_angle
from carom.envs.render import animation as write_animation
from carom.reality import PUSH_SETTINGS, PushReality, PushTasks, push_standin
from carom.recipes.realities import own_push_reality
from carom.recipes.result import PrintedTable, Result, brief, command
from carom.recipes.result_page import WHY, result_page, steps_of
from carom.recordings import read
from carom.report import Step
from carom.report.routes import ends_figure
from carom.scenes.pushing import OWN
from carom.train.policy import Policy, load_policy
from carom.train.push_trials import PushTrials, check_task, try_in_simulator
from carom.train.pushing import ENVIRONMENT

SIMULATOR = "simulator"  #: as `--on`: MuJoCo, with the parameters that the policy was trained with
BLOCK = 1  #: seed of a stand-in: to which side its mass is off, and the like
MOST_TRIALS = 10_000
SHOWN, EVERY = 3, 3  #: pushes in an animation, and periods from frame to frame
COLUMNS = ("success", "95 % interval", "median distance", "median turn missing")  # the last: where a turn is asked for
FIGURES = ("success: the block ends within 2 cm of its goal", "success: it ends within 3 cm and 15 degrees of its goal")


@final
@dataclass(frozen=True)
class RolloutPushesResult(Result):
    """Trials of a policy of pushes, and an animation of a few in MuJoCo."""

    policy: Path
    on: str
    trials: PushTrials
    turns: bool  #: whether a turn is asked for
    recordings: Path | None
    animation: Path

    def to_dict(self) -> dict[str, Any]:
        rate = self.trials.rate()
        return {
            "policy": str(self.policy),
            "on": self.on,
            "trials": len(self.trials.success),
            "success_rate": rate.value,
            "success_rate_interval": [rate.low, rate.high],
            "distance_m": self.trials.away.tolist(),
            "turn_rad": self.trials.turned.tolist(),
            "recordings": None if self.recordings is None else str(self.recordings),
        }

    def tables(self) -> Sequence[PrintedTable]:
        facts, away, turned = self.to_dict(), np.nanmedian(self.trials.away), np.nanmedian(self.trials.turned)
        row = [
            f"{facts['success_rate']:.3g}",
            brief(facts["success_rate_interval"]),
            f"{1000 * away:.1f} mm",
            f"{np.degrees(turned):.1f} degrees",
        ]
        title = f"{self.policy} on {self.on}, {facts['trials']} trials"
        shown = len(COLUMNS) if self.turns else len(COLUMNS) - 1
        return (PrintedTable(title, COLUMNS[:shown], [row[:shown]], (FIGURES[self.turns],)),)

    def notes(self) -> Sequence[str]:
        recorded = () if self.recordings is None else (f"recordings: {self.recordings}",)
        return (*recorded, f"animation, in MuJoCo: {self.animation}")

    def next_commands(self) -> Sequence[str]:
        return () if self.recordings is None else (command("check", self.recordings),)


def is_policy_of_pushes(folder: str | Path) -> bool:
    """Whether a folder holds a policy that `carom train --scene` made."""
    return load_policy(folder).environment == ENVIRONMENT


def rollout_pushes(
    policy: str | Path,
    *,
    on: str = SIMULATOR,
    scene: str | Path | None = None,
    trials: int = 100,
    animation: str | Path | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> RolloutPushesResult:
    """Try a policy of pushes: success rate with a 95 % interval, and how near blocks end.

    `on` is `simulator`, a stand-in (`laminate`, ...), or a `PushReality` of one's own (`module:Class`); these two
    record into `POLICY/trials-001` and so on. `scene` is the task file, if the policy's scene is not a built-in one.
    """
    folder = Path(policy)
    picture = folder / "trials.gif" if animation is None else Path(animation)
    if picture.suffix.lower() != ".gif":
        raise CaromError(f"--animation {picture}: expected a name that ends in .gif")
    if not 1 <= trials <= MOST_TRIALS:
        raise CaromError(f"trials: expected 1 to {MOST_TRIALS}, got {trials}")
    saved = load_policy(folder)
    task = task_of(saved, scene)
    check_task(saved, task)
    recordings = None
    if on == SIMULATOR:
        known = saved.made_by.get("draws")
        draws = known if isinstance(known, list) else []  # as it was trained; of many draws only a checksum is kept
        simulator = push_simulator(task.scene, tuple(draws[0]) if draws else (), threads=1)
        found = try_in_simulator(saved, task, simulator, trials=trials, draws=draws, seed=seed)
    else:
        if ":" not in on and on not in PUSH_SETTINGS:
            known = unknown_name("reality of pushes", on, (SIMULATOR, *PUSH_SETTINGS))
            raise CaromError(f"--on: {known}; or give a PushReality of your own (module:Class)")
        reality = own_push_reality(on) if ":" in on else push_standin(on, task.scene, seed=BLOCK)
        recordings = next(p for n in count(1) if not (p := folder / f"trials-{n:03d}").exists())
        found = try_in_reality(saved, task, reality, recordings, trials=trials, seed=seed)
    progress("trials", 1, 2)
    _animate(saved, task, picture, seed)
    progress("trials", 2, 2)
    result = RolloutPushesResult(folder, on, found, task.turns, recordings, picture)
    _page(picture.with_suffix(".html"), result)
    return result


def _page(path: Path, result: RolloutPushesResult) -> None:
    """The trials' page, beside their animation."""
    trials, rate = result.trials, result.trials.rate()
    stood = " This is a stand-in, not a robot." if result.on in PUSH_SETTINGS else ""
    short = (f"**{100 * rate.value:.0f} %** of {len(trials.success)} trials on {result.on} succeed.{stood}",)
    steps = [*steps_of(result.next_commands()), Step(WHY["view"], command("view", result.policy))]
    figure = ends_figure("Ends of the trials", trials.away, trials.turned, trials.success)
    subtitle = f"{result.policy} on {result.on}"
    result_page(
        path,
        result,
        title="Trials of a policy of pushes",
        subtitle=subtitle,
        short=short,
        figures=[figure],
        steps=steps,
    )


def try_in_reality(
    policy: Policy, task: PushingTask, reality: PushReality, folder: Path, *, trials: int = 20, seed: int = 0
) -> PushTrials:
    """Let a policy push on a robot or a stand-in, which records into `folder`; the ends are read off the recordings."""
    check_task(policy, task)
    start, goals = task.sample(trials, np.random.default_rng([seed, 1]))
    yaw = 2 * np.arctan2(goals.quaternion[:, 3], goals.quaternion[:, 0])
    tasks = PushTasks(start, np.column_stack([goals.position[:, :2], yaw]), task.steps)
    controller = task.controller(lambda seen: policy.act(np.clip(np.nan_to_num(seen), -SEEN, SEEN)), goals)
    recorded = read(reality.deploy(controller, tasks, folder, seed=seed)).trajectories
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


def task_of(policy: Policy, scene: str | Path | None = None) -> PushingTask:
    """The task that a policy of pushes was trained for; `scene` is its file, if it was not built in."""
    kept = policy.made_by.get("pushing")
    if not isinstance(kept, dict) or "scene" not in kept:
        raise CaromError(f"expected a policy of pushes, got one for {policy.environment or 'another task'}")
    if scene is not None:
        return load_task(scene)
    if kept.get("roles") is not None or kept["scene"] not in OWN:
        raise CaromError(
            f"the policy was trained in a scene of your own ('{kept['scene']}'): give its file with --scene"
        )
    return load_task(str(kept["scene"]))


def _animate(policy: Policy, task: PushingTask, path: Path, seed: int) -> None:
    """An animation (GIF) of a few pushes, one after the other, in MuJoCo as the scene has it."""
    frames = []
    for number in range(SHOWN):
        batch = PushingBatch(task, push_simulator(task.scene, threads=1), count=1, seed=seed + number)
        seen, trail = batch.observe(), [batch.state.position[0, 0, :2]]
        for step in range(task.steps):
            outcome = batch.step(policy.act(seen))
            seen = outcome.observation
            trail.append(batch.state.position[0, 0, :2])
            if step % EVERY == 0 or outcome.truncated[0]:
                frames.append(frame(batch, np.array(trail)))
            if outcome.outside[0]:
                break
    path.parent.mkdir(parents=True, exist_ok=True)
    write_animation(frames, path, seconds=0.15)
