"""Looking a recordings folder over before anything is learned from it. Nothing is repaired, everything is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.errors import RecordingError
from carom.recordings.checks.absent import check_absent, no_impact
from carom.recordings.checks.bodies import check_bodies
from carom.recordings.checks.conventions.verdict import check_conventions, conventions
from carom.recordings.checks.findings import BodySummary, CheckReport, Observation, gather
from carom.recordings.checks.meetings import check_meeting, check_meetings
from carom.recordings.checks.physics import check_motion, check_overlap
from carom.recordings.checks.planar import check_slope, check_tipping
from carom.recordings.checks.pushes import check_pushes
from carom.recordings.checks.samples import check_samples
from carom.recordings.checks.scale import check_scale
from carom.recordings.checks.sizes import check_sizes, check_toss_sizes
from carom.recordings.checks.stamps import time_unit
from carom.recordings.checks.strikes import check_alike, check_course, check_usable
from carom.recordings.checks.tosses import check_gravity, check_ground, flights, free_fall, lying, rests
from carom.recordings.checks.upward import check_upward
from carom.recordings.differentiate import measured_rows
from carom.recordings.facing import faced
from carom.recordings.faults import FaultError
from carom.recordings.formats.folder import read_as_drawn
from carom.recordings.impacts.collisions import UNRELIABLE_TIMES
from carom.recordings.impacts.measured import Impact
from carom.recordings.impacts.segment import find_impacts
from carom.recordings.kind import kind_of
from carom.recordings.pushes import summary_of
from carom.recordings.sampled import noise_floor, wait_spacing
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import Array

#: what makes whatever else a file seems to show an echo of it
SPOILS = ("spike", "clock-jump", "noise", "low-rate")


def check(path: str | Path) -> CheckReport:
    """The report on a folder: what it holds, how good it is, and what is wrong with it."""
    folder = Path(path)
    try:
        drawn, faults = read_as_drawn(folder)
    except FaultError as fault:
        return CheckReport(folder, 0, 0, findings=gather([_from_fault(fault)], 1))
    seen = [_from_fault(fault) for fault in faults]
    stated = list(check_bodies(drawn))
    first = [*check_scale(drawn), *check_upward(drawn)]
    seen.extend([*stated, *first])
    spoilt = set()
    for trajectory in drawn.trajectories:
        for observation in check_samples(trajectory, drawn.units):
            if not (first and observation.code in ("length-unit", "speed-unit", "noise")):
                seen.append(observation)
            if observation.code in SPOILS:
                spoilt.add(trajectory.name)
    report = CheckReport(
        path=folder,
        listed=len(drawn) + len(faults),
        readable=len(drawn),
        bodies={name: _summary(drawn, name) for name in drawn.bodies},
        **_clock(drawn),
    )
    seen.extend(_check_rates(drawn))
    first.extend(observation for observation in stated if observation.code == "com-outside")
    if not (first or any(time_unit(t) for t in drawn.trajectories)):  # in wrong units or axes, nothing else is true
        pushed = kind_of(drawn) == "pushes"
        found, events = _pushes(drawn) if pushed else _events(drawn, spoilt)
        seen.extend(events)
        report = replace(report, **found)
    return replace(report, findings=gather(seen, report.listed))


def _clock(recordings: Recordings) -> dict[str, Any]:
    """What the time stamps of a folder show."""
    rates = np.array([1 / t.period for t in recordings.trajectories])
    return {
        "rate": _median(rates),
        "rate_range": (float(rates.min()), float(rates.max())) if len(rates) else (float("nan"), float("nan")),
        "interval_jitter": _median(np.array([_interval_jitter(t) for t in recordings.trajectories])),
    }


def _pushes(drawn: Recordings) -> tuple[dict[str, Any], list[Observation]]:
    """What happens in a folder of pushes: blows are not looked for, and a block that is led is not one that slides."""
    rest = lying(rests(drawn))
    height, tilt = (float("nan"), float("nan")) if rest is None else (rest.height, rest.tilt)
    seen = [*check_pushes(drawn), *check_ground(rest, drawn)]
    return {"pushes": summary_of(drawn), "ground_height": height, "ground_tilt": tilt}, seen


def _events(drawn: Recordings, spoilt: set[str]) -> tuple[dict[str, Any], list[Observation]]:
    """What happens in a folder, as fields of the report, and what is odd about it."""
    meant = conventions(drawn)
    seen = list(check_conventions(meant))
    turned = {observation.column for observation in seen}
    try:
        recordings = faced(drawn)
    except RecordingError as fault:  # often because its quaternions are not what the format says
        recordings = drawn
        seen.append(Observation("error", "facing", str(fault)))
    impacts: dict[str, tuple[Impact, ...]] = {}
    for trajectory in recordings.trajectories:
        found = impacts[trajectory.name] = find_impacts(trajectory)
        seen.extend(check_overlap(trajectory))
        if trajectory.name not in spoilt:
            seen.extend(check_motion(trajectory, found))
            seen.extend(check_course(trajectory, found))
            seen.extend(check_meeting(trajectory, found))
            seen.extend(o for o in check_tipping(trajectory, found) if o.column not in turned)
    clean = replace(recordings, trajectories=tuple(t for t in recordings.trajectories if t.name not in spoilt))
    every = [impact for found in impacts.values() for impact in found]
    seen.extend(check_absent(clean, impacts))
    if recordings.trajectories and not every:
        seen.append(no_impact(len(recordings)))
    seen.extend(check_meetings(clean.trajectories, [i for i in every if i.trajectory not in spoilt]))
    seen.extend(check_usable(recordings, impacts))
    seen.extend(check_alike(recordings, impacts))
    seen.extend(check_sizes(clean, impacts))
    seen.extend(check_slope(clean, impacts))
    flown, landed = flights(clean, impacts), rests(clean)
    seen.extend(check_toss_sizes(flown, landed))
    fall, rest = free_fall(flown), lying(landed)
    seen.extend(check_gravity(fall, recordings.gravity))
    seen.extend(check_ground(rest, recordings))
    jitter = _median(np.array([i.timing_jitter for i in every]))
    fields = {
        "timing_jitter": jitter,
        "beat_period": _beat(recordings, impacts) if jitter > UNRELIABLE_TIMES else float("nan"),
        "impacts": dict(Counter(f"{i.kind} {i.quality}" for i in every)),
        "settle": _median(np.array([i.settle for i in every if i.kind == "strike"])),
        "gravity": float("nan") if fall is None else fall.gravity,
        "gravity_std": float("nan") if fall is None else fall.std,
        "ground_height": float("nan") if rest is None else rest.height,
        "ground_tilt": float("nan") if rest is None else rest.tilt,
        "conventions": meant,
    }
    return fields, seen


def _from_fault(fault: FaultError) -> Observation:
    return Observation("error", fault.code, fault.detail, fault.file.name, fault.row, fault.column)


def _median(values: Array) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else float("nan")


def _interval_jitter(trajectory: Trajectory) -> float:
    step = np.diff(trajectory.time)
    return float(np.quantile(np.abs(step - trajectory.period), 0.9)) / trajectory.period  # blind to single gaps


def _beat(recordings: Recordings, impacts: dict[str, tuple[Impact, ...]]) -> float:
    """Typical time between the short steps that a late clock makes [s]."""
    spacings = []
    for trajectory in recordings.trajectories:
        for impact in impacts[trajectory.name]:
            com = trajectory.planar_com(impact.target)
            spacings.append(wait_spacing(trajectory.time, com, impact.post.time, impact.post.time + impact.span))
    return _median(np.array(spacings))


def _check_rates(recordings: Recordings) -> Iterator[Observation]:
    periods = np.array([t.period for t in recordings.trajectories])
    if len(periods) > 1 and float(periods.max() / periods.min()) > 1.05:
        middle = float(np.median(periods))
        for trajectory, period in zip(recordings.trajectories, periods, strict=True):
            if abs(period / middle - 1) > 0.05:
                yield Observation(
                    "warning",
                    "other-rate",
                    f"sampled at {{value}}, most files at {1 / middle:.4g} Hz",
                    trajectory.name,
                    None,
                    "time",
                    1 / float(period),
                    style="{:.4g} Hz",
                )


def _summary(recordings: Recordings, name: str) -> BodySummary:
    body = recordings.bodies[name]
    noises, yaws, oriented, lost = [], [], [], []
    masses: list[float | None] = []
    for trajectory in recordings.trajectories:
        if name not in trajectory.position_world:
            continue
        position = trajectory.position_world[name]
        masses.append(trajectory.bodies[name].mass)
        noises.append(float(np.sqrt(np.mean(noise_floor(trajectory.time, position) ** 2))))
        measured = trajectory.quaternion_world[name] is not None
        oriented.append(measured)
        if measured:
            yaws.append(float(noise_floor(trajectory.time, trajectory.yaw(name)[:, None])[0]))
        there = np.flatnonzero(measured_rows(position))
        if len(there):
            lost.append(1 - len(there) / (there[-1] - there[0] + 1))
    stated = [mass for mass in masses if mass is not None] if None not in masses else []
    return BodySummary(
        role=body.role,
        shape=None if body.shape is None else body.shape.kind,
        mass=stated[0] if len(set(stated)) == 1 else None,
        mass_range=(min(stated), max(stated)) if stated else None,
        position_noise=_median(np.array(noises)),
        yaw_noise=_median(np.array(yaws)),
        orientation_share=float(np.mean(oriented)) if oriented else 0.0,
        lost_share=float(np.mean(lost)) if lost else 0.0,
        tracked=recordings.tracked.get(name),
    )
