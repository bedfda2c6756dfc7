"""What is odd about what happens in a folder: impacts, clocks, free fall, the ground, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.rotations import axes
from carom.recordings.checks.dropouts import is_frozen
from carom.recordings.checks.findings import Observation, without_number
from carom.recordings.differentiate import fit_polynomial, measured_rows
from carom.recordings.geometry import lowest_point, planar_gap
from carom.recordings.impacts.ground import is_tossed
from carom.recordings.impacts.kinks import NEAR
from carom.recordings.impacts.measured import Impact, planar_samples
from carom.recordings.impacts.rest import resting_pose
from carom.recordings.sampled import last_motion, moves_again
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import Array


@dataclass(frozen=True)
class Fall:
    """Free fall as measured over a folder."""

    gravity: float  #: [m/s^2]
    std: float  #: [m/s^2] standard error
    flights: int


@dataclass(frozen=True)
class Lying:
    """Bodies that lie still at the end of a toss."""

    height: float  #: [m] of the face they lie on, median
    centre: float  #: [m] of the body's frame, median
    reach: float  #: [m] from the frame to the face below, as the shape gives it
    tilt: float  #: [rad] of the face they lie on, median
    common_tilt: float  #: [rad] of the mean of all faces: what a tilted ground alone would leave
    heading: float  #: [rad] direction in which the mean falls
    count: int


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


def free_fall(recordings: Recordings, impacts: dict[str, tuple[Impact, ...]]) -> Fall | None:
    """Acceleration of tossed bodies before they first touch anything."""
    values: list[float] = []
    errors: list[float] = []
    for trajectory in recordings.trajectories:
        for body in trajectory.targets:
            own = [i for i in impacts.get(trajectory.name, ()) if i.target == body and i.kind == "ground"]
            if not own:
                continue
            z = trajectory.position_world[body][:, 2]
            keep = np.isfinite(z) & (trajectory.time < own[0].time - trajectory.period)
            t = trajectory.time[keep]
            if len(t) < 8 or t[-1] - t[0] < 0.05:
                continue
            fit = fit_polynomial(t, z[keep], float(t.mean()))
            # the error of a quadratic's bend, for evenly spread samples
            spread = float(t[-1] - t[0])
            values.append(-2 * float(fit.coefficients[2, 0]))
            errors.append(26.8 * float(fit.residual_rms[0]) / (spread**2 * np.sqrt(len(t))))
    if not values:
        return None
    data, sigma = np.array(values), np.maximum(np.array(errors), 1e-3)
    for _ in range(5):  # a hand that has not let go yet makes outliers
        weight = 1 / sigma**2
        mean = float((weight * data).sum() / weight.sum())
        keep = np.abs(data - mean) <= np.maximum(4 * sigma, 4 * 1.4826 * np.median(np.abs(data - np.median(data))))
        if keep.all() or keep.sum() < 3:
            break
        data, sigma = data[keep], sigma[keep]
    scatter = float(np.sqrt(np.mean((data - mean) ** 2 / sigma**2))) if len(data) > 2 else 1.0
    return Fall(mean, max(scatter, 1.0) / float(np.sqrt((1 / sigma**2).sum())), len(data))


def check_gravity(fall: Fall | None, stated: float | None) -> Iterator[Observation]:
    """Free fall against the stated gravity, and the scale of length or time that would make them agree."""
    if stated is not None and not 0.5 < stated < 30:
        yield Observation("warning", "gravity-unit", f"gravity: {stated:g} is stated; it is read in m/s^2 always")
        return
    expected = GRAVITY if stated is None else stated
    if fall is None or abs(fall.gravity - expected) < max(0.01 * expected, 3 * fall.std):
        return
    length = expected / fall.gravity if fall.gravity else float("inf")
    if not 0.2 < length < 5:
        explain = "lengths or times are in another unit than the header says, or what flies is held or filtered"
    else:
        short = "short" if length > 1 else "long"
        explain = (
            f"lengths {abs(1 / length - 1) * 100:.1f} % too {short} would explain it (multiply them by {length:.4f}), "
            f"or times too {'long' if length > 1 else 'short'} (multiply them by {1 / np.sqrt(length):.4f})"
        )
    yield Observation(
        "warning",
        "gravity",
        f"free fall is {fall.gravity:.3f} +- {fall.std:.3f} m/s^2 in {fall.flights} flights, "
        f"not {expected:g}: {explain}",
    )


def lying(recordings: Recordings) -> Lying | None:
    """How tossed bodies lie at the end of their records."""
    centres, normals, reaches = [], [], []
    for trajectory in recordings.trajectories:
        for body in trajectory.targets:
            shape, quaternion = trajectory.bodies[body].shape, trajectory.quaternion_world[body]
            if shape is None or quaternion is None or not is_tossed(trajectory, body):
                continue
            pose = np.column_stack([trajectory.position_world[body], quaternion])
            rows = np.flatnonzero(measured_rows(pose))[-5:]
            if len(rows) < 5 or float(np.linalg.norm(np.ptp(pose[rows, :3], axis=0))) > 0.001:
                continue  # still moving
            p, q = pose[rows, :3].mean(axis=0), pose[rows[-1], 3:] / np.linalg.norm(pose[rows[-1], 3:])
            sides = axes(q) if shape.kind == "box" else axes(q)[2:]
            up = sides[int(np.argmax(np.abs(sides[:, 2])))]
            up = up * np.sign(up[2])
            if up[2] < 0.95:
                continue  # leans on an edge
            normals.append(up)
            centres.append(float(p[2]))
            reaches.append(float(p @ up) - float(lowest_point(shape, p[None], q[None], np.asarray(up))[0]))
    if not centres:
        return None
    mean = np.mean(normals, axis=0)
    lean = np.array(normals)
    return Lying(
        height=float(np.median(np.array(centres) - np.array(reaches))),
        centre=float(np.median(centres)),
        reach=float(np.median(reaches)),
        tilt=float(np.median(np.arctan2(np.linalg.norm(lean[:, :2], axis=-1), lean[:, 2]))),
        common_tilt=float(np.arctan2(np.linalg.norm(mean[:2]), mean[2])),
        heading=float(np.arctan2(mean[1], mean[0])),
        count=len(centres),
    )


def check_ground(rest: Lying | None, recordings: Recordings) -> Iterator[Observation]:
    """Bodies that lie in the ground or above it, and ground that is not level."""
    if rest is None:
        return
    stated = recordings.ground
    shift = rest.height - (0.0 if stated is None else stated.height)
    if stated is not None or abs(shift) < 0.3 * rest.reach:
        if abs(shift) > 5e-4:
            yield Observation(
                "warning",
                "ground-height",
                f"bodies rest {abs(shift) * 1e3:.1f} mm {'below' if shift < 0 else 'above'} "
                f"{'z = 0' if stated is None else 'the stated ground'} (median of {rest.count}): the centre lies at "
                f"{rest.centre:.4f} m where the shape gives {rest.centre - shift:.4f} m, a ratio of "
                f"{rest.centre / (rest.centre - shift):.3f}",
            )
    else:
        yield Observation(
            "note", "ground-estimated", f"no ground is stated; bodies come to rest on z = {rest.height:.4f} m"
        )
    if rest.tilt > np.deg2rad(0.3) and rest.count >= 3:
        if rest.common_tilt > 0.7 * rest.tilt:
            why = f"the ground falls towards {np.rad2deg(rest.heading):.0f} degrees from x"
        else:
            why = (
                f"their directions differ (together {np.rad2deg(rest.common_tilt):.2f} degrees), so it is not the "
                "ground: orientations, or the frames of bodies, are off by as much, not the same way in every file"
            )
        yield Observation(
            "warning",
            "ground-tilt",
            f"bodies at rest lean by {np.rad2deg(rest.tilt):.2f} degrees (median of {rest.count}): {why}",
        )
