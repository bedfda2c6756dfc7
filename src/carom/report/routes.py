"""Figures of trials: where a block rested along a route, and how near pushes brought one to its goal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from carom.report.axes import joined
from carom.report.chart import Chart, Data, Line, Panel, Points
from carom.report.page import Figure
from carom.report.style import BLUE, GREEN, GREY, RED, faint
from carom.state import Array

MOST = 40  #: trials that are drawn


def trials_figure(
    title: str, points: Array, half_width: float, paths: Array, success: Sequence[bool] | NDArray[np.bool_]
) -> Figure:
    """Trials along the corners `points` [K, 2] of a route whose corridor is `half_width` [m] wide either side.

    `paths` [N, S, 3] are x, y and yaw of the block at each rest; NaN after a trial's end.
    """
    shown = np.unique(np.linspace(0, len(paths) - 1, min(MOST, len(paths))).round().astype(int))
    marks: list[Line | Points] = []
    for start, end in pairwise(points):
        along = (end - start) / np.linalg.norm(end - start)
        side = half_width * np.array([-along[1], along[0]])
        corner = np.stack([start + side, end + side, end - side, start - side, start + side])
        marks.append(Line(corner[:, 0], corner[:, 1], GREY, "safe zone", 0.8, fill="#eef1f4"))
    for good, colour, name in ((True, BLUE, "reached the end"), (False, RED, "did not")):
        own = [paths[i][np.isfinite(paths[i]).all(axis=1), :2] for i in shown if bool(success[i]) is good]
        if own:
            way = joined(own)
            marks.append(Line(way[:, 0], way[:, 1], faint(colour), width=1.0))
            marks.append(Points(way[:, 0], way[:, 1], colour, name, 1.8))
    marks.append(Points(points[1:, 0], points[1:, 1], GREEN, "sub-goals", 4.5))
    rows = tuple(
        (i, k, *(float(v) for v in pose), bool(success[i]))
        for i, path in enumerate(paths)
        for k, pose in enumerate(path)
        if np.isfinite(pose).all()
    )
    columns = ("trial", "strike", "x [m]", "y [m]", "yaw [rad]", "reached the end")
    some = f"{len(shown)} of {len(paths)} trials. " if len(shown) < len(paths) else ""
    caption = (
        f"Seen from above. {some}A dot is where the block rested after a strike, a line joins those of one trial. "
        "Trials should stay in the grey zone and end at the last green dot; where many red ones end, the policy is "
        "weak."
    )
    panel = Panel("x [m]", "y [m]", tuple(marks), equal=True)
    return Figure(title, Chart((panel,), Data(columns, rows)), caption)


def ends_figure(title: str, away: Array, turned: Array, success: Sequence[bool] | NDArray[np.bool_]) -> Figure:
    """How far blocks ended from their goals [N] [m] and [rad], best first."""
    order = np.argsort(np.nan_to_num(away, nan=np.inf))
    rank, good = np.arange(1, len(order) + 1), np.asarray(success)[order]
    panels = []
    for values, label in ((1e3 * away[order], "distance [mm]"), (np.degrees(turned[order]), "turn missing [degrees]")):
        marks = [
            Points(rank[rows], values[rows], colour, name, 2.6)
            for rows, colour, name in ((good, BLUE, "success"), (~good, RED, "no success"))
            if rows.any()
        ]
        panels.append(Panel("trials, from the nearest to the farthest", label, tuple(marks)))
    rows = tuple((int(i), 1e3 * float(away[i]), float(np.degrees(turned[i])), bool(success[i])) for i in order.tolist())
    caption = (
        "Each dot is one trial: how far the block was from its goal at the end, and the turn that was missing. Near "
        "zero is good. A few far ones: some starts are beyond the policy. All far: train longer."
    )
    data = Data(("trial", "distance [mm]", "turn missing [degrees]", "success"), rows)
    return Figure(title, Chart(tuple(panels), data, across=2), caption)
