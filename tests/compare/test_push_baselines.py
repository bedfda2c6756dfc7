"""Simple predictors of pushes: a straight push is a straight push, off-centre ones turn, bodies move rigidly."""

from __future__ import annotations

import numpy as np
import pytest

from carom.compare.push_baselines import BASELINES, in_mujoco, quasi_static, stays_put, with_the_tool
from carom.identify.pushes.windows import Windows
from carom.scenes.pushing import GuidedScene
from carom.scenes.shapes import Body, Shape
from carom.state import Array

SCENE = GuidedScene(
    "led",
    Body("block", "target", Shape("box", size=(0.06, 0.06, 0.06)), mass=0.2),
    Body("tool", "tool", Shape("cylinder", radius=0.012, height=0.05)),
)


def pushed(offset: float, speed: float = 0.05) -> Windows:
    """A tool that goes along x for 1.5 s, beside the block's middle by so much."""
    path = np.zeros((1, 30, 10, 3))
    path[..., 0] = (-0.06 + speed * SCENE.timestep * np.arange(1, 301)).reshape(30, 10)
    path[..., 1] = offset
    begin = np.array([[-0.06, offset, 0.0]])
    none = np.full((1, 31, 3), np.nan)
    return Windows(
        period=0.05,
        start=SCENE.placed(np.zeros((1, 3)), begin),
        unsure=np.zeros((1, 6)),
        controls=path,
        held=path[:, :1],
        block=np.zeros((1, 31, 3)),
        tip=none,
        every=1,
        recording=np.zeros(1, dtype=np.int64),
        names=("a",),
    )


def end(poses: Array) -> Array:
    return np.asarray(poses[0, -1])


def test_a_push_through_the_middle_goes_straight() -> None:
    windows = pushed(0.0)
    ahead = -0.06 + 0.05 * 1.5 + 0.042
    for predict in (with_the_tool, quasi_static):
        np.testing.assert_allclose(end(predict(SCENE, windows)), [ahead, 0.0, 0.0], atol=1.5e-3)
    assert (end(stays_put(SCENE, windows)) == 0.0).all()


@pytest.mark.parametrize("offset", [-0.015, 0.01, 0.02])
def test_a_push_beside_the_middle_turns_it_as_mujoco_does_when_slow(offset: float) -> None:
    windows = pushed(offset, speed=0.03)
    still = end(quasi_static(SCENE, windows))
    assert np.sign(still[2]) == -np.sign(offset)
    even = {"ground_friction": 0.5, "striker_friction": 0.3, "pressure_spread": 0.54}
    simulated = end(in_mujoco(SCENE, windows, even))
    np.testing.assert_allclose(still[2], simulated[2], atol=0.15)
    np.testing.assert_allclose(still[:2], simulated[:2], atol=4e-3)


def test_its_mirror_image_is_the_mirror_image() -> None:
    one, other = (end(quasi_static(SCENE, pushed(side * 0.012))) for side in (1, -1))
    np.testing.assert_allclose(one, other * [1, -1, -1], atol=1e-9)


def test_every_predictor_says_what_it_is() -> None:
    assert list(BASELINES) == ["stays-put", "with-tool", "quasi-static", "mujoco-default"]
    assert all(b.words for b in BASELINES.values())
