"""`carom bench robot-hits --data DIR`: real strikes of a robot on a box, ten to learn from, the rest to predict."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from carom.bench.impact_accuracy import first_of, score_rows
from carom.bench.results import Results, new_results, summarise
from carom.compare import Lesson
from carom.compare.ends import motion_errors, recorded_ends
from carom.compare.simulators import hybrid_simulator, mujoco_simulator
from carom.core.errors import CaromError
from carom.core.progress import Progress
from carom.core.work import Checkpoint, Rows, run_pieces
from carom.engines.contract import Simulator
from carom.recipes.bases import make_bases, paper_base
from carom.recipes.strikes import fixed_by_slides, held_by, slides_of, usable_impacts
from carom.recordings import Recordings, read, scene_of
from carom.recordings.formats.header import HEADER_NAME
from carom.state import Impacts

TRAIN = 10
SETTLE = 0.030  #: [s] outcomes are read 30 ms after first motion, from a fit over 30 to 150 ms, as published scores are


def run(
    *, data: Path | None, draws: int | None, samples: int | None, out: Path, seed: int, threads: int, progress: Progress
) -> Results:
    """Every folder of recordings below `data` is a setting; each draw learns from ten other strikes of it."""
    if data is None:
        raise CaromError(
            "robot-hits needs --data DIR: a folder of recordings folders (see CONTRIBUTING.md for where to get them)"
        )
    folders = [p.parent for p in sorted(data.glob(f"*/{HEADER_NAME}"))] or (
        [data] if (data / HEADER_NAME).is_file() else []
    )
    if not folders:
        raise CaromError(f"{data} holds no recordings folder: expected {data}/NAME/{HEADER_NAME}")
    draws, samples = draws or 10, samples or 100_000
    settings = {"draws": draws, "samples": samples, "seed": seed, "train": TRAIN, "settle": SETTLE}
    pieces = Checkpoint(out / "robot-hits.jsonl", settings)
    given = (samples, out, seed, threads, progress)
    load = lru_cache(maxsize=1)(_load)
    work: list[tuple[str, Callable[[], Rows]]] = []
    for folder in folders:
        for draw in range(draws):
            work.append((f"{folder.name}/{draw}", partial(_draw, folder, load, draw, *given)))
            work.append((f"{folder.name}/{draw}/end", partial(_motion, folder, load, draw, *given)))
    values, seconds = run_pieces(pieces, work, progress)
    return new_results(
        "robot-hits",
        command=f"carom bench robot-hits --data DIR --draws {draws} --samples {samples}",
        rows=summarise(values),
        seconds=seconds,
        notes=(
            "Real recordings: a KUKA iiwa 7 strikes a resting box (EPFL LASA, epfl-lasa/air_hockey).",
            f"{TRAIN} strikes to learn from, the rest to predict, {draws} draws; mean and standard deviation over "
            f"draws; base models from {samples} simulated impacts per teacher.",
            "Outcomes: value at 30 ms of a quadratic fit over 30 to 150 ms after first motion.",
            "Whole motion: error at the end of each record, from what was known before contact. A box that had come to "
            "rest and is then moved by something else (24 of 220 records) is compared where it rested; the rows "
            "last-sample-... compare the last sample regardless.",
        ),
    )


def _load(folder: Path) -> tuple[Recordings, Impacts]:
    recordings = read(folder)
    return recordings, usable_impacts(recordings, settle=SETTLE)


Load = Callable[[Path], tuple[Recordings, Impacts]]


def _draw(
    folder: Path, load: Load, draw: int, samples: int, out: Path, seed: int, threads: int, progress: Progress
) -> Rows:
    name, (recordings, impacts) = folder.name, load(folder)
    scene = scene_of(recordings)
    place = out / "models" / f"robot-hits-{name}"
    bases = make_bases(scene, place, samples, seed, threads, progress)
    paper = paper_base(scene, place, samples, seed, threads, progress)
    train, test = _split(impacts, seed, draw)
    lesson = Lesson(scene, train, bases, paper, fixed_by_slides(first_of(recordings, train)), seed + draw)
    return score_rows(lesson, test, name, draw)


def _split(impacts: Impacts, seed: int, draw: int) -> tuple[Impacts, Impacts]:
    order = np.random.default_rng([seed, draw]).permutation(len(impacts))
    return impacts[order[:TRAIN]], impacts[order[TRAIN:]]


def _motion(
    folder: Path, load: Load, draw: int, samples: int, out: Path, seed: int, threads: int, progress: Progress
) -> Rows:
    """Whole motions by calibrated MuJoCo and by the hybrid, both learned from the same ten strikes."""
    name, (recordings, impacts) = folder.name, load(folder)
    bases = make_bases(scene_of(recordings), out / "models" / f"robot-hits-{name}", samples, seed, threads, progress)
    train, test = _split(impacts, seed, draw)
    learned_from = first_of(recordings, train)
    slides = slides_of(learned_from)
    lesson = Lesson(bases[0].scene, train, bases, None, held_by(slides), seed + draw, slides)
    ends = recorded_ends(recordings, test)
    engines: dict[str, Simulator] = {
        "mujoco": mujoco_simulator(lesson, threads=threads),
        "hybrid": hybrid_simulator(lesson, learned_from, threads=threads),
    }
    return [
        {"setting": name, "method": method, "metric": metric, "value": value, "draw": draw}
        for method, engine in engines.items()
        for metric, value in motion_errors(engine, test, ends).items()
    ]
