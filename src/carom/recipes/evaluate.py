"""The whole of `carom evaluate`: base models if none are given, all methods side by side, and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from carom.compare.methods import Lesson
from carom.compare.scores import Score, compare
from carom.core.errors import CaromError
from carom.core.progress import Progress
from carom.engines.contact_frames import contact_frames
from carom.identify.result import Identification
from carom.learn import AdaptedModel, BaseModel, adapt, distill, load_bases
from carom.learn.impact.base_files import HEADER
from carom.recipes.strikes import base_for, by_gradient, fixed_by_slides, usable_impacts
from carom.recordings import Recordings, check_scene, read, scene_of
from carom.report import Figure, Section, Table, Text, write_report
from carom.report import figures as plots
from carom.scenes.strike import StrikeScene
from carom.state import Impacts, rotate


@dataclass(frozen=True)
class Evaluation:
    """Methods side by side, and where the report is."""

    train: Impacts
    test: Impacts
    scores: tuple[Score, ...]
    report: Path

    def table(self) -> list[list[Any]]:
        """A row for each method, as the command prints them."""
        return [
            [s.method, *s.metrics.values(), s.coverage.get("coverage@0.9", ""), s.seconds, s.note] for s in self.scores
        ]

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {"method": s.method, **s.metrics, **s.coverage, "seconds": s.seconds, "note": s.note} for s in self.scores
        ]
        return {"train": len(self.train), "test": len(self.test), "rows": rows, "report": str(self.report)}


def evaluate_folders(
    train: Path,
    test: Path,
    *,
    model: Path | None,
    out: Path,
    samples: int,
    count: int | None,
    settle: float | None,
    seed: int,
    threads: int,
    methods: Sequence[str] | None,
    progress: Progress,
    steps: int | None = None,
    title: str = "Impact models side by side",
    note: str = "",
    more: Callable[[Lesson, Recordings], list[Section]] | None = None,
) -> Evaluation:
    """Learn from one folder of strikes, predict another, by every method; leaves `report.html` in `out`.

    `more` adds sections to the report, from the lesson and the recordings it was learned from.
    """
    learned_from, asked = read(train), read(test)
    scene = scene_of(learned_from)
    check_scene(scene, asked)
    lesson_impacts = usable_impacts(learned_from, settle=settle)
    if count is not None:
        lesson_impacts = lesson_impacts[np.arange(min(count, len(lesson_impacts)))]
    test_impacts = usable_impacts(asked, settle=settle)
    shared = set(lesson_impacts.names) & set(test_impacts.names)
    if train.resolve() == test.resolve():
        test_impacts = test_impacts[[i for i, n in enumerate(test_impacts.names) if n not in shared]]
        if not len(test_impacts):
            raise CaromError(
                f"--train and --test are both {train}: give --count so that some strikes are left to predict"
            )
    bases = base_for(model, learned_from) if model else make_bases(scene, out, samples, seed, threads, progress, steps)
    paper = paper_base(scene, out, samples, seed, threads, progress)
    lesson = Lesson(scene, lesson_impacts, bases, paper, fixed_by_slides(learned_from), seed)
    total, done = len(methods or range(10)), [0]

    def step(name: str) -> None:
        progress("methods", done[0], total)
        done[0] += 1

    scores = compare(lesson, test_impacts, methods=methods, progress=step)
    adapted = adapt(bases, lesson_impacts, fixed=lesson.fixed, seed=seed)
    found = by_gradient(adapted.best.base, lesson_impacts, fixed=dict(lesson.fixed), seed=seed, preset="default")
    sections = report_sections(scene, scores, lesson_impacts, test_impacts, adapted, [*bases, paper], found, note)
    path = write_report(
        out / "report.html",
        [*sections[:2], *more(lesson, learned_from), *sections[2:]] if more else sections,
        title=title,
        subtitle=f"{len(lesson_impacts)} strikes to learn from, {len(test_impacts)} to predict",
    )
    return Evaluation(lesson_impacts, test_impacts, scores, path)


def make_bases(
    scene: StrikeScene, out: Path, samples: int, seed: int, threads: int, progress: Progress, steps: int | None = None
) -> tuple[BaseModel, ...]:
    """Base models of both teachers for a scene, made in `out/base` unless they are there already."""
    folder = out / "base"
    if there := _already(folder, scene):
        return there
    made = distill(scene, folder, samples=samples, steps=steps, seed=seed, threads=threads, progress=progress)
    return made.bases


def _already(folder: Path, scene: StrikeScene) -> tuple[BaseModel, ...]:
    """Base models of this scene that an earlier run left in the folder; none if it holds no model."""
    if not (folder / HEADER).is_file():
        return ()
    bases = load_bases(folder)
    if bases[0].scene.signature() != scene.signature():
        raise CaromError(f"{folder} holds base models of another scene; choose another --out or delete it")
    return bases


def paper_base(scene: StrikeScene, out: Path, samples: int, seed: int, threads: int, progress: Progress) -> BaseModel:
    """The paper's base model, trained on the MuJoCo impacts that are there already."""
    folder = out / "paper"
    if there := _already(folder, scene):
        return there[0]
    data = out / "base" / "data" / "mujoco"
    if data.is_dir():
        (folder / "data").mkdir(parents=True, exist_ok=True)
        if not (folder / "data" / "mujoco").exists():
            (folder / "data" / "mujoco").symlink_to(data.resolve(), target_is_directory=True)
    return distill(
        scene,
        folder,
        samples=samples,
        teachers=("mujoco",),
        preset="paper",
        seed=seed,
        threads=threads,
        progress=progress,
    ).bases[0]


def report_sections(
    scene: StrikeScene,
    scores: Sequence[Score],
    train: Impacts,
    test: Impacts,
    adapted: AdaptedModel,
    bases: Sequence[BaseModel],
    found: Identification,
    note: str,
) -> list[Section]:
    """The report: what was compared, predictions, parameters and training."""
    rows = [(s.method, *s.metrics.values(), s.coverage.get("coverage@0.9"), s.note) for s in scores]
    columns = ("method", "accuracy@0.1", "accuracy@0.05", "median relative error", "90 % interval covers", "note")
    sections: list[Section] = [
        Text(
            "What this is",
            tuple(
                p
                for p in (
                    note,
                    f"Scene **{scene.name}**: {len(train)} strikes to learn from, {len(test)} others to predict from "
                    "what was recorded before their contact. Errors are in the kinetic-energy norm (vx, vy, k*wz), "
                    f"k = {1000 * scene.gyration_radius:.1f} mm.",
                    f"Carom learned most from the teacher `{adapted.best.base.teacher}` "
                    f"(evidence {', '.join(f'{k}: {v:.1f}' for k, v in adapted.evidence.items())} nat).",
                )
                if p
            ),
        ),
        Table(
            "Methods side by side",
            columns,
            tuple(rows),
            note="accuracy@a: share of strikes with error < a",
            highlight="carom",
        ),
    ]
    able = [s for s in scores if s.prediction is not None]
    accuracy = [s.metrics["accuracy@0.1"] for s in able]
    bars = plots.error_bars([s.method for s in able], accuracy, [float("nan")] * len(able), "accuracy@0.1")
    sections.append(Figure("Accuracy", bars))
    prediction = adapted.predict(test.strikes)
    k = scene.gyration_radius
    sections.append(
        Figure(
            "Impact predictions",
            plots.impact_scatter(test.post, prediction.post, prediction.post_std, k, list(test.names)),
            "Carom's prediction of every test strike against what was measured; bars are one standard deviation.",
        )
    )
    frames, yaw = contact_frames(scene, test.strikes), test.strikes.target_pose[:, 2]
    local = [rotate(v[:, :2], -yaw) for v in (test.strikes.striker_velocity, test.post, prediction.post)]
    sections.append(
        Figure("Where and how it was struck", plots.strike_map(scene.outline.vertices, frames.point, *local))
    )
    intervals: list[plots.ParameterInterval] = [
        {
            "name": e.name,
            "value": e.value,
            "low": e.low,
            "high": e.high,
            "unit": e.unit,
            "bound_low": e.bounds[0],
            "bound_high": e.bounds[1],
            "verdict": e.verdict,
        }
        for e in found.estimates
    ]
    sections.append(
        Figure(
            "Parameters",
            plots.parameter_intervals(intervals),
            f"By gradient through the base model ({found.teacher}); intervals hold 90 %.",
        )
    )
    curves = {f"{b.teacher}, {b.preset.name}": list(b.curve) for b in bases if b.curve}
    sections.append(Figure("Training of the base models", plots.training_curves(curves)))
    return sections
