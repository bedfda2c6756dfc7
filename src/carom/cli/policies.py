"""Commands of policies: train, rollout."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from carom import recipes
from carom.cli.console import run
from carom.cli.options import LARGEST_SEED, Json, On, Seed, Threads, new_file, one_of, own_folder
from carom.core.errors import CaromError


def _engines() -> list[str]:
    from carom.hybrid.model import ENGINES

    return list(ENGINES)


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


def _pushing(value: str | None) -> str | None:
    if value is not None:
        try:
            _of_policies("carom.envs.pushing.files", "load_task")(value)
        except CaromError as reason:
            raise typer.BadParameter(str(reason)) from reason
    return value


def _reality(value: str | None) -> str | None:
    if value is None or value in _push_realities():
        return value
    if reason := _of_policies("carom.recipes.policies", "unknown_reality")(value):
        raise CaromError(reason)
    return value


def _push_realities() -> list[str]:
    return ["simulator", *_of_policies("carom.reality.push_settings", "PUSH_SETTINGS")]


TrainOut = Annotated[
    Path, typer.Option(callback=own_folder, help="folder for the policy; an interrupted training goes on there")
]
TrainScene = Annotated[
    str | None,
    typer.Option(
        callback=_pushing,
        help="push a block instead: planar-cube, planar-t, arm-cube, arm-t, or a task file (docs/policies.md)",
    ),
]
TrainStart = Annotated[
    Path | None, typer.Option(help="of --scene: folder of an earlier policy, whose networks it begins with")
]
TrainParams = Annotated[
    Path | None, typer.Option(help="of --scene: parameters.yaml or its folder; its simulator has these values")
]
TrainEnv = Annotated[
    str | None,
    typer.Option(callback=one_of("environment", _environments), help="carom/StrikeSegment-v0, or carom/StrikeRoute-v0"),
]
TrainRoute = Annotated[
    str | None, typer.Option(callback=_route, help="of carom/StrikeRoute-v0: 1, 2, 3 or a file (YAML)")
]
TrainSimulator = Annotated[
    str | None,
    typer.Option(callback=one_of("simulator", _engines), help="hybrid (default), hybrid-mujoco, mujoco, or mjx"),
]
TrainAlgo = Annotated[
    str | None, typer.Option(callback=one_of("algorithm", _algorithms), help="sac or ppo; default: sac, of --scene ppo")
]
TrainSteps = Annotated[
    int | None, typer.Option(min=1, help="transitions; default: 200000, of --preset quick 120000, of --scene as needed")
]
TrainPreset = Annotated[
    str | None,
    typer.Option(
        callback=one_of("preset", _presets),
        help="fast (batched, default), quick (sac: the least time), or paper (the defaults of SB3)",
    ),
]
TrainLibrary = Annotated[
    str | None,
    typer.Option(callback=one_of("library", _libraries), help="sb3 (default), or sbx (extra; faster updates)"),
]
TrainSeeds = Annotated[
    int | None, typer.Option(min=1, max=1000, help="train from so many seeds, from --seed on, into OUT/seed-N")
]


def train(
    out: TrainOut,
    scene: TrainScene = None,
    start: TrainStart = None,
    params: TrainParams = None,
    env: TrainEnv = None,
    route: TrainRoute = None,
    length: Annotated[float | None, typer.Option(help="of a segment [m]; 0.3 if not given")] = None,
    model: Annotated[Path | None, typer.Option(help="corrected model folder, from `carom adapt`")] = None,
    simulator: TrainSimulator = None,
    randomise: Annotated[bool, typer.Option("--randomise", help="over what is uncertain")] = False,
    algo: TrainAlgo = None,
    steps: TrainSteps = None,
    preset: TrainPreset = None,
    library: TrainLibrary = None,
    seeds: TrainSeeds = None,
    threads: Threads = 0,
    on: On = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Train a policy that strikes a block along straight segments (section IV-C of CLASH). Resumes after a kill.

    With --scene it pushes a block to where it should be, in a closed loop (the real-sim-real paper).
    """
    only = {"env": env, "route": route, "length": length, "model": model, "simulator": simulator}
    only |= {"preset": preset, "library": library}
    if scene is not None:
        for name, value in {**only, "seeds": seeds, "on": on}.items():
            if value is not None:
                raise CaromError(f"--{name} is for strikes; leave it out with --scene")
        of_pushes = recipes.PushingTraining(algo or "ppo", steps, seed, start=start)
        run(
            json_file,
            lambda progress: recipes.train_pushes(
                scene, out, training=of_pushes, params=params, randomise=randomise, threads=threads, progress=progress
            ),
        )
        return
    if start is not None or params is not None:
        raise CaromError(f"--{'params' if start is None else 'start'} is for pushes: give --scene too")
    engine = recipes.EngineOptions(model, simulator or "hybrid", randomise)
    training = recipes.Training(algo or "sac", steps, preset or "fast", library or "sb3", seed)
    task = recipes.TaskOptions(env or "carom/StrikeSegment-v0", route, 0.3 if length is None else length)
    options: dict[str, Any] = {"engine": engine, "task": task, "training": training, "threads": threads}
    if seeds is not None:
        if seed + seeds - 1 > LARGEST_SEED:
            raise CaromError(f"--seeds {seeds} from --seed {seed} on: expected seeds up to {LARGEST_SEED}")
        several = range(seed, seed + seeds)
        run(json_file, lambda progress: recipes.train_seeds(out, several, progress=progress, **options), on=on)
        return
    if on is not None:
        raise CaromError("--on: one training is one piece of work and stays here; give --seeds for several")
    run(json_file, lambda progress: recipes.train(out, progress=progress, **options))


RolloutOn = Annotated[
    str | None,
    typer.Option(
        callback=_reality,
        help="a stand-in reality (default: nylon-low), a model folder, or module:Class; of pushes: simulator "
        "(default), a stand-in (plain, laminate, felt, steel), or module:Class",
    ),
]
RolloutScene = Annotated[
    str | None,
    typer.Option(callback=_pushing, help="of pushes: the task file, if the policy's scene is not a built-in one"),
]
RolloutRoutes = Annotated[
    list[str] | None,
    typer.Option(metavar="ROUTE...", callback=_route, help="1, 2, 3 or files (YAML), several at once; default: 1"),
]
RolloutAnimation = Annotated[
    Path | None, typer.Option(callback=new_file, help="GIF of a trial; default: POLICY/trials.gif")
]


def rollout(
    policy: Annotated[Path, typer.Argument(help="policy folder, from `carom train`")],
    more_routes: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    on: RolloutOn = None,
    scene: RolloutScene = None,
    routes: RolloutRoutes = None,
    trials: Annotated[int, typer.Option(min=1, help="along each route, or pushes")] = 100,
    animation: RolloutAnimation = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Try a policy along routes, or one of pushes: success rates with 95 % intervals, and an animation."""
    if recipes.is_policy_of_pushes(policy):
        if routes or more_routes or threads:
            raise CaromError(f"{policy} holds a policy of pushes: it has no use for --routes and --threads")
        run(
            json_file,
            lambda progress: recipes.rollout_pushes(
                policy,
                on=on or "simulator",
                scene=scene,
                trials=trials,
                animation=animation,
                seed=seed,
                progress=progress,
            ),
        )
        return
    if scene is not None:
        raise CaromError(f"--scene is for policies of pushes; {policy} holds one of strikes")
    if more_routes and not routes:
        raise CaromError(f"expected one policy, got also {' '.join(more_routes)}; routes follow --routes")
    chosen = [*(routes or ["1"]), *(more_routes or [])]
    run(
        json_file,
        lambda progress: recipes.rollout(
            policy,
            on=on or "nylon-low",
            routes=chosen,
            trials=trials,
            animation=animation,
            seed=seed,
            threads=threads,
            progress=progress,
        ),
    )
