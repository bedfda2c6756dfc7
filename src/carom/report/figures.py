"""The report's figures: what was predicted against what came, what was identified, how training went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from carom.compare.metrics import relative_error
from carom.core.errors import CaromError
from carom.identify.result import Estimate
from carom.report.style import BLUE, CYCLE, GREEN, GREY, INK, LINE, ORANGE, RED, SKY, SOFT, faint, styled
from carom.state import Array

NINETY = 1.6449  #: half width of a central 90 % interval, in standard deviations
ALPHA = 0.1  #: relative error below which a prediction counts as right (Eq. 4)


class ParameterInterval(TypedDict):
    """One parameter as `parameter_intervals` draws it."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    bound_low: float
    bound_high: float
    verdict: str
    log: NotRequired[bool]  #: drawn on a logarithmic scale, as it was searched


def interval_of(estimate: Estimate, *, log: bool = False) -> ParameterInterval:
    """An identified parameter as `parameter_intervals` draws it."""
    e, (low, high) = estimate, estimate.bounds
    row: ParameterInterval = {
        "name": e.name,
        "value": e.value,
        "low": e.low,
        "high": e.high,
        "unit": e.unit,
        "bound_low": low,
        "bound_high": high,
        "verdict": e.verdict,
        "log": log,
    }
    return row


def impact_scatter(
    measured: ArrayLike, predicted: ArrayLike, predicted_std: ArrayLike, k: float, names: Sequence[str]
) -> Any:
    """Predicted against measured (vx, vy, k*wz) [N, 3], with 90 % intervals; `k` is the radius of gyration [m].

    Points are coloured by the relative error of their whole strike, the one that accuracy counts. The band is 10 % of
    the median outcome wide either side: where most points that count as right lie.
    """
    m, p, std = (np.asarray(a, dtype=np.float64) for a in (measured, predicted, predicted_std))
    error = relative_error(p, m, k)
    if len(names) != len(m) or std.shape != m.shape:
        raise CaromError(f"expected {len(m)} names and standard deviations {m.shape}, got {len(names)} and {std.shape}")
    scale = np.array([1.0, 1.0, k])
    m, p, std = m * scale, p * scale, std * scale
    half = ALPHA * float(np.median(np.linalg.norm(m, axis=1)))
    figure = make_subplots(rows=1, cols=3, horizontal_spacing=0.09)
    groups = (("relative error below 10 %", error < ALPHA, BLUE), ("10 % or more", error >= ALPHA, RED))
    for column, axis in enumerate(("vx", "vy", "k·wz")):
        ends = _limits(m[:, column], p[:, column])
        _band(figure, ends, half, column + 1)
        for label, rows, colour in groups:
            hover = [f"{n}<br>relative error {e:.1%}" for n, e, r in zip(names, error, rows, strict=True) if r]
            figure.add_scatter(
                x=m[rows, column],
                y=p[rows, column],
                row=1,
                col=column + 1,
                mode="markers",
                name=label,
                legendgroup=label,
                showlegend=column == 0,
                text=hover,
                hovertemplate="%{text}<br>measured %{x:.3f}, predicted %{y:.3f} m/s",
                marker={"size": 6, "color": colour, "opacity": 0.85},
                error_y={"array": NINETY * std[rows, column], "thickness": 1, "width": 0, "color": faint(colour)},
            )
        figure.update_xaxes(title_text=f"measured {axis} [m/s]", range=ends, row=1, col=column + 1)
        figure.update_yaxes(title_text=f"predicted {axis} [m/s]", title_standoff=4, range=ends, row=1, col=column + 1)
    return styled(figure, 390)


def _limits(a: Array, b: Array) -> list[float]:
    """A common range for both axes, with some air."""
    finite = np.concatenate([a, b])
    finite = finite[np.isfinite(finite)]
    low, high = float(finite.min()), float(finite.max())
    air = 0.08 * max(high - low, 1e-3)
    return [low - air, high + air]


def _band(figure: Any, ends: Sequence[float], half: float, column: int) -> None:
    low, high = ends
    where = {"row": 1, "col": column}
    _lines(
        figure,
        [low, high, high, low],
        [low - half, high - half, high + half, low + half],
        {"width": 0},
        **where,
        fill="toself",
        fillcolor="rgba(0,114,178,0.09)",
        name="±10 % of the median outcome",
        legendgroup="band",
        showlegend=column == 1,
    )
    _lines(figure, [low, high], [low, high], {"color": GREY, "width": 1}, **where)


def _lines(figure: Any, x: Any, y: Any, line: Mapping[str, Any], **more: Any) -> None:
    """Lines that say nothing when pointed at, and are not in the legend unless told."""
    figure.add_scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", **{"showlegend": False, **more})


def error_bars(methods: Sequence[str], mean: ArrayLike, sd: ArrayLike, metric: str, *, highlight: str = "carom") -> Any:
    """Horizontal bars, one per method in the order given, with the spread over draws; `highlight` stands out."""
    means, spreads = np.asarray(mean, dtype=np.float64), np.nan_to_num(np.asarray(sd, dtype=np.float64))
    if not (len(methods) == len(means) == len(spreads)):
        raise CaromError(f"expected mean and sd for {len(methods)} methods, got {len(means)} and {len(spreads)}")
    figure = go.Figure()
    figure.add_bar(
        x=means,
        y=list(methods),
        orientation="h",
        width=0.62,
        marker={"color": [BLUE if name == highlight else GREY for name in methods]},
        error_x={"array": spreads, "thickness": 1.2, "width": 4, "color": INK},
        hovertemplate="%{y}: %{x:.3f}<extra></extra>",
    )
    reach = float(np.nanmax(means + spreads, initial=0.0))
    for name, value, spread in zip(methods, means, spreads, strict=True):
        label = f"{value:.2f}" if np.isfinite(value) else "failed"
        at = float(value + spread) if np.isfinite(value) else 0.0
        figure.add_annotation(x=at, y=name, text=label, showarrow=False, xanchor="left", xshift=6)
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="")
    styled(figure, 90 + 30 * len(methods), showlegend=False, margin={"l": 120, "r": 20, "t": 10, "b": 50})
    unit = "share of strikes, 0 to 1" if metric.startswith("accuracy") else "1" if "relative" in metric else ""
    figure.update_xaxes(title_text=f"{metric} [{unit}]" if unit else metric, range=[0, 1.12 * reach or 1.0])
    return figure.update_yaxes(ticks="", automargin=True)


def parameter_intervals(parameters: Sequence[ParameterInterval]) -> Any:
    """Where each parameter was found within its bounds, its 90 % interval, and the verdict on it.

    Parameters have different units, so each one is drawn as a share of its own range; the values stand beside it.
    """
    figure = go.Figure()
    seen: set[str] = set()
    labels = []
    for p in parameters:
        low, value, high = (_share(p, v) for v in (p["low"], p["value"], p["high"]))
        colour = _verdict_colour(p["verdict"])
        unit = "" if p["unit"] in ("", "1") else f" {p['unit']}"
        text = f"{p['value']:.3g}{unit}  [{p['low']:.3g}, {p['high']:.3g}]"
        label = p["name"].replace("_", " ")
        labels.append(label)
        bounds = f"{p['bound_low']:.3g} to {p['bound_high']:.3g}"
        _lines(figure, [0, 1], [label, label], {"color": LINE, "width": 9})
        _lines(figure, [low, high], [label, label], {"color": faint(colour), "width": 9})
        figure.add_scatter(
            x=[value],
            y=[label],
            mode="markers",
            marker={"color": colour, "size": 11, "line": {"color": "white", "width": 1.5}},
            name=p["verdict"],
            legendgroup=p["verdict"],
            showlegend=p["verdict"] not in seen,
            hovertemplate=f"{label}: {text}<br>bounds {bounds}<extra>{p['verdict']}</extra>",
        )
        seen.add(p["verdict"])
        figure.add_annotation(
            x=1.02, xref="paper", y=label, text=text, showarrow=False, xanchor="left", font={"size": 12, "color": SOFT}
        )
    styled(figure, 100 + 34 * len(parameters), margin={"l": 150, "r": 230, "t": 40, "b": 50})
    figure.update_xaxes(
        title_text="place within the bounds [share of their range; logarithmic where searched so]",
        range=[-0.02, 1.02],
        tickvals=[0, 0.25, 0.5, 0.75, 1],
        ticktext=["lower bound", "0.25", "0.5", "0.75", "upper bound"],
    )
    return figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", automargin=True, categoryarray=labels)


def _share(p: ParameterInterval, value: float) -> float:
    """A value as a share of its parameter's range, cut at its bounds."""
    low, high = p["bound_low"], p["bound_high"]
    if not low < high:
        raise CaromError(f"parameter '{p['name']}': bounds must be two numbers, lower first, got {low} and {high}")
    if p.get("log", False):
        low, high, value = float(np.log(low)), float(np.log(high)), float(np.log(max(value, low)))
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


def _verdict_colour(verdict: str) -> str:
    """Blue for what was identified, light if weakly; orange on a bound, dark grey for what cannot be seen."""
    if verdict.startswith("not"):
        return SOFT
    if "bound" in verdict:
        return ORANGE
    return {"identified": BLUE, "weakly identified": SKY, "given": GREEN}.get(verdict, BLUE)


def training_curves(curves: Mapping[str, Sequence[tuple[int, float, float]]]) -> Any:
    """Loss of each network while it trained: (step, training, held-out). Held-out is the solid line."""
    figure = go.Figure()
    for index, (name, curve) in enumerate(curves.items()):
        step, train, held = np.asarray(curve, dtype=np.float64).reshape(-1, 3).T
        colour = CYCLE[index % len(CYCLE)]
        figure.add_scatter(
            x=step, y=train, mode="lines", name=f"{name}, training", line={"color": colour, "width": 1, "dash": "dot"}
        )
        figure.add_scatter(x=step, y=held, mode="lines", name=f"{name}, held out", line={"color": colour, "width": 2.2})
    styled(figure, 380, margin={"l": 80, "r": 20, "t": 40, "b": 50})
    figure.update_xaxes(title_text="training step [1]", rangemode="tozero")
    return figure.update_yaxes(
        title_text="mean squared error, scaled [1]",
        type="log",
        exponentformat="power",
        dtick=1,
        minor={"ticks": "outside"},
    )


def strike_map(
    outline: ArrayLike,
    points: ArrayLike,
    velocity_before: ArrayLike,
    measured: ArrayLike,
    predicted: ArrayLike,
    *,
    most: int = 30,
) -> Any:
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
    figure = go.Figure()
    closed = np.vstack([corners, corners[:1]])
    _lines(figure, closed[:, 0], closed[:, 1], {"color": SOFT, "width": 1.5}, fill="toself", fillcolor="#eef1f4")
    _arrows(figure, at - reach * before, at, "striker before", GREY, 1.2)
    _arrows(figure, at, at + reach * came, "target after, measured", INK, 2.4)
    _arrows(figure, at, at + reach * said, "target after, predicted", ORANGE, 1.6)
    shown = f"{len(chosen)} of {total} strikes; " if len(chosen) < total else ""
    note = f"{shown}arrows: {reach:.2g} m for 1 m/s"
    styled(figure, 560)
    figure.update_xaxes(title_text=f"x in the block's frame [m] ({note})", zeroline=False)
    return figure.update_yaxes(title_text="y in the block's frame [m]", zeroline=False, scaleanchor="x", scaleratio=1)


def _arrows(figure: Any, start: Array, end: Array, name: str, colour: str, width: float) -> None:
    """All arrows of one kind as one trace: line, head, gap."""
    gap = np.full(len(start), np.nan)
    x, y = (np.column_stack([start[:, i], end[:, i], gap]).ravel() for i in (0, 1))
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines+markers",
        name=name,
        line={"color": colour, "width": width},
        marker={
            "symbol": "arrow",
            "angleref": "previous",
            "size": [0, 9, 0] * len(start),
            "color": colour,
            "opacity": 1,
            "line": {"width": 0},
        },
        hoverinfo="skip",
    )
