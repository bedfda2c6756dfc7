"""Windows of pushes that others recorded: poses of block and tool, no set-points. The tool goes where it was seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.signal import savgol_filter

from carom.core.errors import CaromError
from carom.identify.pushes.states import read_at, seen_at, settled
from carom.identify.pushes.windows import INSTANTS, WINDOW, Take, Windows, cut_up, unusable
from carom.recordings import Recordings, Trajectory
from carom.recordings.pushes import push_of, pushes_in
from carom.scenes.pushing import GuidedScene
from carom.state import Array

SMOOTH = 0.05  #: [s] over which a tool's path is smoothed: its noise would become blows


def guided_scene(recordings: Recordings, name: str | None = None) -> GuidedScene:
    """The scene of a folder of pushes, by the bodies that it declares."""
    found = pushes_in(recordings)
    if not found:
        raise CaromError(f"{recordings.path}: no recording shows a push; `carom check` says why")
    by_name = {t.name: t for t in recordings.trajectories}
    bodies = by_name[found[0].trajectory].bodies
    block, tool = bodies[found[0].target], bodies[found[0].tool]
    for body in (block, tool):
        if body.shape is None:
            raise CaromError(
                f"{recordings.path}: body '{body.name}' has no shape; pushes are felt by outlines: state it"
            )
    return GuidedScene(name or recordings.path.resolve().name, block, tool)


def led_windows_of(
    scene: GuidedScene, recordings: Recordings | Sequence[Recordings], *, window: float = WINDOW
) -> Windows:
    """The windows of folders of pushes whose tool is led as it was recorded."""
    folders = [recordings] if isinstance(recordings, Recordings) else list(recordings)
    takes: list[Take] = []
    left_out: list[tuple[str, str]] = []
    for folder in folders:
        for trajectory in folder.trajectories:
            why = _unfit(scene, trajectory)
            if why is None:
                takes.append(_take(scene, trajectory))
            else:
                left_out.append((trajectory.name, why))
    if not takes:
        reason = f": {left_out[0][0]}: {left_out[0][1]}" if left_out else ""
        raise CaromError(f"no recording of a push can be used{reason}")
    return cut_up(scene, takes, INSTANTS, window, tuple(left_out))


def _unfit(scene: GuidedScene, trajectory: Trajectory) -> str | None:
    push = push_of(trajectory)
    if push is None:
        return "it shows no push"
    if (why := unusable(trajectory)) is not None:
        return why
    block, tool = trajectory.bodies[push.target], trajectory.bodies[push.tool]
    if block.shape != scene.block.shape or tool.shape != scene.tool.shape:
        return "its bodies have other shapes than those of the first recording"
    if trajectory.quaternion_world[push.tool] is None and not (tool.shape is not None and tool.shape.is_round):
        return f"the orientation of '{push.tool}', which is not round, is not measured"
    return None


def _take(scene: GuidedScene, trajectory: Trajectory) -> Take:
    push = push_of(trajectory)
    assert push is not None
    time, begin = trajectory.time, float(trajectory.time[0])
    count = int(np.floor((time[-1] - begin) / INSTANTS + 1e-6))
    ticks = round(INSTANTS / scene.timestep)
    at: Array = begin + INSTANTS * np.arange(count + 1, dtype=np.float64)
    fine: Array = begin + scene.timestep * np.arange(count * ticks + 1, dtype=np.float64)
    turn = trajectory.yaw(push.tool)
    turn = turn if np.isfinite(turn).any() else np.zeros(len(time))
    tool = smoothed(time, np.column_stack([trajectory.position_world[push.tool][:, :2], turn]), fine)
    path = np.column_stack([trajectory.position_world[push.target][:, :2], trajectory.yaw(push.target)])
    block, going, unsure = read_at(time, path, at)
    resting = settled(at, block, going, unsure)
    states = scene.placed(np.nan_to_num(block), tool[::ticks])
    states.velocity[:, 0, :2], states.spin[:, 0, 2] = np.nan_to_num(going[:, :2]), np.nan_to_num(going[:, 2])
    return Take(
        name=trajectory.name,
        states=states,
        unsure=unsure,
        joints=tool[::ticks],
        resting=resting,
        block=seen_at(time, path, at),
        controls=tool[1:].reshape(count, ticks, 3),
        stood=np.tile(tool[0], (ticks, 1)),
        led=True,
    )


def smoothed(time: Array, samples: Array, at: Array) -> Array:
    """Samples [T, D] as a smooth path [K, D] at these times; gaps are bridged."""
    good = np.isfinite(samples).all(axis=1)
    period = float(np.median(np.diff(time)))
    even = np.arange(time[0], time[-1] + 0.5 * period, period)
    filled = np.column_stack([np.interp(even, time[good], samples[good, k]) for k in range(samples.shape[1])])
    width = 2 * int(np.ceil(SMOOTH / period / 2)) + 1
    if width > 3 and len(even) > width:
        filled = savgol_filter(filled, width, 2, axis=0)
    return np.asarray(CubicSpline(even, filled)(np.clip(at, even[0], even[-1])))
