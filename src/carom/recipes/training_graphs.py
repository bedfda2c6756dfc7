"""`carom train-graph`: a differentiable simulator of contact, learned from trajectories that `carom scale` made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.progress import Progress, silent
from carom.learn import graph
from carom.recipes.result import PrintedTable, Result, brief, command


@final
@dataclass(frozen=True)
class TrainGraphResult(Result):
    """A trained graph simulator, and the folder that holds it."""

    out: Path
    made: graph.GraphTraining

    def to_dict(self) -> dict[str, Any]:
        model = self.made.model
        return {
            "model": str(self.out),
            "trajectories": self.made.trajectories,
            "seconds": self.made.seconds,
            "step_s": model.step,
            "held_out": dict(model.held_out),
            "trained_within": {name: list(bounds) for name, bounds in model.ranges.items()},
            "curve": [list(row) for row in self.made.curve],
        }

    def tables(self) -> Sequence[PrintedTable]:
        model = self.made.model
        held = model.held_out
        facts: dict[str, Any] = {
            "trajectories": self.made.trajectories,
            "seconds to train": self.made.seconds,
            "time step [ms]": 1e3 * model.step,
            "held-out rollouts: distance over a body's reach [%]": 100 * held["place"],
            "held-out rollouts: angle [deg]": float(np.degrees(held["angle"])),
        }
        facts |= {f"trained with {name}": list(bounds) for name, bounds in model.ranges.items()}
        rows = [[name, brief(value)] for name, value in facts.items()]
        return (PrintedTable(f"graph simulator in {self.out}", ("what", "value"), rows),)

    def next_commands(self) -> Sequence[str]:
        return (command("identify", "RECORDINGS", "--fit", 3, "--graph", self.out),)

    def notes(self) -> Sequence[str]:
        return (f"in Python: carom.learn.graph.GraphEngine(carom.learn.graph.load_graph({str(self.out)!r}), scene)",)


def train_graph(
    data: Sequence[str | Path],
    out: str | Path,
    *,
    preset: str = "default",
    updates: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> TrainGraphResult:
    """Train the graph simulator on folders that `carom scale` wrote; after a kill the same call goes on.

    `updates` is how often the weights are changed; None: as many as the tables of the documentation were made with.
    The `preset` is `default`, or `paper` for the few-shot paper's own network.
    """
    recipe = graph.Recipe.of(updates, preset)
    made = graph.train_graph(data, out, recipe=recipe, preset=preset, seed=seed, progress=progress)
    return TrainGraphResult(Path(out), made)
