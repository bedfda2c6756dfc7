"""Figures of suggested recordings: how much each tells, and how parameters' intervals are expected to narrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carom.identify.next.choose import Suggestion
from carom.report.chart import Cells, Data, Row, Rows, Span
from carom.report.figures import brief
from carom.report.page import Figure
from carom.report.style import BLUE, GREY, INK


def suggestion_figures(title: str, suggestions: Sequence[Suggestion]) -> list[Figure]:
    """Of one group of recordings."""
    return [_gains(title, suggestions), _intervals(title, suggestions)]


def _gains(title: str, suggestions: Sequence[Suggestion]) -> Figure:
    most = max(max(s.gain, s.typical) for s in suggestions) or 1.0
    rows = tuple(
        Row(
            f"{i}. {s.words}",
            f"{s.gain:.2f} nat",
            (Span(0.0, max(s.gain, 0.0) / most, BLUE), Span(0.0, max(s.typical, 0.0) / most, INK, thin=True)),
            strong=i == 1,
        )
        for i, s in enumerate(suggestions, start=1)
    )
    columns = ("number", "record next", "gain [nat]", "usual [nat]", "gains most")
    data = tuple((i, s.words, float(s.gain), float(s.typical), s.most) for i, s in enumerate(suggestions, start=1))
    caption = (
        "How much each recording is expected to tell, given those above it; the thin line is what the usual one tells. "
        "0.7 nat halve the uncertainty of one parameter. Bars no longer than their thin line: record anything."
    )
    return Figure(
        f"What each recording tells: {title}", Rows(rows, ("0", f"{most:.2f} nat"), Data(columns, data)), caption
    )


def _intervals(title: str, suggestions: Sequence[Suggestion]) -> Figure:
    """Intervals as they are, and as they are expected to be once all the recordings are made."""
    rows: list[Row] = []
    data: list[Cells] = []
    for i, first in enumerate(suggestions[0].spreads):
        (low, high), (new_low, new_high) = first.before, suggestions[-1].spreads[i].after
        data.append((first.name, first.unit, *(float(v) for v in (low, high, new_low, new_high))))
        start, span = min(low, new_low), max(high, new_high) - min(low, new_low)
        if not np.isfinite(span):
            continue
        a, b, c, d = ((v - start) / span if span > 0 else 0.5 for v in (low, high, new_low, new_high))
        spans = Span(a, max(b, a + 0.01), GREY), Span(c, max(d, c + 0.01), BLUE)
        unit = "" if first.unit in ("", "1") else f" {first.unit}"
        text = f"{brief(low)} to {brief(high)}{unit}; then {brief(new_low)} to {brief(new_high)}{unit}"
        rows.append(Row(first.name.replace("_", " "), text, spans))
    columns = ("parameter", "unit", "low now", "high now", "low expected", "high expected")
    caption = (
        "90 % intervals of the parameters: grey as identified, blue as expected once all of these recordings are made. "
        "Where blue is as long as grey, these recordings do not tell about that parameter."
    )
    return Figure(f"Intervals now and then: {title}", Rows(tuple(rows), ("", ""), Data(columns, tuple(data))), caption)
