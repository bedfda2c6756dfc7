"""Routes from numbers and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.envs import Route, route_from, route_through


def test_built_in_routes_are_whole_segments() -> None:
    for number in (1, 2, 3):
        route = route_from(number)
        assert route.segments == number
        assert np.linalg.norm(np.diff(route.points, axis=0), axis=1) == pytest.approx([0.3] * number)
    assert route_from("3").heading_spread == 0.0


def test_file_is_split_into_segments(tmp_path: Path) -> None:
    file = tmp_path / "hall.yaml"
    file.write_text("name: hall\npoints: [[0, 0], [0.7, 0], [0.7, 0.3]]\nheading_spread: 0.2\n")
    route = route_from(file)
    assert (route.name, route.heading_spread, route.segments) == ("hall", 0.2, 4)
    assert route.points[:4, 0] == pytest.approx([0, 0.7 / 3, 1.4 / 3, 0.7])
    assert route_from(str(file)).name == "hall"
    assert route_from(route) is route


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("points: [[0, 0]]", "points: expected 2 to 101 points, got 1"),
        ("points: [[0, 0], [0.05, 0]]", r"points\[1\]: expected at least 0.08 m"),
        ("points: [[0, 0], [.nan, 0]]", r"points\[1\]: expected finite"),
        ("points: [[0, 0], [.inf, 0]]", r"points\[1\]: expected finite"),
        ("points: [[0, 0], [300, 0]]", r"points\[1\]: expected finite metres within 100"),
        ("points: [[0, 0], [31, 0]]", "at most 100 segments"),
        ("points: [[0, 0], [0.3, 0], [0.1, 0.1]]", r"points\[1\]: expected a bend of at most 90"),
        ("points: [[0, 0], [0.3, 0, 1]]", r"points\[1\]: expected two numbers"),
        ("points: [[0, 0], [0.3, yes]]", r"points\[1\]: expected two numbers"),
        ("points: [[0, 0], [0.3, '1']]", r"points\[1\]: expected two numbers"),
        ("points: {a: 1}", "points: expected a list"),
        ("points: [[0, 0], [0.3, 0]]\nspeed: 1", "unknown key 'speed'"),
        ("points: [[0, 0], [0.3, 0]]\nheading_spread: 4", "heading_spread: expected"),
        ("points: [[0, 0], [0.3, 0]]\nheading_spread: wide", "heading_spread: expected"),
        ("points: [[0, 0], [0.3, 0]]\nname: [1]", "name: expected a text"),
        ("name: none", "points: expected"),
        ("- 1", "expected keys"),
        ("points: [[0, 0", "expected YAML"),
        ("!!python/object:os.system {}", "expected YAML"),
    ],
)
def test_wrong_files_are_refused_by_place(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "route.yaml"
    file.write_text(text)
    with pytest.raises(CaromError, match=place) as refused:
        route_from(file)
    assert "route.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(CaromError, match="cannot be read"):
        route_from(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(CaromError, match=r"binary\.yaml"):
        route_from(tmp_path / "binary.yaml")
    (tmp_path / "deep.yaml").write_text("[" * 10_000)
    with pytest.raises(CaromError, match=r"deep\.yaml"):
        route_from(tmp_path / "deep.yaml")
    for wrong in (0, 4, True, "four"):
        with pytest.raises(CaromError, match="expected one of 1, 2, 3"):
            route_from(wrong)


def test_long_segments_are_refused_or_divided() -> None:
    with pytest.raises(CaromError, match=r"at most 0\.3 m"):
        Route("long", np.array([[0.0, 0.0], [0.5, 0.0]]))
    assert route_through("long", [[0, 0], [0.3, 0], [0.6000001, 0]]).segments == 2


def test_corners_may_be_arrays_one_by_one() -> None:
    pairs = route_through("way", [np.zeros(2), np.array([0.3, 0.0])]).points
    assert np.array_equal(pairs, route_through("way", [[0, 0], [0.3, 0]]).points)
