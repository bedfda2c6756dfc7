"""Impacts simulated with known parameters, for the tests of identification."""

from __future__ import annotations

import numpy as np

from carom.engines.mujoco.collide import Collider
from carom.scenes.strike import StrikeScene
from carom.state import Impacts, Strikes


def strikes_at(scene: StrikeScene, count: int, *, seed: int) -> Strikes:
    """Round strikes at random places of the outline, within 15 degrees of its normal."""
    rng = np.random.default_rng(seed)
    points, normal = scene.outline.point_at(rng.uniform(0, scene.outline.lengths.sum(), count))
    heading = np.arctan2(-normal[:, 1], -normal[:, 0]) + rng.uniform(-0.26, 0.26, count)
    velocity = rng.uniform(0.3, 0.8, count)[:, None] * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    still, zero = np.zeros((count, 3)), np.zeros((count, 1))
    centre = points + float(scene.striker.radius or 0.0) * normal
    return Strikes(still, still, np.c_[centre, zero], np.c_[velocity, zero])


def simulated(scene: StrikeScene, true: dict[str, float], count: int, *, seed: int, noise: float = 0.01) -> Impacts:
    """Impacts of the scene with these parameters, others at their defaults, and relative noise on the outcomes."""
    parameters = scene.parameters("mujoco")
    strikes = strikes_at(scene, count, seed=seed)
    values = np.tile([true.get(p.name, p.default) for p in parameters], (count, 1))
    post = Collider(scene, parameters).run(strikes, values).post
    size = np.linalg.norm(post * [1, 1, scene.gyration_radius], axis=-1, keepdims=True)
    shake = np.random.default_rng(seed + 1).standard_normal(post.shape) * size / [1, 1, scene.gyration_radius]
    return Impacts(strikes, post + noise * shake, np.full_like(post, 0.01), tuple(f"hit_{i}" for i in range(count)))
