"""Panels as SVG: axes, marks, and what moves. Everything that stands in a file is escaped on its way in."""

from __future__ import annotations

import json

import numpy as np
from markupsafe import Markup, escape

from carom.report.axes import Axis, fitted
from carom.report.chart import Arrows, Bars, Chart, Line, Mark, Moving, Panel, Points
from carom.report.style import GREY, INK, LINE, SOFT, faint
from carom.state import Array

WIDTH = 340  #: of a panel [px]: a phone's; wider pages scale it up a little or set panels side by side
HEIGHT = 220  #: of its axes [px], where nothing else is said
TOP, RIGHT = 24, 10  #: around the axes [px]
LETTER = 6.4  #: width of a digit [px]
HEAD = 7.0  #: length of an arrow's head [px]


def svg(panel: Panel) -> Markup:
    """One panel; its label for those who don't see it is its title and axes."""
    _, y_axis = fitted(panel, WIDTH - 60, HEIGHT)
    y_ticks = y_axis.ticks(5)
    left = round(14 + LETTER * max((len(text) for _, text in y_ticks), default=1))
    x, y = fitted(panel, WIDTH - left - RIGHT, HEIGHT)
    y_ticks, x_ticks = y.ticks(5), (x.ticks(5) if panel.x_numbers else [])
    inside = "".join(_mark(mark, x, y) for mark in panel.marks) + "".join(_moving(m, x, y) for m in panel.moving)
    grid = "".join(_line(0, at, x.length, at, LINE) for at in (y.length - y(v) for v, _ in y_ticks))
    grid += "".join(_line(x(v), 0, x(v), y.length, LINE) for v, _ in x_ticks)
    numbers = "".join(
        _text(left - 6, TOP + y.length - y(value) + 4, text, anchor="end", colour=SOFT) for value, text in y_ticks
    )
    numbers += "".join(_text(left + x(value), TOP + y.length + 16, text, colour=SOFT) for value, text in x_ticks)
    below = TOP + y.length + (34 if panel.x_numbers else 18)
    names = _text(left + x.length / 2, below, panel.x_label) + _text(0, 12, panel.y_label, anchor="start")
    height = below + 8
    label = escape(f"{panel.title or 'figure'}: {panel.y_label} over {panel.x_label}")
    frame = f'<svg x="{left}" y="{TOP}" width="{x.length:g}" height="{y.length:.5g}">'  # an inner one cuts at its edges
    edge = _line(left, TOP + y.length, left + x.length, TOP + y.length, GREY) + _line(
        left, TOP, left, TOP + y.length, GREY
    )
    return Markup(
        f'<svg class="panel" viewBox="0 0 {WIDTH} {height:.5g}" role="img" aria-label="{label}">'
        f"{frame}{grid}{inside}</svg>{edge}{numbers}{names}</svg>"
    )


def swatch(mark: Mark) -> Markup:
    """A mark's sign in the legend."""
    colour = mark.colour
    if isinstance(mark, Points):
        inner = f'<circle cx="12" cy="7" r="4.5" fill="{colour}"/>'
    elif isinstance(mark, Bars) or (isinstance(mark, Line) and mark.fill and not mark.width):
        fill = mark.fill if isinstance(mark, Line) else colour
        inner = f'<rect x="3" y="1.5" width="18" height="11" fill="{fill}"/>'
    elif isinstance(mark, Arrows):
        inner = _line(2, 7, 15, 7, colour, mark.width) + f'<path d="M22 7L14 3.2V10.8Z" fill="{colour}"/>'
    else:
        inner = _line(1, 7, 23, 7, colour, max(mark.width, 1.6), mark.dash)
    return Markup(f'<svg class="swatch" width="24" height="14" aria-hidden="true">{inner}</svg>')


def times(chart: Chart) -> str:
    """The instants of what moves, for the page's script."""
    return json.dumps([round(t, 4) for t in chart.clock])


def _mark(mark: Mark, x: Axis, y: Axis) -> str:
    if isinstance(mark, Line):
        points = np.column_stack([x.all(_floats(mark.x)), y.length - y.all(_floats(mark.y))])
        return _path(points, mark)
    if isinstance(mark, Arrows):
        ends = [np.asarray(a, dtype=np.float64).reshape(-1, 2) for a in (mark.start, mark.end)]
        start, end = (np.column_stack([x.all(a[:, 0]), y.length - y.all(a[:, 1])]) for a in ends)
        return _arrows(start, end, mark)
    at, up = x.all(_floats(mark.x)), y.length - y.all(_floats(mark.y))
    labels = list(mark.labels) or [""] * len(at)
    if isinstance(mark, Bars):
        half, floor = x.all(np.array([0.0, mark.width])) @ [-0.5, 0.5], y.length - y(max(y.low, 0.0))
        bars = zip(at, up, labels, strict=True)
        return "".join(
            f'<rect x="{a - half:.2f}" y="{u:.1f}" width="{2 * half:.2f}" height="{floor - u:.1f}" '
            f'fill="{mark.colour}">{_hint(label)}</rect>'
            for a, u, label in bars
            if np.isfinite(a + u)
        )
    return _error_bars(mark, at, up, y) + _dots(at, up, labels, mark)


def _dots(at: Array, up: Array, labels: list[str], mark: Points) -> str:
    return "".join(
        f'<circle cx="{a:.1f}" cy="{u:.1f}" r="{mark.size:g}" fill="{mark.colour}" stroke="white" stroke-width="0.6">'
        f"{_hint(label)}</circle>"
        for a, u, label in zip(at, up, labels, strict=True)
        if np.isfinite(a + u)
    )


def _error_bars(mark: Points, at: Array, up: Array, y: Axis) -> str:
    if mark.error is None:
        return ""
    half = _floats(mark.error) * y.length / (y.high - y.low)
    return "".join(
        _line(a, u - h, a, u + h, faint(mark.colour), 1.2)
        for a, u, h in zip(at, up, half, strict=True)
        if np.isfinite(a + u + h)
    )


def _arrows(start: Array, end: Array, mark: Arrows) -> str:
    made = []
    for a, b in zip(start, end, strict=True):
        length = float(np.linalg.norm(b - a))
        if not np.isfinite(length) or length == 0:
            continue
        along = (b - a) / length
        head = min(HEAD, length)
        back, side = b - head * along, 0.45 * head * np.array([-along[1], along[0]])
        tip = " ".join(f"{p[0]:.1f},{p[1]:.1f}" for p in (b, back + side, back - side))
        made.append(
            _line(a[0], a[1], back[0], back[1], mark.colour, mark.width)
            + f'<polygon points="{tip}" fill="{mark.colour}"/>'
        )
    return "".join(made)


def _path(points: Array, mark: Line) -> str:
    """A line as one path; it begins anew after a gap."""
    words, pen = [], "M"
    for px, py in points:
        if not np.isfinite(px + py):
            pen = "M"
            continue
        words.append(f"{pen}{px:.1f} {py:.1f}")
        pen = "L"
    if not words:
        return ""
    dash = f' stroke-dasharray="{mark.dash}"' if mark.dash else ""
    stroke = f'stroke="{mark.colour}" stroke-width="{mark.width:g}"{dash}' if mark.width else 'stroke="none"'
    return f'<path d="{"".join(words)}" fill="{mark.fill or "none"}" {stroke} stroke-linejoin="round"/>'


def _moving(moving: Moving, x: Axis, y: Axis) -> str:
    """A mark around the origin in a group that the page's script moves; until then, it is where it ends."""
    scale = x.length / (x.high - x.low)  # the same in y: only equal axes have what moves
    own = Axis(0.0, 1.0, scale)
    poses = [
        [round(x(px), 1), round(y.length - y(py), 1), round(float(-np.degrees(yaw)), 1)]
        if np.isfinite(px + py + yaw)
        else None
        for px, py, yaw in moving.poses
    ]
    last = next((p for p in reversed(poses) if p is not None), [0, 0, 0])
    place = f"translate({last[0]},{last[1]}) rotate({last[2]})"
    # pixels go down from the axis's top, and the body's frame is at its bottom
    shifted = f'<g transform="translate(0,{-scale:.3f})">{_mark(moving.mark, own, own)}</g>'
    return f'<g data-poses="{json.dumps(poses)}" transform="{place}">{shifted}</g>'


def _floats(values: object) -> Array:
    return np.asarray(values, dtype=np.float64).ravel()


def _hint(text: str) -> str:
    """What is said when one points at a mark."""
    return f"<title>{escape(text)}</title>" if text else ""


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.0, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"{dashed}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "middle", colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
