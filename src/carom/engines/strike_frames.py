"""Frames of strikes kept on their way, [..., 9] as `strike_states` sees them: cubic between two states."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from carom.state import Array


def between(before: Array, after: Array, share: Array, time: float) -> Array:
    """States [n, 9] at shares [n] of the time [s] between two: poses of targets cubic, the rest linear."""
    s = share[:, None]
    state = before + (after - before) * s
    (p0, v0), (p1, v1) = ((state_[:, :3], state_[:, 3:6]) for state_ in (before, after))
    state[:, :3] = p0 + (p1 - p0) * s * s * (3 - 2 * s) + time * (v0 * s * (1 - s) ** 2 - v1 * s * s * (1 - s))
    return np.asarray(state)


@final
class Frames:
    """The frames of a batch of strikes, due at times [N, F] [s]."""

    def __init__(self, times: Array) -> None:
        self.times, self.kept = times, np.zeros((*times.shape, 9))
        self._next = np.zeros(len(times), dtype=np.int64)

    def keep(self, rows: NDArray[np.int64], start: float, end: float, states: tuple[Array, Array]) -> None:
        """Keep the frames of these rows that are due until `end`, between their states [n, 9] at `start` and then."""
        before, now = states
        while len(rows):
            frame = self._next[rows]
            due = frame < self.times.shape[1]
            due[due] = self.times[rows[due], frame[due]] <= end + 1e-9
            if not due.any():
                return
            rows, frame, before, now = rows[due], frame[due], before[due], now[due]
            time = end - start
            share = (self.times[rows, frame] - start) / time if time else np.ones(len(rows))
            self.kept[rows, frame] = between(before, now, share, time)
            self._next[rows] += 1

    def hold(self, rows: NDArray[np.int64], now: Array) -> None:
        """The frames still due of targets that rest in these states [n, 9]."""
        rest = now.copy()
        rest[:, 3:6] = 0.0
        later = np.arange(self.times.shape[1]) >= self._next[rows][:, None]
        self.kept[rows] = np.where(later[..., None], rest[:, None], self.kept[rows])
        self._next[rows] = self.times.shape[1]
