"""The report's figures: what was predicted against what came, what was identified, how training went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from carom.compare.metrics import relative_error
from carom.core.errors import CaromError
from carom.identify.result import Estimate
from carom.report.chart import Arrows, Cells, Chart, Data, Line, Mark, Panel, Points, Row, Rows, Span
from carom.report.style import BLUE, CYCLE, GREEN, GREY, INK, ORANGE, RED, SKY, SOFT, faint
from carom.scenes.parameters import PARAMETERS
from carom.state import Array

NINETY = 1.6449  #: half width of a central 90 % interval, in standard deviations
ALPHA = 0.1  #: relative error below which a prediction counts as right (Eq. 4)
AXES = ("vx", "vy", "k·wz")  #: of an outcome; spin as the speed of a point at the radius of gyration
WIDE = 250.0  #: height of axes that are to be nearly square [px]


def impact_scatter(
    measured: ArrayLike, predicted: ArrayLike, predicted_std: ArrayLike | None, k: float, names: Sequence[str]
) -> Chart:
    """Predicted against measured (vx, vy, k*wz) [N, 3], with 90 % intervals; `k` is the radius of gyration [m].

    Points are coloured by the relative error of their whole strike, the one that accuracy counts. The band is 10 % of
    the median outcome wide either side: where most points that count as right lie. `predicted_std` is None where a
    method states no uncertainty.
    """
    m, p = (np.asarray(a, dtype=np.float64) for a in (measured, predicted))
    std = np.full_like(m, np.nan) if predicted_std is None else np.asarray(predicted_std, dtype=np.float64)
    error = relative_error(p, m, k)
    if len(names) != len(m) or std.shape != m.shape:
        raise CaromError(f"expected {len(m)} names and standard deviations {m.shape}, got {len(names)} and {std.shape}")
    scale = np.array([1.0, 1.0, k])
    m, p, std = m * scale, p * scale, std * scale
    half = ALPHA * float(np.median(np.linalg.norm(m, axis=1)))
    groups = (("relative error below 10 %", error < ALPHA, BLUE), ("10 % or more", error >= ALPHA, RED))
    panels = []
    for i, axis in enumerate(AXES):
        ends = _limits(m[:, i], p[:, i])
        marks: list[Mark] = [*_band(ends, half)]
        for label, rows, colour in groups:
            hints = [f"{n}: relative error {100 * e:.1f} %" for n, e, r in zip(names, error, rows, strict=True) if r]
            bars = NINETY * std[rows, i]
            marks.append(Points(m[rows, i], p[rows, i], colour, label, labels=hints, error=bars))
        panels.append(
            Panel(f"measured {axis} [m/s]", f"predicted {axis} [m/s]", tuple(marks), axis, ends, ends, height=WIDE)
        )
    columns = [f"{what} {axis} [m/s]" for what in ("measured", "predicted", "standard deviation") for axis in AXES]
    table = np.column_stack([m, p, std, error])
    data: tuple[Cells, ...] = tuple((name, *map(float, row)) for name, row in zip(names, table, strict=True))
    return Chart(tuple(panels), Data(("recording", *columns, "relative error [1]"), data))


def _limits(a: Array, b: Array) -> tuple[float, float]:
    """A common range for both axes, with some air."""
    finite = np.concatenate([a, b])
    finite = finite[np.isfinite(finite)]
    low, high = float(finite.min()), float(finite.max())
    air = 0.08 * max(high - low, 1e-3)
    return low - air, high + air


def _band(ends: tuple[float, float], half: float) -> tuple[Line, Line]:
    low, high = ends
    x, y = [low, high, high, low], [low - half, high - half, high + half, low + half]
    band = Line(x, y, BLUE, "±10 % of the median outcome", width=0, fill="rgba(0,114,178,0.1)", axis=True)
    return band, Line([low, high], [low, high], GREY, width=1, axis=True)


def error_bars(
    methods: Sequence[str], mean: ArrayLike, sd: ArrayLike, metric: str, *, highlight: str = "carom"
) -> Rows:
    """Horizontal bars, one per method in the order given, with the spread over draws; `highlight` stands out."""
    means, spreads = np.asarray(mean, dtype=np.float64), np.nan_to_num(np.asarray(sd, dtype=np.float64))
    if not (len(methods) == len(means) == len(spreads)):
        raise CaromError(f"expected mean and sd for {len(methods)} methods, got {len(means)} and {len(spreads)}")
    shares = metric.startswith("accuracy")
    reach = 1.0 if shares else float(np.nanmax(means + spreads, initial=0.0)) or 1.0
    rows = []
    for name, value, spread in zip(methods, means, spreads, strict=True):
        colour = BLUE if name == highlight else GREY
        end = float(value) / reach if np.isfinite(value) else 0.0
        spans = [Span(0.0, end, colour)]
        if spread > 0:
            low, high = (float(np.clip((value + side * spread) / reach, 0.0, 1.0)) for side in (-1, 1))
            spans.append(Span(low, high, INK, thin=True))
        said = (f"{value:.2f} ± {spread:.2f}" if spread > 0 else f"{value:.2f}") if np.isfinite(value) else "failed"
        rows.append(Row(name, said, tuple(spans), strong=name == highlight))
    data = tuple((n, float(m), float(s)) for n, m, s in zip(methods, means, np.asarray(sd, dtype=float), strict=True))
    axis = ("0", f"{metric} [share of strikes]" if shares else metric, f"{reach:.3g}")
    return Rows(tuple(rows), axis, Data(("method", metric, "standard deviation"), data))


def parameter_intervals(estimates: Sequence[Estimate]) -> Rows:
    """Where each parameter was found within its bounds, its 90 % interval, and the verdict on it.

    Parameters have different units, so each one is drawn as a share of its own range, logarithmic where it was searched
    so; the values stand beside it.
    """
    rows: list[Row] = []
    data: list[Cells] = []
    for e in estimates:
        low, value, high = (_share(e, v) for v in (e.low, e.value, e.high))
        colour = _verdict_colour(e.verdict)
        unit = "" if e.unit in ("", "1") else f" {e.unit}"
        text = f"{brief(e.value)}{unit} [{brief(e.low)}, {brief(e.high)}]"
        span = () if np.isnan(low + high) else (Span(low, high, faint(colour)),)
        rows.append(Row(e.name.replace("_", " "), text, span, value, colour, e.verdict))
        data.append((e.name, e.unit, *map(float, (e.value, e.low, e.high, *e.bounds)), e.verdict))
    columns = ("parameter", "unit", "value", "low (90 %)", "high (90 %)", "lower bound", "upper bound", "verdict")
    return Rows(tuple(rows), ("lower bound", "upper bound"), Data(columns, tuple(data)))


def brief(value: float) -> str:
    """Three digits, without a power of ten where a person would not write one.

    >>> brief(51657.9), brief(0.15352), brief(2e-6), brief(float("nan"))
    ('51700', '0.154', '2e-06', '–')
    """
    if not np.isfinite(value):
        return "–" if np.isnan(value) else f"{value}"
    if 1e3 <= abs(value) < 1e7:
        digits = 2 - int(np.floor(np.log10(abs(value))))
        return f"{round(value, digits):.0f}"
    return f"{value:.3g}"


def _share(estimate: Estimate, value: float) -> float:
    """A value as a share of its parameter's range, cut at its bounds."""
    low, high = estimate.bounds
    if not low < high:
        raise CaromError(f"parameter '{estimate.name}': bounds must be two numbers, lower first, got {low} and {high}")
    known = PARAMETERS.get(estimate.name)
    if known is not None and known.log and low > 0:
        low, high, value = float(np.log(low)), float(np.log(high)), float(np.log(max(value, low)))
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


def _verdict_colour(verdict: str) -> str:
    """Blue for what was identified, light if weakly; orange on a bound, dark grey for what cannot be seen."""
    if verdict.startswith("not"):
        return SOFT
    if "bound" in verdict:
        return ORANGE
    return {"identified": BLUE, "weakly identified": SKY, "given": GREEN}.get(verdict, BLUE)


def training_curves(curves: Mapping[str, Sequence[tuple[int, float, float]]]) -> Chart:
    """Loss of each network while it trained: (step, training, held-out). Held-out is the solid line."""
    marks, data = [], []
    for index, (name, curve) in enumerate(curves.items()):
        step, train, held = np.asarray(curve, dtype=np.float64).reshape(-1, 3).T
        colour = CYCLE[index % len(CYCLE)]
        marks.append(Line(step, train, colour, f"{name}, training", width=1.2, dash="2 3"))
        marks.append(Line(step, held, colour, f"{name}, held out", width=2.2))
        data += [(name, int(s), float(t), float(h)) for s, t, h in zip(step, train, held, strict=True)]
    panel = Panel("training step", "mean squared error, scaled [1]", tuple(marks), log_y=True)
    return Chart((panel,), Data(("network", "step", "training loss [1]", "held-out loss [1]"), tuple(data)))


def strike_map(
    outline: ArrayLike,
    points: ArrayLike,
    velocity_before: ArrayLike,
    measured: ArrayLike,
    predicted: ArrayLike,
    *,
    most: int = 30,
) -> Chart:
    """Strikes drawn around the block's outline [V, 2], all in its frame: arrows [N, 2] at the points touched [N, 2].

    `velocity_before` is the striker's and ends at the point; `measured` and `predicted` are the target's and start
    there. Of more than `most` strikes, evenly chosen ones are shown.
    """
    corners = np.asarray(outline, dtype=np.float64)
    arrays = [np.asarray(a, dtype=np.float64) for a in (points, velocity_before, measured, predicted)]
    if len({a.shape for a in arrays}) != 1 or arrays[0].ndim != 2 or arrays[0].shape[1] != 2:
        raise CaromError(f"expected four arrays of shape (N, 2), got {', '.join(str(a.shape) for a in arrays)}")
    total = len(arrays[0])
    chosen = np.unique(np.linspace(0, total - 1, min(most, total)).round().astype(int))
    at, before, came, said = (a[chosen] for a in arrays)
    size = float(np.ptp(corners, axis=0).max())
    speed = max(float(np.nanmax(np.linalg.norm(a, axis=1), initial=1e-9)) for a in (before, came, said))
    reach = 0.4 * size / speed  # metres of arrow for one m/s: the longest spans two fifths of the block
    closed = np.vstack([corners, corners[:1]])
    marks = (
        Line(closed[:, 0], closed[:, 1], SOFT, width=1.5, fill="#eef1f4"),
        Arrows(at - reach * before, at, GREY, "striker before", 1.2),
        Arrows(at, at + reach * came, INK, "target after, measured", 2.4),
        Arrows(at, at + reach * said, ORANGE, "target after, predicted", 1.4),
    )
    shown = f"{len(chosen)} of {total} strikes. " if len(chosen) < total else ""
    panel = Panel("x in the block's frame [m]", "y in the block's frame [m]", marks, equal=True)
    kinds = ("point", "striker before", "target measured", "target predicted")
    columns = [f"{kind} {axis} {'[m]' if kind == 'point' else '[m/s]'}" for kind in kinds for axis in "xy"]
    rows = tuple(tuple(float(v) for a in arrays for v in a[i]) for i in range(total))
    return Chart((panel,), Data(tuple(columns), rows), f"{shown}Arrows: {reach:.2g} m for 1 m/s.")
