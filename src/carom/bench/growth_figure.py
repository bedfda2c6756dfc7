"""The figure of `growth`: time for each strike and working memory, from one strike to a million in one call."""

from __future__ import annotations

import re

import numpy as np

from carom.bench.results import Results, Row
from carom.report import draw
from carom.report.chart import Line, Panel, Points
from carom.report.style import CYCLE, INK

PANELS = (
    ("microseconds-per-strike", "microseconds for each strike"),
    ("working-megabytes", "working memory [MB], beside strikes and results"),
)
APART, LEGEND = 20, 26  #: between panels, and the legend's line [px]
_SETTING = re.compile(r"growth, N = (\d+), (\d+) threads?")


def growth_figure(results: Results) -> str:
    """An SVG file: two panels side by side, both axes in powers of ten, a line for each number of threads."""
    found = [(_SETTING.fullmatch(row.setting), row) for row in results.rows]
    rows = [(int(match[1]), int(match[2]), row) for match, row in found if match]
    threads = sorted({own for _, own, _ in rows})
    colours = dict(zip(threads, CYCLE, strict=False))
    panels = [_panel(metric, words, rows, colours) for metric, words in PANELS]
    drawn = [str(draw.svg(panel)) for panel in panels]  # plain text: markup escapes what it is given
    height = max(float(re.findall(r'viewBox="0 0 \d+ ([\d.]+)"', text)[0]) for text in drawn)
    wide = len(drawn) * (draw.WIDTH + APART) - APART
    inside = "".join(
        text.replace("<svg ", f'<svg x="{n * (draw.WIDTH + APART)}" y="{LEGEND}" width="{draw.WIDTH}" ', 1)
        for n, text in enumerate(drawn)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height + LEGEND:g}" role="img" '
        f'aria-label="time and memory over the number of strikes">'
        f"<style>text {{ font: 12px sans-serif }}</style>"
        f'<rect width="100%" height="100%" fill="white"/>{_legend(colours)}{inside}</svg>\n'
    )


def _panel(metric: str, words: str, rows: list[tuple[int, int, Row]], colours: dict[int, str]) -> Panel:
    marks: list[Line | Points] = []
    for own, colour in colours.items():
        line = sorted((count, row.mean) for count, threads, row in rows if threads == own and row.metric == metric)
        x, y = np.log10([count for count, _ in line]), [mean for _, mean in line]
        marks += [Line(x, y, colour), Points(x, y, colour)]
    return Panel("strikes in one call: ten to the power", words, tuple(marks), x_range=(-0.2, 6.2), log_y=True)


def _legend(colours: dict[int, str]) -> str:
    parts = [
        f'<circle cx="{24 + 110 * n}" cy="13" r="4.5" fill="{colour}"/>'
        f'<text x="{34 + 110 * n}" y="17" fill="{INK}">{own} thread{"s" if own > 1 else ""}</text>'
        for n, (own, colour) in enumerate(colours.items())
    ]
    return "".join(parts)
