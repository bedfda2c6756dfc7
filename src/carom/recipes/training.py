"""`carom train`: a policy that strikes a block along segments or a route."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from carom.core.progress import Progress, silent
from carom.recipes.policies import EngineOptions, TaskOptions, train_policy, training_engines
from carom.recipes.result import PrintedTable, Result, command, table_of
from carom.train import Policy, Training

__all__ = ["EngineOptions", "TaskOptions", "TrainResult", "Training", "train"]


@final
@dataclass(frozen=True)
class TrainResult(Result):
    """A trained policy, and the folder that holds it."""

    out: Path
    policy: Policy

    def to_dict(self) -> dict[str, Any]:
        facts = {"environment": self.policy.environment, "algorithm": self.policy.algorithm}
        return {"policy": str(self.out), **facts, **self.policy.made_by}

    def tables(self) -> Sequence[PrintedTable]:
        shown = {k: v for k, v in self.to_dict().items() if k != "settings"}
        return (table_of(f"policy in {self.out}", shown),)

    def next_commands(self) -> Sequence[str]:
        """On what it was trained in: the stand-ins have a block of one shape only."""
        on = self.policy.made_by.get("folder") or "nylon-low"
        return (command("rollout", self.out, "--on", on, "--routes", 1, 2, 3),)


def train(
    out: str | Path,
    *,
    engine: EngineOptions | None = None,
    task: TaskOptions | None = None,
    training: Training | None = None,
    threads: int = 0,
    progress: Progress = silent,
) -> TrainResult:
    """Train a policy (section IV-C of CLASH) and save it into `out`; after a kill the same call goes on there."""
    training = training or Training()
    engines, made_by = training_engines(engine or EngineOptions(), seed=training.seed, threads=threads)
    policy = train_policy(Path(out), engines, task=task, training=training, progress=progress, made_by=made_by)
    return TrainResult(Path(out), policy)
