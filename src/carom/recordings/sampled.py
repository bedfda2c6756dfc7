"""What the samples themselves say about a body's motion: noise, rest, first motion, timing, smoothness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.recordings.differentiate import fit_polynomial, measured_rows
from carom.state import Array

MOVING_SHARE = 0.1  #: of the top speed: above it, a body is under way
REST_SPAN = 0.1  #: [s] of rest before the first motion that give the resting pose and its noise
CLEARLY = 5.0  #: resting standard deviations that no resting sample is away
WINDOW = 0.025  #: [s] over which speed is measured to tell rest from motion


@dataclass(frozen=True)
class Onset:
    """The first motion of a body that was at rest."""

    time: float  #: [s] sub-sample
    time_std: float  #: [s]
    rest: Array  #: rows (indices) of the samples at rest just before
    first: int  #: row of the first sample that has clearly moved
    noise: float  #: [m] resting standard deviation, both directions together


def noise_floor(time: Array, samples: Array, *, length: int = 10) -> Array:
    """Noise [D] of the samples [T, D]: scatter about short quadratic pieces, in the quieter pieces of the record."""
    rows = np.flatnonzero(measured_rows(samples))
    count = len(rows) // length
    if count == 0:
        return np.full(samples.shape[1], np.nan)
    pieces = rows[: count * length].reshape(count, length)
    t = time[pieces] - time[pieces].mean(axis=1, keepdims=True)
    basis, _ = np.linalg.qr(t[..., None] ** np.arange(3) / np.abs(t).max(axis=1)[:, None, None] ** np.arange(3))
    y = samples[pieces]
    residual = y - basis @ (np.swapaxes(basis, 1, 2) @ y)
    scatter = np.sqrt((residual**2).sum(axis=1) / (length - 3))
    return np.asarray(np.quantile(scatter, 0.4, axis=0))


def window_speed(time: Array, samples: Array, window: float) -> tuple[Array, Array]:
    """Rows (indices, as floats' index array) and speed [N] over `window` seconds from each of them onwards."""
    rows = np.flatnonzero(measured_rows(samples))
    t, p = time[rows], samples[rows]
    ahead = np.searchsorted(t, t + window - 1e-9)
    keep = ahead < len(rows)
    start, end = np.flatnonzero(keep), ahead[keep]
    if not len(start):
        return rows[:0].astype(float), np.zeros(0)
    speed = np.linalg.norm(p[end] - p[start], axis=-1) / np.maximum(t[end] - t[start], 1e-12)
    if len(speed) > 4:  # one sample that jumps away and back makes two single windows fast
        middle = np.median(np.stack([speed[:-2], speed[1:-1], speed[2:]]), axis=0)
        speed = np.concatenate([[speed[0]], middle, [speed[-1]]])
    return rows[start].astype(float), np.asarray(speed)


def top_speed(time: Array, samples: Array, period: float) -> float:
    """Highest speed [m/s] over a short window; 0 if it is no more than what noise makes."""
    window = max(WINDOW, 4 * period)
    _, speed = window_speed(time, samples, window)
    if not len(speed):
        return 0.0
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(time, samples))))
    peak = float(speed.max())
    return peak if peak * window > 2 * CLEARLY * noise + 1e-9 else 0.0


def first_motion(time: Array, samples: Array, period: float) -> Onset | None:
    """When a body [T, D] m first moves; None if it never does, or is not at rest before."""
    window = max(WINDOW, 4 * period)
    peak = top_speed(time, samples, period)
    rows, speed = window_speed(time, samples, window)
    if peak == 0.0:
        return None
    fast = speed > MOVING_SHARE * peak
    begin = int(rows[int(np.argmax(fast))])
    measured = np.flatnonzero(measured_rows(samples))
    rest = measured[(measured <= begin) & (time[measured] >= time[begin] - REST_SPAN)]
    if len(rest) < 5:
        return None
    reference = np.median(samples[rest], axis=0)
    away = np.linalg.norm(samples - reference, axis=-1)
    noise = float(np.sqrt(np.mean(away[rest] ** 2)))
    noise = max(noise, float(np.linalg.norm(np.nan_to_num(noise_floor(time, samples))) / 3), 1e-7)
    later = measured[measured > begin]
    clear = away[later] > CLEARLY * noise
    steady = np.flatnonzero(clear[:-1] & clear[1:]) if len(later) > 1 else np.zeros(0, dtype=int)
    if not len(steady):
        return None
    first = int(later[steady[0]])
    return _refined(time, samples, reference, noise, rest, first, period)


def _refined(
    time: Array, samples: Array, reference: Array, noise: float, rest: Array, first: int, period: float
) -> Onset:
    """Where the line through the first moving samples meets the resting place."""
    index = np.flatnonzero(measured_rows(samples) & (time >= time[first]) & (time <= time[first] + 0.03 + 4 * period))
    index = index[: max(4, int((time[index] <= time[first] + 0.03).sum()))]
    moved = samples[index] - reference
    direction = moved[-1] / max(float(np.linalg.norm(moved[-1])), 1e-12)
    line = fit_polynomial(time[index], moved @ direction, float(time[first]), order=1, noise=noise)
    before = measured_rows(samples) & (time < time[first])
    earliest = float(time[np.flatnonzero(before)[-1]]) - period
    speed = float(line.velocity[0])
    crossing = float(time[first]) - float(line.value[0]) / speed if speed > 0 else float(time[first])
    instant = float(np.clip(crossing, earliest, time[first]))
    std = float(np.hypot(line.value_std[0], noise)) / speed if speed > 0 else period
    if instant != crossing:  # the line does not tell; all that is known is the two samples around it
        std = max(std, period / np.sqrt(12))
    return Onset(instant, std, rest, first, noise)


def last_motion(time: Array, samples: Array, period: float, after: float) -> float:
    """When a body that moves at `after` has come to rest [s]; the end of the record if it has not."""
    rows, speed = window_speed(time, samples, max(WINDOW, 4 * period))
    peak = top_speed(time, samples, period)
    slow = (time[rows.astype(int)] > after + WINDOW) & (speed < 0.5 * MOVING_SHARE * peak)
    return float(time[int(rows[int(np.argmax(slow))])]) if slow.any() else float(time[-1])


def moves_again(time: Array, samples: Array, period: float, after: float) -> float:
    """When a body that rests at `after` is moved again [s]; the end of the record if it is not."""
    window = max(WINDOW, 4 * period)
    rows, speed = window_speed(time, samples, window)
    peak = top_speed(time, samples, period)
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(time, samples))))
    # twice the speed that counts as rest, or a body that creeps to a halt would seem to start again; and more than
    # noise makes, or one that was hardly struck would
    fast = (time[rows.astype(int)] > after) & (speed > max(MOVING_SHARE * peak, CLEARLY * noise / window))
    return float(time[int(rows[int(np.argmax(fast))])]) if fast.any() else float(time[-1])


def timing_jitter(time: Array, samples: Array, start: float, end: float, period: float) -> float:
    """How unreliable sample times are, in sample periods: scatter along the motion that there is not across it.

    Wrong times move samples along the path only, noise moves them both ways. NaN where too little can be seen.
    """
    keep = measured_rows(samples) & (time >= start) & (time <= end)
    if keep.sum() < 10:
        return float("nan")
    t, p = time[keep], samples[keep][:, :2]
    velocity = fit_polynomial(t, p, float(t.mean()), order=1).velocity
    speed = float(np.linalg.norm(velocity))
    if speed == 0.0:
        return float("nan")
    along = velocity / speed
    across = np.array([-along[1], along[0]])
    path = p @ np.stack([along, across], axis=-1)
    # each sample against the line between its neighbours: blind to a smooth path, whatever its bends
    share = ((t[1:-1] - t[:-2]) / (t[2:] - t[:-2]))[:, None]
    off = path[1:-1] - (1 - share) * path[:-2] - share * path[2:]
    scatter = np.sqrt(np.mean(off**2, axis=0) / 1.5)
    if scatter[1] > 0.5 * speed * period:
        return float("nan")  # noise as large as a sample's way: nothing can be said about times
    if scatter[0] < 3 * scatter[1]:
        return 0.0  # a tracker's noise is seldom the same in all directions
    return float(np.sqrt(max(scatter[0] ** 2 - scatter[1] ** 2, 0.0)) / (speed * period))


def smooth_from(
    time: Array, samples: Array, start: float, *, span: float, noise: float, latest: float, limit: float = np.inf
) -> float | None:
    """Earliest sample time at or after `start` from which one quadratic explains `span` seconds within noise."""
    rows = np.flatnonzero(measured_rows(samples) & (time >= start - 1e-9) & (time <= min(start + latest + span, limit)))
    for first in rows[time[rows] <= start + latest]:
        piece = rows[(rows >= first) & (time[rows] <= time[first] + span)]
        if len(piece) < 6:
            return None
        fit = fit_polynomial(time[piece], samples[piece], float(time[first]))
        residual = np.linalg.norm(fit.residual_rms)
        edge = float(np.linalg.norm(samples[first] - fit.value))
        if residual <= 1.5 * noise and edge <= 3 * noise:
            return float(time[first])
    return None


def path_noise(time: Array, samples: Array, start: float, end: float, floor: float) -> float:
    """Scatter [m] about one quadratic over [start, end], not below `floor`: what a fit of such a span leaves over."""
    keep = measured_rows(samples) & (time >= start) & (time <= end)
    if keep.sum() < 8:
        return floor
    return max(float(np.linalg.norm(fit_polynomial(time[keep], samples[keep], start).residual_rms)), floor)


def smooth_until(
    time: Array, samples: Array, end: float, *, span: float, noise: float, earliest: float
) -> float | None:
    """Latest sample time at or before `end` up to which one quadratic explains `span` seconds within noise."""
    mirrored = smooth_from(-time[::-1], samples[::-1], -end, span=span, noise=noise, latest=earliest)
    return None if mirrored is None else -mirrored


def wait_spacing(time: Array, samples: Array, start: float, end: float) -> float:
    """Typical time [s] between steps that are much shorter than their neighbours: the beat of two clocks."""
    keep = measured_rows(samples) & (time >= start) & (time <= end)
    if keep.sum() < 8:
        return float("nan")
    t, p = time[keep], samples[keep]
    step = np.linalg.norm(np.diff(p, axis=0), axis=-1)
    waits = t[1:][step < 0.7 * np.median(step)]
    return float(np.median(np.diff(waits))) if len(waits) > 1 else float("nan")
