"""How the base models that come with Carom are made: impacts of many scenes, drawn at random, and one training each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.learn.impact.base_model import BaseModel, Preset
from carom.learn.impact.dataset import ImpactData, generate
from carom.learn.impact.shipped import STRIKERS, AnyBase, any_network, save_any
from carom.learn.impact.training import (
    RELATIVE_FLOOR,
    Examples,
    accuracy_of,
    examples_from,
    fit_network,
    relative_errors,
)
from carom.learn.impact.variety import RANGES, random_scene
from carom.scenes.strike import DISTILLED, StrikeScene

IMPACTS = 1024  #: of each scene
HELD_OUT = 24  #: scenes that are not trained on
ANY = Preset("any", True, 192, 4, "silu", 30_000, 1024, 3e-3, 1e-4, True)
STEPS = {"mujoco": 30_000, "compliant": 20_000}  #: springs are a function of their inputs exactly, and learned sooner


@dataclass(frozen=True)
class Plan:
    """How much is simulated and trained."""

    scenes: int = 600  #: per teacher and kind of striker
    steps: int | None = None  #: of each training; None: those of `STEPS`
    seed: int = 0
    threads: int = 0


def make_any(out: Path, plan: Plan | None = None, *, progress: Progress = silent) -> list[AnyBase]:
    """Simulate, train and save base models for any scene into `out`; after a kill the same call goes on."""
    plan = plan or Plan()
    if plan.scenes < 2:
        raise CaromError(f"--scenes: expected 2 or more, some to train on and some to hold out, got {plan.scenes}")
    bases: list[AnyBase] = []
    facts: list[dict[str, float | str]] = []
    for teacher in DISTILLED:
        for flat, striker in STRIKERS.items():
            start = perf_counter()
            data = _simulate(teacher, flat, out / "data" / teacher / striker, plan, progress)
            between = perf_counter()
            base = _train(teacher, flat, data, plan, progress)
            spent = {"simulate_seconds": between - start, "train_seconds": perf_counter() - between}
            facts.append({"teacher": teacher, "striker": striker, **spent, **base.held_out})
            bases.append(base)
    save_any(out, bases, made_by=made_by(plan, facts))
    return bases


def made_by(plan: Plan, facts: list[dict[str, float | str]]) -> dict[str, Any]:
    """How base models were made, for their header."""
    command = f"python -m carom.learn.impact.shipped FOLDER --scenes {plan.scenes} --seed {plan.seed}"
    if plan.steps is not None:
        command += f" --steps {plan.steps}"
    return {"command": command, "impacts_per_scene": IMPACTS, "facts": facts}


def _simulate(
    teacher: str, flat: bool, folder: Path, plan: Plan, progress: Progress
) -> list[tuple[StrikeScene, ImpactData]]:
    """Scenes and their simulated impacts, those to be held out first."""
    found = []
    for i in range(plan.scenes):
        rng = np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(int(flat), i)))
        scene = random_scene(rng, flat=flat)
        seed, place = plan.seed * 1_000_000 + i, folder / f"{i:04d}"
        data = generate(scene, teacher, IMPACTS, place, seed=seed, shard=IMPACTS, threads=plan.threads)
        found.append((scene, data))
        progress(f"{teacher}, {STRIKERS[flat]}: simulate scenes", i + 1, plan.scenes)
    return found


def _train(
    teacher: str, flat: bool, data: list[tuple[StrikeScene, ImpactData]], plan: Plan, progress: Progress
) -> AnyBase:
    """One network for all of them."""
    with torch.random.fork_rng():
        torch.manual_seed(plan.seed)
        network = any_network(teacher, flat, ANY)
    models = [BaseModel(scene, teacher, ANY, network, {}) for scene, _ in data]
    parts = [examples_from(model, own) for model, (_, own) in zip(models, data, strict=True)]
    kept = min(HELD_OUT, -(-len(data) // 5))
    x, y, weight = (torch.cat([part[i] for part in parts]) for i in range(3))
    examples = Examples(x, y, weight, sum(len(own.post) for _, own in data[:kept]))
    fit_network(
        network,
        examples,
        ANY,
        steps=plan.steps or STEPS[teacher],
        seed=plan.seed,
        progress=lambda done, total: progress(f"{teacher}, {STRIKERS[flat]}: train network", done, total),
    )
    # a light striker that the ground stops has no outcome that an error could be a share of
    errors = [
        relative_errors(model, own, floor=RELATIVE_FLOOR)
        for model, (_, own) in zip(models[:kept], data[:kept], strict=True)
    ]
    return AnyBase(teacher, flat, ANY, RANGES, network, accuracy_of(np.concatenate(errors)))
