"""How far a striker travels until it touches: the closed form against marching in small steps."""

from __future__ import annotations

import numpy as np
import pytest

from carom.scenes.outline import Outline
from carom.scenes.strike import builtin
from carom.scenes.sweep import CHUNK, flat_travel, round_travel
from carom.state import Array

SQUARE = builtin("square").outline
SEEDS = range(6)


def convex(rng: np.random.Generator) -> Outline:
    """A convex outline of three to nine corners on an ellipse, about 0.1 m wide, somewhere near the origin."""
    angle = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(3, 10)))
    while np.diff(np.append(angle, angle[0] + 2 * np.pi)).max() > 2.8 or np.diff(angle).min() < 0.1:
        angle = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(3, 10)))
    corners = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(0.02, 0.08, 2)
    return Outline(corners + rng.uniform(-0.03, 0.03, 2))


def from_outside(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Starts on a circle around the outline, and unit vectors more or less towards it."""
    around, off = rng.uniform(0, 2 * np.pi, count), rng.uniform(-0.5, 0.5, count)
    start = 0.3 * np.column_stack([np.cos(around), np.sin(around)])
    return start, -np.column_stack([np.cos(around + off), np.sin(around + off)])


def marched(gap: object, count: int, longest: float = 0.8) -> Array:
    """[N] first way at which `gap(way [N]) [N]` is none, by steps as long as the gap; inf: never."""
    way, found = np.zeros(count), np.full(count, np.inf)
    for _ in range(4000):
        left = gap(way)  # type: ignore[operator]
        arrived = (left < 1e-9) & ~np.isfinite(found)
        found[arrived] = way[arrived]
        way = np.where(np.isfinite(found), way, way + np.maximum(left, 1e-9))  # no further than what is free
        if (np.isfinite(found) | (way > longest)).all():
            break
    return found


def agree(closed: Array, brute: Array, grazing: float) -> None:
    both = np.isfinite(closed) & np.isfinite(brute)
    np.testing.assert_allclose(closed[both], brute[both], atol=grazing)
    assert (np.isfinite(closed) == np.isfinite(brute)).mean() > 0.99  # those that just graze may go either way
    assert both.mean() > 0.1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("radius", [1e-6, 0.02])
def test_discs_stop_where_marching_stops_them(seed: int, radius: float) -> None:
    rng = np.random.default_rng([seed, 1])
    outline = convex(rng)
    start, towards = from_outside(rng, 100)
    way = round_travel(outline, start, towards, radius)
    brute = marched(lambda s: outline.gap(start + s[:, None] * towards) - radius, 100)
    agree(way, brute, 2e-5)
    hit = np.isfinite(way)
    np.testing.assert_allclose(outline.gap(start[hit] + way[hit, None] * towards[hit]), radius, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_flat_faces_stop_where_marching_stops_them(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    outline = convex(rng)
    start, towards = from_outside(rng, 60)
    turn = rng.uniform(-0.4, 0.4, 60)
    facing = np.column_stack(
        [
            np.cos(turn) * towards[:, 0] - np.sin(turn) * towards[:, 1],
            np.sin(turn) * towards[:, 0] + np.cos(turn) * towards[:, 1],
        ]
    )
    width = rng.uniform(0.005, 0.06, 60)
    side = np.column_stack([-facing[:, 1], facing[:, 0]])
    along = np.linspace(-0.5, 0.5, 201)

    def gap(way: Array) -> Array:
        """Least gap of points along the face; between two of them it is less by half their distance at most."""
        points = (start + way[:, None] * towards)[:, None] + along[:, None] * (width[:, None] * side)[:, None]
        return outline.gap(points.reshape(-1, 2)).reshape(len(way), -1).min(axis=1)

    way = flat_travel(outline, start, towards, facing, width)
    rows = np.arange(60)
    before = gap(np.where(np.isfinite(way), way - 2e-4, 0.0))
    at = gap(np.where(np.isfinite(way), way, 0.0))
    hit = np.isfinite(way)
    assert hit.mean() > 0.2
    assert (before[hit] > 0).all()  # free until just before
    assert (np.abs(at[hit]) < 1e-4).all()  # and touching there
    assert (before[hit] <= 2.1e-4 + 1e-4).all()
    for i in rows[~hit]:  # those that pass by are free all the way
        path = np.linspace(0, 0.8, 801)
        points = (start[i] + path[:, None] * towards[i])[:, None] + along[::20, None] * width[i] * side[i]
        assert outline.gap(points.reshape(-1, 2)).min() > -1e-4


def test_ways_that_can_be_read_off() -> None:
    right, up = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert round_travel(SQUARE, np.array([[-0.1, 0.01]]), right, 0.02)[0] == pytest.approx(0.04)
    # past the corner at (-0.04, 0.04): the disc's centre stands on a circle about it
    corner = round_travel(SQUARE, np.array([[-0.1, 0.05]]), right, 0.02)[0]
    assert corner == pytest.approx(0.06 - np.sqrt(0.02**2 - 0.01**2))
    wide, narrow = np.array([0.2]), np.array([0.01])
    assert flat_travel(SQUARE, np.array([[-0.1, 0.09]]), right, right, wide)[0] == pytest.approx(0.06)
    assert flat_travel(SQUARE, np.array([[0.0, -0.1]]), up, up, narrow)[0] == pytest.approx(0.06)


def test_strikers_that_pass_by_or_go_away_never_touch() -> None:
    right = np.array([[1.0, 0.0]])
    passing = np.array([[-0.1, 0.061]])
    assert round_travel(SQUARE, passing, right, 0.02)[0] == np.inf
    assert flat_travel(SQUARE, passing, right, right, np.array([0.04]))[0] == np.inf
    away = np.array([[0.1, 0.0]])
    for way in (round_travel(SQUARE, away, right, 0.02), flat_travel(SQUARE, away, right, right, np.array([0.04]))):
        assert not 0 <= way[0] < np.inf  # behind it, if anywhere


def test_batches_of_any_size_give_the_same() -> None:
    rng = np.random.default_rng(3)
    start, towards = from_outside(rng, CHUNK + 3)
    together = round_travel(SQUARE, start, towards, 0.02)
    np.testing.assert_array_equal(together[-5:], round_travel(SQUARE, start[-5:], towards[-5:], 0.02))
    assert len(round_travel(SQUARE, start[:0], towards[:0], 0.02)) == 0
    assert len(flat_travel(SQUARE, start[:0], towards[:0], towards[:0], np.zeros(0))) == 0
