"""`carom bench impact-accuracy` (Fig. 4, Table II of CLASH): accuracy on stand-in realities after ten strikes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.results import summarise
from carom.compare import ABLATIONS, METHODS, Lesson, compare
from carom.core.work import Rows
from carom.reality import SETTINGS, sample_commands, standin
from carom.recipes.bases import make_bases, paper_base
from carom.recipes.strikes import fixed_by_slides, usable_impacts
from carom.recordings import Recordings, read, scene_of
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Impacts

TRAIN, TEST = 10, 100
MJX_DRAWS = 1
SHAPE_SETTING = "nylon-low"  #: the ground and material on which the three shapes are compared


def cases() -> tuple[tuple[str, str], ...]:
    """(setting, shape): six settings of the semi-cylinder, and two more shapes."""
    return (*((s, "semi-cylinder") for s in SETTINGS), (SHAPE_SETTING, "square"), (SHAPE_SETTING, "triangle"))


def _work(o: Options) -> Work:
    """Six settings and three shapes; every draw is a new set of training and test strikes of the same reality."""
    return [
        (f"{setting}/{shape}/{draw}", partial(_draw, setting, shape, draw, o))
        for setting, shape in cases()
        for draw in range(o.draws)
    ]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        "Stand-in realities (not MuJoCo, not a laboratory): rigid impact with friction, restitution that depends "
        "on speed, mass off centre, scatter, compliant striker, simulated motion capture.",
        f"{TRAIN} strikes to learn from, {TEST} others to predict, {o.draws} draws; mean and standard deviation over "
        f"draws; base models from {o.samples} simulated impacts per teacher.",
    )


BENCHMARK = Benchmark(
    "impact-accuracy",
    draws=5,
    samples=100_000,
    settings=lambda o: {"draws": o.draws, "samples": o.samples, "seed": o.seed, "train": TRAIN, "test": TEST},
    work=_work,
    notes=_notes,
    rows=lambda values: summarise(_with_means(values)),
)


def _with_means(values: Rows) -> Rows:
    """Adds the mean over the six settings of each draw."""
    six = [f"{s}, semi-cylinder" for s in SETTINGS]
    extra = []
    groups = {(v["method"], v["metric"], v["draw"]) for v in values if v["setting"] in six}
    for method, metric, draw in sorted(groups):
        own = [
            v["value"]
            for v in values
            if (v["method"], v["metric"], v["draw"]) == (method, metric, draw) and v["setting"] in six
        ]
        extra.append({"setting": "mean of six", "method": method, "metric": metric, "value": float(np.mean(own))})
    return values + extra


def _draw(setting: str, shape: str, draw: int, o: Options) -> Rows:
    """All methods on one draw of strikes."""
    reality = standin(setting, shape, seed=o.seed + 1)
    folder = o.out / "strikes" / f"{setting}-{shape}-{draw}"
    if not (folder / "recordings.yaml").is_file():
        rng = np.random.default_rng([o.seed, draw])
        reality.execute(sample_commands(reality.shape, TRAIN + TEST, rng), folder, seed=o.seed + 1000 + draw)
    recordings = read(folder)
    impacts = usable_impacts(recordings)
    scene = table_one(scene_of(recordings), shape)
    place = o.out / "models" / shape
    bases = make_bases(scene, place, o.samples, o.seed, o.threads, o.progress)
    paper = paper_base(scene, place, o.samples, o.seed, o.threads, o.progress)
    train, test = impacts[np.arange(TRAIN)], impacts[np.arange(TRAIN, len(impacts))]
    lesson = Lesson(scene, train, bases, paper, fixed_by_slides(first_of(recordings, train)), o.seed)
    return score_rows(lesson, test, f"{setting}, {shape}", draw)


def table_one(scene: StrikeScene, shape: str) -> StrikeScene:
    """The recorded bodies with the ranges of Table I.

    A striker that is held stiffly moves light and heavy targets alike, so one base model serves all materials:
    the scene is given the built-in block's mass.
    """
    usual = builtin(shape)
    target = replace(scene.target, mass=usual.target.mass)
    return replace(scene, name=shape, target=target, speed=usual.speed, deflection=usual.deflection, arc=usual.arc)


def first_of(recordings: Recordings, train: Impacts) -> Recordings:
    """Only the recordings of the training strikes: nothing may be learned from the others."""
    kept = tuple(t for t in recordings.trajectories if t.name in set(train.names))
    return replace(recordings, trajectories=kept)


def score_rows(
    lesson: Lesson, test: Impacts, setting: str, draw: int, methods: Sequence[str] = (*METHODS, *ABLATIONS)
) -> Rows:
    """Scores of methods as rows of a checkpoint. MJX compiles for half a minute each time: first draws only."""
    methods = [m for m in methods if m != "mjx" or draw < MJX_DRAWS]
    rows: Rows = []
    for score in compare(lesson, test, methods=methods):
        if score.prediction is None:
            continue
        metrics = {**score.metrics, **score.coverage}
        rows += [
            {"setting": setting, "method": score.method, "metric": m, "value": v, "draw": draw}
            for m, v in metrics.items()
        ]
    return rows
