"""`carom bench planning` (Table III of CLASH): strikes planned in a simulator, carried out on stand-in realities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.impact_accuracy import SHAPE_SETTING, table_one
from carom.bench.results import summarise
from carom.compare import Lesson
from carom.compare.simulators import mujoco_simulator, scratch_simulator
from carom.core.work import Rows
from carom.engines.contract import Simulator
from carom.hybrid.model import HybridModel, make_hybrid
from carom.learn import shipped_bases
from carom.plan import Plan, StrikeSpace, plan_strike, strike_space
from carom.reality import sample_commands, standin
from carom.recipes.bases import make_bases
from carom.recipes.planning import SearchOptions, search_strike
from carom.recipes.strikes import held_by, slides_of, usable_impacts
from carom.recordings import Recordings, read, scene_of
from carom.state import Array, wrap_angle

SHAPES = ("semi-cylinder", "square", "triangle")
METHODS = ("mujoco", "hybrid-scratch", "hybrid")
TRAIN, TARGETS = 10, 5
BUDGET = 1000  #: simulated strikes per plan, the same for every simulator
SCATTERED = "nylon-scattered"  #: the stand-in whose blows differ from strike to strike
PLACE = "place only"  #: where any yaw will do


def _cases() -> list[tuple[str, str, bool]]:
    """Label of each setting, the stand-in it is tried on, and whether a yaw is asked for."""
    found = [(shape, SHAPE_SETTING, True) for shape in SHAPES]
    found += [(f"{shape}, {PLACE}", SHAPE_SETTING, False) for shape in SHAPES]
    return found + [(f"{shape}, scattered", SCATTERED, True) for shape in SHAPES]


def _work(o: Options) -> Work:
    """Three shapes, five targets; each repeat learns from ten other strikes and plans anew."""
    return [
        (f"{case[0]}/{draw}/{method}", partial(_repeat, method, case, draw, o))
        for case in _cases()
        for draw in range(o.draws)
        for method in METHODS
        if case[0] in SHAPES or method != "hybrid-scratch"
    ]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"Stand-in realities ({SHAPE_SETTING}; not MuJoCo, not a laboratory). {TARGETS} targets per shape, each "
        f"reachable in that reality, {o.draws} repeats: every repeat learns from {TRAIN} other strikes, plans anew "
        f"with CMA-ES and {BUDGET} simulated strikes, and is carried out with its own scatter. {PLACE}: any yaw will "
        f"do. scattered: on {SCATTERED}, whose impulses and frictions scatter by 5 and 3 % from strike to strike.",
        "mujoco: contact parameters by CMA-ES on the same strikes, ground friction from the slides. "
        "hybrid-scratch: impact network trained on the ten strikes only. Both hybrids slide on the same patch. hybrid "
        "plans as `carom plan` does: in the mean over its draws where it is unsure of the plain plan.",
    )


def _with_medians(values: Rows) -> Rows:
    """Adds the median of each metric over all plans: single misses carry a mean away."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for v in values:
        groups.setdefault((v["setting"], v["method"], v["metric"]), []).append(v["value"])
    return values + [
        {"setting": setting, "method": method, "metric": f"median-{metric}", "value": float(np.median(found))}
        for (setting, method, metric), found in groups.items()
    ]


BENCHMARK = Benchmark(
    "planning",
    draws=5,
    settings=lambda o: {"draws": o.draws, "seed": o.seed, "train": TRAIN, "budget": BUDGET},
    work=_work,
    notes=_notes,
    rows=lambda values: summarise(_with_medians(values)),
)


def learned(o: Options, shape: str, draw: int, *, setting: str = SHAPE_SETTING) -> tuple[Lesson, Recordings]:
    """Ten strikes of the stand-in for one repeat, as recordings and as a lesson to learn from.

    With the base models that come with Carom, or, where a benchmark takes `--samples`, with the scene's own.
    """
    reality = standin(setting, shape, seed=o.seed + 1)
    folder = o.out / "planning" / f"{setting}-{shape}-{draw}"
    if not (folder / "recordings.yaml").is_file():
        rng = np.random.default_rng([o.seed, draw, 7])
        reality.execute(sample_commands(reality.shape, TRAIN, rng), folder, seed=o.seed + 2000 + draw)
    recordings = read(folder)
    scene = table_one(scene_of(recordings), shape)
    place = o.out / "models" / shape
    bases = make_bases(scene, place, o.samples, o.seed, o.threads, o.progress) if o.samples else shipped_bases(scene)
    slides = slides_of(recordings)
    impacts = usable_impacts(recordings)
    return Lesson(bases[0].scene, impacts, bases, None, held_by(slides), o.seed + draw, slides), recordings


def hybrid_of(lesson: Lesson, recordings: Recordings) -> HybridModel:
    """Carom's hybrid for one repeat."""
    return make_hybrid(
        lesson.bases, lesson.train, recordings, fixed=lesson.fixed, slides=lesson.slides, seed=lesson.seed
    )


def _plan(
    method: str, lesson: Lesson, recordings: Recordings, space: StrikeSpace, seed: int, threads: int
) -> Callable[[Array], Plan]:
    """What plans with one method."""
    if method == "hybrid":
        hybrid = hybrid_of(lesson, recordings)
        engine, search = hybrid.simulator(threads=threads), SearchOptions(budget=BUDGET)
        return lambda wanted: search_strike(hybrid, engine, space, wanted, search, seed=seed, threads=threads)
    other: Simulator
    if method == "mujoco":
        other = mujoco_simulator(lesson, threads=threads)
    else:
        other = scratch_simulator(lesson, recordings, threads=threads)
    return lambda wanted: plan_strike(other, space, wanted, method="cma", budget=BUDGET, seed=seed)


def _repeat(method: str, case: tuple[str, str, bool], draw: int, o: Options) -> Rows:
    """One method's plans for all targets, learned from one set of strikes, and what came of them."""
    label, setting, with_yaw = case
    shape = label.partition(",")[0]
    reality = standin(setting, shape, seed=o.seed + 1)
    lesson, recordings = learned(o, shape, draw, setting=setting)
    space = strike_space(lesson.scene, np.zeros(3))
    plan = _plan(method, lesson, recordings, space, o.seed + draw, o.threads)
    rows: Rows = []
    for number, wanted in enumerate(reachable_targets(space, shape, o.seed, setting=setting)):
        commands = plan(wanted if with_yaw else wanted[:2]).commands
        end = reality.truth(commands, seed=1000 * draw + number).rest[0]
        found = {"position-error-m": float(np.linalg.norm(end[:2] - wanted[:2]))}
        if with_yaw:
            found["orientation-error-rad"] = float(abs(wrap_angle(end[2] - wanted[2])))
        rows += [{"setting": label, "method": method, "metric": m, "value": v} for m, v in found.items()]
    return rows


def reachable_targets(space: StrikeSpace, shape: str, seed: int, *, setting: str = SHAPE_SETTING) -> Array:
    """Poses [5, 3] where the stand-in's block comes to rest after random strikes: all within reach."""
    reality = standin(setting, shape, seed=seed + 1)
    points = np.random.default_rng([seed, 99]).random((TARGETS, 3))
    return reality.truth(space.commands(points), seed=seed, scatter=False).rest
