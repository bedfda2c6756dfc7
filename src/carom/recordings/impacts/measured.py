"""A measured impact: when, between what, how the bodies moved before and after, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from carom.recordings.differentiate import LocalFit
from carom.recordings.trajectory import Trajectory
from carom.state import Array

Quality = Literal["good", "doubtful", "unusable"]
Kind = Literal["strike", "ground"]


@dataclass(frozen=True)
class BodyMotion:
    """Pose and velocity of one body at one instant, with standard errors. NaN stands for what was not measured.

    For planar impacts the angular velocity has only its z component, from the unwrapped yaw.
    """

    time: float  #: [s]
    position_world: Array  #: [3] m, the body's frame
    position_std: Array  #: [3] m
    quaternion_world: Array  #: [4] w-first
    yaw: float  #: [rad] about z, unwrapped over the recording
    yaw_std: float  #: [rad]
    velocity_world: Array  #: [3] m/s, of the centre of mass (of the frame for a striker)
    velocity_std: Array  #: [3] m/s
    angular_velocity_world: Array  #: [3] rad/s
    angular_velocity_std: Array  #: [3] rad/s
    count: int  #: samples used

    @property
    def planar_velocity(self) -> Array:
        """vx, vy, wz [3] m/s, m/s, rad/s."""
        return np.array([*self.velocity_world[:2], self.angular_velocity_world[2]])

    @property
    def planar_velocity_std(self) -> Array:
        """Standard errors of `planar_velocity` [3]."""
        return np.array([*self.velocity_std[:2], self.angular_velocity_std[2]])


@dataclass(frozen=True)
class Impact:
    """One impact on a target: a striker's blow, or its own fall on the ground."""

    trajectory: str  #: the data file's name
    kind: Kind
    time: float  #: [s] first motion, or first touch
    time_std: float  #: [s]
    target: str
    striker: str | None  #: None for the ground, or where no body was near
    pre: BodyMotion  #: the target as it is touched
    post: BodyMotion  #: the target `settle` after `time`
    striker_pre: BodyMotion | None  #: the striker at `time`, from samples before it only
    settle: float  #: [s] after `time`, where the post state is evaluated
    span: float  #: [s] of the fit behind the post state
    gap: float  #: [m] between the outlines at `time` (ground: height of the lowest point); NaN if shapes are unknown
    timing_jitter: float  #: how far sample times are off, in sample periods; NaN if it could not be told
    quality: Quality
    reason: str  #: why it is not good, in words; empty if it is


def planar_motion(trajectory: Trajectory, body: str, fit: LocalFit, at: float, *, of_com: bool = True) -> BodyMotion:
    """A `BodyMotion` from a fit of the columns that `planar_samples` gives."""
    nan = float("nan")
    yaw = float(fit.value[5])
    measured = trajectory.quaternion_world[body]
    quaternion = np.full(4, np.nan)
    if measured is not None and np.isfinite(measured).all(axis=-1).any():
        good = np.flatnonzero(np.isfinite(measured).all(axis=-1))
        nearest = good[int(np.argmin(np.abs(trajectory.time[good] - at)))]
        quaternion = measured[nearest] / np.linalg.norm(measured[nearest])
    velocity = np.array([*fit.velocity[3:5], fit.velocity[2]]) if of_com else fit.velocity[:3]
    velocity_std = np.array([*fit.velocity_std[3:5], fit.velocity_std[2]]) if of_com else fit.velocity_std[:3]
    return BodyMotion(
        time=at,
        position_world=fit.value[:3],
        position_std=fit.value_std[:3],
        quaternion_world=np.asarray(quaternion),
        yaw=yaw,
        yaw_std=float(fit.value_std[5]),
        velocity_world=velocity,
        velocity_std=velocity_std,
        angular_velocity_world=np.array([nan, nan, float(fit.velocity[5])]),
        angular_velocity_std=np.array([nan, nan, float(fit.velocity_std[5])]),
        count=fit.count,
    )


def planar_samples(trajectory: Trajectory, body: str) -> Array:
    """The columns that are fitted for a planar state [T, 6]: frame x, y, z; centre of mass x, y; yaw."""
    position, yaw = trajectory.position_world[body], trajectory.yaw(body)
    if np.isnan(position).all():
        yaw = np.full(len(yaw), np.nan)  # a body that is nowhere: its orientation alone is of no use
    return np.column_stack([position, trajectory.planar_com(body), yaw])
