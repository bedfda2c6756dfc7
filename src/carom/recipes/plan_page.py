"""Pictures of a planned strike, and of what came of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carom.core.errors import CaromError
from carom.engines.contract import Simulator
from carom.plan import Plan, approach
from carom.plan.search import HORIZON
from carom.recordings import Recordings, resting_pose
from carom.recordings.strikes import first_strike
from carom.report import Figure, Section
from carom.report import moving as motion
from carom.state import Array, rotate

FRAMES = 81  #: instants of a pictured motion


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
    sections: list[Section] = [
        Figure("A planned strike", still, f"Searched by {plan.method}: {plan.evaluations} simulated strikes.")
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
                "Orange: the simulator. Dark: what was measured.",
            )
        )
    return sections
