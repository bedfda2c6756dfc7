"""Recordings with known answers: strikes, collisions and tosses from closed formulas, with a tracker's defects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from carom.recordings import Trajectory
from carom.scenes.shapes import Body, Shape

Array = NDArray[np.float64]
BOX = Body("box", "target", Shape("box", size=(0.2, 0.2, 0.1)), mass=0.5)
TOOL = Body("tool", "striker", Shape("sphere", radius=0.015))
CUBE = Body("cube", "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.4)


def quaternion_of(yaw: Array) -> Array:
    return np.stack([np.cos(yaw / 2), 0 * yaw, 0 * yaw, np.sin(yaw / 2)], axis=-1)


def slide(t: Array, v0: Array, deceleration: float) -> Array:
    """Displacement [T, 2] of a body that starts at t = 0 and is braked evenly until it stops."""
    speed = float(np.linalg.norm(v0))
    run = np.clip(t, 0.0, speed / deceleration if deceleration else np.inf)
    return np.outer(run - 0.5 * (deceleration / speed if speed else 0.0) * run**2, v0)


@dataclass(frozen=True)
class Strike:
    """A striker that comes from -y and sends the box off."""

    contact: float = 0.3037
    striker_velocity: tuple[float, float] = (0.05, 0.8)
    velocity: tuple[float, float] = (-0.1, 1.1)
    spin: float = 2.0
    deceleration: float = 1.5
    rate: float = 200.0
    duration: float = 1.2
    noise: float = 1e-4
    yaw_noise: float = 1e-4
    clock: float = 0.0  #: sample times are off by a saw tooth of this many periods (amplitude)
    lost: float = 0.0  #: share of lost samples
    com: tuple[float, float, float] | None = None

    def true_velocity(self, later: float) -> Array:
        v0 = np.array(self.velocity)
        speed = float(np.linalg.norm(v0))
        return v0 * max(1 - self.deceleration * later / speed, 0.0)

    def trajectory(self, seed: int = 0, name: str = "hit_000.csv") -> Trajectory:
        rng = np.random.default_rng(seed)
        stamp = np.arange(0.0, self.duration, 1 / self.rate)
        # two clocks that beat: the pose is of an earlier or later instant than the stamp says
        t = stamp + self.clock / self.rate * (2 * ((np.arange(len(stamp)) / 4.6) % 1) - 1)
        after = np.clip(t - self.contact, 0.0, None)
        stop = float(np.linalg.norm(self.velocity)) / self.deceleration
        yaw = self.spin * np.minimum(after, stop)
        com = slide(after, np.array(self.velocity), self.deceleration)
        offset = np.zeros(2) if self.com is None else np.array(self.com[:2])
        arm = np.stack(
            [np.cos(yaw) * offset[0] - np.sin(yaw) * offset[1], np.sin(yaw) * offset[0] + np.cos(yaw) * offset[1]], -1
        )
        box = np.column_stack([com + offset - arm, np.full(len(t), 0.05)])
        before = np.minimum(t - self.contact, 0.0)
        v = np.array(self.striker_velocity)
        tool = np.column_stack([np.outer(before, v) + np.outer(after, 0.6 * v) + [0.01, -0.115], np.full(len(t), 0.05)])
        quaternion = quaternion_of(yaw + self.yaw_noise * rng.standard_normal(len(t)))
        positions = {}
        for body, path in (("box", box), ("tool", tool)):
            path = path + self.noise * rng.standard_normal(path.shape)
            path[rng.random(len(t)) < self.lost] = np.nan
            positions[body] = path
        quaternion[np.isnan(positions["box"][:, 0])] = np.nan
        target = BOX if self.com is None else Body("box", "target", BOX.shape, mass=0.5, com=self.com)
        return Trajectory(
            name=name,
            path=Path(name),
            time=stamp,
            position_world=positions,
            quaternion_world={"box": quaternion, "tool": quaternion_of(np.zeros(len(t)))},
            bodies={"box": target, "tool": TOOL},
        )


def two_discs(
    *, seed: int = 0, orientation: bool = False, noise: float = 3e-5, contact: float = 0.5013
) -> tuple[Trajectory, dict[str, Array]]:
    """Two discs that collide elastically on the move, and their true velocities before and after."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 1.2, 0.002)
    mass = {"a": 0.03, "b": 0.02}
    va, vb = np.array([0.25, 0.05]), np.array([-0.15, 0.02])
    normal = np.array([0.96, 0.28])
    closing = float((va - vb) @ normal)
    impulse = 1.9 * closing / (1 / mass["a"] + 1 / mass["b"])  # restitution 0.9
    after = {"a": va - impulse / mass["a"] * normal, "b": vb + impulse / mass["b"] * normal}
    positions, quaternions = {}, {}
    for body, before, place in (("a", va, np.zeros(2)), ("b", vb, 0.05 * normal)):
        lag = t - contact
        path = place + np.outer(np.minimum(lag, 0), before) + np.outer(np.maximum(lag, 0), after[body])
        positions[body] = np.column_stack([path, np.full(len(t), 0.1)]) + noise * rng.standard_normal((len(t), 3))
        quaternions[body] = quaternion_of(0.5 * t) if orientation else None
    disc = Shape("disc", radius=0.025)
    bodies = {"a": Body("a", "striker", disc, mass=mass["a"]), "b": Body("b", "target", disc, mass=mass["b"])}
    trajectory = Trajectory("pair_00.csv", Path("pair_00.csv"), t, positions, quaternions, bodies)
    return trajectory, {"a pre": va, "b pre": vb, "a post": after["a"], "b post": after["b"]}


def toss(
    *, gravity: float = 9.81, scale: float = 1.0, seed: int = 0, noise: float = 2e-5, name: str = "toss_000.csv"
) -> Trajectory:
    """A cube that falls flat, bounces with restitution 0.4 until it lies, its lengths multiplied by `scale`."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 1.2, 1 / 148)
    height, speed, clock = 0.25 + 0.02 * rng.random(), 0.0, 0.0
    z = np.empty_like(t)
    for i, now in enumerate(t):
        while True:  # exact parabolas between bounces
            landing = (speed + np.sqrt(max(speed**2 + 2 * gravity * (height - 0.05), 0.0))) / gravity
            if now <= clock + landing or landing < 1e-4:
                break
            clock, height, speed = clock + landing, 0.05, 0.4 * abs(speed - gravity * landing)
        lag = now - clock
        z[i] = 0.05 if landing < 1e-4 else height + speed * lag - 0.5 * gravity * lag**2
    position = np.column_stack([0.5 * np.minimum(t, 0.6), 0 * t, z]) + noise * rng.standard_normal((len(t), 3))
    return Trajectory(
        name=name,
        path=Path(name),
        time=t,
        position_world={"cube": scale * position},
        quaternion_world={"cube": quaternion_of(np.full(len(t), 0.3))},
        bodies={"cube": CUBE},
    )
