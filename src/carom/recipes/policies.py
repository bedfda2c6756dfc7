"""What policies train in, and what they are tried on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import SEAL, read_json
from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress, silent
from carom.engines import MujocoSimulator
from carom.envs import STRIKE_ENVIRONMENTS as ENVIRONMENTS
from carom.envs.batch import Simulators, Strike, engine_strike, make_batch
from carom.envs.outcome import Mask
from carom.envs.routes import route_from
from carom.envs.sb3 import StrikeVecEnv
from carom.envs.starts import RouteStarts, SegmentStarts, Starts
from carom.envs.task import LENGTH
from carom.hybrid.draws import draws_of
from carom.hybrid.model import ENGINES, FOLDER, HEADER, load_hybrid
from carom.reality import ALL_SETTINGS, Reality, standin
from carom.reality.standin import StandIn
from carom.recipes.realities import own_reality
from carom.recordings import end_pose, read
from carom.recordings.strikes import first_strike
from carom.scenes.strike import StrikeScene, builtin, from_bodies
from carom.state import Array, StrikeCommands
from carom.train import Policy, Training, train

DRAWS = 16  #: simulators that stand for what is uncertain, with --randomise
SHAPE = "semi-cylinder"  #: of the block on the stand-ins
APART = 100_003  #: between seeds: trial or environment i has the seed plus i
BLOCK = 1  #: seed of a stand-in: to which side its mass is off, and the like


@dataclass(frozen=True)
class EngineOptions:
    """What a policy trains in."""

    model: Path | None = None  #: folder of a corrected model; None: MuJoCo with default parameters
    simulator: str = "hybrid"  #: or hybrid-mujoco, mujoco, mjx
    randomise: bool = False  #: over what the model is uncertain about


@dataclass(frozen=True)
class TaskOptions:
    """What a policy learns to do."""

    environment: str = ENVIRONMENTS[0]
    route: str | None = None  #: of carom/StrikeRoute-v0: 1, 2, 3 or a file (YAML)
    length: float = LENGTH  #: of segments [m]

    def starts(self) -> Starts:
        """Where episodes begin; raises if there is no such task."""
        if self.environment not in ENVIRONMENTS:
            raise CaromError(unknown_name("environment", self.environment, ENVIRONMENTS))
        if self.environment == ENVIRONMENTS[1]:
            return RouteStarts(route_from(self.route or "1", length=self.length))
        if self.route is not None:
            raise CaromError(f"--route belongs to {ENVIRONMENTS[1]}, not to {self.environment}")
        return SegmentStarts(length=self.length)


def training_engines(options: EngineOptions, *, seed: int, threads: int) -> tuple[Simulators | None, dict[str, Any]]:
    """The engine that a policy trains in, or several where it is uncertain; and what identifies it.

    None is the built-in MuJoCo scene. A training that was stopped only goes on in the same engine.
    """
    engine, model = options.simulator, options.model
    if engine not in ENGINES:
        raise CaromError(unknown_name("simulator", engine, ENGINES))
    if model is None:
        if engine != "mujoco" or options.randomise:
            raise CaromError(
                "without --model there is MuJoCo with default parameters only: give a model made by carom adapt, or "
                "--simulator mujoco"
            )
        own = MujocoSimulator(builtin(SHAPE), threads=threads) if threads else None  # None: as many as there is use for
        return own, {"simulator": engine}
    hybrid = load_hybrid(model)
    made_by = {"simulator": engine, "randomise": options.randomise, "folder": str(model)}
    made_by["digest"] = read_json(model / FOLDER / HEADER)[SEAL]  # the header has the checksums of all of it
    if options.randomise:
        return draws_of(hybrid, DRAWS, engine=engine, seed=seed, threads=threads), made_by
    return hybrid.simulator(engine, threads=threads), made_by


def train_policy(
    out: Path,
    engines: Simulators | None,
    *,
    made_by: Mapping[str, Any],
    task: TaskOptions | None = None,
    training: Training | None = None,
    progress: Progress = silent,
) -> Policy:
    """Train in a task over these engines and save the policy into `out`; `made_by` says what the engines are."""
    task, training = task or TaskOptions(), training or Training()
    starts = task.starts()
    return train(
        lambda count: StrikeVecEnv(make_batch(engines, starts, count=count, seed=training.seed)),
        out,
        training,
        environment=task.environment,
        made_by={**made_by, "points_m": starts.points.tolist()},
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
                rest[row], struck[row] = end_pose(trajectory, impact), True
        return rest, struck

    return strike


def reality_from(
    name: str, *, folder: Path, scene: StrikeScene | None = None, seed: int = 0, threads: int = 0
) -> tuple[Strike, StrikeScene]:
    """What `--on` names: a stand-in, the folder of a corrected model (its hybrid then plays reality), `module:Class`.

    A stand-in strikes a block of the shape in `scene` (None: the semi-cylinder), always the same one; `seed` is for the
    scatter of strikes. Recordings of a user's own `Reality` go into `folder`. Its attribute `scene` says what it
    strikes, if it has one; else it is taken to be `scene`.
    """
    if name in ALL_SETTINGS:
        if threads:
            raise CaromError(f"--threads is for models; stand-in {name} has no use for it")
        flat = scene is not None and scene.striker.flat
        shape = SHAPE if scene is None else scene.shape
        reality = standin(name, shape, striker="flat" if flat else "round", seed=BLOCK)
        bodies = reality.bodies
        return standin_strike(reality, seed=seed), scene or from_bodies(bodies["block"], bodies["striker"], name=SHAPE)
    if Path(name).is_dir():
        simulator = load_hybrid(Path(name)).simulator("hybrid", threads=threads)
        return engine_strike(simulator), simulator.scene
    if is_own(name):
        if threads:
            raise CaromError(f"--threads is for models; {name} has no use for it")
        own = own_reality(name)
        stated = getattr(own, "scene", None)
        if stated is not None and not isinstance(stated, StrikeScene):
            raise CaromError(f"--on {name}: its scene must be a StrikeScene, got a {type(stated).__name__}")
        return reality_strike(own, folder, seed=seed), stated or scene or builtin(SHAPE)
    raise CaromError(unknown_reality(name))


def unknown_reality(name: str) -> str | None:
    """The message if `--on` names nothing; None if it may name something."""
    if name in ALL_SETTINGS or Path(name).is_dir() or is_own(name):
        return None
    known = unknown_name("reality", name, ALL_SETTINGS)
    return f"--on: {known}; or give the folder of a corrected model, or a Reality of your own (module:Class)"


def is_own(name: str) -> bool:
    """Whether `--on` names a user's own `Reality`: nobody strikes with a robot just for a picture."""
    return ":" in name and name not in ALL_SETTINGS and not Path(name).is_dir()
