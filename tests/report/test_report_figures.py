"""Figures: what is drawn is what was given, every axis has its unit, and failed predictions do not break a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.report import figures as draw

K = 0.03
MEASURED = np.array([[0.3, -0.2, 4.0], [0.1, -0.5, -6.0], [-0.2, -0.4, 2.0]])
STD = np.full((3, 3), 0.02)
NAMES = ["a.csv", "b.csv", "c.csv"]


def _titles(figure: Any) -> list[str]:
    layout = figure.to_dict()["layout"]
    axes = [v for k, v in sorted(layout.items()) if k[1:].startswith("axis")]
    return [axis["title"]["text"] for axis in axes if "text" in axis.get("title", {})]


def _parameter(**changes: Any) -> draw.ParameterInterval:
    base = {
        "name": "com_x",
        "value": 0.0,
        "low": -0.001,
        "high": 0.001,
        "unit": "m",
        "bound_low": -0.01,
        "bound_high": 0.01,
        "verdict": "identified",
    }
    return draw.ParameterInterval(**(base | changes))  # type: ignore[typeddict-item]


def test_scatter_colours_by_the_error_of_the_whole_strike() -> None:
    predicted = MEASURED.copy()
    predicted[1, 2] *= 3.0  # vx and vy of this strike are exact, but the strike as a whole is wrong
    figure = draw.impact_scatter(MEASURED, predicted, STD, K, NAMES)
    points = [t for t in figure.data if t.mode == "markers"]
    right, wrong = points[0], points[1]
    assert list(right.x) == [0.3, -0.2]
    assert list(wrong.x) == [0.1]
    assert wrong.text[0].startswith("b.csv")
    np.testing.assert_allclose(points[4].x, [K * 4.0, K * 2.0])  # spin is shown as a speed, k*wz
    np.testing.assert_allclose(points[4].error_y.array, 1.6449 * K * 0.02)
    assert _titles(figure) == [f"{w} {a} [m/s]" for w in ("measured", "predicted") for a in ("vx", "vy", "k·wz")]


def test_scatter_survives_a_failed_prediction() -> None:
    predicted = MEASURED.copy()
    predicted[0] = np.nan
    figure = draw.impact_scatter(MEASURED, predicted, STD, K, NAMES)
    assert np.isfinite(figure.layout.xaxis.range).all()


def test_scatter_wants_a_name_for_each_strike() -> None:
    with pytest.raises(CaromError, match="expected 3 names"):
        draw.impact_scatter(MEASURED, MEASURED, STD, K, NAMES[:2])


def test_bars_keep_the_order_and_set_one_method_apart() -> None:
    figure = draw.error_bars(["ridge", "carom", "mjx"], [0.6, 0.9, np.nan], [0.1, np.nan, np.nan], "accuracy@0.1")
    (bar,) = figure.data
    assert list(bar.y) == ["ridge", "carom", "mjx"]
    assert len(set(bar.marker.color)) == 2
    assert [a.text for a in figure.layout.annotations] == ["0.60", "0.90", "failed"]
    assert _titles(figure) == ["accuracy@0.1 [share of strikes, 0 to 1]"]
    with pytest.raises(CaromError, match="2 methods, got 1 and 2"):
        draw.error_bars(["a", "b"], [0.1], [0.1, 0.2], "accuracy@0.1")


def test_parameters_are_drawn_within_their_bounds() -> None:
    wide = _parameter(name="friction", value=0.1, low=0.001, high=1e9, unit="1", bound_low=0.01, bound_high=1.0)
    wide["log"] = True
    figure = draw.parameter_intervals([_parameter(), wide])
    dots = [t.x[0] for t in figure.data if t.mode == "markers"]
    np.testing.assert_allclose(dots, [0.5, 0.5])  # 0.1 is half way between 0.01 and 1 on a logarithmic scale
    spans = [tuple(t.x) for t in figure.data if t.mode == "lines"]
    np.testing.assert_allclose(spans[3], (0.0, 1.0))  # an interval beyond the bounds is cut there
    assert figure.layout.annotations[0].text == "0 m  [-0.001, 0.001]"
    with pytest.raises(CaromError, match="'com_x': bounds must be two numbers, lower first"):
        draw.parameter_intervals([_parameter(bound_low=1.0, bound_high=1.0)])


def test_verdicts_look_different() -> None:
    verdicts = ["identified", "weakly identified", "on a bound", "not identifiable from these recordings", "given"]
    figure = draw.parameter_intervals([_parameter(name=v, verdict=v) for v in verdicts])
    dots = [t for t in figure.data if t.mode == "markers"]
    assert len({t.marker.color for t in dots}) == len(verdicts)
    assert [t.name for t in dots if t.showlegend] == verdicts


def test_training_is_on_a_logarithmic_scale() -> None:
    figure = draw.training_curves({"mujoco": [(0, 1.0, 1.1), (10, 0.1, 0.2)], "compliant": [(0, 1.0, 1.0)]})
    assert figure.layout.yaxis.type == "log"
    assert [t.name for t in figure.data[:2]] == ["mujoco, training", "mujoco, held out"]
    np.testing.assert_allclose(figure.data[1].y, [1.1, 0.2])


def test_arrows_start_and_end_where_the_strike_was() -> None:
    square = 0.04 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    point = np.array([[0.04, 0.0], [0.0, 0.04]])
    before, after = np.array([[-1.0, 0.0], [0.0, -0.5]]), np.array([[-0.5, 0.1], [0.0, -0.4]])
    figure = draw.strike_map(square, point, before, after, after)
    _, striker, measured, predicted = figure.data
    assert (striker.x[1], striker.y[1]) == (0.04, 0.0)
    assert (measured.x[0], measured.y[0]) == (0.04, 0.0)
    assert striker.x[0] > 0.04  # it came from outside
    shaft = np.array([measured.x[1] - measured.x[0], measured.y[1] - measured.y[0]])
    np.testing.assert_allclose(shaft[1] / shaft[0], -0.2)
    np.testing.assert_allclose(measured.x, predicted.x)
    assert figure.layout.yaxis.scaleanchor == "x"
    with pytest.raises(CaromError, match=r"four arrays of shape \(N, 2\)"):
        draw.strike_map(square, point, before[:1], after, after)


def test_a_crowded_map_says_how_many_are_shown() -> None:
    square = 0.04 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    many = np.ones((100, 2))
    figure = draw.strike_map(square, many, many, many, many, most=20)
    assert len(figure.data[1].x) == 3 * 20
    assert "20 of 100 strikes" in _titles(figure)[0]
