"""`carom bench training-time`: success on a stand-in over the seconds that a policy has been trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, final

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.planning import TRAIN, hybrid_of, learned
from carom.bench.results import Row
from carom.core.work import Rows
from carom.engines.contract import Simulator
from carom.envs import SegmentStarts
from carom.envs.batch import engine_strike, make_batch
from carom.envs.routes import ROUTES
from carom.envs.sb3 import StrikeVecEnv
from carom.hybrid.draws import draws_of
from carom.reality import standin
from carom.reality.standin import StandIn
from carom.recipes.policies import APART, DRAWS, standin_strike
from carom.train import Preset, Training, policy_of, preset_of, run_trials, train
from carom.train.policy import Policy
from carom.train.run import Hooks

#: (stand-in, shape of the block)
SETTINGS: Mapping[str, tuple[str, str]] = {
    "nylon-padded": ("nylon-padded", "semi-cylinder"),
    "nylon-low": ("nylon-low", "semi-cylinder"),
    "nylon-low, square": ("nylon-low", "square"),
    "nylon-low, triangle": ("nylon-low", "triangle"),
}
COMPARED = ("nylon-padded", "nylon-low, square")  #: where the other candidates are trained too
ONCE = ("nylon-low, square", "nylon-low, triangle")  #: trained with one seed by all
#: name of each candidate: its numbers and its library
CANDIDATES: Mapping[str, tuple[Preset, str]] = {
    "quick": (preset_of("quick", "sac"), "sb3"),
    "fast": (preset_of("fast", "sac"), "sb3"),
    "ppo-large": (
        Preset("ppo-large", "ppo", 1024, (64, 64), 2e-3, batch=1024, gamma=0.5, rollout=5, epochs=8, steps=2_000_000),
        "sb3",
    ),
    "quick-sbx": (preset_of("quick", "sac"), "sbx"),
}
CHOSEN = "quick"  #: the candidate that is shown in all settings, with all seeds
FORMER = "fast"  #: compared with all seeds on the first setting
RANDOMISED = f"{CHOSEN}-randomised"  #: the same over draws of what the hybrid is unsure of, where it is least like
MARKS = (10, 20, 30, 45, 60, 90)  #: [s] of processor time
TRIALS = 100
AFTER = 90.0  #: [s] when a training is stopped


def _settings(o: Options) -> dict[str, Any]:
    presets = {name: {**preset.stated(), "library": library} for name, (preset, library) in CANDIDATES.items()}
    return {"seed": o.seed, "marks": MARKS, "trials": TRIALS, "candidates": presets}


def jobs(draws: int) -> list[tuple[str, str, int]]:
    """(candidate, setting, seed) of each training."""
    chosen = [(CHOSEN, on, draw) for on in SETTINGS for draw in range(1 if on in ONCE else draws)]
    known = [name for name, (_, library) in CANDIDATES.items() if library != "sbx" or find_spec("sbx") is not None]
    beside = [(name, COMPARED[0], draw) for draw in range(draws) for name in (RANDOMISED, FORMER)]
    others = [(name, on, 0) for name in known if name != CHOSEN for on in COMPARED]
    return list(dict.fromkeys([*chosen, *beside, *others]))


def _work(o: Options) -> Work:
    return [
        (f"{name}/{on.replace(', ', '-')}/{draw}", partial(_piece, name, on, draw, o))
        for name, on, draw in jobs(o.draws)
    ]


@final
class _Curve:
    """Tries the learner's policy at the marks, on a clock that stops meanwhile."""

    def __init__(self, engine: Simulator, reality: StandIn, seed: int) -> None:
        self.engine, self.reality, self.seed = engine, reality, seed
        self.learner: BaseAlgorithm | None = None
        self.left = list(MARKS)
        self.found: dict[int, tuple[float, float]] = {}  #: by mark: success on the stand-in, in the own simulator
        self.away = self.cpu = self.wall = 0.0

    def begin(self, learner: BaseAlgorithm) -> None:
        """The learner is there, and the clock begins."""
        self.learner, self.cpu, self.wall = learner, process_time(), perf_counter()

    def seconds(self) -> float:
        """Processor time of the training so far [s]."""
        return process_time() - self.cpu - self.away

    def look(self, what: str, done: int, total: int) -> None:
        """As `Progress`: at a mark the policy is tried; after the last the training is stopped."""
        if self.learner is None or not self.left or self.seconds() < self.left[0]:
            return
        mark = max(m for m in self.left if m <= self.seconds())
        start = process_time()
        self.found[mark] = self.rates(policy_of(self.learner))
        self.away += process_time() - start
        self.left = [m for m in self.left if m > mark]
        if mark >= AFTER:
            raise KeyboardInterrupt

    def rates(self, policy: Policy) -> tuple[float, float]:
        """Success over all routes: on the stand-in, and in the simulator it is trained in."""
        scene = self.engine.scene
        means = []
        for strike in (standin_strike(self.reality, seed=self.seed), engine_strike(self.engine)):
            each = [
                run_trials(policy, strike, scene, route, trials=TRIALS, seed=APART + self.seed).rates().success.value
                for route in ROUTES.values()
            ]
            means.append(float(np.mean(each)))
        return means[0], means[1]


def _piece(candidate: str, setting: str, draw: int, o: Options) -> Rows:
    """One training, its policy tried at every mark; from its end on the policy stays what it is."""
    preset, library = CANDIDATES[CHOSEN if candidate == RANDOMISED else candidate]
    on, shape = SETTINGS[setting]
    model, seed = hybrid_of(*learned(o, shape, draw, setting=on)), o.seed + APART * draw
    engine = model.simulator("hybrid", threads=1)
    engines = draws_of(model, DRAWS, seed=o.seed + draw, threads=1) if candidate == RANDOMISED else engine
    curve = _Curve(engine, standin(on, shape, seed=o.seed + 1), seed)
    training = Training(preset.algorithm, preset=preset, library=library, seed=seed)
    whole: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        try:
            policy = train(
                lambda count: StrikeVecEnv(make_batch(engines, SegmentStarts(), count=count, seed=seed)),
                Path(folder),
                training,
                hooks=Hooks(begin=curve.begin),
                progress=curve.look,
            )
        except KeyboardInterrupt:
            if curve.left:  # a person's, not the curve's own
                raise
        else:
            whole = {"training-seconds": curve.seconds(), "transitions": float(policy.made_by["transitions"])}
            whole["wall-seconds"] = perf_counter() - curve.wall
            last = curve.rates(policy)
            curve.found |= dict.fromkeys(curve.left, last)
    return rows_of(setting, candidate, curve.found, whole)


def rows_of(setting: str, candidate: str, found: Mapping[int, tuple[float, float]], whole: Mapping[str, float]) -> Rows:
    """The rows of one training; a mark that one step of the learner jumped over has none."""
    rows = [
        {"setting": f"{setting}, {mark} s", "method": candidate, "metric": metric, "value": value}
        for mark, rates in sorted(found.items())
        for metric, value in zip(("success-rate", "in-simulator-success-rate"), rates, strict=True)
    ]
    return rows + [{"setting": setting, "method": candidate, "metric": k, "value": v} for k, v in whole.items()]


def _notes(o: Options) -> tuple[str, ...]:
    ppo = CANDIDATES["ppo-large"][0]
    return (
        "Success over all three routes of a stand-in (nylon-padded: the hard one; nylon-low: the easy one; not a "
        f"laboratory), semi-cylinder unless another block is named, {TRIALS} trials on each route, after so many "
        f"seconds of training in the hybrid that {TRAIN} other strikes taught. Seconds: processor time of the whole "
        "process, engine and checkpoints included, trials and the learning of the hybrid not; engine and torch have "
        "one thread, so on an idle core it is the wall time. A training that has ended keeps its policy. Mean and "
        "standard deviation over seeds, each with strikes of its own; n is how many.",
        "quick, fast: the presets, SAC. quick-sbx: quick with `--library sbx`. quick-randomised: quick with "
        f"`--randomise`, {DRAWS} draws of what the hybrid is unsure of. ppo-large: PPO with "
        f"{ppo.envs:,} environments, minibatches of {ppo.batch:,}, gamma {ppo.gamma:g}, {ppo.epochs} epochs. Presets "
        "were chosen by success in the policies' own simulators (in-simulator-success-rate).",
        f"training-seconds, wall-seconds: of trainings that ended within {AFTER:.0f} s; wall-seconds are those of a "
        "machine that may have had other work, with the trials in them.",
    )


def remarks(rows: Sequence[Row]) -> tuple[str, ...]:
    """Which candidates a run with `--only` has left out."""
    there = {row.method for row in rows}
    missing = [name for name in dict.fromkeys(name for name, _, _ in jobs(1)) if name not in there]
    return (f"Not run here: {', '.join(missing)}.",) if missing else ()


BENCHMARK = Benchmark("training-time", draws=3, settings=_settings, work=_work, notes=_notes, remarks=remarks)
