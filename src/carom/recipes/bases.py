"""Base models that a recipe needs: loaded if they are there, distilled if not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from carom.core.errors import CaromError
from carom.core.progress import Progress
from carom.learn import BaseModel, distill, load_bases
from carom.learn.impact.base_files import HEADER
from carom.learn.impact.distill import DistillOptions
from carom.scenes.strike import StrikeScene

BASE = "base"  #: folder, beside results, of base models that were made for them


@dataclass(frozen=True)
class BaseOptions:
    """Which base models to use, or how to make them."""

    model: Path | None = None  #: folder of base models
    samples: int | None = None  #: simulated impacts per teacher of base models made beside the results; None: shipped
    steps: int | None = None  #: of the training; None: the preset's

    def __post_init__(self) -> None:
        if self.model is not None and self.samples is not None:
            raise CaromError("--samples is for base models that are made: leave it out, or leave --model out")


def make_bases(
    scene: StrikeScene, out: Path, samples: int, seed: int, threads: int, progress: Progress, steps: int | None = None
) -> tuple[BaseModel, ...]:
    """Base models of both teachers for a scene, made in `out/base` unless they are there already."""
    folder = out / BASE
    if there := _already(folder, scene):
        return there
    training = DistillOptions(steps=steps)
    made = distill(scene, folder, samples=samples, training=training, seed=seed, threads=threads, progress=progress)
    return made.bases


def paper_base(scene: StrikeScene, out: Path, samples: int, seed: int, threads: int, progress: Progress) -> BaseModel:
    """The paper's base model, trained on the MuJoCo impacts that are there already."""
    folder = out / "paper"
    if there := _already(folder, scene):
        return there[0]
    data = out / BASE / "data" / "mujoco"
    if data.is_dir():
        (folder / "data").mkdir(parents=True, exist_ok=True)
        if not (folder / "data" / "mujoco").exists():
            (folder / "data" / "mujoco").symlink_to(data.resolve(), target_is_directory=True)
    return distill(
        scene,
        folder,
        samples=samples,
        teachers=("mujoco",),
        training=DistillOptions("paper"),
        seed=seed,
        threads=threads,
        progress=progress,
    ).bases[0]


def _already(folder: Path, scene: StrikeScene) -> tuple[BaseModel, ...]:
    """Base models of this scene that an earlier run left in the folder; none if it holds no model."""
    if not (folder / HEADER).is_file():
        return ()
    bases = load_bases(folder)
    if bases[0].scene.signature() != scene.signature():
        raise CaromError(f"{folder} holds base models of another scene; choose another --out or delete it")
    return bases
