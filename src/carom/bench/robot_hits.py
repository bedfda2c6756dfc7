"""`carom bench robot-hits --data DIR`: real strikes of a robot on a box, ten to learn from, others to predict.

Split at random, and in time (`-late`): strikes drift, and to learn from early ones and predict late ones is what users
do. There, and along the learning curve, only the cheap methods stand beside Carom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.impact_accuracy import first_of, score_rows
from carom.compare import SIMPLE, Lesson
from carom.compare.ends import motion_errors, recorded_ends
from carom.compare.simulators import hybrid_simulator, mujoco_simulator
from carom.core.errors import CaromError
from carom.core.work import Rows
from carom.engines.contract import Simulator
from carom.learn import shipped_bases
from carom.recipes.bases import paper_base
from carom.recipes.strikes import fixed_by_slides, held_by, slides_of, usable_impacts
from carom.recordings import Recordings, read, scene_of
from carom.recordings.formats.header import HEADER_NAME
from carom.state import Impacts

TRAIN = 10
CURVE = (3, 5, 20, 30)  #: further numbers of strikes to learn from
EARLY, LATE = 70, 40  #: of the split in time: learn from the first, predict the last
SETTLE = 0.030  #: [s] outcomes are read 30 ms after first motion, from a fit over 30 to 150 ms, as published scores are


def _folders(data: Path) -> list[Path]:
    """The recordings folders: those below `data`, or `data` itself."""
    found = [p.parent for p in sorted(data.glob(f"*/{HEADER_NAME}"))]
    if not found and not (data / HEADER_NAME).is_file():
        raise CaromError(f"{data} holds no recordings folder: expected {data}/NAME/{HEADER_NAME}")
    return found or [data]


@dataclass(frozen=True)
class _Split:
    """Which strikes are learned from, and which are predicted."""

    count: int = TRAIN  #: to learn from
    late: bool = False  #: from the first ones, and the last ones are predicted

    def setting(self, folder: Path) -> str:
        name = f"{folder.name}-late" if self.late else folder.name
        return name if self.count == TRAIN else f"{name}, n = {self.count}"

    def __call__(self, impacts: Impacts, seed: int, draw: int) -> tuple[Impacts, Impacts]:
        rng = np.random.default_rng([seed, draw])
        if not self.late:
            order = rng.permutation(len(impacts))
            return impacts[order[: self.count]], impacts[order[max(self.count, TRAIN) :]]
        order = np.argsort(impacts.names)  # files are numbered in the order of recording
        early = min(EARLY, len(order) - LATE)
        if early < self.count:
            raise CaromError(f"{len(impacts)} usable strikes are too few to learn early and predict late ones")
        return impacts[order[rng.permutation(early)[: self.count]]], impacts[order[-LATE:]]


def _work(o: Options) -> Work:
    """Every folder of recordings is a setting, split in two ways; each draw learns from ten other strikes of it."""
    load = lru_cache(maxsize=1)(_load)
    pieces: list[tuple[str, Callable[[], Rows]]] = []
    for folder in _folders(o.data):
        for split in (_Split(), _Split(late=True), *(_Split(n) for n in CURVE)):
            pieces += [
                (f"{split.setting(folder)}/{i}", partial(_draw, folder, load, split, i, o)) for i in range(o.draws)
            ]
        pieces += [(f"{folder.name}/{draw}/end", partial(_motion, folder, load, draw, o)) for draw in range(o.draws)]
    return pieces


def _notes(o: Options) -> tuple[str, ...]:
    return (
        "Real recordings: a KUKA iiwa 7 strikes a resting box (EPFL LASA, epfl-lasa/air_hockey).",
        f"{TRAIN} strikes to learn from (n = others in the learning curve), the rest to predict, {o.draws} draws; mean "
        "and standard deviation over draws. Carom's base models are those it comes with, the paper's is made from "
        f"{o.samples} simulated impacts.",
        f"Settings -late: learned from strikes among the first {EARLY}, tested on the last {LATE}. The strikes drift.",
        "The sizes of Carom's corrections are the same for all recordings. They were chosen looking at these figures "
        "and at those of the stand-ins: other recordings may be predicted less well.",
        "Outcomes: value at 30 ms of a quadratic fit over 30 to 150 ms after first motion.",
        "Whole motion: error at the end of each record, from what was known before contact. A box that had come to "
        "rest and is then moved by something else (24 of 220 records) is compared where it rested; the rows "
        "last-sample-... compare the last sample regardless.",
    )


BENCHMARK = Benchmark(
    "robot-hits",
    draws=12,
    samples=100_000,
    data="a folder of recordings folders",
    settings=lambda o: {"draws": o.draws, "samples": o.samples, "seed": o.seed, "train": TRAIN, "settle": SETTLE},
    work=_work,
    notes=_notes,
)


def _load(folder: Path) -> tuple[Recordings, Impacts]:
    recordings = read(folder)
    return recordings, usable_impacts(recordings, settle=SETTLE)


Load = Callable[[Path], tuple[Recordings, Impacts]]


def _draw(folder: Path, load: Load, split: _Split, draw: int, o: Options) -> Rows:
    recordings, impacts = load(folder)
    scene = scene_of(recordings)
    bases = shipped_bases(scene)
    train, test = split(impacts, o.seed, draw)
    fixed = fixed_by_slides(first_of(recordings, train))
    if split != _Split():  # the others take half a minute and say nothing new there
        lesson = Lesson(scene, train, bases, None, fixed, o.seed + draw)
        return score_rows(lesson, test, split.setting(folder), draw, methods=(*SIMPLE, "carom"))
    place = o.out / "models" / f"robot-hits-{folder.name}"
    paper = paper_base(scene, place, o.samples, o.seed, o.threads, o.progress)
    return score_rows(Lesson(scene, train, bases, paper, fixed, o.seed + draw), test, split.setting(folder), draw)


def _motion(folder: Path, load: Load, draw: int, o: Options) -> Rows:
    """Whole motions by calibrated MuJoCo and by the hybrid, both learned from the same ten strikes."""
    name, (recordings, impacts) = folder.name, load(folder)
    bases = shipped_bases(scene_of(recordings))
    train, test = _Split()(impacts, o.seed, draw)
    learned_from = first_of(recordings, train)
    slides = slides_of(learned_from)
    lesson = Lesson(bases[0].scene, train, bases, None, held_by(slides), o.seed + draw, slides)
    ends = recorded_ends(recordings, test)
    engines: dict[str, Simulator] = {
        "mujoco": mujoco_simulator(lesson, threads=o.threads),
        "hybrid": hybrid_simulator(lesson, learned_from, threads=o.threads),
    }
    return [
        {"setting": name, "method": method, "metric": metric, "value": value, "draw": draw}
        for method, engine in engines.items()
        for metric, value in motion_errors(engine, test, ends).items()
    ]
