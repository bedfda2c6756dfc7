"""How fast the graph simulator is: beside MuJoCo, collision detection beside a loop with Coal, and in training."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from carom.bench.benchmark import Options
from carom.bench.graph_models import WIDE, Calibrated, calibrated, of_scenes, place
from carom.bench.graph_scenes import drawn
from carom.core.work import Rows
from carom.engines.mujoco.engine import MujocoEngine
from carom.learn.graph import GraphEngine, GraphModel, Stage
from carom.learn.graph.candidates import candidates
from carom.learn.graph.examples import frames_of
from carom.learn.graph.face_pairs import coal_missing, face_pairs
from carom.learn.graph.rollout import GraphRun, moving_of
from carom.learn.graph.training import window_loss
from carom.learn.impact.training import torch_threads
from carom.scale import cubes, load, toss
from carom.scenes.free import FreeScene, timestep
from carom.state import SceneState

BODIES = (1, 2, 11)
ROLLOUTS = (1, 1000)
GROWTH = (100, 1000, 10_000)  #: rollouts of one body
PILES, PILED = (2, 4, 8, 11), 100  #: bodies that strike each other, and rollouts of each
FRAMES = 15  #: of a rollout that is timed
SETTLED = 20  #: frames before: bodies have come near the ground and each other
TRIES = 3
LEAST = 1.0  #: [s] that a rate is measured over, at least


def speeds(o: Options, draw: int) -> Rows:
    """Frames of the recordings' rate per second; what contacts cost; and a step of training."""
    found, learned = calibrated(o, draw), of_scenes(o, draw)
    rows: Rows = []

    def add(setting: str, method: str, metric: str, value: float) -> None:
        rows.append({"setting": f"speed, {setting}", "method": method, "metric": metric, "value": value})

    with torch_threads(o.threads or torch.get_num_threads()):
        for bodies, count in ((bodies, count) for bodies in BODIES for count in ROLLOUTS):
            rates = _rates(found, GraphEngine(learned, *_named(found, bodies, o)), bodies, count, o)
            for method, value in rates.items():
                add(_many(bodies, count), method, "frames per second", value)
                add(_many(bodies, count), method, "ratio to MuJoCo", value / rates["mujoco"])
        for bodies, count in (*((1, n) for n in GROWTH), *((n, PILED) for n in PILES)):
            rate, touching = _rate(GraphEngine(learned, *_named(found, bodies, o)), found, bodies, count, o)
            add(_many(bodies, count), "graph", "microseconds per frame of a rollout", 1e6 / rate)
            add(_many(bodies, count), "graph", "candidates of a rollout", touching)
            add(_many(bodies, count), "graph", "microseconds per candidate", 1e6 / rate / max(touching, 1e-9))
        for method, seconds in _detection(found, GraphEngine(learned, *_named(found, 2, o)), o).items():
            add("finding contacts, 2 bodies, N = 1000", method, "milliseconds", 1e3 * seconds)
        for length, seconds in _training(learned, place(o, draw) / "scenes-cubes").items():
            add(f"an update through {length} frames", "graph", "seconds", seconds)
    return rows


def _many(bodies: int, count: int) -> str:
    return f"{bodies} {'body' if bodies == 1 else 'bodies'}, N = {count}"


def _training(learned: GraphModel, data: Path) -> dict[int, float]:
    """Seconds of an update by the frames that it goes through, as many windows of two bodies as in a training."""
    frames = frames_of(list(load(data).ok.by_bodies()[2]))
    network = copy.deepcopy(learned.network).requires_grad_(True)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-6)
    rng = torch.Generator().manual_seed(0)
    seconds = {}
    for stage in WIDE.stages:
        windows = frames.windows(stage.frames)

        def update(stage: Stage = stage, windows: torch.Tensor = windows) -> None:
            picked = windows[torch.randint(len(windows), (stage.rows // 2,), generator=rng)]
            optimiser.zero_grad()
            loss = window_loss(network, frames, picked, stage.frames, WIDE.noise, rng)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()

        seconds[stage.frames] = _seconds(update)
    return seconds


def _named(found: Calibrated, bodies: int, o: Options) -> tuple[FreeScene, tuple[str, ...]]:
    return _scene(found, bodies, 1, o)[0], tuple(found.contact)


def _scene(found: Calibrated, bodies: int, count: int, o: Options) -> tuple[FreeScene, SceneState]:
    """One cube that is tossed, or cubes of which one strikes the others."""
    rate = 1 / found.period
    source = toss(rate=rate) if bodies == 1 else cubes(bodies=(bodies - 1, bodies - 1), rate=rate)
    return drawn(source, found.contact, count, o.seed)


def _rates(found: Calibrated, engine: GraphEngine, bodies: int, count: int, o: Options) -> dict[str, float]:
    mujoco = MujocoEngine(engine.scene, tuple(found.contact), step=timestep(found.period), threads=o.threads)
    return {"mujoco": _rate(mujoco, found, bodies, count, o)[0], "graph": _rate(engine, found, bodies, count, o)[0]}


def _rate(
    engine: MujocoEngine | GraphEngine, found: Calibrated, bodies: int, count: int, o: Options
) -> tuple[float, float]:
    """Frames per second of a rollout, the median of some tries from the same state; opening the engine is not in it.

    And how many candidates of contact each rollout of the graph simulator has at its end.
    """
    told = {name: np.full(count, value) for name, value in found.contact.items()}
    run = engine.open(_scene(found, bodies, count, o)[1], told)
    run.rollout(SETTLED * found.period)
    settled, taken = run.state, []
    for _ in range(TRIES):
        again = engine.open(settled, told)
        start = perf_counter()
        again.rollout(FRAMES * found.period)
        taken.append(perf_counter() - start)
    touching = again.candidates / count if isinstance(again, GraphRun) else 0.0
    return count * FRAMES / float(np.median(taken)), touching


def _detection(found: Calibrated, engine: GraphEngine, o: Options) -> dict[str, float]:
    """Seconds to find what may touch in 1,000 rows: in one call, and in a loop over pairs of bodies with Coal."""
    count = ROLLOUTS[-1]
    told = {name: np.full(count, value) for name, value in found.contact.items()}
    run = engine.open(_scene(found, 2, count, o)[1], told)
    run.rollout(SETTLED * found.period)
    world = engine.world(told, count)
    now = moving_of(engine, world, run.state)
    at, turned, ground = now.position, now.rotation, world.ground
    none = torch.zeros(at.shape[:2])
    seconds = {"graph": _seconds(lambda: candidates(world.solids, at, turned, ground, none))}
    if not coal_missing():
        seconds["loop with Coal"] = _seconds(lambda: face_pairs(world.solids, at, turned, ground))
    return seconds


def _seconds(ask: Callable[[], object]) -> float:
    """Of one call, in the mean over a second or more."""
    ask()
    start, calls = perf_counter(), 0
    while perf_counter() - start < LEAST:
        ask()
        calls += 1
    return (perf_counter() - start) / calls
