"""Bodies and arrows as triangles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from carom.core.rotations import Array
from carom.scenes.shapes import Shape

Faces = NDArray[np.int64]
SIDES = 12  #: of an arrow's shaft


def triangles(shape: Shape) -> tuple[Array, Faces]:
    """Vertices [V, 3] [m] in the body's frame and triangles [F, 3] of a shape; a prism where it is an outline."""
    if shape.kind in ("box", "sphere", "cylinder", "disc", "mesh"):
        return shape.surface()
    parts = [prism(part, shape.full_height) for part in shape.planar_parts]
    shift = np.cumsum([0, *(len(v) for v, _ in parts)])
    return np.vstack([v for v, _ in parts]), np.vstack([f + s for (_, f), s in zip(parts, shift, strict=False)])


def prism(outline: Array, height: float) -> tuple[Array, Faces]:
    """An upright prism over a convex outline [V, 2], counter-clockwise, its middle at height 0."""
    count = len(outline)
    low = np.column_stack([outline, np.full(count, -height / 2)])
    high = np.column_stack([outline, np.full(count, height / 2)])
    fan = [[0, i, i + 1] for i in range(1, count - 1)]
    top = [[a + count, b + count, c + count] for a, b, c in fan]
    bottom = [[a, c, b] for a, b, c in fan]
    around = [(i, (i + 1) % count) for i in range(count)]
    sides = [f for i, j in around for f in ([i, j, j + count], [i, j + count, i + count])]
    return np.vstack([low, high]), np.array([*top, *bottom, *sides], dtype=np.int64)


def arrow(point: Array, vector: Array, thick: float) -> tuple[Array, Faces]:
    """An arrow [m] that starts at a point and ends at point + vector, as a shaft and a head."""
    length = float(np.linalg.norm(vector))
    along = vector / length
    aside = np.cross(along, [0.0, 0.0, 1.0] if abs(along[2]) < 0.9 else [1.0, 0.0, 0.0])
    aside = aside / np.linalg.norm(aside)
    other = np.cross(along, aside)
    angle = np.linspace(0.0, 2 * np.pi, SIDES, endpoint=False)
    ring = np.cos(angle)[:, None] * aside + np.sin(angle)[:, None] * other
    neck = max(length - 4 * thick, 0.4 * length)
    rings = [(0.0, thick / 2), (neck, thick / 2), (neck, 1.5 * thick)]
    points = [point + at * along + radius * ring for at, radius in rings]
    tip = len(rings) * SIDES
    faces = []
    for i in range(SIDES):
        j = (i + 1) % SIDES
        for low, high in ((0, 1), (1, 2)):
            a, b = low * SIDES, high * SIDES
            faces += [[a + i, a + j, b + j], [a + i, b + j, b + i]]
        faces += [[2 * SIDES + i, 2 * SIDES + j, tip], [j, i, tip + 1]]
    return np.vstack([*points, point + vector, point]), np.array(faces, dtype=np.int64)
