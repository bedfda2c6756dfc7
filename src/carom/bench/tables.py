"""Tables of results, for Markdown and for the terminal: as few as say everything, and no empty columns.

A metric of several methods is a table of its own, with methods down and settings across, or the other way round where
there are many settings. Settings that were tried with other methods get a table of their own. Metrics of a single
method share one table. A single figure, or one that is the same everywhere, is a line of text.

The best mean of a setting is bold. One that differs from it by no more than the larger of the two standard deviations
has a mark: such a difference shows nothing. Settings whose name begins with `diagnostic` have no best: their rows are
not rivals, and some are no predictions at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from carom.bench.results import Results, Row
from carom.core.errors import CaromError

#: metrics whose single values are 0 or 1: their means are shares, and have an interval
SHARES = (
    "identified",
    "covered",
    "covered-if-identified",
    "within-5-percent",
    "within-5-percent-if-stated",
    "refused",
    "reached",
    "reached-loss",
)
ACROSS = 5  #: settings that fit beside each other; more go down, if they are more than the methods
ENDS = ("-low", "-high")  #: of a metric's interval, as metrics of their own
DIAGNOSTIC = "diagnostic"  #: how settings begin that compare nobody
NEAR = " ≈"  #: after a figure within one spread of the best


@dataclass(frozen=True)
class Cell:
    """One figure as text."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Grid:
    """A table that only has to be drawn; without columns it is the line `title`."""

    metric: str
    title: str
    corner: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, tuple[Cell, ...]], ...] = ()


def metrics_of(results: Results) -> list[str]:
    """The metrics in a table's order: accuracies first, the one with the wider threshold ahead; no interval ends."""
    found = _unique(r.metric for r in results.rows)
    shown = [m for m in found if not any(m.endswith(end) and m.removesuffix(end) in found for end in ENDS)]
    return sorted(shown, key=lambda m: (not m.startswith("accuracy"), m != "accuracy@0.1"))


def grids(results: Results, *, metrics: Sequence[str] | None = None) -> list[Grid]:
    """The tables of these metrics, all of them unless told."""
    known = metrics_of(results)
    unknown = [m for m in metrics or () if m not in known]
    if unknown:
        raise CaromError(f"results '{results.name}' have no metric '{unknown[0]}'; known: {', '.join(known)}")
    cells = _cells(results)
    tables: list[Grid] = []
    alone: list[Row] = []
    for metric in metrics or known:
        rows = [r for r in results.rows if r.metric == metric and f"ratio-to-{r.method}" != metric]
        if len({r.method for r in rows}) == 1 and len(rows) > 1:
            alone += rows
        else:
            tables += _by_method(rows, cells)
    return [*tables, *_together(alone, cells)]


def markdown_table(results: Results, *, metrics: Sequence[str] | None = None) -> str:
    """The tables as Markdown; the best mean of each setting is bold."""
    parts = []
    for grid in grids(results, metrics=metrics):
        lines = [grid.title]
        if grid.columns:
            lines += [
                "",
                f"| {grid.corner} | " + " | ".join(grid.columns) + " |",
                "|---|" + "---:|" * len(grid.columns),
            ]
        for name, cells in grid.rows:
            lines.append(f"| {name} | " + " | ".join(f"**{c.text}**" if c.best else c.text for c in cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def rich_tables(results: Results) -> list[Table | str]:
    """The same tables for the terminal."""
    found: list[Table | str] = []
    for grid in grids(results):
        title = f"{results.name}: {grid.title}".replace("[", r"\[")
        if not grid.columns:
            found.append(title)
            continue
        table = Table(title=title, title_justify="left")
        table.add_column(grid.corner)
        for column in grid.columns:
            table.add_column(column, justify="right")
        for name, cells in grid.rows:
            texts = (c.text.replace("[", r"\[") for c in cells)
            table.add_row(name, *(f"[bold]{t}[/bold]" if c.best else t for t, c in zip(texts, cells, strict=True)))
        found.append(table)
    return found


def number(value: float) -> str:
    """A figure with two decimals, more if it is small, none if it is large.

    >>> [number(v) for v in (0.934, 0.0123, 12.34, 5321.0, float("nan"))]
    ['0.93', '0.012', '12.3', '5,321', '–']
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:#.2g}"


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _key(row: Row) -> tuple[str, str, str]:
    return row.setting, row.method, row.metric


def _better(metric: str) -> str:
    """Which way is better: 'higher', 'lower', or '' where it is a matter of opinion."""
    if metric.startswith(("accuracy", "success", "subgoal", "speedup", "ratio-to")) or "per-second" in metric:
        return "higher"
    lower = ("plan-seconds", "evaluations", "training-seconds")
    return "lower" if "error" in metric or metric.startswith(lower) else ""


def _cells(results: Results) -> dict[tuple[str, str, str], Cell]:
    """The figures as text, the best mean among the methods of each setting marked."""
    rows = {_key(r): r for r in results.rows}
    cells = {key: Cell(_text(row, rows)) for key, row in rows.items()}
    for metric in metrics_of(results):
        sign = {"higher": -1.0, "lower": 1.0}.get(_better(metric))
        for setting in _unique(r.setting for r in results.rows):
            group = [r for r in rows.values() if (r.metric, r.setting) == (metric, setting) and math.isfinite(r.mean)]
            if sign is None or len(group) < 2 or setting.startswith(DIAGNOSTIC):
                continue
            best = min(group, key=lambda r: sign * r.mean)
            for r in group:
                text = cells[_key(r)].text
                if number(r.mean) == number(best.mean):
                    cells[_key(r)] = Cell(text, best=True)
                elif "[" not in text and within_one_spread(r, best):
                    cells[_key(r)] = Cell(text + NEAR)
    return cells


def within_one_spread(one: Row, other: Row) -> bool:
    """Whether two means differ by no more than the larger of their standard deviations, where there is one."""
    spreads = [r.sd for r in (one, other) if math.isfinite(r.sd)]
    return bool(spreads) and abs(one.mean - other.mean) <= max(spreads)


def _text(row: Row, rows: Mapping[tuple[str, str, str], Row]) -> str:
    """The mean with its interval where it has one, else with its sd."""
    ends = _interval(row, rows)
    if ends is not None:
        return f"{row.mean:.2f} [{ends[0]:.2f}, {ends[1]:.2f}]"
    return with_spread(row)


def with_spread(row: Row) -> str:
    """The mean with its sd, where it has one, with as many decimals as the mean."""
    text = number(row.mean)
    if not (math.isfinite(row.sd) and math.isfinite(row.mean)) or "e" in text:
        return text
    return f"{text} ± {row.sd:,.{len(text.partition('.')[2])}f}"


def _interval(row: Row, rows: Mapping[tuple[str, str, str], Row]) -> tuple[float, float] | None:
    """The 95 % interval of a rate: as the benchmark states it, or Wilson's for a share of `n` trials."""
    low, high = (rows.get((row.setting, row.method, row.metric + end)) for end in ENDS)
    if low is not None and high is not None:
        return low.mean, high.mean
    if row.metric in SHARES and row.n > 1:
        from scipy.stats import binomtest

        ends = binomtest(round(row.mean * row.n), row.n).proportion_ci(0.95, method="wilson")
        return float(ends.low), float(ends.high)
    return None


def _title(name: str, rows: Sequence[Row], texts: Iterable[str]) -> str:
    """A table's name, how its figures spread, and which way is better."""
    counts, texts = sorted({r.n for r in rows}), list(texts)
    words = " or ".join(w for w, sign in (("± sd", "±"), ("[95 % interval]", "[")) if any(sign in t for t in texts))
    alike = "; ≈ within one sd of the best" if any(t.endswith(NEAR) for t in texts) else ""
    count = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    ways = {_better(r.metric) for r in rows}
    way = ways.pop() if len(ways) == 1 else ""
    return f"{name} ({f'mean {words}, ' if words else ''}{count}{f'; {way} is better' if way else ''}{alike})"


def _line(rows: Sequence[Row], text: str) -> Grid:
    """One figure, or one that is the same for all methods and settings of a table."""
    methods, settings = (
        "; ".join(_unique(names)) for names in zip(*((r.method, r.setting) for r in rows), strict=True)
    )
    return Grid(rows[0].metric, _title(f"`{rows[0].metric}` ({methods}; {settings}): {text}", rows, [text]))


def _by_method(rows: Sequence[Row], cells: Mapping[tuple[str, str, str], Cell]) -> list[Grid]:
    """One metric's tables: settings that were tried with the same methods stand together."""
    metric = rows[0].metric
    groups: dict[frozenset[str], list[str]] = {}
    for setting in _unique(r.setting for r in rows):
        groups.setdefault(frozenset(r.method for r in rows if r.setting == setting), []).append(setting)
    found = []
    for methods, settings in groups.items():
        own = [r for r in rows if r.setting in settings]
        names = [m for m in _unique(r.method for r in rows) if m in methods]
        texts = {cells[_key(r)].text for r in own}
        title = _title(f"`{metric}`", own, texts)
        if len(texts) == 1:
            found.append(_line(own, texts.pop()))
        elif len(settings) > max(ACROSS, len(names)):
            lines = tuple((s, tuple(cells[s, m, metric] for m in names)) for s in settings)
            found.append(Grid(metric, title, "setting", tuple(names), lines))
        else:
            lines = tuple((m, tuple(cells[s, m, metric] for s in settings)) for m in names)
            found.append(Grid(metric, title, "method", tuple(settings), lines))
    return found


def _together(rows: Sequence[Row], cells: Mapping[tuple[str, str, str], Cell]) -> list[Grid]:
    """One table for all metrics that only one method has: settings down, metrics across."""
    if not rows:
        return []
    columns = list(dict.fromkeys((r.method, r.metric) for r in rows))
    methods = _unique(r.method for r in rows)
    lines = tuple(
        (s, tuple(cells.get((s, method, metric), Cell("–")) for method, metric in columns))
        for s in _unique(r.setting for r in rows)
    )
    title = _title(f"`{'`, `'.join(methods)}`", rows, (cells[_key(r)].text for r in rows))
    names = tuple(metric if len(methods) == 1 else f"{metric}, {method}" for method, metric in columns)
    return [Grid(columns[0][1], title, "setting", names, lines)]
