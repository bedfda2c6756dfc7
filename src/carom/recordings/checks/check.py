"""Looking a recordings folder over before anything is learned from it. Nothing is repaired, everything is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from carom.core.errors import RecordingError
from carom.recordings.checks.conventions.verdict import check_conventions, conventions
from carom.recordings.checks.findings import BodySummary, CheckReport, Observation, gather
from carom.recordings.checks.physics import (
    check_gravity,
    check_ground,
    check_motion,
    check_overlap,
    check_strikes,
    free_fall,
    lying,
)
from carom.recordings.checks.samples import check_samples
from carom.recordings.checks.strikes import check_alike, check_course, check_sizes, check_usable
from carom.recordings.checks.upward import check_upward
from carom.recordings.differentiate import measured_rows
from carom.recordings.facing import faced
from carom.recordings.faults import FaultError
from carom.recordings.formats.folder import read_as_drawn
from carom.recordings.impacts.measured import Impact
from carom.recordings.impacts.segment import find_impacts
from carom.recordings.sampled import noise_floor, wait_spacing
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import Array


def check(path: str | Path) -> CheckReport:
    """The report on a folder: what it holds, how good it is, and what is wrong with it."""
    folder = Path(path)
    try:
        drawn, faults = read_as_drawn(folder)
    except FaultError as fault:
        return CheckReport(folder, 0, 0, findings=gather([_from_fault(fault)], 1))
    listed = len(drawn) + len(faults)
    seen = [_from_fault(fault) for fault in faults]
    meant = conventions(drawn)
    seen.extend(check_conventions(meant))
    try:
        recordings = faced(drawn)
    except RecordingError as fault:  # often because its quaternions are not what the format says
        recordings = drawn
        seen.append(Observation("error", "facing", str(fault)))
    seen.extend(check_upward(recordings))
    seen.extend(_check_bodies(recordings))
    impacts: dict[str, tuple[Impact, ...]] = {}
    for trajectory in recordings.trajectories:
        seen.extend(check_samples(trajectory, recordings.units))
        impacts[trajectory.name] = find_impacts(trajectory)
        seen.extend(check_motion(trajectory, impacts[trajectory.name]))
        seen.extend(check_course(trajectory, impacts[trajectory.name]))
        seen.extend(check_overlap(trajectory))
    every = [impact for found in impacts.values() for impact in found]
    seen.extend(check_strikes(every))
    seen.extend(check_usable(recordings, impacts))
    seen.extend(check_alike(recordings, impacts))
    seen.extend(check_sizes(recordings, impacts))
    fall, rest = free_fall(recordings, impacts), lying(recordings)
    seen.extend(check_gravity(fall, recordings.gravity))
    seen.extend(check_ground(rest, recordings))
    seen.extend(_check_rates(recordings))
    rates = np.array([1 / t.period for t in recordings.trajectories])
    jitter = np.array([i.timing_jitter for i in every if np.isfinite(i.timing_jitter)])
    settles = [i.settle for i in every if i.kind == "strike"]
    return CheckReport(
        path=folder,
        listed=listed,
        readable=len(recordings),
        bodies={name: _summary(recordings, name) for name in recordings.bodies},
        rate=_median(rates),
        rate_range=(float(rates.min()), float(rates.max())) if len(rates) else (float("nan"), float("nan")),
        interval_jitter=_median(np.array([_interval_jitter(t) for t in recordings.trajectories])),
        timing_jitter=_median(jitter),
        beat_period=_beat(recordings, impacts) if _median(jitter) > 0.1 else float("nan"),
        impacts=dict(Counter(f"{i.kind} {i.quality}" for i in every)),
        settle=_median(np.array(settles)),
        gravity=float("nan") if fall is None else fall.gravity,
        gravity_std=float("nan") if fall is None else fall.std,
        ground_height=float("nan") if rest is None else rest.height,
        ground_tilt=float("nan") if rest is None else rest.tilt,
        conventions=meant,
        findings=gather(seen, listed),
    )


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


def _check_bodies(recordings: Recordings) -> Iterator[Observation]:
    if not any(body.role == "target" for body in recordings.bodies.values()):
        roles = ", ".join(f"{name}: {body.role}" for name, body in recordings.bodies.items())
        yield Observation("error", "no-target", f"no body has the role 'target' ({roles}); name the one that is struck")
    for name, body in recordings.bodies.items():
        everywhere = [t.bodies[name] for t in recordings.trajectories if name in t.bodies] or [body]
        if body.role == "target" and any(b.mass is None for b in everywhere):
            yield Observation(
                "warning", "no-mass", f"the mass of target '{name}' is not stated; energies and impulses need it"
            )
        if body.role in ("target", "striker") and any(b.shape is None for b in everywhere):
            yield Observation(
                "warning", "no-shape", f"the shape of {body.role} '{name}' is not stated; contact cannot be placed"
            )
        heavy = [b.mass for b in everywhere if b.mass is not None and b.mass > 100]
        if heavy:
            yield Observation("warning", "mass-unit", f"'{name}' has a mass of {heavy[0]:g} kg; are these grams?")
        sizes = [float(np.ptp(b.shape.planar_outline)) for b in everywhere if b.shape and _sized(b.shape.kind, b)]
        if sizes and max(sizes) > 20:
            yield Observation(
                "warning",
                "length-unit",
                f"'{name}' is {max(sizes):g} m wide; are these millimetres? Its sizes follow units.length "
                f"({recordings.units.length})",
            )


def _sized(kind: str, body: object) -> bool:
    shape = getattr(body, "shape", None)
    return kind in ("box", "extruded") or (shape is not None and shape.radius is not None)


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
