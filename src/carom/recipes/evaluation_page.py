"""The report of `carom evaluate`: what was compared, predictions, parameters and training."""

from __future__ import annotations

from collections.abc import Sequence

from carom.compare import Lesson, Score
from carom.engines.contact_frames import contact_frames
from carom.identify.result import Identification
from carom.learn import AdaptedModel
from carom.report import Figure, Section, Table, Text
from carom.report import figures as plots
from carom.state import Impacts, rotate


def evaluation_sections(
    lesson: Lesson,
    test: Impacts,
    scores: Sequence[Score],
    adapted: AdaptedModel,
    found: Identification,
    *,
    note: str = "",
) -> tuple[list[Section], list[Section]]:
    """What was compared and how the methods did; then the figures."""
    first: list[Section] = [_what_this_is(lesson, test, adapted, note), _methods(scores)]
    able = [s for s in scores if s.prediction is not None]
    accuracy = [s.metrics["accuracy@0.1"] for s in able]
    bars = plots.error_bars([s.method for s in able], accuracy, [float("nan")] * len(able), "accuracy@0.1")
    bases = [*lesson.bases, *([lesson.paper] if lesson.paper else [])]
    curves = {f"{b.teacher}, {b.preset.name}": list(b.curve) for b in bases if b.curve}
    return first, [
        Figure("Accuracy", bars),
        *_predictions(lesson, test, adapted),
        _parameters(found),
        *([Figure("Training of the base models", plots.training_curves(curves))] if curves else ()),
    ]


def _what_this_is(lesson: Lesson, test: Impacts, adapted: AdaptedModel, note: str) -> Section:
    paragraphs = (
        note,
        f"Scene **{lesson.scene.name}**: {len(lesson.train)} strikes to learn from, {len(test)} others to predict from "
        "what was recorded before their contact. Errors are in the kinetic-energy norm (vx, vy, k*wz), "
        f"k = {1000 * lesson.scene.gyration_radius:.1f} mm.",
        *(f"Carom: {line}." for line in adapted.words),
    )
    return Text("What this is", tuple(p for p in paragraphs if p))


def _methods(scores: Sequence[Score]) -> Section:
    return Table(
        "Methods side by side",
        ("method", "accuracy@0.1", "accuracy@0.05", "median relative error", "90 % interval covers", "note"),
        tuple((s.method, *s.metrics.values(), s.coverage.get("coverage@0.9"), s.note) for s in scores),
        note="accuracy@a: share of strikes with error < a",
        highlight="carom",
    )


def _predictions(lesson: Lesson, test: Impacts, adapted: AdaptedModel) -> list[Section]:
    scene, prediction = lesson.scene, adapted.predict(test.strikes)
    frames, yaw = contact_frames(scene, test.strikes), test.strikes.target_pose[:, 2]
    local = [rotate(v[:, :2], -yaw) for v in (test.strikes.striker_velocity, test.post, prediction.post)]
    names = list(test.names)
    return [
        Figure(
            "Impact predictions",
            plots.impact_scatter(test.post, prediction.post, prediction.post_std, scene.gyration_radius, names),
            "Carom's prediction of every test strike against what was measured; bars are one standard deviation.",
        ),
        Figure("Where and how it was struck", plots.strike_map(scene.outline.vertices, frames.point, *local)),
    ]


def _parameters(found: Identification) -> Section:
    intervals = [plots.interval_of(estimate) for estimate in found.estimates]
    words = f"By gradient through the base model ({found.teacher}); intervals hold 90 %."
    return Figure("Parameters", plots.parameter_intervals(intervals), words)
