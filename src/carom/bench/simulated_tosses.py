"""Recordings of simulated tosses of a cube with known parameters, as a motion capture system would see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from carom.core.rotations import from_scipy, to_scipy
from carom.identify.tosses.recorded import Motions, motions_of
from carom.identify.tosses.sides import SIDES
from carom.identify.tosses.simulate import Sampled, Starts
from carom.recordings import Ground, Recordings, Trajectory
from carom.scenes.free import toss_scene

RATE = 148.0  #: [1/s] of the tracker
SAMPLES = 110
NOISE = (5e-5, float(np.radians(0.025)))  #: [m] and [rad] of each sample, per component


@dataclass(frozen=True)
class Tossed:
    """Some tosses, and what is true of them."""

    recordings: Recordings
    sides: NDArray[np.integer]  #: [N] index into `SIDES` of each toss's heavy side

    @property
    def motions(self) -> Motions:
        """The tosses, ready to be identified."""
        return motions_of(self.recordings)[0]


def starts_of_tosses(count: int, rng: np.random.Generator, sides: NDArray[np.integer] | None = None) -> Starts:
    """Random throws from a hand's breadth above the ground."""
    position = np.zeros((count, 1, 3))
    position[..., :2] = 0.05 * rng.normal(size=(count, 1, 2))
    position[..., 2] = rng.uniform(0.18, 0.25, (count, 1))
    turn = from_scipy(Rotation.random(count, rng=rng))[:, None]
    heading, speed = rng.uniform(0, 2 * np.pi, count), rng.uniform(0.6, 1.4, count)
    up = rng.uniform(0.0, 0.8, count)
    velocity = np.stack([speed * np.cos(heading), speed * np.sin(heading), up], axis=-1)[:, None]
    starts = Starts.known(position, turn, velocity, 4.0 * rng.normal(size=(count, 1, 3)))
    return starts if sides is None else replace(starts, side=SIDES[sides])


def toss(
    count: int,
    truth: Mapping[str, float],
    *,
    seed: int,
    folder: Path = Path("tosses"),
    noise: tuple[float, float] = NOISE,
    samples: int = SAMPLES,
) -> Tossed:
    """Simulated tosses with the mass towards a random side each; nothing is written to `folder`."""
    rng = np.random.default_rng(seed)
    scene = toss_scene()
    sides = rng.integers(0, 6, count)
    engine = Sampled.in_mujoco(scene, tuple(truth), period=1 / RATE, threads=1)
    motion = engine.simulate(starts_of_tosses(count, rng, sides), truth, samples)
    position = motion.position[:, :, 0] + noise[0] * rng.normal(size=(count, samples, 3))
    shake = Rotation.from_rotvec(noise[1] * rng.normal(size=(count * samples, 3)))
    turned = shake * to_scipy(motion.quaternion[:, :, 0].reshape(-1, 4))
    quaternion = from_scipy(turned).reshape(count, samples, 4)
    bodies = {"cube": scene.bodies[0]}
    made = tuple(
        Trajectory(
            f"toss_{i:02d}.csv",
            folder / f"toss_{i:02d}.csv",
            np.arange(samples) / RATE,
            {"cube": position[i]},
            {"cube": quaternion[i]},
            bodies,
        )
        for i in range(count)
    )
    return Tossed(Recordings(folder, bodies, made, ground=Ground()), sides)
