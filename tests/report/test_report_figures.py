"""Figures: what is drawn is what was given, every axis has its unit, and failed predictions do not break a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.identify.result import Estimate
from carom.report import figures as draw
from carom.report.chart import Arrows, Chart, Line, Points

K = 0.03
MEASURED = np.array([[0.3, -0.2, 4.0], [0.1, -0.5, -6.0], [-0.2, -0.4, 2.0]])
STD = np.full((3, 3), 0.02)
NAMES = ["a.csv", "b.csv", "c.csv"]


def _titles(figure: Chart) -> list[str]:
    return [panel.x_label for panel in figure.panels] + [panel.y_label for panel in figure.panels]


def _points(figure: Chart) -> list[Points]:
    return [mark for mark in figure.marks() if isinstance(mark, Points)]


def _parameter(**changes: Any) -> Estimate:
    base = {"name": "com_x", "value": 0.0, "low": -0.001, "high": 0.001, "unit": "m", "bounds": (-0.01, 0.01)}
    return Estimate(**({**base, "verdict": "identified", "reason": "why"} | changes))


def test_scatter_colours_by_the_error_of_the_whole_strike() -> None:
    predicted = MEASURED.copy()
    predicted[1, 2] *= 3.0  # vx and vy of this strike are exact, but the strike as a whole is wrong
    figure = draw.impact_scatter(MEASURED, predicted, STD, K, NAMES)
    points = _points(figure)
    right, wrong = points[0], points[1]
    assert list(np.asarray(right.x)) == [0.3, -0.2]
    assert list(np.asarray(wrong.x)) == [0.1]
    assert wrong.labels[0].startswith("b.csv")
    np.testing.assert_allclose(np.asarray(points[4].x), [K * 4.0, K * 2.0])  # spin is shown as a speed, k*wz
    np.testing.assert_allclose(np.asarray(points[4].error), 1.6449 * K * 0.02)
    assert _titles(figure) == [f"{w} {a} [m/s]" for w in ("measured", "predicted") for a in ("vx", "vy", "k·wz")]


def test_scatter_without_stated_uncertainty_has_no_bars() -> None:
    figure = draw.impact_scatter(MEASURED, MEASURED, None, K, NAMES)
    assert all(np.isnan(np.asarray(p.error)).all() for p in _points(figure))


def test_scatter_survives_a_failed_prediction() -> None:
    predicted = MEASURED.copy()
    predicted[0] = np.nan
    figure = draw.impact_scatter(MEASURED, predicted, STD, K, NAMES)
    assert figure.panels[0].x_range is not None
    assert np.isfinite(figure.panels[0].x_range).all()


def test_scatter_wants_a_name_for_each_strike() -> None:
    with pytest.raises(CaromError, match="expected 3 names"):
        draw.impact_scatter(MEASURED, MEASURED, STD, K, NAMES[:2])


def test_bars_keep_the_order_and_set_one_method_apart() -> None:
    figure = draw.error_bars(["ridge", "carom", "mjx"], [0.6, 0.9, np.nan], [0.1, np.nan, np.nan], "accuracy@0.1")
    assert [row.label for row in figure.rows] == ["ridge", "carom", "mjx"]
    assert [row.strong for row in figure.rows] == [False, True, False]
    assert [row.value for row in figure.rows] == ["0.60 ± 0.10", "0.90", "failed"]
    assert [row.spans[0].end for row in figure.rows] == [0.6, 0.9, 0.0]
    whisker = figure.rows[0].spans[1]
    np.testing.assert_allclose([whisker.start, whisker.end], [0.5, 0.7])
    assert figure.axis == ("0", "accuracy@0.1 [share of strikes]", "1")
    with pytest.raises(CaromError, match="2 methods, got 1 and 2"):
        draw.error_bars(["a", "b"], [0.1], [0.1, 0.2], "accuracy@0.1")


def test_parameters_are_drawn_within_their_bounds() -> None:
    wide = _parameter(name="stiffness", value=1e3, low=1.0, high=1e9, unit="1/s^2", bounds=(1e2, 1e4))
    first, second = draw.parameter_intervals([_parameter(), wide]).rows
    np.testing.assert_allclose([first.dot, second.dot], [0.5, 0.5])  # 1e3 is half way on a logarithmic scale
    (span,) = second.spans
    assert (span.start, span.end) == (0.0, 1.0)  # an interval beyond the bounds is cut there
    assert first.value == "0 m [-0.001, 0.001]"
    assert second.value == "1000 1/s^2 [1, 1e+09]"
    with pytest.raises(CaromError, match="'com_x': bounds must be two numbers, lower first"):
        draw.parameter_intervals([_parameter(bounds=(1.0, 1.0))])


def test_a_parameter_without_an_interval_is_a_dot() -> None:
    (row,) = draw.parameter_intervals([_parameter(low=np.nan, high=np.nan)]).rows
    assert row.spans == ()
    assert row.dot == 0.5


def test_verdicts_look_different() -> None:
    verdicts = ["identified", "weakly identified", "on a bound", "not identifiable from these recordings", "given"]
    figure = draw.parameter_intervals([_parameter(name=v, verdict=v) for v in verdicts])
    assert len({row.colour for row in figure.rows}) == len(verdicts)
    assert [name for name, _ in figure.legend()] == verdicts


def test_training_is_on_a_logarithmic_scale() -> None:
    figure = draw.training_curves({"mujoco": [(0, 1.0, 1.1), (10, 0.1, 0.2)], "compliant": [(0, 1.0, 1.0)]})
    (panel,) = figure.panels
    assert panel.log_y
    lines = [mark for mark in panel.marks if isinstance(mark, Line)]
    assert [line.name for line in lines[:2]] == ["mujoco, training", "mujoco, held out"]
    np.testing.assert_allclose(np.asarray(lines[1].y), [1.1, 0.2])


def test_arrows_start_and_end_where_the_strike_was() -> None:
    square = 0.04 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    point = np.array([[0.04, 0.0], [0.0, 0.04]])
    before, after = np.array([[-1.0, 0.0], [0.0, -0.5]]), np.array([[-0.5, 0.1], [0.0, -0.4]])
    figure = draw.strike_map(square, point, before, after, after)
    (panel,) = figure.panels
    striker, measured, predicted = (mark for mark in panel.marks if isinstance(mark, Arrows))
    assert np.asarray(striker.end)[0].tolist() == [0.04, 0.0]
    assert np.asarray(measured.start)[0].tolist() == [0.04, 0.0]
    assert np.asarray(striker.start)[0, 0] > 0.04  # it came from outside
    shaft = (np.asarray(measured.end) - np.asarray(measured.start))[0]
    np.testing.assert_allclose(shaft[1] / shaft[0], -0.2)
    np.testing.assert_allclose(np.asarray(measured.end), np.asarray(predicted.end))
    assert panel.equal
    with pytest.raises(CaromError, match=r"four arrays of shape \(N, 2\)"):
        draw.strike_map(square, point, before[:1], after, after)


def test_a_crowded_map_says_how_many_are_shown_and_its_data_have_all() -> None:
    square = 0.04 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    many = np.ones((100, 2))
    figure = draw.strike_map(square, many, many, many, many, most=20)
    assert len(np.asarray(figure.named("striker before")[0].start)) == 20  # type: ignore[union-attr]
    assert figure.words.startswith("20 of 100 strikes.")
    assert len(figure.data.rows) == 100


def test_data_are_the_numbers_that_are_drawn() -> None:
    figure = draw.impact_scatter(MEASURED, 1.01 * MEASURED, STD, K, NAMES)
    assert figure.data.columns[:2] == ("recording", "measured vx [m/s]")
    table = np.array([row[1:] for row in figure.data.rows], dtype=float)
    np.testing.assert_allclose(table[:, :3], MEASURED * [1, 1, K])
    np.testing.assert_allclose(table[:, -1], 0.01)
    assert [row[0] for row in figure.data.rows] == NAMES
    bars = draw.error_bars(["a"], [0.5], [np.nan], "accuracy@0.1")
    assert bars.data.csv() == "method,accuracy@0.1,standard deviation\na,0.5,\n"
    (row,) = draw.parameter_intervals([_parameter()]).data.rows
    assert row == ("com_x", "m", 0.0, -0.001, 0.001, -0.01, 0.01, "identified")
