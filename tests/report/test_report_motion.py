"""Pictures of a strike: the block is where its pose says, errors are right across ±180°, frames reach the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.report import Figure, write_report
from carom.report import moving as draw
from carom.report.axes import fitted
from carom.report.chart import Arrows, Chart, Line, Points
from carom.state import Array

SQUARE = 0.04 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
START = np.array([0.1, 0.2, 0.0])
CONTACT, VELOCITY = np.array([0.06, 0.2]), np.array([0.6, 0.0])
EXACT = {"atol": 1e-12, "rtol": 0.0}


def _slide(end: Array, count: int = 101) -> Array:
    """A motion from the start that comes to rest at `end`."""
    share = 1.0 - (1.0 - np.linspace(0.0, 1.0, count)) ** 2
    return np.asarray(START + share[:, None] * (end - START))


PLANNED = _slide(np.array([0.5, 0.3, 1.0]))


def _strike(**changes: Any) -> Chart:
    given: dict[str, Any] = {
        "outline": SQUARE,
        "start_pose": START,
        "wanted_pose": PLANNED[-1],
        "planned": PLANNED,
        "outcomes": [_slide(np.array([0.503, 0.304, 1.1]))],
        "contact_point_world": CONTACT,
        "striker_velocity_world": VELOCITY,
    }
    return draw.planned_strike(**(given | changes))


def _animation(**changes: Any) -> Chart:
    given: dict[str, Any] = {
        "outline": SQUARE,
        "start_pose": START,
        "wanted_pose": PLANNED[-1],
        "time": np.linspace(0.0, 0.8, len(PLANNED)),
        "planned": PLANNED,
        "executed": _slide(np.array([0.503, 0.304, 1.1])),
    }
    return draw.strike_animation(**(given | changes))


def _lines(figure: Chart) -> list[Line]:
    return [mark for mark in figure.panels[0].marks if isinstance(mark, Line)]


def _xy(mark: Any) -> Array:
    """Coordinates [n, 2] of a line."""
    return np.column_stack([mark.x, mark.y]).astype(float)


def _named(figure: Chart, name: str) -> Array:
    """Coordinates [n, 2] of the one line with this name."""
    (mark,) = figure.named(name)
    return _xy(mark)


def test_the_wanted_block_is_turned_and_moved() -> None:
    figure = _strike(wanted_pose=[0.5, -0.1, np.pi / 6])
    wanted = _named(figure, "wanted")
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    corners = np.array([[c * x - s * y + 0.5, s * x + c * y - 0.1] for x, y in SQUARE])
    np.testing.assert_allclose(wanted[:5], [*corners, corners[0]], **EXACT)
    np.testing.assert_allclose(wanted[6:], [[0.5, -0.1], [0.5 + 0.02 * c, -0.1 + 0.02 * s]], **EXACT)  # along its x
    np.testing.assert_allclose(_named(figure, "start")[:4], SQUARE + START[:2], **EXACT)
    (dashed,) = figure.named("wanted")
    assert isinstance(dashed, Line)
    assert dashed.dash


def test_axes_are_equal_and_have_units() -> None:
    for figure in (_strike(), _animation()):
        (panel,) = figure.panels
        assert panel.equal
        assert panel.x_label == "x in the world [m]"
        assert panel.y_label == "y in the world [m]"
        x, _ = fitted(panel, 300, 200)
        assert x.low < 0.06
        assert x.high > 0.54


def test_the_plan_leaves_ghosts_evenly_on_its_way() -> None:
    _, ghosts, path, final, *_ = map(_xy, _lines(_strike()))
    centres = np.vstack([ghosts, [[np.nan, np.nan]]])[6::9]  # five corners, gap, mark of two, gap
    assert len(centres) == 5
    gaps = np.diff([START[0], *centres[:, 0], PLANNED[-1, 0]])
    np.testing.assert_allclose(gaps, 0.4 / 6, atol=0.01)  # in distance: in time, they would crowd at the end
    np.testing.assert_allclose(path[[0, -1]], [START[:2], PLANNED[-1, :2]], **EXACT)
    np.testing.assert_allclose(final[6], PLANNED[-1, :2], **EXACT)
    assert len(_xy(_lines(_strike(planned=PLANNED[-1:]))[1])) == 0  # no way, no ghosts


def test_the_arrow_ends_where_the_striker_touches() -> None:
    figure = _strike(striker_velocity_world=[0.3, -0.4])
    (arrow,) = figure.named("strike, 0.50 m/s")
    assert isinstance(arrow, Arrows)
    (start,), (end,) = np.asarray(arrow.start), np.asarray(arrow.end)
    np.testing.assert_allclose(end, CONTACT, **EXACT)
    np.testing.assert_allclose(end - start, 0.08 * np.array([0.6, -0.8]), **EXACT)


def test_the_error_is_that_of_the_last_pose() -> None:
    figure = _strike()
    degrees = np.degrees(0.1)
    assert f"Executed: position error 5.0 mm, yaw error +{degrees:.1f}°" in figure.words  # 3 and 4 mm
    assert "Planned: position error 0.0 mm, yaw error +0.0°" in figure.words
    last = _strike(outcomes=[[[0.503, 0.304, 1.1]]])
    assert last.words == figure.words
    assert _animation().words == figure.words
    assert "Not executed yet" in _strike(outcomes=[]).words


@pytest.mark.parametrize(
    ("wanted", "came", "said"), [(179.0, -179.0, "+2.0"), (-179.0, 178.0, "-3.0"), (10.0, 730.0, "+0.0")]
)
def test_the_yaw_error_goes_the_short_way(wanted: float, came: float, said: str) -> None:
    ends = [np.array([[0.5, 0.3, np.radians(came)]])]
    text = _strike(wanted_pose=[0.5, 0.3, np.radians(wanted)], outcomes=ends).words
    assert f"Executed: position error 0.0 mm, yaw error {said}°" in text


def test_repeats_have_means_and_names() -> None:
    wanted = PLANNED[-1]
    off = np.array([[0.002, 0, np.radians(2)], [0, -0.004, np.radians(-4)]])
    ends = [_slide(wanted + off[0]), (wanted + off[1])[None]]
    figure = _strike(outcomes=ends, names=["a.csv", "b.csv"])
    assert "Executed 2 times, mean (largest) error: position 3.0 mm (4.0), yaw 3.0° (4.0)" in figure.words
    (points,) = (mark for mark in figure.marks() if isinstance(mark, Points))
    assert list(points.labels) == [
        "a.csv: position error 2.0 mm, yaw error +2.0°",
        "b.csv: position error 4.0 mm, yaw error -4.0°",
    ]
    assert [mark.name for mark in figure.legend()] == [
        "start",
        "planned",
        "executed, 2 times",
        "wanted",
        "strike, 0.60 m/s",
    ]
    assert {row[0] for row in figure.data.rows} == {"start", "wanted", "planned", "a.csv", "b.csv"}
    assert [row[1:] for row in figure.data.rows if row[0] == "b.csv"] == [tuple(map(float, wanted + off[1]))]


def test_an_outcome_that_was_lost_does_not_count() -> None:
    lost = PLANNED.copy()
    lost[50:] = np.nan
    figure = _strike(outcomes=[PLANNED + np.array([0.001, 0, 0]), lost])
    assert "mean (largest) error: position 1.0 mm (1.0)" in figure.words
    assert "1 of 2 without a final pose" in figure.words
    assert "Executed: final pose unknown" in _strike(outcomes=[lost]).words
    x, _ = fitted(figure.panels[0], 300, 200)
    assert np.isfinite([x.low, x.high]).all()


@pytest.mark.parametrize(("count", "frames"), [(1, 1), (2, 2), (40, 40), (41, 40), (1000, 40)])
def test_frames_are_few_and_include_both_ends(count: int, frames: int) -> None:
    motion = _slide(PLANNED[-1], count) if count > 1 else PLANNED[-1:]
    figure = _animation(time=np.arange(count) / 1000, planned=motion, executed=motion)
    assert len(figure.clock) == frames
    assert (figure.clock[0], figure.clock[-1]) == (0.0, (count - 1) / 1000)
    for body in figure.panels[0].moving:
        assert len(body.poses) == frames
    planned = figure.panels[0].moving[0]
    np.testing.assert_allclose(planned.poses[[0, -1]], motion[[0, -1]], **EXACT)


def test_frames_are_even_in_time() -> None:
    bursts = np.concatenate([np.linspace(0.0, 0.01, 500), np.linspace(0.02, 1.0, 99)])
    motion = np.column_stack([bursts, bursts, bursts])
    figure = _animation(time=bursts, planned=motion, executed=motion)
    np.testing.assert_allclose(figure.clock, np.linspace(0, 1, 40), atol=0.006)


def test_the_blocks_and_the_striker_move_and_the_wanted_pose_lies_over_them() -> None:
    striker = PLANNED[:, :2] - 0.05
    figure = _animation(striker=striker)
    bodies = figure.panels[0].moving
    assert [body.mark.name for body in bodies] == ["planned", "executed", "striker", "wanted"]
    np.testing.assert_allclose(bodies[2].poses[0], [0.05, 0.15, 0.0], **EXACT)
    np.testing.assert_allclose(bodies[3].poses, np.tile(PLANNED[-1], (40, 1)), **EXACT)  # it stays where it is
    assert len(_animation().panels[0].moving) == 3
    assert figure.data.columns[-2:] == ("striker x [m]", "striker y [m]")
    np.testing.assert_allclose(figure.data.rows[0], [0.0, *PLANNED[0], *PLANNED[0], 0.05, 0.15], **EXACT)


def test_frames_survive_the_page(tmp_path: Path) -> None:
    lost = PLANNED.copy()
    lost[80:] = np.nan
    text = write_report(tmp_path / "r.html", [Figure("A", _animation(executed=lost), "b")], title="R").read_text(
        "utf-8"
    )
    poses = [json.loads(p, parse_constant=pytest.fail) for p in re.findall(r'data-poses="([^"]+)"', text)]  # no NaN
    assert [len(p) for p in poses] == [40, 40, 40]
    assert poses[1][-1] is None
    assert None not in poses[0]
    (times,) = re.findall(r'data-times="([^"]+)"', text)
    assert len(json.loads(times)) == 40
    assert text.count("<script>") == 1
    assert len(text) < 60_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outline": SQUARE[:2]}, r"outline: expected an array of shape \(3 or more, 2\), got \(2, 2\)"),
        ({"start_pose": [0.0, 0.0]}, r"start_pose: expected an array of shape \(3\), got \(2,\)"),
        ({"wanted_pose": [0.0, np.nan, 0.0]}, "wanted_pose: expected finite numbers, got 1"),
        ({"planned": np.empty((0, 3))}, r"planned: expected an array of shape \(1 or more, 3\)"),
        ({"outcomes": [PLANNED, PLANNED[-1]]}, r"outcomes\[1\]: expected an array of shape"),
        ({"names": ["a", "b"]}, "names: expected one for each of the 1 outcomes, got 2"),
        ({"contact_point_world": [0.0, 0.0, 0.0]}, "contact_point_world: expected"),
        ({"striker_velocity_world": [0.0, 0.0]}, "expected a striker that moves"),
    ],
)
def test_a_strike_that_cannot_be_drawn_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CaromError, match=message):
        _strike(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"executed": PLANNED[:-1]}, r"executed: expected an array of shape \(101, 3\), got \(100, 3\)"),
        ({"striker": PLANNED}, r"striker: expected an array of shape \(101, 2\)"),
        ({"time": np.zeros(101)}, "time: expected seconds that increase"),
        ({"time": np.zeros((101, 1))}, "time: expected an array of shape"),
        ({"play_seconds": 0.0}, "play_seconds: expected more than zero"),
    ],
)
def test_an_animation_that_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CaromError, match=message):
        _animation(**changes)
