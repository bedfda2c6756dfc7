"""Where a recording of free bodies can be simulated from, and the state there, from the samples before the contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.core.errors import RecordingError
from carom.core.rotations import matrices
from carom.recordings.differentiate import fit_polynomial, fit_rotation
from carom.recordings.geometry import lowest_point
from carom.recordings.impacts.ground import is_tossed
from carom.recordings.impacts.segment import find_impacts
from carom.recordings.trajectory import Trajectory
from carom.state import Array

LEAD = 3  #: samples before the first possible contact at which a simulation begins
NEAR_GROUND = 0.002  #: [m] a body whose lowest point is nearer than this may touch
SPAN = 0.2  #: [s] at most of the fit before a contact
LEAST = 3  #: samples for a velocity
STILL = 0.1  #: [m/s] a tossed body that is slower than this at the record's end lies
#: [m/s], [rad/s], [rad] that estimated starts are off by, about: what flights and resting poses scatter
VELOCITY_STD, SPIN_STD, TURN_STD = 0.005, 0.05, 0.008


@dataclass(frozen=True)
class Start:
    """State of every body at one sample, and how its estimate would change with what it assumes."""

    index: int  #: the sample
    bodies: tuple[str, ...]
    position: Array  #: [B, 3] m
    quaternion: Array  #: [B, 4]
    velocity: Array  #: [B, 3] m/s, of the frames
    spin: Array  #: [B, 3] rad/s, world
    position_by_com: Array  #: [B, 3, 3]
    velocity_by_com: Array  #: [B, 3, 3]
    position_by_gravity: Array  #: [B, 3]
    velocity_by_gravity: Array  #: [B, 3]
    #: [B, 3] m/s^2 and [B, 3, 3]: what flight shows beyond free fall, and what a centre of mass would make of it
    strange: Array
    strange_by_com: Array
    strange_std: Array  #: [B] m/s^2, of one component, from the samples' scatter alone


def find_start(trajectory: Trajectory, *, gravity: float, ground_height: float = 0.0, scale: float = 1.0) -> Start:
    """The state `LEAD` samples before the first contact, from all samples of up to `SPAN` seconds before it.

    In flight, the centre of mass falls freely and the body turns evenly (a cube does; others nearly do for so short a
    time); on the ground, motion is a parabola in time. `scale` is recorded over real lengths, for the shapes.
    """
    names = tuple(trajectory.bodies)
    contact = first_contact(trajectory, ground_height=ground_height, scale=scale)
    if contact >= len(trajectory) or not _touches(trajectory):
        raise RecordingError(f"{trajectory.path}: it shows no contact: nothing lands, and no two bodies meet")
    if contact < LEAST:
        raise RecordingError(f"{trajectory.path}: only {contact} samples before the first contact; {LEAST} are needed")
    index = max(contact - LEAD, 0)
    low = int(np.searchsorted(trajectory.time, trajectory.time[contact - 1] - SPAN))
    rows = slice(min(low, contact - LEAST), contact)
    pieces = [_body(trajectory, name, index, rows, gravity) for name in names]
    return Start(index, names, *(np.array(column) for column in zip(*pieces, strict=True)))


def first_contact(trajectory: Trajectory, *, ground_height: float = 0.0, scale: float = 1.0) -> int:
    """The first sample at which a body may have touched the ground or another one; the number of samples if none."""
    found = [len(trajectory)]
    tossed = [name for name in trajectory.bodies if is_tossed(trajectory, name)]
    for name in tossed:
        shape, quaternion = trajectory.bodies[name].shape, trajectory.quaternion_world[name]
        if shape is None or quaternion is None:
            raise RecordingError(f"{trajectory.path}: a toss of '{name}' needs its shape and its orientation")
        position = trajectory.position_world[name]
        below = lowest_point(shape, np.zeros_like(position), quaternion) * scale
        height = position[:, 2] + below - ground_height
        near = np.flatnonzero(np.nan_to_num(height, nan=np.inf) < NEAR_GROUND)
        if len(near):
            found.append(int(near[0]))
    if len(trajectory.bodies) > 1:
        for impact in find_impacts(trajectory):
            found.append(int(np.searchsorted(trajectory.time, impact.time)))
    return min(found)


def _touches(trajectory: Trajectory) -> bool:
    """Whether something lands or is met: a path that bends, or a tossed body that lies still in the end."""
    if find_impacts(trajectory):
        return True
    for name in trajectory.bodies:
        path = trajectory.position_world[name]
        last = path[np.isfinite(path).all(axis=-1)][-5:]
        moved = float(np.linalg.norm(np.ptp(last, axis=0))) if len(last) == 5 else np.inf
        if moved < STILL * 4 * trajectory.period and is_tossed(trajectory, name):
            return True
    return False


def _body(trajectory: Trajectory, name: str, index: int, rows: slice, gravity: float) -> tuple[Array, ...]:
    time, at = trajectory.time[rows], float(trajectory.time[index])
    position = trajectory.position_world[name][rows]
    quaternion = trajectory.quaternion_world[name]
    good = np.isfinite(position).all(axis=-1)
    if quaternion is not None:
        good &= np.isfinite(quaternion[rows]).all(axis=-1)
    if good.sum() < LEAST:
        raise RecordingError(f"{trajectory.path}: fewer than {LEAST} samples of '{name}' before the first contact")
    tau, position = time[good] - at, position[good]
    flying = is_tossed(trajectory, name)
    none3, none33 = np.zeros(3), np.zeros((3, 3))
    if quaternion is None:
        turn, spin, frames = np.array([1.0, 0, 0, 0]), np.zeros(3), np.tile(np.eye(3), (len(tau), 1, 1))
    else:
        turn, fit = fit_rotation(time, quaternion[rows], at, order=1 if flying or len(tau) < 6 else 2)
        spin = fit.velocity
        frames = matrices(quaternion[rows][good])
    if not flying:
        fit = fit_polynomial(tau, position, 0.0, order=2 if len(tau) >= 6 else 1)
        nothing = (none3, none33, np.array(np.inf))
        return (fit.value, turn, fit.velocity, spin, none33, none33, none3, none3, *nothing)
    design = np.stack([np.ones_like(tau), tau], axis=-1)
    solve = np.linalg.pinv(design)  # [2, T]
    fall = np.outer(0.5 * tau**2, [0.0, 0.0, -1.0])
    value, velocity = solve @ (position - gravity * fall)
    # the frame's path plus R com is what falls freely: one more linear fit per component of com, and one for gravity
    by_com = np.einsum("pt,tij->pij", solve, frames)
    here = matrices(turn)
    cross = np.cross(spin, here.T).T  # columns: spin x (R e_j)
    by_gravity = -(solve @ fall)
    strange = _strange(tau, position, frames, gravity)
    return (value, turn, velocity, spin, by_com[0] - here, by_com[1] - cross, by_gravity[0], by_gravity[1], *strange)


def _strange(tau: Array, position: Array, frames: Array, gravity: float) -> tuple[Array, Array, Array]:
    """Acceleration beyond free fall [3], its change per metre of com [3, 3], and its standard error."""
    if len(tau) < 5:
        return np.zeros(3), np.zeros((3, 3)), np.array(np.inf)
    design = np.stack([np.ones_like(tau), tau, 0.5 * tau**2], axis=-1)
    solve = np.linalg.pinv(design)
    left = position - design @ (solve @ position)
    noise = float(np.sqrt((left**2).sum() / max(left.size - 9, 1)))
    seen = solve[2] @ position + np.array([0.0, 0.0, gravity])
    return seen, np.einsum("t,tij->ij", solve[2], frames), np.array(noise * np.linalg.norm(solve[2]))
