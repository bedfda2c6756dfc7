"""One module per table of the papers; each ends in `benchmarks/results/NAME.json`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress, silent

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
}
NAMES = tuple(MODULES)


def run_benchmark(
    name: str,
    *,
    data: Path | None = None,
    draws: int | None = None,
    samples: int | None = None,
    out: Path = Path("out/bench"),
    seed: int = 0,
    threads: int = 0,
    only: tuple[str, ...] = (),
    progress: Progress = silent,
) -> Results:
    """Run the benchmark of this name; None is its own default, and an option that it does not take is an error."""
    if name not in MODULES:
        raise CaromError(unknown_name("benchmark", name, NAMES))
    benchmark: Benchmark = import_module(f"carom.bench.{MODULES[name]}").BENCHMARK
    common = {"out": out, "seed": seed, "threads": threads, "only": only, "progress": progress}
    return benchmark.run(benchmark.options(data=data, draws=draws, samples=samples, **common))
