"""`carom bench distill`: collisions per second, the engine's share, and in-simulator accuracy of the base models."""

from __future__ import annotations

from functools import partial

from carom.bench.benchmark import Benchmark, Options, Work
from carom.core.work import Rows
from carom.learn import distill
from carom.learn.impact.distill import DistillOptions
from carom.scenes.strike import builtin

SHAPES = ("semi-cylinder", "square", "triangle", "box")
#: a fact of a distilled model, and the metric that it becomes
METRICS = {
    "held_out_accuracy@0.1": "accuracy@0.1",
    "held_out_accuracy@0.05": "accuracy@0.05",
    "impacts_per_second": "impacts-per-second",
    "engine_share": "engine-share",
    "train_seconds": "train-seconds",
}


def _work(o: Options) -> Work:
    return [(f"{shape}/{draw}", partial(_distil, shape, draw, o)) for shape in SHAPES for draw in range(o.draws)]


def _notes(o: Options) -> tuple[str, ...]:
    return (f"{o.samples} simulated impacts per teacher; accuracy on simulated impacts that were not trained on.",)


BENCHMARK = Benchmark(
    "distill",
    draws=1,
    samples=100_000,
    settings=lambda o: {"draws": o.draws, "samples": o.samples, "seed": o.seed},
    work=_work,
    notes=_notes,
)


def _distil(shape: str, draw: int, o: Options) -> Rows:
    """A built-in scene from both teachers with both presets, in a fresh folder for each seed."""
    rows: Rows = []
    for preset, teachers in (("default", ("mujoco", "compliant")), ("paper", ("mujoco",))):
        made = distill(
            builtin(shape),
            o.out / "distill" / f"{shape}-{draw}",
            samples=o.samples,
            teachers=teachers,
            training=DistillOptions(preset),
            seed=o.seed + draw,
            threads=o.threads,
            progress=o.progress,
        )
        rows += [
            {"setting": shape, "method": f"{fact['teacher']}, {preset}", "metric": metric, "value": float(fact[key])}
            for fact in made.facts
            for key, metric in METRICS.items()
            if key in fact
        ]
    return rows
