"""What a calibrated engine says about recordings yet unseen, from their samples before the first contact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from carom.core.rotations import from_scipy, to_scipy
from carom.engines.contract import Engine
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.sides import SIDES, SideKnowledge
from carom.identify.tosses.simulate import Sampled, Starts
from carom.recordings.starts import SPIN_STD, TURN_STD, VELOCITY_STD
from carom.scenes.free import FreeScene
from carom.state import Array, Motion

SHAKES = 8  #: starts tried of every recording and side, the estimated one among them


@dataclass(frozen=True)
class MotionModel:
    """A calibrated MuJoCo of free bodies, or another engine with the same parameters."""

    scene: FreeScene
    values: Mapping[str, float]  #: parameter values
    sides: SideKnowledge | None  #: where the mass of a cube is likely to be, in a recording yet unseen
    #: an engine for a scene and names of parameters, such as a learned one; None: MuJoCo
    engine: Callable[[FreeScene, tuple[str, ...]], Engine] | None = None

    def simulate(self, motions: Motions, *, threads: int = 0) -> Motion:
        """One simulation of every recording, from its estimated start and with the likeliest side."""
        known = motions if self.sides is None else motions.with_sides(self.sides.likeliest(motions))
        return self._run(known, known.starts, threads)

    def predict(self, motions: Motions, *, seed: int = 0, threads: int = 0) -> Motion:
        """The most representative simulation of every recording.

        The heavy side of a cube is a guess, and its start is known only so well: bounces make much of both. Of
        simulations with every side and several starts, the one is taken whose expected error is least: which is
        nearest to all the others (Eq. 1), weighed by their chances. Where no side is in doubt it is `simulate`'s: the
        scatter of starts alone moves the best choice by next to nothing.
        """
        if self.sides is None:
            return self.simulate(motions, threads=threads)
        count, kinds = len(motions), len(SIDES)
        every = motions.starts[np.tile(np.arange(count), kinds)]
        every = replace(every, side=np.repeat(SIDES, count, axis=0))
        # the same changes for every recording and side: a prediction does not depend on what else is predicted
        noise = np.random.default_rng(seed).normal(size=(SHAKES, len(motions.scene.bodies), 9))
        noise[0] = 0.0
        tried = every[np.tile(np.arange(len(every)), SHAKES)]
        motion = self._run(motions, shaken(tried, np.repeat(noise, len(every), axis=0)), threads)
        shape = (SHAKES * kinds, count)
        position = motion.position.reshape(*shape, *motion.position.shape[1:])
        quaternion = motion.quaternion.reshape(*shape, *motion.quaternion.shape[1:])
        weights = np.tile(self.sides.probabilities(motions), (1, SHAKES))
        best = np.array(
            [
                int(np.argmin(_apart(position[:, n, t], quaternion[:, n, t], motions.scene.widths) @ weights[n]))
                for n, t in enumerate(motions.measured)
            ]
        )
        rows = best * count + np.arange(count)
        return motion[rows]

    def _run(self, motions: Motions, starts: Starts, threads: int) -> Motion:
        names = tuple(self.values)
        if self.engine is None:
            sampled = Sampled.in_mujoco(motions.scene, names, period=motions.period, threads=threads)
        else:
            sampled = Sampled(motions.scene, self.engine(motions.scene, names), motions.period)
        return sampled.simulate(starts, self.values, motions.samples)


def shaken(starts: Starts, noise: Array) -> Starts:
    """Starts that are as wrong as estimated ones are, by `noise` [N, B, 9] of variance 1."""
    speed, spin, turn = np.split(noise, 3, axis=-1)
    turned = Rotation.from_rotvec(TURN_STD * turn.reshape(-1, 3)) * to_scipy(starts.quaternion.reshape(-1, 4))
    return replace(
        starts,
        velocity=starts.velocity + VELOCITY_STD * speed,
        spin=starts.spin + SPIN_STD * spin,
        quaternion=from_scipy(turned).reshape(starts.quaternion.shape),
    )


def _apart(position: Array, quaternion: Array, widths: Array) -> Array:
    """Eq. 1 between any two [K, K] of some motions of the same bodies [K, T, B, 3] and [K, T, B, 4]."""
    distance = np.linalg.norm(position[:, None] - position, axis=-1) / widths
    cosine = np.abs(np.einsum("itbq,jtbq->ijtb", quaternion, quaternion))
    return np.asarray((distance + 2 * np.arccos(np.clip(cosine, 0.0, 1.0))).mean(axis=(-1, -2)))
