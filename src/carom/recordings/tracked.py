"""Markers are seldom glued on where a body's geometry has its origin: the tracked frame and the body's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.core.rotations import multiply, to_world, unit
from carom.state import Array

_CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


@dataclass(frozen=True)
class Tracked:
    """A tracked frame as seen in the body's own frame, which shape, centre of mass and forward refer to."""

    position: tuple[float, float, float] = (0.0, 0.0, 0.0)  #: of its origin [m]
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)  #: w first, own frame from tracked frame

    def own(self, position: Array, quaternion: Array) -> tuple[Array, Array, Array]:
        """Positions [T, 3] and quaternions [T, 4] of the own frame from those of the tracked one, and the lever [T, 3]
        from the tracked origin to the own one, all in the world. Where an orientation is lost and the origins differ,
        so is the position."""
        turned = multiply(quaternion, np.asarray(self.quaternion) * _CONJUGATE)
        if not any(self.position):
            return position, turned, np.zeros_like(position)
        lever = -to_world(unit(turned), np.asarray(self.position))
        return np.asarray(position + lever), turned, lever

    @property
    def words(self) -> str:
        """Where the frame is, for a person."""
        x, y, z = (1000 * v for v in self.position)
        angle = 2 * np.arctan2(np.linalg.norm(self.quaternion[1:]), abs(self.quaternion[0]))
        return f"at ({x:.4g}, {y:.4g}, {z:.4g}) mm, turned by {np.degrees(angle):.4g} deg"
