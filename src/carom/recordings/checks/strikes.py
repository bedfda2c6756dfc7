"""What is odd about the strikes of a folder: unusable, too much alike, more than one in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from carom.recordings.checks.findings import Observation, without_number
from carom.recordings.checks.rows import row_of
from carom.recordings.geometry import planar_gap
from carom.recordings.impacts.collisions import DRIFTING, LONGEST_CONTACT
from carom.recordings.impacts.frozen import frozen_at
from carom.recordings.impacts.measured import Impact, planar_samples
from carom.recordings.impacts.quality import FAR
from carom.recordings.sampled import WINDOW, noise_floor, top_speed, window_speed
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import rotate

Found = Mapping[str, tuple[Impact, ...]]  #: impacts by file
FASTER = 0.25  #: of the top speed, by which only a blow makes a sliding body faster
SURELY = 5.0  #: standard errors, or robust deviations, beyond which a value is another one
ALIKE = (0.02, 0.002, np.deg2rad(1.0))  #: speed (relative), place [m], direction [rad]: strikes that spread less
FEW = 3  #: strikes from which a folder has something in common


def check_usable(recordings: Recordings, impacts: Found) -> Iterator[Observation]:
    """Each recording whose impacts are all unusable, with the reason; an error if that is so of all that have one."""
    bad = {}
    for trajectory in recordings.trajectories:
        found = impacts[trajectory.name]
        if found and all(impact.quality == "unusable" for impact in found):
            bad[trajectory.name] = found[0], _reason(trajectory, found[0])
    for name, (impact, reason) in bad.items():
        what = "strike" if impact.kind == "strike" else "fall"
        text, value = without_number(reason)
        text = f"its {what} cannot be used: {text}"
        yield Observation("warning", "unusable-impact", text, name, value=value, style="{:.0f}", name_all=True)
    struck = sum(bool(found) for found in impacts.values())
    if bad and len(bad) == struck:
        yield Observation(
            "error",
            "no-usable-impact",
            f"none of the {struck} recorded impacts can be used ({next(iter(bad.values()))[1]})",
        )


def _reason(trajectory: Trajectory, impact: Impact) -> str:
    """Why an impact cannot be used: a pose that is frozen just then explains all else."""
    held = frozen_at(trajectory, impact)
    return impact.reason if held is None else f"the pose of '{held}' is frozen when they meet"


def check_course(trajectory: Trajectory, impacts: tuple[Impact, ...]) -> Iterator[Observation]:
    """A target that is on its way before it is struck, and one that is struck more than once."""
    for target in trajectory.targets:
        strikes = [i for i in impacts if i.target == target and i.kind == "strike" and i.striker is not None]
        if not strikes:
            continue
        first = strikes[0]
        pace = top_speed(trajectory.time, trajectory.planar_com(target), trajectory.period)
        speed = float(np.linalg.norm(first.pre.velocity_world[:2]))
        error = float(np.linalg.norm(np.nan_to_num(first.pre.velocity_std[:2])))
        if speed > max(DRIFTING * pace, SURELY * error):
            yield Observation(
                "note",
                "moving-before",
                f"'{target}' already moves before contact, at {{value}}",
                trajectory.name,
                value=speed,
                style="{:.2g} m/s",
            )
        again = strikes[1].time if len(strikes) > 1 else _struck_again(trajectory, target, first)
        if again is not None:
            yield Observation(
                "warning",
                "second-strike",
                f"'{target}' is struck more than once; only the first strike is used",
                trajectory.name,
                row_of(trajectory, int(np.searchsorted(trajectory.time, again))),
                advice="cut the recording before the second, or record one strike in each file",
            )


def _struck_again(trajectory: Trajectory, target: str, first: Impact) -> float | None:
    """When a body that was struck gains speed with a striker near it, long after the contact [s]."""
    com = trajectory.planar_com(target)
    rows, speed = window_speed(trajectory.time, com, max(WINDOW, 4 * trajectory.period))
    index = rows.astype(int)
    later = trajectory.time[index] > first.time + first.settle + 2 * LONGEST_CONTACT
    index, speed = index[later], speed[later]
    if not len(index):
        return None
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(trajectory.time, com))))
    least = FASTER * top_speed(trajectory.time, com, trajectory.period) + 10 * noise / WINDOW
    gained = np.flatnonzero(speed > np.minimum.accumulate(speed) + least)
    if not len(gained):
        return None
    at = int(index[gained[0]])
    since = trajectory.time > first.time
    ours = planar_samples(trajectory, target)[:, [0, 1, 5]]
    for striker in trajectory.with_role("striker"):
        theirs = planar_samples(trajectory, striker)[:, [0, 1, 5]]
        gap = planar_gap(trajectory.bodies[target], ours, trajectory.bodies[striker], theirs)
        near, between = gap[max(at - 3, 0) : at + 12], gap[:at][since[:at]]
        # the two must have parted in between: bodies that stick together turn about each other
        parted = np.isfinite(between).any() and float(np.nanmax(between)) > np.nan_to_num(first.gap) + FAR
        if parted and np.isfinite(near).any() and float(np.nanmin(near)) < np.nan_to_num(first.gap) + FAR:
            return float(trajectory.time[at])
    return None


def check_alike(recordings: Recordings, impacts: Found) -> Iterator[Observation]:
    """Recordings that are copies of others, and strikes that hardly differ."""
    copies = _copies(recordings.trajectories)
    for name, original in copies.items():
        yield Observation(
            "warning", "copy", f"the same samples as in {original}", name, advice="a copy adds nothing", name_all=True
        )
    strikes = [_first(impacts[t.name]) for t in recordings.trajectories if t.name not in copies]
    kept = [strike for strike in strikes if strike is not None]
    spread = _spread(kept)
    if len(kept) >= FEW and spread is not None and all(s < a for s, a in zip(spread, ALIKE, strict=True)):
        yield Observation(
            "warning",
            "strikes-alike",
            f"the {len(kept)} strikes are nearly the same: speed within {100 * spread[0]:.1f} %, place on the target "
            f"within {1e3 * spread[1]:.1f} mm, direction within {np.rad2deg(spread[2]):.1f} degrees (standard "
            "deviations); they say little of other strikes: vary speed, place and direction",
        )


def _first(found: Sequence[Impact]) -> Impact | None:
    return next((i for i in found if i.kind == "strike" and i.striker_pre and i.quality != "unusable"), None)


def _copies(trajectories: Sequence[Trajectory]) -> dict[str, str]:
    """Files whose samples are those of an earlier file, with its name; times may be shifted."""
    seen: dict[bytes, str] = {}
    copies = {}
    for trajectory in trajectories:
        key = b"".join(name.encode() + path.tobytes() for name, path in sorted(trajectory.position_world.items()))
        if key in seen:
            copies[trajectory.name] = seen[key]
        seen.setdefault(key, trajectory.name)
    return copies


def _spread(strikes: Sequence[Impact]) -> tuple[float, float, float] | None:
    """Standard deviations of speed (relative), place in the target's frame [m] and direction in it [rad]."""
    speeds, places, ways = [], [], []
    for strike in strikes:
        striker = strike.striker_pre
        if striker is None or not np.isfinite([strike.pre.yaw, *striker.velocity_world[:2]]).all():
            continue
        turn = np.array([-strike.pre.yaw])
        velocity = rotate(striker.velocity_world[None, :2], turn)[0]
        speeds.append(float(np.linalg.norm(velocity)))
        places.append(rotate((striker.position_world - strike.pre.position_world)[None, :2], turn)[0])
        ways.append(np.exp(1j * np.arctan2(velocity[1], velocity[0])))
    if len(speeds) < FEW:
        return None
    middle = np.angle(np.mean(ways))
    return (
        float(np.std(speeds) / np.mean(speeds)),
        float(np.linalg.norm(np.std(places, axis=0))),
        float(np.std(np.angle(np.array(ways) * np.exp(-1j * middle)))),
    )
