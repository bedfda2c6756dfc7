"""Sliding on a pressure patch: analytic stops, symmetry, and the order of the integrator."""

import numpy as np
import pytest

from carom.reality.pressure_slide import GRAVITY, footprint, friction_acceleration, slide
from carom.scenes.shapes import Shape, polygon_properties

DISC = Shape("cylinder", radius=0.05, height=0.05).planar_outline
HALF = Shape("semi-cylinder", radius=0.05, height=0.05).planar_outline


def even_base(outline, **options):
    _, centroid, second = polygon_properties(outline)
    return footprint(outline, centroid, float(np.sqrt(second)), **options)


def test_cells_cover_the_outline_exactly():
    base = even_base(HALF)
    assert base.share.sum() == pytest.approx(1)
    np.testing.assert_allclose(base.share @ base.points, 0, atol=1e-12)
    fine = even_base(HALF, cells=40)
    assert fine.share @ (fine.points**2).sum(1) == pytest.approx(fine.gyration**2, rel=2e-3)


def test_pressure_tilts_along_its_gradient():
    base = even_base(HALF, gradient=(4.0, 0.0))
    assert (base.share @ base.points)[0] > 1e-4
    assert abs((base.share @ base.points)[1]) < 1e-12


def test_pure_translation_stops_after_v2_over_2_mu_g():
    speed, mu = np.array([0.1, 0.5, 1.2]), np.array([0.2, 0.3, 0.45])
    start = np.array([[0.0, 0, 0.3]] * 3)
    velocity = np.stack([speed * 0.6, speed * 0.8, np.zeros(3)], axis=-1)
    end = slide(even_base(HALF), start, velocity, mu)
    way = np.linalg.norm(end.pose[:, -1, :2], axis=1)
    np.testing.assert_allclose(way, speed**2 / (2 * mu * GRAVITY), rtol=1e-9)
    np.testing.assert_allclose(end.rest_time, speed / (mu * GRAVITY), rtol=1e-9)
    np.testing.assert_allclose(end.pose[:, -1, 2], 0.3, atol=1e-9)
    # half way in time, between the knots
    t = end.rest_time / 2
    there = np.linalg.norm(end.at(t[:, None])[:, 0, :2], axis=1)
    np.testing.assert_allclose(there, speed * t - mu * GRAVITY * t**2 / 2, rtol=1e-9)


@pytest.mark.parametrize(("cells", "tolerance"), [(10, 0.02), (40, 1.5e-3)])
def test_pure_spin_of_a_disc(cells, tolerance):
    # torque = 2/3 mu m g R, inertia m R^2 / 2: deceleration 4 mu g / (3 R)
    end = slide(even_base(DISC, cells=cells), np.zeros((1, 3)), np.array([[0.0, 0.0, 12.0]]), 0.3)
    slowing = 4 * 0.3 * GRAVITY / (3 * 0.05)
    assert end.rest_time[0] == pytest.approx(12 / slowing, rel=tolerance)
    assert end.pose[0, -1, 2] == pytest.approx(12**2 / (2 * slowing), rel=tolerance)
    np.testing.assert_allclose(end.pose[0, -1, :2], 0, atol=1e-6)


def test_order_of_convergence():
    base = even_base(HALF, gradient=(3.0, 1.0), cells=6)
    start, velocity = np.array([[0.0, 0.0, 0.2]]), np.array([[0.5, 0.1, 4.0]])

    def moving(step):  # well before rest, at a time all three grids interpolate with the same order
        return slide(base, start, velocity, 0.25, step=step).at(np.array([[0.12]]))[0, 0]

    fine = moving(0.002)
    errors = [np.abs(moving(step) - fine).max() for step in (0.08, 0.04, 0.02)]
    assert errors[0] / errors[1] > 10
    assert errors[1] / errors[2] > 10


def test_rest_is_exact_and_final():
    velocity = np.array([[0.4, 0.0, 6.0], [0.0, 0.0, 0.0], [0.0, -0.7, -3.0]])
    end = slide(even_base(HALF), np.zeros((3, 3)), velocity, 0.4)
    assert not end.velocity[:, -1].any()
    assert end.rest_time[1] == 0
    late = end.at(np.full((3, 2), [5.0, 9.0]))
    np.testing.assert_array_equal(late[:, 0], late[:, 1])
    np.testing.assert_array_equal(late[:, 0], end.pose[:, -1])
    assert not end.pose[1].any()


def test_friction_only_takes_energy_and_spin_lets_it_glide():
    base = even_base(HALF)
    velocity = np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 8.0]])
    end = slide(base, np.zeros((2, 3)), velocity, 0.3)
    energy = (end.velocity**2 * np.array([1, 1, base.gyration**2])).sum(-1)
    assert (np.diff(energy, axis=1) <= 1e-15).all()
    assert end.pose[1, -1, 0] > 1.1 * end.pose[0, -1, 0]


def test_batch_and_alone_agree_and_mirror():
    base = even_base(HALF)
    velocity = np.array([[0.5, 0.2, 5.0], [-0.5, 0.2, -5.0], [0.05, 0.0, 1.0]])
    together = slide(base, np.zeros((3, 3)), velocity, 0.3)
    for i in range(3):
        alone = slide(base, np.zeros((1, 3)), velocity[i : i + 1], 0.3)
        np.testing.assert_allclose(alone.pose[0, -1], together.pose[i, -1], atol=1e-12)
    np.testing.assert_allclose(together.pose[0, -1] * [-1, 1, -1], together.pose[1, -1], atol=1e-10)


def test_translation_feels_the_whole_coefficient_of_friction():
    pull = friction_acceleration(even_base(HALF), np.array([0.4]), np.array([[0.3, -0.4, 0.0]]), np.array([0.3]))
    np.testing.assert_allclose(pull, [[-0.6 * 0.3 * GRAVITY, 0.8 * 0.3 * GRAVITY, 0.0]], atol=1e-9)
