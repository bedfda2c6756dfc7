"""`carom bench planning-time` (Table IV of CLASH): how long a plan takes, MuJoCo and hybrid in one run."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.planning import BUDGET, SHAPES, hybrid_of, learned
from carom.core.work import Rows
from carom.engines.contract import Simulator
from carom.learn.impact.training import torch_threads
from carom.plan import Plan, plan_strike, strike_space
from carom.plan.search import HORIZON, Budget

GOAL = 1e-5  #: [m^2] loss of Eq. 5 that both are timed to: three millimetres, or 0.03 rad
SAME = 1e-6  #: [m^2] one millimetre: losses below count as the same


def _settings(o: Options) -> dict[str, Any]:
    given = {"draws": o.draws, "seed": o.seed}
    return {**given, "budget": BUDGET, "goal": GOAL, "cores": _cores(o)}


def _cores(o: Options) -> int:
    return o.threads or os.cpu_count() or 1


def _work(o: Options) -> Work:
    """Every shape with one thread and with all cores; each draw is another target."""
    return [
        (f"{shape}/{count}", partial(_shape, shape, replace(o, threads=count)))
        for shape in SHAPES
        for count in sorted({1, _cores(o)})
    ]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"CMA-ES with {BUDGET} strikes from approach to rest, a generation in one batch; {o.draws} targets. "
        "Seconds and ratios are of the same run on the same cores.",
        f"speedup: MuJoCo's seconds over the hybrid's (with its slider) for the same number of evaluations; "
        f"speedup-to-loss: for the same loss, {GOAL:g} m^2, each at a target that it can reach.",
        "gradient: evaluations until Levenberg-Marquardt through network and slider has CMA-ES's final loss (or "
        "1 mm), a derivative counted as one evaluation; evaluations-ratio is that over CMA-ES's.",
    )


BENCHMARK = Benchmark("planning-time", draws=3, settings=_settings, work=_work, notes=_notes)


def _shape(shape: str, o: Options) -> Rows:
    lesson, recordings = learned(o, shape, 0)
    model = hybrid_of(lesson, recordings)
    engines = {name: model.simulator(name, threads=o.threads) for name in ("mujoco", "hybrid")}
    setting = f"{shape}, {o.threads} thread{'s' if o.threads > 1 else ''}"
    space = strike_space(model.scene, np.zeros(3))
    rows: Rows = []

    def add(method: str, metric: str, value: float) -> None:
        rows.append({"setting": setting, "method": method, "metric": metric, "value": value})

    points = np.random.default_rng([o.seed, 98]).random((o.draws, 3))
    with torch_threads(o.threads):
        for point in points:
            initial = space.initial(point[None])

            def timed(engine: Simulator, method: str = "cma", start: Any = initial, **options: Any) -> Plan:
                wanted = engine.rollout(start, HORIZON).rest[0]
                return plan_strike(engine, space, wanted, method=method, seed=o.seed, **options)

            plans = {name: timed(engine, budget=BUDGET) for name, engine in engines.items()}
            goals = {name: timed(engine, budget=Budget(5 * BUDGET, GOAL)) for name, engine in engines.items()}
            for name, plan in plans.items():
                add(name, "plan-seconds", plan.seconds)
                reached_goal = goals[name].history[-1][1] <= GOAL
                add(name, "plan-seconds-to-loss", goals[name].seconds if reached_goal else float("nan"))
                add(name, "reached-loss", float(reached_goal))
            add("hybrid", "speedup", plans["mujoco"].seconds / plans["hybrid"].seconds)
            add("hybrid", "speedup-to-loss", goals["mujoco"].seconds / goals["hybrid"].seconds)
            steep = timed(engines["hybrid"], "gradient")
            reached = [n for n, loss, _ in steep.history if loss <= max(plans["hybrid"].loss, SAME)]
            add("gradient", "evaluations", float(reached[0]) if reached else float("nan"))
            add("gradient", "evaluations-ratio", reached[0] / BUDGET if reached else float("nan"))
            add("gradient", "plan-seconds", steep.seconds)
    return rows
