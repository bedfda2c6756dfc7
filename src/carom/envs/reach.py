"""Whether a block can go a segment's length in the strikes it has: asked before a training, not after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.core.errors import CaromError
from carom.envs.batch import StrikeBatch
from carom.envs.task import REACH, SHORTEST, STRIKES
from carom.state import StrikeCommands

PLACES = 9  #: on each side that are struck
SURE = 0.7  #: of the way that five of the farthest blows go: what a length that is proposed asks for


@dataclass(frozen=True)
class Reach:
    """How far single blows along the normal send a block, on the side where they send it least [m]."""

    shortest: float  #: the shortest way that a blow of the lowest speed may go
    farthest: float  #: the longest way that one of the highest speed may go


def reach_of(batch: StrikeBatch) -> Reach:
    """Strike the block of a batch in its first engine, on every side, slowly and fast; the tasks stay as they are."""
    unit = np.array([[u, 0.5, v] for v in (0.0, 1.0) for u in np.linspace(0.0, 1.0, PLACES)])
    ways = []
    for side in batch.sides:
        blows = side.space.commands(unit)
        start = np.zeros((len(unit), 3))
        rest, carried_out = batch.struck(StrikeCommands(blows.contact_point, blows.velocity, start))
        moved = batch.of_heading(rest)[:, :2] - batch.of_heading(start)[:, :2]
        way = np.where(carried_out, np.linalg.norm(moved, axis=1), np.nan).reshape(2, PLACES)
        if np.isnan(way).all(axis=1).any():
            raise CaromError(
                f"scene '{batch.scene.name}': no blow came about on the side that heads {side.heading:.2f} rad from "
                "the block's x axis, at the lowest or at the highest speed: the simulator cannot be trained in"
            )
        ways.append((float(np.nanmin(way[0])), float(np.nanmax(way[1]))))
    shortest, farthest = zip(*ways, strict=True)
    return Reach(max(shortest), min(farthest))


def check_reach(batch: StrikeBatch) -> Reach:
    """Raise unless the block of a batch can go the length of a segment in `STRIKES` strikes, and stop there."""
    reach, length, speed = reach_of(batch), batch.length, batch.scene.speed
    if STRIKES * reach.farthest < length:
        fitting = np.floor(100 * SURE * STRIKES * reach.farthest) / 100
        shorter = f", or make segments shorter: --length {fitting:g}" if fitting >= SHORTEST else ""
        raise CaromError(
            f"scene '{batch.scene.name}': out of reach in five strikes: the fastest blow ({speed[1]:g} m/s) moves the "
            f"block {reach.farthest:.3f} m, five of them {STRIKES * reach.farthest:.2f} m, and a segment is "
            f"{length:g} m long; strike faster{shorter}"
        )
    if reach.shortest > length + REACH:
        raise CaromError(
            f"scene '{batch.scene.name}': a segment of {length:g} m is too short: even the slowest blow ({speed[0]:g} "
            f"m/s) moves the block {reach.shortest:.2f} m; strike slower, or make segments longer: "
            f"--length {np.ceil(10 * reach.shortest) / 10:g}"
        )
    return reach
