"""Panels as SVG: numbers become the right pixels, ticks are round, gaps are gaps, and names are escaped."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from carom.report.axes import Axis, fitted
from carom.report.chart import Arrows, Bars, Chart, Data, Line, Moving, Panel, Points
from carom.report.draw import WIDTH, svg, swatch

NONE = Data((), ())


def _tree(panel: Panel) -> ElementTree.Element:
    return ElementTree.fromstring(str(svg(panel)))  # raises if it is not well formed


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-0.013, 0.029, ["-0.01", "0.00", "0.01", "0.02"]),
        (0.0, 240.0, ["0", "50", "100", "150", "200"]),
        (0.0, 3e-6, ["0e+00", "1e-06", "2e-06", "3e-06"]),
    ],
)
def test_ticks_are_round_and_within(low: float, high: float, said: list[str]) -> None:
    ticks = Axis(low, high, 100.0).ticks(5)
    assert [text for _, text in ticks] == said
    assert all(low <= value <= high * 1.0001 for value, _ in ticks)


def test_a_logarithmic_axis_has_powers_of_ten() -> None:
    axis = Axis(1e-4, 1.0, 100.0, log=True)
    assert [text for _, text in axis.ticks(5)] == ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]
    assert axis(1e-2) == pytest.approx(50.0)
    assert np.isnan(axis.all(np.array([0.0, -1.0]))).all()
    assert [text for _, text in Axis(0.2, 0.9, 100.0, log=True).ticks(5)] == ["0.2", "0.5"]


def test_equal_axes_have_the_same_metres_per_pixel() -> None:
    for shape in ([0.0, 2.0], [0.0, 0.1]):
        panel = Panel("x [m]", "y [m]", (Line([0.0, 1.0], shape, "#000000"),), equal=True)
        x, y = fitted(panel, 300.0, 200.0)
        assert (x.high - x.low) / x.length == pytest.approx((y.high - y.low) / y.length)
        assert x.low < 0
        assert x.high > 1
        assert y.high > shape[1]


def test_points_are_where_their_numbers_say() -> None:
    points = Points([1.0, 2.0, np.nan], [10.0, 20.0, 1.0], "#0072b2", labels=["a", "<b>", "c"])
    panel = Panel("x", "y", (points,), x_range=(0.0, 4.0), y_range=(0.0, 40.0))
    tree = _tree(panel)
    circles = [e for e in tree.iter() if e.tag.endswith("circle")]
    assert len(circles) == 2  # the third is not finite
    frame = next(e for e in tree if e.tag.endswith("svg"))
    width, height = float(frame.attrib["width"]), float(frame.attrib["height"])
    assert float(circles[1].attrib["cx"]) == pytest.approx(width / 2, abs=0.1)
    assert float(circles[1].attrib["cy"]) == pytest.approx(height / 2, abs=0.1)
    assert "&lt;b&gt;" in str(svg(panel))
    assert float(frame.attrib["x"]) + width <= WIDTH


def test_a_gap_in_a_line_is_a_gap() -> None:
    line = Line([0.0, 1.0, np.nan, 3.0, 4.0], np.zeros(5), "#000000")
    path = next(e for e in _tree(Panel("x", "y", (line,))).iter() if e.tag.endswith("path"))
    assert path.attrib["d"].count("M") == 2
    assert path.attrib["d"].count("L") == 2


def test_bars_stand_on_zero() -> None:
    tree = _tree(Panel("x", "y", (Bars([1.0, 2.0], [3.0, 6.0], "#000000"),)))
    first, second = (e for e in tree.iter() if e.tag.endswith("rect"))
    assert float(second.attrib["height"]) == pytest.approx(2 * float(first.attrib["height"]), abs=0.2)
    bottoms = [float(e.attrib["y"]) + float(e.attrib["height"]) for e in (first, second)]
    assert bottoms[0] == pytest.approx(bottoms[1], abs=0.2)


def test_what_moves_has_a_pose_for_every_instant() -> None:
    poses = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, np.pi / 2], [np.nan, 0.0, 0.0]])
    block = Line([0.0, 0.1], [0.0, 0.0], "#000000", "block")
    panel = Panel("x", "y", (), x_range=(-1.0, 2.0), y_range=(-1.0, 2.0), equal=True, moving=(Moving(block, poses),))
    text = str(svg(panel))
    (written,) = re.findall(r'data-poses="([^"]+)"', text)
    first, second, lost = json.loads(written)
    assert lost is None
    assert second[0] > first[0]
    assert second[1] < first[1]  # up on the page is down in pixels
    assert second[2] == -90.0  # and so are turns
    assert f"translate({second[0]},{second[1]}) rotate(-90.0)" in text  # until it plays, the last one that is known


def test_the_legend_has_every_name_once_and_its_sign() -> None:
    marks = (
        Line([0], [0], "#111111", "way"),
        Points([0], [0], "#222222", "dots"),
        Line([1], [1], "#111111", "way"),
        Line([1], [1], "#333333"),
        Arrows([[0, 0]], [[1, 1]], "#444444", "arrows"),
        Bars([0], [1], "#555555", "bars"),
    )
    chart = Chart((Panel("x", "y", marks),), NONE)
    assert [mark.name for mark in chart.legend()] == ["way", "dots", "arrows", "bars"]
    for mark in chart.legend():
        assert mark.colour in str(swatch(mark))


def test_labels_are_escaped() -> None:
    nasty = "<script>alert(1)</script>"
    text = str(svg(Panel(nasty, nasty, (), nasty)))
    assert "<script>" not in text
    ElementTree.fromstring(text)


def test_a_single_value_has_round_numbers_around_it():
    x, y = fitted(Panel("round", "gap", (Points([2.0], [0.5], "#000000"),)), 300, 200)
    for axis in (x, y):
        words = [text for _, text in axis.ticks(5)]
        assert len(words) == len(set(words)) >= 3
        assert not any("e" in text for text in words)
