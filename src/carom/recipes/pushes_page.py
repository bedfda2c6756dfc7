"""The page of an identification from pushes: parameters, recorded and played motion, what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from carom.core.rotations import yaw
from carom.identify.pushes.search import replayed
from carom.recordings import Recordings
from carom.report import Figure, Next, Section, Step, Table, Text, write_report
from carom.report.chart import Cells, Chart, Data, Line, Mark, Panel, Points
from carom.report.estimates import by_verdict, effort_rows, parameter_sections
from carom.report.style import INK, ORANGE
from carom.scenes.pushing import GuidedScene

if TYPE_CHECKING:
    from carom.recipes.pushes import TunedPushes

SHOWN = 6  #: windows that are drawn, from the best to the worst


def pushes_page(path: Path, found: TunedPushes, recordings: Recordings, steps: Sequence[Step]) -> Path:
    """Write the page."""
    identification = found.identification
    sections: list[Section] = [
        _in_short(found),
        *parameter_sections(identification),
        _ways(found, recordings),
        Table(
            "How it was made",
            ("what", "value"),
            tuple(effort_rows(identification)),
            "What else was found, and how, so that it can be done again.",
        ),
        Next(tuple(steps)),
    ]
    subtitle = f"{len(identification.extra['recordings'])} pushes, {identification.method}, seed {identification.seed}"
    return write_report(path, sections, title=f"Identified from pushes: {identification.scene}", subtitle=subtitle)


def _in_short(found: TunedPushes) -> Text:
    identification, extra = found.identification, found.identification.extra
    led = isinstance(found.scene, GuidedScene)
    how = "the tool led where it was recorded" if led else "its robot told the recorded set-points again"
    paragraphs = [
        f"Played again with {how}, the block is off its recorded place by **{1e3 * extra['block_off_m']:.1f} mm** and "
        f"turned from it by **{np.degrees(extra['turn_off_rad']):.1f}°** (root mean squares over all instants)."
    ]
    if (held := identification.held_out) is not None:
        paragraphs.append(
            f"Of pushes left out of the fit ({identification.held_out_by}) half are within "
            f"**{100 * held.median_relative_error:.1f} %** of the way that the block went: this is what to expect of "
            "the next ones."
        )
    return Text("In short", (*paragraphs, *by_verdict(identification)))


def _ways(found: TunedPushes, recordings: Recordings) -> Figure:
    windows, motion = replayed(found.scene, recordings, found.tuned.values)
    every = windows.every
    place = motion.position[:, ::every, 0, :2][:, : windows.block.shape[1]]
    turn = yaw(motion.quaternion[:, ::every, 0])[:, : windows.block.shape[1]]
    away = np.nanmean(np.linalg.norm(place - windows.block[..., :2], axis=-1), axis=1)
    order = np.argsort(away)
    rows = order[np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).astype(int))]
    panels: list[Panel] = []
    data: list[Cells] = []
    for row in rows:
        real, seen = windows.block[row], np.isfinite(windows.block[row]).all(axis=1)
        marks: list[Mark] = [
            Line(real[seen, 0], real[seen, 1], INK, "recorded"),
            Line(place[row, seen, 0], place[row, seen, 1], ORANGE, "played"),
            Points(real[seen, 0][:1], real[seen, 1][:1], INK),
        ]
        name = Path(windows.names[windows.recording[row]]).stem
        panels.append(Panel("x [m]", "y [m]", tuple(marks), f"{name}: {1e3 * away[row]:.1f} mm", equal=True))
        for k in np.flatnonzero(seen):
            values = np.array([k * every * windows.period, *real[k], *place[row, k], turn[row, k]]).tolist()
            data.append((name, *values))
    columns = ("push", "time [s]", "x [m]", "y [m]", "yaw [rad]", "played x [m]", "played y [m]", "played yaw [rad]")
    caption = (
        "The block's way as recorded and as played with these parameters, from pushes that fit best to those that fit "
        "worst; the dot is where it begins, the figure the mean distance. All of these pushes were fitted."
    )
    return Figure("Recorded and played ways", Chart(tuple(panels), Data(columns, tuple(data)), across=2), caption)
