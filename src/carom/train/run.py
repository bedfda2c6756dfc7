"""Training a policy: resumable, timed, and the same again for the same seed.

Checkpoints are taken between rollouts, where a learner's state is complete (see `checkpoint.py`): after every twentieth
of the training, and when it is interrupted (Ctrl-C). The same call goes on from there.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, make_output_format
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from carom.core.artefacts import Header, full_disks_told, read_header, refuse_other_settings, versions, write_header
from carom.core.errors import CaromError
from carom.core.locks import locked
from carom.core.progress import Progress, silent
from carom.learn.impact.training import torch_threads
from carom.train.checkpoint import LIBRARIES, drop_checkpoints, load_checkpoint, save_checkpoint
from carom.train.models import new_model, policy_of
from carom.train.policy import HEADER, Policy, load_policy, save_policy
from carom.train.presets import Preset, preset_of

MakeEnv = Callable[[int], VecEnv]  #: makes that many environments in lock step

SETTINGS = "settings.json"
FORMAT = "carom-training/2"
CHECKPOINTS = 20  #: in a whole training
REPORTS = 200  #: calls of progress in a whole training


class SettingsHeader(Header):
    """The settings of a training, which must not change between a stop and its continuation."""

    algorithm: str
    steps: int
    library: str
    seed: int
    environment: str
    preset: Preset
    made_by: dict[str, Any]


@dataclass(frozen=True)
class Training:
    """What to train and for how long. The same settings give the same policy."""

    algo: str = "sac"  #: sac or ppo
    steps: int | None = None  #: transitions; None: as many as the preset says
    preset: str | Preset = "fast"
    library: str = "sb3"  #: sb3 or sbx
    seed: int = 0

    @property
    def chosen(self) -> Preset:
        """The numbers of the preset, checked; a short training has a short warm-up, so that it learns something too."""
        chosen = preset_of(self.preset, self.algo) if isinstance(self.preset, str) else self.preset
        if chosen.algorithm != self.algo:
            raise CaromError(f"preset '{chosen.name}' is for {chosen.algorithm}, asked for {self.algo}")
        steps = chosen.steps if self.steps is None else self.steps
        if steps < chosen.envs:
            raise CaromError(f"steps: expected {chosen.envs} or more (one of each environment), got {steps}")
        return replace(chosen, steps=steps, warm_up=min(chosen.warm_up, steps // 2))


@dataclass(frozen=True)
class Hooks:
    """What a task adds to a training."""

    begin: Callable[[BaseAlgorithm], None] | None = None  #: is given the fresh learner, to put weights into it
    #: is given the trained learner and the seconds that it took; what it gives back is kept with the policy
    end: Callable[[BaseAlgorithm, Mapping[str, float]], Mapping[str, Any]] | None = None
    same_bytes: bool = False  #: whether the folder depends on the settings alone: no log in it, and no seconds


def train(
    make_env: MakeEnv,
    out: Path,
    training: Training | None = None,
    *,
    environment: str = "carom/StrikeSegment-v0",
    made_by: Mapping[str, Any] | None = None,
    hooks: Hooks | None = None,
    progress: Progress | None = None,
) -> Policy:
    """Train a policy and save it into `out`; the same call again returns it at once.

    `made_by` says what the environment runs on (simulator, domain). It is part of the settings that must not change
    between a stop and its continuation, except for its `folder`: a model may be moved. Seconds spent in environment
    and learner are in `policy.made_by["timing"]`. torch has one thread meanwhile, so that a seed gives the same policy
    on any number of cores.
    """
    training = training or Training()
    preset = training.chosen
    settings = {
        "format": FORMAT,
        "algorithm": training.algo,
        "steps": preset.steps,
        "library": training.library,
        "seed": training.seed,
        "environment": environment,
        "preset": preset.stated(),
        "made_by": dict(made_by or {}),
        "made_with": versions(LIBRARIES),
    }
    with full_disks_told(out), locked(out):  # TensorBoard writes too
        return _train(make_env, out, settings, _Ways(preset, hooks or Hooks(), progress or silent))


@dataclass(frozen=True)
class _Ways:
    """How a training goes."""

    preset: Preset
    hooks: Hooks
    progress: Progress


def _train(make_env: MakeEnv, out: Path, settings: Mapping[str, Any], ways: _Ways) -> Policy:
    if (out / HEADER).is_file() and not (out / SETTINGS).is_file():
        raise CaromError(f"{out} holds a policy that was not trained there; choose another folder")
    refuse_other_settings(out / SETTINGS, settings, "a training", free=("made_by.folder",))
    if (out / SETTINGS).is_file():
        read_header(out / SETTINGS, SettingsHeader, FORMAT, missing="", again="carom train, in a new folder,")
    if (out / HEADER).is_file():
        drop_checkpoints(out)  # a kill may have left them
        return load_policy(out)
    count = ways.preset.envs
    env = make_env(count)
    try:
        if env.num_envs != count:
            raise CaromError(f"make_env: expected {count} environments, got {env.num_envs}")
        with torch_threads(1):
            policy = _run(env, out, settings, ways)
    finally:
        env.close()
    save_policy(out, policy)
    drop_checkpoints(out)
    return policy


def _run(env: VecEnv, out: Path, settings: Mapping[str, Any], ways: _Ways) -> Policy:
    timed, preset, hooks, progress = _TimedEnv(env), ways.preset, ways.hooks, ways.progress
    model = new_model(timed, preset, library=settings["library"], seed=settings["seed"])
    if hooks.begin is not None:
        hooks.begin(model)
    write_header(out / SETTINGS, settings)
    before = load_checkpoint(out, model, env)
    keeper = _Keeper(out, timed, settings["steps"], progress, dict((before or {}).get("timing", {})))
    _time_updates(model, keeper)
    model.set_logger(Logger(None, []) if hooks.same_bytes else _logger(out / "tensorboard", model.num_timesteps))
    episodes = 4 if preset.envs == 1 else 10 * preset.envs  # logging each vector step costs too much
    with _interruptible(keeper):
        model.learn(
            settings["steps"] - model.num_timesteps,
            callback=keeper,
            log_interval=episodes if preset.algorithm == "sac" else 1,
            reset_num_timesteps=before is None,
        )
    progress("train", settings["steps"], settings["steps"])
    timing = keeper.timing()
    made_by = {
        **settings["made_by"],
        **{name: settings[name] for name in ("steps", "library", "seed")},
        "preset": preset.name,
        "settings": settings["preset"],
        "transitions": model.num_timesteps,
        **({} if hooks.same_bytes else {"timing": timing}),
        **(hooks.end(model, timing) if hooks.end is not None else {}),
    }
    return policy_of(model, environment=settings["environment"], made_by=made_by)


def _logger(folder: Path, done: int) -> Logger:
    """TensorBoard's files where it is installed, CSV otherwise; a new file after each continuation."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = "csv" if find_spec("tensorboard") is None else "tensorboard"
    return Logger(str(folder), [make_output_format(kind, str(folder), f"-{done}")])


class _TimedEnv(VecEnvWrapper):
    """Adds up the wall time of an environment's steps."""

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.seconds = 0.0

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        start = perf_counter()
        result = self.venv.step_wait()
        self.seconds += perf_counter() - start
        return result


class _Keeper(BaseCallback):
    """Saves checkpoints, reports progress and stops if asked to, between rollouts."""

    def __init__(self, out: Path, env: _TimedEnv, steps: int, progress: Progress, before: Mapping[str, float]) -> None:
        super().__init__()
        self.out, self.env, self.steps, self.progress = out, env, steps, progress
        self.before = before  # seconds of the runs that this one continues
        self.stop = False
        self.updating = 0.0
        self.start, self.cpu = perf_counter(), process_time()
        self.saved = self.told = -1

    def _on_training_start(self) -> None:
        self.saved = self.model.num_timesteps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        done = self.model.num_timesteps
        if self.stop:
            self._interrupt()
        if done - self.saved >= max(1, self.steps // CHECKPOINTS):
            self.keep()
        if self.told < 0 or done - self.told >= max(1, self.steps // REPORTS):
            self.told = done
            try:
                self.progress("train", min(done, self.steps), self.steps)
            except KeyboardInterrupt:
                self._interrupt()

    def _interrupt(self) -> None:
        self.keep()
        raise KeyboardInterrupt

    def keep(self) -> None:
        """A checkpoint now; only between rollouts."""
        self.saved = self.model.num_timesteps
        if self.saved:
            save_checkpoint(self.out, self.model, self.env.venv, {"timing": self.timing()})

    def timing(self) -> dict[str, float]:
        """Wall time [s] so far: of the environment's steps, of updates, of all; and the processor time of all."""
        now = {"environment": self.env.seconds, "updates": self.updating, "total": perf_counter() - self.start}
        now["cpu"] = process_time() - self.cpu
        whole = {name: round(seconds + self.before.get(name, 0.0), 3) for name, seconds in now.items()}
        return {**whole, "rest": round(whole["total"] - whole["environment"] - whole["updates"], 3)}


def _time_updates(model: BaseAlgorithm, keeper: _Keeper) -> None:
    update = model.train  # type: ignore[attr-defined]

    def timed(*args: Any, **options: Any) -> None:
        start = perf_counter()
        update(*args, **options)
        keeper.updating += perf_counter() - start

    model.train = timed  # type: ignore[attr-defined]


@contextmanager
def _interruptible(keeper: _Keeper) -> Iterator[None]:
    """Let Ctrl-C wait for the end of the rollout, so that a checkpoint can be saved; a second one stops at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: object) -> None:
        if keeper.stop:
            raise KeyboardInterrupt
        keeper.stop = True

    former = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
