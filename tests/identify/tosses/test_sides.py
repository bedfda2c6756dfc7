"""Towards which face a cube's mass lies: seen in flight, and counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from free_recordings import TRUTH, toss

from carom.identify.tosses.sides import SIDES, SideKnowledge, is_cube, learn_sides
from carom.scenes.shapes import Body, Shape

OFFSET, GRAVITY = TRUTH["com_offset"], TRUTH["gravity"]


@pytest.fixture(scope="module")
def exact():
    return toss(Path("tosses"), 24, seed=11, noise=(0.0, 0.0))


def test_exact_flights_show_the_true_side(exact):
    motions = exact.motions
    assert len(motions) == 24
    knowledge = SideKnowledge(OFFSET, GRAVITY, np.zeros(6), 0.02)
    likelihood = knowledge.log_likelihood(motions)
    assert (np.argmax(likelihood, axis=-1) == exact.sides).all()
    np.testing.assert_array_equal(knowledge.likeliest(motions), SIDES[exact.sides])
    chances = knowledge.probabilities(motions)
    np.testing.assert_allclose(chances.sum(axis=-1), 1.0)
    assert np.median(chances.max(axis=-1)) > 0.9


def test_an_offset_of_nothing_has_no_side(exact):
    chances = SideKnowledge(0.0, GRAVITY, np.zeros(6), 0.1).probabilities(exact.motions)
    np.testing.assert_allclose(chances, 1 / 6)


def test_what_occurred_often_is_likelier_where_flights_say_nothing(exact):
    counts = np.array([0.0, 0.0, 12.0, 0.0, 0.0, 0.0])
    chances = SideKnowledge(OFFSET, GRAVITY, counts, 1e3).probabilities(exact.motions)
    np.testing.assert_allclose(chances[:, 2], 13 / 18, atol=1e-3)


def test_learning_counts_sides_and_measures_the_noise_of_flights(exact):
    motions = exact.motions
    learnt = learn_sides(motions, exact.sides, OFFSET, GRAVITY)
    np.testing.assert_array_equal(learnt.counts, np.bincount(exact.sides, minlength=6))
    assert (learnt.offset, learnt.gravity) == (OFFSET, GRAVITY)
    # 24 exact flights say that there is none, half a dozen taken for granted that it is 0.1 m/s^2
    assert learnt.noise == pytest.approx(0.1 * np.sqrt(6 / 30), rel=0.15)
    wrong = learn_sides(motions, (exact.sides + 2) % 6, OFFSET, GRAVITY)
    assert wrong.noise > 1.3 * learnt.noise


def test_only_a_box_with_equal_edges_is_a_cube():
    def box(*size):
        return Body("b", "target", Shape("box", size=size), mass=1.0)

    assert is_cube(box(0.1, 0.1, 0.1005))
    assert not is_cube(box(0.1, 0.1, 0.102))
    assert not is_cube(Body("b", "target", Shape("sphere", radius=0.05), mass=1.0))
    assert not is_cube(Body("b", "target", None, mass=1.0))
