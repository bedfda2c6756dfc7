"""Policies that push a block to where it should be (appendix VIII-B of the RSR paper), by PPO or SAC.

The task's rewards are all negative. A value function would first have to learn how negative they are, so they are told
to the learner in units of what standing still at a start is paid, plus one; which policy is best does not change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from carom.core.artefacts import write_text
from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress, silent
from carom.core.tensors import load_tensors, write_tensors
from carom.engines.pushing import push_simulator
from carom.envs.pushing import PushingBatch, PushingTask
from carom.envs.pushing.batch import Draws, Pushes
from carom.envs.pushing.files import fingerprint_of
from carom.envs.pushing.vector import PushingVecEnv
from carom.train.infogap.terms import InformationTerm
from carom.train.infogap.wrappers import InfoGapVecEnv
from carom.train.policy import Policy, load_policy
from carom.train.presets import ALGORITHMS, Preset
from carom.train.run import Hooks, Training, train

ENVIRONMENT = "carom/PushBlock-v0"
LEARNER = "learner.safetensors"  #: all networks of a learner, for a training that begins with them
WARM_SPREAD = -1.0  #: least logarithm of the actions' spread with which such a training begins (PPO)
STARTS = 256  #: episodes whose starts tell the unit of rewards

PRESETS = {
    "ppo": Preset("pushing", "ppo", 64, (64, 64), learning_rate=1e-3, batch=512, gamma=0.9, rollout=32, epochs=8),
    "sac": Preset("pushing", "sac", 64, (128, 128), learning_rate=1e-3, batch=256, gamma=0.95, warm_up=4000, updates=8),
}
#: Transitions of a whole training, by algorithm and by scene.
STEPS = {
    "ppo": {"planar-cube": 480_000, "planar-t": 1_000_000, "arm-cube": 1_500_000, "arm-t": 1_500_000},
    "sac": {"planar-cube": 60_000, "planar-t": 200_000, "arm-cube": 200_000, "arm-t": 300_000},
}


@final
@dataclass(frozen=True)
class PushingTraining:
    """How a policy is trained. The same settings give the same policy."""

    algorithm: str = "ppo"  #: or sac
    steps: int | None = None  #: transitions; None: as many as the task needs
    seed: int = 0
    preset: Preset | None = None  #: None: the usual numbers
    start: Path | None = None  #: folder of an earlier training of this kind, whose networks it begins with

    def whole(self, task: PushingTask) -> Training:
        """As `carom.train.train` takes it."""
        if self.algorithm not in ALGORITHMS:
            raise CaromError(unknown_name("algorithm", self.algorithm, ALGORITHMS))
        usual = STEPS[self.algorithm][kind_of(task)]
        preset = self.preset or PRESETS[self.algorithm]
        return Training(self.algorithm, usual if self.steps is None else self.steps, preset, seed=self.seed)


def train_pushing(
    task: PushingTask,
    out: Path,
    training: PushingTraining | None = None,
    *,
    simulator: Pushes | None = None,
    draws: Draws = (),
    term: InformationTerm | None = None,
    times: Path | None = None,
    progress: Progress = silent,
) -> Policy:
    """Train a policy and save it into `out`; after a kill the same call goes on there, and ends with the same bytes.

    `draws` are plausible parameters: each episode has one of them, so several randomise the domain. They are what the
    simulator is opened with; without a `simulator` it is MuJoCo. `term` pays for what a transition tells. `times` is a
    file (JSON) for the seconds that it took, which are no part of `out`.
    """
    training = training or PushingTraining()
    names = tuple(draws[0]) if draws else ()
    engine = push_simulator(task.scene, names, threads=1) if simulator is None else simulator
    made_by = {
        "pushing": fingerprint_of(task),
        "draws": [dict(draw) for draw in draws] if len(draws) < 2 else _digest(draws),
        "term": None if term is None else {"kind": type(term).__name__, "weight": term.weight},
        "start": None if training.start is None else _learner_of(training.start)[1],
    }

    def make(count: int) -> VecEnv:
        env: Any = PushingVecEnv(PushingBatch(task, engine, count=count, draws=draws, seed=training.seed))
        told = env if term is None else InfoGapVecEnv(env, term)
        return Centred(told, unit_of(task))

    def begin(model: BaseAlgorithm) -> None:
        if training.start is not None:
            _begin_with(model, training.start)

    def end(model: BaseAlgorithm, seconds: Mapping[str, float]) -> Mapping[str, Any]:
        if times is not None:
            write_text(times, json.dumps(dict(seconds)) + "\n")
        return {"learner": write_tensors(out / LEARNER, _tensors(model))}

    return train(
        make,
        out,
        training.whole(task),
        environment=ENVIRONMENT,
        made_by=made_by,
        hooks=Hooks(begin, end, same_bytes=True),
        progress=progress,
    )


def kind_of(task: PushingTask) -> str:
    """The built-in task that a task is like: by its joints, and by whether a turn is asked for."""
    return f"{'arm' if task.acts > 2 else 'planar'}-{'t' if task.turns else 'cube'}"


def unit_of(task: PushingTask) -> float:
    """What a state is paid at the starts of episodes, in the mean: the unit of rewards."""
    return float(-np.mean(task.reward(*task.sample(STARTS, np.random.default_rng(0)))))


@final
class Centred(VecEnvWrapper):
    """Rewards in this unit, plus one."""

    def __init__(self, venv: VecEnv, unit: float) -> None:
        super().__init__(venv)
        self.unit = unit

    def reset(self) -> VecEnvObs:
        """All tasks anew."""
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """One transition of each."""
        observation, reward, done, infos = self.venv.step_wait()
        return observation, np.asarray(reward / self.unit + 1, dtype=np.float32), done, infos

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        inner: Any = self.venv
        return dict(inner.state())

    def restore(self, state: Mapping[str, Any]) -> Any:
        """Go on from a `state`."""
        inner: Any = self.venv
        return inner.restore(state)


def _digest(draws: Draws) -> str:
    return sha256(json.dumps([dict(draw) for draw in draws]).encode()).hexdigest()


def _tensors(model: Any) -> dict[str, torch.Tensor]:
    """The networks of a learner by name, and SAC's temperature."""
    found = {f"policy/{name}": tensor.detach().clone() for name, tensor in model.policy.state_dict().items()}
    if getattr(model, "log_ent_coef", None) is not None:
        found["log_ent_coef"] = model.log_ent_coef.detach().clone()
    return found


def _learner_of(folder: Path) -> tuple[Policy, str]:
    """A trained policy, and the checksum of the networks beside it."""
    policy = load_policy(folder)
    digest = policy.made_by.get("learner")
    if not isinstance(digest, str):
        raise CaromError(f"{folder}: expected a policy of pushes, whose training keeps {LEARNER}; it has none")
    return policy, digest


def _begin_with(model: Any, folder: Path) -> None:
    """Put the networks of an earlier training into a fresh learner."""
    policy, digest = _learner_of(folder)
    tensors = load_tensors(folder / LEARNER, {LEARNER: digest})
    own, kind = _tensors(model), type(model).__name__.lower()
    if policy.algorithm != kind or {k: v.shape for k, v in tensors.items()} != {k: v.shape for k, v in own.items()}:
        raise CaromError(
            f"{folder}: its networks ({policy.algorithm}, {' '.join(map(str, policy.sizes))}) do not fit this training "
            f"({kind}); train with the same algorithm, task and sizes, or without a start"
        )
    with torch.no_grad():
        for name, tensor in model.policy.state_dict().items():
            tensor.copy_(tensors[f"policy/{name}"])
        if "policy/log_std" in tensors:
            model.policy.log_std.clamp_(min=WARM_SPREAD)
        if "log_ent_coef" in tensors:
            model.log_ent_coef.copy_(tensors["log_ent_coef"])
