"""Pushes: a tool stays with a block and moves it. What tells them from strikes, and what a recording shows of one.

A struck block leaves its tool after a few hundredths of a second and slides on alone. A pushed one moves while the tool
is there, and hardly otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carom.recordings.differentiate import measured_rows
from carom.recordings.geometry import planar_gap
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import Array

LONG = 0.25  #: [s] of motion beside a tool from which on it may be a push: blows are over by then
WITH_TOOL = 0.5  #: share of a block's motion that happens beside the tool, in a push
NEAR = 0.004  #: [m] beyond the least gap that counts as beside: sizes are known to a millimetre or so
SPAN = 0.1  #: [s] over which speeds are taken: pushes are slow, and noise is not
FAR = 0.05  #: [m] from which on outlines are so far apart that nothing pushes, whatever sizes and places are off by
SURELY = 5.0  #: standard deviations of the noise that no resting block moves
APART = 0.1  #: [s] for which the two may part without a new contact being counted
SLOW = 0.15  #: of the fastest: slower than that, a block counts as at rest

Range = tuple[float, float, float]  #: least, median, greatest


@dataclass(frozen=True)
class Push:
    """What one recording shows of a tool that pushes a block."""

    trajectory: str  #: name of the recording
    target: str  #: the block
    tool: str
    spans: tuple[tuple[float, float], ...]  #: [s] from when to when the tool moves the block
    moving: float  #: [s] for which the block moves
    beside: float  #: [s] of these with the tool beside it
    speed: float  #: median of the block's while it is pushed [m/s]
    distance: float  #: that the block is moved [m]
    turn: float  #: by which it is turned, from the first to the last sample [rad]; NaN: not measured
    least_gap: float  #: [m] between outlines: not near 0 if a size or a place is wrong; NaN: shapes are unknown

    @property
    def contact(self) -> float:
        """Time for which the tool moves the block [s]."""
        return float(sum(end - start for start, end in self.spans))

    @property
    def share(self) -> float:
        """Of the block's motion, that beside the tool."""
        return self.beside / self.moving if self.moving else 0.0


def push_of(trajectory: Trajectory) -> Push | None:
    """The push that a recording shows; None if it shows something else. A recording keeps what was found."""
    if "push" not in trajectory.kept:
        found = [push for target in trajectory.targets if (push := _push(trajectory, target)) is not None]
        trajectory.kept["push"] = found[0] if len(trajectory.targets) == 1 and found else None
    kept: Push | None = trajectory.kept["push"]
    return kept


def pushes_in(recordings: Recordings) -> tuple[Push, ...]:
    """The pushes of a folder."""
    return tuple(push for t in recordings.trajectories if (push := push_of(t)) is not None)


def tools_of(trajectory: Trajectory) -> tuple[str, ...]:
    """Bodies that may push, those first whose role says so."""
    return trajectory.with_role("tool", "striker") or trajectory.with_role("arm", "other")


def _push(trajectory: Trajectory, target: str) -> Push | None:
    motion = _moving(trajectory, target)
    if motion is None:
        return None
    moves, speed = motion
    step = np.minimum(np.gradient(trajectory.time), 5 * trajectory.period)
    moving = float(step[moves].sum())
    best: Push | None = None
    for tool in tools_of(trajectory):
        gap, shaped = gap_between(trajectory, target, tool)
        if not np.isfinite(gap).any():
            continue
        # the least gap while it moves; a low quantile, as one sample may be lost to noise
        least = float(np.nanquantile(gap[moves], 0.05)) if np.isfinite(gap[moves]).any() else np.inf
        together = moves & (gap < least + NEAR)
        beside = float(step[together].sum())
        if beside < LONG or beside < WITH_TOOL * moving or (shaped and least > FAR):
            continue
        first = int(np.flatnonzero(together)[0])
        if float(step[:first][moves[:first]].sum()) > LONG:
            continue  # it moved before anything was there: two bodies that meet, and may stick together
        path = trajectory.planar_com(target)
        seen = np.flatnonzero(measured_rows(path))
        yaw = trajectory.yaw(target)[seen]
        yaw = yaw[np.isfinite(yaw)]
        push = Push(
            trajectory=trajectory.name,
            target=target,
            tool=tool,
            spans=_spans(trajectory.time, together),
            moving=moving,
            beside=beside,
            speed=float(np.nanmedian(speed[together])),
            distance=float(np.nansum(np.where(together, speed, 0.0) * step)),
            turn=float(yaw[-1] - yaw[0]) if len(yaw) > 1 else float("nan"),
            least_gap=least if shaped else float("nan"),
        )
        if best is None or push.beside > best.beside:
            best = push
    return best


def _moving(trajectory: Trajectory, target: str) -> tuple[NDArray[np.bool_], Array] | None:
    """In which samples [T] a block moves, and how fast [T] [m/s]; None if it never does, or too few are seen."""
    path, time = trajectory.planar_com(target), trajectory.time
    seen = np.flatnonzero(measured_rows(path))
    if len(seen) < 20:
        return None
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(time, path))))
    filled = np.column_stack([np.interp(time, time[seen], path[seen, k]) for k in range(2)])
    turn = trajectory.yaw(target)
    if np.isfinite(turn).sum() > 20:  # a block that turns on the spot moves as well: its outline's points do
        known = np.flatnonzero(np.isfinite(turn))
        shape = trajectory.bodies[target].shape
        lever = 0.25 * float(np.ptp(shape.planar_outline, axis=0).max()) if shape is not None else 0.03
        angle = np.interp(time, time[known], turn[known])
        filled = np.column_stack([filled, lever * angle])
        noise = float(np.hypot(noise, lever * float(np.nan_to_num(noise_floor(time, turn[:, None])[0]))))
    before, after = (np.searchsorted(time, time + side * SPAN / 2).clip(0, len(time) - 1) for side in (-1, 1))
    lasting = np.maximum(time[after] - time[before], trajectory.period)
    speed = np.linalg.norm(filled[after] - filled[before], axis=1) / lasting
    planar = np.linalg.norm((filled[after] - filled[before])[:, :2], axis=1) / lasting
    least = max(SLOW * float(np.quantile(speed, 0.98)), SURELY * noise / SPAN)
    moves = speed > least
    return (moves, planar) if moves.any() else None


def gap_between(trajectory: Trajectory, target: str, tool: str) -> tuple[Array, bool]:
    """Distance [T] [m] of two bodies, and whether it is that of their outlines; else it is that of their frames."""
    poses = [np.column_stack([trajectory.position_world[name][:, :2], trajectory.yaw(name)]) for name in (target, tool)]
    for pose, name in zip(poses, (target, tool), strict=True):
        shape = trajectory.bodies[name].shape
        if shape is not None and shape.is_round and trajectory.quaternion_world[name] is None:
            pose[:, 2] = np.where(np.isfinite(pose[:, 0]), 0.0, np.nan)  # how a round body is turned is all the same
    gap = planar_gap(trajectory.bodies[target], poses[0], trajectory.bodies[tool], poses[1])
    if np.isfinite(gap).any():
        return gap, True
    return np.asarray(np.linalg.norm(poses[0][:, :2] - poses[1][:, :2], axis=1)), False


def _spans(time: Array, together: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """Stretches of time in which something holds, those less than `APART` from each other as one."""
    rows = np.flatnonzero(together)
    if not len(rows):
        return ()
    breaks = np.flatnonzero(np.diff(time[rows]) > APART)
    starts, ends = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(rows) - 1]])
    return tuple((float(time[rows[a]]), float(time[rows[b]])) for a, b in zip(starts, ends, strict=True))


@dataclass(frozen=True)
class PushSummary:
    """The pushes of a folder in figures."""

    count: int
    contact: Range  #: time for which a tool moves the block [s]
    speed: Range  #: of the block while it is pushed, median of each [m/s]
    distance: Range  #: that the block is moved [m]
    turn: Range  #: by which it is turned, either way [rad]; NaN: not measured
    with_controls: int  #: how many have commands beside the poses

    def rows(self) -> list[tuple[str, str]]:
        """For the table of `check`."""
        words = [
            ("pushes", f"{self.count}, {self.with_controls} with commands (ctrl.*)"),
            ("in contact", _words(self.contact, "{:.2g}", "s")),
            ("block's speed", _words(tuple(1e3 * v for v in self.speed), "{:.3g}", "mm/s")),
            ("moved by", _words(tuple(1e3 * v for v in self.distance), "{:.3g}", "mm")),
        ]
        if np.isfinite(self.turn[1]):
            words.append(("turned by", _words(tuple(np.degrees(v) for v in self.turn), "{:.3g}", "degrees")))
        return words


def _words(values: tuple[float, ...], form: str, unit: str) -> str:
    low, middle, high = (form.format(v) for v in values)
    return f"{middle} {unit} (from {low} to {high})"


def summary_of(recordings: Recordings) -> PushSummary | None:
    """Of the pushes of a folder; None where there are none."""
    found = [(t, push) for t in recordings.trajectories if (push := push_of(t)) is not None]
    if not found:
        return None
    pushes = [push for _, push in found]
    return PushSummary(
        len(found),
        _range([p.contact for p in pushes]),
        _range([p.speed for p in pushes]),
        _range([p.distance for p in pushes]),
        _range([abs(p.turn) for p in pushes]),
        sum(bool(t.controls) for t, _ in found),
    )


def _range(values: list[float]) -> Range:
    good = [v for v in values if np.isfinite(v)] or [float("nan")]
    return float(min(good)), float(np.median(good)), float(max(good))
