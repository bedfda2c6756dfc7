"""`carom bench impact-accuracy` (Fig. 4, Table II of CLASH): accuracy on stand-in realities after ten strikes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.results import summarise
from carom.bench.tables import DIAGNOSTIC
from carom.compare import ABLATIONS, METHODS, SIMPLE, Lesson, compare
from carom.compare.metrics import relative_error, summary
from carom.core.work import Rows
from carom.learn import BaseModel, shipped_bases
from carom.reality import (
    BULLET_SETTINGS,
    SETTINGS,
    BulletReality,
    bullet_missing,
    bullet_standin,
    sample_commands,
    standin,
)
from carom.recipes.bases import paper_base
from carom.recipes.strikes import fixed_by_slides, usable_impacts
from carom.recordings import Recordings, read, scene_of
from carom.recordings.formats.header import HEADER_NAME
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Impacts

TRAIN, TEST = 10, 100
SPARE = 10  #: further strikes in Bullet, in the place of those that the recordings cannot tell
MJX_DRAWS = 1
AGAIN = "again"  #: of strikes carried out twice: what nobody can predict from what was recorded
SHAPE_SETTING = "nylon-low"  #: the ground and material on which the three shapes are compared


@dataclass(frozen=True)
class Case:
    """A reality to predict: one of the lab's settings with one of its shapes, or a setting in Bullet with its own."""

    setting: str
    shape: str = ""  #: empty: made with Bullet

    @property
    def label(self) -> str:
        """What the results call it."""
        return f"{self.setting}, {self.shape}" if self.shape else self.setting

    @property
    def key(self) -> str:
        """What the finished pieces call it."""
        return f"{self.setting}/{self.shape}" if self.shape else self.setting


def cases() -> tuple[Case, ...]:
    """Six settings of the semi-cylinder, two more shapes, and, where the extra is there, the settings in Bullet."""
    lab = (*((s, "semi-cylinder") for s in SETTINGS), (SHAPE_SETTING, "square"), (SHAPE_SETTING, "triangle"))
    return (*(Case(*one) for one in lab), *(Case(name) for name in ([] if bullet_missing() else BULLET_SETTINGS)))


def _work(o: Options) -> Work:
    """All cases; every draw is a new set of training and test strikes of the same reality."""
    every = [(case, draw) for case in cases() for draw in range(o.draws)]
    learned = [(f"{case.key}/{draw}", partial(_draw, case, draw, o)) for case, draw in every]
    again = [(f"{case.key}/{draw}/{AGAIN}", partial(_again, case, draw, o)) for case, draw in every if not case.shape]
    return [*learned, *again]


def _left_out() -> str:
    """One line about the settings that cannot be run here; empty if all can."""
    why = bullet_missing()
    return f"Left out: the {len(BULLET_SETTINGS)} settings in Bullet ({why})." if why else ""


def _notes(o: Options) -> tuple[str, ...]:
    bullet = (
        "bullet-...: stand-in realities in PyBullet (not MuJoCo, not a laboratory): hard and soft contacts, blocks on "
        "feet, masses off centre, light, held and flat strikers, simulated motion capture; each with its own shape."
    )
    again = (
        f"{DIAGNOSTIC}: ... {AGAIN}: no prediction. The reality itself carries out each test strike once more, from "
        "what was recorded of it before contact, without its own scatter. The tracker's noise is in both. What is "
        "short of 1 there nobody can predict."
    )
    return (
        "Stand-in realities (not MuJoCo, not a laboratory): rigid impact with friction, restitution that depends "
        "on speed, mass off centre, scatter, compliant striker, simulated motion capture.",
        _left_out() or bullet,
        *(() if bullet_missing() else (again,)),
        f"{TRAIN} strikes to learn from, {TEST} others to predict, {o.draws} draws; mean and standard deviation over "
        f"draws; Carom's base models are those it comes with, the paper's is made from {o.samples} simulated impacts.",
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
    """Adds the means over the six settings, and over those in Bullet, of each draw."""
    six = tuple(f"{s}, semi-cylinder" for s in SETTINGS)
    return values + _means(values, "mean of six", six) + _means(values, "mean of bullet", tuple(BULLET_SETTINGS))


def _means(values: Rows, name: str, settings: tuple[str, ...]) -> Rows:
    own: dict[tuple[str, str, int], list[float]] = {}
    for v in values:
        if v["setting"] in settings:
            own.setdefault((v["method"], v["metric"], v["draw"]), []).append(v["value"])
    return [
        {"setting": name, "method": method, "metric": metric, "value": float(np.mean(own[method, metric, draw]))}
        for method, metric, draw in sorted(own)
    ]


def _draw(case: Case, draw: int, o: Options) -> Rows:
    """All methods on one draw of strikes."""
    recordings = read(strikes_of(case, draw, o))
    impacts = usable_impacts(recordings)
    scene, bases, paper = _models(case, recordings, o)
    train, test = impacts[np.arange(TRAIN)], impacts[np.arange(TRAIN, min(TRAIN + TEST, len(impacts)))]
    lesson = Lesson(scene, train, bases, paper, fixed_by_slides(first_of(recordings, train)), o.seed)
    if not case.shape:
        return score_rows(lesson, test, case.label, draw, methods=(*SIMPLE, "carom"))
    return score_rows(lesson, test, case.label, draw)


def _again(case: Case, draw: int, o: Options) -> Rows:
    """The test strikes carried out once more by the same reality, from what was recorded of them before contact."""
    recordings = read(strikes_of(case, draw, o))
    impacts = usable_impacts(recordings)
    test = impacts[np.arange(TRAIN, min(TRAIN + TEST, len(impacts)))]
    with TemporaryDirectory() as place:
        folder = _in_bullet(case, o).again(test.strikes, Path(place) / "again", seed=o.seed + 2000 + draw)
        second = usable_impacts(read(folder))
    rows = [int(name.removeprefix("hit_").removesuffix(".csv")) for name in second.names]
    k = scene_of(recordings).gyration_radius
    found = summary(relative_error(second.post, test.post[rows], k))
    label = f"{DIAGNOSTIC}: {case.label} {AGAIN}"
    return [{"setting": label, "method": "reality", "metric": m, "value": v, "draw": draw} for m, v in found.items()]


def strikes_of(case: Case, draw: int, o: Options) -> Path:
    """The folder with the recordings of this draw; the strikes are carried out if that has not been done."""
    folder = o.out / "strikes" / f"{case.key}-{draw}".replace("/", "-")
    if not (folder / HEADER_NAME).is_file():
        reality = standin(case.setting, case.shape, seed=o.seed + 1) if case.shape else _in_bullet(case, o)
        count = TRAIN + TEST + (0 if case.shape else SPARE)
        commands = sample_commands(reality.shape, count, np.random.default_rng([o.seed, draw]))
        reality.execute(commands, folder, seed=o.seed + 1000 + draw)
    return folder


def _in_bullet(case: Case, o: Options) -> BulletReality:
    return bullet_standin(case.setting, seed=o.seed + 1)


def _models(
    case: Case, recordings: Recordings, o: Options
) -> tuple[StrikeScene, tuple[BaseModel, ...], BaseModel | None]:
    """The scene of a case and its base models, those that come with Carom; the paper's beside them for the lab's."""
    if not case.shape:
        scene = scene_of(recordings)
        return scene, shipped_bases(scene), None
    scene = table_one(scene_of(recordings), case.shape)
    paper = paper_base(scene, o.out / "models" / case.shape, o.samples, o.seed, o.threads, o.progress)
    return scene, shipped_bases(scene), paper


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
