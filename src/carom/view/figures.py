"""The plots under the scene: how far each simulated motion is from the recorded one, over time."""

from __future__ import annotations

import numpy as np

from carom.report import Figure, Section, Table, Text
from carom.report.chart import Chart, Data, Line, Panel
from carom.state import Array
from carom.view.shown import Take, errors_of

MOST_ROWS = 2000  #: of a figure's data

NOTE = (
    "How far each simulated motion is from the recorded one at every recorded sample. Zero is perfect. Errors that "
    "begin at the contact are the contact's; those that grow slowly are friction's or the start's."
)


def sections_of(take: Take) -> list[Section]:
    """Figures and words about a take."""
    made: list[Section] = []
    errors = errors_of(take)
    colours = {t.name: t.colour for t in take.tracks}
    bodies = list(dict.fromkeys(b for _, by in errors.values() for b in by))
    for body in bodies:
        made.append(Figure(f"Errors of {body}", _errors(errors, body, colours), NOTE))
    if bodies:
        made.append(_table(errors, bodies))
    if take.arrows:
        made.append(_impulses(take))
    made += take.extra
    if take.words:
        made.append(Text("About this recording", take.words))
    return made


def _errors(
    errors: dict[str, tuple[Array, dict[str, tuple[Array, Array]]]], body: str, colours: dict[str, str]
) -> Chart:
    lines: list[list[Line]] = [[], []]
    rows: list[tuple[str, float, float, float]] = []
    for name, (time, by) in errors.items():
        if body not in by:
            continue
        away, angle = 1e3 * by[body][0], np.degrees(by[body][1])
        for panel, values in zip(lines, (away, angle), strict=True):
            panel.append(Line(time, values, colours[name], name))
        rows += [(name, *row) for row in np.column_stack([time, away, angle]).tolist()]
    step = max(1, -(-len(rows) // MOST_ROWS))
    panels = (
        Panel("time [s]", "distance [mm]", tuple(lines[0]), title="Position"),
        Panel("time [s]", "angle [degrees]", tuple(lines[1]), title="Orientation"),
    )
    data = Data(("engine", "time [s]", "distance [mm]", "angle [degrees]"), tuple(rows[::step]))
    return Chart(panels, data, across=2)


def _table(errors: dict[str, tuple[Array, dict[str, tuple[Array, Array]]]], bodies: list[str]) -> Table:
    rows = []
    for name, (_, by) in errors.items():
        for body in bodies:
            if body in by and np.isfinite(by[body][0]).any():
                away, angle = by[body]
                last = np.flatnonzero(np.isfinite(away))[-1]
                mean_angle = float(np.degrees(np.nanmean(angle))) if np.isfinite(angle).any() else float("nan")
                rows.append((name, body, 1e3 * float(np.nanmean(away)), 1e3 * float(away[last]), mean_angle))
    columns = ("engine", "body", "mean distance [mm]", "distance at the end [mm]", "mean angle [degrees]")
    return Table("Errors in numbers", columns, tuple(rows), "Means over the recorded samples that the motion covers.")


def _impulses(take: Take) -> Table:
    strongest = sorted(take.arrows, key=lambda a: -float(np.linalg.norm(a.vector)))[:12]
    rows = tuple(
        (a.words, round(a.time, 4), " ".join(f"{v:.3g}" for v in a.vector), " ".join(f"{v:.3f}" for v in a.point))
        for a in sorted(strongest, key=lambda a: a.time)
    )
    note = (
        "The arrows of the scene, the twelve strongest. A recorded impulse is the body's mass times the change of "
        "velocity that was read off the samples around the contact."
    )
    return Table("Impulses", ("what", "time [s]", "impulse, x y z [N s]", "at, x y z [m]"), rows, note)
