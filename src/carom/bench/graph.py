"""`carom bench graph --data DIR`: the graph simulator on real tosses, several bodies, new shapes, and planning."""

from __future__ import annotations

from functools import lru_cache, partial
from importlib.util import find_spec

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.graph_models import FITTED, TESTED, TRAJECTORIES, VARIED, calibrated, in_graph, of_tosses
from carom.bench.graph_plans import NEAR, TARGETS, planned
from carom.bench.graph_scenes import bowling, new_shapes
from carom.compare.toss_baselines import baseline
from carom.core.work import Rows
from carom.identify.tosses.recorded import Motions, trajectory_errors
from carom.state import Array, Motion

ERRORS = ("position-error-percent", "rotation-error-deg")
LEARNED = ("graph", "graph-augmented")
BRAX = ("brax-spring", "brax-positional", "brax-generalized")
SLOW = BRAX[1:]  #: run on the first draw only
REAL = "real-tosses"


def _work(o: Options) -> Work:
    pieces: list[tuple[str, partial[Rows]]] = []
    for draw in range(o.draws):
        methods = ["mujoco", *LEARNED]
        if find_spec("coal") is not None:
            methods.append("graph-paper")
        if find_spec("brax") is not None:
            methods += [name for name in BRAX if not (draw and name in SLOW)]
        pieces += [(f"{REAL}/{draw}/{name}", partial(_real, o, draw, name)) for name in methods]
        for setting, make in (("bowling", bowling), ("new-shapes", new_shapes), ("two-cubes", planned)):
            pieces.append((f"{setting}/{draw}", partial(make, o, draw)))
    return pieces


def _real(o: Options, draw: int, name: str) -> Rows:
    """Errors on real tosses that nobody was fitted to, and how they differ from MuJoCo's, toss by toss."""
    found = calibrated(o, draw)
    tested = found.tested
    rows: Rows = []
    if name.startswith("brax"):
        return _told(name, tested, baseline(name, found.trained, seed=o.seed + draw)(tested))
    if name == "mujoco":
        rows += _told("mujoco", tested, found.model.predict(tested, threads=o.threads))
        return rows + _told("mujoco, one simulation", tested, found.model.simulate(tested, threads=o.threads))
    model = in_graph(found.model, of_tosses(o, draw, name))
    for method, motion, theirs in (
        (name, model.predict(tested), _of_mujoco(o, draw, True)),
        (f"{name}, one simulation", model.simulate(tested), _of_mujoco(o, draw, False)),
    ):
        rows += _told(method, tested, motion)
        for metric, own, other in zip(ERRORS, _errors(tested, motion), theirs, strict=True):
            apart = own - other
            rows += [
                _row(method, f"{metric} minus mujoco's", float(apart.mean())),
                _row(method, f"{metric} minus mujoco's, standard error", float(apart.std() / np.sqrt(len(apart)))),
            ]
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


def _row(method: str, metric: str, value: float) -> dict[str, object]:
    return {"setting": REAL, "method": method, "metric": metric, "value": value}


def _told(method: str, measured: Motions, motion: Motion) -> Rows:
    return [
        _row(method, metric, float(value.mean()))
        for metric, value in zip(ERRORS, _errors(measured, motion), strict=True)
    ]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"{REAL}: real recordings of a tossed cube. MuJoCo is calibrated with {FITTED}; graph learns from "
        f"{TRAJECTORIES} trajectories that this MuJoCo makes, half of them around the {FITTED}; errors are those on "
        f"{TESTED} other tosses; spreads are over draws. The same inference of the heavy side serves every engine. "
        "one simulation: from the likeliest side and the estimated start alone. graph-augmented: the same network, "
        f"trained on the {FITTED} recordings rotated about the vertical; contact parameters are told it as MuJoCo's.",
        "bowling, new-shapes, new-parameters: one second against the MuJoCo that taught it, which is the truth there. "
        f"One network, trained on tosses, cubes and other shapes, parameters up to {VARIED:g} times above and below "
        "the calibrated ones. Yardstick: MuJoCo against itself, starts moved by 0.5 mm and 0.5 degrees. Overlaps are "
        "the deepest of all rollouts, in parts of the width.",
        f"two-cubes: pushes that make another cube stop at one of {TARGETS} targets, reached within "
        f"{1e3 * NEAR:g} mm. Targets are where random pushes end in the calibrated MuJoCo. Bullet is a stand-in: other "
        "physics, with MuJoCo's calibrated friction.",
    )


BENCHMARK = Benchmark(
    "graph",
    draws=3,
    data="a folder of recorded tosses",
    settings=lambda o: {"draws": o.draws, "seed": o.seed, "folder": o.data.parent.name},
    work=_work,
    notes=_notes,
)
