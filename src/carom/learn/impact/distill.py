"""The whole of `carom distill`: simulate impacts, train the base models, keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, final

from carom.core.artefacts import SEAL, read_json
from carom.core.errors import CaromError, unknown_name
from carom.core.locks import locked
from carom.core.progress import Progress, silent, steps_of
from carom.core.shards import HEADER
from carom.core.work import in_order, workers
from carom.learn.impact.base_files import save_bases
from carom.learn.impact.base_model import PRESETS, BaseModel
from carom.learn.impact.dataset import ImpactData, generate
from carom.learn.impact.training import train
from carom.scenes.strike import DISTILLED, StrikeScene


@dataclass(frozen=True)
class Distilled:
    """Base models of a scene, and what making them took."""

    bases: tuple[BaseModel, ...]
    facts: tuple[dict[str, float | str], ...]  #: by base model: impacts, rate, engine share, seconds, held-out accuracy


@dataclass(frozen=True)
class DistillOptions:
    """How the networks are trained."""

    preset: str = "default"  #: or "paper" (section IV-A of CLASH)
    steps: int | None = None  #: of the training; None: the preset's


def distill(
    scene: StrikeScene,
    out: Path,
    *,
    samples: int = 100_000,
    teachers: Sequence[str] = DISTILLED,
    training: DistillOptions | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress | None = None,
) -> Distilled:
    """Distil a scene's impacts from each teacher into a base model and save them into `out`.

    Simulated impacts are kept in `out/data`; after a kill the same call goes on where it stopped.
    """
    if samples < 1000:
        raise CaromError(f"--samples {samples}: a base model needs 1000 impacts or more")
    for teacher in teachers:
        if teacher not in DISTILLED:
            raise CaromError(unknown_name("teacher", teacher, DISTILLED))
    training = training or DistillOptions()
    if training.steps is not None and training.steps < 1:
        raise CaromError(f"--steps: expected 1 or more, got {training.steps}")
    if training.preset not in PRESETS:
        raise CaromError(unknown_name("preset", training.preset, PRESETS))
    with locked(out):
        return _distill(scene, out, samples, teachers, training, seed, threads, progress or silent)


def _distill(
    scene: StrikeScene,
    out: Path,
    samples: int,
    teachers: Sequence[str],
    training: DistillOptions,
    seed: int,
    threads: int,
    report: Progress,
) -> Distilled:
    sets: dict[str, ImpactData] = {}
    for teacher in teachers:
        sets[teacher] = generate(
            scene,
            teacher,
            samples,
            out / "data" / teacher,
            seed=seed,
            threads=threads,
            progress=partial(report, f"{teacher}: simulate impacts"),
        )
    bases: list[BaseModel] = []
    facts: list[dict[str, float | str]] = []
    trained = in_order(_Training(scene, sets, training, seed, report), list(teachers))
    for teacher, (base, seconds) in zip(teachers, trained, strict=True):
        if not workers().here:  # else each tells its steps
            report("train networks", len(bases) + 1, len(teachers))
        data = sets[teacher]
        bases.append(base)
        fact: dict[str, float | str] = {"teacher": teacher, "impacts": float(len(data.post))}
        if data.simulated:
            fact |= {"impacts_per_second": data.simulated / data.seconds, "engine_share": data.engine_share}
        fact |= {"simulate_seconds": data.seconds, "train_seconds": seconds}
        facts.append(fact | {f"held_out_{k}": v for k, v in base.held_out.items()})
    made_by = {"command": "distill", "samples": samples, "seed": seed, "facts": facts}
    data_sets = {teacher: read_json(out / "data" / teacher / HEADER)[SEAL] for teacher in teachers}
    save_bases(out, bases, made_by=made_by, made_from={"scene": scene.name, "data": data_sets})
    return Distilled(tuple(bases), tuple(facts))


@final
class _Training:
    """Trains base models by the names of their teachers; elsewhere nobody watches the steps."""

    def __init__(
        self,
        scene: StrikeScene,
        sets: Mapping[str, ImpactData],
        options: DistillOptions,
        seed: int,
        report: Progress | None = None,
    ) -> None:
        self.scene, self.sets, self.options, self.seed, self.report = scene, sets, options, seed, report

    def __call__(self, key: str) -> tuple[BaseModel, float]:
        """A base model, and the seconds that it took."""
        start = perf_counter()
        base = train(
            self.scene,
            key,
            self.sets[key],
            preset=self.options.preset,
            steps=self.options.steps,
            seed=self.seed,
            progress=steps_of(self.report, f"{key}: train network"),
        )
        return base, perf_counter() - start

    def __reduce__(self) -> tuple[Any, ...]:
        return _Training, (self.scene, self.sets, self.options, self.seed)
