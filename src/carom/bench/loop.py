"""`carom bench loop`: the real-sim-real loop on pushes and on strikes, with each way of choosing what to record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.results import Row, summarise
from carom.core.work import Rows, fingerprint
from carom.loop import LoopConfig, loop
from carom.loop.steps import TIMES, step_times

METHODS = ("infogap", "ensemble", "random", "task-only", "domain-randomisation", "residual")
ROUNDS, PUSHES, HELD_OUT, TRIALS = 4, 15, 20, 100
PUSHES_ON, STRIKES_ON, SHAPE = "laminate", "nylon-padded", "semi-cylinder"
EASY = "expressible"  #: effects of a stand-in that a tuned MuJoCo can express
#: transitions of the first training, and of each later one, which goes on from the policy before
STEPS: Mapping[str, tuple[int, int]] = {
    "planar-cube": (200_000, 80_000),
    "planar-t": (800_000, 200_000),
    "arm-cube": (1_500_000, 200_000),
    "arm-t": (3_000_000, 300_000),
}
#: strikes: method, strikes in a round, rounds
STRIKES: Mapping[str, tuple[str, int, int]] = {
    "ensemble": ("ensemble", 3, 2),
    "infogap": ("infogap", 3, 2),
    "task-only": ("task-only", 3, 2),
    "random": ("random", 3, 2),
    "random-ten": ("random", 10, 1),
}
STRIKES_HELD_OUT = 40
BOUNDED = ("success-rate", "gap-ratio", "median-relative-error")  #: metrics whose 95 % intervals are stated


@dataclass(frozen=True)
class Job:
    """One loop."""

    setting: str  #: planar-cube, ..., or strikes
    method: str
    seed: int
    effects: str = "all"

    @property
    def key(self) -> str:
        """Names the piece."""
        return "/".join((self.place, self.method, str(self.seed)))

    @property
    def place(self) -> str:
        """The setting in the table."""
        return self.setting if self.effects == "all" else f"{self.setting}, {self.effects} effects"


def jobs(draws: int) -> list[Job]:
    """The loops, the cheap ones first; task-only before those that share its first round."""
    order = ("task-only", *(m for m in METHODS if m != "task-only"))
    found = [Job("planar-cube", m, s) for s in range(draws) for m in order]
    found += [Job("strikes", m, s) for s in range(draws) for m in STRIKES]
    found += [
        Job("planar-cube", m, s, EASY) for s in range(draws if draws > 1 else 0) for m in ("task-only", "ensemble")
    ]
    found += [Job("planar-t", m, s) for s in range(draws if draws > 1 else 0) for m in order]
    found += [Job(arm, m, s) for arm in ("arm-cube", "arm-t") for s in range(draws // 5) for m in order]
    return found


def config_of(job: Job, seed: int) -> LoopConfig:
    """What a loop of the benchmark is told."""
    if job.setting == "strikes":
        method, recordings, rounds = STRIKES[job.method]
        given: dict[str, Any] = {
            "task": "strikes",
            "scene": SHAPE,
            "reality": STRIKES_ON,
            "rounds": rounds,
            "recordings": recordings,
            "held_out": STRIKES_HELD_OUT,
            "trials": 1,
        }
    else:
        first, later = STEPS[job.setting]
        method = "task-only" if job.method == "residual" else job.method
        given = {
            "task": "pushes",
            "scene": job.setting,
            "reality": PUSHES_ON,
            "rounds": ROUNDS,
            "recordings": PUSHES,
            "held_out": HELD_OUT,
            "trials": TRIALS,
            "residual": job.method == "residual",
            "effects": job.effects,
            "training": {"steps": first, "later_steps": later},
        }
    return LoopConfig.model_validate({"format": "carom-loop/1", "method": method, "seed": seed, **given})


def _settings(o: Options) -> dict[str, Any]:
    settings = {job.place: config_of(job, o.seed).settings() for job in jobs(5) if job.method == "task-only"}
    return {"seed": o.seed, "loops": settings}


def _work(o: Options) -> Work:
    return [(job.key, partial(_piece, job, o)) for job in jobs(o.draws)]


def _piece(job: Job, o: Options) -> Rows:
    """One loop: gone on with where it was interrupted."""
    base = o.out / "loop" / fingerprint(_settings(o)) / job.place.replace(", ", "-").replace(" ", "-")
    out = base / f"{job.method}-{job.seed}"
    if job.setting != "strikes" and job.method in ("infogap", "ensemble", "residual"):
        _borrow(base / f"task-only-{job.seed}", out)
    result = loop(config_of(job, o.seed + 1000 * job.seed), out, progress=o.progress)
    rows: Rows = []

    def add(metric: str, value: float | None) -> None:
        if value is not None and np.isfinite(value):
            rows.append({"setting": job.place, "method": job.method, "metric": metric, "value": float(value)})

    first, last = result.rows[0], result.rows[-1]
    if job.setting == "strikes":
        add("median-relative-error", last["held_out"]["median_relative_error"])
        add("accuracy-10-percent", last["held_out"]["accuracy_10_percent"])
        add("real-strikes", sum(row["recorded"] for row in result.rows))
        return rows
    add("success-rate", result.rows[-2]["success"])
    add("success-rate-first-round", first["success"])
    add("gap-ratio", first["held_out"]["gap"] / max(last["held_out"]["gap"], 1e-9))
    add("held-out-error-mm", last["held_out"]["error_mm"])
    add("held-out-error-mm-first-round", first["held_out"]["error_mm"])
    add("real-pushes", sum(row["recorded"] for row in result.rows))
    add("training-minutes", sum(step_times(out, "train", "core_seconds")) / 60)
    for name in ("kl_x", "kl_y"):
        for when, number in (("-first-round", 1), ("", ROUNDS)):
            add(f"{name.replace('_', '-')}{when}", _repeated(out, number)[name])
    return rows


def _repeated(out: Path, number: int) -> Mapping[str, float]:
    path = out / f"round-{number:02d}" / "deploy" / "step.json"
    found: Mapping[str, float] = json.loads(path.read_text(encoding="utf-8"))["facts"]["repeated"]
    return found


def _borrow(done: Path, out: Path) -> None:
    """Copy a first round that is the same for this method: nothing is known yet that could make a difference."""
    steps = [done / "round-01" / step / "step.json" for step in ("tune", "train", "deploy")]
    if out.exists() or not all(step.is_file() for step in steps):
        return
    new = out.with_name(f"{out.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(done / "round-01", new / "round-01")
    shutil.copytree(done / "held-out", new / "held-out")
    lines = (done / TIMES).read_text(encoding="utf-8").splitlines(keepends=True)
    (new / TIMES).write_text("".join(line for line in lines if json.loads(line)["round"] == 1), encoding="utf-8")
    new.rename(out)


def _bounded(values: Rows) -> Sequence[Row]:
    """Mean over seeds with the ends of its 95 % interval (Student; ratios as logarithms)."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in values:
        found.setdefault((row["setting"], row["method"], row["metric"]), []).append(float(row["value"]))
    more: Rows = list(values)
    for (setting, method, metric), each in found.items():
        if metric not in BOUNDED or len(each) < 2:
            continue
        ratio = metric == "gap-ratio"
        own = np.log(each) if ratio else np.array(each)
        half = float(t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own)))
        for name, end in (("low", own.mean() - half), ("high", own.mean() + half)):
            value = float(np.exp(end)) if ratio else float(np.clip(end, 0, 1) if metric == "success-rate" else end)
            more.append({"setting": setting, "method": method, "metric": f"{metric}-{name}", "value": value})
    return summarise(more)


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"Stand-in realities ({PUSHES_ON} for pushes, {STRIKES_ON} with a {SHAPE} for strikes; not MuJoCo, not a "
        f"laboratory), {o.draws} seeds. With one seed (`--draws 1`) planar-cube and strikes alone; the arm with a "
        "fifth of the seeds.",
        f"Pushes: {ROUNDS} rounds of {PUSHES} real pushes, the same number for every method; {HELD_OUT} more, random "
        "straight ones, are only measured with. gap-ratio: held-out gap (conditional KL) before the first round over "
        f"that after the last. success-rate: of {TRIALS} trials of the last round's policy in reality. "
        "training-minutes: of one core, all rounds. kl-x, kl-y: Table I of the paper, one repeated start and goal.",
        "task-only records what its policy does; infogap and ensemble pay their policies for what tells; random "
        "records random straight pushes, the same kind as those held out, which favours it there; "
        "domain-randomisation tunes nothing and draws its simulators from the whole ranges; residual is task-only with "
        "a learned correction.",
        f"{EASY} effects: those that no parameter of the simulator expresses are switched off in the stand-in.",
        f"strikes: error of outcomes over {STRIKES_HELD_OUT} strikes held out; two rounds of three strikes, and "
        "random-ten: ten random ones.",
    )


BENCHMARK = Benchmark("loop", draws=5, settings=_settings, work=_work, notes=_notes, rows=_bounded)
