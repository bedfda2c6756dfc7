"""Scenes of several bodies, other shapes and other parameters: the graph simulator against the MuJoCo it learned from.

The yardstick is how far that MuJoCo goes from itself when starts are moved by half a millimetre and half a degree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from carom.bench.benchmark import Options
from carom.bench.graph_models import Calibrated, calibrated, of_scenes
from carom.core.rotations import from_scipy, to_scipy
from carom.core.work import Rows
from carom.engines.mujoco.engine import MujocoEngine
from carom.learn.graph import GraphEngine, GraphModel
from carom.scale.draws import Draw, Maker, Pool
from carom.scale.run import STATE
from carom.scale.sources import Source, cubes, toss
from carom.scenes.free import FreeScene, timestep
from carom.scenes.mesh_files import solid_mesh
from carom.scenes.shapes import Body, Shape
from carom.scenes.solids import DENSITY, Variation
from carom.state import Array, Motion, SceneState

MOVED, TURNED = 5e-4, np.radians(0.5)  #: [m] and [rad] that the yardstick's starts are moved by
SAME = Variation(size=(1.0, 1.0), aspect=1.0, mass=(1.0, 1.0))
BOWLED, DROPPED = 12, 40  #: rollouts of each kind
SECONDS = 1.0
OTHER = {"friction": (0.6, 1.7), "stiffness": (0.6, 1.7)}  #: times the calibrated values


def seconds_of(period: float) -> float:
    """A second, as a whole number of samples [s]."""
    return round(SECONDS / period) * period


@dataclass(frozen=True)
class Rollouts:
    """The same starts in both engines, and in MuJoCo once more from starts that are moved a little."""

    scene: FreeScene
    mujoco: Motion
    moved: Motion
    graph: Motion

    def rows(self, setting: str) -> Rows:
        """Errors over time and bodies, over the yardstick; how deep bodies lie in each other."""
        made: list[dict[str, Any]] = []
        own, yard = (_apart(self.mujoco, other, self.scene) for other in (self.graph, self.moved))
        for metric, graph, moved in zip(("distance-percent", "angle-deg"), own, yard, strict=True):
            made += [
                {"setting": setting, "method": "graph", "metric": metric, "value": graph},
                {"setting": setting, "method": "mujoco, starts moved", "metric": metric, "value": moved},
                {"setting": setting, "method": "graph", "metric": f"{metric} over yardstick", "value": graph / moved},
            ]
        for method, motion in (("graph", self.graph), ("mujoco", self.mujoco)):
            deep = 100 * deepest(self.scene, motion) / float(self.scene.widths.min())
            made.append({"setting": setting, "method": method, "metric": "overlap-percent", "value": deep})
        return made


def roll_out(
    scene: FreeScene, starts: SceneState, values: Mapping[str, float], learned: GraphModel, seed: int
) -> Rollouts:
    """One second of each start."""
    period, names = learned.step, tuple(values)
    told = {name: np.full(len(starts), value) for name, value in values.items()}
    engine = MujocoEngine(scene, names, step=timestep(period))
    duration = seconds_of(period)
    frames = round(duration / period) + 1
    both = [engine.open(state, told).rollout(duration, frames=frames) for state in (starts, moved(starts, seed))]
    graph = GraphEngine(learned, scene, names).open(starts, told).rollout(duration, frames=frames)
    return Rollouts(scene, both[0], both[1], graph)


def moved(states: SceneState, seed: int) -> SceneState:
    """Starts moved along the ground and turned, each body by as much, in random directions."""
    rng = np.random.default_rng([seed, 17])
    shape = states.position.shape
    angle, axis = rng.uniform(0, 2 * np.pi, shape[:2]), rng.normal(size=shape)
    aside = MOVED * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)
    standing = np.abs(states.velocity).max(axis=-1, keepdims=True) == 0
    axis = np.where(standing, np.array([0.0, 0.0, 1.0]) * np.sign(axis[..., :1]), axis)  # on its face it stays
    turn = TURNED * axis / np.linalg.norm(axis, axis=-1, keepdims=True)
    turned = Rotation.from_rotvec(turn.reshape(-1, 3)) * to_scipy(states.quaternion.reshape(-1, 4))
    return replace(
        states, position=states.position + aside, quaternion=from_scipy(turned).reshape(states.quaternion.shape)
    )


def _apart(one: Motion, other: Motion, scene: FreeScene) -> tuple[float, float]:
    """Mean distance over the bodies' width [%] and mean angle [deg]."""
    distance = np.linalg.norm(one.position - other.position, axis=-1) / scene.widths
    cosine = np.abs((one.quaternion * other.quaternion).sum(axis=-1))
    angle = 2 * np.degrees(np.arccos(np.clip(cosine, 0.0, 1.0)))
    return float(100 * np.nanmean(distance)), float(np.nanmean(angle))


def deepest(scene: FreeScene, motion: Motion) -> float:
    """How deep bodies lie in each other or in the ground, at most [m]; by MuJoCo's collision detection."""
    model = scene.spec(step=1e-3).compile()
    data = mujoco.MjData(model)
    deep = 0.0
    for row in range(len(motion.position)):
        for frame in range(motion.position.shape[1]):
            pose = np.concatenate([motion.position[row, frame], motion.quaternion[row, frame]], axis=-1)
            data.qpos[:] = pose.ravel()
            mujoco.mj_kinematics(model, data)
            mujoco.mj_collision(model, data)
            deep = max(deep, -float(data.contact.dist.min(initial=0.0)))
    return deep


def drawn(source: Source, contact: Mapping[str, float], count: int, seed: int) -> tuple[FreeScene, SceneState]:
    """A scene with the source's own bodies, and starts."""
    make = Maker(SAME, Pool.drawn(source.templates, SAME, [1.0] * len(source.templates), (seed, 2)), contact)
    rng = np.random.default_rng([seed, 99])
    draws: list[Draw] = [source.draw(make, rng) for _ in range(count)]
    names = tuple(body.name for body in draws[0].bodies)
    at, turn, going, spin = (np.array([getattr(d, n) for d in draws]) for n in STATE)
    return FreeScene(source.name, draws[0].bodies, source.gravity), SceneState(names, at, turn, going, spin)


def bowling(o: Options, draw: int) -> Rows:
    """A cube strikes ten that stand like pins (Fig. 6)."""
    found, learned = calibrated(o, draw), of_scenes(o, draw)
    source = cubes(bodies=(10, 10), rate=1 / found.period)
    scene, starts = drawn(source, found.contact, BOWLED, o.seed + draw)
    return roll_out(scene, starts, found.contact, learned, o.seed + draw).rows("bowling")


def unseen_bodies() -> dict[str, Body]:
    """Shapes that no network here was trained on."""
    made = {}
    for name, sides in (("hexagonal prism", 6), ("wedge", 3)):
        angle = 2 * np.pi * np.arange(sides) / sides
        outline = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        corners = 0.05 * np.concatenate([np.c_[outline, np.full(sides, z)] for z in (-0.8, 0.8)])
        made[name] = _mesh_body(name.replace(" ", "_"), corners)
    size = 0.04 * np.array([1.0, 2.0, 3.0])
    shape = Shape("box", size=(float(size[0]), float(size[1]), float(size[2])))
    made["box 1:2:3"] = Body("box", "target", shape, DENSITY * float(size.prod()))
    return made


def _mesh_body(name: str, corners: Array) -> Body:
    import trimesh

    mesh = solid_mesh(name, trimesh.convex.convex_hull(corners), centred=True)
    return Body(name, "target", Shape("mesh", mesh=mesh), DENSITY * mesh.volume)


def new_shapes(o: Options, draw: int) -> Rows:
    """Shapes that it was not trained on; the worst of them once more under the name of all."""
    found, learned = calibrated(o, draw), of_scenes(o, draw)
    rows: Rows = []
    for name, body in unseen_bodies().items():
        scene, starts = _tossed(body, found, DROPPED, o.seed + draw)
        rows += roll_out(scene, starts, found.contact, learned, o.seed + draw).rows(f"new-shapes, {name}")
    return [*rows, *_worst("new-shapes", rows)]


def new_parameters(o: Options, draw: int) -> Rows:
    """Parameters other than the calibrated ones; the worst of them once more under the name of all."""
    found, learned = calibrated(o, draw), of_scenes(o, draw)
    rows: Rows = []
    body = toss().templates[0]
    for parameter, factors in OTHER.items():
        for factor in factors:
            scene, starts = _tossed(body, found, DROPPED, o.seed + draw)
            values = {**found.contact, parameter: factor * found.contact[parameter]}
            setting = f"new-parameters, {parameter} x {factor:g}"
            rows += roll_out(scene, starts, values, learned, o.seed + draw).rows(setting)
    return [*rows, *_worst("new-parameters", rows)]


def _worst(setting: str, rows: Rows) -> Rows:
    """The largest of each metric that is told over the yardstick."""
    most: dict[str, float] = {}
    for row in rows:
        if "over yardstick" in row["metric"]:
            most[row["metric"]] = max(row["value"], most.get(row["metric"], 0.0))
    return [{"setting": setting, "method": "graph", "metric": name, "value": value} for name, value in most.items()]


def _tossed(body: Body, found: Calibrated, count: int, seed: int) -> tuple[FreeScene, SceneState]:
    """A body thrown as tosses are."""
    source = replace(toss(rate=1 / found.period), templates=(body,))
    return drawn(source, found.contact, count, seed)
