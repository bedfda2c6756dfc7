"""Poses and velocities read off noisy samples at given instants, and where a body rests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from carom.recordings.differentiate import fit_polynomial
from carom.state import Array

SPAN = 0.03  #: [s] to either side from which a state is read
AT_REST = 3.0  #: standard errors up to which a place is the same
RESTS = 3  #: instants at the same place that are a rest


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


def settled(value: Array, velocity: Array, unsure: Array) -> NDArray[np.bool_]:
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
        if end - begin >= RESTS:
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
