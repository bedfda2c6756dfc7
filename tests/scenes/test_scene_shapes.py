"""Areas, centroids and radii of gyration against their closed forms; outlines that are refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import trimesh

from carom.core.errors import SceneError
from carom.scenes.outline import check_convex
from carom.scenes.shapes import Body, Shape, polygon_properties
from carom.scenes.solids import stretched

R = 0.05


def body(shape: Shape, **options: object) -> Body:
    return Body("b", "target", shape, 0.2, **options)  # type: ignore[arg-type]


def test_semi_cylinder_has_its_centroid_and_inertia() -> None:
    area, centroid, second = polygon_properties(Shape("semi-cylinder", radius=R, height=0.1).planar_outline)
    assert area == pytest.approx(np.pi * R**2 / 2, rel=1e-3)
    np.testing.assert_allclose(centroid, [0.0, 4 * R / (3 * np.pi)], rtol=1e-3, atol=1e-12)
    assert second == pytest.approx(R**2 / 2 - (4 * R / (3 * np.pi)) ** 2, rel=2e-3)


def test_radius_of_gyration_of_box_disc_and_sphere() -> None:
    assert body(Shape("box", size=(0.3, 0.4, 0.1))).gyration_radius == pytest.approx(0.5 / np.sqrt(12))
    assert body(Shape("disc", radius=R)).gyration_radius == pytest.approx(R / np.sqrt(2), rel=1e-3)
    assert body(Shape("sphere", radius=R)).gyration_radius == pytest.approx(R * np.sqrt(0.4))


def test_equilateral_triangle() -> None:
    side = 0.1
    corners = ((0.0, 0.0), (side, 0.0), (side / 2, side * np.sqrt(3) / 2))
    b = body(Shape("extruded", outline=corners, height=0.05))
    np.testing.assert_allclose(b.planar_com, [side / 2, side * np.sqrt(3) / 6])
    assert b.gyration_radius == pytest.approx(side / np.sqrt(12))


def test_centre_of_mass_off_the_centroid_adds_to_the_inertia() -> None:
    b = body(Shape("box", size=(0.3, 0.4, 0.1)), com=(0.03, 0.04, 0.0))
    assert b.gyration_radius**2 == pytest.approx(0.25 / 12 + 0.05**2)
    np.testing.assert_array_equal(b.planar_com, [0.03, 0.04])


def test_measured_inertia_counts_before_geometry() -> None:
    b = body(Shape("box", size=(0.3, 0.4, 0.1)), inertia=(1.0, 1.0, 0.2 * 0.07**2))
    assert b.gyration_radius == pytest.approx(0.07)


def test_inertia_with_products_is_a_full_matrix() -> None:
    b = body(Shape("sphere", radius=R), inertia=(1.0, 2.0, 3.0, 0.1, 0.2, 0.3))
    np.testing.assert_array_equal(b.inertia_matrix, [[1.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 3.0]])
    np.testing.assert_allclose(body(Shape("sphere", radius=R)).inertia_matrix, 0.4 * 0.2 * R * R * np.eye(3))


def test_a_mesh_from_a_file_has_its_solid_s_mass_properties_stretched_or_not(tmp_path: Path) -> None:
    box = trimesh.creation.box((0.1, 0.2, 0.3))
    box.apply_translation([0.01, 0.02, 0.03])
    box.export(tmp_path / "box.stl")
    b = body(Shape("mesh", file=str(tmp_path / "box.stl")))
    np.testing.assert_allclose(b.centre, [0.01, 0.02, 0.03], atol=1e-8)
    same = body(Shape("box", size=(0.1, 0.2, 0.3)))
    np.testing.assert_allclose(b.inertia_matrix, same.inertia_matrix, rtol=1e-6, atol=1e-9)
    factors = np.array([2.0, 1.0, 0.5])
    long, plain = stretched(b, factors, 0.5), stretched(same, factors, 0.5)
    np.testing.assert_allclose(long.solid.extent, plain.solid.extent, rtol=1e-6)
    np.testing.assert_allclose(np.ptp(long.solid.corners, axis=0), [0.2, 0.2, 0.15], rtol=1e-6)
    np.testing.assert_allclose(long.centre, [0.02, 0.02, 0.015], atol=1e-8)
    np.testing.assert_allclose(long.inertia_matrix, plain.inertia_matrix, rtol=1e-6, atol=1e-9)
    assert long.solid == b.solid.stretched(factors)  # an engine finds its compiled mesh by its shape


def test_a_mesh_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "box.stl"
    for turn, side in enumerate((0.1, 0.2)):
        trimesh.creation.box((side, side, side)).export(path)
        os.utime(path, ns=(turn, turn))
        np.testing.assert_allclose(Shape("mesh", file=str(path)).extent, side, rtol=1e-6)


@pytest.mark.parametrize(
    ("outline", "message"),
    [
        ([[0, 0], [1, 0]], "x: outline must be at least three [x, y] corners in metres, got shape (2, 2)"),
        ([[0, 0], [0, 1], [1, 1], [1, 0]], "x: outline runs clockwise; list its corners counter-clockwise"),
        ([[0, 0], [0, 1], [0, 2], [1, 0]], "x: outline runs clockwise; list its corners counter-clockwise"),
        (
            [[0, 0], [2, 0], [1, 0.5], [2, 2], [0, 2]],
            "x: outline is not convex at corner 3; split it into convex parts",
        ),
        (
            [[1, 0.5], [2, 2], [0, 2], [0, 0], [2, 0]],
            "x: outline is not convex at corner 1; split it into convex parts",
        ),
        ([[0, 0], [1, 0], [1, 0], [0, 1]], "x: outline has corner 2 twice; list each corner once"),
        (
            [[np.cos(a), np.sin(a)] for a in 4 * np.pi / 5 * np.arange(5)],
            "x: outline encloses no area or crosses itself; list its corners in order",
        ),
        ([[0, 0], [1, 0], [2, 0]], "x: outline encloses no area or crosses itself; list its corners in order"),
    ],
)
def test_bad_outlines_are_refused(outline: list[list[float]], message: str) -> None:
    with pytest.raises(SceneError) as error:
        check_convex(np.asarray(outline, dtype=float), "x")
    assert str(error.value) == message


def test_extra_corners_on_a_straight_side_are_fine() -> None:
    check_convex(np.array([[0, 0], [0.5, 0], [1, 0], [1, 1], [0, 1.0]]), "x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shape("bx"), "unknown shape 'bx' (did you mean 'box'?); known: box, sphere, cylinder"),
        (lambda: Shape("box", size=(1, 0, 1)), "box: size must be three positive lengths in metres, got [1, 0, 1]"),
        (lambda: Shape("disc", radius=-1.0), "disc: radius must be a positive length in metres, got -1.0"),
        (lambda: Body("b", "targt"), "body 'b': unknown role 'targt' (did you mean 'target'?)"),
        (lambda: Body("b", "target", mass=0.0), "body 'b': mass must be positive [kg], got 0.0"),
        (lambda: Body("b", "target", inertia=(1.0, 1.0)), "body 'b': inertia must be 3 or 6 numbers [kg m^2], got 2"),
        (lambda: Body("b", "target").solid, "body 'b' has no shape"),
        (lambda: Body("b", "target").gyration_radius, "body 'b' has neither shape nor inertia"),
    ],
)
def test_wrong_bodies_are_refused(make: object, message: str) -> None:
    with pytest.raises(SceneError) as error:
        make()  # type: ignore[operator]
    assert str(error.value).startswith(message)
