"""Tosses of a cube with the parameters that these tests take for the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.bench import simulated_tosses
from carom.bench.simulated_tosses import RATE, Tossed, starts_of_tosses
from carom.recordings import Recordings, Trajectory, write

__all__ = ["RATE", "TRUTH", "flights", "starts_of_tosses", "toss", "tosses_folder"]

TRUTH = {
    "friction": 0.25,
    "stiffness": 12_000.0,
    "damping": 90.0,
    "inertia_scale": 1.1,
    "com_offset": 0.006,
    "face_friction": 0.18,
    "length_scale": 0.98,
    "gravity": 9.65,
}


def toss(folder: Path, count: int, *, truth: dict[str, float] | None = None, **options: Any) -> Tossed:
    """Simulated tosses; nothing is written."""
    return simulated_tosses.toss(count, TRUTH if truth is None else truth, folder=folder, **options)


def tosses_folder(folder: Path, count: int, *, seed: int, truth: dict[str, float] | None = None) -> Path:
    """The same as a folder on disk."""
    write(folder, toss(folder, count, seed=seed, truth=truth).recordings)
    return folder


def flights(recordings: Recordings, count: int) -> tuple[Trajectory, ...]:
    """As many recordings of a heavier cube that only flies: nothing in them depends on a contact."""
    heavy = replace(recordings.trajectories[0].bodies["cube"], mass=1.0)
    made = []
    for trajectory in recordings.trajectories[:count]:
        time = trajectory.time
        flight = {"cube": np.column_stack([0.3 * time, 0.1 * time, 3.0 - 0.5 * 9.81 * time**2])}
        turn = {"cube": np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))}
        made.append(replace(trajectory, bodies={"cube": heavy}, position_world=flight, quaternion_world=turn))
    return tuple(made)
