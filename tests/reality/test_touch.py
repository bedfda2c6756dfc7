"""Where strikers land, and the commands that send them there."""

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.reality.contract import sample_commands
from carom.reality.settings import SHAPES
from carom.reality.touch import check_on_outline, flat_touch, round_touch, surface
from carom.state import StrikeCommands, rotate


def rng(seed=0):
    return np.random.default_rng(seed)


def test_semi_cylinder_commands_obey_table_1():
    commands = sample_commands(SHAPES["semi-cylinder"], 2000, rng())
    x, y = commands.contact_point.T
    np.testing.assert_allclose(np.hypot(x, y), 0.05, rtol=1e-12)
    theta = np.arctan2(y, x)
    assert theta.min() >= np.pi / 12
    assert theta.max() <= 11 * np.pi / 12
    assert np.ptp(theta) > 0.99 * 10 * np.pi / 12
    inward = -commands.contact_point / 0.05
    speed = np.linalg.norm(commands.velocity, axis=1)
    assert 0.2 <= speed.min() < speed.max() <= 0.8
    cosine = (inward * commands.velocity).sum(1) / speed
    assert np.arccos(np.clip(cosine, -1, 1)).max() <= np.pi / 12 + 1e-9


@pytest.mark.parametrize("name", ["square", "triangle"])
def test_polygon_commands_keep_off_the_corners(name):
    shape = SHAPES[name]
    commands = sample_commands(shape, 2000, rng())
    outline = shape.planar_outline
    side = np.linalg.norm(outline[1] - outline[0])
    to_corner = np.linalg.norm(commands.contact_point[:, None] - outline, axis=-1).min(1)
    assert 0.08 * side - 1e-6 <= to_corner.min() < 0.1 * side
    _, normal = surface(shape, commands.contact_point)
    assert len(np.unique(normal.round(6), axis=0)) == len(outline)  # every edge is struck
    one = sample_commands(shape, 50, rng(), edges=[1])
    assert len(np.unique(surface(shape, one.contact_point)[1].round(6), axis=0)) == 1


def test_first_commands_do_not_depend_on_the_count():
    few, many = (sample_commands(SHAPES["square"], n, rng(4)) for n in (5, 50))
    np.testing.assert_array_equal(few.velocity, many.velocity[:5])
    np.testing.assert_array_equal(many[3:5].target_pose, few.target_pose[3:5])


def test_flat_side_of_the_semi_cylinder_has_its_own_normal():
    points, normal = surface(SHAPES["semi-cylinder"], np.array([[0.01, 0.0], [0.0, 0.0501]]))
    np.testing.assert_allclose(points, [[0.01, 0.0], [0.0, 0.05]])
    np.testing.assert_allclose(normal, [[0.0, 1.0], [0.0, -1.0]], atol=1e-12)


def test_bad_commands_are_named():
    shape = SHAPES["square"]
    with pytest.raises(CaromError, match=r"strike 1: expected a contact point on the target's outline.*10\.0 mm away"):
        check_on_outline(shape, np.array([[0.04, 0.0], [0.05, 0.0]]), np.array([[-1.0, 0], [-1.0, 0]]))
    with pytest.raises(CaromError, match="strike 0: expected a velocity into the target"):
        check_on_outline(shape, np.array([[0.04, 0.0]]), np.array([[1.0, 0.0]]))
    with pytest.raises(CaromError, match=r"velocity: expected an array of shape \(2, 2\), got \(1, 2\)"):
        StrikeCommands(np.zeros((2, 2)), np.zeros((1, 2)), np.zeros((2, 3)))
    with pytest.raises(CaromError, match=r"strike 1: velocity: expected finite numbers, got \[nan, 0\.0\]"):
        StrikeCommands(np.zeros((2, 2)), np.array([[0, 0], [np.nan, 0]]), np.zeros((2, 3)))
    with pytest.raises(CaromError, match="edges: expected numbers from 0 to 3, got "):
        sample_commands(shape, 3, rng(), edges=[4])


def test_round_striker_stands_off_by_its_radius():
    touch = round_touch(np.array([[0.0, 0.05]]), np.array([[0.0, -1.0]]), radius=0.02)
    np.testing.assert_allclose(touch.striker, [[0.0, 0.07, -np.pi / 2]])
    assert not touch.flush.any()


def face_gap(shape, touch, width, depth):
    """Least distance along the facing from the face to the target's corners in front of it, and to the face itself."""
    facing = rotate(np.array([1.0, 0.0]), touch.striker[0, 2])
    middle = touch.striker[0, :2] + facing * depth / 2
    offset = shape.planar_outline - middle
    across = np.abs(offset @ rotate(np.array([0.0, 1.0]), touch.striker[0, 2]))
    return (offset @ facing)[across < width / 2]


@pytest.mark.parametrize("tilt", [0.01, -0.01])
def test_flat_striker_lands_on_its_leading_corner_first(tilt):
    aim, yaw = np.array([[0.04, 0.0]]), np.array([np.pi + tilt])
    touch = flat_touch(SHAPES["square"], aim, yaw, np.array([[-0.5, 0.0]]), width=0.04, depth=0.02)
    # facing -x and turned counter-clockwise, the face's far end in +y leads
    np.testing.assert_allclose(touch.points[0, :, 1], np.sign(tilt) * np.array([0.02, -0.02, 0.02]), atol=1e-4)
    assert touch.flush.all()
    np.testing.assert_allclose(touch.normal, [[-1.0, 0.0]], atol=1e-12)


def test_flat_striker_over_a_corner_lands_on_the_corner():
    aim, yaw = np.array([[0.04, 0.035]]), np.array([np.pi - 0.3])  # leans towards the corner at (0.04, 0.04)
    touch = flat_touch(SHAPES["square"], aim, yaw + 0.6, np.array([[-0.5, 0.0]]), width=0.04, depth=0.02)
    np.testing.assert_allclose(touch.points[0, 0], [0.04, 0.04], atol=1e-9)
    assert not touch.flush.any()
    assert face_gap(SHAPES["square"], touch, 0.04, 0.02).min() == pytest.approx(0, abs=1e-9)


def test_flat_striker_meets_an_arc_where_the_arc_faces_it():
    angle = np.radians(70.0)
    aim = 0.05 * np.array([[np.cos(angle), np.sin(angle)]])
    touch = flat_touch(SHAPES["semi-cylinder"], aim, np.array([angle + np.pi]), -10 * aim, width=0.04, depth=0.02)
    np.testing.assert_allclose(touch.points[0, 0], aim[0], atol=5e-4)
    np.testing.assert_allclose(touch.normal[0], -aim[0] / 0.05, atol=2e-2)
    assert not touch.flush.any()


def test_flat_striker_turns_from_end_to_end_without_a_jump():
    tilt = np.linspace(-0.01, 0.01, 401)
    aim = np.tile([0.04, 0.01], (401, 1))
    touch = flat_touch(SHAPES["square"], aim, np.pi + tilt, -10 * aim * [1, 0], width=0.04, depth=0.02)
    along = touch.points[:, 0, 1]
    assert along[0] < -0.009
    assert along[-1] > 0.029
    assert np.abs(np.diff(along)).max() < 2e-4
    assert along[200] == pytest.approx(0.01, abs=1e-9)
