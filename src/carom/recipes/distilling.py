"""`carom distill`: a simulator's contact response as base models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from carom.core.progress import Progress, silent
from carom.learn import distill as distill_scene
from carom.learn.impact.distill import Distilled, DistillOptions
from carom.recipes.result import PrintedTable, Result
from carom.recipes.strikes import any_scene

__all__ = ["DistillOptions", "DistillResult", "distill"]


@final
@dataclass(frozen=True)
class DistillResult(Result):
    """Base models, and the folder that holds them."""

    out: Path
    made: Distilled

    def to_dict(self) -> dict[str, Any]:
        return {"model": str(self.out), "bases": self.made.facts}

    def tables(self) -> Sequence[PrintedTable]:
        facts = self.made.facts
        keys = list(dict.fromkeys(k for f in facts for k in f))
        return (PrintedTable(f"base models in {self.out}", keys, [[f.get(k, "") for k in keys] for f in facts]),)


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
    return DistillResult(Path(out), made)
