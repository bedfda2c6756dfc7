"""`carom bench graph --data DIR`: the graph simulator on real tosses, several bodies, new shapes, and planning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.graph_models import FITTED, TESTED, TRAJECTORIES, VARIED, calibrated, of_tosses
from carom.bench.graph_parameters import found_again
from carom.bench.graph_plans import NEAR, PLANNERS, TARGETS, planned
from carom.bench.graph_policy import EPISODES, LEARNERS, WANTED, policies
from carom.bench.graph_scenes import bowling, new_parameters, new_shapes
from carom.bench.graph_speed import speeds
from carom.bench.results import Row
from carom.compare.toss_baselines import baseline
from carom.core.work import Rows
from carom.identify.tosses.recorded import Motions, trajectory_errors
from carom.learn.graph import in_graph
from carom.learn.graph.face_pairs import coal_missing
from carom.learn.graph.model import FORMAT
from carom.state import Array, Motion

Piece = Callable[[Options, int], Rows]
ERRORS = ("position-error-percent", "rotation-error-deg")
LEARNED = ("graph", "graph-corrected", "graph-fine-tuned", "graph-augmented")
PAPER = "graph-paper"
BRAX = ("brax-spring", "brax-positional", "brax-generalized")
SLOW = (PAPER, "graph-augmented", *BRAX[1:])  #: run on the first draw only
#: what several bodies do; their network takes longest to train, so there are two draws less of it
SCENES: dict[str, Piece] = {
    "bowling": bowling,
    "new-shapes": new_shapes,
    "new-parameters": new_parameters,
    "new-parameters, found again": found_again,
    **{f"two-cubes, {name}": partial(planned, method=name) for name in PLANNERS},
}
#: on the first draw only
ONCE: dict[str, Piece] = {f"policy, {name}": partial(policies, method=name) for name in LEARNERS} | {"speed": speeds}
REAL, LIKELIEST = "real-tosses", "real-tosses, one simulation"


def _work(o: Options) -> Work:
    pieces: list[tuple[str, partial[Rows]]] = []
    for draw in range(o.draws):
        methods = ["mujoco", *LEARNED, *([] if coal_missing() else [PAPER]), *(BRAX if find_spec("brax") else ())]
        chosen = [name for name in methods if not (draw and name in SLOW)]
        pieces += [(f"{REAL}/{draw}/{name}", partial(_real, o, draw, name)) for name in chosen]
        scenes = SCENES if draw < max(o.draws - 2, 1) else {}
        if not draw:
            scenes = scenes | {n: make for n, make in ONCE.items() if "sac" not in n or find_spec("stable_baselines3")}
        pieces += [(f"{setting}/{draw}", partial(make, o, draw)) for setting, make in scenes.items()]
    return pieces


def _real(o: Options, draw: int, name: str) -> Rows:
    """Errors on real tosses that nobody was fitted to, and how they differ from MuJoCo's, toss by toss."""
    found = calibrated(o, draw)
    tested = found.tested
    rows: Rows = []
    if name.startswith("brax"):
        return _told(name, tested, baseline(name, found.trained, seed=o.seed + draw)(tested))
    likeliest = found.model if name == "mujoco" else in_graph(found.model, of_tosses(o, draw, name))
    both = [(LIKELIEST, likeliest.simulate(tested, threads=o.threads), False)]
    if name == PAPER:  # 48 simulations of each toss would take it an hour
        both.append((REAL, both[0][1], False))
    else:
        both.append((REAL, likeliest.predict(tested, threads=o.threads), True))
    for setting, motion, representative in both:
        rows += _told(name, tested, motion, setting)
        if name == "mujoco":
            continue
        theirs = _of_mujoco(o, draw, representative)
        for metric, own, other in zip(ERRORS, _errors(tested, motion), theirs, strict=True):
            apart = own - other
            off = float(apart.std() / np.sqrt(len(apart)))
            rows.append(_row(name, f"{metric} minus mujoco's", float(apart.mean()), setting))
            rows.append(_row(name, f"{metric} minus mujoco's, standard error", off, setting))
    return rows


@lru_cache(maxsize=8)
def _of_mujoco(o: Options, draw: int, representative: bool) -> tuple[Array, Array]:
    found = calibrated(o, draw)
    run = found.model.predict if representative else found.model.simulate
    return _errors(found.tested, run(found.tested, threads=o.threads))


def _errors(measured: Motions, motion: Motion) -> tuple[Array, Array]:
    """Of each toss [N]: distance over the width [%] and angle [deg]."""
    position, angle = trajectory_errors(measured, motion)
    return 100 * position[0], np.degrees(angle[0])


def _row(method: str, metric: str, value: float, setting: str = REAL) -> dict[str, object]:
    return {"setting": setting, "method": method, "metric": metric, "value": value}


def _told(method: str, measured: Motions, motion: Motion, setting: str = REAL) -> Rows:
    return [
        _row(method, metric, float(value.mean()), setting)
        for metric, value in zip(ERRORS, _errors(measured, motion), strict=True)
    ]


#: what settings and methods are, by how their names begin: a note stands where there are such rows
NOTES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (REAL,),
        f"{REAL}: real recordings of a tossed cube. MuJoCo is calibrated with {FITTED}; graph learns from "
        f"{TRAJECTORIES} trajectories that this MuJoCo makes, half of them around the {FITTED}; errors are those on "
        f"{TESTED} other tosses; spreads are over draws. The same inference of the heavy side serves every engine. "
        "one simulation: from the likeliest side and the estimated start alone; graph-paper and Brax always so.",
    ),
    (
        ("graph-corrected", "graph-fine-tuned", "graph-augmented", "graph-paper"),
        "graph-corrected: eight numbers with priors, fitted to the same recordings; how wide the priors are is "
        "chosen by leaving one out, and may be none. graph-fine-tuned: ten gradient steps on all weights, as CLASH "
        f"does with strikes. graph-augmented: the same network, trained on the {FITTED} recordings rotated about the "
        "vertical, which tell it nothing new, as it is symmetric; contact parameters are told it as MuJoCo's. "
        "graph-paper: FIGNet's architecture and sizes, on the same trajectories, 2,500 updates of 32 frames, what "
        "some 15 minutes of a core allow. These two and Brax's slower pipelines: first draw only.",
    ),
    (
        ("bowling", "new-shapes", "new-parameters"),
        "bowling, new-shapes, new-parameters: one second against the MuJoCo that taught it, which is the truth "
        "there. One network, trained on tosses, cubes and other shapes, parameters up to "
        f"{VARIED:g} times above and below the calibrated ones (new-parameters lie within that). Yardstick: MuJoCo "
        "against itself, starts moved by 0.5 mm and 0.5 degrees; the worst shape and parameter once more under the "
        "name of all. Overlaps are the deepest of all rollouts, in parts of the width.",
    ),
    (
        ("two-cubes",),
        f"two-cubes: pushes that make another cube stop at one of {TARGETS} targets, reached within "
        f"{1e3 * NEAR:g} mm. Targets are where random pushes end in the calibrated MuJoCo. Bullet is a stand-in: "
        "other physics, with MuJoCo's calibrated friction. cma: the same search without derivatives, in MuJoCo "
        "itself. All searches of a method run together.",
    ),
    (
        ("new-parameters, found again",),
        "new-parameters, found again: friction and damping from ten tosses that MuJoCo made with other values of "
        "both; cma searches in the MuJoCo that made them. graph's two searches run together, cma's one by one.",
    ),
    (
        ("policy",),
        f"policy: one push, the other cube within 20 mm of its goal; simulated steps until {WANTED:.0%} of 200 "
        "goals that were not trained on are reached in MuJoCo. sac: Stable-Baselines3, trained in that MuJoCo, "
        f"stopped after {EPISODES:,} pushes. Both are tried every 640 pushes.",
    ),
    (
        ("speed",),
        "speed: frames of the recordings' rate, all cores, in one run; several engine steps of MuJoCo make a frame. "
        "Candidates are places where bodies may touch in the next step. An update is one of training, of windows of "
        "two bodies.",
    ),
)


def _remarks(rows: Sequence[Row]) -> tuple[str, ...]:
    """The notes on settings and methods that there are rows of."""
    return tuple(
        note for names, note in NOTES if any(r.setting.startswith(names) or r.method.startswith(names) for r in rows)
    )


BENCHMARK = Benchmark(
    "graph",
    draws=3,
    data="a folder of recorded tosses",
    settings=lambda o: {"seed": o.seed, "folder": o.data.parent.name, "networks": FORMAT},
    work=_work,
    notes=lambda o: (),
    remarks=_remarks,
)
