"""Which sides of a block are struck, whatever its outline; and whether it can go its way in five strikes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.envs import ROUTES, RouteStarts, SegmentStarts, StrikeBatch, route_from, route_through
from carom.envs.reach import check_reach, reach_of
from carom.envs.render import frame
from carom.envs.sides import said, sides_of
from carom.envs.task import REACH, STRIKES, strikes_of, task_scene
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import Striker, StrikeScene, builtin
from carom.state import Array, StrikeCommands, rotate, wrap_angle

TURNS = np.linspace(0, np.pi, 25)
HALF_DISC = np.round(0.05 * np.column_stack([np.cos(TURNS), np.sin(TURNS)]), 6)
HEXAGON = 0.05 * np.column_stack([np.cos(np.arange(6) * np.pi / 3), np.sin(np.arange(6) * np.pi / 3)])
SLOPE = np.degrees(np.arctan2(0.05, 0.12))
SQUARE = np.array([[-0.04, -0.04], [0.04, -0.04], [0.04, 0.04], [-0.04, 0.04]])


def block(outline: Array) -> StrikeScene:
    shape = Shape("extruded", outline=tuple(map(tuple, outline.tolist())), height=0.05)
    return StrikeScene("block", Body("block", "target", shape, 0.2), Striker(radius=0.02))


def headings(scene: StrikeScene) -> list[float]:
    return sorted(round(float(np.degrees(side.heading)), 3) for side in sides_of(task_scene(scene)))


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        (builtin("semi-cylinder"), [-90]),
        (builtin("square"), [-90, 0, 90, 180]),
        (builtin("triangle"), [-150, -30, 90]),
        (builtin("box"), [-90, 0, 90, 180]),
        (block(HEXAGON), [-150, -90, -30, 30, 90, 150]),
        (block(HALF_DISC), [-150, -120, -90, -60, -30]),  # windows on its arc, none on its flat side
        (block(HALF_DISC - [0.3, 0.1]), [-150, -120, -90, -60, -30]),  # wherever its frame is
        # bevels of 6 mm are no sides
        (
            block(np.vstack([[c * [1, 0.9], c * [0.9, 1]][:: int(np.prod(np.sign(c)))] for c in SQUARE])),
            [-90, 0, 90, 180],
        ),
        # a square blow on one of the long sides of a sheared block would always turn it
        (block(np.array([[0, 0], [0.1, 0], [0.22, 0.05], [0.12, 0.05]])), [SLOPE - 90, SLOPE + 90]),
    ],
)
def test_sides_are_faces_or_the_arc_that_steers(scene: StrikeScene, expected: list[float]) -> None:
    assert headings(scene) == pytest.approx(expected, abs=1e-3)


def test_a_round_block_is_struck_anywhere() -> None:
    scene = replace(block(SQUARE), target=Body("puck", "target", Shape("cylinder", radius=0.045, height=0.04), 0.4))
    sides = sides_of(task_scene(scene))
    assert len(sides) == 12
    ends = np.array([side.space.commands(np.array([[0, 0.5, 0.5], [1, 0.5, 0.5]])).velocity for side in sides])
    angle = np.arctan2(ends[..., 1], ends[..., 0])
    away = wrap_angle(angle - np.array([[side.heading] for side in sides]))
    assert np.abs(away) == pytest.approx(np.pi / 6, abs=0.03)  # 30 degrees to either side: all around


def test_the_half_disc_as_an_outline_is_struck_where_the_semi_cylinder_is() -> None:
    ends = np.array([[0.0, 0.5, 0.5], [1.0, 0.5, 0.5]])
    known = sides_of(task_scene(builtin("semi-cylinder")))[0].space.commands(ends)
    sides = sides_of(task_scene(block(HALF_DISC)))
    assert [side.leads for side in sides] == [True] + [False] * 4  # a segment begins with the middle of the arc
    windows = [side.space.commands(ends) for side in sorted(sides, key=lambda side: side.heading)]
    for name, tolerance in (("contact_point", 1e-3), ("velocity", 0.02)):
        np.testing.assert_allclose(getattr(windows[0], name)[0], getattr(known, name)[0], atol=tolerance)
        np.testing.assert_allclose(getattr(windows[-1], name)[1], getattr(known, name)[1], atol=tolerance)
    for lower, upper in pairwise(windows):  # they overlap: no place on the arc is left out
        assert upper.contact_point[0, 0] > lower.contact_point[1, 0] + 0.01


def test_an_outline_of_an_arc_is_struck_along_its_way_and_turned_by_its_middle() -> None:
    batch = StrikeBatch(pushed(0.1), block(HALF_DISC), starts=SegmentStarts(0.0, np.pi / 4), count=200, seed=3)
    blows = batch.commands(np.zeros((200, 3)))
    ahead = rotate(blows.velocity, blows.target_pose[:, 2])
    assert np.abs(np.degrees(np.arctan2(ahead[:, 1], ahead[:, 0]))).max() < 15 + 1  # windows are 30 degrees apart
    middle = batch.pose[:, 2]
    assert np.degrees(np.abs(middle)).max() == pytest.approx(45, abs=1)
    turn = batch.goal[:, 2] - middle
    np.testing.assert_allclose(batch.observe()[:, 4:6], np.column_stack([np.cos(turn), np.sin(turn)]), atol=1e-6)


@pytest.mark.parametrize(
    ("scene", "width"),
    [
        (block(HEXAGON), 0.84 * 0.05),
        (builtin("triangle"), 2 * 0.1 / np.sqrt(12)),
    ],  # 8 % from corners; k from the middle
)
def test_a_strike_is_away_from_corners_and_not_too_far_out(scene: StrikeScene, width: float) -> None:
    for side in sides_of(task_scene(scene)):
        blow = side.space.commands(np.array([[0, 0.5, 1], [0.5, 0.5, 1], [1, 0.5, 1]]))
        angle = np.arctan2(blow.velocity[:, 1], blow.velocity[:, 0])
        assert wrap_angle(angle - side.heading) == pytest.approx([0, 0, 0], abs=1e-9)
        assert np.linalg.norm(blow.contact_point[2] - blow.contact_point[0]) == pytest.approx(width)


def pushed(way: float, turn: float = 0.0):
    """A block that goes so far [m] where it is struck, and turns so much [rad]."""

    def strike(commands: StrikeCommands) -> tuple[Array, np.ndarray]:
        rest = commands.target_pose.copy()
        ahead = commands.velocity / np.linalg.norm(commands.velocity, axis=1, keepdims=True)
        rest[:, :2] += way * rotate(ahead, rest[:, 2])
        rest[:, 2] += turn
        return rest, np.ones(len(rest), dtype=bool)

    return strike


@pytest.mark.parametrize(("outline", "widest"), [(SQUARE, 45), (HEXAGON, 30), (HEXAGON[::2] - 0.2, 60)])
def test_however_a_block_lies_it_is_struck_along_its_way(outline: Array, widest: float) -> None:
    starts = SegmentStarts(0.0, np.pi / 4)
    batch = StrikeBatch(pushed(0.1), block(outline), starts=starts, count=200, seed=3)
    assert len(np.unique(batch.side)) == len(outline)  # any side may be behind at the start
    blows = batch.commands(np.zeros((200, 3)))
    ahead = rotate(blows.velocity, blows.target_pose[:, 2])
    angle = np.degrees(np.arctan2(ahead[:, 1], ahead[:, 0]))
    assert np.abs(angle).max() < widest + 1e-6
    np.testing.assert_allclose(np.radians(angle), wrap_angle(batch.heading), atol=1e-9)
    before = batch.pose[:, :2].copy()
    batch.step(np.zeros((200, 3)))
    moved = batch.pose[:, :2] - before  # of the centre of mass, wherever the frame is
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 0.1, atol=1e-9)


def test_a_square_turned_by_a_quarter_looks_the_same_but_for_its_side() -> None:
    batch = StrikeBatch(pushed(0.1), block(SQUARE), starts=SegmentStarts(), count=50, seed=1)
    first = batch.observe()
    batch.pose[:, 2] += np.pi / 2
    second = batch.observe()
    np.testing.assert_allclose(second[:, :6], first[:, :6], atol=1e-6)
    np.testing.assert_allclose(second[:, 6:], np.column_stack([first[:, 7], -first[:, 6]]), atol=1e-6)


def test_any_side_may_head_on_at_the_sub_goal() -> None:
    batch = StrikeBatch(pushed(0.3, turn=np.radians(80)), block(SQUARE), starts=SegmentStarts(0, 0, 0), count=3, seed=0)
    end = batch.step(np.zeros((3, 3)))
    assert end.success.all()
    assert np.degrees(end.orientation_error) == pytest.approx([10, 10, 10])
    assert end.terms[:, 1] == pytest.approx((1 + np.cos(np.radians(10))) / 2)


def test_sides_are_said_and_kept_with_a_policy() -> None:
    assert said(sides_of(task_scene(builtin("square")))).startswith("any of 4 sides")
    assert said(sides_of(task_scene(block(HALF_DISC)))).startswith("the arc whose middle sends it -90 degrees")
    assert "headings_rad" not in strikes_of(builtin("semi-cylinder"))  # policies from before know no such thing
    assert len(strikes_of(builtin("triangle"))["headings_rad"]) == 3


def test_blocks_with_several_sides_are_drawn_with_the_side_to_strike() -> None:
    batch = StrikeBatch(pushed(0.1), block(HEXAGON), starts=RouteStarts(ROUTES["2"]), count=2, seed=0)
    batch.step(np.zeros((2, 3)))
    assert frame(batch).shape[1] == 480


def test_shorter_segments() -> None:
    batch = StrikeBatch(pushed(0.15), block(SQUARE), starts=SegmentStarts(0, 0, 0, 0.15), seed=0)
    assert batch.observe()[0, :4] == pytest.approx([0, 0, 1, 0], abs=1e-6)
    assert batch.step(np.zeros((1, 3))).success[0]
    assert route_from("3", length=0.15).points == pytest.approx(0.5 * ROUTES["3"].points)
    assert len(route_through("hall", [[0, 0], [0.5, 0]], length=0.1).points) == 6
    with pytest.raises(CaromError, match=r"length of a segment: expected 0.08 to 10 m, got 0.01"):
        route_from("1", length=0.01)


def sliding(friction: float):
    """A block without spin that springs back with 0.7: it slides v^2 / (2 mu g)."""

    def strike(commands: StrikeCommands) -> tuple[Array, np.ndarray]:
        rest, speed = commands.target_pose.copy(), np.linalg.norm(commands.velocity, axis=1, keepdims=True)
        way = (1.7 * speed) ** 2 / (2 * friction * 9.81)
        rest[:, :2] += way * rotate(commands.velocity / speed, rest[:, 2])
        return rest, np.ones(len(rest), dtype=bool)

    return strike


@pytest.mark.parametrize("friction", [0.05, 0.2, 0.4])
def test_a_segment_is_in_reach_on_usual_grounds(friction: float) -> None:
    batch = StrikeBatch(sliding(friction), block(SQUARE), starts=SegmentStarts(), seed=0)
    reach = check_reach(batch)
    assert reach.farthest == pytest.approx((1.7 * 0.8) ** 2 / (2 * friction * 9.81))
    assert reach.shortest == pytest.approx((1.7 * 0.2) ** 2 / (2 * friction * 9.81))
    assert batch.strikes[0] == 0


def test_out_of_reach_in_five_strikes_is_refused_with_the_numbers() -> None:
    slow = replace(block(SQUARE), speed=(0.2, 0.3))
    batch = StrikeBatch(sliding(0.4), slow, starts=SegmentStarts(), seed=0)
    farthest = (1.7 * 0.3) ** 2 / (2 * 0.4 * 9.81)
    assert STRIKES * farthest < 0.3
    said = (
        rf"out of reach in five strikes: the fastest blow \(0\.3 m/s\) moves the block {farthest:.3f} m.*--length 0\.11"
    )
    with pytest.raises(CaromError, match=said):
        check_reach(batch)
    check_reach(StrikeBatch(sliding(0.4), slow, starts=SegmentStarts(length=0.11), seed=0))


def test_a_ground_too_slippery_for_the_segment_is_refused() -> None:
    batch = StrikeBatch(sliding(0.01), block(SQUARE), starts=SegmentStarts(), seed=0)
    assert reach_of(batch).shortest > 0.3 + REACH
    with pytest.raises(CaromError, match=r"too short: even the slowest blow \(0.2 m/s\) moves the block 0.59 m.*0.6"):
        check_reach(batch)


def test_a_simulator_in_which_nothing_is_struck_is_refused() -> None:
    def misses(commands: StrikeCommands) -> tuple[Array, np.ndarray]:
        return commands.target_pose, np.zeros(len(commands), dtype=bool)

    with pytest.raises(CaromError, match="no blow came about"):
        check_reach(StrikeBatch(misses, block(SQUARE), starts=SegmentStarts(), seed=0))
