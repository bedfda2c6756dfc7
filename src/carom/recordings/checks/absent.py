"""Recordings in which nothing happens that could be learned from, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from carom.recordings.checks.findings import Observation
from carom.recordings.differentiate import measured_rows
from carom.recordings.geometry import planar_gap
from carom.recordings.impacts.collisions import onset_of
from carom.recordings.impacts.ground import is_tossed
from carom.recordings.impacts.kinks import NEAR
from carom.recordings.impacts.measured import Impact, planar_samples
from carom.recordings.impacts.quality import FAR
from carom.recordings.sampled import top_speed
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import Array


def check_absent(recordings: Recordings, impacts: Mapping[str, tuple[Impact, ...]]) -> Iterator[Observation]:
    """Each recording without an impact, with the reason."""
    for trajectory in recordings.trajectories:
        for target in trajectory.targets:
            if not any(impact.target == target for impact in impacts[trajectory.name]):
                yield from _why(trajectory, target)


def no_impact(count: int) -> Observation:
    """What is said of a folder without any impact."""
    return Observation(
        "warning",
        "no-impact",
        f"no impact was found in any of the {count} recordings: nothing can be learned from them, and only 'carom "
        "predict' takes records that end before contact",
    )


def _why(trajectory: Trajectory, target: str) -> Iterator[Observation]:
    name, path = trajectory.name, trajectory.position_world[target]
    if measured_rows(path).sum() < 12:
        return  # that it is not tracked is said elsewhere
    if is_tossed(trajectory, target):
        text = f"'{target}' falls, but its landing is not seen"
        yield Observation("warning", "no-landing", text, name, advice="record until it lies")
        return
    if top_speed(trajectory.time, trajectory.planar_com(target), trajectory.period) == 0.0:
        yield from _still(trajectory, target)
    elif onset_of(trajectory, target) is None:
        yield from _never_rests(trajectory, target)


def _still(trajectory: Trajectory, target: str) -> Iterator[Observation]:
    name, path = trajectory.name, trajectory.position_world[target]
    seen = path[measured_rows(path)]
    advice = "nothing can be learned from it"
    if np.ptp(seen, axis=0).max() == 0.0 and len(trajectory.position_world) > 1:
        advice += "; was it recorded in its own frame?"
    yield Observation("warning", "target-still", f"'{target}' never moves", name, advice=advice)
    for striker in trajectory.with_role("striker"):
        depth = -float(np.nanmin(_gap(trajectory, target, striker), initial=np.inf))
        if depth > FAR:
            yield Observation(
                "warning",
                "passes-through",
                f"'{striker}' passes through '{target}', {{value}} deep, and '{target}' does not move",
                name,
                value=1e3 * depth,
                style="{:.0f} mm",
                advice="are their places given in one frame?",
            )


def _never_rests(trajectory: Trajectory, target: str) -> Iterator[Observation]:
    for other in trajectory.with_role("striker"):
        meets = float(np.nanmin(_gap(trajectory, target, other), initial=np.inf)) < NEAR
        moves = top_speed(trajectory.time, trajectory.planar_com(other), trajectory.period) > 0.0
        if not moves:
            yield Observation(
                "warning",
                "striker-still",
                f"'{other}' never moves, and '{target}' moves from the start",
                trajectory.name,
                advice=f"was all recorded in the frame of '{other}'? Places must be those in the room",
            )
            return
        if meets and onset_of(trajectory, other) is not None:
            yield Observation(
                "warning",
                "roles-swapped",
                f"'{target}' (target) moves from the start, and '{other}' (striker) rests until the two meet",
                trajectory.name,
                advice="are their roles swapped, or their columns?",
            )
            return
    yield Observation(
        "warning",
        "begins-moving",
        f"'{target}' moves from the first sample on, and no strike is found",
        trajectory.name,
        advice="begin the record 0.1 s and more before the strike, with the target at rest",
    )


def _gap(trajectory: Trajectory, target: str, other: str) -> Array:
    """Distance [T] m between outlines, or between frames where shapes or orientations are unknown."""
    ours, theirs = (planar_samples(trajectory, name)[:, [0, 1, 5]] for name in (target, other))
    gap = planar_gap(trajectory.bodies[target], ours, trajectory.bodies[other], theirs)
    return gap if np.isfinite(gap).any() else np.linalg.norm(ours[:, :2] - theirs[:, :2], axis=-1)
