"""`carom bench routes` (Table VI of CLASH): policies trained in a simulator, tried on a stand-in reality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import t

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.planning import TRAIN, hybrid_of, learned
from carom.bench.results import summarise
from carom.compare.simulators import mujoco_simulator
from carom.core.work import Rows, fingerprint
from carom.engines.contract import Simulator
from carom.envs.batch import engine_strike
from carom.envs.routes import ROUTES
from carom.hybrid.draws import draws_of
from carom.reality import standin
from carom.recipes.policies import APART, DRAWS, SHAPE, standin_strike, train_policy
from carom.train import Preset, Training, preset_of, run_trials

#: stand-ins on which policies are tried: the hard one, whose rows are called by the route alone, and easier ones
REALITIES = ("nylon-padded", "nylon-low")
METHODS = ("hybrid", "hybrid-randomised", "mujoco")
STEPS, TRIALS = 200_000, 100
TOGETHER = 32  #: environments that the paper's preset steps together here, with as many updates: one per transition
ONCE = ("hybrid", "mujoco")  #: simulators of easier stand-ins and of the paper's preset, with one seed


def _settings(o: Options) -> dict[str, Any]:
    presets = [_preset(name).stated() for name in ("fast", "paper")]
    given = {"samples": o.samples, "seed": o.seed}
    return {**given, "steps": STEPS, "trials": TRIALS, "draws": DRAWS, "presets": presets}


def _work(o: Options) -> Work:
    """Every training seed learns from ten other strikes, trains anew, and is tried 100 times on every route."""
    return [("/".join(map(str, job)), partial(_piece, *job, o)) for job in jobs(o.draws)]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"Stand-in realities ({', '.join(REALITIES)}; not MuJoCo, not a laboratory), semi-cylinder; rows without a "
        f"name are of {REALITIES[0]}, the hard one, the others of one seed. SAC, {STEPS} transitions, "
        f"{o.draws} training seeds; each learned its simulator from {TRAIN} other strikes; {TRIALS} trials per route "
        "and seed. Mean and standard deviation over seeds; -low and -high are the ends of a 95 % interval: the "
        "wider of the trials' (Wilson) and that of the mean over seeds (Student).",
        f"{', '.join(REALITIES[1:])} came first; policies from MuJoCo do well there on the routes without sharp "
        "bends, because they are straight blows on the middle of the arc, which calibrated MuJoCo predicts well. "
        f"{REALITIES[0]} was then made harder on purpose: felt on both ends of the block and a film of oil on the "
        "table, so that calibrated MuJoCo errs about as on the paper's blocks (reality/settings.py).",
        "hybrid, hybrid-randomised, mujoco: the preset `fast`. -paper-preset: Stable-Baselines3's defaults, one "
        f"update for each transition ({TOGETHER} environments stepped together), one seed.",
        "in-simulator: the same policies tried in the simulator they were trained in. `speed` says how long a "
        "training takes in each.",
    )


BENCHMARK = Benchmark(
    "routes",
    draws=3,
    samples=60_000,
    settings=_settings,
    work=_work,
    notes=_notes,
    rows=lambda values: summarise(widened(values)),
)


def jobs(draws: int) -> list[tuple[str, str, int, str]]:
    """(stand-in, simulator, seed, preset) of each training."""
    harder, *easier = REALITIES
    fast = [(harder, method, draw, "fast") for draw in range(draws) for method in METHODS]
    once = [(on, method, 0, "fast") for on in easier for method in ONCE]
    return [*fast, *once, *((harder, method, 0, "paper") for method in ONCE)]


def _preset(name: str) -> Preset:
    chosen = preset_of(name, "sac")
    return replace(chosen, envs=TOGETHER, updates=TOGETHER) if name == "paper" else chosen


def _engines(on: str, method: str, draw: int, o: Options) -> tuple[Simulator, Sequence[Simulator]]:
    """The simulator learned from one set of strikes, and those to train in: itself, or draws of its uncertainty."""
    lesson, recordings = learned(o, SHAPE, draw, setting=on)
    if method == "mujoco":
        engine: Simulator = mujoco_simulator(lesson, threads=o.threads)
        return engine, [engine]
    model = hybrid_of(lesson, recordings)
    engine = model.simulator("hybrid", threads=o.threads)
    if method == "hybrid":
        return engine, [engine]
    return engine, draws_of(model, DRAWS, seed=o.seed + draw, threads=o.threads)


def _piece(on: str, method: str, draw: int, preset: str, o: Options) -> Rows:
    """One policy: trained, or its training resumed; then tried on the stand-in and in its own simulator."""
    engine, trained_in = _engines(on, method, draw, o)
    policy = train_policy(
        o.out / "routes" / fingerprint(_settings(o)) / f"{on}-{method}-{draw}-{preset}",
        trained_in,
        training=Training(steps=STEPS, preset=_preset(preset), seed=o.seed + APART * draw),
        progress=o.progress,
        made_by={"simulator": method, "strikes": on, "samples": o.samples, "draw": draw},
    )
    name = method if preset == "fast" else f"{method}-{preset}-preset"
    reality = standin(on, SHAPE, seed=o.seed + 1)
    place = "" if on == REALITIES[0] else f", {on}"
    rows: Rows = []

    def add(setting: str, metric: str, value: float) -> None:
        rows.append({"setting": setting + place, "method": name, "metric": metric, "value": value})

    for prefix in ("", "in-simulator-"):
        success = []
        for number, route in ROUTES.items():  # no route's scatter depends on another's
            strike = engine_strike(engine) if prefix else standin_strike(reality, seed=o.seed + 100 * draw)
            rates = run_trials(policy, strike, engine.scene, route, trials=TRIALS, seed=o.seed + 1000 * draw).rates()
            for metric, rate in (("success-rate", rates.success), ("subgoal-rate", rates.subgoals)):
                add(f"route-{number}", f"{prefix}{metric}", rate.value)
                if not prefix:
                    add(f"route-{number}", f"{metric}-low", rate.low)
                    add(f"route-{number}", f"{metric}-high", rate.high)
            success.append(rates.success.value)
        add("all-routes", f"{prefix}success-rate", float(np.mean(success)))
    return rows


def widened(values: Rows) -> Rows:
    """The rows with each rate's 95 % interval: the wider of the trials' own (mean over seeds) and the seeds'."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in values:
        found.setdefault((row["setting"], row["method"], row["metric"]), []).append(float(row["value"]))
    for (setting, method, metric), each in list(found.items()):
        if metric not in ("success-rate", "subgoal-rate") or (setting, method, f"{metric}-low") not in found:
            continue
        mean = float(np.mean(each))
        half = float(t.ppf(0.975, len(each) - 1) * np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else 0.0
        low, high = (found[setting, method, f"{metric}-{end}"] for end in ("low", "high"))
        low[:] = [max(0.0, min(mean - half, float(np.mean(low))))] * len(low)
        high[:] = [min(1.0, max(mean + half, float(np.mean(high))))] * len(high)
    return [
        {"setting": setting, "method": method, "metric": metric, "value": value}
        for (setting, method, metric), each in found.items()
        for value in each
    ]
