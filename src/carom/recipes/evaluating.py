"""`carom evaluate`: all methods side by side on strikes they have not seen, with a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.compare import ABLATIONS, METHODS, Lesson, Score, compare, method_words
from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress, silent
from carom.learn import adapt
from carom.recipes.bases import BASE, BaseOptions, make_bases, paper_base
from carom.recipes.evaluation_page import evaluation_sections
from carom.recipes.next_steps import after_evaluation, commands_of, reached_pose
from carom.recipes.result import PrintedTable, Result
from carom.recipes.strikes import base_for, by_gradient, held_by, slides_of, usable_impacts
from carom.recordings import Recordings, check_scene, read, scene_of
from carom.report import Next, Section, Step, write_report
from carom.state import Impacts

FEWEST = 3  #: strikes to learn from
PAPER_SAMPLES = 40_000  #: simulated impacts for the base model of the paper's recipe, where nobody says
PAPER = "clash-paper"  #: the method that needs it
COLUMNS = ("method", "within 10 %", "within 5 %", "median error", "90 % covers", "seconds", "note")
FIGURES = (
    "within 10 %, 5 %: share of the strikes whose velocity after contact (vx, vy, k*wz) is predicted with an error of "
    "less than that share of it (accuracy@0.1, accuracy@0.05); k is the radius of gyration",
    "median error: of that error, as a share. 90 % covers: share of outcomes within the stated 90 % intervals (0.9 is "
    "right; a dash: the method states none). seconds: to learn and predict",
)


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, on which strikes."""

    methods: Sequence[str] | None = None  #: names of `carom.compare.METHODS`; None: all
    count: int | None = None  #: strikes to learn from: the first so many; None: all
    settle: float | None = None  #: [s] after first motion at which outcomes are read; None: the end of contact

    def __post_init__(self) -> None:
        known = {**METHODS, **ABLATIONS}
        for name in self.methods or ():
            if name not in known:
                raise CaromError(unknown_name("method", name, known))
        if self.count is not None and self.count < FEWEST:
            raise CaromError(f"--count: expected {FEWEST} strikes or more to learn from, got {self.count}")

    @property
    def names(self) -> tuple[str, ...]:
        """The methods that are asked for."""
        return tuple(self.methods or METHODS)


@final
@dataclass(frozen=True)
class EvaluateResult(Result):
    """Methods side by side, and where the report is."""

    train: Impacts
    test: Impacts
    scores: tuple[Score, ...]
    report: Path
    title: str
    steps: tuple[Step, ...] = ()  #: what to do next
    model: Path | None = None  #: corrected model that was kept, by the demo

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {"method": s.method, **s.metrics, **s.coverage, "seconds": s.seconds, "note": s.note} for s in self.scores
        ]
        kept = {} if self.model is None else {"model": str(self.model)}
        return {"train": len(self.train), "test": len(self.test), "rows": rows, "report": str(self.report), **kept}

    def tables(self) -> Sequence[PrintedTable]:
        rows = [[s.method, *s.metrics.values(), s.coverage.get("coverage@0.9"), s.seconds, s.note] for s in self.scores]
        last = None if any(s.note for s in self.scores) else -1  # no empty column of notes
        methods = [f"{s.method}: {method_words(s.method)}" for s in self.scores]
        return (PrintedTable(self.title, COLUMNS[:last], [row[:last] for row in rows], (*FIGURES, *methods)),)

    def notes(self) -> Sequence[str]:
        kept = () if self.model is None else (f"model: {self.model}",)
        return (f"report: {self.report}", *kept)

    def next_commands(self) -> Sequence[str]:
        return commands_of(self.steps)


@dataclass(frozen=True)
class Exam:
    """What the methods learn from, and what they are asked."""

    lesson: Lesson
    test: Impacts
    recordings: Recordings  #: that the lesson was taken from
    asked: Path  #: folder of the test strikes
    base: Path | None  #: folder of base models; None: those of the package


@dataclass(frozen=True)
class Page:
    """What a report says besides the results."""

    title: str = "Impact models side by side"
    note: str = ""
    more: Callable[[Exam], Sequence[Section]] | None = None  #: further sections, after the table of methods
    steps: Sequence[Step] | None = None  #: what to do next; None: what follows from the scores


def evaluate(
    train: str | Path,
    test: str | Path,
    *,
    out: str | Path | None = None,
    bases: BaseOptions | None = None,
    comparison: CompareOptions | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> EvaluateResult:
    """Learn from one folder of strikes and predict another, by every method; leaves `report.html` in `out`."""
    place = Path("out/evaluate") / Path(train).resolve().name if out is None else Path(out)
    comparison = comparison or CompareOptions()
    exam = exam_of(
        Path(train),
        Path(test),
        place,
        bases=bases or BaseOptions(),
        comparison=comparison,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    title = f"{len(exam.lesson.train)} strikes to learn from, {len(exam.test)} to predict"
    return take(exam, place, title=title, page=Page(), methods=comparison.methods, progress=progress)


def exam_of(
    train: Path,
    test: Path,
    out: Path,
    *,
    bases: BaseOptions,
    comparison: CompareOptions,
    seed: int,
    threads: int,
    progress: Progress,
) -> Exam:
    """Strikes to learn from, strikes to predict, and base models: given, made in `out`, or those of the package."""
    learned_from, asked = read(train), read(test)
    scene = scene_of(learned_from)
    check_scene(scene, asked)
    lesson_impacts, test_impacts = _split(learned_from, asked, comparison)
    folder = bases.model
    if bases.samples is not None:
        folder = out / BASE
        own = make_bases(scene, out, bases.samples, seed, threads, progress, bases.steps)
    else:
        own = base_for(bases.model, learned_from)
    paper = None
    if PAPER in comparison.names:  # it takes minutes to make
        paper = paper_base(scene, out, bases.samples or PAPER_SAMPLES, seed, threads, progress)
    slides = slides_of(learned_from)
    lesson = Lesson(scene, lesson_impacts, own, paper, held_by(slides), seed, slides)
    return Exam(lesson, test_impacts, learned_from, test, folder)


def take(
    exam: Exam, out: Path, *, title: str, page: Page, methods: Sequence[str] | None = None, progress: Progress = silent
) -> EvaluateResult:
    """Let all methods predict, and write the report; `title` is that of the table that is printed."""
    lesson, test = exam.lesson, exam.test
    scores = compare(lesson, test, methods=methods, progress=progress)
    told = partial(progress, "report: what Carom's model rests on")
    adapted = adapt(lesson.bases, lesson.train, fixed=lesson.fixed, seed=lesson.seed, progress=told)
    base = next((b for b in lesson.bases if b.teacher == adapted.best.base.teacher), lesson.bases[0])
    progress("report: parameters and figures", 0, 2)
    found = by_gradient(base, lesson.train, fixed=lesson.fixed, seed=lesson.seed)
    progress("report: parameters and figures", 1, 2)
    first, rest = evaluation_sections(lesson, test, scores, adapted, found, note=page.note)
    more = page.more(exam) if page.more else ()
    steps = page.steps
    if steps is None:
        reached = reached_pose(exam.recordings, lesson.train)
        steps = after_evaluation(scores, exam.recordings.path, exam.asked, exam.base, reached)
    path = write_report(
        out / "report.html",
        [*first, *more, *rest, Next(tuple(steps))],
        title=page.title,
        subtitle=f"{len(lesson.train)} strikes to learn from, {len(test)} to predict",
    )
    return EvaluateResult(lesson.train, test, scores, path, title, tuple(steps))


def _split(learned_from: Recordings, asked: Recordings, options: CompareOptions) -> tuple[Impacts, Impacts]:
    """Strikes to learn from and strikes to predict; none is both."""
    train = usable_impacts(learned_from, settle=options.settle)
    if options.count is not None:
        train = train[np.arange(min(options.count, len(train)))]
    test = usable_impacts(asked, settle=options.settle)
    if learned_from.path.resolve() == asked.path.resolve():
        test = test[[i for i, name in enumerate(test.names) if name not in set(train.names)]]
        if not len(test):
            raise CaromError(
                f"--train and --test are both {asked.path}: give --count so that some strikes are left to predict"
            )
    return train, test
