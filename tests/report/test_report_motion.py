"""Pictures of a strike: the block is where its pose says, errors are right across ±180°, frames reach the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.report import Figure, write_report
from carom.report import moving as draw
from carom.state import Array

SQUARE = 0.04 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
START = np.array([0.1, 0.2, 0.0])
CONTACT, VELOCITY = np.array([0.06, 0.2]), np.array([0.6, 0.0])
ROUNDED = {"atol": 0.5 * 10.0**-draw.DIGITS + 1e-12, "rtol": 0.0}


def _slide(end: Array, count: int = 101) -> Array:
    """A motion from the start that comes to rest at `end`."""
    share = 1.0 - (1.0 - np.linspace(0.0, 1.0, count)) ** 2
    return np.asarray(START + share[:, None] * (end - START))


PLANNED = _slide(np.array([0.5, 0.3, 1.0]))


def _strike(**changes: Any) -> Any:
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


def _animation(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "outline": SQUARE,
        "start_pose": START,
        "wanted_pose": PLANNED[-1],
        "time": np.linspace(0.0, 0.8, len(PLANNED)),
        "planned": PLANNED,
        "executed": _slide(np.array([0.503, 0.304, 1.1])),
    }
    return draw.strike_animation(**(given | changes))


def _named(figure: Any, name: str) -> list[Array]:
    """Coordinates [n, 2] of the traces with this name, in the order they are drawn."""
    return [np.column_stack([t.x, t.y]).astype(float) for t in figure.data if t.name == name]


def _said(figure: Any) -> str:
    (note,) = figure.layout.annotations
    return str(note.text)


def test_the_wanted_block_is_turned_and_moved() -> None:
    figure = _strike(wanted_pose=[0.5, -0.1, np.pi / 6])
    (wanted,) = _named(figure, "wanted")
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    corners = np.array([[c * x - s * y + 0.5, s * x + c * y - 0.1] for x, y in SQUARE])
    np.testing.assert_allclose(wanted[:5], [*corners, corners[0]], **ROUNDED)
    np.testing.assert_allclose(wanted[6:], [[0.5, -0.1], [0.5 + 0.02 * c, -0.1 + 0.02 * s]], **ROUNDED)  # along its x
    (start,) = _named(figure, "start")
    np.testing.assert_allclose(start[:4], SQUARE + START[:2], **ROUNDED)
    assert [t.line.dash for t in figure.data if t.name == "wanted"] == ["dash"]


def test_axes_are_equal_and_have_units() -> None:
    for figure in (_strike(), _animation()):
        assert figure.layout.yaxis.scaleanchor == "x"
        assert figure.layout.xaxis.title.text == "x in the world [m]"
        assert figure.layout.yaxis.title.text == "y in the world [m]"
        low, high = figure.layout.xaxis.range
        assert low < 0.06
        assert high > 0.54


def test_the_plan_leaves_ghosts_evenly_on_its_way() -> None:
    ghosts, path, final = _named(_strike(), "planned")
    centres = ghosts.reshape(-1, 2)[6::9]  # five corners, gap, mark of two, gap
    assert len(centres) == 5
    gaps = np.diff([START[0], *centres[:, 0], PLANNED[-1, 0]])
    np.testing.assert_allclose(gaps, 0.4 / 6, atol=0.01)  # in distance: in time, they would crowd at the end
    np.testing.assert_allclose(path[[0, -1]], [START[:2], PLANNED[-1, :2]], **ROUNDED)
    np.testing.assert_allclose(final[6], PLANNED[-1, :2], **ROUNDED)
    assert len(_named(_strike(planned=PLANNED[-1:]), "planned")[0]) == 0  # no way, no ghosts


def test_the_arrow_ends_where_the_striker_touches() -> None:
    figure = _strike(striker_velocity_world=[0.3, -0.4])
    (arrow,) = _named(figure, "strike, 0.50 m/s")
    np.testing.assert_allclose(arrow[1], CONTACT, **ROUNDED)
    np.testing.assert_allclose(arrow[1] - arrow[0], 0.08 * np.array([0.6, -0.8]), atol=1e-5)


def test_the_error_is_that_of_the_last_pose() -> None:
    figure = _strike()
    degrees = np.degrees(0.1)
    assert f"Executed: position error 5.0 mm, yaw error +{degrees:.1f}°" in _said(figure)  # 3 and 4 mm
    assert "Planned: position error 0.0 mm, yaw error +0.0°" in _said(figure)
    last = _strike(outcomes=[[[0.503, 0.304, 1.1]]])
    assert _said(last) == _said(figure)
    assert _said(_animation()) == _said(figure)
    assert "Not executed yet" in _said(_strike(outcomes=[]))


@pytest.mark.parametrize(
    ("wanted", "came", "said"), [(179.0, -179.0, "+2.0"), (-179.0, 178.0, "-3.0"), (10.0, 730.0, "+0.0")]
)
def test_the_yaw_error_goes_the_short_way(wanted: float, came: float, said: str) -> None:
    ends = [np.array([[0.5, 0.3, np.radians(came)]])]
    text = _said(_strike(wanted_pose=[0.5, 0.3, np.radians(wanted)], outcomes=ends))
    assert f"Executed: position error 0.0 mm, yaw error {said}°" in text


def test_repeats_have_means_and_names() -> None:
    wanted = PLANNED[-1]
    off = np.array([[0.002, 0, np.radians(2)], [0, -0.004, np.radians(-4)]])
    ends = [_slide(wanted + off[0]), (wanted + off[1])[None]]
    figure = _strike(outcomes=ends, names=["a.csv", "b.csv"])
    assert "Executed 2 times, mean (largest) error: position 3.0 mm (4.0), yaw 3.0° (4.0)" in _said(figure)
    points = next(t for t in figure.data if t.mode == "markers")
    assert points.text == (
        "a.csv<br>position error 2.0 mm, yaw error +2.0°",
        "b.csv<br>position error 4.0 mm, yaw error -4.0°",
    )
    assert [t.showlegend for t in figure.data if t.name == "executed, 2 times"] == [False, True, False]


def test_an_outcome_that_was_lost_does_not_count() -> None:
    lost = PLANNED.copy()
    lost[50:] = np.nan
    figure = _strike(outcomes=[PLANNED + np.array([0.001, 0, 0]), lost])
    assert "mean (largest) error: position 1.0 mm (1.0)" in _said(figure)
    assert "1 of 2 without a final pose" in _said(figure)
    assert "Executed: final pose unknown" in _said(_strike(outcomes=[lost]))
    assert np.isfinite(figure.layout.xaxis.range).all()


@pytest.mark.parametrize(("count", "frames"), [(1, 1), (2, 2), (40, 40), (41, 40), (1000, 40)])
def test_frames_are_few_and_include_both_ends(count: int, frames: int) -> None:
    motion = _slide(PLANNED[-1], count) if count > 1 else PLANNED[-1:]
    figure = _animation(time=np.arange(count) / 1000, planned=motion, executed=motion)
    assert len(figure.frames) == frames
    (slider,) = figure.layout.sliders
    assert [step.args[0][0] for step in slider.steps] == [frame.name for frame in figure.frames]
    assert (slider.steps[0].label, slider.steps[-1].label) == ("0.000", f"{(count - 1) / 1000:.3f}")
    for frame, row in ((figure.frames[0], motion[0]), (figure.frames[-1], motion[-1])):
        np.testing.assert_allclose([frame.data[0].x[6], frame.data[0].y[6]], row[:2], **ROUNDED)


def test_frames_are_even_in_time() -> None:
    bursts = np.concatenate([np.linspace(0.0, 0.01, 500), np.linspace(0.02, 1.0, 99)])
    motion = np.column_stack([bursts, bursts, bursts])
    figure = _animation(time=bursts, planned=motion, executed=motion)
    labels = [float(step.label) for step in figure.layout.sliders[0].steps]
    np.testing.assert_allclose(labels, np.linspace(0, 1, 40), atol=0.006)


def test_frames_move_the_blocks_and_the_striker_and_nothing_else() -> None:
    striker = PLANNED[:, :2] - 0.05
    figure = _animation(striker=striker)
    moved = [figure.data[i] for i in figure.frames[0].traces]
    assert [t.name for t in moved] == ["planned", "executed", "striker"]
    for shown, last in zip(moved, figure.frames[-1].data, strict=True):  # until it plays, the end is shown
        np.testing.assert_array_equal([shown.x, shown.y], [last.x, last.y])
    assert figure.layout.sliders[0].active == len(figure.frames) - 1
    assert figure.frames[0].data[2].x == pytest.approx((0.05,))
    assert len(_animation().frames[0].data) == 2


def test_frames_survive_the_page(tmp_path: Path) -> None:
    lost = PLANNED.copy()
    lost[80:] = np.nan
    animation = _animation(executed=lost)
    text = write_report(tmp_path / "r.html", [Figure("A", animation)], title="R").read_text(encoding="utf-8")
    after = text[text.index("Plotly.addFrames('figure-1', ") + len("Plotly.addFrames('figure-1', ") :]
    frames, _ = json.JSONDecoder(parse_constant=pytest.fail).raw_decode(after)  # NaN is no JSON
    assert len(frames) == 40
    np.testing.assert_allclose(frames[0]["data"][0]["x"][:4], START[0] + SQUARE[:, 0], **ROUNDED)
    assert frames[-1]["data"][1]["x"][0] is None
    assert len(animation.to_json()) < 60_000


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
