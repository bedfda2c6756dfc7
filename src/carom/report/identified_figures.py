"""Figures of an identification from whole trajectories: errors before and after, motions, correlations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from carom.core.errors import CaromError
from carom.identify.tosses.recorded import Motions, frame_errors, trajectory_errors
from carom.report.style import GREY, INK, ORANGE, SOFT, styled
from carom.state import Array, Motion

SHOWN = 4  #: recordings whose motion is drawn, from the best to the worst
NAMED = 24  #: recordings up to which bars carry their names
#: label, colour and width of a line: what was measured is dark, what was predicted orange
REAL, BEFORE, AFTER = ("real", INK, 2.6), ("before", GREY, 1.6), ("after", ORANGE, 1.8)
PLACES = {1: ("the only one",), 2: ("best", "worst"), 3: ("best", "median", "worst")}


def errors_of(motions: Motions, motion: Motion) -> tuple[Array, Array]:
    """Position [N] in percent of the width and rotation [N] in degrees."""
    position, angle = trajectory_errors(motions, motion)
    return 100 * position[0], np.degrees(angle[0])


def error_pairs(motions: Motions, after: Motion, before: Motion) -> Any:
    """Position and rotation error of every recording, before and after, with the means: Fig. 4 of the paper."""
    measured = bool(np.isfinite(motions.quaternion).any())
    figure = make_subplots(rows=2 if measured else 1, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    old, new = errors_of(motions, before), errors_of(motions, after)
    order = np.argsort(new[0] / 100 + np.radians(new[1]), kind="stable")
    names = [Path(motions.names[i]).stem for i in order]
    titles = ("position error [% of width]", "rotation error [deg]")
    for row, title in enumerate(titles[: 2 if measured else 1], start=1):
        for (label, colour, _), values in ((BEFORE, old[row - 1]), (AFTER, new[row - 1])):
            figure.add_bar(
                x=names,
                y=values[order],
                name=label,
                legendgroup=label,
                showlegend=row == 1,
                row=row,
                col=1,
                marker={"color": colour},
                hovertemplate=f"%{{x}}, {label}: %{{y:.3g}}<extra></extra>",
            )
            mean = float(values.mean())
            figure.add_hline(y=mean, line={"color": colour, "width": 1.6, "dash": "dot"}, row=row, col=1)
            figure.add_annotation(
                x=1,
                xref="x domain" if row == 1 else f"x{row} domain",
                y=mean,
                yref="y" if row == 1 else f"y{row}",
                text=f"mean {mean:.3g}",
                showarrow=False,
                xanchor="left",
                xshift=6,
                font={"size": 12, "color": SOFT},
            )
        figure.update_yaxes(title_text=title, rangemode="tozero", row=row, col=1)
    styled(figure, 560 if measured else 330, barmode="group", margin={"l": 70, "r": 95, "t": 40, "b": 60})
    figure.update_xaxes(type="category", showticklabels=False, showgrid=False, ticks="")
    rows = 2 if measured else 1
    return figure.update_xaxes(title_text="recording", showticklabels=len(names) <= NAMED, row=rows, col=1)


def motion_rows(motions: Motions, after: Motion, before: Motion) -> Any:
    """Height, path from above and angle error of the best, middling and worst recordings: Fig. 5 of the paper."""
    position, rotation = errors_of(motions, after)
    order = np.argsort(position / 100 + np.radians(rotation), kind="stable")
    count = min(SHOWN, len(motions))
    rows = order[np.unique(np.linspace(0, len(order) - 1, count).round().astype(int))]
    places = PLACES.get(len(rows), ("best", *("in between",) * (len(rows) - 2), "worst"))
    figure = make_subplots(rows=len(rows), cols=3, horizontal_spacing=0.09, vertical_spacing=0.34 / len(rows))
    for at, (row, place) in enumerate(zip(rows, places, strict=True), start=1):
        _motion_row(figure, at, int(row), motions, after, before)
        text = f"<b>{place}</b>: {Path(motions.names[row]).stem}, {position[row]:.1f} % of width, {rotation[row]:.1f}°"
        axis = figure.get_subplot(at, 1).xaxis.plotly_name.replace("axis", "")
        figure.add_annotation(
            text=text,
            x=0,
            xref=f"{axis} domain",
            y=1,
            yref=f"{axis.replace('x', 'y')} domain",
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            yshift=4,
        )
    return styled(
        figure, 90 + 300 * len(rows), margin={"l": 60, "r": 20, "t": 70, "b": 50}, legend_y=1 + 0.09 / len(rows)
    )


def _motion_row(figure: Any, at: int, row: int, motions: Motions, after: Motion, before: Motion) -> None:
    body = _mover(motions, row)
    seen: Any = np.isfinite(motions.position[row, :, body]).all(axis=-1)
    last = int(np.flatnonzero(seen)[-1]) + 1
    time = motions.period * np.arange(last)
    planar = motions.scene.planar
    paths = (
        (REAL, motions.position[row, :last, body]),
        (BEFORE, before.position[row, :last, body]),
        (AFTER, after.position[row, :last, body]),
    )
    for (label, colour, width), path in paths:
        look: dict[str, Any] = {"mode": "lines", "name": label, "legendgroup": label}
        look |= {"line": {"color": colour, "width": width, "dash": "solid" if label != "after" else "dash"}}
        rise = np.linalg.norm(path[:, :2] - paths[0][1][seen[:last]][0, :2], axis=-1) if planar else path[:, 2]
        figure.add_scatter(x=time, y=rise, showlegend=at == 1, row=at, col=1, **look)
        figure.add_scatter(x=path[:, 0], y=path[:, 1], showlegend=False, row=at, col=2, **look)
    for (label, colour, width), motion in ((BEFORE, before), (AFTER, after)):
        angle = np.degrees(frame_errors(motions, motion)[1][0, row, :last, body])
        line = {"color": colour, "width": width, "dash": "solid" if label != "after" else "dash"}
        figure.add_scatter(
            x=time, y=angle, mode="lines", line=line, name=label, legendgroup=label, showlegend=False, row=at, col=3
        )
    figure.update_xaxes(title_text="time [s]", title_standoff=2, row=at, col=1)
    figure.update_yaxes(title_text="way travelled [m]" if planar else "height [m]", row=at, col=1)
    figure.update_xaxes(title_text="x [m]", title_standoff=2, row=at, col=2)
    anchor = figure.get_subplot(at, 2).xaxis.plotly_name.replace("axis", "")
    figure.update_yaxes(title_text="y [m]", title_standoff=2, scaleanchor=anchor, scaleratio=1, row=at, col=2)
    figure.update_xaxes(title_text="time [s]", title_standoff=2, row=at, col=3)
    figure.update_yaxes(title_text="angle error [deg]", title_standoff=2, rangemode="tozero", row=at, col=3)


def _mover(motions: Motions, row: int) -> int:
    """The body that goes farthest in a recording: the one to look at."""
    path = motions.position[row]
    way = np.nanmax(path, axis=0) - np.nanmin(path, axis=0)
    return int(np.nanargmax(np.linalg.norm(way, axis=-1)))


def correlation_map(names: Sequence[str], matrix: Sequence[Sequence[float]]) -> Any:
    """Heat map of the correlations [A, A] of parameters, each number in its cell."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.shape != (len(names), len(names)):
        raise CaromError(f"correlations: expected a square matrix for {len(names)} parameters, got {values.shape}")
    labels = [n.replace("_", " ") for n in names]
    below = np.where(np.triu(np.ones_like(values), 1) > 0, np.nan, values)
    text = np.where(np.isfinite(below), np.char.mod("%.2f", np.nan_to_num(below)), "")
    heat = go.Heatmap(
        x=labels,
        y=labels,
        z=below,
        text=text,
        texttemplate="%{text}",
        zmin=-1,
        zmax=1,
        xgap=2,
        ygap=2,
        colorscale=[[0.0, "#d55e00"], [0.5, "#f7f8fa"], [1.0, "#0072b2"]],
        hoverongaps=False,
        colorbar={"title": "correlation", "thickness": 12, "tickvals": [-1, -0.5, 0, 0.5, 1]},
        hovertemplate="%{y}, %{x}: %{z:.2f}<extra></extra>",
    )
    side = 42 * len(names)
    figure = styled(go.Figure(heat), side + 100, margin={"l": 140, "r": 20, "t": 20, "b": 80}, plot_bgcolor="white")
    figure.update_xaxes(showgrid=False, ticks="", tickangle=-35)
    return figure.update_yaxes(showgrid=False, ticks="", autorange="reversed", automargin=True)
