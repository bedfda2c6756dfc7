"""Stretches of recorded pushes that are played again: a measured state, the set-points after it, what came of them.

A stretch begins where the block is at rest, if it ever is: a state is read best there, and a tool that touches a moving
block by a tenth of a millimetre more or less sends it elsewhere. So short pushes are one window each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.identify.pushes.states import joints_at, read_at, seen_at, settled
from carom.recordings import Recordings, Trajectory
from carom.scenes.pushing import GuidedScene, PushScene
from carom.state import Array, SceneState

WINDOW = 2.5  #: [s] that is played again at once, at most
LEAST = 0.25  #: [s] below which a recording shows too little
INSTANTS = 0.05  #: [s] between poses that are compared
BEFORE = 0.1  #: [s] of set-points before a window: no delay is longer
PERIODS = (0.1, 0.05, 0.04, 0.025, 0.02, 0.01, 0.005)  #: [s] for which set-points may be held
SOME = 4  #: control periods at the end of which nothing moves any more
STILL = 1e-3  #: [m] a window in which nothing moves as far shows nothing


@dataclass(frozen=True)
class Windows:
    """W stretches of recordings, each of K control periods."""

    period: float  #: [s] for which a set-point is held
    start: SceneState  #: [W]
    unsure: Array  #: [W, 6] standard errors of the block's x, y, yaw there, and of their rates; 0 at rest
    controls: Array  #: [W, K, U]
    held: Array  #: [W, H, U] set-points before, oldest first
    block: Array  #: [W, I, 3] x, y, yaw of the block at the instants compared [m, m, rad]; NaN: not seen
    tip: Array  #: [W, I, 3] of the tool, by the measured joints [m]
    every: int  #: control periods between instants
    recording: NDArray[np.int64]  #: [W] to which recording each belongs
    names: tuple[str, ...]  #: of the recordings
    left_out: tuple[tuple[str, str], ...] = field(default=())  #: recordings that are not used, and why

    def __len__(self) -> int:
        return len(self.controls)

    def some(self, rows: NDArray[np.int64]) -> Windows:
        """Some of the windows; recordings keep their numbers."""
        columns = ("start", "unsure", "controls", "held", "block", "tip", "recording")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


@dataclass(frozen=True)
class Take:
    """One recording in the scene's terms, at the beginnings of its K control periods and at its end."""

    name: str
    states: SceneState  #: [K + 1]
    unsure: Array  #: [K + 1, 6]
    joints: Array  #: [K + 1, J] as measured then
    resting: NDArray[np.bool_]  #: [K + 1] whether the block is at rest
    block: Array  #: [K + 1, 3] NaN: not seen
    controls: Array  #: [K, U]; of a led tool [K, ticks, 3] its places
    stood: Array  #: [U] or [ticks, 3] what was set before the first of them
    led: bool = False  #: the tool is led: where it is says nothing

    @property
    def last(self) -> int:
        """Control periods until the block rests for good, and some; until the tool does, if no block ever moved."""
        moving = np.abs(self.joints - self.joints[-1]).max(axis=1) > STILL
        going = np.flatnonzero(moving if self.resting.all() else ~self.resting)
        return min(int(going[-1]) + SOME if len(going) else 0, len(self.controls))


def windows_of(scene: PushScene, recordings: Recordings | Sequence[Recordings], *, window: float = WINDOW) -> Windows:
    """The windows of one folder of pushes, or of several; refuses folders whose set-points are not recorded."""
    folders = [recordings] if isinstance(recordings, Recordings) else list(recordings)
    found = [(folder, t) for folder in folders for t in folder.trajectories]
    if not found:
        raise CaromError("no recordings of pushes to tune with")
    for folder, trajectory in found:
        _refuse(scene, folder, trajectory)
    period = _period(scene, [t for _, t in found])
    takes, left_out = [], []
    for _, trajectory in found:
        why = unusable(trajectory)
        if why is None:
            takes.append(_take(scene, trajectory, period))
        else:
            left_out.append((trajectory.name, why))
    if not takes:
        raise CaromError(f"no recording can be used: {left_out[0][0]}: {left_out[0][1]}")
    return cut_up(scene, takes, period, window, tuple(left_out))


def cut_up(
    scene: PushScene | GuidedScene,
    takes: Sequence[Take],
    period: float,
    window: float,
    left_out: tuple[tuple[str, str], ...],
) -> Windows:
    """Windows over all takes, one after the other; those in which nothing moves are left out."""
    every = max(round(INSTANTS / period), 1)
    longest = max(round(window / period / every), 1) * every
    rows = [
        (number, begin, end)
        for number, take in enumerate(takes)
        for begin, end in _stretches(take, longest, every)
        if _moves(scene, take, begin, end)
    ]
    if not rows:
        raise CaromError("nothing moves in these recordings of pushes: there is nothing to tune with")
    length = max(-(-(end - begin) // every) * every for _, begin, end in rows)
    picked = [takes[n].states[[b]] for n, b, _ in rows]
    columns = ("position", "quaternion", "velocity", "spin", "joint_position", "joint_velocity")
    start = SceneState(
        bodies=picked[0].bodies,
        joints=picked[0].joints,
        **{name: np.concatenate([getattr(s, name) for s in picked]) for name in columns},
    )
    before = int(np.ceil(BEFORE / period))
    seen = [_compared(scene, takes[n], b, e, length, every) for n, b, e in rows]
    return Windows(
        period=period,
        start=start,
        unsure=np.array([takes[n].unsure[b] for n, b, _ in rows]),
        controls=np.array([_lasting(takes[n].controls[b:e], length) for n, b, e in rows]),
        held=np.array([_before(takes[n], b, before) for n, b, _ in rows]),
        block=np.array([block for block, _ in seen]),
        tip=np.array([tip for _, tip in seen]),
        every=every,
        recording=np.array([n for n, _, _ in rows]),
        names=tuple(take.name for take in takes),
        left_out=left_out,
    )


def _stretches(take: Take, longest: int, every: int) -> list[tuple[int, int]]:
    """Beginnings and ends of a take's windows: a new one begins at a rest in the later half of the one before."""
    found, begin, last = [], 0, take.last
    if longest <= every:  # single transitions
        return [(b, b + every) for b in range(0, last - every + 1, every)]
    while last - begin >= every:
        end = min(begin + longest, last)
        rests = begin + longest // 2 + np.flatnonzero(take.resting[begin + longest // 2 : end + 1])
        if end < last and len(rests):
            end = int(rests[-1])
        found.append((begin, end))
        begin = end
    return found


def _lasting(controls: Array, length: int) -> Array:
    """Set-points [K, U], the last one held for as long as the longest window lasts."""
    return np.concatenate([controls, np.repeat(controls[-1:], length - len(controls), axis=0)])


def _compared(
    scene: PushScene | GuidedScene, take: Take, begin: int, end: int, length: int, every: int
) -> tuple[Array, Array]:
    """Block [I, 3] and tip [I, 3] at the instants of a window; NaN after its end."""
    at = begin + np.arange(0, length + 1, every)
    known = np.minimum(at, end)
    block, tip = take.block[known].copy(), scene.tool_position(take.joints[known])
    block[at > end], tip[(at > end) | take.led] = np.nan, np.nan
    return block, tip


def _before(take: Take, begin: int, count: int) -> Array:
    """The `count` set-points [H, U] before a window; before the first one, where the joints stood."""
    known = np.concatenate([np.repeat(take.stood[None], count, axis=0), take.controls[:begin]])
    return np.asarray(known[len(known) - count :])


def _moves(scene: PushScene | GuidedScene, take: Take, begin: int, end: int) -> bool:
    """Whether tool or block move in a window, and the block is seen where it begins and later."""
    if not np.isfinite(take.block[begin]).all() or not np.isfinite(take.block[begin + 1 : end + 1]).all(axis=1).any():
        return False
    block, tip = take.block[begin : end + 1, :2], scene.tool_position(take.states.joint_position[begin : end + 1])
    return any(float((np.nanmax(path, axis=0) - np.nanmin(path, axis=0)).max()) > STILL for path in (block, tip))


def _refuse(scene: PushScene, folder: Recordings, trajectory: Trajectory) -> None:
    """Refuse recordings without what the scene's robot was told, or where it was."""
    joints = [scene.joint_names[j] for j in scene.servos]
    missing = [f"ctrl.{name}" for name in joints if name not in trajectory.controls]
    if not _tool_is_joints(scene, trajectory):
        missing += [f"ctrl.{n}_measured" for n in scene.joint_names if f"{n}_measured" not in trajectory.controls]
    if missing:
        raise CaromError(
            f"{folder.path}: {trajectory.name}: scene '{scene.name}' is tuned with the set-points of its servos and "
            f"their measured positions; missing columns: {', '.join(missing)}"
        )
    if len(trajectory.targets) != 1:
        raise CaromError(
            f"{folder.path}: {trajectory.name}: expected one body with role target, got {len(trajectory.targets)}"
        )


def _tool_is_joints(scene: PushScene, trajectory: Trajectory) -> bool:
    """Whether the tool's tracked place stands for the joints: a planar tool whose joints were not recorded."""
    measured = all(f"{name}_measured" in trajectory.controls for name in scene.joint_names)
    return not measured and scene.own is None and scene.robot == "planar" and bool(trajectory.with_role("tool"))


def unusable(trajectory: Trajectory) -> str | None:
    target = trajectory.targets[0]
    if trajectory.quaternion_world[target] is None:
        return f"the orientation of '{target}' is not measured"
    if trajectory.time[-1] - trajectory.time[0] < LEAST:
        return f"it is shorter than {LEAST:g} s"
    seen = np.isfinite(trajectory.position_world[target]).all(axis=1)
    return None if seen.sum() > 10 else f"'{target}' is hardly ever seen"


def _period(scene: PushScene, trajectories: Sequence[Trajectory]) -> float:
    """The longest time for which set-points may be held so that all recorded changes lie on its grid [s]."""
    joints = [scene.joint_names[j] for j in scene.servos]
    usable = [p for p in PERIODS if abs(round(p / scene.timestep) * scene.timestep - p) < 1e-9]
    for period in usable:
        if all(_on_grid(t, joints, period) for t in trajectories):
            return period
    return usable[-1] if usable else scene.timestep


def _on_grid(trajectory: Trajectory, joints: Sequence[str], period: float) -> bool:
    controls = np.column_stack([trajectory.controls[name] for name in joints])
    changed = 1 + np.flatnonzero((np.abs(np.diff(controls, axis=0)) > 1e-9).any(axis=1))
    since = trajectory.time[changed] - trajectory.time[0]
    off = np.abs(since - np.rint(since / period) * period)
    return (
        bool((off < 0.6 * trajectory.period).all())
        and len(since) <= len(trajectory.time) * (trajectory.period / period) * 1.01 + 1
    )


def _take(scene: PushScene, trajectory: Trajectory, period: float) -> Take:
    """The states at a grid of control periods, and the set-points after each."""
    target = trajectory.targets[0]
    time, begin = trajectory.time, float(trajectory.time[0])
    count = int(np.floor((time[-1] - begin) / period + 0.25))
    at: Array = begin + period * np.arange(count + 1, dtype=np.float64)
    path = np.column_stack([trajectory.position_world[target][:, :2], trajectory.yaw(target)])
    if _tool_is_joints(scene, trajectory):
        joints = np.array(trajectory.position_world[trajectory.with_role("tool")[0]][:, :2])
    else:
        joints = np.column_stack([trajectory.controls[f"{name}_measured"] for name in scene.joint_names])
    block, going, unsure = read_at(time, path, at)
    place, turning = joints_at(time, joints, at)
    resting = settled(at, block, going, unsure)
    states = scene.placed(np.nan_to_num(block), place)
    states.velocity[:, 0, :2], states.spin[:, 0, 2] = np.nan_to_num(going[:, :2]), np.nan_to_num(going[:, 2])
    states.joint_velocity[:] = turning
    own = np.column_stack([trajectory.controls[scene.joint_names[j]] for j in scene.servos])
    in_force = np.searchsorted(time, at[:-1] + 0.5 * min(period, trajectory.period), side="right") - 1
    return Take(
        name=trajectory.name,
        states=states,
        unsure=unsure,
        joints=seen_at(time, joints, at),
        resting=resting,
        block=seen_at(time, path, at),
        controls=own[in_force],
        stood=place[0, list(scene.servos)],
    )
