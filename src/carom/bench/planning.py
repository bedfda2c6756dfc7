"""`carom bench planning` (Table III of CLASH): strikes planned in a simulator, carried out on stand-in realities."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from carom.bench.impact_accuracy import SHAPE_SETTING, table_one
from carom.bench.results import Results, new_results, summarise
from carom.compare import Lesson
from carom.compare.simulators import mujoco_simulator, scratch_simulator
from carom.core.progress import Progress
from carom.core.work import Checkpoint, Rows, run_pieces
from carom.engines.contract import Simulator
from carom.hybrid.model import HybridModel, make_hybrid
from carom.plan import StrikeSpace, plan_strike, strike_space
from carom.reality import sample_commands, standin
from carom.recipes.bases import make_bases
from carom.recipes.strikes import held_by, slides_of, usable_impacts
from carom.recordings import Recordings, read, scene_of
from carom.state import Array, wrap_angle

SHAPES = ("semi-cylinder", "square", "triangle")
METHODS = ("mujoco", "hybrid-scratch", "hybrid")
TRAIN, TARGETS = 10, 5
BUDGET = 1000  #: simulated strikes per plan, the same for every simulator


def run(
    *, draws: int | None, samples: int | None, out: Path, seed: int, threads: int, progress: Progress, **_: Any
) -> Results:
    """Three shapes, five targets; each repeat learns from ten other strikes and plans anew."""
    draws, samples = draws or 5, samples or 60_000
    settings = {"draws": draws, "samples": samples, "seed": seed, "train": TRAIN, "budget": BUDGET}
    pieces = Checkpoint(out / "planning.jsonl", settings)
    work = [
        (f"{shape}/{draw}/{method}", partial(_repeat, method, shape, draw, samples, out, seed, threads, progress))
        for shape in SHAPES
        for draw in range(draws)
        for method in METHODS
    ]
    values, seconds = run_pieces(pieces, work, progress)
    return new_results(
        "planning",
        command=f"carom bench planning --draws {draws} --samples {samples}",
        rows=summarise(values),
        seconds=seconds,
        notes=(
            f"Stand-in realities ({SHAPE_SETTING}; not MuJoCo, not a laboratory). {TARGETS} targets per shape, each "
            f"reachable in that reality, {draws} repeats: every repeat learns from {TRAIN} other strikes, plans anew "
            f"with CMA-ES and {BUDGET} simulated strikes, and is carried out with its own scatter.",
            "mujoco: contact parameters by CMA-ES on the same strikes, ground friction from the slides. "
            "hybrid-scratch: impact network trained on the ten strikes only. Both hybrids slide on the same patch.",
        ),
    )


def learned(
    shape: str,
    draw: int,
    samples: int,
    out: Path,
    seed: int,
    threads: int,
    progress: Progress,
    *,
    setting: str = SHAPE_SETTING,
) -> tuple[Lesson, Recordings]:
    """Ten strikes of the stand-in for one repeat, and what is learned from."""
    reality = standin(setting, shape, seed=seed + 1)
    folder = out / "planning" / f"{setting}-{shape}-{draw}"
    if not (folder / "recordings.yaml").is_file():
        rng = np.random.default_rng([seed, draw, 7])
        reality.execute(sample_commands(reality.shape, TRAIN, rng), folder, seed=seed + 2000 + draw)
    recordings = read(folder)
    scene = table_one(scene_of(recordings), shape)
    bases = make_bases(scene, out / "models" / shape, samples, seed, threads, progress)
    slides = slides_of(recordings)
    impacts = usable_impacts(recordings)
    return Lesson(bases[0].scene, impacts, bases, None, held_by(slides), seed + draw, slides), recordings


def hybrid_of(lesson: Lesson, recordings: Recordings) -> HybridModel:
    """Carom's hybrid for one repeat."""
    return make_hybrid(
        lesson.bases, lesson.train, recordings, fixed=lesson.fixed, slides=lesson.slides, seed=lesson.seed
    )


def _engine(method: str, lesson: Lesson, recordings: Recordings, threads: int) -> Simulator:
    if method == "mujoco":
        return mujoco_simulator(lesson, threads=threads)
    if method == "hybrid-scratch":
        return scratch_simulator(lesson, recordings, threads=threads)
    return hybrid_of(lesson, recordings).simulator("hybrid", threads=threads)


def _repeat(
    method: str, shape: str, draw: int, samples: int, out: Path, seed: int, threads: int, progress: Progress
) -> Rows:
    """One method's plans for all targets, learned from one set of strikes, and what came of them."""
    reality = standin(SHAPE_SETTING, shape, seed=seed + 1)
    lesson, recordings = learned(shape, draw, samples, out, seed, threads, progress)
    engine, space = _engine(method, lesson, recordings, threads), strike_space(lesson.scene, np.zeros(3))
    rows: Rows = []
    for number, wanted in enumerate(reachable_targets(space, shape, seed)):
        plan = plan_strike(engine, space, wanted, method="cma", budget=BUDGET, seed=seed + draw)
        end = reality.truth(plan.commands, seed=1000 * draw + number).rest[0]
        found = {
            "position-error-m": float(np.linalg.norm(end[:2] - wanted[:2])),
            "orientation-error-rad": float(abs(wrap_angle(end[2] - wanted[2]))),
        }
        rows += [{"setting": shape, "method": method, "metric": m, "value": v} for m, v in found.items()]
    return rows


def reachable_targets(space: StrikeSpace, shape: str, seed: int) -> Array:
    """Poses [5, 3] where the stand-in's block comes to rest after random strikes: all within reach."""
    reality = standin(SHAPE_SETTING, shape, seed=seed + 1)
    points = np.random.default_rng([seed, 99]).random((TARGETS, 3))
    return reality.truth(space.commands(points), seed=seed, scatter=False).rest
