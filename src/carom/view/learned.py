"""Takes of a model without recordings: the strikes that it was made from; a graph simulator beside its teacher."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from carom.core.rotations import random_turn
from carom.engines.contract import Engine
from carom.engines.mujoco.engine import MujocoEngine
from carom.identify.tosses.simulate import Sampled, Starts
from carom.learn.graph.engine import GraphEngine
from carom.learn.graph.model import GraphModel
from carom.scenes.free import FreeScene, timestep, toss_scene
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import StrikeScene
from carom.state import Impacts
from carom.view.shown import COLOURS, RECORDED, Arrow, Take, Track
from carom.view.strikes import (
    PLANAR,
    STRIKER,
    TARGET,
    StrikeEngineShown,
    StrikePlace,
    impulse_arrow,
    simulated,
    until_rest,
)

LASTS, TOSSED = 3.0, 1.2  #: [s] of a simulated strike, and of a toss
TOSSES = 6  #: shown of a graph simulator
HIGH, FAST, SPINS = (0.15, 0.3), 0.8, 6.0  #: heights [m], speeds [m/s] and spins [rad/s] of tosses at most


def striker_shape(scene: StrikeScene) -> Shape:
    """A ball or a flat block as the scene states its striker."""
    striker = scene.striker
    if striker.radius is not None:
        return Shape("cylinder", radius=striker.radius, height=striker.height)
    half, depth = float(striker.width or 0.0) / 2, 0.01
    corners = np.array([[-depth, -half], [0.0, -half], [0.0, half], [-depth, half]])
    turn = striker.forward
    turned = corners @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return Shape("extruded", outline=tuple((float(x), float(y)) for x, y in turned), height=striker.height)


def scene_shapes(scene: StrikeScene) -> dict[str, Shape]:
    """Target and striker of a scene."""
    return {TARGET: scene.shape, STRIKER: striker_shape(scene)}


@dataclass(frozen=True)
class ModelTakes:
    """The strikes that a model learned from, as its hybrid and MuJoCo see them."""

    train: Impacts
    scene: StrikeScene
    engines: tuple[StrikeEngineShown, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.train.names)

    def __call__(self, index: int) -> Take:
        """One strike; the impulse that was measured is an arrow beside those of the engines."""
        row, scene = self.train[[index]], self.scene
        strikes = row.strikes
        place = StrikePlace.flat(scene, (float(strikes.target_pose[0, 2]), float(strikes.striker_pose[0, 2])))
        tracks: list[Track] = []
        arrows: list[Arrow] = []
        words = ["No recordings stand beside the model: give them with `--with RECORDINGS` to see them too.", PLANAR]
        for number, engine in enumerate(self.engines):
            track, post, reason = simulated(engine, strikes, LASTS, place, COLOURS[number % len(COLOURS)])
            if track is None:
                words.append(f"{engine.name}: {reason}.")
                continue
            tracks.append(track)
            arrows += impulse_arrow(engine.name, scene, strikes, post, place.height)
        arrows += impulse_arrow(RECORDED, scene, strikes, row.post[0], place.height)
        tracks = until_rest(tracks)
        if not tracks:
            still = place.still(strikes)
            tracks.append(still)
        return Take(self.names[index], scene_shapes(scene), tuple(tracks), tuple(arrows), words=tuple(words))


@dataclass(frozen=True)
class GraphTakes:
    """Tosses of a cube in a graph simulator, beside MuJoCo with the same contact."""

    model: GraphModel
    path: Path

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"toss {i + 1}" for i in range(TOSSES))

    @property
    def scene(self) -> FreeScene:
        """A cube of the size and mass in the middle of what it was trained with."""
        side, mass = (self._middle(name, usual) for name, usual in (("width", 0.1), ("mass", 0.37)))
        if side == 0.1 and mass == 0.37:
            return toss_scene()
        return FreeScene("toss", (Body("cube", "target", Shape("box", size=(side,) * 3), mass=mass),))

    def _middle(self, name: str, usual: float) -> float:
        low, high = self.model.ranges.get(name, (usual, usual))
        return usual if low <= usual <= high else (low + high) / 2

    def __call__(self, index: int) -> Take:
        """One toss, drawn by its number."""
        rng, scene = np.random.default_rng([index, 71]), self.scene
        position = np.array([[[0.0, 0.0, rng.uniform(*HIGH)]]])
        velocity = np.array([[[*rng.uniform(-FAST, FAST, 2), 0.0]]])
        spin = rng.uniform(-SPINS, SPINS, (1, 1, 3))
        starts = Starts.known(position, random_turn(rng)[None, None], velocity, spin)
        values = {k: v for k, v in self.model.defaults.items() if k != "face_friction" and k in scene.takes}
        engines: dict[str, Engine] = {
            "graph simulator": GraphEngine(self.model, scene),
            "MuJoCo, its contact": MujocoEngine(scene, tuple(values), step=timestep(self.model.step), threads=1),
        }
        tracks, samples = [], round(TOSSED / self.model.step) + 1
        for number, (name, engine) in enumerate(engines.items()):
            own = values if number else {}
            motion = Sampled(scene, engine, self.model.step).simulate(starts, own, samples)
            where, how = motion.position[0], motion.quaternion[0]
            tracks.append(Track(name, motion.bodies, motion.time[0], where, how, COLOURS[number]))
        words = ("A toss that nobody recorded. Give recordings with `--with RECORDINGS` to see real ones.",)
        return Take(self.names[index], {b.name: b.solid for b in scene.bodies}, tuple(tracks), words=words)
