"""The task's pure functions, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.envs.routes import ROUTES
from carom.envs.starts import DRAWS, SegmentStarts, uniform
from carom.envs.task import WAY, inside, left_zone, observe, rewards, sub_goals, way_ahead
from carom.state import rotate, wrap_angle


def test_planner_aims_at_the_next_but_one() -> None:
    goals = sub_goals(ROUTES["3"].points)
    assert np.degrees(goals[:, 2]) == pytest.approx([30.0, -15.0, -15.0])
    assert np.array_equal(goals[:, :2], ROUTES["3"].points[1:])


def test_observation_by_hand() -> None:
    # segment along world +y from (1, 2); block 0.15 m along it and 0.02 m to its left, heading along world +y
    pose, start = np.array([[0.98, 2.15, np.pi / 2]]), np.array([[1.0, 2.0]])
    seen = observe(pose, start, np.array([[1.0, 2.3, np.pi]]))[0]
    assert seen.dtype == np.float32
    assert seen == pytest.approx([0.5, 0.5, 0.5, -0.02 / 0.3, 0.0, 1.0], abs=1e-6)
    shorter = observe(pose, start, np.array([[1.0, 2.3, np.pi]]), 0.2)[0]  # segments of another length, another unit
    assert shorter == pytest.approx([0.75, 0.5, 0.75, -0.1, 0.0, 1.0], abs=1e-6)


def test_observation_does_not_change_when_the_table_is_turned() -> None:
    rng = np.random.default_rng(0)
    pose, start = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    goal, turn, shift = rng.normal(size=(20, 3)), 1.1, np.array([0.7, -3.0])

    def moved(p: np.ndarray) -> np.ndarray:
        return np.column_stack([rotate(p[:, :2], turn) + shift, p[:, 2] + turn])

    other = observe(moved(pose), rotate(start, turn) + shift, moved(goal))
    assert other == pytest.approx(observe(pose, start, goal), abs=1e-5)


def test_the_way_ahead_leads_back_to_the_line_and_to_the_sub_goal_at_its_end() -> None:
    start, goal = np.array([[1.0, 2.0]] * 4), np.array([[1.0, 2.3, 0.0]] * 4)
    place = np.array(
        [[1.0, 2.05], [0.97, 2.1], [1.03, 2.26], [1.0, 2.4]]
    )  # on the line, left of it, near the end, past it
    expected = [np.pi / 2, np.arctan2(0.1, 0.03), np.arctan2(0.04, -0.03), -np.pi / 2]
    assert way_ahead(place, start, goal) == pytest.approx(expected)


def test_rewards_are_table_v() -> None:
    yes, no = np.array([True]), np.array([False])
    far, turn, third = np.array([0.2]), np.array([np.pi / 3]), np.array([3])
    assert rewards(far, turn, third, no, no)[0] == pytest.approx([np.exp(-0.04), 0, 0, 0])
    assert rewards(far, turn, third, yes, no)[0] == pytest.approx([np.exp(-0.04), 0.75, 2, 0])
    assert rewards(far, turn, third, no, yes)[0] == pytest.approx([np.exp(-0.04), 0, 0, -10])


def test_zone_at_a_bend_is_the_union() -> None:
    corners = np.array([[0.0, 0.0], [0.3, 0.0], [0.3, 0.3]])
    points = np.array(
        [[0.3, -0.04], [0.339, 0.0], [0.33, -0.03], [0.34, 0.2], [0.25, 0.045], [-0.04, 0.0], [-0.03, 0.03]]
    )
    assert inside(points, corners).tolist() == [True, True, False, True, False, True, False]


def test_the_way_counts_and_its_start_does_not() -> None:
    corners = np.array([[0.0, 0.0], [0.3, 0.0], [0.3, 0.3]])
    across = left_zone(np.array([[0.1, 0.0]]), np.array([[0.3, 0.25]]), corners)  # both ends inside, cuts the corner
    along = left_zone(np.array([[-0.0401, 0.0]]), np.array([[0.2, 0.03]]), corners)
    assert (across.tolist(), along.tolist()) == ([True], [False])


def test_starts_cover_their_ranges_and_rows_are_independent() -> None:
    seeds, episodes = np.arange(4000, dtype=np.uint64), np.zeros(4000, dtype=np.int64)
    u = uniform(seeds, episodes)
    numbers = DRAWS + 2
    assert u.shape == (4000, numbers)
    assert u.mean(axis=0) == pytest.approx([0.5] * numbers, abs=0.02)
    assert u.std(axis=0) == pytest.approx([12**-0.5] * numbers, abs=0.01)
    assert np.abs(np.corrcoef(np.column_stack([u[:-1], u[1:]]).T) - np.eye(2 * numbers)).max() < 0.07
    assert np.array_equal(uniform(seeds[7:8], episodes[:1]), u[7:8])
    assert not np.array_equal(uniform(seeds, episodes + 1), u)
    pose, goal = SegmentStarts().draw(u)
    assert 0.0395 < np.linalg.norm(pose[:, :2], axis=1).max() <= 0.04
    assert np.abs(wrap_angle(pose[:, 2])).max() == pytest.approx(np.pi / 4, abs=0.01)
    assert np.abs(goal[:, 0, 2]).max() == pytest.approx(np.pi / 3, abs=0.01)


@pytest.mark.parametrize(
    "options",
    [{"start_radius": 0.05}, {"heading_spread": -0.1}, {"turn_spread": np.nan}, {"length": 0.05}, {"length": np.nan}],
)
def test_starts_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(CaromError, match="expected"):
        SegmentStarts(**options)


def test_ways_are_judged_as_if_every_one_were_looked_at_on_its_way() -> None:
    rng = np.random.default_rng(3)
    corners = ROUTES["3"].points
    before, after = (corners.mean(axis=0) + rng.normal(scale=0.15, size=(4000, 2)) for _ in range(2))
    way = before[:, None] + WAY[:, None] * (after - before)[:, None]
    expected = ~inside(way, corners).all(axis=1)
    assert 50 < (~expected).sum() < 3950
    np.testing.assert_array_equal(left_zone(before, after, corners), expected)
