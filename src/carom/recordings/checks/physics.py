"""What is odd about what happens in a file: impacts, clocks, bodies inside each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from carom.recordings.checks.findings import Observation, without_number
from carom.recordings.differentiate import measured_rows
from carom.recordings.geometry import planar_gap
from carom.recordings.impacts.frozen import is_frozen
from carom.recordings.impacts.ground import is_tossed
from carom.recordings.impacts.kinks import NEAR
from carom.recordings.impacts.measured import Impact, planar_samples
from carom.recordings.impacts.rest import resting_pose
from carom.recordings.sampled import last_motion, moves_again
from carom.recordings.trajectory import Trajectory
from carom.state import Array


def check_motion(trajectory: Trajectory, impacts: tuple[Impact, ...]) -> Iterator[Observation]:
    """What is odd about the events of one file."""
    name = trajectory.name
    for target in trajectory.targets:
        own = [impact for impact in impacts if impact.target == target]
        com = trajectory.planar_com(target)
        tossed = is_tossed(trajectory, target)
        path = trajectory.position_world[target] if tossed else com
        yield from _end(trajectory, target, path, own)
        yield from _unmet(trajectory, target, [impact for impact in own if impact.kind == "strike"])
        yield from _strikers(trajectory, target, own)
    if any(impact.kind == "strike" for impact in impacts):
        best = next((i for i in impacts if i.kind == "strike" and i.quality != "unusable"), None)
        if best is not None and best.quality == "doubtful":
            text, value = without_number(best.reason)
            yield Observation(
                "note", "doubtful-impact", f"the strike is doubtful: {text}", name, value=value, style="{:.0f}"
            )


def _unmet(trajectory: Trajectory, target: str, strikes: list[Impact]) -> Iterator[Observation]:
    alone = next((impact for impact in strikes if impact.striker is None), None)
    if alone is None:
        return
    struck = next((impact for impact in strikes if impact.striker is not None and impact.time > alone.time), None)
    if struck is None:
        text, advice = f"'{target}' is set in motion with no body near it", "track the striker, or correct its pose"
        yield Observation("warning", "no-striker", text, trajectory.name, advice=advice)
    else:
        yield Observation(
            "note",
            "set-going",
            f"'{target}' is set going by something that is not tracked, {{value}} before it is struck",
            trajectory.name,
            value=struck.time - alone.time,
            style="{:.2g} s",
            advice="only the strike is used",
        )


def _end(trajectory: Trajectory, target: str, path: Array, own: list[Impact]) -> Iterator[Observation]:
    if not own or is_frozen(trajectory, target, own[-1].time):
        return  # a body that seems to stop and go on was not seen
    stop = last_motion(trajectory.time, path, trajectory.period, own[-1].time)
    if stop >= float(trajectory.time[-1]) - 1.5 * trajectory.period:
        yield Observation(
            "note",
            "ends-moving",
            f"the record ends while '{target}' still moves: its resting place is unknown",
            trajectory.name,
        )
    elif own[-1].kind == "strike" and np.isfinite(trajectory.yaw(target)).any() and not _rests(trajectory, own[-1]):
        yield Observation(
            "note",
            "ends-creeping",
            f"'{target}' still creeps when the record ends, or something else moves it: its resting place is unknown",
            trajectory.name,
            advice="record longer",
        )
    elif moves_again(trajectory.time, path, trajectory.period, stop) < float(trajectory.time[-1]):
        yield Observation(
            "note",
            "moves-again",
            f"'{target}' is moved again after it has come to rest",
            trajectory.name,
            advice="its resting place is taken before that",
        )


def _rests(trajectory: Trajectory, impact: Impact) -> bool:
    return resting_pose(trajectory, impact) is not None


def _strikers(trajectory: Trajectory, target: str, own: list[Impact]) -> Iterator[Observation]:
    ours = planar_samples(trajectory, target)[:, [0, 1, 5]]
    for striker in trajectory.with_role("striker"):
        if striker == target or any(impact.striker == striker for impact in own):
            continue
        theirs = planar_samples(trajectory, striker)[:, [0, 1, 5]]
        gap = planar_gap(trajectory.bodies[target], ours, trajectory.bodies[striker], theirs)
        if not np.isfinite(gap).any():
            gap = np.linalg.norm(ours[:, :2] - theirs[:, :2], axis=-1)
        if np.isfinite(gap).any() and float(np.nanmin(gap)) > NEAR:
            yield Observation(
                "warning",
                "striker-far",
                f"'{striker}' never comes nearer to '{target}' than {{value}}",
                trajectory.name,
                value=float(np.nanmin(gap)),
                style="{:.3g} m",
            )


def check_overlap(trajectory: Trajectory) -> Iterator[Observation]:
    """Bodies inside each other at the beginning, when nothing has happened yet."""
    for target in trajectory.targets:
        for other in trajectory.with_role("striker", "other", "tool"):
            ours, theirs = planar_samples(trajectory, target), planar_samples(trajectory, other)
            rows = np.flatnonzero(measured_rows(ours) & measured_rows(theirs))[:5]
            if not len(rows):
                continue
            poses = ours[rows][:, [0, 1, 5]], theirs[rows][:, [0, 1, 5]]
            gap = planar_gap(trajectory.bodies[target], poses[0], trajectory.bodies[other], poses[1])
            if np.isfinite(gap).all() and float(np.median(gap)) < -0.002:
                yield Observation(
                    "warning",
                    "overlap",
                    f"'{target}' and '{other}' overlap by {{value}} from the start",
                    trajectory.name,
                    value=-1e3 * float(np.median(gap)),
                    style="{:.1f} mm",
                    advice="check their sizes and frames",
                )
