"""`carom bench robot-hits --data DIR`: real strikes of a robot on a box, ten to learn from, the rest to predict."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.impact_accuracy import first_of, score_rows
from carom.compare import Lesson
from carom.compare.ends import motion_errors, recorded_ends
from carom.compare.simulators import hybrid_simulator, mujoco_simulator
from carom.core.errors import CaromError
from carom.core.work import Rows
from carom.engines.contract import Simulator
from carom.recipes.bases import make_bases, paper_base
from carom.recipes.strikes import fixed_by_slides, held_by, slides_of, usable_impacts
from carom.recordings import Recordings, read, scene_of
from carom.recordings.formats.header import HEADER_NAME
from carom.state import Impacts

TRAIN = 10
SETTLE = 0.030  #: [s] outcomes are read 30 ms after first motion, from a fit over 30 to 150 ms, as published scores are


def _folders(data: Path) -> list[Path]:
    """The recordings folders: those below `data`, or `data` itself."""
    found = [p.parent for p in sorted(data.glob(f"*/{HEADER_NAME}"))]
    if not found and not (data / HEADER_NAME).is_file():
        raise CaromError(f"{data} holds no recordings folder: expected {data}/NAME/{HEADER_NAME}")
    return found or [data]


def _work(o: Options) -> Work:
    """Every folder of recordings is a setting; each draw learns from ten other strikes of it."""
    load = lru_cache(maxsize=1)(_load)
    return [
        (f"{folder.name}/{draw}{ending}", partial(piece, folder, load, draw, o))
        for folder in _folders(o.data)
        for draw in range(o.draws)
        for ending, piece in (("", _draw), ("/end", _motion))
    ]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        "Real recordings: a KUKA iiwa 7 strikes a resting box (EPFL LASA, epfl-lasa/air_hockey).",
        f"{TRAIN} strikes to learn from, the rest to predict, {o.draws} draws; mean and standard deviation over "
        f"draws; base models from {o.samples} simulated impacts per teacher.",
        "Outcomes: value at 30 ms of a quadratic fit over 30 to 150 ms after first motion.",
        "Whole motion: error at the end of each record, from what was known before contact. A box that had come to "
        "rest and is then moved by something else (24 of 220 records) is compared where it rested; the rows "
        "last-sample-... compare the last sample regardless.",
    )


BENCHMARK = Benchmark(
    "robot-hits",
    draws=10,
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


def _draw(folder: Path, load: Load, draw: int, o: Options) -> Rows:
    name, (recordings, impacts) = folder.name, load(folder)
    scene = scene_of(recordings)
    place = o.out / "models" / f"robot-hits-{name}"
    bases = make_bases(scene, place, o.samples, o.seed, o.threads, o.progress)
    paper = paper_base(scene, place, o.samples, o.seed, o.threads, o.progress)
    train, test = _split(impacts, o.seed, draw)
    lesson = Lesson(scene, train, bases, paper, fixed_by_slides(first_of(recordings, train)), o.seed + draw)
    return score_rows(lesson, test, name, draw)


def _split(impacts: Impacts, seed: int, draw: int) -> tuple[Impacts, Impacts]:
    order = np.random.default_rng([seed, draw]).permutation(len(impacts))
    return impacts[order[:TRAIN]], impacts[order[TRAIN:]]


def _motion(folder: Path, load: Load, draw: int, o: Options) -> Rows:
    """Whole motions by calibrated MuJoCo and by the hybrid, both learned from the same ten strikes."""
    name, (recordings, impacts) = folder.name, load(folder)
    place = o.out / "models" / f"robot-hits-{name}"
    bases = make_bases(scene_of(recordings), place, o.samples, o.seed, o.threads, o.progress)
    train, test = _split(impacts, o.seed, draw)
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
