"""`carom distill`: a simulator's contact response as base models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from carom.core.progress import Progress, silent
from carom.learn import distill as distill_scene
from carom.learn.impact.distill import Distilled, DistillOptions
from carom.recipes.result import PrintedTable, Result, command
from carom.recipes.strikes import any_scene
from carom.recordings.formats.header import HEADER_NAME

__all__ = ["DistillOptions", "DistillResult", "distill"]

#: what the printed table calls the facts of a base model
MEANING = {
    "impacts": "simulated impacts",
    "impacts_per_second": "impacts simulated per second",
    "engine_share": "share of that time in the engine",
    "simulate_seconds": "seconds to simulate",
    "train_seconds": "seconds to train",
    "held_out_accuracy@0.1": "unseen impacts within 10 % (share)",
    "held_out_accuracy@0.05": "unseen impacts within 5 % (share)",
    "held_out_median-relative-error": "median error on unseen impacts (relative)",
    "held_out_impacts": "unseen impacts",
}


@final
@dataclass(frozen=True)
class DistillResult(Result):
    """Base models, and the folder that holds them."""

    out: Path
    made: Distilled
    scene: str = ""  #: what was distilled

    def to_dict(self) -> dict[str, Any]:
        return {"model": str(self.out), "bases": self.made.facts}

    def tables(self) -> Sequence[PrintedTable]:
        facts = self.made.facts
        keys = list(dict.fromkeys(k for f in facts for k in f))
        rows = [[MEANING.get(k, k), *(f.get(k, "") for f in facts)] for k in keys if k != "teacher"]
        columns = ("what", *(f"{f['teacher']} contact" for f in facts))
        return (PrintedTable(f"base models in {self.out}", columns, rows),)

    def next_commands(self) -> Sequence[str]:
        recordings = self.scene if (Path(self.scene) / HEADER_NAME).is_file() else "RECORDINGS"
        return (command("adapt", self.out, recordings, "--out", f"{self.out}-adapted"),)


def distill(
    scene: str | Path,
    out: str | Path,
    *,
    samples: int = 100_000,
    teachers: Sequence[str] = ("mujoco", "compliant"),
    training: DistillOptions | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> DistillResult:
    """Distil a built-in scene, a scene file or the scene of a recordings folder into base models f(S_pre, P) -> S_post.

    After a kill the same call goes on where it stopped.
    """
    made = distill_scene(
        any_scene(scene),
        Path(out),
        samples=samples,
        teachers=teachers,
        training=training,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    return DistillResult(Path(out), made, str(scene))
