"""One module per table of the papers; each ends in `benchmarks/results/NAME.json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from carom.core.errors import CaromError, unknown_name

if TYPE_CHECKING:
    from carom.bench.results import Results

NAMES = ("distill", "impact-accuracy", "planning", "planning-time", "recovery", "robot-hits", "routes", "speed", "toss")


def run_benchmark(name: str, **options: Any) -> Results:
    """Run the benchmark of this name; options as `carom bench` takes them."""
    if name not in NAMES:
        raise CaromError(unknown_name("benchmark", name, NAMES))
    from carom.bench import distillation, impact_accuracy, planning, planning_time, recovery, robot_hits, speed, toss

    if name == "routes":  # policies are an extra
        from carom.bench import routes

        return routes.run(**options)
    runs: dict[str, Callable[..., Results]] = {
        "distill": distillation.run,
        "impact-accuracy": impact_accuracy.run,
        "planning": planning.run,
        "planning-time": planning_time.run,
        "recovery": recovery.run,
        "robot-hits": robot_hits.run,
        "speed": speed.run,
        "toss": toss.run,
    }
    return runs[name](**options)
