"""`carom bench routes` (Table VI of CLASH): policies trained in a simulator, tried on a stand-in reality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from carom.bench.planning import TRAIN, hybrid_of, learned
from carom.bench.results import Results, new_results, summarise
from carom.compare.simulators import mujoco_simulator
from carom.core.progress import Progress
from carom.core.work import Checkpoint, Rows, run_pieces
from carom.engines.contract import Simulator
from carom.envs.batch import engine_strike
from carom.envs.routes import ROUTES
from carom.hybrid.draws import draws_of
from carom.reality import standin
from carom.recipes.policies import APART, DRAWS, SHAPE, LearnerOptions, standin_strike, train_policy
from carom.train import Preset, preset_of, run_trials

#: stand-ins on which policies are tried: the hard one, whose rows are called by the route alone, and easier ones
REALITIES = ("nylon-padded", "nylon-low")
METHODS = ("hybrid", "hybrid-randomised", "mujoco")
STEPS, TRIALS = 200_000, 100
TOGETHER = 32  #: environments that the paper's preset steps together here, with as many updates: one per transition
ONCE = ("hybrid", "mujoco")  #: simulators of easier stand-ins and of the paper's preset, with one seed


def run(
    *, draws: int | None, samples: int | None, out: Path, seed: int, threads: int, progress: Progress, **_: Any
) -> Results:
    """Every training seed learns from ten other strikes, trains anew, and is tried 100 times on every route."""
    draws, samples = draws or 3, samples or 60_000
    pieces = Checkpoint(out / "routes.jsonl", settings_of(samples, seed))
    work = [
        ("/".join(map(str, job)), partial(_piece, *job, samples, out, pieces.fingerprint, seed, threads, progress))
        for job in jobs(draws)
    ]
    values, seconds = run_pieces(pieces, work, progress)
    return new_results(
        "routes",
        command=f"carom bench routes --draws {draws} --samples {samples}",
        rows=summarise(_widened(values)),
        seconds=seconds,
        notes=(
            f"Stand-in realities ({', '.join(REALITIES)}; not MuJoCo, not a laboratory), semi-cylinder; rows without a "
            f"name are of {REALITIES[0]}, the hard one, the others of one seed. SAC, {STEPS} transitions, "
            f"{draws} training seeds; each learned its simulator from {TRAIN} other strikes; {TRIALS} trials per route "
            "and seed. Mean and standard deviation over seeds; -low and -high are the ends of a 95 % interval: the "
            "wider of the trials' (Wilson) and that of the mean over seeds (Student).",
            f"{', '.join(REALITIES[1:])} came first; policies from MuJoCo do well there on the routes without sharp "
            "bends, because they are straight blows on the middle of the arc, which calibrated MuJoCo predicts well. "
            f"{REALITIES[0]} was then made harder on purpose: felt on both ends of the block and a film of oil on the "
            "table, so that calibrated MuJoCo errs about as on the paper's blocks (loop/settings.py).",
            "hybrid, hybrid-randomised, mujoco: the preset `fast`. -paper-preset: Stable-Baselines3's defaults, one "
            f"update for each transition ({TOGETHER} environments stepped together), one seed.",
            "in-simulator: the same policies tried in the simulator they were trained in. `speed` says how long a "
            "training takes in each.",
        ),
    )


def settings_of(samples: int, seed: int) -> dict[str, Any]:
    """What a piece depends on, beside its key."""
    presets = [asdict(_preset(name)) for name in ("fast", "paper")]
    return {"samples": samples, "seed": seed, "steps": STEPS, "trials": TRIALS, "draws": DRAWS, "presets": presets}


def jobs(draws: int) -> list[tuple[str, str, int, str]]:
    """(stand-in, simulator, seed, preset) of each training."""
    harder, *easier = REALITIES
    fast = [(harder, method, draw, "fast") for draw in range(draws) for method in METHODS]
    once = [(on, method, 0, "fast") for on in easier for method in ONCE]
    return [*fast, *once, *((harder, method, 0, "paper") for method in ONCE)]


def _preset(name: str) -> Preset:
    chosen = preset_of(name, "sac")
    return replace(chosen, envs=TOGETHER, updates=TOGETHER) if name == "paper" else chosen


def _engines(
    on: str, method: str, draw: int, samples: int, out: Path, seed: int, threads: int, progress: Progress
) -> tuple[Simulator, Sequence[Simulator]]:
    """The simulator learned from one set of strikes, and what is trained in: itself, or as it could also be."""
    lesson, recordings = learned(SHAPE, draw, samples, out, seed, threads, progress, setting=on)
    if method == "mujoco":
        engine: Simulator = mujoco_simulator(lesson, threads=threads)
        return engine, [engine]
    model = hybrid_of(lesson, recordings)
    engine = model.simulator("hybrid", threads=threads)
    if method == "hybrid":
        return engine, [engine]
    return engine, draws_of(model, DRAWS, seed=seed + draw, threads=threads)


def _piece(
    on: str,
    method: str,
    draw: int,
    preset: str,
    samples: int,
    out: Path,
    run: str,
    seed: int,
    threads: int,
    progress: Progress,
) -> Rows:
    """One policy: trained (or gone on with), then tried on the stand-in and in its own simulator."""
    engine, trained_in = _engines(on, method, draw, samples, out, seed, threads, progress)
    policy = train_policy(
        out / "routes" / run / f"{on}-{method}-{draw}-{preset}",
        trained_in,
        learner=LearnerOptions(steps=STEPS, preset=_preset(preset)),
        seed=seed + APART * draw,
        progress=progress,
        made_by={"simulator": method, "strikes": on, "samples": samples, "draw": draw},
    )
    name = method if preset == "fast" else f"{method}-{preset}-preset"
    reality = standin(on, SHAPE, seed=seed + 1)
    place = "" if on == REALITIES[0] else f", {on}"
    rows: Rows = []

    def add(setting: str, metric: str, value: float) -> None:
        rows.append({"setting": setting + place, "method": name, "metric": metric, "value": value})

    for prefix in ("", "in-simulator-"):
        success = []
        for number, route in ROUTES.items():  # no route's scatter depends on another's
            strike = engine_strike(engine) if prefix else standin_strike(reality, seed=seed + 100 * draw)
            rates = run_trials(policy, strike, engine.scene, route, trials=TRIALS, seed=seed + 1000 * draw).rates()
            for metric, rate in (("success-rate", rates.success), ("subgoal-rate", rates.subgoals)):
                add(f"route-{number}", f"{prefix}{metric}", rate.value)
                if not prefix:
                    add(f"route-{number}", f"{metric}-low", rate.low)
                    add(f"route-{number}", f"{metric}-high", rate.high)
            success.append(rates.success.value)
        add("all-routes", f"{prefix}success-rate", float(np.mean(success)))
    return rows


def _widened(values: Rows) -> Rows:
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
