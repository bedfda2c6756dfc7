"""The README's one table: Carom, a calibrated MuJoCo and the best published figure, from the results files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from carom.bench.results import Results, read
from carom.bench.tables import number, with_spread
from carom.bench.toss import ERRORS, PUBLISHED_FIT

SHAPES = ("semi-cylinder", "square", "triangle")
ROUTES = ("route-1", "route-2", "route-3")
#: Tables III, IV and VI of CLASH: a robot strikes the authors' blocks; searches run on their computer
CLASH_PLANNING = (0.0159, 0.0163, 0.0185)  #: [m] position error, by shape
CLASH_SECONDS = (15.81, 14.74, 13.21)  #: [s] of a search, by shape
CLASH_SUCCESS = (0.8, 0.5, 0.5)  #: success rate, by route
HEAD = "| | Carom | calibrated MuJoCo | best published |\n|---|---:|---:|---:|\n"


def summary(folder: Path) -> str:
    """The table, from the results in `folder`."""

    def means(name: str, metric: str, settings: Sequence[str], method: str) -> list[float]:
        return _means(read(folder / f"{name}.json"), metric, settings, method)

    def both(name: str, metric: str, settings: Sequence[str], write: Callable[[Iterable[float]], str]) -> list[str]:
        return [write(means(name, metric, settings, method)) for method in ("hybrid", "mujoco")]

    def tossed(method: str, setting: str = "fit-8") -> str:
        """Both errors with their spreads, where there are some: they are as large as some differences."""
        rows = {r.metric: r for r in read(folder / "toss.json").rows if (r.setting, r.method) == (setting, method)}
        position, rotation = (with_spread(rows[metric]) for metric in ERRORS)
        return f"{position} %, {rotation}°"

    hits = [means("robot-hits", "accuracy@0.1", ["D1", "D2"], m) for m in ("mujoco-grid", "mujoco-cma")]
    carom, clash = (means("robot-hits", "accuracy@0.1", ["D1", "D2"], m) for m in ("carom", "clash-paper"))
    timed = [f"{shape}, 2 threads" for shape in SHAPES]
    many = [f"{shape}, N = 10000" for shape in SHAPES]
    rows = (
        (
            "**Real strikes**: share predicted within 10 % after ten strikes, two boxes",
            *(_row(carom), _row(map(max, *hits)), f"{_row(clash)} [1]"),
        ),
        (
            "**Real tosses** of a cube: error on unseen tosses after eight (% of its width, rotation)",
            *(tossed("carom-cma"), tossed("mujoco-table-ii"), f"{tossed('published-drake', PUBLISHED_FIT)} [2]"),
        ),
        (
            "**Planning** on a stand-in: distance from the wanted place, semi-cylinder / square / triangle",
            *both("planning", "position-error-m", SHAPES, _millimetres),
            f"{_millimetres(CLASH_PLANNING)} [3]",
        ),
        (
            "**Policies** on a stand-in: success rate on routes 1 / 2 / 3",
            *both("routes", "success-rate", ROUTES, _rates),
            f"{_rates(CLASH_SUCCESS)} [3]",
        ),
        (
            "**Speed**: seconds to plan a strike, by shape",
            *both("planning-time", "plan-seconds", timed, _row),
            f"{_row(CLASH_SECONDS)} [3]",
        ),
        ("**Speed**: strikes per second, 10,000 at once", *both("speed", "strikes-per-second", many, _row), "–"),
    )
    return HEAD + "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _means(results: Results, metric: str, settings: Sequence[str], method: str) -> list[float]:
    found = {r.setting: r.mean for r in results.rows if (r.metric, r.method) == (metric, method)}
    return [found[setting] for setting in settings]


def _row(values: Iterable[float]) -> str:
    return " / ".join(map(number, values))


def _rates(values: Iterable[float]) -> str:
    return " / ".join(f"{v:.2f}" for v in values)


def _millimetres(values: Iterable[float]) -> str:
    return " / ".join(f"{1e3 * v:.0f}" for v in values) + " mm"
