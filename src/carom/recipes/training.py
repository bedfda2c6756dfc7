"""`carom train`: a policy that strikes a block along segments or a route."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from carom.core.progress import Progress, silent
from carom.envs.batch import StrikeBatch, make_batch
from carom.envs.reach import check_reach
from carom.envs.routes import Route
from carom.envs.sides import said
from carom.envs.task import HALF_WIDTH
from carom.recipes.policies import APART, EngineOptions, TaskOptions, train_policy, training_engines
from carom.recipes.result import PrintedTable, Result, brief, command, table_of
from carom.recipes.result_page import REPORT, result_page
from carom.report.routes import trials_figure
from carom.train import Policy, Training, Trials, trials_of

__all__ = ["EngineOptions", "TaskOptions", "TrainResult", "Training", "train"]

OWN_TRIALS = 100  #: of a trained policy in its own simulator
GOOD = 0.8  #: success rate below which a policy should not leave its simulator


@final
@dataclass(frozen=True)
class TrainResult(Result):
    """A trained policy, the folder that holds it, and how it does where it was trained."""

    out: Path
    policy: Policy
    trials: Trials  #: of the task it was trained for, in the simulator it was trained in
    struck: str  #: which sides of the block, in words

    def to_dict(self) -> dict[str, Any]:
        facts = {"environment": self.policy.environment, "algorithm": self.policy.algorithm}
        success = self.trials.rates().success
        own = {
            "success_rate": success.value,
            "success_rate_interval": [success.low, success.high],
            "trials": len(self.trials.success),
            "left_zone": int(self.trials.left_zone.sum()),
            "mean_strikes": float(self.trials.strikes.mean()),
        }
        return {"policy": str(self.out), **facts, **self.policy.made_by, "struck": self.struck, "in_own_simulator": own}

    def tables(self) -> Sequence[PrintedTable]:
        hidden = ("settings", "scene")  # long
        return (table_of(f"policy in {self.out}", {k: v for k, v in self.to_dict().items() if k not in hidden}),)

    def notes(self) -> Sequence[str]:
        own = self.to_dict()["in_own_simulator"]
        rate, count = own["success_rate"], own["trials"]
        lines = [
            f"success in its own simulator: {rate:.2f} (95 % interval {brief(own['success_rate_interval'])}, {count} "
            f"trials, {own['mean_strikes']:.1f} strikes each; {own['left_zone']} left the zone)"
        ]
        if rate < GOOD:
            lines.append(
                f"warning: it succeeds in less than {GOOD:g} of the trials even where it was trained: do not use it; "
                "train for more --steps, with another --seed, or on another --length of segments"
            )
        return lines

    def next_commands(self) -> Sequence[str]:
        looks = command("view", self.out)
        return (command("rollout", self.out, "--on", "nylon-low", "--routes", 1, 2, 3), looks)


def train(
    out: str | Path,
    *,
    engine: EngineOptions | None = None,
    task: TaskOptions | None = None,
    training: Training | None = None,
    threads: int = 0,
    progress: Progress = silent,
) -> TrainResult:
    """Train a policy (section IV-C of CLASH) and save it into `out`; after a kill the same call goes on there.

    Then it is tried in the simulator it was trained in: what fails there will not do better on a table.
    """
    task, training = task or TaskOptions(), training or Training()
    starts = task.starts()
    engines, made_by = training_engines(engine or EngineOptions(), seed=training.seed, threads=threads)

    def batch(count: int) -> StrikeBatch:
        return make_batch(engines, starts, count=count, seed=APART * (training.seed + 1))

    first = batch(1)
    check_reach(first)
    policy = train_policy(Path(out), engines, task=task, training=training, progress=progress, made_by=made_by)
    trials = trials_of(policy, batch(OWN_TRIALS), Route("own", starts.points, length=starts.length))
    result = TrainResult(Path(out), policy, trials, said(first.sides))
    figure = trials_figure("Trials in its own simulator", starts.points, HALF_WIDTH, trials.path, trials.success)
    rates = trials.rates().success
    low, rate, high = (100 * v for v in (rates.low, rates.value, rates.high))
    short = (
        f"A policy ({policy.algorithm}) that strikes a block along segments. In its own simulator **{rate:.0f} %** of "
        f"{len(trials.success)} trials reach their goal (95 % interval {low:.0f} to {high:.0f} %).",
    )
    result_page(Path(out) / REPORT, result, title="A trained policy", short=short, figures=[figure])
    return result
