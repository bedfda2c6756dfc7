"""Scenes whose bodies differ per row: what one row does is what a scene of its own would do."""

from __future__ import annotations

import numpy as np
import pytest

from carom.engines import MujocoEngine
from carom.scenes.free import FreeScene
from carom.scenes.shapes import Body, Shape
from carom.scenes.varied import VariedScene
from carom.state import SceneState

SIZES = ((0.06, 0.05, 0.04), (0.1, 0.1, 0.1), (0.16, 0.13, 0.12))
VALUES = {"friction": 0.12, "stiffness": 20_000.0, "damping": 200.0, "face_friction": 0.3}


def box(size: tuple[float, float, float], name: str = "body_0") -> Body:
    return Body(name, "target", Shape("box", size=size), mass=300 * float(np.prod(size)))


def sliding(rows: int) -> SceneState:
    """Boxes that lie on their faces and slide."""
    position, quaternion = np.zeros((rows, 1, 3)), np.tile([1.0, 0, 0, 0], (rows, 1, 1))
    position[:, 0, 2] = [size[2] / 2 for size in SIZES][:rows]
    velocity = np.zeros((rows, 1, 3))
    velocity[:, 0, 0] = 0.8
    return SceneState(("body_0",), position, quaternion, velocity, np.zeros((rows, 1, 3)))


def test_faces_rub_unlike_edges_whatever_a_box_s_size() -> None:
    """Faces once kept the size of a box of 0.1 m: those of larger boxes never touched the ground."""
    rows = [(box(size),) for size in SIZES]
    scene = VariedScene(FreeScene("boxes", rows[0]))
    told = {name: np.full(len(rows), value) for name, value in VALUES.items()}
    start = sliding(len(rows))
    motion = MujocoEngine(scene, tuple(VALUES), step=1e-3, threads=1).open(start, told, bodies=rows)
    x = motion.rollout(0.2, frames=21).position[:, :, 0, 0]
    for row, size in enumerate(SIZES):
        slowing = -2 * np.polyfit(np.linspace(0, 0.2, 21)[3:], x[row, 3:], 2)[0]
        assert slowing == pytest.approx(0.3 * 9.81, rel=0.03), size
        own = MujocoEngine(FreeScene("one", (box(size),)), tuple(VALUES), step=1e-3, threads=1)
        state = SceneState(*(v if isinstance(v, tuple) else v[[row]] for v in _parts(start)))
        alone = own.open(state, {n: np.array([v]) for n, v in VALUES.items()}).rollout(0.2, frames=21)
        np.testing.assert_allclose(alone.position[0, :, 0, 0], x[row], atol=1e-6)


def _parts(state: SceneState) -> tuple[tuple[str, ...] | np.ndarray, ...]:
    return state.bodies, state.position, state.quaternion, state.velocity, state.spin
