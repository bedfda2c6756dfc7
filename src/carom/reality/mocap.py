"""A simulated motion capture: turns the true motion of target and striker into what a lab would record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carom.core.rotations import about_z, multiply, unit
from carom.reality.pressure_slide import Slide
from carom.state import Array, rotate

BRAKE = 20.0  #: [m/s^2] how the arm slows the striker after the hit, soon enough for a spinning corner to miss it
RETRACT = 0.3  #: [m/s] and how fast it then backs off

Poses = tuple[Array, Array]  #: of one body over time: position [T, 3] [m] and quaternion [T, 4], world


@dataclass(frozen=True)
class Mocap:
    """What a motion-capture system adds to, and takes from, the motion it sees."""

    rate: float = 240.0  #: [Hz]
    jitter: float = 0.03  #: sd of the time stamps, as a share of the period
    position_noise: float = 0.15e-3  #: sd per axis [m]
    angle_noise: float = float(np.radians(0.2))  #: sd about each axis [rad]
    lost: float = 0.01  #: share of samples lost, per body
    burst: float = 3.0  #: mean number of samples lost in a row
    before: float = 0.3  #: recorded before the contact [s]
    after: float = 0.1  #: recorded after the target has come to rest [s]
    longest: float = 2.5  #: no recording is longer [s]


@dataclass(frozen=True)
class Motion:
    """True motion of N strikes. Time runs from first touch; contact lasts `duration`, then the target slides."""

    target_pose: Array  #: [N, 3] of the target's frame before, world [m, m, rad]
    com: Array  #: [2] the target's true centre of mass in its frame [m]
    striker_pose: Array  #: [N, 3] of the striker's frame at first touch, world [m, m, rad]
    striker_before: Array  #: [N, 2] velocity of the striker until then [m/s]
    striker_after: Array  #: [N, 2] velocity of the striker at separation [m/s]
    separation: Array  #: [N, 3] velocity of the target's centre of mass at separation, world
    duration: float  #: of the contact [s]
    slide: Slide  #: of the centre of mass, from separation on

    def target_at(self, times: Array) -> Array:
        """Pose of the target's frame [N, T, 3] at times [N, T] since first touch; yaw is not wrapped."""
        start = com_pose(self.target_pose, self.com)
        pushed = start[:, None] + self.separation[:, None] * (self.duration * _eased(times, self.duration))[..., None]
        pose = np.where((times < self.duration)[..., None], pushed, self.slide.at(times - self.duration))
        pose[..., :2] -= rotate(self.com, pose[..., 2])
        return pose

    def striker_at(self, times: Array) -> Array:
        """Pose of the striker's frame [N, T, 3] at times [N, T] since first touch: steady, pushed, braked, backing."""
        gained = (self.striker_after - self.striker_before)[:, None]
        held = np.minimum(times, self.duration)[..., None]
        shift = self.striker_before[:, None] * held + gained * (self.duration * _eased(times, self.duration))[..., None]
        speed = np.linalg.norm(self.striker_after, axis=1)[:, None]
        late = np.maximum(times - self.duration, 0.0)
        turn = (speed + RETRACT) / BRAKE
        braking = np.minimum(late, turn)
        way = speed * braking - BRAKE / 2 * braking**2 - RETRACT * np.maximum(late - turn, 0.0)
        shift = shift + (self.striker_after / np.where(speed > 0, speed, 1.0))[:, None] * way[..., None]
        pose = np.broadcast_to(self.striker_pose[:, None], (*times.shape, 3)).copy()
        pose[..., :2] += shift
        return pose

    @property
    def rest_time(self) -> Array:
        """When the target stopped [N], since first touch [s]."""
        return self.duration + self.slide.rest_time


@dataclass(frozen=True)
class Sampled:
    """One strike as recorded: T samples of two bodies."""

    time: Array  #: [T] s
    target_position: Array  #: [T, 3] m; NaN where lost
    target_quaternion: Array  #: [T, 4] w-first; NaN where lost
    striker_position: Array  #: [T, 3] m; NaN where lost
    striker_quaternion: Array  #: [T, 4] w-first; NaN where lost


def com_pose(pose: Array, com: Array) -> Array:
    """Pose [..., 3] of the centre of mass of a body with this frame pose [..., 3] and com [2] in its frame."""
    return np.concatenate([pose[..., :2] + rotate(com, pose[..., 2]), pose[..., 2:]], axis=-1)


def _eased(times: Array, duration: float) -> Array:
    """Integral of a smooth rise of velocity from 0 to 1 over the contact, in units of its duration; held after it.

    A compliant contact pushes as half a sine does, so the velocity rises as (1 - cos) / 2.
    """
    s = np.clip(times / duration, 0.0, 1.0) if duration > 0 else np.zeros_like(times)
    return np.asarray(s / 2 - np.sin(np.pi * s) / (2 * np.pi))


def record(
    motion: Motion, heights: tuple[float, float], streams: Sequence[np.random.Generator], mocap: Mocap
) -> list[Sampled]:
    """What the system records of N strikes, with the heights of target's and striker's frames [m].

    Strike i takes its randomness from stream i alone, so that it doesn't depend on the others.
    """
    exposed = [exposures(rest, stream, mocap) for rest, stream in zip(motion.rest_time, streams, strict=True)]
    longest = max(len(times) for times in exposed)
    times = np.stack([np.pad(own, (0, longest - len(own)), mode="edge") for own in exposed])
    paths = motion.target_at(times), motion.striker_at(times)
    sampled = []
    for i, (own, stream) in enumerate(zip(exposed, streams, strict=True)):
        target, striker = (_lifted(p[i, : len(own)], height) for p, height in zip(paths, heights, strict=True))
        sampled.append(measured(target, striker, stream, mocap))
    return sampled


def exposures(rest_time: float, stream: np.random.Generator, mocap: Mocap) -> Array:
    """When the system looks at one strike [T], since first touch [s]; the target comes to rest at `rest_time` [s]."""
    phase = stream.random()
    length = np.minimum(mocap.before + rest_time + mocap.after, mocap.longest)
    count = int(np.floor(length * mocap.rate - phase)) + 1
    return np.asarray((np.arange(count) + phase) * (1 / mocap.rate) - mocap.before)


def measured(target: Poses, striker: Poses, stream: np.random.Generator, mocap: Mocap) -> Sampled:
    """What the system makes of the true poses of both bodies at its exposures."""
    count = len(target[0])
    noise = stream.standard_normal((count, 13))
    # The stamps jitter, not the exposures: what the system says of when, not what it saw.
    time = (np.arange(count) + np.clip(mocap.jitter * noise[:, 0], -0.3, 0.3)) / mocap.rate
    bodies = []
    for k, (true_position, true_quaternion) in enumerate((target, striker)):
        errors = noise[:, 1 + 6 * k : 7 + 6 * k]
        position = np.round(true_position + mocap.position_noise * errors[:, :3], 6)
        quaternion = np.round(_tilted(true_quaternion, mocap.angle_noise * errors[:, 3:]), 6)
        gone = _lost(count, stream, mocap)
        position[gone], quaternion[gone] = np.nan, np.nan
        bodies += [position, quaternion]
    return Sampled(np.round(time, 6), *bodies)


def _lifted(planar: Array, height: float) -> Poses:
    """Poses in space of a frame at this height with planar poses [T, 3] (x, y, yaw)."""
    position = np.concatenate([planar[:, :2], np.full((len(planar), 1), height)], axis=1)
    return position, about_z(planar[:, 2])


def _tilted(quaternion: Array, error: Array) -> Array:
    """Quaternions [T, 4] after a small rotation [T, 3] in the body's own frame [rad]."""
    small = np.concatenate([np.ones((len(quaternion), 1)), error / 2], axis=-1)
    return unit(multiply(quaternion, small))


def _lost(count: int, stream: np.random.Generator, mocap: Mocap) -> Array:
    """Which samples [T] are lost: bursts of geometric length that begin anywhere, together the share `lost`."""
    begins = stream.random(count) < mocap.lost / mocap.burst
    lengths = stream.geometric(1 / mocap.burst, count) * begins
    return np.asarray(np.maximum.accumulate(np.arange(count) + lengths) > np.arange(count))
