"""The strikes a planner may choose from: on the outline, within their bounds, the same wherever the target lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from carom.core.errors import CaromError
from carom.engines.approach import time_to_touch
from carom.plan.space import CORNER, STANDOFF, StrikeSpace, approach, strike_space
from carom.reality.touch import check_on_outline, surface
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import Striker, StrikeScene, builtin
from carom.state import rotate, wrap_angle

POSE = np.array([0.4, -0.3, 1.1])
U = np.random.default_rng(7).random((400, 3))


def flat_square() -> StrikeScene:
    """A square struck with a flat face that looks along the striker's y axis."""
    return replace(builtin("square"), striker=Striker(width=0.02, forward=np.pi / 2))


def disc() -> StrikeScene:
    return replace(builtin("square"), target=Body("puck", "target", Shape("cylinder", radius=0.04, height=0.03), 0.2))


SCENES = {name: builtin(name) for name in ("square", "triangle", "semi-cylinder", "box")}
SCENES |= {"flat": flat_square(), "disc": disc()}


@pytest.fixture(params=SCENES, name="space")
def _space(request: pytest.FixtureRequest) -> StrikeSpace:
    return strike_space(SCENES[request.param], POSE)


def turned(space: StrikeSpace, u: np.ndarray) -> np.ndarray:
    """Angle of each commanded velocity from the inward normal of the exact outline [rad]."""
    commands = space.commands(u)
    _, inward = check_on_outline(space.scene.shape, commands.contact_point, commands.velocity)
    angle = np.arctan2(commands.velocity[:, 1], commands.velocity[:, 0]) - np.arctan2(inward[:, 1], inward[:, 0])
    return wrap_angle(angle)


def test_commands_lie_on_the_outline_and_within_the_bounds(space):
    commands = space.commands(U)
    snapped, _ = surface(space.scene.shape, commands.contact_point)
    assert np.linalg.norm(commands.contact_point - snapped, axis=1).max() < 5e-5  # chords of an arc cut this much
    speed = np.linalg.norm(commands.velocity, axis=1)
    low, high = space.scene.speed
    assert (speed >= low - 1e-12).all()
    assert (speed <= high + 1e-12).all()
    np.testing.assert_allclose(speed, low + (high - low) * U[:, 2], rtol=1e-12)
    angle = turned(space, U)  # the exact outline accepts them
    assert np.abs(angle).max() <= space.deflection + 1e-3
    np.testing.assert_allclose(angle, space.deflection * (2 * U[:, 1] - 1), atol=1e-3)
    np.testing.assert_array_equal(commands.target_pose, np.tile(POSE, (len(U), 1)))


def test_bounds_of_the_cube_are_the_bounds_of_the_strikes():
    space = strike_space(builtin("square"), POSE, speed=(0.3, 0.5), deflection=0.1)
    corners = np.array([[0.1, 0.0, 0.0], [0.1, 1.0, 1.0]])
    np.testing.assert_allclose(np.linalg.norm(space.commands(corners).velocity, axis=1), [0.3, 0.5])
    np.testing.assert_allclose(turned(space, corners), [-0.1, 0.1], atol=1e-12)


@pytest.mark.parametrize("name", ["square", "triangle", "flat"])
def test_strikes_keep_away_from_corners_and_use_every_side(name):
    scene = SCENES[name]
    vertices = scene.outline.vertices
    length = np.linalg.norm(np.roll(vertices, -1, axis=0) - vertices, axis=1)
    along = np.c_[np.linspace(0, 1, 3001), np.full((3001, 2), 0.5)]
    point = strike_space(scene, POSE).commands(along).contact_point
    to_corner = np.linalg.norm(point[:, None] - vertices, axis=-1)
    assert to_corner.min() == pytest.approx(CORNER * length.min(), abs=1e-9)  # kept, and no more than that
    _, inward = surface(scene.shape, point)
    share = np.unique(inward.round(6), axis=0, return_counts=True)[1] / len(point)
    np.testing.assert_allclose(share, 1 / len(vertices), atol=2e-3)


def test_only_the_arc_of_a_semi_cylinder_is_struck():
    scene = builtin("semi-cylinder")
    point = strike_space(scene, POSE).commands(U).contact_point
    low, high = scene.arc
    theta = np.arctan2(point[:, 1], point[:, 0])
    assert ((theta >= low) & (theta <= high)).all()
    assert theta.min() < low + 0.05
    assert theta.max() > high - 0.05
    np.testing.assert_allclose(np.linalg.norm(point, axis=1), scene.shape.radius, atol=2e-5)


def test_initial_states_are_a_standoff_before_contact(space):
    initial = space.initial(U)
    speed = np.linalg.norm(initial.striker_velocity[:, :2], axis=1)
    # a simulated arc is a polygon, and touches up to a facet's sagitta later
    exact = space.scene.arc is None and not space.scene.shape.is_round
    way = time_to_touch(space.scene, initial) * speed
    np.testing.assert_allclose(way, STANDOFF, atol=1e-12 if exact else 5e-5)
    assert not initial.target_velocity.any()
    near = approach(space.scene, space.commands(U), standoff=0.005)
    np.testing.assert_allclose(time_to_touch(space.scene, near) * speed, 0.005, atol=1e-12 if exact else 5e-5)


def test_a_flat_face_arrives_flush():
    scene = flat_square()
    initial = strike_space(scene, POSE).initial(U)
    _, inward = surface(scene.shape, strike_space(scene, POSE).commands(U).contact_point)
    facing = initial.striker_pose[:, 2] + scene.striker.forward - POSE[2]
    np.testing.assert_allclose(wrap_angle(facing - np.arctan2(inward[:, 1], inward[:, 0])), 0, atol=1e-9)


def test_strikes_move_and_turn_with_the_target(space):
    here, origin = space, strike_space(space.scene, np.zeros(3))
    for name in ("contact_point", "velocity"):
        np.testing.assert_array_equal(getattr(here.commands(U), name), getattr(origin.commands(U), name))
    a, b = here.initial(U), origin.initial(U)
    np.testing.assert_allclose(a.striker_pose[:, :2], POSE[:2] + rotate(b.striker_pose[:, :2], POSE[2]), atol=1e-12)
    np.testing.assert_allclose(wrap_angle(a.striker_pose[:, 2] - b.striker_pose[:, 2] - POSE[2]), 0, atol=1e-12)
    np.testing.assert_allclose(a.striker_velocity[:, :2], rotate(b.striker_velocity[:, :2], POSE[2]), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": (0.5, 0.3)}, r"speed: expected two positive numbers \[m/s\], lower first, got 0.5 0.3"),
        ({"speed": (0.0, 0.3)}, "lower first, got 0 0.3"),
        ({"speed": (float("nan"), 0.3)}, "lower first, got nan"),
        ({"speed": (0.3, 1.5)}, "the model has learned 0.2 to 0.8 m/s"),
        ({"speed": (0.05, 0.5)}, "speed 0.05 to 0.5 m/s: the model has learned"),
        ({"deflection": 0.0}, "deflection: expected more than 0 and at most 0.262 rad, got 0"),
        ({"deflection": -0.1}, "got -0.1"),
        ({"deflection": 0.5}, "at most 0.262 rad, got 0.5"),
        ({"deflection": float("nan")}, "got nan"),
        ({"pose": [0.0, 0.0]}, r"pose: expected three finite numbers, x y yaw \[m, m, rad\], got \[0.0, 0.0\]"),
        ({"pose": [0.0, float("nan"), 0.0]}, "pose: expected three finite numbers"),
    ],
)
def test_bad_bounds_are_refused(options, message):
    given = {"pose": np.zeros(3), **options}
    with pytest.raises(CaromError, match=message):
        strike_space(builtin("square"), given.pop("pose"), **given)


def test_a_curve_stored_as_a_polygon_is_followed_without_jumps() -> None:
    """A recorded semi-cylinder has no declared arc: along its facets the normal turns steadily."""
    scene = replace(builtin("semi-cylinder"), arc=None)
    u = np.column_stack([np.linspace(0.0, 1.0, 4001), np.full((4001, 2), 0.5)])
    _, normal, _, _ = strike_space(scene, np.zeros(3)).strike(torch.as_tensor(u))
    turn = np.abs(np.diff(np.unwrap(np.arctan2(*normal.numpy().T[::-1]))))
    assert (turn > np.radians(1.0)).sum() <= 2  # the two corners of the flat side
    assert (turn[turn < np.radians(1.0)] > 1e-6).mean() > 0.5  # most of the way it turns: the arc is longer
