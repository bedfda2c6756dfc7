"""Poses and velocities read off noisy samples at given instants, and where a body rests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from carom.recordings.differentiate import fit_polynomial
from carom.state import Array

SPAN = 0.03  #: [s] to either side from which a state is read
AT_REST = 3.0  #: standard errors up to which a place is the same
RESTS = 3  #: instants at the same place that are a rest,
LASTS = 0.1  #: [s] if they last as long: a slow block is at the same place for some instants that are close together
KNOWN = 0.01  #: [m/s], [rad/s] up to which a velocity of a joint may be unsure if it is read from before alone
SOONER = 0.35  #: of a way is gone in half of the time by what does not start from rest
BEFORE = (2, 3, 4, 6)  #: samples before an instant that tell it


def read_at(time: Array, samples: Array, at: Array) -> tuple[Array, Array, Array]:
    """Values and velocities [K, D] of samples [T, D] at some instants, and the standard errors of both [K, 2 D]."""
    width = samples.shape[1]
    value, velocity = np.full((2, len(at), width), np.nan)
    unsure = np.full((len(at), 2 * width), np.nan)
    span = max(SPAN, 3.5 * float(np.median(np.diff(time))))
    for i, instant in enumerate(at):
        low, high = np.searchsorted(time, [instant - span - 1e-9, instant + span + 1e-9])
        fit = fit_polynomial(time[low:high], samples[low:high], instant, order=2 if i else 1)
        if fit.usable:
            value[i], velocity[i] = fit.value, fit.velocity
            unsure[i] = np.concatenate([fit.value_std, fit.velocity_std])
    return value, velocity, unsure


def joints_at(time: Array, samples: Array, at: Array) -> tuple[Array, Array]:
    """Positions and velocities [K, J] of joints, from samples [T, J].

    A new set-point makes a servo start at once: samples from both sides would tell neither what was before nor what
    is after. Joints are known well, so few samples before an instant are enough (at the beginning: after it). Where
    they are as noisy as a tracker, or lost at times, both sides are taken.
    """
    noise = _noise(samples)
    period = float(np.median(np.diff(time)))
    for count in BEFORE:
        weight = np.linalg.pinv(np.vander(np.arange(-count, 1.0), 3, increasing=True))  # of a parabola
        if len(time) > 2 * count and noise * np.linalg.norm(weight[1]) / period <= KNOWN:
            break
    else:
        place, turning, _ = read_at(time, samples, at)
        return place, turning
    place, turning = np.full((2, len(at), samples.shape[1]), np.nan)
    for i, instant in enumerate(at):
        end = int(np.searchsorted(time, instant + 1e-9, side="right")) - 1
        rows = slice(end - count, end + 1) if end >= count else slice(max(end, 0), max(end, 0) + count + 1)
        found, *_ = np.linalg.lstsq(np.vander(time[rows] - instant, 3, increasing=True), samples[rows])
        place[i], turning[i] = found[0], found[1]
        if end <= 0:
            turning[i, _from_rest(samples[: 2 * count + 1] - samples[0], AT_REST * noise)] = 0.0
    return place, turning


def _from_rest(way: Array, noise: float) -> NDArray[np.bool_]:
    """Which joints [J] start from rest, by their way since then [2 n + 1, J].

    At an even speed half of the time brings half of the way; from rest it brings a quarter, or less where a set-point
    acts late.
    """
    half, whole = np.abs(way[len(way) // 2]), np.abs(way[-1])
    return np.asarray((half < SOONER * whole) | (whole <= np.sqrt(2) * noise))


def _noise(samples: Array) -> float:
    """Standard deviation of samples [T, J], the greatest of the columns, by differences that no smooth motion makes."""
    if len(samples) < 6 or not np.isfinite(samples).all():
        return float("inf")
    fourth = np.diff(samples, n=4, axis=0)
    return float(np.median(np.abs(fourth), axis=0).max() / (0.6745 * np.sqrt(70.0)))


def settled(at: Array, value: Array, velocity: Array, unsure: Array) -> NDArray[np.bool_]:
    """Which instants [K] belong to a rest; there values become their mean over the rest, and velocities none.

    All are changed in place, their standard errors too: neighbouring readings share half of their samples.
    """
    width = value.shape[1]
    resting = np.zeros(len(value), dtype=bool)
    begin = 0
    noise = np.nanmedian(unsure[:, :width], axis=0)
    while begin < len(value):
        off = np.abs(value[begin:] - value[begin]) > AT_REST * np.sqrt(2) * noise
        moved = np.flatnonzero(off.any(axis=1) | np.isnan(value[begin:]).any(axis=1))
        end = begin + (int(moved[0]) if len(moved) else len(off))
        if end - begin >= RESTS and at[end - 1] - at[begin] > LASTS - 1e-6:
            rows = slice(begin, end)
            resting[rows], velocity[rows], value[rows] = True, 0.0, value[rows].mean(axis=0)
            unsure[rows, :width], unsure[rows, width:] = noise / np.sqrt((end - begin + 1) / 2), 0.0
        begin = max(end, begin + 1)
    return resting


def seen_at(time: Array, path: Array, at: Array) -> Array:
    """Measured poses [K, 3] between the samples next to each instant; NaN where those are lost."""
    good = np.isfinite(path).all(axis=1)
    out = np.column_stack([np.interp(at, time[good], path[good, k]) for k in range(path.shape[1])])
    nearest = np.abs(time[good][None] - at[:, None]).min(axis=1)
    out[nearest > 1.5 * float(np.median(np.diff(time)))] = np.nan
    return np.asarray(out)
