"""A planned strike in numbers and pictures, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from carom.core.errors import CaromError
from carom.engines.contract import Simulator
from carom.plan import Plan, approach
from carom.plan.search import HORIZON
from carom.recordings import Recordings, resting_pose
from carom.recordings.strikes import first_strike
from carom.report import Figure, Section, Table, Text
from carom.report import moving as motion
from carom.report.pose_errors import statement
from carom.state import Array, rotate, wrap_angle

FRAMES = 81  #: instants of a pictured motion
SAME = 1e-4  #: [m] within which two ends are the same


def executed_motion(recordings: Recordings) -> tuple[Array, Array]:
    """Times since contact [T] [s] and poses of the target's frame [T, 3] in the first recording, up to its rest."""
    trajectory = recordings.trajectories[0]
    strike, reason = first_strike(trajectory)
    if strike is None:
        raise CaromError(f"{trajectory.name}: {reason}")
    poses = np.column_stack([trajectory.position_world[strike.target][:, :2], trajectory.yaw(strike.target)])
    seen = np.isfinite(poses).all(axis=1) & (trajectory.time >= strike.time)
    time, poses = trajectory.time[seen] - strike.time, poses[seen]
    rest = resting_pose(trajectory, strike)
    if rest is None:
        return time, poses
    return np.append(time, time[-1] + trajectory.period), np.concatenate([poses, rest[None]])


def plan_figures(plan: Plan, simulator: Simulator, executed: Sequence[Recordings] = ()) -> list[Section]:
    """A picture of the plan against what came of it, and the plan in motion against the first execution."""
    scene, start = simulator.scene, plan.commands.target_pose[0]
    wanted = np.where(np.isfinite(plan.wanted), plan.wanted, plan.rest)
    run = simulator.rollout(approach(scene, plan.commands), HORIZON, frames=2 * FRAMES)
    moving = np.linalg.norm(run.target_velocity[0] * [1.0, 1.0, scene.gyration_radius], axis=-1) > 0
    last = min(int(np.flatnonzero(moving)[-1]) + 2, len(moving)) if moving.any() else len(moving)
    planned = run.target_pose[0, :last]
    contact = start[:2] + rotate(plan.commands.contact_point[0], start[2])
    velocity = rotate(plan.commands.velocity[0], start[2])
    outcomes = [executed_motion(folder) for folder in executed]
    paths = [poses for _, poses in outcomes]
    still = motion.planned_strike(scene.outline.vertices, start, wanted, planned, paths, contact, velocity)
    # a robust plan expects the mean over the model's draws; the way that is drawn is that of the model itself
    ends = np.array([poses[-1] for poses in paths]).reshape(-1, 3)
    still = replace(still, words=statement(wanted, plan.rest, ends))
    mean = bool(np.linalg.norm(run.rest[0, :2] - plan.rest[:2]) > SAME)
    unsure = " The error is a mean over what the model leaves open; the way drawn is that of its best guess."
    sections: list[Section] = [
        Figure(
            "A planned strike",
            still,
            "Seen from above. Grey: where the block lies. Blue, dashed: where it is wanted. Orange: where the "
            "simulator says that the strike brings it, and its way there. Dark: where it went when the strike was "
            "carried out. The three should lie on each other at the end; the short line in a block shows how it is "
            f"turned. Searched by {plan.method}: {plan.evaluations} simulated strikes.{unsure if mean else ''}",
        )
    ]
    if outcomes:
        time, (clock, poses) = run.time[0, :last], outcomes[0]
        since = time - float(run.contact_time[0])
        real = np.column_stack([np.interp(since, clock, poses[:, c]) for c in range(3)])
        sections.append(
            Figure(
                "Plan and outcome in motion",
                motion.strike_animation(
                    scene.outline.vertices, start, wanted, time, planned, real, run.striker_pose[0, :last, :2]
                ),
                "The strike over time; press Play, or move the slider. Orange: the simulator. Dark: what was "
                "measured in the first execution. They should move together and end on the dashed block.",
            )
        )
    return sections


def plan_rows(plan: Plan) -> list[list[Any]]:
    """What a person wants to know of a plan, with units."""
    point, velocity = plan.commands.contact_point[0], plan.commands.velocity[0]
    rows: list[list[Any]] = [
        ["strike at (target's frame)", f"x {1e3 * point[0]:.1f} mm, y {1e3 * point[1]:.1f} mm"],
        [
            "with velocity (target's frame)",
            f"x {velocity[0]:.3f} m/s, y {velocity[1]:.3f} m/s ({np.linalg.norm(velocity):.3f} m/s)",
        ],
        ["wanted pose", _pose(plan.wanted)],
        ["expected pose", _pose(plan.rest)],
        ["expected error", f"{1e3 * plan.position_error:.1f} mm, {np.degrees(plan.yaw_error):+.1f} degrees"],
    ]
    rows.append(["standard deviation", _spread(plan.rest_std)])
    rows.append(["search", f"{plan.method}: {plan.evaluations} simulated strikes in {plan.seconds:.2f} s"])
    return rows


def _pose(pose: Array) -> str:
    yaw = f"yaw {float(wrap_angle(pose[2])):.3f} rad" if np.isfinite(pose[2]) else "any yaw"
    return f"x {pose[0]:.4f} m, y {pose[1]:.4f} m, {yaw}"


def _spread(std: Array) -> str:
    """Where a strike ends over draws of what the model leaves open."""
    if np.isnan(std).any():
        return "not asked for: plan with --robust, in a hybrid"
    if np.isinf(std).any():
        return "not known: some draws of the model miss the target or never rest"
    return f"x {1e3 * std[0]:.1f} mm, y {1e3 * std[1]:.1f} mm, yaw {np.degrees(std[2]):.1f} degrees"


def out_of_reach(plan: Plan) -> str:
    """In words, that no single strike was found, and what comes nearest."""
    x, y, yaw = plan.rest[0], plan.rest[1], float(wrap_angle(plan.rest[2]))
    return (
        f"out of reach with one strike, as far as {plan.evaluations} tries can tell: the nearest pose is "
        f"{x:.4f} {y:.4f} {yaw:.3f} ({1e3 * plan.position_error:.0f} mm and {abs(plan.yaw_error):.2f} rad off)"
    )


def plan_summary(plan: Plan) -> list[Section]:
    """The numbers of a plan for its page, and whether its pose is out of reach."""
    rows = tuple((str(what), str(value)) for what, value in plan_rows(plan))
    note = (
        "What to command, where the block is expected to end, and how sure that is. The expected error and the "
        f"standard deviation should both be small against what you tolerate ({1e3 * plan.tolerance[0]:.0f} mm, "
        f"{np.degrees(plan.tolerance[1]):.0f} degrees)."
    )
    table = Table("The strike in numbers", ("what", "value"), rows, note)
    return [table] if plan.reachable else [Text("Out of reach", (f"The wanted pose is {out_of_reach(plan)}.",)), table]
