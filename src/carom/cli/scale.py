"""The command that scales data: scale."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carom.cli.console import Json, Out, Seed, Threads, bar, brief, errors
from carom.core.errors import CaromError, unknown_name

if TYPE_CHECKING:
    from carom.scale.sources import Source

BUILTIN = ("toss", "cubes")


def scale(
    out: Annotated[Path, typer.Option(help="folder for the trajectories; an interrupted run goes on there")],
    scene: Annotated[str | None, typer.Argument(help="toss, cubes, or a recordings folder; none with --mesh")] = None,
    params: Annotated[Path | None, typer.Option(help="parameters.yaml, from `carom identify`; else defaults")] = None,
    count: Annotated[int, typer.Option(min=1, help="trajectories")] = 3000,
    mesh: Annotated[list[Path] | None, typer.Option(help="convex mesh to drop on the ground; repeat for more")] = None,
    rotate: Annotated[
        Path | None, typer.Option("--augment", help="rotate these recordings instead of simulating (DA baseline)")
    ] = None,
    spread: Annotated[bool, typer.Option("--spread", help="draw parameters within their 90 % intervals")] = False,
    bodies: Annotated[tuple[int, int] | None, typer.Option(help="fewest and most: cubes that stand, meshes")] = None,
    size: Annotated[tuple[float, float] | None, typer.Option(help="factors of all lengths; default 0.7 1.4")] = None,
    aspect: Annotated[float | None, typer.Option(help="factor of each length, up or down; default 1.25")] = None,
    mass: Annotated[tuple[float, float] | None, typer.Option(help="factors of the density; default 0.5 2")] = None,
    density: Annotated[float | None, typer.Option(help="of meshes [kg/m^3]; default 370")] = None,
    rate: Annotated[float | None, typer.Option(help="samples per second; the recordings', else 100")] = None,
    duration: Annotated[float | None, typer.Option(help="seconds; the recordings', else 1 (toss) or 1.5")] = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Scale data: thousands of trajectories from a calibrated engine, to learn from. Resumes after a kill."""
    from carom.scale import Variation, augment, calibration
    from carom.scale import scale as run

    printer = Out(json_file)
    if rotate is not None:
        _refuse_with_augment(
            {
                "a scene": scene,
                "--params": params,
                "--mesh": mesh,
                "--spread": spread,
                "--bodies": bodies,
                "--size": size,
                "--aspect": aspect,
                "--mass": mass,
                "--density": density,
                "--rate": rate,
                "--duration": duration,
            }
        )
        with bar() as progress:
            made = augment(rotate, out, count=count, seed=seed, progress=progress)
    else:
        given: dict[str, Any] = {"size": size, "aspect": aspect, "mass": mass}
        variation = Variation(**{name: value for name, value in given.items() if value is not None})
        with bar() as progress:
            source = _source(scene, mesh or [], bodies=bodies, density=density, rate=rate, duration=duration)
            made = run(
                source,
                calibration(params, spread=spread),
                out,
                count=count,
                variation=variation,
                seed=seed,
                threads=threads,
                progress=progress,
            )
    facts = made.to_dict()
    printer.write(facts)
    printer.table(f"trajectories in {out}", ["what", "value"], [[k, brief(v)] for k, v in facts.items()])
    for note in made.notes[:5]:
        errors.print(f"note: {note}", soft_wrap=True)
    if len(made.notes) > 5:
        errors.print(f"note: {len(made.notes) - 5} more were left out")


def _refuse_with_augment(given: dict[str, Any]) -> None:
    for what, value in given.items():
        if value is not None and value is not False and value != []:
            raise CaromError(f"--augment rotates recordings as they are: {what} has no meaning there; leave it out")


def _source(
    scene: str | None,
    meshes: list[Path],
    *,
    bodies: tuple[int, int] | None,
    density: float | None,
    rate: float | None,
    duration: float | None,
) -> Source:
    from carom.scale import cubes, dropped, recorded, toss

    if meshes and scene is not None:
        raise CaromError(f"expected a scene or --mesh, got both ('{scene}' and {len(meshes)} meshes)")
    if density is not None and not meshes:
        raise CaromError("--density belongs to --mesh; other bodies have a mass of their own")
    if meshes:
        return dropped(meshes, bodies=bodies, rate=rate, duration=duration, **({"density": density} if density else {}))
    if scene is None:
        raise CaromError(f"expected a scene ({', '.join(BUILTIN)}, or a recordings folder), --mesh, or --augment")
    if scene == "cubes":
        return cubes(bodies=bodies, rate=rate, duration=duration)
    if bodies is not None:
        raise CaromError("--bodies belongs to cubes and to --mesh; a toss and recordings have bodies of their own")
    if scene == "toss":
        return toss(rate=rate, duration=duration)
    if not Path(scene).is_dir():
        raise CaromError(unknown_name("scene", scene, BUILTIN) + ", or a folder of recordings")
    return recorded(Path(scene), rate=rate, duration=duration)
