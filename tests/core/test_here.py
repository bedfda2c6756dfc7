"""Pieces of work in this process: made once, in order, and only as far as somebody asks."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

from carom.core import work
from carom.core.errors import CaromError
from carom.core.work import PerProcess, in_order, make_pieces, on, workers


class Kept(dict):
    """A store in memory."""

    has = dict.__contains__
    put = dict.__setitem__


def test_only_what_is_missing_is_made_and_progress_counts_all():
    store, told, asked = Kept({2: 4}), [], []

    def square(key):
        asked.append(key)
        return key * key

    assert make_pieces([1, 2, 3], store, square, progress=lambda *steps: told.append(steps)) == 2
    assert store == {1: 1, 2: 4, 3: 9}
    assert asked == [1, 3]
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_pieces_come_in_order_and_no_further_than_asked():
    asked = []

    def noted(key):
        asked.append(key)
        return -key

    pieces = in_order(noted, [7, 7, 5])
    assert [next(pieces), next(pieces)] == [-7, -7]
    assert asked == [7, 7]


class Adder:
    made = 0

    def __init__(self, amount):
        type(self).made += 1
        self.amount = amount

    def __call__(self, key):
        return key + self.amount


def test_a_process_makes_its_function_once_and_sends_only_how():
    Adder.made = 0
    function = PerProcess(partial(Adder, 10))
    assert Adder.made == 0
    assert [function(1), function(2)] == [11, 12]
    again = pickle.loads(pickle.dumps(function))  # noqa: S301 (its own)
    assert Adder.made == 1
    assert again(3) == 13
    assert Adder.made == 2


def test_an_engine_shares_the_cores_only_where_it_was_told(monkeypatch):
    monkeypatch.setattr(work, "_threads", 0)
    assert work.threads(0) == 0
    work.share_cores()
    assert (work.threads(0), work.threads(3)) == (1, 3)


def test_nowhere_is_here():
    with on(None) as made_by:
        assert made_by is workers()
        assert made_by.here
        assert made_by.costs() == ()


@pytest.mark.parametrize("where", ["", "rya", "ray:", "ray://", "ray://host", "ray://host:port", "ray://:10001"])
def test_a_place_that_is_none_is_refused_before_anything_starts(where):
    pytest.importorskip("ray", reason="Ray is not installed: pip install carom[ray]")
    with pytest.raises(CaromError, match=r"expected ray .*, or ray://auto .*; got"), on(where):
        raise AssertionError


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("carom.core.ray_address.find_spec", lambda name: None)
    with pytest.raises(CaromError, match=r"needs Ray: pip install 'carom\[ray\]'"), on("ray"):
        raise AssertionError
