"""What `check` says of a folder of pushes: how many, how long, how fast, and what is odd about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from carom.recordings.checks.findings import Observation
from carom.recordings.geometry import lowest_point
from carom.recordings.pushes import LONG, Push, gap_between, push_of, tools_of
from carom.recordings.sampled import top_speed
from carom.recordings.trajectory import Recordings, Trajectory

SLACK = 0.005  #: [m] between outlines while they push, beyond which a size or a place is wrong
SHORT = 0.5  #: [s] of contact below which a push tells little
FEW = 5  #: pushes from which on intervals mean something
TIPPED = float(np.radians(4.0))  #: beyond which a block does not lie flat
OFF_GROUND = 0.005  #: [m] that a block may be above or below the stated ground
FAST = 0.15  #: [m/s] below which nothing but friction acts on a block


def check_pushes(recordings: Recordings) -> Iterator[Observation]:
    """What is odd about the pushes of a folder."""
    found = {t.name: push_of(t) for t in recordings.trajectories}
    for trajectory in recordings.trajectories:
        push = found[trajectory.name]
        yield from _why_none(trajectory) if push is None else _odd(trajectory, push)
    yield from _off_the_ground(recordings, found)
    pushes = [push for push in found.values() if push is not None]
    if len(pushes) < FEW:
        text = f"{len(pushes)} pushes: intervals mean little before {FEW}; record more, at other places of the block"
        yield Observation("note", "few-pushes", text)
    if pushes and max(p.speed for p in pushes) < FAST:
        yield Observation(
            "note",
            "slow-pushes",
            f"all pushes are slower than {FAST:g} m/s: friction alone acts on the block, and its mass will not show "
            "from poses; push faster and stop short, or record what the tool is commanded (ctrl.*)",
        )


def _off_the_ground(recordings: Recordings, found: Mapping[str, Push | None]) -> Iterator[Observation]:
    """Blocks that are pushed above or below the ground that the header states."""
    if recordings.ground is None:
        return
    normal = np.asarray(recordings.ground.normal)
    for trajectory in recordings.trajectories:
        push = found[trajectory.name]
        if push is None:
            continue
        shape, turn = trajectory.bodies[push.target].shape, trajectory.quaternion_world[push.target]
        if shape is None or turn is None:
            continue
        place = trajectory.position_world[push.target]
        good = np.isfinite(place).all(axis=1) & np.isfinite(turn).all(axis=1)
        if not good.any():
            continue
        above = float(np.median(lowest_point(shape, place[good], turn[good], normal))) - recordings.ground.height
        if abs(above) > OFF_GROUND:
            yield Observation(
                "warning",
                "ground-height",
                f"'{push.target}' is pushed {{value}} {'above' if above > 0 else 'below'} the stated ground",
                trajectory.name,
                value=1e3 * abs(above),
                style="{:.1f} mm",
                advice="correct ground: height, the size, or where the tracked frame is (tracked: position)",
            )


def _why_none(trajectory: Trajectory) -> Iterator[Observation]:
    """Why a recording shows no push."""
    name = trajectory.name
    for target in trajectory.targets:
        if top_speed(trajectory.time, trajectory.planar_com(target), trajectory.period) == 0.0:
            yield Observation("warning", "target-still", f"'{target}' never moves", name, advice="leave the file out")
            continue
        tools = tools_of(trajectory)
        gaps = [gap for tool in tools if np.isfinite(gap := gap_between(trajectory, target, tool)[0]).any()]
        if not gaps:
            text = f"nothing pushes '{target}': no tool is tracked; record the tool's pose too (role: tool)"
            yield Observation("warning", "no-tool", text, name)
            continue
        text = f"'{target}' moves, but not beside a tool for {LONG:g} s: this is no push"
        yield Observation("warning", "no-push", text, name, advice="strikes belong into a folder of their own")


def _odd(trajectory: Trajectory, push: Push) -> Iterator[Observation]:
    name = trajectory.name
    if trajectory.bodies[push.tool].role == "striker":
        text = f"'{push.tool}' (striker) stays with '{push.target}' for {{value}} and drives it: a push, not a strike"
        yield Observation("note", "push", text, name, value=push.contact, style="{:.2g} s")
    if abs(push.least_gap) > SLACK:
        how = "apart" if push.least_gap > 0 else "inside of each other"
        yield Observation(
            "warning",
            "push-gap",
            f"'{push.tool}' and '{push.target}' are {{value}} {how} while the one pushes the other",
            name,
            value=1e3 * abs(push.least_gap),
            style="{:.1f} mm",
            advice="check their sizes, and where the tracked frames are (tracked: position)",
        )
    if push.contact < SHORT:
        text = f"the tool moves '{push.target}' for only {{value}}"
        yield Observation("note", "short-push", text, name, value=push.contact, style="{:.2g} s")
    if len(push.spans) > 1:
        text = f"the tool leaves '{push.target}' and comes back, {{value}} times"
        yield Observation("note", "several-contacts", text, name, value=len(push.spans) - 1, style="{:.0f}")
    if trajectory.quaternion_world[push.target] is None:
        text = f"the orientation of '{push.target}' is not measured: how it turns tells most about its pressure patch"
        yield Observation("warning", "no-orientation", text, name)
    tilt = _tilt(trajectory, push.target)
    if tilt > TIPPED:
        yield Observation(
            "warning",
            "tipping",
            f"'{push.target}' tips by {{value}} while it is pushed; pushes are seen as motion in the plane",
            name,
            value=float(np.degrees(tilt)),
            style="{:.1f} degrees",
            advice="push lower",
        )


def _tilt(trajectory: Trajectory, body: str) -> float:
    """The largest lean of a body's axis against where it points in the median [rad]; 0 where it is not measured."""
    quaternion = trajectory.quaternion_world[body]
    if quaternion is None:
        return 0.0
    w, x, y, z = quaternion[np.isfinite(quaternion).all(axis=1)].T
    up = np.column_stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    if not len(up):
        return 0.0
    middle = np.median(up, axis=0)
    middle /= np.linalg.norm(middle)
    return float(np.quantile(np.arccos(np.clip(up @ middle, -1, 1)), 0.98))
