"""Parameters that are known here, found again: by gradient through the graph simulator, and by CMA-ES in MuJoCo."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import torch

from carom.bench.benchmark import Options
from carom.bench.graph_models import Calibrated, calibrated, of_scenes
from carom.bench.graph_scenes import OTHER, drawn
from carom.core.cma import Cma
from carom.core.work import Rows
from carom.engines.mujoco.engine import MujocoEngine
from carom.learn.graph import GraphEngine
from carom.learn.graph.turning import matrices_of, turned_by
from carom.scale import toss
from carom.scenes.free import FreeScene, timestep
from carom.state import Array, Motion, SceneState

TOSSES = 10  #: that each pair of parameters is looked for in
FRAMES = 50
SOUGHT = ("friction", "damping")
STEPS, FIRST = 25, 0.15  #: of Rprop, and its first change of a logarithm
GENERATIONS, POPULATION = 15, 8  #: of CMA-ES
DAMPED = (1.4, 0.7)  #: times the calibrated damping, beside those of the friction
SPAN = 3.0  #: factor by which both begin and search around the calibrated values
SCALE = 0.1  #: of the width and radians, beyond which errors count in proportion


def found_again(o: Options, draw: int) -> Rows:
    """How far friction and damping are off, from tosses that MuJoCo made with other values than the calibrated."""
    found, learned = calibrated(o, draw), of_scenes(o, draw)
    scene, starts = drawn(toss(rate=1 / found.period), found.contact, TOSSES, o.seed + draw)
    mujoco = MujocoEngine(scene, tuple(found.contact), step=timestep(found.period), threads=o.threads)
    truths = [
        {**found.contact, "friction": f * found.contact["friction"], "damping": g * found.contact["damping"]}
        for f, g in zip(OTHER["friction"], DAMPED, strict=True)
    ]
    made = [_moved(mujoco, starts, found, truth) for truth in truths]
    start = perf_counter()
    by_graph = _by_gradient(GraphEngine(learned, scene, tuple(found.contact)), starts, found, made)
    between = perf_counter()
    by_cma = [_by_cma(mujoco, scene, starts, found, motion, o.seed + n) for n, motion in enumerate(made)]
    seconds = {"graph": between - start, "cma": perf_counter() - between}
    rows: Rows = []
    for method, values in (("graph", by_graph), ("cma", by_cma)):
        for name in SOUGHT:
            off = [100 * abs(v[name] / truth[name] - 1) for v, truth in zip(values, truths, strict=True)]
            rows.append(_row(method, f"{name} off, percent", float(np.mean(off))))
        rows.append(_row(method, "seconds", seconds[method] / len(truths)))
    return rows


def _row(method: str, metric: str, value: float) -> dict[str, object]:
    return {"setting": "new-parameters, found again", "method": method, "metric": metric, "value": value}


def _moved(engine: MujocoEngine, starts: SceneState, found: Calibrated, values: dict[str, float]) -> Motion:
    told = {name: np.full(len(starts), value) for name, value in values.items()}
    return engine.open(starts, told).rollout((FRAMES - 1) * found.period, frames=FRAMES)


def _by_gradient(
    engine: GraphEngine, starts: SceneState, found: Calibrated, motions: list[Motion]
) -> list[dict[str, float]]:
    """Rprop on the logarithms, all sets of tosses at once: their rows do not touch each other."""
    sets, count = len(motions), len(starts)
    every = starts[np.tile(np.arange(count), sets)]
    place = engine.tensor(np.concatenate([m.position for m in motions]))
    turned = matrices_of(engine.tensor(np.concatenate([m.quaternion for m in motions])))
    width = engine.tensor(engine.scene.widths)
    factor = torch.zeros(sets, len(SOUGHT), requires_grad=True)
    rprop = torch.optim.Rprop([factor], lr=FIRST, step_sizes=(1e-4, 0.4))
    best = torch.zeros(sets, len(SOUGHT))
    least = torch.full((sets,), torch.inf)
    for _ in range(STEPS):
        rprop.zero_grad()
        wide = factor.repeat_interleave(count, dim=0)
        contact = {name: found.contact[name] * torch.exp(wide[:, k]) for k, name in enumerate(SOUGHT)}
        track = engine.follow(every, FRAMES - 1, values=found.contact, contact=contact)
        away = (track.position - place) / width[:, None]
        angle = turned_by(track.rotation @ turned.transpose(-1, -2))
        square = (away.square().sum(-1) + angle.square().sum(-1)) / SCALE**2
        loss = (torch.sqrt(1 + square) - 1).mean(dim=(1, 2)).reshape(sets, count).mean(dim=1)
        better = loss.detach() < least
        best, least = torch.where(better[:, None], factor.detach(), best), torch.where(better, loss.detach(), least)
        loss.sum().backward()  # type: ignore[no-untyped-call]
        rprop.step()
        with torch.no_grad():
            factor.clamp_(-np.log(SPAN), np.log(SPAN))
    return [
        {name: found.contact[name] * float(torch.exp(best[n, k])) for k, name in enumerate(SOUGHT)} for n in range(sets)
    ]


def _by_cma(
    engine: MujocoEngine, scene: FreeScene, starts: SceneState, found: Calibrated, motion: Motion, seed: int
) -> dict[str, float]:
    """The same loss, in the MuJoCo that made the tosses."""
    search, count = Cma(np.full(len(SOUGHT), 0.5), sigma=0.2, seed=seed, population=POPULATION), len(starts)
    every = starts[np.tile(np.arange(count), POPULATION)]
    best, point = np.inf, np.zeros(len(SOUGHT))
    for _ in range(GENERATIONS):
        asked = (2 * search.ask() - 1) * np.log(SPAN)
        told = {name: np.full(len(every), value) for name, value in found.contact.items()}
        told |= {n: np.repeat(found.contact[n] * np.exp(asked[:, k]), count) for k, n in enumerate(SOUGHT)}
        run = engine.open(every, told).rollout((FRAMES - 1) * found.period, frames=FRAMES)
        loss = np.array([_loss(run, motion, scene, slice(p * count, (p + 1) * count)) for p in range(POPULATION)])
        search.tell(loss)
        if loss.min() < best:
            best, point = float(loss.min()), asked[int(np.argmin(loss))]
    return {name: found.contact[name] * float(np.exp(point[k])) for k, name in enumerate(SOUGHT)}


def _loss(run: Motion, motion: Motion, scene: FreeScene, rows: slice) -> float:
    away: Array = np.linalg.norm(run.position[rows] - motion.position, axis=-1) / scene.widths
    cosine = np.abs((run.quaternion[rows] * motion.quaternion).sum(axis=-1))
    square = (away**2 + (2 * np.arccos(np.clip(cosine, 0, 1))) ** 2) / SCALE**2
    return float((np.sqrt(1 + np.nan_to_num(square, nan=100.0)) - 1).mean())
