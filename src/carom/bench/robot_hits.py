"""`carom bench robot-hits --data DIR`: real strikes of a robot on a box, ten to learn from, the rest to predict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from carom.bench.impact_accuracy import first_of, score_rows
from carom.bench.results import Checkpoint, Results, new_results, summarise
from carom.errors import CaromError
from carom.evaluate import Lesson
from carom.evaluate.folders import make_bases, paper_base
from carom.evaluate.stages import fixed_by_slides, usable_impacts
from carom.recordings import Recordings, read, scene_of
from carom.recordings.header import HEADER_NAME
from carom.state import Impacts

TRAIN = 10
SETTLE = 0.030  #: [s] outcomes are read 30 ms after first motion, from a fit over 30 to 150 ms, as published scores are
Progress = Callable[[str, int, int], None]


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
    seconds, values = 0.0, []
    for number, folder in enumerate(folders):
        loaded: tuple[Recordings, Impacts] | None = None
        for draw in range(draws):
            rows = pieces.done(f"{folder.name}/{draw}")
            if rows is None:
                loaded = loaded or _load(folder)
                start = perf_counter()
                rows = _draw(folder.name, *loaded, draw, samples, out, seed, threads, progress)
                rows.append({"setting": "", "method": "", "metric": "seconds", "value": perf_counter() - start})
                pieces.save(f"{folder.name}/{draw}", rows)
            seconds += sum(r["value"] for r in rows if r["metric"] == "seconds")
            values += [r for r in rows if r["metric"] != "seconds"]
            progress("folders and draws", number * draws + draw + 1, len(folders) * draws)
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
        ),
    )


def _load(folder: Path) -> tuple[Recordings, Impacts]:
    recordings = read(folder)
    return recordings, usable_impacts(recordings, settle=SETTLE)


def _draw(
    name: str, recordings: Recordings, impacts: Impacts, draw: int, samples: int, out: Path, seed: int, threads: int,
    progress: Progress,
) -> list[dict[str, Any]]:  # fmt: skip
    scene = scene_of(recordings)
    place = out / "models" / f"robot-hits-{name}"
    bases = make_bases(scene, place, samples, seed, threads, progress)
    paper = paper_base(scene, place, samples, seed, threads, progress)
    order = np.random.default_rng([seed, draw]).permutation(len(impacts))
    train, test = impacts[order[:TRAIN]], impacts[order[TRAIN:]]
    lesson = Lesson(scene, train, bases, paper, fixed_by_slides(first_of(recordings, train)), seed + draw)
    return score_rows(lesson, test, name, draw)
