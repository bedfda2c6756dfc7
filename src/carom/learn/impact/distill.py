"""The whole of `carom distill`: simulate impacts, train the base models, keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from carom.core.artefacts import SEAL, read_json
from carom.core.errors import CaromError, unknown_name
from carom.core.locks import locked
from carom.core.progress import Progress, silent
from carom.core.shards import HEADER
from carom.learn.impact.base_files import save_bases
from carom.learn.impact.base_model import PRESETS, BaseModel
from carom.learn.impact.dataset import generate
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
    bases, facts = [], []
    for teacher in teachers:
        data = generate(
            scene,
            teacher,
            samples,
            out / "data" / teacher,
            seed=seed,
            threads=threads,
            progress=lambda done, total, t=teacher: report(f"{t}: simulate impacts", done, total),  # type: ignore[misc]
        )
        start = perf_counter()
        base = train(
            scene,
            teacher,
            data,
            preset=training.preset,
            steps=training.steps,
            seed=seed,
            progress=lambda done, total, t=teacher: report(f"{t}: train network", done, total),  # type: ignore[misc]
        )
        bases.append(base)
        fact: dict[str, float | str] = {"teacher": teacher, "impacts": float(len(data.post))}
        if data.simulated:
            fact |= {"impacts_per_second": data.simulated / data.seconds, "engine_share": data.engine_share}
        fact |= {"simulate_seconds": data.seconds, "train_seconds": perf_counter() - start}
        facts.append(fact | {f"held_out_{k}": v for k, v in base.held_out.items()})
    made_by = {"command": "distill", "samples": samples, "seed": seed, "facts": facts}
    data_sets = {teacher: read_json(out / "data" / teacher / HEADER)[SEAL] for teacher in teachers}
    save_bases(out, bases, made_by=made_by, made_from={"scene": scene.name, "data": data_sets})
    return Distilled(tuple(bases), tuple(facts))
