"""Rotations: one convention, and the same answer by every way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.core import rotations


@pytest.fixture(scope="module")
def turns():
    rng = np.random.default_rng(0)
    return np.array([rotations.random_turn(rng) for _ in range(50)])


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(1).normal(size=(50, 3))


def test_w_comes_first():
    quarter = rotations.about_z(np.pi / 2)
    assert quarter == pytest.approx([np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    assert rotations.to_scipy(quarter).as_rotvec() == pytest.approx([0, 0, np.pi / 2])
    assert rotations.matrices(quarter) @ [1.0, 0.0, 0.0] == pytest.approx([0, 1, 0])
    assert rotations.to_world(quarter, np.array([1.0, 0.0, 0.0])) == pytest.approx([0, 1, 0])
    assert rotations.axes(quarter)[0] == pytest.approx([0, 1, 0]), "the body's x axis points along the world's y"


def test_scipy_and_back(turns):
    back = rotations.from_scipy(rotations.to_scipy(turns))
    assert np.abs((back * turns).sum(axis=-1)) == pytest.approx(np.ones(len(turns)))
    assert rotations.from_scipy(rotations.to_scipy(turns[0])).shape == (4,)


def test_all_ways_to_turn_a_vector_agree(turns, vectors):
    matrices = rotations.matrices(turns)
    world = np.einsum("nij,nj->ni", matrices, vectors)
    assert rotations.to_world(turns, vectors) == pytest.approx(world)
    assert rotations.to_body(turns, world) == pytest.approx(vectors)
    assert np.swapaxes(rotations.axes(turns), -1, -2) == pytest.approx(matrices)
    assert np.array_equal(rotations.matrices(turns[3]), matrices[3])


def test_a_product_turns_by_the_right_one_first(turns, vectors):
    product = rotations.multiply(turns, turns[::-1])
    one_by_one = rotations.to_world(turns, rotations.to_world(turns[::-1], vectors))
    assert rotations.to_world(product, vectors) == pytest.approx(one_by_one)


@pytest.mark.parametrize("size", [0.0, 1e-9, 0.3, 3.0])
def test_rotation_vectors(size):
    vector = size * np.array([2.0, -1.0, 2.0]) / 3
    assert rotations.from_vector(vector) == pytest.approx(rotations.from_scipy(Rotation.from_rotvec(vector)))


def test_a_tilted_ground_leans_where_it_says():
    normal = rotations.axes(rotations.of_tilt(0.01, -0.02))[2]
    assert normal == pytest.approx([0.01, -0.02, 1.0], abs=3e-4)
    many = rotations.of_tilt(np.array([0.01, 0.0]), 0.0)
    assert many.shape == (2, 4)
    assert np.linalg.norm(many, axis=-1) == pytest.approx([1, 1])


def test_yaw_is_unwrapped_across_lost_samples():
    angle = np.linspace(0, 4 * np.pi, 40)
    turned = rotations.about_z(angle)
    turned[[5, 6, 20]] = np.nan
    found = rotations.unwrapped_yaw(turned)
    lost = np.isnan(found)
    assert np.flatnonzero(lost).tolist() == [5, 6, 20]
    assert found[~lost] == pytest.approx(angle[~lost])
    assert rotations.yaw(turned[30]) == pytest.approx(np.angle(np.exp(1j * angle[30])))


def test_random_turns_have_no_favourite_direction():
    rng = np.random.default_rng(2)
    upward = rotations.axes(np.array([rotations.random_turn(rng) for _ in range(4000)]))[:, 2]
    assert np.abs(upward.mean(axis=0)).max() < 0.05
    assert (upward**2).mean(axis=0) == pytest.approx(np.full(3, 1 / 3), abs=0.03)


def test_lost_samples_stay_lost():
    lost = np.full((1, 4), np.nan)
    assert np.isnan(rotations.axes(lost)).all()
    assert np.isnan(rotations.about_z(np.nan)).all()
    assert rotations.unit(np.array([2.0, 0.0, 0.0, 0.0])) == pytest.approx([1, 0, 0, 0])
