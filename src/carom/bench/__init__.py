"""One module per table of the papers; each ends in `benchmarks/results/NAME.json`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress

if TYPE_CHECKING:
    from carom.bench.benchmark import Benchmark
    from carom.bench.results import Results

#: name of each benchmark and the module that has it; only the one asked for is loaded, as some need an extra
MODULES = {
    "distill": "distillation",
    "graph": "graph",
    "import": "importing",
    "impact-accuracy": "impact_accuracy",
    "loop": "loop",
    "planning": "planning",
    "planning-time": "planning_time",
    "push-learning": "push_learning",
    "ray": "cluster",
    "recovery": "recovery",
    "recovery-pushes": "recovery_pushes",
    "recovery-strikes": "recovery_strikes",
    "robot-hits": "robot_hits",
    "routes": "routes",
    "shipped-base": "shipped_base",
    "speed": "speed",
    "toss": "toss",
    "training-time": "training_time",
}
NAMES = tuple(MODULES)


class Asked(TypedDict, total=False):
    """Options of a run; those that are left out, or None, are the benchmark's own."""

    data: Path | None  #: folder of real recordings, where they are needed
    draws: int | None
    samples: int | None  #: simulated impacts per teacher
    out: Path  #: folder for models and finished pieces
    seed: int
    threads: int
    only: tuple[str, ...]  #: beginnings of the names of the pieces to run; none: all
    progress: Progress


def run_benchmark(name: str, **asked: Unpack[Asked]) -> Results:
    """Run the benchmark of this name; an option that it does not take is an error."""
    if name not in MODULES:
        raise CaromError(unknown_name("benchmark", name, NAMES))
    benchmark: Benchmark = import_module(f"carom.bench.{MODULES[name]}").BENCHMARK
    return benchmark.run(benchmark.options(**asked))
