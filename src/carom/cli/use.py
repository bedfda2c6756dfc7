"""Commands that put a model to use: plan, train, rollout."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from carom import recipes
from carom.cli.console import run
from carom.cli.options import (
    LARGEST_SEED,
    Json,
    On,
    Seed,
    Threads,
    near,
    new_file,
    new_folder,
    one_of,
    positive,
    rising,
)
from carom.core.errors import CaromError


def _engines() -> list[str]:
    from carom.hybrid.model import ENGINES

    return list(ENGINES)


def _searches() -> list[str]:
    from carom.plan.methods import METHODS

    return list(METHODS)


def _of_policies(module: str, name: str) -> Any:
    """Something of a module that needs the libraries for policies."""
    recipes.train  # noqa: B018 (raises with the extra's name if they are not there)
    return getattr(import_module(module), name)


def _environments() -> list[str]:
    return list(_of_policies("carom.envs", "STRIKE_ENVIRONMENTS"))


def _algorithms() -> list[str]:
    return list(_of_policies("carom.train.presets", "ALGORITHMS"))


def _libraries() -> list[str]:
    return list(_of_policies("carom.train.presets", "LIBRARIES"))


def _presets() -> list[str]:
    return list(dict.fromkeys(p.name for p in _of_policies("carom.train.presets", "PRESETS")))


def _route(value: str | list[str] | None) -> str | list[str] | None:
    for name in [value] if isinstance(value, str) else value or ():
        try:
            _of_policies("carom.envs.routes", "route_from")(name)
        except CaromError as reason:
            raise typer.BadParameter(str(reason)) from reason
    return value


def _reality(value: str) -> str:
    if reason := _of_policies("carom.recipes.policies", "unknown_reality")(value):
        raise CaromError(reason)
    return value


def plan(
    model: Annotated[Path, typer.Argument(help="corrected model folder, from `carom adapt`")],
    target: Annotated[
        tuple[float, float, float],
        typer.Option(callback=near, help="wanted pose of the target: x [m], y [m], yaw [rad]"),
    ],
    start: Annotated[
        tuple[float, float, float], typer.Option("--from", callback=near, help="pose it lies in now: [m] [m] [rad]")
    ] = (0.0, 0.0, 0.0),
    method: Annotated[
        str,
        typer.Option(callback=one_of("method", _searches), help="cma, cem, or gradient (through network and slider)"),
    ] = "cma",
    simulator: Annotated[
        str,
        typer.Option(
            callback=one_of("simulator", _engines), help="hybrid, hybrid-mujoco (slides in MuJoCo), mujoco, or mjx"
        ),
    ] = "hybrid",
    robust: Annotated[
        bool | None,
        typer.Option(
            "--robust/--no-robust",
            help="expectation over the model's uncertainty; default: where it is unsure of the plain plan",
        ),
    ] = None,
    any_yaw: Annotated[bool, typer.Option("--any-yaw", help="only the place is wanted; YAW is ignored")] = False,
    budget: Annotated[int | None, typer.Option(min=1, max=10_000_000, help="simulated strikes at most")] = None,
    speed: Annotated[
        tuple[float, float] | None, typer.Option(callback=rising, help="of the striker, lowest and highest [m/s]")
    ] = None,
    tolerance: Annotated[
        tuple[float, float], typer.Option(callback=positive, help="within reach if off by less: [m] [rad]")
    ] = (0.01, 0.1),
    export: Annotated[
        Path | None, typer.Option(callback=new_folder, help="folder for the robot's set-points (1 kHz CSV, JSON)")
    ] = None,
    base: Annotated[
        tuple[float, float, float],
        typer.Option(callback=near, help="pose of the robot's base in the world: [m] [m] [rad]"),
    ] = (0.0, 0.0, 0.0),
    report: Annotated[
        Path | None, typer.Option(callback=new_file, help="write a page with the picture of the plan here")
    ] = None,
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


def train(
    out: Annotated[
        Path, typer.Option(callback=new_folder, help="folder for the policy; an interrupted training goes on there")
    ],
    env: Annotated[
        str,
        typer.Option(
            callback=one_of("environment", _environments), help="carom/StrikeSegment-v0, or carom/StrikeRoute-v0"
        ),
    ] = "carom/StrikeSegment-v0",
    route: Annotated[
        str | None, typer.Option(callback=_route, help="of carom/StrikeRoute-v0: 1, 2, 3 or a file (YAML)")
    ] = None,
    length: Annotated[float, typer.Option(help="of a segment [m]")] = 0.3,
    model: Annotated[Path | None, typer.Option(help="corrected model folder, from `carom adapt`")] = None,
    simulator: Annotated[
        str, typer.Option(callback=one_of("simulator", _engines), help="hybrid, hybrid-mujoco, mujoco, or mjx")
    ] = "hybrid",
    randomise: Annotated[bool, typer.Option("--randomise", help="over what the model is uncertain about")] = False,
    algo: Annotated[str, typer.Option(callback=one_of("algorithm", _algorithms), help="sac or ppo")] = "sac",
    steps: Annotated[int, typer.Option(min=1, help="transitions")] = 200_000,
    preset: Annotated[
        str, typer.Option(callback=one_of("preset", _presets), help="fast (batched), or paper (the defaults of SB3)")
    ] = "fast",
    library: Annotated[
        str, typer.Option(callback=one_of("library", _libraries), help="sb3, or sbx (extra; faster updates)")
    ] = "sb3",
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="train from so many seeds, from --seed on, into OUT/seed-N")
    ] = None,
    threads: Threads = 0,
    on: On = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Train a policy that strikes a block along straight segments (section IV-C of CLASH). Resumes after a kill."""
    engine = recipes.EngineOptions(model, simulator, randomise)
    training = recipes.Training(algo, steps, preset, library, seed)
    if seeds is not None:
        if seed + seeds - 1 > LARGEST_SEED:
            raise CaromError(f"--seeds {seeds} from --seed {seed} on: expected seeds up to {LARGEST_SEED}")
        run(
            json_file,
            lambda progress: recipes.train_seeds(
                out,
                range(seed, seed + seeds),
                engine=engine,
                task=recipes.TaskOptions(env, route, length),
                training=training,
                threads=threads,
                progress=progress,
            ),
            on=on,
        )
        return
    if on is not None:
        raise CaromError("--on: one training is one piece of work and stays here; give --seeds for several")
    run(
        json_file,
        lambda progress: recipes.train(
            out,
            engine=engine,
            task=recipes.TaskOptions(env, route, length),
            training=training,
            threads=threads,
            progress=progress,
        ),
    )


def rollout(
    policy: Annotated[Path, typer.Argument(help="policy folder, from `carom train`")],
    more_routes: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    on: Annotated[
        str,
        typer.Option(callback=_reality, help="a stand-in reality (like nylon-low), a model folder, or module:Class"),
    ] = "nylon-low",
    routes: Annotated[
        list[str] | None,
        typer.Option(metavar="ROUTE...", callback=_route, help="1, 2, 3 or files (YAML), several at once; default: 1"),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="along each route")] = 100,
    animation: Annotated[
        Path | None, typer.Option(callback=new_file, help="GIF of a trial; default: POLICY/trials.gif")
    ] = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Try a policy along routes: success and sub-goal rates with 95 % intervals, and an animation."""
    if more_routes and not routes:
        raise CaromError(f"expected one policy, got also {' '.join(more_routes)}; routes follow --routes")
    chosen = [*(routes or ["1"]), *(more_routes or [])]
    run(
        json_file,
        lambda progress: recipes.rollout(
            policy,
            on=on,
            routes=chosen,
            trials=trials,
            animation=animation,
            seed=seed,
            threads=threads,
            progress=progress,
        ),
    )
