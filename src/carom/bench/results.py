"""Results of benchmarks: how they are kept, shown, and carried into the README.

A benchmark ends with tidy rows in `benchmarks/results/NAME.json`. `python -m carom.bench.results` writes the
README's tables from these files; `--check` only says which of them differ. Pieces of a long benchmark are kept in
`carom.core.work`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import carom
from carom.core.artefacts import atomically
from carom.core.errors import CaromError
from carom.core.work import Checkpoint

__all__ = ["Checkpoint", "Results", "Row", "markdown_table", "new_results", "read", "rich_table", "summarise"]

FOLDER = Path("benchmarks/results")
MISSING = "_not run yet_"
_BLOCK = re.compile(r"<!-- bench:(?P<name>[\w-]+):start -->\n(?P<body>.*?)<!-- bench:(?P=name):end -->", re.DOTALL)


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
        rows = [{k: _or_null(v) for k, v in asdict(r).items()} for r in self.rows]
        content = {
            "name": self.name,
            "command": self.command,
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "rows": rows,
        }
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        atomically(path, lambda file: file.write(text.encode()))
        return path


def _or_null(value: str | float | int) -> str | float | int | None:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    except (KeyError, TypeError, ValueError) as error:
        raise CaromError(f"{path}: not a results file of `carom bench`: {type(error).__name__} {error}") from error


def _row(raw: Mapping[str, Any]) -> Row:
    mean, sd = (math.nan if raw[k] is None else float(raw[k]) for k in ("mean", "sd"))
    return Row(str(raw["setting"]), str(raw["method"]), str(raw["metric"]), mean, sd, int(raw["n"]))


def new_results(name: str, *, command: str, rows: Iterable[Row], seconds: float, notes: Sequence[str] = ()) -> Results:
    """Results of a run that ends here and now: versions and machine are those of this process."""
    return Results(name, command, _versions(), _machine(), float(seconds), tuple(rows), tuple(notes))


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


def _versions() -> dict[str, str]:
    found = {"carom": carom.__version__}
    for package in ("mujoco", "numpy", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found | {"python": platform.python_version()}


def _machine() -> dict[str, str | int]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        model = re.search(r"^model name\s*:\s*(.+)$", info.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        cpu = model.group(1).strip() if model else cpu
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cpu": cpu, "cores": cores, "system": f"{platform.system()} {platform.machine()}"}


def metrics_of(results: Results) -> list[str]:
    """The metrics in a table's order: accuracies first, the one with the wider threshold ahead."""
    found = _unique(r.metric for r in results.rows)
    return sorted(found, key=lambda m: (not m.startswith("accuracy"), m != "accuracy@0.1"))


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _better(metric: str) -> str:
    """Which way is better: 'higher', 'lower', or '' where it is a matter of opinion."""
    if metric.startswith(("accuracy", "success", "subgoal", "speedup", "ratio-to")) or "per-second" in metric:
        return "higher"
    lower = ("plan-seconds", "evaluations", "training-seconds")
    return "lower" if "error" in metric or metric.startswith(lower) else ""


def _number(value: float) -> str:
    """A figure with two decimals, more if it is small, none if it is large.

    >>> [_number(v) for v in (0.934, 0.0123, 12.34, 5321.0, float("nan"))]
    ['0.93', '0.012', '12.3', '5,321', '–']
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:#.2g}"


def _entry(row: Row | None) -> str:
    """Mean ± sd, the sd with as many decimals as the mean."""
    if row is None:
        return ""
    text = _number(row.mean)
    if not (math.isfinite(row.sd) and math.isfinite(row.mean)) or "e" in text:
        return text
    decimals = len(text.partition(".")[2])
    return f"{text} ± {row.sd:,.{decimals}f}"


def _pivot(results: Results, metric: str, settings: str) -> tuple[str, list[str], list[tuple[str, list[Row | None]]]]:
    """Corner, column names and rows of one metric's table, with the settings as columns or as rows."""
    if settings not in ("columns", "rows"):
        raise CaromError(f"settings: expected 'columns' or 'rows', got '{settings}'")
    chosen = [r for r in results.rows if r.metric == metric]
    if not chosen:
        raise CaromError(f"results '{results.name}' have no metric '{metric}'; known: {', '.join(metrics_of(results))}")
    table = {(r.setting, r.method): r for r in chosen}
    across, down = _unique(r.setting for r in chosen), _unique(r.method for r in chosen)
    if settings == "columns":
        return "method", across, [(m, [table.get((s, m)) for s in across]) for m in down]
    return "setting", down, [(s, [table.get((s, m)) for m in down]) for s in across]


def _best(results: Results, metric: str) -> set[tuple[str, str]]:
    """(setting, method) of the best mean in each setting with more than one method."""
    sign = {"higher": -1.0, "lower": 1.0}.get(_better(metric))
    best = set()
    for setting in _unique(r.setting for r in results.rows):
        group = [r for r in results.rows if r.metric == metric and r.setting == setting and math.isfinite(r.mean)]
        if sign is not None and len(group) > 1:
            winner = min(group, key=lambda r: sign * r.mean)
            best |= {(setting, r.method) for r in group if _number(r.mean) == _number(winner.mean)}
    return best


def markdown_table(results: Results, *, metrics: Sequence[str] | None = None, settings: str = "columns") -> str:
    """One Markdown table per metric, accuracies first: methods down, settings across (or the other way round).

    The best mean of each setting is bold.
    """
    parts = []
    for metric in metrics or metrics_of(results):
        corner, columns, rows = _pivot(results, metric, settings)
        best, way = _best(results, metric), _better(metric)
        counts = sorted({r.n for r in results.rows if r.metric == metric})
        count = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
        spread = "mean ± sd, " if counts[-1] > 1 else ""
        lines = [f"`{metric}` ({spread}{count}{f'; {way} is better' if way else ''})", ""]
        lines.append(f"| {corner} | " + " | ".join(columns) + " |")
        lines.append("|---|" + "---:|" * len(columns))
        for name, entries in rows:
            cells = [f"**{_entry(e)}**" if e and (e.setting, e.method) in best else _entry(e) for e in entries]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def rich_table(results: Results, *, metric: str | None = None, settings: str = "columns") -> Table:
    """One metric's table for the terminal: the first of `metrics_of` unless told."""
    metric = metric or metrics_of(results)[0]
    corner, columns, rows = _pivot(results, metric, settings)
    best = _best(results, metric)
    table = Table(title=f"{results.name}: {metric}", title_justify="left")
    table.add_column(corner)
    for column in columns:
        table.add_column(column, justify="right")
    for name, entries in rows:
        cells = [f"[bold]{_entry(e)}[/bold]" if e and (e.setting, e.method) in best else _entry(e) for e in entries]
        table.add_row(name, *cells)
    return table


def readme_block(name: str, folder: Path) -> str:
    """What stands between the README's markers for one benchmark."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return MISSING + "\n"
    results = read(path)
    software = ", ".join(f"{k} {v}" for k, v in results.versions.items())
    machine = f"{results.machine.get('cpu', '?')}, {results.machine.get('cores', '?')} cores"
    lines = [markdown_table(results), *(f"{note}\n" for note in results.notes)]
    lines.append(f"`{results.command}`: {_duration(results.seconds)} on {machine}; {software}.\n")
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def refreshed(text: str, folder: Path) -> tuple[str, list[str]]:
    """A README's text with its tables made anew from the results in `folder`, and the names of those that differed."""
    starts, found = re.findall(r"<!-- bench:([\w-]+):start -->", text), [m["name"] for m in _BLOCK.finditer(text)]
    broken = [name for name in starts if name not in found]
    if broken:
        raise CaromError(f"README: '<!-- bench:{broken[0]}:start -->' has no matching '<!-- bench:{broken[0]}:end -->'")
    stale = []

    def replacement(match: re.Match[str]) -> str:
        body = readme_block(match["name"], folder)
        if match["body"] != body:
            stale.append(match["name"])
        return f"<!-- bench:{match['name']}:start -->\n{body}<!-- bench:{match['name']}:end -->"

    return _BLOCK.sub(replacement, text), stale


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the README's tables from the results files; with `--check` only say which differ (exit code 1)."""
    parser = argparse.ArgumentParser(prog="python -m carom.bench.results", description=main.__doc__)
    parser.add_argument("--readme", type=Path, default=Path("README.md"))
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    try:
        text, stale = refreshed(options.readme.read_text(encoding="utf-8"), options.results)
    except (CaromError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if stale and not options.check:
        atomically(options.readme, lambda file: file.write(text.encode()))
    if stale:
        verb = "differ from" if options.check else "made anew from"
        print(f"{options.readme}: tables {verb} {options.results}: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
