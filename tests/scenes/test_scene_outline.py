"""Where a striker meets an outline: nearest points, normals and gaps on sides, corners and curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carom.scenes.outline import Outline
from carom.scenes.shapes import Shape

SQUARE = Outline(np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]))
RADIUS = 0.05
ROUND = Outline(Shape("cylinder", radius=RADIUS, height=0.1).planar_outline)
HALF = Outline(Shape("semi-cylinder", radius=RADIUS, height=0.05).planar_outline)


def test_beside_a_flat_side_the_foot_is_straight_below() -> None:
    point, normal = SQUARE.nearest(np.array([[0.3, -2.0], [1.5, 0.2], [0.9, 0.0]]))
    np.testing.assert_allclose(point, [[0.3, -1.0], [1.0, 0.2], [1.0, 0.0]])
    np.testing.assert_allclose(normal, [[0.0, -1.0], [1.0, 0.0], [1.0, 0.0]])


def test_outside_a_sharp_corner_the_normal_points_from_corner_to_striker() -> None:
    point, normal = SQUARE.nearest(np.array([[4.0, 5.0]]))
    np.testing.assert_allclose(point, [[1.0, 1.0]])
    np.testing.assert_allclose(normal, [[0.6, 0.8]])


def test_gap_is_signed_and_exact() -> None:
    gap = SQUARE.gap(np.array([[0.0, -2.5], [4.0, 5.0], [0.0, 0.0], [0.9, 0.0], [1.0, 0.3]]))
    np.testing.assert_allclose(gap, [1.5, 5.0, -1.0, -0.1, 0.0], atol=1e-15)


@given(st.floats(0, 2 * np.pi), st.floats(1.05, 3.0))
def test_on_a_curve_normals_are_blended_to_the_true_ones(angle: float, distance: float) -> None:
    outward = np.array([[np.cos(angle), np.sin(angle)]])
    point, normal = ROUND.nearest(distance * RADIUS * outward)
    # a circle of 96 sides: one side turns by 3.75 degrees, blending leaves a fraction of that
    assert np.arccos(np.clip((normal * outward).sum(), -1, 1)) < np.radians(1.9)
    np.testing.assert_allclose(np.linalg.norm(point, axis=-1), RADIUS, rtol=6e-4)


def test_blended_normals_are_exact_at_corners_and_middles_of_a_curve() -> None:
    step = np.pi / 96
    angle = step * np.arange(192)
    outward = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    _, normal = ROUND.nearest(2 * RADIUS * outward)
    np.testing.assert_allclose(normal, outward, atol=1e-12)


def test_arc_ends_of_a_semi_cylinder_stay_sharp() -> None:
    point, normal = HALF.nearest(np.array([[0.0, -0.02], [0.049, -0.01], [0.06, -0.01]]))
    np.testing.assert_allclose(point, [[0.0, 0.0], [0.049, 0.0], [RADIUS, 0.0]], atol=1e-12)
    np.testing.assert_allclose(normal[:2], [[0.0, -1.0], [0.0, -1.0]], atol=1e-12)
    np.testing.assert_allclose(normal[2], [np.sqrt(0.5), -np.sqrt(0.5)], atol=1e-12)


def test_walking_the_outline_visits_every_side() -> None:
    assert SQUARE.lengths.tolist() == [2.0] * 4
    point, normal = SQUARE.point_at(np.array([1.0, 3.0, 5.0, 7.0, 9.0]))
    np.testing.assert_allclose(point, [[0, -1], [1, 0], [0, 1], [-1, 0], [0, -1]])
    np.testing.assert_allclose(normal, [[0, -1], [1, 0], [0, 1], [-1, 0], [0, -1]])


@given(st.floats(0.0, 1.0))
def test_points_on_the_outline_have_no_gap_and_are_their_own_nearest(share: float) -> None:
    at, outward = HALF.point_at(np.array([share * HALF.lengths.sum()]))
    assert HALF.gap(at)[0] == pytest.approx(0.0, abs=1e-12)
    outside, _ = HALF.nearest(at + 1e-3 * outward)
    np.testing.assert_allclose(outside, at, atol=4e-5)


def test_ways_to_the_corners_ahead_and_behind() -> None:
    square = Outline(np.array([[0.0, 0.0], [0.1, 0.0], [0.1, 0.1], [0.0, 0.1]]))
    ways, turns = square.corners_around(np.array([[0.03, 0.0], [0.1, 0.06], [0.1, 0.1]]))
    np.testing.assert_allclose(ways, [[0.07, 0.03], [0.04, 0.06], [0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(turns, np.pi / 2)


def test_a_curve_ends_at_its_corners_and_a_circle_nowhere() -> None:
    half = Outline(Shape("semi-cylinder", radius=0.05, height=0.1).planar_outline)
    ways, turns = half.corners_around(np.array([[0.0, 0.05]]))
    np.testing.assert_allclose(ways, [[0.05 * np.pi / 2] * 2], rtol=1e-3)
    np.testing.assert_allclose(turns, np.pi / 2, atol=0.05)
    disc = Outline(Shape("cylinder", radius=0.05, height=0.1).planar_outline)
    assert np.isinf(disc.corners_around(np.array([[0.05, 0.0]]))[0]).all()
