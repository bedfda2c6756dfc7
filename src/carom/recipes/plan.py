"""Plans from models on disk: the search, the files for a robot, and the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress
from carom.engines.contract import Simulator
from carom.hybrid.draws import draws_of
from carom.hybrid.model import ENGINES, load_hybrid
from carom.plan import Plan, approach, plan_strike, strike_space
from carom.plan.export import strike_motion, write_motion
from carom.plan.search import HORIZON
from carom.recordings import Recordings, resting_pose
from carom.recordings.strikes import first_strike
from carom.report import Figure, Section
from carom.report import moving as motion
from carom.scenes.strike import StrikeScene
from carom.state import Array, rotate

DRAWS = 8  #: of the model's uncertainty, for a robust plan
FRAMES = 81  #: instants of a pictured motion
HOLD = 0.01  #: [m] that the striker travels at full speed before contact at least


def plan_from_model(
    model: Path,
    wanted: Sequence[float],
    *,
    start: Sequence[float] = (0.0, 0.0, 0.0),
    engine: str = "hybrid",
    method: str = "cma",
    robust: bool = False,
    budget: int | None = None,
    speed: tuple[float, float] | None = None,
    tolerance: tuple[float, float] = (0.01, 0.1),
    seed: int = 0,
    threads: int = 0,
    progress: Progress,
) -> tuple[Plan, Simulator]:
    """The strike that brings the target of a corrected model where it is wanted, and the simulator that says so."""
    if engine not in ENGINES:
        raise CaromError(unknown_name("simulator", engine, ENGINES))
    hybrid = load_hybrid(model)
    simulator = hybrid.simulator(engine, threads=threads)
    several: Simulator | list[Simulator] = simulator
    if robust:
        several = draws_of(hybrid, DRAWS, engine=engine, seed=seed, threads=threads)
    space = strike_space(hybrid.scene, np.asarray(start, dtype=np.float64), speed=speed)
    plan = plan_strike(
        several,
        space,
        np.asarray(wanted, dtype=np.float64),
        method=method,
        budget=budget,
        tolerance=tolerance,
        seed=seed,
        progress=lambda done, total: progress(f"plan: {method}", done, total),
    )
    return plan, simulator


def export_plan(
    folder: Path, plan: Plan, scene: StrikeScene, *, height: float | None = None, base: tuple[float, float, float]
) -> tuple[Path, ...]:
    """Write a plan as set-points for a robot; `base` is the pose of its base in the world [m, m, rad]."""
    touching = approach(scene, plan.commands, standoff=0.0)
    velocity = touching.striker_velocity[0, :2]
    level = scene.shape.full_height / 2 if height is None else height
    way = strike_motion(
        touching.striker_pose[0, :2],
        velocity,
        height=level,
        yaw=float(touching.striker_pose[0, 2]),
        settle=max(0.02, HOLD / float(np.linalg.norm(velocity))),
    )
    return write_motion(folder, way, strike=plan.to_dict(), base=base)


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
    scene, start, wanted = simulator.scene, plan.commands.target_pose[0], plan.wanted
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
    if np.isfinite(plan.rest_std).all():
        x, y, yaw = plan.rest_std
        rows.append(
            ["standard deviation", f"x {1e3 * x:.1f} mm, y {1e3 * y:.1f} mm, yaw {np.degrees(yaw):.1f} degrees"]
        )
    rows.append(["search", f"{plan.method}: {plan.evaluations} simulated strikes in {plan.seconds:.2f} s"])
    return rows


def _pose(pose: Array) -> str:
    return f"x {pose[0]:.4f} m, y {pose[1]:.4f} m, yaw {pose[2]:.3f} rad"
