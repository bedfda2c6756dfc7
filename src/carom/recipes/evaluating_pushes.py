"""`carom evaluate` on pushes: where held-out pushes bring the block, by Carom and by simple predictors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.compare.push_baselines import BASELINES, in_mujoco
from carom.core.errors import CaromError
from carom.core.progress import Progress, silent, steps_of
from carom.identify.pushes import Windows, guided_scene, led_windows_of, tune
from carom.recipes.result import PrintedTable, Result, command
from carom.recordings import Recordings, read
from carom.recordings.kind import kind_of
from carom.recordings.pushes import push_of
from carom.report import Next, Section, Step, Table, Text, write_report
from carom.state import Array, wrap_angle

CAROM = "carom"
WORDS = "MuJoCo with friction, patch and tool friction identified from the pushes to learn from"
FEWEST = 2  #: pushes to learn from
COLUMNS = ("method", "off [mm]", "turned off [deg]", "off, of its way")
NOTE = (
    "off: distance of the block from its recorded place, mean over each push, median over the pushes; turned off: the "
    "same of its turn; of its way: the distance as a share of the way that the block went. All are told the recorded "
    "start and the recorded path of the tool, and nothing else of the push."
)


@dataclass(frozen=True)
class PushScore:
    """How one method did on one split."""

    split: str
    method: str
    off: float  #: [m]
    turned: float  #: [rad]
    share: float


@final
@dataclass(frozen=True)
class PushEvaluation(Result):
    """Methods side by side on held-out pushes."""

    scores: tuple[PushScore, ...]
    counts: tuple[tuple[str, int, int], ...]  #: split, pushes to learn from, to predict
    report: Path

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {"split": s.split, "method": s.method, "off_m": s.off, "turned_off_rad": s.turned, "share": s.share}
            for s in self.scores
        ]
        splits = [{"split": name, "train": a, "test": b} for name, a, b in self.counts]
        return {"rows": rows, "splits": splits, "report": str(self.report)}

    def tables(self) -> Sequence[PrintedTable]:
        made = []
        methods = [f"{name}: {b.words}" for name, b in BASELINES.items()]
        for split, train, test in self.counts:
            rows = [
                [s.method, 1e3 * s.off, float(np.degrees(s.turned)), s.share] for s in self.scores if s.split == split
            ]
            title = f"{split}: {train} pushes to learn from, {test} to predict"
            made.append(PrintedTable(title, COLUMNS, rows, (NOTE, f"{CAROM}: {WORDS}", *methods)))
        return made

    def notes(self) -> Sequence[str]:
        return (f"report: {self.report}",)


def shows_pushes(folder: str | Path) -> bool:
    """Whether a folder shows pushes; one that cannot be read shows none, and whoever reads it says why."""
    try:
        return kind_of(read(Path(folder))) == "pushes"
    except CaromError:
        return False


def refuse_for_pushes(given: Sequence[str]) -> None:
    """Refuse options that are for strikes."""
    if given:
        raise CaromError(f"{', '.join(given)}: for strikes; these are recordings of pushes, leave it out")


def evaluate_pushes(
    train: str | Path,
    test: str | Path,
    *,
    out: str | Path | None = None,
    count: int | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> PushEvaluation:
    """Learn from some pushes and predict others; leaves `report.html` in `out`.

    Of one folder given twice, half is learned from: once drawn at random, and once the first half in time (`count`: so
    many of them), which shows what drifts.
    """
    place = Path("out/evaluate") / Path(train).resolve().name if out is None else Path(out)
    learned, asked = read(Path(train)), read(Path(test))
    scene = guided_scene(learned)
    scores: list[PushScore] = []
    counts = []
    for split, some, others in _splits(learned, asked, count, seed):
        told = steps_of(partial(progress), f"evaluate: {split}")
        tuned = tune(scene, some, seed=seed, threads=threads, progress=told)
        found = {n: v for n, v in tuned.values.items() if n in tuned.draws}
        windows = led_windows_of(scene, others)
        predictions = {CAROM: in_mujoco(scene, windows, found)}
        predictions |= {name: b.predict(scene, windows) for name, b in BASELINES.items()}
        scores += [_score(split, name, poses, windows) for name, poses in predictions.items()]
        counts.append((split, len(some.trajectories), len(others.trajectories)))
    path = _page(place / "report.html", scores, counts, learned.path)
    return PushEvaluation(tuple(scores), tuple(counts), path)


def _splits(
    learned: Recordings, asked: Recordings, count: int | None, seed: int
) -> list[tuple[str, Recordings, Recordings]]:
    """Names of splits, with what is learned from and what is predicted."""
    first, second = (tuple(t for t in r.trajectories if push_of(t) is not None) for r in (learned, asked))
    if learned.path.resolve() != asked.path.resolve():
        some = first[:count] if count is not None else first
        return [("other folder", replace(learned, trajectories=some), replace(asked, trajectories=second))]
    half = len(first) // 2 if count is None else count
    if half < FEWEST or len(first) - half < 1:
        raise CaromError(
            f"{learned.path}: expected {FEWEST} pushes or more to learn from and one to predict; it has {len(first)}, "
            f"of which {half} are to be learned from"
        )
    drawn = set(np.random.default_rng(seed).permutation(len(first))[:half].tolist())
    orders = {"at random": [i in drawn for i in range(len(first))], "in time": [i < half for i in range(len(first))]}
    return [
        (
            name,
            replace(learned, trajectories=tuple(t for t, own in zip(first, mine, strict=True) if own)),
            replace(asked, trajectories=tuple(t for t, own in zip(first, mine, strict=True) if not own)),
        )
        for name, mine in orders.items()
    ]


def _score(split: str, method: str, poses: Array, windows: Windows) -> PushScore:
    seen = np.isfinite(windows.block).all(axis=-1)
    away = np.where(seen, np.linalg.norm(poses[..., :2] - windows.block[..., :2], axis=-1), np.nan)
    turned = np.where(seen, np.abs(wrap_angle(np.nan_to_num(poses[..., 2] - windows.block[..., 2]))), np.nan)
    way = np.nansum(np.linalg.norm(np.diff(windows.block[..., :2], axis=1), axis=-1), axis=1)
    off = np.nanmean(away, axis=1)
    share = off / np.maximum(way, 1e-3)
    return PushScore(
        split, method, float(np.median(off)), float(np.median(np.nanmean(turned, axis=1))), float(np.median(share))
    )


def _page(path: Path, scores: Sequence[PushScore], counts: Sequence[tuple[str, int, int]], train: Path) -> Path:
    words = [f"**{CAROM}**: {WORDS}.", *(f"**{name}**: {b.words}." for name, b in BASELINES.items())]
    sections: list[Section] = [Text("What is compared", (NOTE, *words))]
    for split, some, others in counts:
        rows = tuple(
            (s.method, f"{1e3 * s.off:.2f}", f"{np.degrees(s.turned):.2f}", f"{s.share:.3f}")
            for s in scores
            if s.split == split
        )
        title = f"Split {split}: {some} pushes to learn from, {others} to predict"
        sections.append(Table(title, COLUMNS, rows, "Lower is better. `stays-put` and `with-tool` know no physics."))
    calibrated = f"calibrated/{train.resolve().name}"
    words_next = "Identify the parameters from all of these pushes, with intervals and a calibrated MJCF."
    sections.append(Next((Step(words_next, command("identify", train, "--out", calibrated)),)))
    return write_report(path, sections, title="Pushes predicted, side by side", subtitle=f"{len(counts)} splits")
