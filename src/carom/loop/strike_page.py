"""Figures of a loop on strikes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carom.loop.steps import Round
from carom.report import Figure, Section
from carom.report.chart import Chart, Data, Line, Mark, Panel, Points
from carom.report.style import BLUE, CYCLE, GREY, ORANGE

AXES = (("vx", "m/s"), ("vy", "m/s"), ("wz", "rad/s"))


def strike_sections(rounds: Sequence[Round], *, held_out: int) -> list[Section]:
    """Predicted against real outcomes of each round's strikes, and the errors over the rounds."""
    return [_outcomes(rounds), _errors(rounds, held_out)]


def _outcomes(rounds: Sequence[Round]) -> Section:
    panels, data = [], []
    for axis, (name, unit) in enumerate(AXES):
        marks: list[Mark] = []
        for now in rounds:
            strikes = now.facts("deploy")["strikes"]
            measured, said = (np.array([s[k][axis] for s in strikes]) for k in ("measured", "predicted"))
            colour = CYCLE[(now.number - 1) % len(CYCLE)]
            marks.append(Points(measured, said, colour, f"round {now.number}", labels=[s["name"] for s in strikes]))
        every = np.concatenate(
            [np.concatenate([np.asarray(m.x), np.asarray(m.y)]) for m in marks if isinstance(m, Points)]
        )
        ends = [float(np.nanmin(every)), float(np.nanmax(every))]
        marks.insert(0, Line(ends, ends, GREY, width=1, axis=True))
        panels.append(Panel(f"measured {name} [{unit}]", f"predicted {name} [{unit}]", tuple(marks), name))
    for now in rounds:
        data += [(now.number, s["name"], *s["measured"], *s["predicted"]) for s in now.facts("deploy")["strikes"]]
    names = [f"{what} {name} [{unit}]" for what in ("measured", "predicted") for name, unit in AXES]
    caption = (
        "Every strike of each round: its outcome as measured, and as the simulator said that it was chosen with, "
        "before it was recorded. On the line it is right. Later rounds should lie closer to it."
    )
    return Figure(
        "Real against simulated outcomes",
        Chart(tuple(panels), Data(("round", "recording", *names), tuple(data))),
        caption,
    )


def _errors(rounds: Sequence[Round], held_out: int) -> Section:
    number = [r.number for r in rounds]
    newest = [r.facts("deploy")["median_relative_error"] for r in rounds]
    marks: list[Mark] = [Line(number, newest, BLUE, "strikes of the round itself"), Points(number, newest, BLUE)]
    others = [float("nan")] * len(rounds)
    if held_out:
        others = [r.facts("tune")["held_out"]["median_relative_error"] for r in rounds]
        marks += [Line(number, others, ORANGE, "strikes held out"), Points(number, others, ORANGE)]
    data = Data(("round", "of the round [1]", "held out [1]"), tuple(zip(number, newest, others, strict=True)))
    panel = Panel("round", "median relative error [1]", tuple(marks), log_y=True)
    caption = (
        "Median error of predicted outcomes, over their size, in the kinetic-energy norm. Those of the round's own "
        "strikes are predictions too: they were made before the strikes were recorded."
    )
    return Figure("Error over the rounds", Chart((panel,), data), caption)
