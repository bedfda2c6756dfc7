"""`carom train --seeds`: the same training from several seeds, and how much of its success hangs on the seed.

Here they are made one after the other, each where it stays, and a stopped one goes on from its checkpoint. On a cluster
each is a piece of work: made in a folder of the worker's, and brought back as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

import numpy as np

from carom.core.errors import CaromError
from carom.core.folders import replacing
from carom.core.locks import LOCK, locked
from carom.core.progress import Progress, silent, steps_of
from carom.core.work import PerProcess, make_pieces, workers
from carom.recipes.policies import EngineOptions, TaskOptions, train_policy, training_engines
from carom.recipes.result import PrintedTable, Result, command
from carom.recipes.training import TrainResult, train
from carom.train import Training
from carom.train.policy import HEADER
from carom.train.run import SETTINGS

__all__ = ["TrainSeedsResult", "train_seeds"]

MOST = 1000  #: seeds
COLUMNS = ("seed", "success in its own simulator", "95 % interval", "strikes", "policy")

Files = dict[str, bytes]  #: content of a folder by the files' places in it


@final
@dataclass(frozen=True)
class TrainSeedsResult(Result):
    """Policies of the same training from several seeds, each tried in the simulator it was trained in."""

    out: Path
    trained: tuple[TrainResult, ...]
    seeds: tuple[int, ...]

    @property
    def success(self) -> tuple[float, ...]:
        """Success rate of each."""
        return tuple(one.trials.rates().success.value for one in self.trained)

    def to_dict(self) -> dict[str, Any]:
        each = [{"seed": seed, **one.to_dict()} for seed, one in zip(self.seeds, self.trained, strict=True)]
        spread = float(np.std(self.success, ddof=1)) if len(each) > 1 else None
        return {"policies": each, "success_rate_mean": float(np.mean(self.success)), "success_rate_sd": spread}

    def tables(self) -> Sequence[PrintedTable]:
        rows = []
        for seed, one in zip(self.seeds, self.trained, strict=True):
            own = one.to_dict()["in_own_simulator"]
            low, high = own["success_rate_interval"]
            rows.append([seed, own["success_rate"], f"{low:.2f} to {high:.2f}", own["mean_strikes"], str(one.out)])
        return (PrintedTable(f"{len(rows)} policies in {self.out}", COLUMNS, rows),)

    def notes(self) -> Sequence[str]:
        facts = self.to_dict()
        spread = "" if facts["success_rate_sd"] is None else f" ± {facts['success_rate_sd']:.2f} (sd over seeds)"
        return (
            f"success in its own simulator: {facts['success_rate_mean']:.2f}{spread}; the best of several seeds looks "
            "better there than it is",
        )

    def next_commands(self) -> Sequence[str]:
        best = self.trained[int(np.argmax(self.success))]
        return (command("rollout", best.out, "--on", "nylon-low", "--routes", 1, 2, 3),)


def train_seeds(
    out: str | Path,
    seeds: Sequence[int],
    *,
    engine: EngineOptions | None = None,
    task: TaskOptions | None = None,
    training: Training | None = None,
    threads: int = 0,
    progress: Progress = silent,
) -> TrainSeedsResult:
    """Train a policy from each seed into `out/seed-0`, `out/seed-1` and so on; after a kill the same call goes on."""
    if not 1 <= len(seeds) <= MOST or len(set(seeds)) != len(seeds):
        raise CaromError(f"seeds: expected 1 to {MOST} different ones, got {len(seeds)}")
    place, engine = Path(out), engine or EngineOptions()
    task, training = task or TaskOptions(), training or Training()
    if not workers().here:
        with locked(place):
            sent = None if engine.model is None else _content(engine.model)
            make = PerProcess(partial(_Trainings, engine, sent, task, training, threads))
            make_pieces(list(seeds), _Policies(place), make, progress=steps_of(progress, "train policies"))
    trained = tuple(
        train(
            _folder(place, seed),
            engine=engine,
            task=task,
            training=replace(training, seed=seed),
            threads=threads,
            progress=_numbered(progress, number, len(seeds)),
        )
        for number, seed in enumerate(seeds, start=1)
    )
    return TrainSeedsResult(place, trained, tuple(seeds))


def _folder(place: Path, seed: int) -> Path:
    return place / f"seed-{seed}"


def _numbered(progress: Progress, number: int, count: int) -> Progress:
    return lambda what, done, total: progress(f"{what} ({number} of {count})", done, total)


@final
class _Policies:
    """Finished policies: a `Store` of folders by seed."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def has(self, key: int) -> bool:
        """See `Store`; a training that was begun here has a checkpoint, which is not to be lost."""
        folder = _folder(self.place, key)
        if (folder / HEADER).is_file():
            return True
        if (folder / SETTINGS).is_file():
            raise CaromError(
                f"{folder} holds a training that was stopped; finish it without --on, or remove it, or choose another "
                "--out"
            )
        return False

    def put(self, key: int, piece: Files) -> None:
        """See `Store`."""
        with replacing(_folder(self.place, key), ()) as fresh:
            _write(fresh, piece)


@final
class _Trainings:
    """Trains policies by their seeds on a worker, which has no files of ours."""

    def __init__(
        self, engine: EngineOptions, model: Files | None, task: TaskOptions, training: Training, threads: int
    ) -> None:
        self.engine, self.model, self.task, self.training, self.threads = engine, model, task, training, threads

    def __call__(self, key: int) -> Files:
        """The folder of a policy."""
        training = replace(self.training, seed=key)
        with TemporaryDirectory(prefix="carom-") as name:
            there, options = Path(name), self.engine
            if self.model is not None:
                _write(there / "model", self.model)
                options = replace(options, model=there / "model")
            engines, made_by = training_engines(options, seed=key, threads=self.threads)
            if "folder" in made_by:
                made_by["folder"] = str(self.engine.model)  # as it is called where the command runs
            train_policy(there / "policy", engines, task=self.task, training=training, made_by=made_by)
            return _content(there / "policy")


def _content(folder: Path) -> Files:
    """All files of a folder."""
    if not folder.is_dir():
        raise CaromError(f"{folder}: no such folder; expected a corrected model, from `carom adapt`")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != LOCK]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
