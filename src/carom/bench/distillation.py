"""`carom bench distill`: collisions per second, the engine's share, and in-simulator accuracy of the base models."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from carom.bench.results import Results, new_results, summarise
from carom.core.progress import Progress
from carom.core.work import Checkpoint, run_pieces
from carom.learn import distill
from carom.scenes.strike import builtin

SHAPES = ("semi-cylinder", "square", "triangle", "box")


def run(
    *, draws: int | None, samples: int | None, out: Path, seed: int, threads: int, progress: Progress, **_: Any
) -> Results:
    """Distil every built-in scene from both teachers with both presets, in a fresh folder for each seed."""
    draws, samples = draws or 1, samples or 100_000
    pieces = Checkpoint(out / "distill.jsonl", {"draws": draws, "samples": samples, "seed": seed})
    work = [
        (
            f"{shape}/{draw}",
            partial(_distil, shape, samples, out / "distill" / f"{shape}-{draw}", seed + draw, threads, progress),
        )
        for shape in SHAPES
        for draw in range(draws)
    ]
    values, seconds = run_pieces(pieces, work, progress)
    return new_results(
        "distill",
        command=f"carom bench distill --draws {draws} --samples {samples}",
        rows=summarise(values),
        seconds=seconds,
        notes=(f"{samples} simulated impacts per teacher; accuracy on simulated impacts that were not trained on.",),
    )


def _distil(shape: str, samples: int, out: Path, seed: int, threads: int, progress: Progress) -> list[dict[str, Any]]:
    rows = []
    for preset, teachers in (("default", ("mujoco", "compliant")), ("paper", ("mujoco",))):
        made = distill(
            builtin(shape),
            out,
            samples=samples,
            teachers=teachers,
            preset=preset,
            seed=seed,
            threads=threads,
            progress=progress,
        )
        for fact in made.facts:
            method = f"{fact['teacher']}, {preset}"
            names = {
                "held_out_accuracy@0.1": "accuracy@0.1",
                "held_out_accuracy@0.05": "accuracy@0.05",
                "impacts_per_second": "impacts-per-second",
                "engine_share": "engine-share",
                "train_seconds": "train-seconds",
            }
            rows += [
                {"setting": shape, "method": method, "metric": metric, "value": float(fact[key])}
                for key, metric in names.items()
                if key in fact
            ]
    return rows
