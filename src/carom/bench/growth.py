"""How the cost of strikes grows with their number: time per strike and working memory, from one strike to a million."""

from __future__ import annotations

import tracemalloc
from time import perf_counter

import numpy as np

from carom.core.work import Rows
from carom.engines.approach import at_distance
from carom.engines.contract import Rollout, Simulator
from carom.hybrid.model import HybridModel
from carom.learn.impact.sample import sample_strikes
from carom.plan.search import HORIZON
from carom.plan.space import STANDOFF
from carom.state import Strikes

GROWTH = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000)


def growth_rows(model: HybridModel, seed: int, cores: int) -> Rows:
    """Seconds per strike and megabytes beside strikes and results, on one thread and on all cores."""
    rows: Rows = []
    few = at_distance(model.scene, sample_strikes(model.scene, 1000, np.random.default_rng([seed, 12])), STANDOFF, {})
    for threads in sorted({1, cores}):
        engine = model.simulator("hybrid", threads=threads)
        engine.rollout(few, HORIZON)
        for count in GROWTH:
            strikes = few[np.arange(count) % len(few)]
            took = [_timed(engine, strikes) for _ in range(5 if count <= 10_000 else 1)]
            setting = f"growth, N = {count}, {threads} thread{'s' if threads > 1 else ''}"
            found = {"microseconds-per-strike": 1e6 * float(np.median(took)) / count}
            found["working-megabytes"] = _working_memory(engine, strikes) / 1e6
            rows += [{"setting": setting, "method": "hybrid", "metric": m, "value": v} for m, v in found.items()]
    return rows


def _timed(engine: Simulator, strikes: Strikes) -> float:
    start = perf_counter()
    engine.rollout(strikes, HORIZON)
    return perf_counter() - start


def _working_memory(engine: Simulator, strikes: Strikes) -> float:
    """Most memory [bytes] that a rollout had taken beside its result."""
    tracemalloc.start()
    try:
        run = engine.rollout(strikes, HORIZON)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return float(most - sum(getattr(run, name).nbytes for name in Rollout.__dataclass_fields__))
