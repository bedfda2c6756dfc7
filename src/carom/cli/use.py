"""The command that puts a model to use for one strike: plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carom import recipes
from carom.cli.console import run
from carom.cli.options import Json, Seed, Threads, near, new_file, new_folder, one_of, positive, rising


def _engines() -> list[str]:
    from carom.hybrid.model import ENGINES

    return list(ENGINES)


def _searches() -> list[str]:
    from carom.plan.methods import METHODS

    return list(METHODS)


PlanTarget = Annotated[
    tuple[float, float, float], typer.Option(callback=near, help="wanted pose of the target: x [m], y [m], yaw [rad]")
]
PlanStart = Annotated[
    tuple[float, float, float], typer.Option("--from", callback=near, help="pose it lies in now: [m] [m] [rad]")
]
PlanMethod = Annotated[
    str, typer.Option(callback=one_of("method", _searches), help="cma, cem, or gradient (through network and slider)")
]
PlanSimulator = Annotated[
    str,
    typer.Option(
        callback=one_of("simulator", _engines), help="hybrid, hybrid-mujoco (slides in MuJoCo), mujoco, or mjx"
    ),
]
PlanRobust = Annotated[
    bool | None,
    typer.Option(
        "--robust/--no-robust",
        help="expectation over the model's uncertainty; default: where it is unsure of the plain plan",
    ),
]
PlanSpeed = Annotated[
    tuple[float, float] | None, typer.Option(callback=rising, help="of the striker, lowest and highest [m/s]")
]
PlanTolerance = Annotated[
    tuple[float, float], typer.Option(callback=positive, help="within reach if off by less: [m] [rad]")
]
PlanExport = Annotated[
    Path | None, typer.Option(callback=new_folder, help="folder for the robot's set-points (1 kHz CSV, JSON)")
]
PlanBase = Annotated[
    tuple[float, float, float], typer.Option(callback=near, help="pose of the robot's base in the world: [m] [m] [rad]")
]
PlanReport = Annotated[
    Path | None, typer.Option(callback=new_file, help="write a page with the picture of the plan here")
]


def plan(
    model: Annotated[Path, typer.Argument(help="corrected model folder, from `carom adapt`")],
    target: PlanTarget,
    start: PlanStart = (0.0, 0.0, 0.0),
    method: PlanMethod = "cma",
    simulator: PlanSimulator = "hybrid",
    robust: PlanRobust = None,
    any_yaw: Annotated[bool, typer.Option("--any-yaw", help="only the place is wanted; YAW is ignored")] = False,
    budget: Annotated[int | None, typer.Option(min=1, max=10_000_000, help="simulated strikes at most")] = None,
    speed: PlanSpeed = None,
    tolerance: PlanTolerance = (0.01, 0.1),
    export: PlanExport = None,
    base: PlanBase = (0.0, 0.0, 0.0),
    report: PlanReport = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Plan the strike that brings the target to a wanted pose; exit code 2 if no single strike can."""
    search = recipes.SearchOptions(simulator, method, robust, budget, speed, tolerance)
    run(
        json_file,
        lambda progress: recipes.plan(
            model,
            target[:2] if any_yaw else target,
            start=start,
            search=search,
            files=recipes.PlanFiles(export, base, report),
            seed=seed,
            threads=threads,
            progress=progress,
        ),
    )
