"""Pushes planned through the graph simulator, and carried out in the MuJoCo it learned from and in Bullet (Fig. 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np

from carom.bench.benchmark import Options
from carom.bench.graph_models import Calibrated, calibrated, of_scenes
from carom.core.cma import Cma
from carom.core.work import Rows
from carom.engines.contract import Engine
from carom.engines.mujoco.engine import MujocoEngine
from carom.learn.graph import GraphEngine
from carom.plan.push_tasks import PushTasks, push_scene, push_tasks
from carom.plan.pushes import EPOCHS, GUESSES, PushPlan, plan_pushes
from carom.reality.bullet import bullet_missing, load_bullet
from carom.scenes.free import FreeScene, timestep
from carom.state import Array

TARGETS = 20
NEAR = 0.01  #: [m] that counts as reached
SECONDS = 1.2
SEARCHED = ((0.3, -0.3, -5.0), (2.5, 0.3, 5.0))  #: of pushes, by CMA-ES
BULLET_STEP = 1 / 2000  #: [s]
SEARCHES = {"cma": 1, "cma, ten times the rollouts": 10}  #: times the rollouts of the gradient's search
PLANNERS = ("graph", *SEARCHES)


def two_cubes(found: Calibrated) -> FreeScene:
    """Two cubes of the built-in scene on the ground, under the calibrated gravity."""
    return push_scene(found.contact.get("gravity", 9.81))


def in_mujoco(found: Calibrated, threads: int = 0) -> MujocoEngine:
    """The calibrated MuJoCo of two cubes."""
    return MujocoEngine(two_cubes(found), tuple(found.contact), step=timestep(found.period), threads=threads)


def tasks_of(found: Calibrated, count: int, seed: int) -> PushTasks:
    """Random starts; goals are where some random push brings the second cube in the calibrated MuJoCo."""
    duration = round(SECONDS / found.period) * found.period
    return push_tasks(in_mujoco(found), count, values=found.contact, seed=seed, duration=duration)


def by_cma(
    engine: Engine, tasks: PushTasks, values: Mapping[str, float], rollouts: int, seed: int
) -> tuple[PushPlan, ...]:
    """The same search without derivatives: one for each task, their generations simulated together."""
    low, high = np.array(SEARCHED)
    searches = [Cma(np.full(3, 0.5), sigma=0.25, seed=seed + n, population=GUESSES) for n in range(len(tasks))]
    every = tasks[np.repeat(np.arange(len(tasks)), GUESSES)]
    best, point, curve = np.full(len(tasks), np.inf), np.tile(low, (len(tasks), 1)), []
    for _ in range(max(rollouts // GUESSES, 1)):
        push = low + np.array([search.ask() for search in searches]) * (high - low)
        miss = every.misses(engine, push.reshape(-1, 3), values).reshape(len(tasks), GUESSES)
        for n, search in enumerate(searches):
            search.tell(miss[n])
        least = np.arange(len(tasks)), miss.argmin(axis=1)
        better = miss[least] < best
        best, point = np.where(better, miss[least], best), np.where(better[:, None], push[least], point)
        curve.append(best)
    ways = np.array(curve).T
    return tuple(
        PushPlan(point[n], float(best[n]), tuple(ways[n].tolist()), GUESSES * len(curve)) for n in range(len(tasks))
    )


def in_bullet(found: Calibrated, task: PushTasks, push: Array) -> float:
    """Miss [m] of a push in Bullet: bodies with the same friction, no bounce; another law of contact."""
    bullet = load_bullet()
    client = bullet.connect(bullet.DIRECT)
    try:
        bullet.setGravity(0, 0, -found.contact.get("gravity", 9.81), physicsClientId=client)
        bullet.setTimeStep(BULLET_STEP, physicsClientId=client)
        rub = float(np.sqrt(found.contact["friction"]))  # Bullet multiplies those of two bodies
        plane = bullet.createCollisionShape(bullet.GEOM_PLANE, physicsClientId=client)
        ground = bullet.createMultiBody(0, plane, physicsClientId=client)
        scene, start = two_cubes(found), task.started(push[None])
        made = []
        for at, body in enumerate(scene.bodies):
            half = (np.asarray(body.solid.extent) / 2).tolist()
            shape = bullet.createCollisionShape(bullet.GEOM_BOX, halfExtents=half, physicsClientId=client)
            place, turn = start.position[0, at].tolist(), np.roll(start.quaternion[0, at], -1).tolist()
            made.append(bullet.createMultiBody(float(body.mass or 1), shape, -1, place, turn, physicsClientId=client))
            going, turning = start.velocity[0, at].tolist(), start.spin[0, at].tolist()
            bullet.resetBaseVelocity(made[-1], going, turning, physicsClientId=client)
        for one in (ground, *made):
            bullet.changeDynamics(
                one, -1, lateralFriction=rub, restitution=0, linearDamping=0, angularDamping=0, physicsClientId=client
            )
        for _ in range(round(task.duration / BULLET_STEP)):
            bullet.stepSimulation(physicsClientId=client)
        end = bullet.getBasePositionAndOrientation(made[1], physicsClientId=client)[0]
        return float(np.linalg.norm(np.array(end[:2]) - task.goal[0]))
    finally:
        bullet.disconnect(client)


def planned(o: Options, draw: int, method: str) -> Rows:
    """Gradient planning, or CMA-ES with as many and ten times as many rollouts."""
    found = calibrated(o, draw)
    tasks = tasks_of(found, TARGETS, o.seed + draw)
    learned = of_scenes(o, draw) if method == "graph" else None
    start = perf_counter()
    if learned is not None:
        engine = GraphEngine(learned, two_cubes(found), tuple(found.contact))
        plans: Sequence[PushPlan] = plan_pushes(engine, tasks, values=found.contact, seed=o.seed)
    else:
        rollouts = GUESSES * (EPOCHS + 1) * SEARCHES[method]
        plans = by_cma(in_mujoco(found, o.threads), tasks, found.contact, rollouts, o.seed)
    return _told(method, plans, tasks, found, (perf_counter() - start) / len(tasks))


def _told(method: str, plans: Sequence[PushPlan], tasks: PushTasks, found: Calibrated, seconds: float) -> Rows:
    pushes = np.array([p.push for p in plans])
    there = tasks.misses(in_mujoco(found), pushes, found.contact)
    figures = {
        "reached in own simulator": float(np.mean([p.miss < NEAR for p in plans])),
        "reached in MuJoCo": float(np.mean(there < NEAR)),
        "miss in MuJoCo, median [mm]": float(1e3 * np.median(there)),
        "seconds per plan": seconds,
    }
    if not bullet_missing():
        elsewhere = np.array([in_bullet(found, tasks[np.array([n])], push) for n, push in enumerate(pushes)])
        figures["reached in Bullet (stand-in)"] = float(np.mean(elsewhere < NEAR))
        figures["miss in Bullet (stand-in), median [mm]"] = float(1e3 * np.median(elsewhere))
    rows: Rows = [{"setting": "two-cubes", "method": method, "metric": k, "value": v} for k, v in figures.items()]
    if method == "graph":
        curves = 1e3 * np.median(np.array([p.curve for p in plans]), axis=0)
        rows += [
            {"setting": f"two-cubes, epoch {n}", "method": method, "metric": "median miss [mm]", "value": float(miss)}
            for n, miss in enumerate(curves)
        ]
    return rows
