"""Targets with few corners, for engines that want simple meshes; mass properties stay as they were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.core.errors import CaromError
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import StrikeScene
from carom.state import Array

CORNERS = 10  #: of the outline; the mesh has twice as many, and 20 is where the paper saw gradients fail


def simplified(scene: StrikeScene, *, corners: int = CORNERS) -> StrikeScene:
    """The same scene with a target of at most so many corners, its mass properties as they were.

    >>> from carom.scenes.strike import builtin
    >>> len(simplified(builtin("semi-cylinder")).outline.vertices)
    10
    """
    shape = scene.shape
    outline = reduced(scene.outline.vertices, corners)
    if shape.kind == "box" or (shape.kind == "extruded" and len(outline) == len(scene.outline.vertices)):
        return scene
    half, k, mass = shape.full_height / 2, scene.gyration_radius, scene.mass
    flat = k * k / 2 + half * half / 3
    com = scene.target.planar_com
    body = Body(
        name=scene.target.name,
        role="target",
        shape=Shape("extruded", outline=tuple((float(x), float(y)) for x, y in outline), height=2 * half),
        mass=mass,
        inertia=scene.target.inertia or (mass * flat, mass * flat, mass * k * k),
        com=(float(com[0]), float(com[1]), 0.0),
    )
    return replace(scene, target=body)


def reduced(outline: Array, corners: int) -> Array:
    """A convex outline [V, 2] with at most so many corners: those whose loss costs least area are dropped in turn."""
    if corners < 3:
        raise CaromError(f"corners: an outline needs 3 or more, got {corners}")
    kept = np.asarray(outline, dtype=np.float64)
    while len(kept) > corners:
        before, after = np.roll(kept, 1, axis=0) - kept, np.roll(kept, -1, axis=0) - kept
        area = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
        kept = np.delete(kept, int(np.argmin(area)), axis=0)
    return kept
