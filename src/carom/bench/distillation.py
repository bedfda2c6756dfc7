"""`carom bench distill`: collisions per second, the engine's share, and in-simulator accuracy of the base models."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from carom.bench.results import Checkpoint, Results, new_results, summarise
from carom.core.progress import Progress
from carom.learn import distill
from carom.scenes.strike import builtin

SHAPES = ("semi-cylinder", "square", "triangle", "box")


def run(
    *, draws: int | None, samples: int | None, out: Path, seed: int, threads: int, progress: Progress, **_: Any
) -> Results:
    """Distil every built-in scene from both teachers with both presets, in a fresh folder for each seed."""
    draws, samples = draws or 1, samples or 100_000
    pieces = Checkpoint(out / "distill.jsonl", {"draws": draws, "samples": samples, "seed": seed})
    values: list[dict[str, Any]] = []
    seconds = 0.0
    for shape in SHAPES:
        for draw in range(draws):
            rows = pieces.done(f"{shape}/{draw}")
            if rows is None:
                start = perf_counter()
                rows = _distil(shape, samples, out / "distill" / f"{shape}-{draw}", seed + draw, threads, progress)
                rows.append({"setting": "", "method": "", "metric": "seconds", "value": perf_counter() - start})
                pieces.save(f"{shape}/{draw}", rows)
            seconds += sum(r["value"] for r in rows if r["metric"] == "seconds")
            values += [r for r in rows if r["metric"] != "seconds"]
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
