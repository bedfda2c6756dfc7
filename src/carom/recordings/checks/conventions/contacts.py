"""Where and how two bodies meet, found without their orientations, and how both move just before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from carom.core.rotations import multiply, unit
from carom.recordings.checks.conventions.hypotheses import read_as
from carom.recordings.differentiate import fit_polynomial, measured_rows
from carom.recordings.impacts.kinks import kinks
from carom.recordings.sampled import first_motion, last_motion
from carom.recordings.trajectory import Recordings, Trajectory
from carom.scenes.shapes import Body
from carom.state import Array

BEFORE = 0.06  #: [s] of the fits before contact
SETTLED = 0.03  #: [s] after first motion, when a contact is over
AFTER = 0.12  #: [s] of the fits from then on
JOLT = (0.01, 0.06)  #: [s] after first motion, in which what holds a striker gives way


@dataclass(frozen=True)
class Motion:
    """A body at one instant: its position and the four numbers of its orientation, with their rates of change."""

    position: Array  #: [3] m
    velocity: Array  #: [3] m/s, of the frame
    numbers: Array  #: [4] as recorded; NaN: not measured
    rates: Array  #: [4] 1/s

    def turns(self, frame: str) -> Array:
        """Its unit quaternion, read in the four ways [4, 4]."""
        return unit(read_as(self.numbers, frame))

    def spins(self, frame: str) -> Array:
        """Its angular velocity in the world, read in the four ways [4, 3] [rad/s]."""
        size = np.linalg.norm(self.numbers)
        back = read_as(self.numbers / size, frame) * np.array([1.0, -1.0, -1.0, -1.0])
        return np.asarray(2 * multiply(read_as(self.rates / size, frame), back)[..., 1:])


@dataclass(frozen=True)
class Contact:
    """A striker meets a target."""

    target: Body
    striker: Body
    before: tuple[Motion, Motion]  #: target, striker
    after: tuple[Motion, Motion]  #: the same, when contact is over
    jolted: Motion | None  #: the striker just after first motion

    @property
    def swapped(self) -> Contact:
        """The same contact seen from the striker."""
        return replace(self, target=self.striker, striker=self.target, before=self.before[::-1], after=self.after[::-1])


def contacts(recordings: Recordings, target: str, striker: str) -> list[Contact]:
    """The first contact of each recording in which the two bodies meet and can be seen before and after."""
    found = (_contact(trajectory, target, striker) for trajectory in recordings.trajectories)
    return [contact for contact in found if contact is not None]


def _contact(trajectory: Trajectory, target: str, striker: str) -> Contact | None:
    if target not in trajectory.position_world or striker not in trajectory.position_world:
        return None
    path = trajectory.position_world[target][:, :2]
    onset = first_motion(trajectory.time, path, trajectory.period)
    if onset is not None:
        at = onset.time
        stop = last_motion(trajectory.time, path, trajectory.period, at)
    else:
        instants = kinks(trajectory, target, striker)
        if not instants:
            return None
        at, stop = instants[0], instants[1] if len(instants) > 1 else np.inf
    settled = at + SETTLED
    end = min(settled + AFTER, max(stop, settled + 0.4 * AFTER))
    before = [_motion(trajectory, body, at, at - BEFORE, at - 1e-9, order=1) for body in (target, striker)]
    after = [_motion(trajectory, body, settled, settled, end, order=2) for body in (target, striker)]
    if before[0] is None or before[1] is None or after[0] is None:
        return None
    middle = at + sum(JOLT) / 2
    jolted = _motion(trajectory, striker, middle, at + JOLT[0], at + JOLT[1], order=1)
    kept = after[1] if after[1] is not None else before[1]  # a tool that is no longer tracked goes on as it did
    bodies = trajectory.bodies
    return Contact(bodies[target], bodies[striker], (before[0], before[1]), (after[0], kept), jolted)


def _motion(trajectory: Trajectory, body: str, at: float, start: float, end: float, *, order: int) -> Motion | None:
    position, quaternion = trajectory.position_world[body], trajectory.quaternion_world[body]
    numbers = np.full((len(trajectory), 4), np.nan) if quaternion is None else quaternion
    samples = np.column_stack([position, numbers])
    near = (trajectory.time >= start) & (trajectory.time <= end)
    rows = np.flatnonzero(near & measured_rows(position))
    if len(rows) < 4:
        return None
    rows = rows[np.isfinite(samples[rows]).all(axis=-1)] if quaternion is not None else rows
    if len(rows) < 4:
        return None
    y = samples[rows]
    flips = np.sign(np.sum(y[1:, 3:] * y[:-1, 3:], axis=-1))
    y[1:, 3:] *= np.cumprod(np.where(flips < 0, -1.0, 1.0))[:, None]
    fit = fit_polynomial(trajectory.time[rows], y, at, order=order)
    if not fit.usable:
        return None
    return Motion(fit.value[:3], fit.velocity[:3], fit.value[3:], fit.velocity[3:])
