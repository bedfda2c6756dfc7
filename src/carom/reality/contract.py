"""Reality: the contract a robot, or a stand-in for one, fulfils. Give it commands, it gives back recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from carom.core.errors import CaromError
from carom.reality.touch import surface
from carom.scenes.shapes import Shape
from carom.state import Array, StrikeCommands, rotate

CORNER_MARGIN = 0.08  #: share of an edge at each of its ends where no strike is aimed


@runtime_checkable
class Reality(Protocol):
    """Something that can carry out strikes and be measured: a robot with motion capture, or a stand-in."""

    def execute(self, commands: StrikeCommands, folder: str | Path, *, seed: int) -> Path:
        """Carry out the strikes and write what was measured as a recordings folder, one data file per strike.

        Returns the folder. `seed` stands for everything that differs when the same commands are given again; a
        robot may ignore it.
        """
        ...


def sample_commands(
    shape: Shape,
    count: int,
    rng: np.random.Generator,
    *,
    speed: tuple[float, float] = (0.2, 0.8),
    arc: tuple[float, float] = (np.pi / 12, 11 * np.pi / 12),
    deflection: float = np.pi / 12,
    edges: Sequence[int] | None = None,
    spread: tuple[float, float, float] = (0.02, 0.02, np.pi),
) -> StrikeCommands:
    """Random strikes at a shape, as the collision data of CLASH are drawn (Table I).

    On a semi-cylinder the point is uniform in the arc's angle theta within `arc` [rad], on a round shape anywhere; on
    any other outline it is uniform along the edges (numbers `edges`, counter-clockwise from the first corner; None:
    all), with the share `CORNER_MARGIN` of each edge left out at both of its ends. Speed is uniform in `speed` [m/s],
    and its direction within `deflection` [rad] (theta_1) of the inward normal. The target lies within `spread`
    (plus or minus, [m, m, rad]) of the world's origin. The first strikes are the same for any `count`.
    """
    draw = rng.random((count, 6))
    if shape.is_round or (shape.kind == "semi-cylinder" and edges is None):
        low, high = (-np.pi, np.pi) if shape.is_round else arc
        theta = low + (high - low) * draw[:, 0]
        point = float(shape.radius or 0.0) * np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    else:
        point = _along_edges(shape.planar_outline, draw[:, 0], edges)
    point, normal = surface(shape, point)
    pace = speed[0] + (speed[1] - speed[0]) * draw[:, 1:2]
    velocity = pace * rotate(normal, deflection * (2 * draw[:, 2] - 1))
    return StrikeCommands(point, velocity, np.asarray(spread) * (2 * draw[:, 3:] - 1))


def _along_edges(outline: Array, draw: Array, edges: Sequence[int] | None) -> Array:
    """Points [N, 2] uniform along the chosen edges, from uniform numbers [N] in [0, 1)."""
    chosen = np.arange(len(outline)) if edges is None else np.asarray(edges, dtype=np.int64)
    if not len(chosen) or chosen.min() < 0 or chosen.max() >= len(outline):
        raise CaromError(f"edges: expected numbers from 0 to {len(outline) - 1}, got {chosen.tolist()}")
    start = outline[chosen]
    edge = np.roll(outline, -1, axis=0)[chosen] - start
    length = np.linalg.norm(edge, axis=1)
    ends = np.cumsum(length)
    which = np.minimum(np.searchsorted(ends, draw * ends[-1], side="right"), len(chosen) - 1)
    share = (draw * ends[-1] - (ends - length)[which]) / length[which]
    return np.asarray(start[which] + (CORNER_MARGIN + (1 - 2 * CORNER_MARGIN) * share)[:, None] * edge[which])
