"""One clock for bodies that were sampled on several: the target's stamps; others are read between their samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carom.core.rotations import from_scipy, to_scipy
from carom.recordings.formats.take import Signal, Track
from carom.state import Array

GAP = 2.5  #: usual steps between two samples, beyond which nothing is read between them
SAME = 0.02  #: of a step, by which stamps of one clock may differ (rounding)


def at_times(track: Track, time: Array) -> Track:
    """A track at other stamps, between its own samples; NaN outside of them and where samples are lost."""
    if len(track.time) == len(time) and np.array_equal(track.time, time):
        return track
    good = np.isfinite(track.position).all(axis=-1)
    if track.quaternion is not None:
        turning = good & np.isfinite(track.quaternion).all(axis=-1)
    place = _between(track.time[good], track.position[good], time, _longest(track.time))
    if track.quaternion is None:
        return Track(track.name, time, place)
    found = np.full((len(time), 4), np.nan)
    stamps = track.time[turning]
    if len(stamps) > 1:
        from scipy.spatial.transform import Slerp

        near = _covered(stamps, time, _longest(track.time))
        if near.any():
            found[near] = from_scipy(Slerp(stamps, to_scipy(track.quaternion[turning]))(time[near]))
    place[~np.isfinite(found).all(axis=-1)] = np.nan
    return Track(track.name, time, place, found)


def signal_at(signal: Signal, time: Array) -> Array:
    """A command [T] as it stood at other stamps: the latest value before each; NaN before the first."""
    good = np.isfinite(signal.values)
    stamps, values = signal.time[good], signal.values[good]
    rows = np.searchsorted(stamps, time + 1e-9, side="right") - 1
    return np.where(rows >= 0, values[rows.clip(0)], np.nan) if len(stamps) else np.full(len(time), np.nan)


def _longest(time: Array) -> float:
    return GAP * float(np.median(np.diff(time))) if len(time) > 1 else 0.0


def _covered(stamps: Array, time: Array, longest: float) -> np.ndarray:
    """Which times lie at a sample or between two that are near each other."""
    if not len(stamps):
        return np.zeros(len(time), dtype=bool)
    after = np.searchsorted(stamps, time)
    left, right = stamps[(after - 1).clip(0)], stamps[after.clip(0, len(stamps) - 1)]
    tiny = SAME * longest / GAP
    inside = (time >= stamps[0] - tiny) & (time <= stamps[-1] + tiny)
    at_one = (np.abs(time - left) <= tiny) | (np.abs(time - right) <= tiny)
    within = (time >= stamps[0]) & (time <= stamps[-1])
    return np.asarray(inside & (at_one | (right - left <= longest)) & within)


def _between(stamps: Array, values: Array, time: Array, longest: float) -> Array:
    found = np.full((len(time), values.shape[1]), np.nan)
    near = _covered(stamps, time, longest)
    for column in range(values.shape[1]):
        found[near, column] = np.interp(time[near], stamps, values[:, column])
    return found


def shifted(track: Track, seconds: float) -> Track:
    """The same track with its stamps moved."""
    return Track(track.name, track.time + seconds, track.position, track.quaternion)


def on_one_clock(tracks: Sequence[Track], main: int, told: list[str]) -> tuple[Track, ...]:
    """All tracks at the stamps of the `main` one."""
    time = tracks[main].time
    found = tuple(at_times(track, time) for track in tracks)
    moved = [t.name for t, f in zip(tracks, found, strict=True) if f is not t]
    if moved:
        told.append(
            f"{', '.join(moved)}: read between samples, at the stamps of {tracks[main].name} (own clock or own rate)"
        )
    return found
