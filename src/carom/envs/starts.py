"""Where tasks start: the distribution a policy is trained on, and the routes it is tried on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.envs.routes import Route
from carom.envs.task import HALF_WIDTH, LENGTH, REACH, checked_length, directions, sub_goals
from carom.state import Array

DRAWS = 4  #: numbers that one start needs; the batch uses two more: which of its engines, which side is behind


class Starts(Protocol):
    """Tasks on the same segments."""

    @property
    def points(self) -> Array:
        """Ends of the segments [K+1, 2] [m]."""
        ...

    @property
    def length(self) -> float:
        """Of the segments that a policy is made for [m]; these may be shorter."""
        ...

    def draw(self, u: Array) -> tuple[Array, Array]:
        """Heading poses [M, 3] and sub-goals [M, K, 3] of M tasks, from uniform numbers [M, DRAWS] in [0, 1)."""
        ...


@dataclass(frozen=True)
class SegmentStarts:
    """One straight segment, entered as one may come from the segment before and left towards any next one."""

    start_radius: float = REACH  #: [m] about the segment's start, uniform over the disc
    heading_spread: float = np.pi / 4  #: [rad] plus or minus, about the segment's direction
    turn_spread: float = np.pi / 3  #: [rad] plus or minus: of an imagined next segment, the sub-goal's orientation
    length: float = LENGTH  #: [m] of the segment

    def __post_init__(self) -> None:
        if not 0 <= self.start_radius <= HALF_WIDTH:
            raise CaromError(
                f"start_radius: expected 0 to {HALF_WIDTH:g} m (half the corridor's width), got {self.start_radius}"
            )
        for name in ("heading_spread", "turn_spread"):
            if not 0 <= getattr(self, name) <= np.pi:
                raise CaromError(f"{name}: expected a number from 0 to pi [rad], got {getattr(self, name)}")
        checked_length(self.length)

    @property
    def points(self) -> Array:
        return np.array([[0.0, 0.0], [self.length, 0.0]])

    def draw(self, u: Array) -> tuple[Array, Array]:
        """See `Starts`."""
        radius, angle = self.start_radius * np.sqrt(u[:, 0]), 2 * np.pi * u[:, 1]
        heading, turn = self.heading_spread * (2 * u[:, 2] - 1), self.turn_spread * (2 * u[:, 3] - 1)
        pose = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), heading])
        goal = np.column_stack([np.full(len(u), self.length), np.zeros(len(u)), turn])
        return pose, goal[:, None, :]


@dataclass(frozen=True)
class RouteStarts:
    """The start of a route, and its sub-goals one after the other."""

    route: Route

    @property
    def points(self) -> Array:
        return self.route.points

    @property
    def length(self) -> float:
        return self.route.length

    def draw(self, u: Array) -> tuple[Array, Array]:
        """See `Starts`."""
        first = directions(self.points)[0]
        heading = first + self.route.heading_spread * (2 * u[:, 2] - 1)
        pose = np.column_stack([np.tile(self.points[0], (len(u), 1)), heading])
        return pose, np.tile(sub_goals(self.points), (len(u), 1, 1))


def uniform(seeds: NDArray[np.uint64], episodes: NDArray[np.int64]) -> Array:
    """Uniform numbers [M, DRAWS + 2] in [0, 1) that depend on nothing but each row's seed and episode (SplitMix64).

    So a row draws the same in any batch, thousands are drawn at once, and there is no generator to save.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    key = _mixed(_mixed(seeds + step) + episodes.astype(np.uint64) * step)
    count = np.arange(1, DRAWS + 3, dtype=np.uint64)
    return np.asarray((_mixed(key[:, None] + count * step) >> np.uint64(11)) * 2.0**-53)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
