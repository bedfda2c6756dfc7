"""What a calibrated MuJoCo says about recordings yet unseen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from free_recordings import TRUTH, starts_of_tosses, toss
from rolled_bodies import Rolled
from scipy.spatial.transform import Rotation

from carom.identify.tosses.predict import SHAKES, MotionModel, shaken
from carom.identify.tosses.recorded import equation_1
from carom.identify.tosses.sides import SIDES, SideKnowledge
from carom.recordings.starts import SPIN_STD, TURN_STD, VELOCITY_STD
from carom.scenes.parameters import free_parameters

MIDDLE = {name: value for name, value in TRUTH.items() if name != "com_offset"}


@pytest.fixture(scope="module")
def motions():
    return toss(Path("tosses"), 6, seed=9, samples=60).motions


@pytest.fixture(scope="module")
def model(motions):
    """A calibrated MuJoCo that does not know the heavy side."""
    return MotionModel(motions.scene, TRUTH, SideKnowledge(TRUTH["com_offset"], TRUTH["gravity"], np.zeros(6), 0.1))


@pytest.fixture(scope="module")
def predicted(model, motions):
    return model.predict(motions, seed=3, threads=1)


@pytest.fixture(scope="module")
def candidates(model, motions):
    """Every simulation [K, N] that a prediction with seed 3 may choose from, and the chance [K, N] of its side."""
    count = len(motions)
    chances = model.sides.probabilities(motions)
    starts = replace(motions.starts[np.tile(np.arange(count), 6)], side=np.repeat(SIDES, count, axis=0))
    noise = np.random.default_rng(3).normal(size=(SHAKES, 1, 9))
    noise[0] = 0.0
    starts = shaken(starts[np.tile(np.arange(len(starts)), SHAKES)], np.repeat(noise, len(starts), axis=0))
    engine = Rolled(motions.scene, free_parameters(tuple(model.values)), period=motions.period, threads=1)
    return engine.run(starts, np.array([list(model.values.values())]), motions.samples), np.tile(chances.T, (SHAKES, 1))


def as_recorded(motions, motion, rows):
    return replace(motions, position=motion.position[rows], quaternion=motion.quaternion[rows])


def test_starts_are_shaken_as_much_as_stated():
    starts = starts_of_tosses(2000, np.random.default_rng(0))
    moved = shaken(starts, np.random.default_rng(1).normal(size=(2000, 1, 9)))
    np.testing.assert_array_equal(moved.position, starts.position)
    assert np.std(moved.velocity - starts.velocity) == pytest.approx(VELOCITY_STD, rel=0.05)
    assert np.std(moved.spin - starts.spin) == pytest.approx(SPIN_STD, rel=0.05)
    one, other = (Rotation.from_quat(s.quaternion[:, 0][:, [1, 2, 3, 0]]) for s in (moved, starts))
    assert np.std((one * other.inv()).as_rotvec()) == pytest.approx(TURN_STD, rel=0.05)
    np.testing.assert_allclose(np.linalg.norm(moved.quaternion, axis=-1), 1.0, atol=1e-12)


def test_a_prediction_does_not_depend_on_what_else_is_predicted(model, motions, predicted):
    for n in range(2):
        alone = model.predict(motions[[n]], seed=3, threads=1)
        samples = alone.position.shape[1]
        np.testing.assert_array_equal(alone.position[0], predicted.position[n, :samples])


def test_predictions_are_the_same_for_a_seed_on_any_number_of_threads(model, motions, predicted):
    again = model.predict(motions, seed=3, threads=2)
    np.testing.assert_array_equal(again.position, predicted.position)
    np.testing.assert_array_equal(again.quaternion, predicted.quaternion)
    other = model.predict(motions, seed=4, threads=1)
    assert (other.position != predicted.position).any()


def test_a_prediction_is_one_of_its_simulations(motions, predicted, candidates):
    motion, chances = candidates
    count = len(motions)
    assert predicted.position.shape == (count, motions.samples, 1, 3)
    assert predicted.quaternion.shape == (count, motions.samples, 1, 4)
    assert not predicted.failed.any()
    position = motion.position.reshape(len(chances), count, *motion.position.shape[1:])
    quaternion = motion.quaternion.reshape(len(chances), count, *motion.quaternion.shape[1:])
    same = (position == predicted.position).all(axis=(2, 3, 4)) & (quaternion == predicted.quaternion).all(
        axis=(2, 3, 4)
    )
    assert same.any(axis=0).all()


def test_no_other_simulation_has_a_lower_expected_error(model, motions, predicted, candidates):
    """Eq. 1 against all of them, weighed by their chances; also not the one from the estimated start."""
    motion, chances = candidates
    count = len(motions)
    expected, of_predicted, of_simulated = np.zeros(chances.shape), np.zeros(count), np.zeros(count)
    simulated = model.simulate(motions, threads=1)
    for k, chance in enumerate(chances):
        reality = as_recorded(motions, motion, slice(k * count, (k + 1) * count))
        expected += chance * equation_1(reality, motion)
        of_predicted += chance * equation_1(reality, predicted)[0]
        of_simulated += chance * equation_1(reality, simulated)[0]
    np.testing.assert_allclose(of_predicted, expected.min(axis=0), atol=1e-6)
    assert (of_predicted <= of_simulated + 1e-6).all()


def test_where_no_side_is_in_doubt_a_prediction_is_one_simulation(motions):
    model = MotionModel(motions.scene, MIDDLE, None)
    one, other = model.predict(motions, threads=1), model.simulate(motions, threads=1)
    np.testing.assert_array_equal(one.position, other.position)


def test_a_simulation_takes_the_likeliest_side(motions):
    model = MotionModel(
        motions.scene, TRUTH, SideKnowledge(TRUTH["com_offset"], TRUTH["gravity"], np.eye(6)[2] * 12, 1e3)
    )
    engine = Rolled(motions.scene, free_parameters(tuple(TRUTH)), period=motions.period, threads=1)
    starts = motions.with_sides(np.tile(SIDES[2], (len(motions), 1))).starts
    expected = engine.run(starts, np.array([list(TRUTH.values())]), motions.samples)
    np.testing.assert_array_equal(model.simulate(motions, threads=1).position, expected.position)
