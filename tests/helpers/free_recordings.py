"""Tosses of a cube with the parameters that these tests take for the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from carom.bench import simulated_tosses
from carom.bench.simulated_tosses import RATE, Tossed, starts_of_tosses
from carom.recordings import write

__all__ = ["RATE", "TRUTH", "starts_of_tosses", "toss", "tosses_folder"]

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
