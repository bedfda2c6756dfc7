"""Draws of an uncertain hybrid: the same simulator as it could also be, given the few strikes it was learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.errors import CaromError
from carom.simulate.hybrid import HybridSimulator
from carom.simulate.student import Perturbed, Student


def draws_of(
    hybrid: HybridSimulator, count: int, *, friction_spread: float = 0.03, seed: int = 0
) -> list[HybridSimulator]:
    """`count` simulators as the hybrid could also be: outcomes and friction drawn from what is uncertain about them."""
    student = hybrid.impact.model
    if not isinstance(student, Student) or student.spread is None:
        raise CaromError("a robust plan needs a model that states its uncertainty: one made by carom adapt")
    if count < 2:
        raise CaromError(f"draws: expected 2 or more, got {count}")
    rng = np.random.default_rng([seed, 31])
    half = rng.standard_normal((count, 4))
    normal = half - half.mean(axis=0)  # their mean is the hybrid itself
    made = []
    for row in normal:
        slider = replace(
            hybrid.impact.slider, friction=hybrid.impact.slider.friction * np.exp(friction_spread * row[3])
        )
        impact = replace(hybrid.impact, model=Perturbed(student, row[:3]), slider=slider)
        values = {**hybrid.engine.values, "ground_friction": slider.friction}
        made.append(HybridSimulator(impact, values, sliding=hybrid.sliding, threads=hybrid.threads))
    return made
