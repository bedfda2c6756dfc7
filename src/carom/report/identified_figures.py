"""Figures of an identification from whole trajectories: errors before and after, motions, correlations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from carom.core.errors import CaromError
from carom.identify.tosses.recorded import Motions, frame_errors, trajectory_errors
from carom.report.chart import Bars, Cells, Chart, Data, Line, Mark, Matrix, Panel
from carom.report.draw import HEIGHT
from carom.report.style import GREY, INK, ORANGE
from carom.state import Array, Motion

SHOWN = 4  #: recordings whose motion is drawn, from the best to the worst
#: label, colour, width and dash of a line: what was measured is dark, what was predicted orange
REAL, BEFORE, AFTER = ("real", INK, 2.4, ""), ("before", GREY, 1.6, ""), ("after", ORANGE, 1.8, "6 3")
PLACES = {1: ("the only one",), 2: ("best", "worst"), 3: ("best", "median", "worst")}


def errors_of(motions: Motions, motion: Motion) -> tuple[Array, Array]:
    """Position [N] in percent of the width and rotation [N] in degrees."""
    position, angle = trajectory_errors(motions, motion)
    return 100 * position[0], np.degrees(angle[0])


def error_pairs(motions: Motions, after: Motion, before: Motion) -> Chart:
    """Position and rotation error of every recording, before and after, with the means: Fig. 4 of the paper."""
    measured = bool(np.isfinite(motions.quaternion).any())
    old, new = errors_of(motions, before), errors_of(motions, after)
    order = np.argsort(new[0] / 100 + np.radians(new[1]), kind="stable")
    names = [Path(motions.names[i]).stem for i in order]
    place = np.arange(1.0, len(names) + 1)
    units = (("position error", "% of width"), ("rotation error", "degrees"))[: 2 if measured else 1]
    panels = []
    for i, (what, unit) in enumerate(units):
        marks: list[Mark] = []
        for side, (label, colour, _, _), errors in ((-0.2, BEFORE, old[i]), (0.2, AFTER, new[i])):
            hints = [f"{name}, {label}: {e:.3g} {unit}" for name, e in zip(names, errors[order], strict=True)]
            marks.append(Bars(place + side, errors[order], colour, label, 0.4, hints))
        for (label, colour, _, _), errors in ((BEFORE, old[i]), (AFTER, new[i])):
            ends, mean = [0.4, len(names) + 0.6], float(errors.mean())
            marks.append(Line(ends, [mean, mean], colour, f"mean {label}", 1.6, "2 3"))
        title = f"{what}: mean {old[i].mean():.3g} before, {new[i].mean():.3g} after"
        order_words = "recordings, from the best to the worst"
        panels.append(Panel(order_words, f"[{unit}]", tuple(marks), title, x_numbers=False))
    columns = [f"{what} {when} [{unit}]" for what, unit in units for when in ("before", "after")]
    rows = [
        (motions.names[i], *(float(e) for pair in zip(old, new, strict=True) for e in (pair[0][i], pair[1][i])))
        for i in order
    ]
    data = tuple(row[: 1 + len(columns)] for row in rows)
    return Chart(tuple(panels), Data(("recording", *columns), data))


def motion_rows(motions: Motions, after: Motion, before: Motion) -> Chart:
    """Height, path from above and angle error of the best, middling and worst recordings: Fig. 5 of the paper."""
    position, rotation = errors_of(motions, after)
    order = np.argsort(position / 100 + np.radians(rotation), kind="stable")
    count = min(SHOWN, len(motions))
    rows = order[np.unique(np.linspace(0, len(order) - 1, count).round().astype(int))]
    places = PLACES.get(len(rows), ("best", *("in between",) * (len(rows) - 2), "worst"))
    panels: list[Panel] = []
    data: list[Cells] = []
    for row, place in zip(rows, places, strict=True):
        turned = f", {rotation[row]:.1f}°" if np.isfinite(motions.quaternion[row]).any() else ""
        title = f"{place}: {Path(motions.names[row]).stem}, {position[row]:.1f} % of width{turned}"
        own, numbers = _motion_row(int(row), title, motions, after, before)
        panels += own
        data += numbers
    kinds = [f"{label} {axis} [m]" for label, *_ in (REAL, BEFORE, AFTER) for axis in "xyz"]
    columns = ("recording", "time [s]", *kinds, "angle error before [deg]", "angle error after [deg]")
    return Chart(tuple(panels), Data(columns, tuple(data)), across=len(panels) // len(rows))


def _motion_row(
    row: int, title: str, motions: Motions, after: Motion, before: Motion
) -> tuple[list[Panel], list[Cells]]:
    """The three panels of one recording, and its numbers."""
    body = _mover(motions, row)
    seen = np.isfinite(motions.position[row, :, body]).sum(axis=-1) == 3
    last = int(np.flatnonzero(seen)[-1]) + 1
    time = motions.period * np.arange(last)
    planar = motions.scene.planar
    paths = [motion.position[row, :last, body] for motion in (motions, before, after)]
    first = paths[0][seen[:last]][0, :2]
    rises, ways = [], []
    for (label, colour, width, dash), path in zip((REAL, BEFORE, AFTER), paths, strict=True):
        rise = np.linalg.norm(path[:, :2] - first, axis=-1) if planar else path[:, 2]
        rises.append(Line(time, rise, colour, label, width, dash))
        ways.append(Line(path[:, 0], path[:, 1], colour, label, width, dash))
    angles = [np.degrees(frame_errors(motions, motion)[1][0, row, :last, body]) for motion in (before, after)]
    turns = [
        Line(time, angle, colour, label, width, dash)
        for (label, colour, width, dash), angle in zip((BEFORE, AFTER), angles, strict=True)
    ]
    height = "way travelled [m]" if planar else "height [m]"
    panels = [Panel("time [s]", height, tuple(rises), title)]
    panels.append(Panel("x [m]", "y [m]", tuple(ways), "its path from above", equal=True, height=HEIGHT))
    if np.isfinite(angles[1]).any():
        panels.append(Panel("time [s]", "angle [deg]", tuple(turns), "angle between real and simulated"))
    table = np.column_stack([time, *paths, *angles])
    return panels, [(motions.names[row], *map(float, numbers)) for numbers in table]


def _mover(motions: Motions, row: int) -> int:
    """The body that goes farthest in a recording: the one to look at."""
    path = motions.position[row]
    way = np.nanmax(path, axis=0) - np.nanmin(path, axis=0)
    return int(np.nanargmax(np.linalg.norm(way, axis=-1)))


def correlation_map(names: Sequence[str], matrix: Sequence[Sequence[float]]) -> Matrix:
    """Correlations [A, A] of parameters, each number in a coloured cell; each pair once."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.shape != (len(names), len(names)):
        raise CaromError(f"correlations: expected a square matrix for {len(names)} parameters, got {values.shape}")
    labels = tuple(n.replace("_", " ") for n in names)
    below = np.where(np.triu(np.ones_like(values), 1) > 0, np.nan, values)
    rows: tuple[Cells, ...] = tuple((name, *map(float, row)) for name, row in zip(names, values, strict=True))
    return Matrix(labels, below, Data(("parameter", *names), rows))
