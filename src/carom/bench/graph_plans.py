"""Pushes planned through the graph simulator, and carried out in the MuJoCo it learned from and in Bullet (Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from carom.bench.benchmark import Options
from carom.bench.graph_models import Calibrated, calibrated, of_scenes
from carom.core.cma import Cma
from carom.core.rotations import about_z
from carom.core.work import Rows
from carom.engines.contract import Engine
from carom.engines.mujoco.engine import MujocoEngine
from carom.learn.graph import GraphEngine
from carom.plan.pushes import BOUNDS, EPOCHS, GUESSES, PushPlan, PushTask, plan_pushes
from carom.reality.bullet import bullet_missing, load_bullet
from carom.scenes.free import FreeScene, cubes_scene, timestep
from carom.scenes.shapes import Body
from carom.state import Array, SceneState

TARGETS = 20
NEAR = 0.01  #: [m] that counts as reached
SECONDS = 1.2
MOST = 0.03  #: [m] that a target lies away from where the body stands, at least
BULLET_STEP = 1 / 2000  #: [s]


def two_cubes(found: Calibrated) -> FreeScene:
    """Two cubes of the built-in scene on the ground."""
    cube = cubes_scene().bodies[0]
    bodies = tuple(Body(name, "target", cube.shape, cube.mass) for name in ("pushed", "moved"))
    return FreeScene("two-cubes", bodies, found.contact.get("gravity", 9.81))


def tasks_of(found: Calibrated, count: int, seed: int) -> list[PushTask]:
    """Random starts; targets are where some random push brings the second cube in the calibrated MuJoCo."""
    scene, rng = two_cubes(found), np.random.default_rng([seed, 31])
    side = float(scene.bodies[0].solid.extent[0])
    made: list[PushTask] = []
    engine = _mujoco(found, scene)
    duration = _duration(found.period)
    while len(made) < count:
        gap = side * rng.uniform(1.5, 2.5)
        position = np.array([[-gap, rng.uniform(-0.15, 0.15) * side, side / 2], [0.0, 0.0, side / 2]])
        turn = about_z(np.array([rng.uniform(-0.1, 0.1), rng.uniform(-0.2, 0.2)]))
        none = np.zeros((1, 2, 3))
        start = SceneState(("pushed", "moved"), position[None], turn[None], none, none)
        task = PushTask(start, "pushed", "moved", (0.0, 0.0), duration)
        speed = rng.uniform(0.8, 1.8)
        push = task.started(task.in_world(np.array([speed, 0.08 * speed * rng.uniform(-1, 1)])), rng.uniform(-1, 1))
        end = _ends(engine, push, found, duration)[0]
        if np.linalg.norm(end) > MOST:
            made.append(PushTask(start, "pushed", "moved", (float(end[0]), float(end[1])), duration))
    return made


def _duration(period: float) -> float:
    return round(SECONDS / period) * period


def _mujoco(found: Calibrated, scene: FreeScene) -> MujocoEngine:
    return MujocoEngine(scene, tuple(found.contact), step=timestep(found.period))


def _ends(engine: Engine, starts: SceneState, found: Calibrated, duration: float) -> Array:
    """Where the second cube stops [N, 2] [m]."""
    told = {name: np.full(len(starts), value) for name, value in found.contact.items()}
    return np.asarray(engine.open(starts, told).rollout(duration, frames=2).position[:, -1, 1, :2])


def _joined(states: Sequence[SceneState]) -> SceneState:
    first = states[0]
    return SceneState(
        first.bodies,
        np.concatenate([s.position for s in states]),
        np.concatenate([s.quaternion for s in states]),
        np.concatenate([s.velocity for s in states]),
        np.concatenate([s.spin for s in states]),
    )


def by_cma(engine: GraphEngine, task: PushTask, found: Calibrated, rollouts: int, seed: int) -> PushPlan:
    """The same search without derivatives, in the same simulator."""
    low, high = np.array(BOUNDS)
    low, high = np.maximum(low, [0.3, -0.3, -5.0]), np.minimum(high, [2.5, 0.3, 5.0])
    search = Cma(np.full(3, 0.5), sigma=0.25, seed=seed, population=GUESSES)
    best, point, curve = np.inf, low, []
    for _ in range(max(rollouts // GUESSES, 1)):
        asked = search.ask()
        unknown = low + asked * (high - low)
        starts = _joined([task.started(task.in_world(u), float(u[2])) for u in unknown])
        miss = np.linalg.norm(_ends(engine, starts, found, task.duration) - task.target, axis=-1)
        miss = np.where(np.isfinite(miss), miss, 10.0)
        search.tell(miss)
        if miss.min() < best:
            best, point = float(miss.min()), unknown[int(np.argmin(miss))]
        curve.append(best)
    return PushPlan(task.in_world(point), float(point[2]), best, tuple(curve), GUESSES * len(curve))


def in_bullet(found: Calibrated, task: PushTask, plan: PushPlan) -> float:
    """Miss [m] of a plan in Bullet: bodies with the same friction, no bounce; another law of contact."""
    bullet = load_bullet()
    client = bullet.connect(bullet.DIRECT)
    try:
        bullet.setGravity(0, 0, -found.contact.get("gravity", 9.81), physicsClientId=client)
        bullet.setTimeStep(BULLET_STEP, physicsClientId=client)
        rub = float(np.sqrt(found.contact["friction"]))  # Bullet multiplies those of two bodies
        plane = bullet.createCollisionShape(bullet.GEOM_PLANE, physicsClientId=client)
        ground = bullet.createMultiBody(0, plane, physicsClientId=client)
        scene, start = two_cubes(found), task.started(plan.velocity, plan.spin)
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
        return float(np.linalg.norm(np.array(end[:2]) - task.target))
    finally:
        bullet.disconnect(client)


def planned(o: Options, draw: int) -> Rows:
    """Gradient planning, and CMA-ES with as many and ten times as many rollouts."""
    found, learned = calibrated(o, draw), of_scenes(o, draw)
    scene, tasks = two_cubes(found), tasks_of(found, TARGETS, o.seed + draw)
    engine = GraphEngine(learned, scene, tuple(found.contact))
    rows: Rows = []
    rollouts = GUESSES * (EPOCHS + 1)
    for method in ("graph", "cma", "cma, ten times the rollouts"):
        start = perf_counter()
        if method == "graph":
            plans: Sequence[PushPlan] = plan_pushes(engine, tasks, values=found.contact, seed=o.seed)
        else:
            count = rollouts * (1 if method == "cma" else 10)
            plans = [by_cma(engine, task, found, count, o.seed + n) for n, task in enumerate(tasks)]
        seconds = (perf_counter() - start) / len(tasks)
        rows += _told(method, plans, tasks, found, scene, seconds)
    return rows


def _told(
    method: str,
    plans: Sequence[PushPlan],
    tasks: Sequence[PushTask],
    found: Calibrated,
    scene: FreeScene,
    seconds: float,
) -> Rows:
    starts = _joined([t.started(p.velocity, p.spin) for t, p in zip(tasks, plans, strict=True)])
    ends = _ends(_mujoco(found, scene), starts, found, tasks[0].duration)
    in_mujoco = np.linalg.norm(ends - np.array([t.target for t in tasks]), axis=-1)
    figures = {
        "reached in own simulator": float(np.mean([p.miss < NEAR for p in plans])),
        "reached in MuJoCo": float(np.mean(in_mujoco < NEAR)),
        "miss in MuJoCo, median [mm]": float(1e3 * np.median(in_mujoco)),
        "seconds per plan": seconds,
    }
    if not bullet_missing():
        elsewhere = np.array([in_bullet(found, t, p) for t, p in zip(tasks, plans, strict=True)])
        figures["reached in Bullet (stand-in)"] = float(np.mean(elsewhere < NEAR))
        figures["miss in Bullet (stand-in), median [mm]"] = float(1e3 * np.median(elsewhere))
    rows: Rows = [{"setting": "two-cubes", "method": method, "metric": k, "value": v} for k, v in figures.items()]
    if method == "graph":
        curves = np.median(np.array([p.curve for p in plans]), axis=0)
        rows += [
            {
                "setting": f"two-cubes, epoch {n}",
                "method": method,
                "metric": "median miss [mm]",
                "value": 1e3 * float(v),
            }
            for n, v in enumerate(curves)
        ]
    return rows
