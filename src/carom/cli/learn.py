"""Commands from recordings to a corrected model: check, identify, suggest, distill, adapt, predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carom import recipes
from carom.cli.console import run, say
from carom.cli.options import (
    Json,
    On,
    RecordingsArg,
    Seed,
    Settle,
    Threads,
    enough,
    new_file,
    new_folder,
    new_place,
    one_of,
    own_folder,
    positive,
    some_of,
)
from carom.core.errors import CaromError


def _methods() -> list[str]:
    from carom.identify.pushes.search import METHODS as OF_PUSHES
    from carom.identify.tosses.search import METHODS as OF_BODIES
    from carom.recipes.identifying import METHODS as OF_STRIKES

    return list(dict.fromkeys([*OF_STRIKES, *OF_BODIES, *OF_PUSHES]))


def _free_parameters() -> list[str]:
    from carom.scenes.parameters import FREE
    from carom.scenes.pushing.writing import TAKES

    return [*dict.fromkeys([*FREE, *TAKES]), "actuator_delay", "table-ii"]


def _teachers() -> list[str]:
    from carom.scenes.strike import DISTILLED

    return ["both", *DISTILLED]


def _base_presets() -> list[str]:
    from carom.learn.impact.base_model import PRESETS

    return list(PRESETS)


def _adapt_presets() -> list[str]:
    from carom.recipes.adapting import PRESETS

    return list(PRESETS)


def check(folder: RecordingsArg, json_file: Json = None) -> None:
    """Check recordings: what is there, how good it is, what is physically wrong. Nothing is repaired."""
    run(json_file, lambda progress: recipes.check(folder))


def _held(fixed: list[str] | None) -> list[str] | None:
    """Refuse what is no NAME=VALUE of a parameter that exists; which values it can have, its recipe knows."""
    for name in _values(fixed or []):
        one_of("parameter", _free_parameters)(name)
    return fixed


def _values(fixed: list[str]) -> dict[str, float]:
    """Values by name, from NAME=VALUE."""
    held = {}
    for text in fixed:
        name, _, value = text.partition("=")
        try:
            held[name] = float(value)
        except ValueError:
            raise CaromError(f"--fix: expected NAME=VALUE with a number, got '{text}'") from None
    return held


IdentifyModel = Annotated[
    Path | None, typer.Option(help="strikes: base models of your own, for --method gradient; else the package's")
]
IdentifyMethod = Annotated[
    str | None,
    typer.Option(
        callback=one_of("method", _methods),
        help="strikes: gradient (default), cma, grid, mjx; free bodies: cma, least-squares; pushes: cma, "
        "gauss-newton, random",
    ),
]
IdentifyParameters = Annotated[
    str | None,
    typer.Option(
        callback=some_of("parameter", _free_parameters),
        help="free bodies, pushes: which to look for, comma-separated; table-ii: the paper's eight",
    ),
]
IdentifyFixed = Annotated[
    list[str] | None, typer.Option("--fix", callback=_held, help="free bodies, pushes: NAME=VALUE, held; repeatable")
]
IdentifyFit = Annotated[int | None, typer.Option(min=1, help="free bodies: recordings to fit (12); the others test it")]
IdentifyRefineStarts = Annotated[
    bool, typer.Option("--refine-starts", help="free bodies: fit the velocities before the first contact too")
]
IdentifyGraph = Annotated[
    Path | None,
    typer.Option(help="free bodies: graph simulator (`carom train-graph`) to try on the unseen recordings too"),
]
IdentifyOut = Annotated[
    Path | None,
    typer.Option(callback=new_place, help="write parameters.yaml and report here; free bodies, pushes: MJCF too"),
]
IdentifySettle = Annotated[
    float | None,
    typer.Option(max=10.0, callback=positive, help="strikes: seconds after first motion where outcomes are read"),
]


def identify(
    recordings: RecordingsArg,
    model: IdentifyModel = None,
    method: IdentifyMethod = None,
    parameters: IdentifyParameters = None,
    fixed: IdentifyFixed = None,
    fit: IdentifyFit = None,
    refine_starts: IdentifyRefineStarts = False,
    graph: IdentifyGraph = None,
    out: IdentifyOut = None,
    settle: IdentifySettle = None,
    json_file: Json = None,
    seed: Seed = 0,
    threads: Threads = 0,
    on: On = None,
) -> None:
    """Identify contact parameters from recordings, with intervals and a verdict for each.

    Strikes of a tool are identified from their impacts, tossed and colliding bodies from whole trajectories, pushes
    from what comes of the recorded set-points, or of the tool's path where there are none.
    """
    strikes = bodies = None
    if model is not None or settle is not None:
        strikes = recipes.StrikeOptions(model, settle)
    if parameters is not None or fixed or fit is not None or refine_starts or graph is not None:
        names = None if parameters is None else parameters.split(",")
        bodies = recipes.FreeOptions(names, _values(fixed or []), fit, refine_starts, graph)
    run(
        json_file,
        lambda progress: recipes.identify(
            recordings,
            method=method,
            strikes=strikes,
            bodies=bodies,
            out=out,
            seed=seed,
            threads=threads,
            progress=progress,
        ),
        on=on,
    )


def suggest(
    recordings: RecordingsArg,
    params: Annotated[
        Path | None,
        typer.Option(help="parameters.yaml or its folder, from `carom identify`; without it, identified first"),
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=100, help="recordings to suggest")] = 3,
    report: Annotated[
        Path | None, typer.Option(callback=new_file, help="write a page with the suggestions here")
    ] = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Suggest the next recordings: those expected to narrow the parameters most, and by how much."""
    if params is None:
        say("no --params: identifying first, as `carom identify` does")
    run(
        json_file,
        lambda progress: recipes.suggest(
            recordings, params=params, count=count, report=report, seed=seed, threads=threads, progress=progress
        ),
    )


def distill(
    scene: Annotated[str, typer.Argument(help="built-in scene, scene file (YAML), or recordings folder")],
    out: Annotated[
        Path, typer.Option(callback=own_folder, help="folder for the base models; an interrupted run goes on there")
    ],
    samples: Annotated[int, typer.Option(callback=enough, help="simulated impacts per teacher")] = 100_000,
    teacher: Annotated[
        str,
        typer.Option(
            callback=one_of("teacher", _teachers), help="what to learn from: mujoco, compliant (analytic), or both"
        ),
    ] = "both",
    preset: Annotated[
        str, typer.Option(callback=one_of("preset", _base_presets), help="default, or paper (section IV-A of CLASH)")
    ] = "default",
    steps: Annotated[int | None, typer.Option(min=1, help="training steps; the preset's if not given")] = None,
    threads: Threads = 0,
    on: On = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Distil a simulator's contact response into base models f(S_pre, P) -> S_post."""
    run(
        json_file,
        lambda progress: recipes.distill(
            scene,
            out,
            samples=samples,
            teachers=("mujoco", "compliant") if teacher == "both" else (teacher,),
            training=recipes.DistillOptions(preset, steps),
            seed=seed,
            threads=threads,
            progress=progress,
        ),
        on=on,
    )


def adapt(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL] RECORDINGS",
            help="folder in the recordings format; before it, if wanted, base models of your own from `carom distill`",
        ),
    ],
    out: Annotated[Path, typer.Option(callback=new_folder, help="folder for the corrected model")],
    preset: Annotated[
        str,
        typer.Option(
            callback=one_of("preset", _adapt_presets), help="default, or paper (gradient identification, 10 steps)"
        ),
    ] = "default",
    settle: Settle = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Correct base models with a handful of recorded strikes: those of the package, or your own."""
    if len(folders) > 2:
        raise CaromError(f"adapt takes RECORDINGS, or MODEL and RECORDINGS; got {len(folders)} folders")
    model, recordings = (None, folders[0]) if len(folders) == 1 else folders
    run(
        json_file,
        lambda progress: recipes.adapt(
            model, recordings, out, preset=preset, settle=settle, seed=seed, progress=progress
        ),
    )


def predict(
    model: Annotated[Path, typer.Argument(help="corrected model folder, from `carom adapt`")],
    recordings: RecordingsArg,
    report: Annotated[
        Path | None,
        typer.Option(callback=new_file, help="write a page here: predicted beside measured, where that was recorded"),
    ] = None,
    json_file: Json = None,
) -> None:
    """Predict each strike's outcome from what was recorded before its contact."""
    run(json_file, lambda progress: recipes.predict(model, recordings, report=report))
