"""The report of `carom evaluate`: what was compared, predictions, parameters and training."""

from __future__ import annotations

from collections.abc import Sequence

from carom.compare import Lesson, Score, method_words
from carom.identify.result import Identification
from carom.learn import AdaptedModel
from carom.report import Figure, Section, Table, Text
from carom.report import figures as plots
from carom.report.identified_strikes import outcome_sections
from carom.state import Impacts


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
    prediction = adapted.predict(test.strikes)
    unseen = "Carom's predictions of the test strikes, none of which it has learned from."
    return first, [
        Figure(
            "Accuracy",
            bars,
            "Share of the test strikes that each method predicts within 10 %. Longer is better; 1 is all of them. What "
            "the methods are is in the table above.",
        ),
        *outcome_sections(lesson.scene, test, prediction.post, prediction.post_std, unseen),
        _parameters(found),
        *_training(curves),
    ]


def _what_this_is(lesson: Lesson, test: Impacts, adapted: AdaptedModel, note: str) -> Section:
    paragraphs = (
        note,
        f"Scene **{lesson.scene.name}**: {len(lesson.train)} strikes to learn from, {len(test)} others to predict "
        "from what was recorded before their contact. The error of a prediction is that of the target's velocity "
        "right after the strike, over the size of that velocity. Spin counts as a speed: it is multiplied by the "
        f"target's radius of gyration, k = {1000 * lesson.scene.gyration_radius:.1f} mm (the kinetic-energy norm).",
        *(f"Carom: {line}." for line in adapted.words),
    )
    return Text("What this is", tuple(p for p in paragraphs if p))


def _methods(scores: Sequence[Score]) -> Section:
    columns = ("method", "what it is", "within 10 %", "within 5 %", "median error", "90 % interval holds")
    rows = tuple(
        (
            s.method,
            method_words(s.method) + (f". Not run: {s.note}" if s.note else ""),
            *s.metrics.values(),
            s.coverage.get("coverage@0.9"),
        )
        for s in scores
    )
    return Table(
        "Methods side by side",
        columns,
        rows,
        "Within 10 % (accuracy@0.1): share of the test strikes with a relative error below 0.1; 1 is best. Median "
        "error: half of the strikes are predicted better than this; 0 is best. 90 % interval holds: share of the "
        "outcomes that fall into the interval that a method states; near 0.9 is right, less means that it is too "
        "sure of itself. A dash: it states none.",
        highlight="carom",
    )


def _parameters(found: Identification) -> Section:
    words = (
        f"What the strikes tell of the contact, by gradient through the base model (teacher: {found.teacher}). Dot: "
        "the value; bar: its 90 % interval between the bounds. A short bar is good. Predictions can be good even "
        "where parameters are open: several of them may do the same."
    )
    return Figure("Parameters", plots.parameter_intervals(found.estimates), words)


def _training(curves: dict[str, list[tuple[int, float, float]]]) -> list[Section]:
    """How base models that were made here learned; none if they came with the package."""
    if not curves:
        return []
    words = (
        "Error of the base models while they learned from simulated impacts; dotted: on those they trained on, "
        "solid: on others. Both should fall and end close to each other; a solid line that rises means that they "
        "learn by heart."
    )
    return [Figure("Training of the base models", plots.training_curves(curves), words)]
