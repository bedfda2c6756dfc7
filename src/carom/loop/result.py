"""What a loop came to, or what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.loop.page import write_page
from carom.loop.person import Request
from carom.loop.steps import STEPS, Facts, Round, seconds_of
from carom.loop.task import LoopTask
from carom.recipes.next_steps import commands_of
from carom.recipes.result import PrintedTable, Result, command
from carom.report import Step

REPORT = "report.html"
FIGURES = (
    "recordings: real ones that the round's simulator was tuned with. gap: KL of real against simulated transitions "
    "that the simulator before left to the newest recordings [nats]; 0 is none. weight: what a typical transition was "
    "paid for what it tells. success: share of trials in reality that reached their goal",
)


@final
@dataclass(frozen=True)
class LoopResult(Result):
    """The finished rounds of a loop."""

    out: Path
    rows: tuple[Mapping[str, Any], ...]  #: one for each finished round
    report: Path | None  #: None: no round is finished
    request: Request | None  #: what a person is asked to record; None: nothing
    steps: tuple[Step, ...]
    file: Path | None  #: the loop's own file

    @classmethod
    def of(
        cls, task: LoopTask, rounds: Sequence[Round], out: Path, file: Path | None, request: Request | None
    ) -> LoopResult:
        """The result of a loop's rounds, with its page."""
        facts = [{step: r.facts(step) for step in STEPS if r.has(step)} for r in rounds]
        seconds = seconds_of(out)
        rows = tuple(
            row_of(r.number, f, {step: seconds.get((r.number, step)) for step in STEPS})
            for r, f in zip(rounds, facts, strict=True)
        )
        steps = () if not rounds else tuple(task.next_steps(rounds))
        report = write_page(out / REPORT, task, rounds, rows, steps) if rounds else None
        return cls(out, rows, report, request, steps, file)

    def to_dict(self) -> dict[str, Any]:
        waits = None
        if self.request is not None:
            waits = {
                "for": self.request.words,
                "columns": list(self.request.columns),
                "rows": self.request.rows.tolist(),
                "folder": str(self.request.folder),
            }
        return {"folder": str(self.out), "rounds": [dict(r) for r in self.rows], "waiting": waits}

    def tables(self) -> Sequence[PrintedTable]:
        made = []
        if self.rows:
            rows = [cells_of(row) for row in self.rows]
            made.append(
                PrintedTable(
                    f"{self.out}: rounds with recordings: {sum(row['recorded'] > 0 for row in self.rows)}",
                    tuple(rows[0]),
                    [[*r.values()] for r in rows],
                    FIGURES,
                )
            )
        if self.request is not None:
            made.append(self.request.table())
        return made

    def notes(self) -> Sequence[str]:
        return () if self.report is None else (f"report: {self.report}",)

    def next_commands(self) -> Sequence[str]:
        if self.request is not None:
            again = () if self.file is None else (command("loop", self.file, "--out", self.out),)
            return (command("check", self.request.folder), *again)
        return commands_of(self.steps)


def row_of(number: int, facts: Mapping[str, Facts], seconds: Mapping[str, float | None]) -> dict[str, Any]:
    """What all kinds of tasks tell of a round. The one after the last has a tuned simulator only."""
    tune, train, deploy = (facts.get(step, {}) for step in STEPS)
    trials = deploy.get("trials") or []
    return {
        "round": number,
        "recordings": tune["recordings"],
        "gap": tune.get("gap"),
        "held_out": tune.get("held_out"),
        "parameters": tune.get("parameters", []),
        "weight": train.get("weight"),
        "recorded": deploy.get("recordings", 0),
        "trials": len(trials),
        "success": float(np.mean([t["success"] for t in trials])) if trials else None,
        "seconds": dict(seconds),
    }


def cells_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A round in a table."""
    gap, held = row["gap"] or {}, row["held_out"] or {}
    cells = {
        "round": row["round"] if row["recorded"] else "end",
        "recordings": row["recordings"],
        "gap [nats]": _brief(gap.get("conditional")),
        "weight": _brief(row["weight"]),
    }
    cells |= {f"held out: {name.replace('_', ' ')}": _brief(value) for name, value in held.items()}
    return cells | {"success": "–" if row["success"] is None else f"{row['success']:.2f} of {row['trials']}"}


def _brief(value: float | None) -> str:
    return "–" if value is None or not np.isfinite(value) else f"{value:.3g}"
