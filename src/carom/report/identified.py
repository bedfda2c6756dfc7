"""The page of an identification from whole trajectories: errors before and after, motions, parameters, doubts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from carom.core.errors import CaromError
from carom.engines.mujoco.bodies import FreeMotion
from carom.identify.result import Identification
from carom.identify.tosses.recorded import Motions, frame_errors, trajectory_errors
from carom.report.figures import ParameterInterval, parameter_intervals
from carom.report.page import Figure, Section, Table, Text, write_report
from carom.report.style import GREY, INK, ORANGE, SOFT, styled
from carom.scenes.parameters import FREE, KNOWN
from carom.state import Array

SHOWN = 4  #: recordings whose motion is drawn, from the best to the worst
NAMED = 24  #: recordings up to which bars carry their names
#: label, colour and width of a line: what was measured is dark, what was predicted orange
REAL, BEFORE, AFTER = ("real", INK, 2.6), ("before", GREY, 1.6), ("after", ORANGE, 1.8)
PLACES = {1: ("the only one",), 2: ("best", "worst"), 3: ("best", "median", "worst")}


def identified_page(
    path: Path, identification: Identification, motions: Motions, after: FreeMotion, before: FreeMotion
) -> Path:
    """Write the page to `path`; `after` and `before` are every recording with the identified and default parameters."""
    for label, motion in (("after", after), ("before", before)):
        if motion.position.shape != motions.position.shape:
            what = f"{label}: expected one rollout of {motions.samples} samples for each of {len(motions)} recordings"
            raise CaromError(f"{what}, {motions.position.shape}; got {motion.position.shape}")
    sections: list[Section] = [
        _in_short(identification, motions, after, before),
        Figure(
            "Error before and after",
            error_pairs(motions, after, before),
            "Eq. 1 of the few-shot paper, its two terms apart: mean over time of the distance over the body's width, "
            "and of the angle between real and simulated. Recordings are in the order of their error after "
            "identification. Dotted: means. Before: the engine's default parameters.",
        ),
        Figure(
            "Real and simulated motion",
            motion_rows(motions, after, before),
            "Simulated from the state shortly before the first contact, without a look at what follows. Rows go from "
            "the best to the worst of the recordings after identification. Left to right: height over time, the path "
            "seen from above, the angle between real and simulated.",
        ),
        *_parameters(identification),
        *_doubts(identification),
        _facts(identification),
    ]
    title = f"Identified: {identification.scene}"
    subtitle = f"{len(motions)} recordings shown, {identification.method}, seed {identification.seed}"
    return write_report(path, sections, title=title, subtitle=subtitle)


def _in_short(identification: Identification, motions: Motions, after: FreeMotion, before: FreeMotion) -> Text:
    (p0, r0), (p1, r1) = (_errors(motions, m) for m in (before, after))
    first = (
        f"On {len(motions)} recordings the simulator was off by **{p0.mean():.1f} %** of the body's width and "
        f"**{r0.mean():.1f}°** with default parameters, and is by **{p1.mean():.1f} %** and **{r1.mean():.1f}°** with "
        f"those identified. {_seen(identification, motions)}"
    )
    paragraphs = [first]
    if (held := identification.held_out) is not None:
        paragraphs.append(
            f"On {held.strikes} recordings held out ({identification.held_out_by}) Eq. 1 is **{held.loss:.3f}**, "
            f"on the {identification.training.strikes} fitted ones {identification.training.loss:.3f}."
        )
    by_verdict: dict[str, list[str]] = {}
    for e in identification.estimates:
        by_verdict.setdefault(e.verdict, []).append(e.name.replace("_", " "))
    paragraphs.append("; ".join(f"**{v}**: {', '.join(names)}" for v, names in by_verdict.items()) + ".")
    return Text("In short", tuple(paragraphs))


def _seen(identification: Identification, motions: Motions) -> str:
    """Whether the recordings on the page are those that were fitted."""
    fitted = set(identification.extra.get("recordings", ()))
    used = sum(name in fitted for name in motions.names)
    if not fitted:
        return ""
    if not used:
        return f"None of these recordings was used to identify them: {len(fitted)} others were."
    which = "These recordings were" if used == len(motions) else f"{used} of these recordings were"
    return f"{which} used to identify them."


def _errors(motions: Motions, motion: FreeMotion) -> tuple[Array, Array]:
    """Position [N] in percent of the width and rotation [N] in degrees."""
    position, angle = trajectory_errors(motions, motion)
    return 100 * position[0], np.degrees(angle[0])


def error_pairs(motions: Motions, after: FreeMotion, before: FreeMotion) -> Any:
    """Position and rotation error of every recording, before and after, with the means: Fig. 4 of the paper."""
    measured = bool(np.isfinite(motions.quaternion).any())
    figure = make_subplots(rows=2 if measured else 1, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    old, new = _errors(motions, before), _errors(motions, after)
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


def motion_rows(motions: Motions, after: FreeMotion, before: FreeMotion) -> Any:
    """Height, path from above and angle error of the best, middling and worst recordings: Fig. 5 of the paper."""
    position, rotation = _errors(motions, after)
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


def _motion_row(figure: Any, at: int, row: int, motions: Motions, after: FreeMotion, before: FreeMotion) -> None:
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


def _parameters(identification: Identification) -> list[Section]:
    drawn: list[ParameterInterval] = [
        {
            "name": e.name,
            "value": e.value,
            "low": e.low,
            "high": e.high,
            "unit": e.unit,
            "bound_low": e.bounds[0],
            "bound_high": e.bounds[1],
            "verdict": e.verdict,
            "log": _is_log(e.name),
        }
        for e in identification.estimates
    ]
    rows = tuple(
        (
            e.name.replace("_", " "),
            _plain(e.value),
            _unit(e.unit),
            f"{_plain(e.low)} to {_plain(e.high)}",
            f"{_plain(e.bounds[0])} to {_plain(e.bounds[1])}",
            e.verdict,
            e.reason,
        )
        for e in identification.estimates
    )
    columns = ("parameter", "value", "unit", "90 % interval", "bounds", "verdict", "why")
    figure = parameter_intervals(drawn).update_layout(margin_r=280)
    return [
        Figure("Parameters", figure, "Dot: value. Bar: 90 % interval, within the bounds searched."),
        Table("Parameters, in figures", columns, rows),
    ]


def _is_log(name: str) -> bool:
    known = FREE.get(name) or KNOWN.get(name)
    return known is not None and known.log


def _unit(unit: str) -> str:
    return "–" if unit == "1" else unit


def _plain(value: float) -> str:
    """Three digits, without a power of ten where a person would not write one.

    >>> _plain(51657.9), _plain(0.15352), _plain(2e-6)
    ('51700', '0.154', '2e-06')
    """
    if 1e3 <= abs(value) < 1e7:
        digits = 2 - int(np.floor(np.log10(abs(value))))
        return f"{round(value, digits):.0f}"
    return f"{value:.3g}"


def _doubts(identification: Identification) -> list[Section]:
    """Which parameters trade off against each other, and where other starts ended; what is there of the two."""
    made: list[Section] = []
    extra = identification.extra
    correlations = extra.get("correlations")
    if correlations and len(correlations["names"]) > 1:
        figure = correlation_map(correlations["names"], correlations["matrix"])
        caption = "Correlation of the parameters' errors. Near 1 or -1, recordings show a combination rather than each."
        made.append(Figure("Which parameters trade off", figure, caption))
    restarts: Sequence[Mapping[str, float]] = extra.get("restarts") or ()
    if restarts:
        names = list(restarts[0])
        rows = []
        for name in names:
            ends, unit = [float(r[name]) for r in restarts], _unit(identification[name].unit)
            rows.append((name.replace("_", " "), unit, *map(_plain, ends), _plain(identification[name].value)))
        columns = ("parameter", "unit", *(f"start {i}" for i in range(1, len(restarts) + 1)), "in the end")
        note = "Where searches from other starts ended, before the last stage went on from the best of them."
        made.append(Table("Searches from other starts", columns, tuple(rows), note))
    return made


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


def _facts(identification: Identification) -> Table:
    """Everything else, so that the page says how it was made."""
    extra = identification.extra
    rows: list[tuple[str, str]] = []
    direct = [e for e in identification.estimates if e.name in identification.extra.get("read_off", ())]
    if direct:
        said = (f"{e.name.replace('_', ' ')} {_plain(e.value)} {e.unit if e.unit != '1' else ''}" for e in direct)
        rows.append(("read off directly, without a search", "; ".join(s.strip() for s in said)))
    if "restitution" in extra:
        rows.append(("restitution of a central impact at 1 m/s", f"{float(extra['restitution']):.2f}"))
    if "contact_time_s" in extra:
        rows.append(("contact time of such an impact", f"{1000 * float(extra['contact_time_s']):.1f} ms"))
    if sides := extra.get("sides"):
        towards: dict[str, list[str]] = {}
        for name, side in sides.items():
            towards.setdefault(str(side), []).append(Path(name).stem)
        words = "; ".join(f"{side}: {', '.join(names)}" for side, names in sorted(towards.items()))
        rows.append(("side of the body towards which its mass lies", words))
    rows += [("note", note) for note in identification.notes]
    rows.append(("Eq. 1, fitted recordings", f"{identification.training.loss:.4f} ({identification.norm})"))
    if identification.held_out is not None:
        rows.append((f"Eq. 1, {identification.held_out_by}", f"{identification.held_out.loss:.4f}"))
    rows += [
        ("rollouts simulated", f"{identification.evaluations}, of which {identification.failures} failed"),
        ("time", f"{identification.seconds:.1f} s"),
        ("method and seed", f"{identification.method}, {identification.seed}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in identification.to_dict()["versions"].items())),
    ]
    return Table("How it was made", ("what", "value"), tuple(rows))
