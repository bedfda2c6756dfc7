"""Policies from a model to a reality: what they train in, and what they are tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from carom.envs.batch import Mask, Strike, StrikeBatch, engine_strike, make_batch
from carom.envs.render import animation, frame
from carom.envs.routes import Route, route_from
from carom.envs.sb3 import StrikeVecEnv
from carom.envs.starts import RouteStarts, SegmentStarts, Starts
from carom.errors import CaromError, unknown_name
from carom.loop import ALL_SETTINGS, standin
from carom.loop.standin import StandIn
from carom.scenes.strike import StrikeScene, from_bodies
from carom.simulate.contract import Simulator
from carom.simulate.model import ENGINES, load_hybrid
from carom.simulate.uncertain import draws_of
from carom.state import Array, StrikeCommands
from carom.train import Policy, Trials, load_policy, run_trials, train

ENVIRONMENTS = ("carom/StrikeSegment-v0", "carom/StrikeRoute-v0")
DRAWS = 32  #: simulators that stand for what is uncertain, with --randomise
SHAPE = "semi-cylinder"  #: of the block on the stand-ins
Progress = Callable[[str, int, int], None]


def training_engines(
    model: Path | None, engine: str, *, randomise: bool, seed: int, threads: int
) -> Simulator | Sequence[Simulator] | None:
    """What a policy trains in: an engine of a corrected model, or as it could also be; None: the built-in one."""
    if engine not in ENGINES:
        raise CaromError(unknown_name("simulator", engine, ENGINES))
    if model is None:
        if engine != "mujoco" or randomise:
            raise CaromError(
                "without --model there is MuJoCo with default parameters only: give a model made by carom adapt, or "
                "--simulator mujoco"
            )
        return None
    hybrid = load_hybrid(model)
    if randomise:
        return draws_of(hybrid, DRAWS, engine=engine, seed=seed, threads=threads)
    return hybrid.simulator(engine, threads=threads)


def train_policy(
    out: Path,
    engines: Simulator | Sequence[Simulator] | None,
    *,
    environment: str = ENVIRONMENTS[0],
    route: str | None = None,
    made_by: Mapping[str, Any],
    **options: Any,
) -> Policy:
    """Train in an environment over these engines; `options` are those of `carom.train.train`."""
    if environment not in ENVIRONMENTS:
        raise CaromError(unknown_name("environment", environment, ENVIRONMENTS))
    starts: Starts = SegmentStarts()
    if environment == ENVIRONMENTS[1]:
        starts = RouteStarts(route_from(route or "1"))
    elif route is not None:
        raise CaromError(f"--route belongs to {ENVIRONMENTS[1]}, not to {environment}")
    seed = int(options.get("seed", 0))
    return train(
        lambda count: StrikeVecEnv(make_batch(engines, starts, count=count, seed=seed)),
        out, environment=environment, made_by={**made_by, "route": route}, **options,
    )  # fmt: skip


def standin_strike(reality: StandIn, *, seed: int) -> Strike:
    """Strikes carried out on a stand-in, each with its own scatter."""
    calls = 0

    def strike(commands: StrikeCommands) -> tuple[Array, Mask]:
        nonlocal calls
        calls += 1
        rest = reality.truth(commands, seed=seed + 7919 * calls).rest
        return rest, np.asarray(np.isfinite(rest).all(axis=1))

    return strike


def reality_from(name: str, *, seed: int = 0, threads: int = 0) -> tuple[Strike, StrikeScene]:
    """What `--on` names: a stand-in reality, or the folder of a corrected model (its hybrid then plays reality)."""
    if name in ALL_SETTINGS:
        reality = standin(name, SHAPE, seed=seed + 1)
        bodies = reality.bodies
        return standin_strike(reality, seed=seed), from_bodies(bodies["block"], bodies["striker"], name=SHAPE)
    if Path(name).is_dir():
        simulator = load_hybrid(Path(name)).simulator("hybrid", threads=threads)
        return engine_strike(simulator), simulator.scene
    raise CaromError(f"--on: {unknown_name('reality', name, ALL_SETTINGS)}; or give the folder of a corrected model")


def roll_out(
    folder: Path, on: str, routes: Sequence[str], *, trials: int, seed: int, threads: int, progress: Progress
) -> dict[str, Trials]:
    """Trials of a saved policy along routes, by the route's name."""
    policy = load_policy(folder)
    chosen = [route_from(r) for r in routes]
    strike, scene = reality_from(on, seed=seed, threads=threads)
    found = {}
    for number, route in enumerate(chosen):
        found[route.name] = run_trials(policy, strike, scene, route, trials=trials, seed=seed)
        progress("trials", number + 1, len(chosen))
    return found


def trial_rows(found: Mapping[str, Trials]) -> list[dict[str, Any]]:
    """What trials came to, for tables and JSON: rates with 95 % intervals."""
    rows = []
    for name, trials in found.items():
        rates = trials.rates()
        rows.append({
            "route": name,
            "segments": trials.route.segments,
            "trials": len(trials.success),
            "success_rate": rates.success.value,
            "success_rate_interval": [rates.success.low, rates.success.high],
            "subgoal_rate": rates.subgoals.value,
            "subgoal_rate_interval": [rates.subgoals.low, rates.subgoals.high],
            "left_zone": int(trials.left_zone.sum()),
            "mean_strikes": float(trials.strikes.mean()),
        })  # fmt: skip
    return rows


def animate(folder: Path, on: str, routes: Sequence[str | Route], path: Path, *, seed: int, threads: int) -> Path:
    """An animation (GIF) of one trial along each route, struck as in `roll_out`."""
    policy, frames = load_policy(folder), []
    strike, scene = reality_from(on, seed=seed, threads=threads)
    for route in routes:
        batch = StrikeBatch(strike, scene, starts=RouteStarts(route_from(route)), count=1, seed=seed)
        frames.append(frame(batch))
        while not batch.ended[0]:
            batch.step(policy.act(batch.observe()))
            frames.append(frame(batch))
    path.parent.mkdir(parents=True, exist_ok=True)
    animation(frames, path)
    return path
