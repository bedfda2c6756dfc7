"""`carom bench recovery-pushes`: pushes with known parameters; which methods find them again, and when none can.

Most pushes are MuJoCo's own, whose parameters are looked for. Some are those of a stand-in (a pressure patch, a tool
that meets it by complementarity) without the effects that no parameter of MuJoCo expresses.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.simulated_pushes import mujoco_pushes, servo_pushes, stiff_scene
from carom.core.work import Rows
from carom.identify.pushes import Method, Tuning, tune
from carom.identify.result import CONFIDENCE, Estimate
from carom.reality.push_settings import PushEffects, PushSetting
from carom.reality.push_standin import PUSH_MOCAP, PushStandIn
from carom.recordings import read
from carom.scenes.pushing import push_scene

PUSHES = 15
#: what is true in a trial is drawn evenly from these (those marked True: by their logarithm)
RANGES = {
    "ground_friction": (0.12, 0.5, True),
    "striker_friction": (0.12, 0.5, True),
    "mass_scale": (0.6, 1.7, True),
    "actuator_delay": (0.0, 0.06, False),
}
WITHIN = 0.05  #: of the truth
SETTINGS = {
    "MuJoCo": "servo pushes in MuJoCo",
    "slow": "slow stiff pushes in MuJoCo",
    "stand-in": "servo pushes on a stand-in, inexpressible effects off",
}
SOME = 20  #: one trial of so many is also tried by the other methods, with slow stiff pushes and on the stand-in
OTHERS: tuple[Method, ...] = ("gauss-newton", "random")
SLOW = (0.02, 0.03)  #: [m/s] of slow set-points
RECIPE = 2  #: of tuning: other figures are to be expected when it changes


def _settings(o: Options) -> dict[str, Any]:
    return {"seed": o.seed, "pushes": PUSHES, "ranges": RANGES, "recipe": RECIPE, "slow": SLOW}


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"Simulated, planar cube: {o.draws} trials in MuJoCo itself, and every {SOME}th also with slow pushes of stiff "
        "servos, on a stand-in and by the other methods; each with other true parameters (drawn from "
        f"src/carom/bench/recovery_pushes.py's ranges) and {PUSHES} pushes, seen with a noise of 0.15 mm and 0.2 "
        "degrees. The stand-in's physics is not MuJoCo's (a pressure patch, complementarity); the effects that no "
        "parameter of MuJoCo expresses are off, and pressure_spread is looked for too. Slow pushes: set-points at "
        f"{1000 * SLOW[0]:.0f} to {1000 * SLOW[1]:.0f} mm/s of a tool of 30 kg that no block holds back: its mass does "
        "not show then, and has to be refused.",
        f"covered: share of the trials in which the stated {100 * CONFIDENCE:.0f} % interval holds the truth, of those "
        "in which the parameter is not called not identifiable. refused: share in which it is called so. "
        f"within-{100 * WITHIN:.0f}-percent: share in which the value is that near to the truth.",
        "cma: CMA-ES, then Gauss-Newton with batched differences (the default). gauss-newton: the latter alone, from "
        "the parameters' defaults. random: the best of an even spread. seconds of one core, intervals included.",
    )


def _work(o: Options) -> Work:
    found: list[tuple[str, Any]] = []
    for trial in range(o.draws):
        kinds = ("MuJoCo", "slow", "stand-in") if trial % SOME == 0 else ("MuJoCo",)
        found += [(f"{kind}/{trial}", partial(_trial, kind, trial, o.seed)) for kind in kinds]
    return found


BENCHMARK = Benchmark("recovery-pushes", draws=50, settings=_settings, work=_work, notes=_notes)


def truth_of(trial: int, seed: int) -> dict[str, float]:
    """What is true in a trial."""
    rng = np.random.default_rng([seed, trial, 47])
    drawn = {}
    for name, (low, high, log) in RANGES.items():
        share = rng.random()
        drawn[name] = float(low * (high / low) ** share if log else low + (high - low) * share)
    return drawn


def _trial(kind: str, trial: int, seed: int) -> Rows:
    truth, number = truth_of(trial, seed), 1000 * seed + trial
    scene = push_scene("planar-cube") if kind != "slow" else stiff_scene()
    speed = {"speed": SLOW} if kind == "slow" else {}
    commands = servo_pushes(scene, PUSHES, number, **speed)
    if kind == "stand-in":
        setting = PushSetting("drawn", truth["ground_friction"], truth["striker_friction"], truth["mass_scale"])
        effects = PushEffects(**{**vars(PushEffects.none()), "delay": truth["actuator_delay"]})
        lab = PushStandIn(setting, scene, effects, seed=number, mocap=PUSH_MOCAP)
        truth["pressure_spread"] = lab.truth["pressure_spread"]
        with tempfile.TemporaryDirectory() as place:
            recordings = read(lab.execute(commands, Path(place) / "pushes", seed=number))
    else:
        recordings = mujoco_pushes(scene, truth, commands, number)
    rows: Rows = []
    for method in ("cma", *(OTHERS if kind == "MuJoCo" and trial % SOME == 0 else ())):
        start = process_time()
        found = tune(scene, recordings, Tuning(tuple(truth), method=method), seed=number, threads=1)
        took = process_time() - start
        setting_name = SETTINGS[kind]
        rows.append({"setting": setting_name, "method": method, "metric": "seconds", "value": took})
        for name, true in truth.items():
            rows += [
                {"setting": f"{name}, {setting_name}", "method": method, "metric": metric, "value": value}
                for metric, value in _figures(found.identification[name], true).items()
            ]
    return rows


def _figures(found: Estimate, truth: float) -> dict[str, float]:
    """What is told of one estimate; shares are 0 or 1. Delays count against a control period."""
    refused = found.verdict.startswith("not identifiable")
    made = {"refused": float(refused)}
    if not refused:  # its interval is its whole range
        made["covered"] = float(found.low <= truth <= found.high)
    scale = truth if found.name != "actuator_delay" else 0.05
    off = abs(found.value - truth) / scale
    return made | {
        f"within-{100 * WITHIN:.0f}-percent": float(off <= WITHIN),
        "error-percent": 100 * off,
        "interval-percent": 100 * (found.high - found.low) / 2 / scale,
    }
