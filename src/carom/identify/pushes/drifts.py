"""What no recording of pushes rules out: a tool that is behind its measured place wherever it moves, or beside it.

Errors of single instants average out over thousands of them; these don't. A slow push of a stiff servo shows the mass
by hundredths of a millimetre, the same in all pushes, and nothing but such a drift says that they tell nothing.
"""

from __future__ import annotations

import numpy as np

from carom.identify.pushes.problem import FLOOR, HAND, PushProblem
from carom.state import Array

GOING = 2e-4  #: [m] between instants from which on a tool moves


def drifts(problem: PushProblem, unit: Array) -> tuple[Array, ...]:
    """Changes of all residuals together [N, R] at a point [A], by as much as a tool is surely not known better.

    Joints have play, and servos give way. The place of a led tool says nothing: of it there are none.
    """
    tip = problem.windows.tip[..., :2]
    if not np.isfinite(tip).any():
        return ()
    off = problem.offsets(problem.simulate(unit[None]))
    way = np.diff(np.nan_to_num(tip), axis=1)
    length = np.linalg.norm(way, axis=-1, keepdims=True)
    behind = np.where(length > GOING, way / np.maximum(length, GOING), 0.0)
    aside = np.stack([-behind[..., 1], behind[..., 0]], axis=-1)
    plain, made = problem.residuals_of(off)[0], []
    for direction in (behind, aside):
        moved = off.copy()
        moved[..., HAND.start : HAND.start + 2] += FLOOR[1] * direction
        made.append(problem.residuals_of(moved)[0] - plain)
    return tuple(made)
