"""Methods side by side: each learns from the same strikes and predicts the same others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np

from carom.compare.methods import ABLATIONS, METHODS, Lesson
from carom.compare.metrics import coverage, relative_error, summary
from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress, silent
from carom.core.work import in_order
from carom.learn.impact.adapted_model import Prediction
from carom.state import Array, Impacts


@dataclass(frozen=True)
class Score:
    """One method's predictions of the test strikes, and how good they are."""

    method: str
    metrics: dict[str, float]  #: accuracy@0.1, accuracy@0.05, median-relative-error
    coverage: dict[str, float]  #: share of outcomes inside the stated 50 % and 90 % intervals; empty if it states none
    seconds: float  #: to learn and predict
    error: Array  #: [N] relative error of each test strike
    prediction: Prediction | None  #: None if the method could not be run
    note: str = ""  #: why not


def compare(
    lesson: Lesson, test: Impacts, *, methods: Sequence[str] | None = None, progress: Progress = silent
) -> tuple[Score, ...]:
    """Score the methods on test strikes they have not seen. One that cannot run gets a note, not an exception."""
    available = {**METHODS, **ABLATIONS}
    chosen = list(methods or METHODS)
    for name in chosen:
        if name not in available:
            raise CaromError(unknown_name("method", name, available))
    progress("methods", 0, len(chosen))
    scores = []
    for score in in_order(partial(_score, lesson, test), chosen):
        scores.append(score)
        progress("methods", len(scores), len(chosen))
    return tuple(scores)


def _score(lesson: Lesson, test: Impacts, name: str) -> Score:
    """One method."""
    start = perf_counter()
    try:
        prediction = {**METHODS, **ABLATIONS}[name].learn(lesson).predict(test.strikes)
    except (CaromError, ImportError) as reason:
        nothing = {m: float("nan") for m in ("accuracy@0.1", "accuracy@0.05", "median-relative-error")}
        return Score(name, nothing, {}, 0.0, np.full(len(test), np.nan), None, str(reason))
    seconds = perf_counter() - start
    error = relative_error(prediction.post, test.post, lesson.scene.gyration_radius)
    stated = np.isfinite(prediction.post_std).all()
    inside = coverage(prediction.post, prediction.post_std, test.post) if stated else {}
    return Score(name, summary(error), inside, seconds, error, prediction)
