"""`carom bench recovery`: simulated tosses with known parameters; are they found again, and do intervals hold them?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.simulated_tosses import NOISE, toss
from carom.core.work import Rows
from carom.identify.result import CONFIDENCE
from carom.identify.tosses.result import identify_motions
from carom.identify.tosses.search import RECIPE
from carom.scenes.parameters import FREE

TOSSES = 8
NEAR = 0.05  #: relative error that counts as found
STATED = 0.1  #: half width of an interval, relative, up to which a parameter counts as identifiable
#: what is true in a trial is drawn evenly from these (those marked True: by their logarithm)
RANGES = {
    "friction": (0.15, 0.4, False),
    "stiffness": (6e3, 4e4, True),
    "damping": (60.0, 250.0, True),
    "inertia_scale": (0.85, 1.25, False),
    "com_offset": (0.003, 0.009, False),
    "face_friction": (0.1, 0.3, False),
    "length_scale": (0.97, 1.01, False),
    "gravity": (9.5, 9.85, False),
}
UNSEEN = "mass_scale"  #: no toss onto a board that does not give shows the mass


def _settings(o: Options) -> dict[str, Any]:
    return {"seed": o.seed, "tosses": TOSSES, "noise": NOISE, "ranges": RANGES, "recipe": RECIPE}


def _work(o: Options) -> Work:
    """Every trial draws a truth, simulates tosses with it, and identifies."""
    return [(str(trial), partial(_trial, trial, o.seed, o.threads)) for trial in range(o.draws)]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"Simulated: {o.draws} trials, each with other true parameters (drawn from src/carom/bench/recovery.py's "
        f"ranges) and {TOSSES} tosses of a cube whose heavy side is not known, seen with a noise of "
        f"{1e3 * NOISE[0]:.2g} mm and {np.degrees(NOISE[1]):.2g} degrees per sample. Starts are estimated from the "
        "flight, as with real recordings.",
        f"within-5-percent and covered: shares of the trials in which the estimate is within 5 % of the truth, and "
        f"in which the stated {100 * CONFIDENCE:.0f} % interval holds it. identified: share in which Carom calls "
        "the parameter identified; within-5-percent-if-stated: of the trials whose stated interval is no wider "
        f"than {100 * STATED:.0f} % either way. gravity and length_scale have no such row: their defaults are "
        "within 5 %. What is called not identifiable does not count as covered.",
        f"refused: share of the trials in which {UNSEEN}, which no such toss shows, is called not identifiable.",
    )


BENCHMARK = Benchmark("recovery", draws=100, settings=_settings, work=_work, notes=_notes)


def truth_of(trial: int, seed: int) -> dict[str, float]:
    """What is true in a trial."""
    rng = np.random.default_rng([seed, trial, 41])
    drawn = {}
    for name, (low, high, log) in RANGES.items():
        share = rng.random()
        drawn[name] = float(low * (high / low) ** share if log else low + (high - low) * share)
    return drawn


def _can_be_missed(name: str) -> bool:
    """Whether a parameter left at its default would be more than `NEAR` off somewhere in its range."""
    low, high, _ = RANGES[name]
    return max(abs(FREE[name].default - low) / low, abs(FREE[name].default - high) / high) > NEAR


def _trial(trial: int, seed: int, threads: int) -> Rows:
    truth = truth_of(trial, seed)
    motions = toss(TOSSES, truth, seed=1_000_000 * seed + trial).motions
    found, _ = identify_motions(motions, names=(*RANGES, UNSEEN), seed=seed + trial, threads=threads)
    rows: Rows = []

    def add(name: str, metric: str, value: float) -> None:
        rows.append({"setting": name, "method": "carom-cma", "metric": metric, "value": value})

    for e in found.estimates:
        if e.name == UNSEEN:
            add(e.name, "refused", float(e.verdict.startswith("not identifiable")))
            continue
        error = abs(e.value - truth[e.name]) / truth[e.name]
        add(e.name, "identified", float(e.verdict == "identified"))
        add(e.name, "error-percent", 100 * error)
        if not e.verdict.startswith("not identifiable"):  # its interval is its whole range
            add(e.name, "covered", float(e.low <= truth[e.name] <= e.high))
        if _can_be_missed(e.name):
            add(e.name, "within-5-percent", float(error < NEAR))
            if e.high - e.low < 2 * STATED * truth[e.name]:
                add(e.name, "within-5-percent-if-stated", float(error < NEAR))
        add(e.name, "interval-percent", 100 * (e.high - e.low) / 2 / truth[e.name])
    return rows
