"""The page of a loop: what each round found, in tables and figures, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from carom.loop.config import METHODS
from carom.loop.steps import Round
from carom.loop.task import LoopTask
from carom.report import Figure, Next, Section, Step, Table, Text, write_report
from carom.report.chart import Chart, Data, Line, Mark, Panel, Points
from carom.report.style import BLUE, CYCLE, INK, faint

ESTIMATORS = ("conditional", "gaussian", "kde", "knn")


def write_page(
    path: Path, task: LoopTask, rounds: Sequence[Round], rows: Sequence[Mapping[str, Any]], steps: Sequence[Step]
) -> Path:
    """Write the page of the finished rounds."""
    sections = [
        _what_this_is(task, rows),
        *_gaps(rows),
        *task.sections([r for r in rounds if r.has("deploy")]),
        *_parameters(rows),
        Next(tuple(steps)),
    ]
    subtitle = f"{task.config.task}, {task.config.scene}, {task.config.method}"
    return write_report(path, sections, title="The real-sim-real loop", subtitle=subtitle)


def _what_this_is(task: LoopTask, rows: Sequence[Mapping[str, Any]]) -> Section:
    config = task.config
    tried = [row for row in rows if row["success"] is not None]
    where = (
        f"the stand-in `{config.reality}`, a simulation that is not MuJoCo's"
        if task.stand_in
        else f"`{config.reality}`"
    )
    used = sum(row["recorded"] for row in rows)
    done = sum(row["recorded"] > 0 for row in rows)
    more = f", and {config.held_out} more that are only measured with." if config.held_out else "."
    paragraphs = [
        f"{done} rounds on {where}: tune the simulator on all recordings so far, find what to do in it, do it in "
        f"reality and record it. **{used}** real {config.task} were recorded{more}",
        f"Method **{config.method}**: {METHODS[config.method]}.",
    ]
    if tried:
        paragraphs.append(
            f"In the last round **{tried[-1]['success']:.0%}** of {tried[-1]['trials']} trials in reality reached "
            f"their goal; in the first round {tried[0]['success']:.0%}."
        )
    return Text("What this is", tuple(paragraphs))


def _gaps(rows: Sequence[Mapping[str, Any]]) -> list[Section]:
    """The gap of each round by all estimators, and the term's weight."""
    measured = [row for row in rows if row["gap"]]
    if not measured:
        return []
    names = [n for n in ESTIMATORS if any(_number(row["gap"].get(n)) is not None for row in measured)]
    held = list(dict.fromkeys(name for row in rows for name in (row["held_out"] or {})))
    columns = ("round", "recordings", *names, *(f"held out: {h.replace('_', ' ')}" for h in held), "weight", "success")
    table = tuple(
        (
            f"{row['round']}" if row["recorded"] else "end",
            row["recordings"],
            *(_number((row["gap"] or {}).get(n)) for n in names),
            *(_number((row["held_out"] or {}).get(h)) for h in held),
            _number(row["weight"]),
            _number(row["success"]),
        )
        for row in rows
    )
    note = (
        "recordings: real ones. conditional, gaussian, kde, knn: KL [nats] of real against simulated transitions that "
        "the simulator of the round before left to the newest recordings, by four estimators; only the conditional one "
        "fits paired transitions, and 0 is none. held out: measured on recordings that no one learns from, with the "
        "simulator of this round. weight: what a typical transition is paid for what it tells; it fades as the gap "
        "closes. success: share of the trials in reality that reach their goal. The last line is the simulator tuned "
        "on all recordings."
    )
    return [Table("Rounds", columns, table, note), _fading(measured)]


def _fading(rows: Sequence[Mapping[str, Any]]) -> Section:
    """The conditional gap and the weight over the rounds."""
    number = [row["round"] for row in rows]
    gaps = [_number(row["gap"].get("conditional")) or float("nan") for row in rows]
    weight = [_number(row["weight"]) or 0.0 for row in rows if row["recorded"]]
    left: tuple[Mark, ...] = (Line(number, gaps, BLUE, "gap"), Points(number, gaps, BLUE))
    right: tuple[Mark, ...] = (
        Line(number[: len(weight)], weight, INK, "weight of the term"),
        Points(number[: len(weight)], weight, INK),
    )
    ends = (min(number) - 0.5, max(number) + 0.5)
    panels = (
        Panel("round", "conditional KL [nats]", left, "the gap", x_range=ends, log_y=True),
        Panel(
            "round", "weight [1]", right, "the term's weight", x_range=ends, y_range=(0.0, 1.1 * max([*weight, 0.1]))
        ),
    )
    data = Data(("round", "conditional KL [nats]", "weight [1]"), tuple(zip_longest(number, gaps, weight)))
    caption = (
        "Left: how far the simulator of the round before is from the newest recordings. It should fall. Right: "
        "how much a typical transition was paid for what it tells, beside the task's own reward."
    )
    return Figure("The gap, and what it is worth", Chart(panels, data), caption)


def _parameters(rows: Sequence[Mapping[str, Any]]) -> list[Section]:
    """Each parameter over the rounds, with its interval."""
    names = list(dict.fromkeys(p["name"] for row in rows for p in row["parameters"]))
    if not names:
        return []
    panels, data = [], []
    for index, name in enumerate(names):
        found = [(row["round"], p) for row in rows for p in row["parameters"] if p["name"] == name]
        number = [r for r, _ in found]
        value, low, high = (np.array([_number(p[k]) or np.nan for _, p in found]) for k in ("value", "low", "high"))
        colour = CYCLE[index % len(CYCLE)]
        bars = [Line([n, n], [a, b], faint(colour), width=5) for n, a, b in zip(number, low, high, strict=True)]
        unit = found[0][1].get("unit", "1")
        hints = [f"{p['verdict']}" for _, p in found]
        marks: tuple[Mark, ...] = (*bars, Line(number, value, colour), Points(number, value, colour, labels=hints))
        panels.append(Panel("round", f"{name.replace('_', ' ')} [{unit}]", marks))
        data += [(name, unit, r, p["value"], p["low"], p["high"], p["verdict"]) for r, p in found]
    columns = ("parameter", "unit", "round", "value", "low (90 %)", "high (90 %)", "verdict")
    caption = "Each parameter after every tuning; bars are 90 % intervals. They should shrink, and stay where they are."
    return [Figure("Parameters", Chart(tuple(panels), Data(columns, tuple(data))), caption)]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None
