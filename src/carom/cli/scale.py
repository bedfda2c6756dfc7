"""The command that scales data: scale."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carom import recipes
from carom.cli.console import run
from carom.cli.options import Json, On, Seed, Threads, one_of, own_folder, rising


def scale(
    out: Annotated[
        Path, typer.Option(callback=own_folder, help="folder for the trajectories; an interrupted run goes on there")
    ],
    scene: Annotated[
        str | None, typer.Argument(help="toss, cubes, shapes, or a recordings folder; none with --mesh")
    ] = None,
    params: Annotated[
        Path | None, typer.Option(help="parameters.yaml or its folder, from `carom identify`; else defaults")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="trajectories")] = 3000,
    mesh: Annotated[list[Path] | None, typer.Option(help="convex mesh to drop on the ground; repeat for more")] = None,
    rotate: Annotated[
        Path | None, typer.Option("--augment", help="rotate these recordings instead of simulating (DA baseline)")
    ] = None,
    spread: Annotated[bool, typer.Option("--spread", help="draw parameters within their 90 % intervals")] = False,
    vary: Annotated[
        float | None, typer.Option(help="draw friction, stiffness and damping up to this factor above and below")
    ] = None,
    bodies: Annotated[
        tuple[int, int] | None, typer.Option(callback=rising, help="fewest and most: cubes that stand, shapes, meshes")
    ] = None,
    size: Annotated[tuple[float, float] | None, typer.Option(help="factors of all lengths; default 0.7 1.4")] = None,
    aspect: Annotated[float | None, typer.Option(help="factor of each length, up or down; default 1.25")] = None,
    mass: Annotated[tuple[float, float] | None, typer.Option(help="factors of the density; default 0.5 2")] = None,
    density: Annotated[float | None, typer.Option(help="of meshes [kg/m^3]; default 370")] = None,
    rate: Annotated[float | None, typer.Option(help="samples per second; the recordings', else 100")] = None,
    duration: Annotated[float | None, typer.Option(help="seconds; the recordings', else 1 (toss) or 1.5")] = None,
    threads: Threads = 0,
    on: On = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Scale data: thousands of trajectories from a calibrated engine, to learn from. Resumes after a kill."""
    options = recipes.ScaleOptions(
        params=params,
        spread=spread,
        vary=vary,
        mesh=tuple(mesh or ()),
        bodies=bodies,
        size=size,
        aspect=aspect,
        mass=mass,
        density=density,
        rate=rate,
        duration=duration,
    )
    run(
        json_file,
        lambda progress: recipes.scale(
            out, scene, options=options, rotate=rotate, count=count, seed=seed, threads=threads, progress=progress
        ),
        on=on,
    )


def _presets() -> tuple[str, ...]:
    from carom.learn.graph import PRESETS

    return PRESETS


def train_graph(
    data: Annotated[list[Path], typer.Argument(help="folders that `carom scale` wrote, all at the same rate")],
    out: Annotated[
        Path, typer.Option(callback=own_folder, help="folder for the simulator; an interrupted training goes on there")
    ],
    preset: Annotated[
        str, typer.Option(callback=one_of("preset", _presets), help="default, or paper: the few-shot paper's network")
    ] = "default",
    updates: Annotated[
        int | None, typer.Option(min=10, max=1_000_000, help="changes of the weights; 2100 if not given (paper: 2500)")
    ] = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Train the graph simulator: contact of several bodies, learned and differentiable. Resumes after a kill."""
    run(
        json_file,
        lambda progress: recipes.train_graph(data, out, preset=preset, updates=updates, seed=seed, progress=progress),
    )
