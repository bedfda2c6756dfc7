"""Results of benchmarks: tidy rows in `benchmarks/results/NAME.json`, with what they were measured on."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import plain, versions, write_text
from carom.core.errors import CaromError, short

FOLDER = Path("benchmarks/results")


@dataclass(frozen=True)
class Row:
    """One figure of a table: `n` values of one metric, for one method in one setting."""

    setting: str
    method: str
    metric: str
    mean: float
    sd: float  #: standard deviation over the `n` values; NaN if there is only one
    n: int


@dataclass(frozen=True)
class Results:
    """What a benchmark found, and on what it was run."""

    name: str
    command: str
    versions: Mapping[str, str]
    machine: Mapping[str, str | int]
    seconds: float  #: wall time, summed over the pieces if the run was resumed
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def write(self, path: Path | None = None) -> Path:
        """Write to `path` (benchmarks/results/NAME.json if None), whole or not at all; returns the path."""
        path = FOLDER / f"{self.name}.json" if path is None else Path(path)
        content = {
            "name": self.name,
            "command": self.command,
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "rows": [plain(asdict(r)) for r in self.rows],
        }
        write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        return path


def read(path: Path) -> Results:
    """Results as `Results.write` left them."""
    path = Path(path)
    if not path.is_file():
        raise CaromError(f"{path}: no such results file; run the benchmark first")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = tuple(_row(r) for r in content["rows"])
        return Results(
            name=str(content["name"]),
            command=str(content["command"]),
            versions=dict(content["versions"]),
            machine=dict(content["machine"]),
            seconds=float(content["seconds"]),
            rows=rows,
            notes=tuple(str(n) for n in content.get("notes", ())),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise CaromError(
            f"{path}: not a results file of `carom bench`: {type(error).__name__} {short(error)}"
        ) from error


def _row(raw: Mapping[str, Any]) -> Row:
    mean, sd = (math.nan if raw[k] is None else float(raw[k]) for k in ("mean", "sd"))
    return Row(str(raw["setting"]), str(raw["method"]), str(raw["metric"]), mean, sd, int(raw["n"]))


def new_results(name: str, *, command: str, rows: Iterable[Row], seconds: float, notes: Sequence[str] = ()) -> Results:
    """Results of a run that ends here and now: versions and machine are those of this process."""
    made_with = {**versions(("mujoco", "numpy", "torch")), "python": platform.python_version()}
    return Results(name, command, made_with, _machine(), float(seconds), tuple(rows), tuple(notes))


def summarise(values: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    """Rows from single values `{setting, method, metric, value}`: mean, standard deviation and count of each group."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for v in values:
        groups.setdefault((str(v["setting"]), str(v["method"]), str(v["metric"])), []).append(float(v["value"]))
    rows = []
    for (setting, method, metric), group in groups.items():
        sd = float(np.std(group, ddof=1)) if len(group) > 1 else math.nan
        rows.append(Row(setting, method, metric, float(np.mean(group)), sd, len(group)))
    return tuple(rows)


def _machine() -> dict[str, str | int]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        model = re.search(r"^model name\s*:\s*(.+)$", info.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        cpu = model.group(1).strip() if model else cpu
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cpu": cpu, "cores": cores, "system": f"{platform.system()} {platform.machine()}"}
