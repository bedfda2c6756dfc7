"""Friction of a body that slides and spins on its base: the pressure-patch model, for regressions.

Coulomb friction acts at every point of the base against that point's own slip. Seen together, a spinning body feels
less drag than mu * m * g and a gliding one less torque than mu * m * g times its mean lever. With even pressure both
follow from the outline alone; `size` stretches the outline where the weight rests further out or in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.scenes.outline import Outline
from carom.scenes.shapes import Body
from carom.state import Array, rotate

CELLS = 10  #: points across the larger extent of the base


@dataclass(frozen=True)
class Patch:
    """Points that carry equal shares of the weight, seen from the centre of mass."""

    points: Array  #: [Q, 2] in the body's frame [m]
    cell: float  #: distance between neighbours [m]

    @property
    def lever(self) -> float:
        """Mean distance of the weight from the centre of mass [m]: torque over force of friction in pure spin."""
        return float(np.linalg.norm(self.points, axis=-1).mean())


def patch_of(body: Body) -> Patch | None:
    """The base of a body with even pressure; None where its shape is unknown or it is a ball."""
    if body.shape is None or body.shape.kind == "sphere":
        return None
    outline = body.shape.planar_outline
    low, high = outline.min(axis=0), outline.max(axis=0)
    cell = float((high - low).max()) / CELLS
    axes = [a + (np.arange(max(int(np.ceil((b - a) / cell)), 1)) + 0.5) * cell for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    inside = points[Outline(outline).gap(points) < 0]
    # cells cut by the outline shift the mean of the points a little; the weight rests evenly about its middle
    return Patch(inside - inside.mean(axis=0) + _centroid(outline) - body.planar_com, cell)


def _centroid(outline: Array) -> Array:
    from carom.scenes.shapes import polygon_properties

    return polygon_properties(outline)[1]


def drag(patch: Patch | None, yaw: Array, velocity: Array, size: float = 1.0) -> tuple[Array, Array]:
    """Mean slip direction [T, 2] (world) and mean lever [T] [m] at yaw [T] and velocity [T, 3] of the centre of mass.

    Friction decelerates by mu * g times the first, and brakes the spin by mu * g / k^2 times the second. Averaging
    over a cell's own spread of velocities keeps the slip smooth near the centre of rotation.
    """
    if patch is None:
        speed = np.linalg.norm(velocity[:, :2], axis=-1, keepdims=True)
        return velocity[:, :2] / np.maximum(speed, 1e-9), np.zeros(len(velocity))
    v, spin = rotate(velocity[:, :2], -yaw), velocity[:, 2:]
    x, y = (size * patch.points).T
    ux, uy = v[:, :1] - spin * y, v[:, 1:] + spin * x
    slip = np.sqrt(ux * ux + uy * uy + (spin * size * patch.cell) ** 2 / 12 + 1e-18)
    ux, uy = ux / slip, uy / slip
    mean = np.stack([ux.mean(axis=1), uy.mean(axis=1)], axis=-1)
    return rotate(mean, yaw), np.asarray((uy * x - ux * y).mean(axis=1))
