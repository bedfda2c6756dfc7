"""`carom bench planning` (Table III of CLASH): strikes planned in a simulator, carried out on stand-in realities."""

from __future__ import annotations

from functools import partial

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.impact_accuracy import SHAPE_SETTING, table_one
from carom.compare import Lesson
from carom.compare.simulators import mujoco_simulator, scratch_simulator
from carom.core.work import Rows
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


def _work(o: Options) -> Work:
    """Three shapes, five targets; each repeat learns from ten other strikes and plans anew."""
    return [
        (f"{shape}/{draw}/{method}", partial(_repeat, method, shape, draw, o))
        for shape in SHAPES
        for draw in range(o.draws)
        for method in METHODS
    ]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"Stand-in realities ({SHAPE_SETTING}; not MuJoCo, not a laboratory). {TARGETS} targets per shape, each "
        f"reachable in that reality, {o.draws} repeats: every repeat learns from {TRAIN} other strikes, plans anew "
        f"with CMA-ES and {BUDGET} simulated strikes, and is carried out with its own scatter.",
        "mujoco: contact parameters by CMA-ES on the same strikes, ground friction from the slides. "
        "hybrid-scratch: impact network trained on the ten strikes only. Both hybrids slide on the same patch.",
    )


BENCHMARK = Benchmark(
    "planning",
    draws=5,
    samples=60_000,
    settings=lambda o: {"draws": o.draws, "samples": o.samples, "seed": o.seed, "train": TRAIN, "budget": BUDGET},
    work=_work,
    notes=_notes,
)


def learned(o: Options, shape: str, draw: int, *, setting: str = SHAPE_SETTING) -> tuple[Lesson, Recordings]:
    """Ten strikes of the stand-in for one repeat, as recordings and as a lesson to learn from."""
    reality = standin(setting, shape, seed=o.seed + 1)
    folder = o.out / "planning" / f"{setting}-{shape}-{draw}"
    if not (folder / "recordings.yaml").is_file():
        rng = np.random.default_rng([o.seed, draw, 7])
        reality.execute(sample_commands(reality.shape, TRAIN, rng), folder, seed=o.seed + 2000 + draw)
    recordings = read(folder)
    scene = table_one(scene_of(recordings), shape)
    bases = make_bases(scene, o.out / "models" / shape, o.samples, o.seed, o.threads, o.progress)
    slides = slides_of(recordings)
    impacts = usable_impacts(recordings)
    return Lesson(bases[0].scene, impacts, bases, None, held_by(slides), o.seed + draw, slides), recordings


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


def _repeat(method: str, shape: str, draw: int, o: Options) -> Rows:
    """One method's plans for all targets, learned from one set of strikes, and what came of them."""
    reality = standin(SHAPE_SETTING, shape, seed=o.seed + 1)
    lesson, recordings = learned(o, shape, draw)
    engine, space = _engine(method, lesson, recordings, o.threads), strike_space(lesson.scene, np.zeros(3))
    rows: Rows = []
    for number, wanted in enumerate(reachable_targets(space, shape, o.seed)):
        plan = plan_strike(engine, space, wanted, method="cma", budget=BUDGET, seed=o.seed + draw)
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
