"""How fast the graph simulator is: frames per second beside MuJoCo, collision detection beside a loop with Coal."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch

from carom.bench.benchmark import Options
from carom.bench.graph_models import Calibrated, calibrated, of_scenes
from carom.bench.graph_scenes import drawn
from carom.core.work import Rows
from carom.engines.contract import Engine
from carom.engines.mujoco.engine import MujocoEngine
from carom.learn.graph import GraphEngine
from carom.learn.graph.candidates import candidates
from carom.learn.graph.engine import moving_of
from carom.learn.graph.face_pairs import coal_missing, face_pairs
from carom.learn.impact.training import torch_threads
from carom.scale import cubes, toss
from carom.scenes.free import FreeScene, timestep
from carom.state import SceneState

BODIES = (1, 2, 11)
ROLLOUTS = (1, 1000)
GROWTH = (100, 1000, 10_000)  #: rollouts of one body
FRAMES = 15  #: of a rollout that is timed
SETTLED = 20  #: frames before: bodies have come near the ground and each other
TRIES = 3
LEAST = 1.0  #: [s] that a rate is measured over, at least


def speeds(o: Options, draw: int) -> Rows:
    """Frames of the recordings' rate per second."""
    found, learned = calibrated(o, draw), of_scenes(o, draw)
    rows: Rows = []

    def add(setting: str, method: str, metric: str, value: float) -> None:
        rows.append({"setting": f"speed, {setting}", "method": method, "metric": metric, "value": value})

    with torch_threads(o.threads or torch.get_num_threads()):
        for bodies in BODIES:
            for count in ROLLOUTS:
                setting = f"{bodies} {'body' if bodies == 1 else 'bodies'}, N = {count}"
                rate = _rates(found, GraphEngine(learned, *_named(found, bodies, o)), bodies, count, o)
                for method, value in rate.items():
                    add(setting, method, "frames per second", value)
                    add(setting, method, "ratio to MuJoCo", value / rate["mujoco"])
        for count in GROWTH:
            engine = GraphEngine(learned, *_named(found, 1, o))
            add(
                f"1 body, N = {count}",
                "graph",
                "microseconds per frame of a rollout",
                1e6 / _rate(engine, found, 1, count, o),
            )
        for method, seconds in _detection(found, GraphEngine(learned, *_named(found, 2, o)), o).items():
            add("finding contacts, 2 bodies, N = 1000", method, "milliseconds", 1e3 * seconds)
    return rows


def _named(found: Calibrated, bodies: int, o: Options) -> tuple[FreeScene, tuple[str, ...]]:
    return _scene(found, bodies, 1, o)[0], tuple(found.contact)


def _scene(found: Calibrated, bodies: int, count: int, o: Options) -> tuple[FreeScene, SceneState]:
    """One cube that is tossed, or cubes of which one strikes the others."""
    rate = 1 / found.period
    source = toss(rate=rate) if bodies == 1 else cubes(bodies=(bodies - 1, bodies - 1), rate=rate)
    return drawn(source, found.contact, count, o.seed)


def _rates(found: Calibrated, engine: GraphEngine, bodies: int, count: int, o: Options) -> dict[str, float]:
    mujoco = MujocoEngine(engine.scene, tuple(found.contact), step=timestep(found.period), threads=o.threads)
    return {"mujoco": _rate(mujoco, found, bodies, count, o), "graph": _rate(engine, found, bodies, count, o)}


def _rate(engine: Engine, found: Calibrated, bodies: int, count: int, o: Options) -> float:
    """Frames per second of a rollout, the median of some tries from the same state; opening the engine is not in it."""
    told = {name: np.full(count, value) for name, value in found.contact.items()}
    run = engine.open(_scene(found, bodies, count, o)[1], told)
    run.rollout(SETTLED * found.period)
    settled, taken = run.state, []
    for _ in range(TRIES):
        again = engine.open(settled, told)
        start = perf_counter()
        again.rollout(FRAMES * found.period)
        taken.append(perf_counter() - start)
    return count * FRAMES / float(np.median(taken))


def _detection(found: Calibrated, engine: GraphEngine, o: Options) -> dict[str, float]:
    """Seconds to find what may touch in 1,000 rows: in one call, and in a loop over pairs of bodies with Coal."""
    count = ROLLOUTS[-1]
    told = {name: np.full(count, value) for name, value in found.contact.items()}
    run = engine.open(_scene(found, 2, count, o)[1], told)
    run.rollout(SETTLED * found.period)
    world = engine.world(told, count)
    now = moving_of(engine, world, run.state)
    place, turned, ground = now.position, now.rotation, world.ground
    none = torch.zeros(place.shape[:2])
    seconds = {"graph": _seconds(lambda: candidates(world.solids, place, turned, ground, none))}
    if not coal_missing():
        seconds["loop with Coal"] = _seconds(lambda: face_pairs(world.solids, place, turned, ground))
    return seconds


def _seconds(ask: Callable[[], object]) -> float:
    """Of one call, in the mean over a second or more."""
    ask()
    start, calls = perf_counter(), 0
    while perf_counter() - start < LEAST:
        ask()
        calls += 1
    return (perf_counter() - start) / calls
