"""Strikes and parameters drawn over a scene's ranges (Table I), the same for a seed whatever the thread count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carom.scenes.parameters import Parameter, from_unit
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes


def sample_strikes(scene: StrikeScene, count: int, rng: np.random.Generator) -> Strikes:
    """`S_pre`: impact point, deflection and speed drawn over the scene's ranges; the target rests at the origin."""
    if scene.arc is not None:
        theta = rng.uniform(*scene.arc, count)
        radius = float(scene.shape.radius or 1.0)
        outward = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
        point = radius * outward
    else:
        point, outward = scene.outline.point_at(rng.uniform(0.0, scene.outline.lengths.sum(), count))
    inward = np.arctan2(-outward[:, 1], -outward[:, 0])
    heading = inward + rng.uniform(-scene.deflection, scene.deflection, count)
    speed = rng.uniform(*scene.speed, count)
    facing = inward + rng.uniform(-scene.face_angle, scene.face_angle, count)
    reach = 0.0 if scene.striker.flat else float(scene.striker.radius or 0.0)
    position = point + reach * outward
    zero = np.zeros((count, 3))
    velocity = speed[:, None] * np.stack([np.cos(heading), np.sin(heading), np.zeros(count)], axis=-1)
    pose = np.concatenate([position, (facing - scene.striker.forward)[:, None]], axis=-1)
    return Strikes(zero, zero, pose, velocity)


def sample_parameters(parameters: Sequence[Parameter], count: int, rng: np.random.Generator) -> Array:
    """`P` drawn uniformly (on a logarithmic scale where a parameter says so) within its bounds [N, P]."""
    return from_unit(parameters, rng.random((count, len(parameters))))
