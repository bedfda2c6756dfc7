"""Axes: ranges that hold what is drawn, round numbers on them, and the way from numbers to pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carom.report.chart import Arrows, Bars, Line, Mark, Moving, Panel, Points
from carom.state import Array, rotate

AIR = 0.06  #: share of the range that is left free at both ends
STEPS = (1.0, 2.0, 5.0, 10.0)
#: superscripts, for powers of ten
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """From numbers to pixels: `low` is at 0, `high` at `length`."""

    low: float
    high: float
    length: float  #: [px]
    log: bool = False

    def __call__(self, value: float) -> float:
        return float(self.all(np.array([value]))[0])

    def all(self, values: Array) -> Array:
        """Pixels of many values; what a logarithm does not take is not finite."""
        if not self.log:
            return np.asarray(self.length * (values - self.low) / (self.high - self.low))
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.where(values > 0, np.log10(values), np.nan)
        low, high = math.log10(self.low), math.log10(self.high)
        return np.asarray(self.length * (logs - low) / (high - low))

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round numbers on the axis and how they are written, about `most` of them."""
        return _powers(self.low, self.high, most) if self.log else _round_numbers(self.low, self.high, most)


def _round_numbers(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Multiples of 1, 2 or 5 times a power of ten.

    >>> _round_numbers(-0.1, 0.32, 4)
    [(0.0, '0.0'), (0.2, '0.2')]
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in STEPS if s * power >= 0.999 * rough)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    numbers = [round(step * i, 12) for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    form = ".0e" if places > 4 or step >= 1e5 else f".{places}f"
    return [(v + 0.0, f"{v + 0.0:{form}}") for v in numbers]


def _powers(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Powers of ten; where there are fewer than two, also their doubles and fivefolds."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / most))
    powers = [p for p in range(first, last + 1, every) if low <= 10.0**p * 1.0001 and 10.0**p <= high * 1.0001]
    if len(powers) > 1:
        return [(10.0**p, f"10{str(p).translate(RAISED)}") for p in powers]
    some = [m * 10.0**p for p in range(first, last + 1) for m in (1, 2, 5)]
    return [(v, f"{v:.3g}") for v in some if low <= v <= high]


def fitted(panel: Panel, width: float, default: float) -> tuple[Axis, Axis]:
    """The axes of a panel that is `width` [px] wide inside; `default` is its height [px] where nothing else says it."""
    drawn = [corners(mark) for mark in panel.marks if not (isinstance(mark, Line) and mark.axis)]
    drawn += [along(moving) for moving in panel.moving]
    points = np.vstack(drawn) if drawn else np.empty((0, 2))
    x = panel.x_range or _range(points[:, 0], panel, 0)
    y = panel.y_range or _range(points[:, 1], panel, 1)
    height = panel.height or default
    if not panel.equal:
        return Axis(*x, width), Axis(*y, height, panel.log_y)
    wanted = (y[1] - y[0]) / (x[1] - x[0]) * width
    if panel.height is None:
        height = float(np.clip(wanted, 0.45 * width, 1.1 * width))
    scale = max((x[1] - x[0]) / width, (y[1] - y[0]) / height)  # metres per pixel, the same in both
    return Axis(*_widened(x, scale * width), width), Axis(*_widened(y, scale * height), height)


def _widened(ends: tuple[float, float], span: float) -> tuple[float, float]:
    middle = (ends[0] + ends[1]) / 2
    return middle - span / 2, middle + span / 2


def _range(values: Array, panel: Panel, axis: int) -> tuple[float, float]:
    """What holds these values, with some air."""
    log = panel.log_y and axis == 1
    good = values[np.isfinite(values) & ((values > 0) if log else True)]
    if not len(good):
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(good.min()), float(good.max())
    if log:
        air = max(high / low, 1.5) ** AIR
        return low / air, high * air
    alone = 0.5 * abs(high) or 1.0  # around a single value: round numbers, not the same one with many digits
    air = alone if high == low else AIR * max(high - low, 1e-9 + 1e-3 * abs(high))
    from_zero = axis == 1 and low == 0.0 and any(isinstance(m, Bars) for m in panel.marks)
    return (0.0 if from_zero else low - air), high + air


def corners(mark: Mark) -> Array:
    """The points [N, 2] that have to be seen of a mark."""
    if isinstance(mark, Arrows):
        return np.vstack([np.asarray(a, dtype=np.float64).reshape(-1, 2) for a in (mark.start, mark.end)])
    x, y = (np.asarray(a, dtype=np.float64).ravel() for a in (mark.x, mark.y))
    if isinstance(mark, Bars):
        edges = [np.column_stack([x + side * mark.width / 2, height]) for side in (-1, 1) for height in (y, 0 * y)]
        return np.vstack(edges)
    if isinstance(mark, Points) and mark.error is not None:
        half = np.nan_to_num(np.asarray(mark.error, dtype=np.float64))
        return np.vstack([np.column_stack([x, y - half]), np.column_stack([x, y + half])])
    return np.column_stack([x, y])


def along(moving: Moving) -> Array:
    """The points [N, 2] that a moving mark comes to."""
    return np.vstack([rotate(corners(moving.mark), pose[2]) + pose[:2] for pose in moving.poses])


def joined(pieces: Sequence[Array]) -> Array:
    """Several lines as one, with gaps between them."""
    gap = np.full((1, 2), np.nan)
    return np.vstack([row for piece in pieces for row in (piece, gap)][:-1]) if len(pieces) else np.empty((0, 2))
