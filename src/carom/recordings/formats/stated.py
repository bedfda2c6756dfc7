"""What a file's header claims against what its rows show: the rows are right, and the difference is said."""

from __future__ import annotations

import math

import numpy as np

from carom.state import Array

EVEN = 0.01  #: of a step: by less than this stamps at an even rate may scatter
ROUNDED = 1.01e-3  #: [s] by which stamps may differ from an even clock if they are rounded to 1 ms
RATES_DIFFER = 0.005  #: of the rate, by more than this a header's is wrong


def _number(stated: str | float | None) -> float | None:
    try:
        value = None if stated is None else float(stated)
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) else None


def compare_counts(stated: str | float | None, rows: int, what: str = "frames") -> list[str]:
    """A sentence where a header's count is not that of the rows.

    >>> compare_counts("652", 93)
    ['the header says 652 frames, there are 93: the rows count']
    """
    value = _number(stated)
    if value is None or value == rows:
        return []
    return [f"the header says {value:g} {what}, there are {rows}: the rows count"]


def compare_rates(stated: str | float | None, rate: float | None) -> list[str]:
    """A sentence where a header's rate is not that of the rows.

    >>> compare_rates("100", 200.0)
    ['the header says 100 Hz, the rows are at 200 Hz: the rows count']
    """
    value = _number(stated)
    if value is None or rate is None or abs(value - rate) <= RATES_DIFFER * rate:
        return []
    return [f"the header says {value:g} Hz, the rows are at {rate:.5g} Hz: the rows count"]


def stamps(frame: Array, time: Array, stated: str | float | None, asked: float | None) -> tuple[Array, str, list[str]]:
    """Stamps [T] s of rows with frame numbers and a column of times; which they are; what is to be said of it.

    The column counts, unless it is empty or rounded so much that frame numbers over the header's rate are better, or a
    rate was asked for.
    """
    rate = asked or _number(stated) or float("nan")
    counted = "frame numbers over the rate"
    if asked is not None or not np.isfinite(time).any():
        return (frame / rate, counted, [f"times are frame numbers over {rate:g} Hz"]) if rate > 0 else (time, "", [])
    steps = np.diff(time)
    uneven = len(steps) > 3 and float(np.nanstd(steps)) > EVEN * float(np.nanmedian(steps))
    if uneven and rate > 0 and np.isfinite(frame).all() and np.isfinite(time).all():
        off = time - frame / rate
        begin = float(np.median(off))
        if float(np.ptp(off)) <= ROUNDED and float(np.ptp(frame)) > 0:
            begin = 0.0 if abs(begin) < ROUNDED else begin
            return frame / rate + begin, counted, [f"stamps are rounded: times are frame numbers over {rate:g} Hz"]
    return time, "column of times", []
