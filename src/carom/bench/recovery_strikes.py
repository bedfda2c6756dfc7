"""`carom bench recovery-strikes`: simulated strikes with known parameters; which methods find them again?

Half of the strikes are simulated by MuJoCo, whose parameters are looked for; the other half by a stand-in whose
friction and centre of mass are known, but whose physics no setting of MuJoCo's parameters repeats.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.simulated_strikes import strike_in_mujoco
from carom.core.work import Rows
from carom.identify.result import CONFIDENCE, Estimate
from carom.reality import SETTINGS, SHAPES, Mocap, sample_commands
from carom.reality.standin import StandIn
from carom.recipes.identifying import identify_strikes
from carom.recordings import Recordings, read
from carom.scenes.shapes import polygon_properties
from carom.scenes.strike import com_unknown

STRIKES = 10
METHODS = ("gradient", "cma")
REALITIES = ("MuJoCo", "stand-in")
RECIPE = 2  #: of identification: other figures are to be expected when it changes
#: what is true in a trial is drawn evenly from these (those marked True: by their logarithm)
RANGES = {
    "striker_friction": (0.1, 0.5, True),
    "ground_friction": (0.12, 0.45, True),
    "striker_damping": (0.15, 0.8, True),
    "ground_damping": (0.5, 2.0, True),
}
COM = 0.6  #: of the bounds of com_x and com_y, within which the true ones are
DENSITY = (800.0, 1200.0)  #: of the block [kg/m^3]
UNSEEN = "ground_damping"  #: no strike shows it


def _settings(o: Options) -> dict[str, Any]:
    return {"seed": o.seed, "strikes": STRIKES, "ranges": RANGES, "com": COM, "density": DENSITY, "recipe": RECIPE}


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"Simulated: {o.draws} trials in MuJoCo and as many on a stand-in (rigid impact, uneven restitution, an arm "
        "that yields, scatter), each with other true parameters (drawn from src/carom/bench/recovery_strikes.py's "
        f"ranges), one of three shapes and {STRIKES} strikes, seen by a simulated motion capture and identified as "
        "`carom identify` does, from the recordings alone. A stand-in has no damping ratio: its friction and its "
        "centre of mass are known.",
        f"covered: share of the trials in which the stated {100 * CONFIDENCE:.0f} % interval holds the truth, of those "
        "in which the parameter is not called not identifiable; covered-if-identified: of those in which it is called "
        "identified. error-percent and interval-percent (half of the interval): of the truth; of a centre of mass near "
        "the middle, of a tenth of its bound.",
        f"refused: share of the trials in which {UNSEEN}, which strikes hardly show, is called not identifiable. "
        "ground_friction is read off the slides, whatever the method.",
    )


def _work(o: Options) -> Work:
    """Every trial draws a truth, simulates strikes with it, and identifies by each method."""
    return [
        (f"{reality}/{trial}", partial(_trial, reality, trial, o.seed))
        for trial in range(o.draws)
        for reality in REALITIES
    ]


BENCHMARK = Benchmark("recovery-strikes", draws=20, settings=_settings, work=_work, notes=_notes)


def truth_of(trial: int, seed: int) -> tuple[str, dict[str, float]]:
    """The shape that is struck in a trial, and what is true there."""
    rng = np.random.default_rng([seed, trial, 43])
    shape = sorted(SHAPES)[trial % len(SHAPES)]
    drawn = {}
    for name, (low, high, log) in RANGES.items():
        share = rng.random()
        drawn[name] = float(low * (high / low) ** share if log else low + (high - low) * share)
    for p in com_unknown(SHAPES[shape]):
        drawn[p.name] = float(COM * p.high * rng.uniform(-1, 1))
    drawn["density"] = float(rng.uniform(*DENSITY))
    return shape, drawn


def recorded(reality: str, trial: int, seed: int, folder: Path) -> tuple[Recordings, dict[str, float]]:
    """The strikes of a trial as a laboratory would have them, and the parameters whose truth is known."""
    shape, truth = truth_of(trial, seed)
    density = truth.pop("density")
    number = 1_000_000 * seed + trial
    if reality == "MuJoCo":
        mass = round(density * polygon_properties(SHAPES[shape].planar_outline)[0] * SHAPES[shape].full_height, 4)
        return read(strike_in_mujoco(SHAPES[shape], mass, STRIKES, truth, folder, seed=number)), truth
    material = SETTINGS[sorted(SETTINGS)[trial % len(SETTINGS)]]
    effects = replace(material.effects, com_offset=float(np.hypot(truth["com_x"], truth["com_y"])) / 2**0.5)
    friction, ground = truth["striker_friction"], truth["ground_friction"]
    setting = replace(material, density=density, effects=effects, friction=friction, ground_friction=ground)
    lab = StandIn(setting, SHAPES[shape], effects, striker="round", seed=number, mocap=Mocap())
    commands = sample_commands(lab.shape, STRIKES, np.random.default_rng([number, 0]))
    com = lab.com_offset
    known = {k: truth[k] for k in ("striker_friction", "ground_friction")} | {"com_x": com[0], "com_y": com[1]}
    return read(lab.execute(commands, folder, seed=number)), known


def _trial(reality: str, trial: int, seed: int) -> Rows:
    rows: Rows = []
    with tempfile.TemporaryDirectory() as place:
        recordings, truth = recorded(reality, trial, seed, Path(place) / "strikes")
        for method in METHODS:
            found, _ = identify_strikes(recordings, method, seed=seed + trial)
            for name in truth:
                setting = f"{name}, {reality}"
                rows += [
                    {"setting": setting, "method": method, "metric": metric, "value": value}
                    for metric, value in _figures(found[name], truth[name]).items()
                ]
    return rows


def _figures(found: Estimate, truth: float) -> dict[str, float]:
    """What is told of one estimate; shares are 0 or 1."""
    if found.name == UNSEEN:
        return {"refused": float(found.verdict.startswith("not identifiable"))}
    holds = float(found.low <= truth <= found.high)
    made = {"identified": float(found.verdict == "identified")}
    if found.verdict == "identified":
        made["covered-if-identified"] = holds
    if not found.verdict.startswith("not identifiable"):  # its interval is its whole range
        made["covered"] = holds
    scale = max(abs(truth), 0.1 * found.bounds[1])  # a centre of mass may be in the middle
    return made | {
        "error-percent": 100 * abs(found.value - truth) / scale,
        "interval-percent": 100 * (found.high - found.low) / 2 / scale,
    }
