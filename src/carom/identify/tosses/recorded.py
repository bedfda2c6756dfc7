"""Whole recordings of free bodies, ready to be simulated and compared: starts, measured frames, Eq. 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from carom.core.constants import GRAVITY
from carom.core.errors import CaromError, RecordingError, SceneError, UninformativeError
from carom.identify.tosses.simulate import Starts
from carom.recordings.geometry import lowest_point
from carom.recordings.impacts.ground import is_tossed
from carom.recordings.impacts.segment import find_impacts
from carom.recordings.sampled import first_motion
from carom.recordings.starts import Start, find_start
from carom.recordings.trajectory import Recordings, Trajectory
from carom.scenes.free import FreeScene, timestep
from carom.scenes.shapes import Body
from carom.state import Array, Motion

ON_THE_FLOOR = 0.005  #: [m] a rest height within this of 0 means that the ground is at 0
GLIDING = 0.3  #: [s] after a contact on an air table; later, its tilt and draughts tell more than the contact did
LONGEST, MOST_FRAMES = 60.0, 100_000  #: [s] and sample periods that a recording may go on: all of it is simulated
MOVES = 0.05  #: [m/s] a body that is slower lies
FEWEST = 5  #: samples that tell whether a body slows down
GLIDES = 0.15  #: [m/s^2] bodies that slow down by less than this glide on air


@dataclass(frozen=True)
class Motions:
    """N recordings of the same bodies from shortly before their first contact on; frames are padded with NaN."""

    scene: FreeScene
    names: tuple[str, ...]  #: of the recordings
    period: float  #: [s] between samples
    starts: Starts
    position: Array  #: [N, T, B, 3] measured [m]
    quaternion: Array  #: [N, T, B, 4] measured; NaN where orientation was not
    strange: Array  #: [N, 3] acceleration in flight beyond free fall, of the first body [m/s^2]
    strange_by_com: Array  #: [N, 3, 3] what a centre of mass off the middle would make of it, per metre
    strange_std: Array  #: [N] standard error of one component

    def __len__(self) -> int:
        return len(self.names)

    @property
    def samples(self) -> int:
        """Length of the longest recording, the start included."""
        return int(self.position.shape[1])

    @property
    def measured(self) -> NDArray[np.bool_]:
        """The samples [N, T] at which any body was seen."""
        return np.asarray(np.isfinite(self.position[..., 0]).any(axis=-1))

    def __getitem__(self, rows: Sequence[int] | NDArray[np.integer]) -> Motions:
        index = np.asarray(rows, dtype=int)
        last = int(np.flatnonzero(np.isfinite(self.position[index, ..., 0]).any(axis=(0, 2)))[-1]) + 1
        return replace(
            self,
            names=tuple(self.names[i] for i in index),
            starts=self.starts[index],
            position=self.position[index, :last],
            quaternion=self.quaternion[index, :last],
            strange=self.strange[index],
            strange_by_com=self.strange_by_com[index],
            strange_std=self.strange_std[index],
        )

    def until(self, samples: int) -> Motions:
        """The same recordings, cut off after so many samples."""
        return replace(self, position=self.position[:, :samples], quaternion=self.quaternion[:, :samples])

    def with_sides(self, sides: Array) -> Motions:
        """The same recordings with the direction [N, 3] in which the first body's mass is off centre."""
        return replace(self, starts=replace(self.starts, side=np.asarray(sides, dtype=np.float64)))


def motions_of(
    recordings: Recordings, rows: Sequence[int] | None = None
) -> tuple[Motions, tuple[tuple[str, str], ...]]:
    """The recordings that can be simulated, and (name, reason) of those that cannot; raises if none can."""
    trajectories = [recordings.trajectories[i] for i in (range(len(recordings)) if rows is None else rows)]
    used, starts, skipped = [], [], []
    scene = free_scene(recordings, trajectories)
    gravity = GRAVITY if recordings.gravity is None else recordings.gravity
    for trajectory in trajectories:
        try:
            start = find_start(trajectory, gravity=gravity, ground_height=scene.ground_height)
            _refuse_long(trajectory, start)
            starts.append(start)
            used.append(trajectory)
        except RecordingError as reason:
            skipped.append((trajectory.name, str(reason).removeprefix(f"{trajectory.path}: ")))
    if not used:
        why = f" ({skipped[0][0]}: {skipped[0][1]})" if skipped else ""
        raise UninformativeError(f"{recordings.path}: no recording can be simulated from before its first contact{why}")
    return _stacked(scene, used, starts, gravity), tuple(skipped)


def _refuse_long(trajectory: Trajectory, start: Start) -> None:
    """Raise if so much time passes after the first contact that its frames would fill the memory."""
    lasts = float(trajectory.time[-1] - trajectory.time[start.index])
    frames = lasts / trajectory.period
    if lasts > LONGEST or frames > MOST_FRAMES:
        raise RecordingError(
            f"{trajectory.path}: expected {LONGEST:g} s and {MOST_FRAMES} sample periods at most from the first "
            f"contact on, got {lasts:.4g} s and {frames:.6g} periods; cut it after the bodies have come to rest"
        )


def free_scene(recordings: Recordings, trajectories: Sequence[Trajectory]) -> FreeScene:
    """The scene of some recordings that were made with the same bodies."""
    bodies = trajectories[0].bodies
    for trajectory in trajectories[1:]:
        if tuple(trajectory.bodies) != tuple(bodies) or any(_differ(trajectory.bodies[n], bodies[n]) for n in bodies):
            raise CaromError(f"{recordings.path}: {trajectory.name} was recorded with other bodies; identify it apart")
    tossed = any(is_tossed(t, n) for t in trajectories for n in t.bodies)
    planar = not tossed and len(bodies) > 1 and all(_glides(t) for t in trajectories)
    gravity = GRAVITY if recordings.gravity is None else recordings.gravity
    height = 0.0 if planar else _ground_height(recordings, trajectories)
    try:
        return FreeScene(recordings.path.name, tuple(bodies.values()), gravity, height, planar)
    except SceneError as error:
        raise SceneError(f"{recordings.path}: {error}") from error


def groups(recordings: Recordings) -> list[list[int]]:
    """Rows of the trajectories that share their bodies' shapes and masses."""
    found: list[list[int]] = []
    for row, trajectory in enumerate(recordings.trajectories):
        for group in found:
            other = recordings.trajectories[group[0]].bodies
            same = tuple(other) == tuple(trajectory.bodies)
            if same and not any(_differ(other[n], trajectory.bodies[n]) for n in other):
                group.append(row)
                break
        else:
            found.append([row])
    return found


def _differ(a: Body, b: Body) -> bool:
    return (a.shape, a.mass, a.inertia, a.com) != (b.shape, b.mass, b.inertia, b.com)


def _glides(trajectory: Trajectory) -> bool:
    """Whether the bodies keep their speed between contacts, as on an air table; not so where none is seen to move."""
    contacts = [impact.time for impact in find_impacts(trajectory)]
    braked = [b for name in trajectory.bodies if (b := _braking(trajectory, name, contacts)) is not None]
    return bool(braked) and max(braked) < GLIDES


def _braking(trajectory: Trajectory, name: str, contacts: Sequence[float]) -> float | None:
    """How much the speed of a body changes by itself [m/s^2], over up to a quarter of its samples, in which it moves.

    Those it begins with; if it lies there, those before the first contact (what sets it going may be a hand: not the
    first half of them), or those after the last. None: it lies in all of them.
    """
    path = trajectory.position_world[name][:, :2]
    good = np.isfinite(path).all(axis=-1)
    count = int(good.sum()) // 4
    if count < FEWEST:
        return float("inf")
    time, path = trajectory.time[good], path[good]
    parts = [slice(0, count)]
    if contacts:
        onset = first_motion(time, path, trajectory.period)
        first, before, after = np.searchsorted(
            time, [time[0] if onset is None else onset.time, min(contacts), max(contacts) + trajectory.period]
        )
        parts += [slice(max(before - count, (first + before) // 2), before), slice(after, after + count)]
    for part in parts:
        t, p = time[part], path[part]
        if len(t) >= FEWEST and np.linalg.norm(np.polyfit(t - t[0], p, 1)[0]) > MOVES:
            return float(np.linalg.norm(2 * np.polyfit(t - t[0], p, 2)[0]))
    return None


def _ground_height(recordings: Recordings, trajectories: Sequence[Trajectory]) -> float:
    if recordings.ground is not None:
        return recordings.ground.height
    lows = []
    for trajectory in trajectories:
        for name, body in trajectory.bodies.items():
            quaternion = trajectory.quaternion_world[name]
            if body.shape is not None and quaternion is not None:
                low = lowest_point(body.shape, trajectory.position_world[name], quaternion)
                low = low[np.isfinite(low)]
                lows.append(float(np.median(low[-5:])) if len(low) else np.nan)
    height = float(np.nanmedian(lows)) if lows else 0.0
    return 0.0 if abs(height) < ON_THE_FLOOR else height


def _stacked(scene: FreeScene, used: Sequence[Trajectory], starts: Sequence[Start], gravity: float) -> Motions:
    period = float(np.median([t.period for t in used]))
    bodies = [b.name for b in scene.bodies]
    most = round(GLIDING / period) if scene.planar else np.inf
    lengths = [round((t.time[-1] - t.time[s.index]) / period) + 1 for t, s in zip(used, starts, strict=True)]
    shape = (len(used), int(min(max(lengths), most)), len(bodies))
    position, quaternion = np.full((*shape, 3), np.nan), np.full((*shape, 4), np.nan)
    for n, (trajectory, start) in enumerate(zip(used, starts, strict=True)):
        # a sample belongs to the instant nearest to it; one that is further off than a tenth is left out
        when = (trajectory.time - trajectory.time[start.index]) / period
        at = np.round(when).astype(int)
        keep = (at >= 0) & (at < shape[1]) & (np.abs(when - at) < 0.1)
        for b, name in enumerate(bodies):
            position[n, at[keep], b] = trajectory.position_world[name][keep]
            turn = trajectory.quaternion_world[name]
            if turn is not None:
                quaternion[n, at[keep], b] = turn[keep]

    def stack(field: str) -> Array:
        return np.array([getattr(start, field) for start in starts])

    velocity = stack("velocity")
    if not scene.planar:
        # the engine's step updates velocity before position: half a step of gravity keeps a flight on its parabola
        flying = np.array([[is_tossed(t, name) for name in bodies] for t in used])
        velocity[..., 2] += 0.5 * timestep(period) * gravity * flying

    return Motions(
        scene=scene,
        names=tuple(t.name for t in used),
        period=period,
        starts=Starts(
            position=stack("position"),
            quaternion=stack("quaternion"),
            velocity=velocity,
            spin=stack("spin"),
            position_by_com=stack("position_by_com"),
            velocity_by_com=stack("velocity_by_com"),
            position_by_gravity=stack("position_by_gravity"),
            velocity_by_gravity=stack("velocity_by_gravity"),
            gravity=gravity,
        ),
        position=position,
        quaternion=quaternion,
        strange=stack("strange")[:, 0],
        strange_by_com=stack("strange_by_com")[:, 0],
        strange_std=stack("strange_std")[:, 0],
    )


def frame_errors(motions: Motions, motion: Motion) -> tuple[Array, Array]:
    """Distance [C, N, T, B] m and angle [C, N, T, B] rad of C simulations of every recording; NaN where not measured.

    `motion` holds C times N rollouts, recordings fastest.
    """
    count = len(motions)
    simulated = motion.position.reshape(-1, count, *motion.position.shape[1:])
    turned = motion.quaternion.reshape(-1, count, *motion.quaternion.shape[1:])
    distance = np.linalg.norm(simulated - motions.position, axis=-1)
    cosine = np.abs((turned * motions.quaternion).sum(axis=-1))
    return distance, np.asarray(2 * np.arccos(np.clip(cosine, 0.0, 1.0)))


def trajectory_errors(motions: Motions, motion: Motion) -> tuple[Array, Array]:
    """Mean over time and bodies of distance over width, and of the angle [rad]: [C, N] each; 0 where never measured."""
    distance, angle = frame_errors(motions, motion)
    return _mean(distance / motions.scene.widths), _mean(angle)


def equation_1(motions: Motions, motion: Motion) -> Array:
    """Eq. 1 of the few-shot paper as a mean [C, N]: position over body width plus geodesic angle [rad]."""
    position, angle = trajectory_errors(motions, motion)
    return position + angle


def _mean(values: Array) -> Array:
    seen = np.isfinite(values)
    total = np.where(seen, values, 0.0).sum(axis=(-1, -2))
    return np.asarray(total / np.maximum(seen.sum(axis=(-1, -2)), 1))
