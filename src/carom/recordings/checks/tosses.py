"""What tossed bodies show of a folder: how they fall, and how they lie in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.rotations import axes
from carom.recordings.checks.findings import Observation
from carom.recordings.differentiate import fit_polynomial, measured_rows
from carom.recordings.geometry import lowest_point
from carom.recordings.impacts.ground import is_tossed
from carom.recordings.impacts.measured import Impact
from carom.recordings.trajectory import Recordings
from carom.state import Array


@dataclass(frozen=True)
class Fall:
    """Free fall as measured over a folder."""

    gravity: float  #: [m/s^2]
    std: float  #: [m/s^2] standard error
    flights: int


@dataclass(frozen=True)
class Flight:
    """Free fall as measured in one file."""

    gravity: float  #: [m/s^2]
    std: float  #: [m/s^2] standard error


@dataclass(frozen=True)
class Rest:
    """A body that lies still on a face at the end of a toss."""

    up: Array  #: [3] normal of the face that looks up
    centre: float  #: [m] height of the body's frame
    reach: float  #: [m] from the frame to the face below, as the shape gives it


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


def flights(recordings: Recordings, impacts: Mapping[str, tuple[Impact, ...]]) -> dict[tuple[str, str], Flight]:
    """Every flight before the first contact, by file and body."""
    found = {}
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
            error = 26.8 * float(fit.residual_rms[0]) / (spread**2 * np.sqrt(len(t)))
            found[trajectory.name, body] = Flight(-2 * float(fit.coefficients[2, 0]), error)
    return found


def free_fall(seen: Mapping[tuple[str, str], Flight]) -> Fall | None:
    """Acceleration of tossed bodies before they first touch anything."""
    values, errors = [f.gravity for f in seen.values()], [f.std for f in seen.values()]
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


def rests(recordings: Recordings) -> dict[tuple[str, str], Rest]:
    """Every tossed body that lies still on a face at the end of its record, by file and body."""
    found = {}
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
            reach = float(p @ up) - float(lowest_point(shape, p[None], q[None], np.asarray(up))[0])
            found[trajectory.name, body] = Rest(up, float(p[2]), reach)
    return found


def lying(seen: Mapping[tuple[str, str], Rest]) -> Lying | None:
    """How tossed bodies lie at the end of their records."""
    centres, reaches = [rest.centre for rest in seen.values()], [rest.reach for rest in seen.values()]
    normals = [rest.up for rest in seen.values()]
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
