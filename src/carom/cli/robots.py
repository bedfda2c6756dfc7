"""The command for other people's robots: export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carom import recipes
from carom.cli.console import run
from carom.cli.options import Json, Seed, near, new_folder


def export(
    strike: Annotated[Path, typer.Argument(help="strike.json or its folder, from `carom plan --export`")],
    out: Annotated[Path, typer.Option(callback=new_folder, help="folder for the robot's files (CSV, JSON, ROS)")],
    arm: Annotated[
        str | None,
        typer.Option(
            metavar="MJCF", help="the robot, for its joints' motion (`arm`: Carom's own); else its tool's alone"
        ),
    ] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="SITE", help="site of the MJCF that strikes; z axis out of the tool")
    ] = None,
    limits: Annotated[
        Path | None, typer.Option(help="YAML: velocity, acceleration, jerk of tip and joints (docs/exporting.md)")
    ] = None,
    base: Annotated[
        tuple[float, float, float] | None,
        typer.Option(callback=near, help="pose of the robot's base in the world: [m] [m] [rad]; else as planned"),
    ] = None,
    height: Annotated[float, typer.Option(min=-10, max=10, help="of the robot's base above the ground [m]")] = 0.0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Export a planned strike for a robot: jerk-limited, through inverse kinematics, and says which limit stops it."""
    robot = recipes.RobotOptions(arm, tool, limits, base, height)
    run(json_file, lambda progress: recipes.export(strike, out, robot=robot, seed=seed, progress=progress))
