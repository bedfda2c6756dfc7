"""Impulses of a row stepped by itself: they are what changes its momentum, and the run stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.engines.mujoco.engine import MujocoEngine
from carom.engines.mujoco.impulses import impulses_of
from carom.scenes.free import toss_scene
from carom.state import SceneState


def test_impulses_change_the_momentum_and_the_run_stays_where_it_is() -> None:
    scene, period, frames = toss_scene(), 0.01, 40
    engine = MujocoEngine(scene, step=0.0005, threads=1)
    place, turn = np.array([[[0.0, 0.0, 0.12]]]), np.array([[[0.9, 0.3, 0.2, 0.1]]])
    still = np.zeros((1, 1, 3))
    turn = turn / np.linalg.norm(turn)
    start = SceneState(("cube",), place, turn, still + np.array([0.5, 0.0, 0.0]), still)
    run = engine.open(start)
    told = impulses_of(run, 0, period, frames)
    assert np.array_equal(run.state.position, start.position)
    end = run.rollout(frames * period, frames=frames + 1)
    final = run.state.velocity[0, 0]
    mass = scene.bodies[0].mass
    given = sum(one.impulse for one in told)
    assert np.allclose(given, mass * (final - [0.5, 0, 0] + [0, 0, 9.81 * frames * period]), atol=1e-3)
    assert {one.bodies for one in told} == {("world", "cube")}
    assert all(abs(one.point[2]) < 0.01 for one in told)
    height = end.position[0, :, 0, 2]
    assert min(one.frame for one in told) <= int(np.argmin(height))
    with pytest.raises(CaromError, match="multiple of the engine's step"):
        impulses_of(run, 0, 0.0007, 3)
