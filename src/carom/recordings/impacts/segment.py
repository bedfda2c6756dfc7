"""Cutting a recording into rest, approach, impact, slide and flight, and finding its impacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from carom.recordings.impacts.collisions import collisions, onset_of, strike_from_rest
from carom.recordings.impacts.ground import clearance, ground_impacts, is_tossed
from carom.recordings.impacts.measured import Impact
from carom.recordings.sampled import first_motion, last_motion, top_speed
from carom.recordings.trajectory import Trajectory

PhaseKind = Literal["rest", "approach", "impact", "slide", "flight"]
IN_FLIGHT = 0.004  #: [m] clearance above which a tossed body touches nothing


@dataclass(frozen=True)
class Phase:
    """A stretch of a recording in which a target does one thing."""

    kind: PhaseKind
    start: float  #: [s]
    end: float  #: [s]


def find_impacts(trajectory: Trajectory, *, settle: float | None = None, span: float = 0.12) -> tuple[Impact, ...]:
    """All impacts on the targets of a recording, in time order.

    `settle` [s] after first motion is where the state after the impact is taken, from a quadratic fit over the
    `span` [s] that follow. None chooses it: the end of contact, or 30 ms where sample times are too unreliable
    to see that near to the contact. A recording is searched once for each pair of settings, and keeps what was found.
    """
    key = ("impacts", settle, span)
    if key not in trajectory.kept:
        trajectory.kept[key] = _search(trajectory, settle, span)
    found: tuple[Impact, ...] = trajectory.kept[key]
    return found


def _search(trajectory: Trajectory, settle: float | None, span: float) -> tuple[Impact, ...]:
    found: list[Impact] = []
    for target in trajectory.targets:
        strikers = [n for n, b in trajectory.bodies.items() if n != target and b.role != "ground"]
        if is_tossed(trajectory, target):
            found.extend(ground_impacts(trajectory, target, settle=settle))
            if not any(trajectory.bodies[name].role == "striker" for name in strikers):
                continue  # a tracked hand or arm lets go of it, and strikes nothing
        onset = onset_of(trajectory, target)
        if onset is not None:
            found.append(strike_from_rest(trajectory, target, onset, settle=settle, span=span))
            if found[-1].striker is not None:
                continue  # otherwise a hand may have set it going before the strike
        if strikers and top_speed(trajectory.time, trajectory.planar_com(target), trajectory.period) > 0:
            for striker in strikers:
                found.extend(collisions(trajectory, target, striker, settle=settle, span=span))
    return tuple(sorted(found, key=lambda impact: impact.time))


def segment(trajectory: Trajectory, target: str, impacts: tuple[Impact, ...] | None = None) -> tuple[Phase, ...]:
    """What a target does over the recording, as phases that follow each other without gaps."""
    impacts = find_impacts(trajectory) if impacts is None else impacts
    own = [impact for impact in impacts if impact.target == target]
    begin, end = float(trajectory.time[0]), float(trajectory.time[-1])
    if own and own[0].kind == "ground":
        return _toss_phases(trajectory, target, own, begin, end)
    com, period = trajectory.planar_com(target), trajectory.period
    if not own:
        moving = top_speed(trajectory.time, com, period) > 0
        tossed = is_tossed(trajectory, target)
        return (Phase("flight" if tossed else "slide" if moving else "rest", begin, end),)
    phases = _before(trajectory, own[0], begin)
    for number, impact in enumerate(own):
        following = own[number + 1].time if number + 1 < len(own) else end
        separated = min(impact.time + impact.settle, following)
        phases.append(Phase("impact", impact.time, separated))
        stop = min(last_motion(trajectory.time, com, period, separated), following)
        phases.append(Phase("slide", separated, stop))
        if stop < following:
            phases.append(Phase("rest", stop, following))
    return tuple(phase for phase in phases if phase.end > phase.start or phase.kind == "impact")


def _before(trajectory: Trajectory, impact: Impact, begin: float) -> list[Phase]:
    """Rest until the striker sets off, approach until the impact."""
    start = begin
    if impact.striker is not None:
        onset = first_motion(trajectory.time, trajectory.position_world[impact.striker][:, :2], trajectory.period)
        start = begin if onset is None else min(max(onset.time, begin), impact.time)
    if impact.striker is None:
        return [Phase("rest", begin, impact.time)]
    return [Phase("rest", begin, start), Phase("approach", start, impact.time)]


def _toss_phases(
    trajectory: Trajectory, target: str, impacts: list[Impact], begin: float, end: float
) -> tuple[Phase, ...]:
    height = clearance(trajectory, target)
    stop = last_motion(trajectory.time, trajectory.position_world[target], trajectory.period, impacts[-1].time)
    phases = [Phase("flight", begin, impacts[0].time)]
    for number, impact in enumerate(impacts):
        following = impacts[number + 1].time if number + 1 < len(impacts) else stop
        phases.append(Phase("impact", impact.time, impact.time + impact.settle))
        inside = (trajectory.time > impact.time) & (trajectory.time < following) & np.isfinite(height)
        free = bool(inside.any()) and float(np.median(height[inside])) > IN_FLIGHT
        phases.append(Phase("flight" if free else "slide", impact.time + impact.settle, following))
    if stop < end:
        phases.append(Phase("rest", stop, end))
    return tuple(phase for phase in phases if phase.end > phase.start or phase.kind == "impact")
