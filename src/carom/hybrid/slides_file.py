"""A hybrid's table of slides on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from carom.core.errors import ModelError
from carom.core.tensors import load_tensors, write_tensors
from carom.engines.slide_table import SlideTable

NUMBERS = ("grip", "growth", "gyration", "top", "reach")


def write_slides(path: Path, table: SlideTable) -> str:
    """Write a table; its SHA-256, for the header."""
    numbers = torch.tensor([getattr(table, name) for name in NUMBERS], dtype=torch.float64)
    tensors = {"coefficients": torch.as_tensor(table.coefficients), "points": torch.as_tensor(table.points)}
    return write_tensors(path, {**tensors, "numbers": numbers, "folds": torch.tensor([table.folds])})


def read_slides(path: Path, files: Mapping[str, str]) -> SlideTable:
    """The table that a hybrid's header lists."""
    tensors = load_tensors(path, files)
    try:
        coefficients, points, numbers, folds = (
            tensors[name].numpy() for name in ("coefficients", "points", "numbers", "folds")
        )
        named = dict(zip(NUMBERS, (float(v) for v in numbers), strict=True))
        table = SlideTable(np.ascontiguousarray(coefficients, np.float32), points, int(folds.item()), **named)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is damaged: {type(error).__name__} {error}") from error
    shape = table.coefficients.shape
    if len(shape) != 4 or min(shape) < 4 or shape[3] != 4 or table.folds < 1 or min(table.grip, table.top) <= 0:
        raise ModelError(f"{path} is damaged: no table of slides has {shape} coefficients; run carom adapt again")
    return table
