"""Policies from a model to a reality: what they train in, and what they are tried on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from carom.compare.ends import final_rest
from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress
from carom.envs import ENVIRONMENTS
from carom.envs.batch import Mask, Simulators, Strike, StrikeBatch, engine_strike, make_batch
from carom.envs.render import animation, frame
from carom.envs.routes import route_from
from carom.envs.sb3 import StrikeVecEnv
from carom.envs.starts import RouteStarts, SegmentStarts, Starts
from carom.hybrid.draws import draws_of
from carom.hybrid.model import ENGINES, FOLDER, load_hybrid
from carom.reality import ALL_SETTINGS, Reality, standin
from carom.reality.standin import StandIn
from carom.recordings import read
from carom.recordings.strikes import first_strike
from carom.scenes.strike import StrikeScene, from_bodies
from carom.state import Array, StrikeCommands
from carom.train import Policy, Training, Trials, load_policy, run_trials, train

DRAWS = 16  #: simulators that stand for what is uncertain, with --randomise
SHAPE = "semi-cylinder"  #: of the block on the stand-ins
APART = 100_003  #: between seeds: trial or environment i has the seed plus i
MOST_TRIALS = 100_000
BLOCK = 1  #: seed of a stand-in: to which side its mass is off, and the like


def training_engines(
    model: Path | None, engine: str, *, randomise: bool, seed: int, threads: int
) -> tuple[Simulators | None, dict[str, Any]]:
    """What a policy trains in: an engine of a corrected model, or as it could also be; None: the built-in one.

    And how to name it: a training is not gone on with in another model.
    """
    if engine not in ENGINES:
        raise CaromError(unknown_name("simulator", engine, ENGINES))
    if model is None:
        if engine != "mujoco" or randomise:
            raise CaromError(
                "without --model there is MuJoCo with default parameters only: give a model made by carom adapt, or "
                "--simulator mujoco"
            )
        return None, {"simulator": engine}
    hybrid, digest = load_hybrid(model), sha256()
    for path in sorted(path for path in (model / FOLDER).rglob("*") if path.is_file()):
        digest.update(path.read_bytes())
    made_by = {"simulator": engine, "randomise": randomise, "folder": str(model), "digest": digest.hexdigest()[:12]}
    if randomise:
        return draws_of(hybrid, DRAWS, engine=engine, seed=seed, threads=threads), made_by
    return hybrid.simulator(engine, threads=threads), made_by


def train_policy(
    out: Path,
    engines: Simulators | None,
    *,
    environment: str = ENVIRONMENTS[0],
    route: str | None = None,
    made_by: Mapping[str, Any],
    progress: Progress | None = None,
    **options: Any,
) -> Policy:
    """Train in an environment over these engines; `options` are those of `carom.train.Training`."""
    if environment not in ENVIRONMENTS:
        raise CaromError(unknown_name("environment", environment, ENVIRONMENTS))
    starts: Starts = SegmentStarts()
    if environment == ENVIRONMENTS[1]:
        starts = RouteStarts(route_from(route or "1"))
    elif route is not None:
        raise CaromError(f"--route belongs to {ENVIRONMENTS[1]}, not to {environment}")
    training = Training(**options)
    made_by = {**made_by, "points_m": starts.points.tolist()}
    return train(
        lambda count: StrikeVecEnv(make_batch(engines, starts, count=count, seed=training.seed)),
        out,
        training,
        environment=environment,
        made_by=made_by,
        progress=progress,
    )


def standin_strike(reality: StandIn, *, seed: int) -> Strike:
    """Strikes carried out on a stand-in, each with its own scatter."""
    calls = 0

    def strike(commands: StrikeCommands) -> tuple[Array, Mask]:
        nonlocal calls
        calls += 1
        rest = reality.truth(commands, seed=seed + 7919 * calls).rest
        return rest, np.asarray(np.isfinite(rest).all(axis=1))

    return strike


def reality_strike(reality: Reality, folder: Path, *, seed: int = 0) -> Strike:
    """Strikes carried out by whatever fulfils `Reality`, a robot say; rests are read off its recordings.

    The recordings of each call go into `folder/strikes-001` and so on. A strike without an impact in its recording has
    not come about; a block that still moves at the end of its recording counts as resting there.
    """
    calls = 0

    def strike(commands: StrikeCommands) -> tuple[Array, Mask]:
        nonlocal calls
        calls += 1
        recordings = read(reality.execute(commands, folder / f"strikes-{calls:03d}", seed=seed + calls))
        if len(recordings.trajectories) != len(commands):
            raise CaromError(
                f"{recordings.path}: expected a recording for each of {len(commands)} strikes, got "
                f"{len(recordings.trajectories)}"
            )
        rest, struck = commands.target_pose.copy(), np.zeros(len(commands), dtype=bool)
        for row, trajectory in enumerate(recordings.trajectories):
            impact, _ = first_strike(trajectory)
            if impact is not None:
                rest[row], struck[row] = final_rest(trajectory, impact), True
        return rest, struck

    return strike


def reality_from(name: str, *, seed: int = 0, threads: int = 0) -> tuple[Strike, StrikeScene]:
    """What `--on` names: a stand-in reality, or the folder of a corrected model (its hybrid then plays reality).

    `seed` is for the scatter of strikes; the stand-in itself is always the same block.
    """
    if name in ALL_SETTINGS:
        reality = standin(name, SHAPE, seed=BLOCK)
        bodies = reality.bodies
        return standin_strike(reality, seed=seed), from_bodies(bodies["block"], bodies["striker"], name=SHAPE)
    if Path(name).is_dir():
        simulator = load_hybrid(Path(name)).simulator("hybrid", threads=threads)
        return engine_strike(simulator), simulator.scene
    raise CaromError(f"--on: {unknown_name('reality', name, ALL_SETTINGS)}; or give the folder of a corrected model")


def roll_out(
    folder: Path, on: str, routes: Sequence[str], *, trials: int, seed: int, threads: int, progress: Progress
) -> list[Trials]:
    """Trials of a saved policy along routes."""
    if not 1 <= trials <= MOST_TRIALS:
        raise CaromError(f"trials: expected 1 to {MOST_TRIALS}, got {trials}")
    policy = load_policy(folder)
    chosen = [route_from(r) for r in routes]
    found = []
    for number, route in enumerate(chosen):
        strike, scene = reality_from(on, seed=seed, threads=threads)  # anew: no route depends on the others
        found.append(run_trials(policy, strike, scene, route, trials=trials, seed=APART * seed))
        progress("trials", number + 1, len(chosen))
    return found


def trial_rows(found: Sequence[Trials]) -> list[dict[str, Any]]:
    """What trials came to, for tables and JSON: rates with 95 % intervals."""
    rows = []
    for trials in found:
        rates = trials.rates()
        rows.append(
            {
                "route": trials.route.name,
                "segments": trials.route.segments,
                "trials": len(trials.success),
                "success_rate": rates.success.value,
                "success_rate_interval": [rates.success.low, rates.success.high],
                "subgoal_rate": rates.subgoals.value,
                "subgoal_rate_interval": [rates.subgoals.low, rates.subgoals.high],
                "left_zone": int(trials.left_zone.sum()),
                "mean_strikes": float(trials.strikes.mean()),
            }
        )
    return rows


def animate(folder: Path, on: str, routes: Sequence[str], path: Path, *, seed: int, threads: int) -> None:
    """An animation (GIF) of one trial along each route."""
    policy, frames = load_policy(folder), []
    for route in routes:
        strike, scene = reality_from(on, seed=seed, threads=threads)
        batch = StrikeBatch(strike, scene, starts=RouteStarts(route_from(route)), count=1, seed=APART * seed)
        frames.append(frame(batch))
        while not batch.ended[0]:
            batch.step(policy.act(batch.observe()))
            frames.append(frame(batch))
    path.parent.mkdir(parents=True, exist_ok=True)
    animation(frames, path)
