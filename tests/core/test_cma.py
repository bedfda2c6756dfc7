"""CMA-ES by generations, and even spreads."""

from __future__ import annotations

import numpy as np
import pytest

from carom.core.cma import Cma
from carom.core.spread import even_spread


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_minimum_is_found_in_any_dimension(dimension):
    wanted = np.linspace(0.2, 0.7, dimension)
    search = Cma(np.full(dimension, 0.5), sigma=0.2, seed=1, population=12)
    for _ in range(60):
        points = search.ask()
        assert points.shape == (12, dimension)
        assert ((points >= 0) & (points <= 1)).all()
        search.tell(((points - wanted) ** 2).sum(axis=1))
    np.testing.assert_allclose(search.mean, wanted, atol=1e-3)


def test_what_is_done_with_the_points_does_not_change_the_search():
    one, other = (Cma(np.array([0.5, 0.5]), sigma=0.2, seed=3) for _ in range(2))
    for _ in range(5):
        points, same = one.ask(), other.ask()
        np.testing.assert_array_equal(points, same)
        loss = (points**2).sum(axis=1)
        same[:] = 0.0
        one.tell(loss)
        other.tell(loss)


def test_a_spread_is_even_and_its_first_points_are_those_of_a_shorter_one():
    points = even_spread(64, 3, 5)
    np.testing.assert_array_equal(points[:10], even_spread(10, 3, 5))
    counts = np.stack([np.histogram(column, bins=8, range=(0, 1))[0] for column in points.T])
    assert (counts == 8).all()
