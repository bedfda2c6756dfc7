"""The page of an identification: what it says, that it stands alone, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.identify.result import Errors, Estimate, Identification
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.simulate import Starts
from carom.report.chart import Bars, Line
from carom.report.identified import identified_page
from carom.report.identified_figures import correlation_map, error_pairs, motion_rows
from carom.scenes.free import toss_scene
from carom.state import Motion

COUNT, SAMPLES = 5, 30
GREATER = np.array([0.01, 0.02, 0.03, 0.04, 0.05])  #: [m] by which "after" is off, per recording


def _motions() -> Motions:
    rng = np.random.default_rng(0)
    time = np.arange(SAMPLES) / 100
    position = np.zeros((COUNT, SAMPLES, 1, 3))
    position[..., 0, 2] = 0.2 - time
    position[..., 0, 0] = rng.uniform(0.5, 1, (COUNT, 1)) * time
    position[0, -6:] = np.nan  # a shorter recording
    quaternion = np.tile([1.0, 0, 0, 0], (COUNT, SAMPLES, 1, 1))
    none = np.zeros((COUNT, 1, 3))
    starts = Starts.known(position[:, 0], quaternion[:, 0], none, none)
    names = tuple(f"<toss>_{i}.csv" for i in range(COUNT))
    still, turn = np.zeros((COUNT, 3)), np.zeros((COUNT, 3, 3))
    return Motions(toss_scene(), names, 0.01, starts, position, quaternion, still, turn, np.ones(COUNT))


def _off(motions: Motions, by: np.ndarray, angle: float) -> Motion:
    """A simulation that is off sideways by so much [N] m, and turned about z by an angle [rad]."""
    position = np.nan_to_num(motions.position, nan=0.0) + by[:, None, None, None] * np.array([0.0, 1.0, 0.0])
    turned = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    return Motion.of(("cube",), motions.period, position, np.broadcast_to(turned, motions.quaternion.shape))


def _identification(**extra: object) -> Identification:
    errors = Errors(0.1, 0.05, 0.8, COUNT)
    why = "read off the recordings directly, without a search"
    made = (
        Estimate("friction", 0.2, "1", 0.15, 0.25, (0.0, 1.0), "identified", "its 90 % interval covers 10 %"),
        Estimate("stiffness", 51657.9, "1/s^2", 2e4, 1e5, (200.0, 3e5), "weakly identified", "too few bounces"),
        Estimate("gravity", 9.6, "m/s^2", 9.5, 9.7, (9.2, 10.2), "identified", why),
    )
    bounce = Estimate("restitution", 0.31, "1", 0.287, 0.343, (0.0, 1.0), "identified", "160 draws")
    return Identification(
        "cma",
        "toss",
        made,
        errors,
        errors,
        "leave-one-out",
        10,
        1,
        2.0,
        7,
        extra=extra,
        notes=("n1",),
        derived=(bounce,),
    )


EXTRA = {
    "sides": {"<toss>_0.csv": "+x", "<toss>_1.csv": "-z"},
    "read_off": ["gravity"],
    "correlations": {"names": ["friction", "stiffness"], "matrix": [[1.0, -0.42], [-0.42, 1.0]]},
    "restarts": [{"friction": 0.19, "stiffness": 4e4}, {"friction": 0.33, "stiffness": 6e4}],
}


def test_the_page_says_everything_and_loads_nothing(tmp_path: Path) -> None:
    motions = _motions()
    after, before = _off(motions, GREATER, 0.1), _off(motions, 3 * GREATER, 0.5)
    path = identified_page(tmp_path / "page.html", _identification(**EXTRA), motions, after, before)
    html = path.read_text(encoding="utf-8")
    text = re.sub(r"<script.*?</script>", "", html, flags=re.S)
    assert not re.findall(r'(?:src|href)="(?!#|data:text/csv)', text)
    # means of 10, 20 .. 50 % of a width of 0.1 m, and of 0.1 rad
    for mean in ("30.0 %", "5.7°", "90.0 %"):
        assert f"<strong>{mean}</strong>" in text, mean
    for said in (
        "51700",
        "weakly identified",
        "too few bounces",
        "0.31",
        "0.287 to 0.343",
        "160 draws",
        "+x: &lt;toss&gt;_0",
        "n1",
        "cma, 7",
        "gravity 9.6 m/s^2",
        "mujoco",
        "leave-one-out",
        "0.33",
        "0 is perfect",
        "the value is a rough guide",
    ):
        assert said in text, said
    assert "<toss>_1" not in html
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize(
    ("fitted", "said"),
    [(COUNT, "These recordings were used"), (2, "2 of these recordings were used"), (0, "None of these recordings")],
)
def test_the_page_says_whether_the_fit_saw_what_it_shows(tmp_path: Path, fitted: int, said: str) -> None:
    motions = _motions()
    names = [*motions.names[:fitted], *(["other.csv"] if not fitted else [])]
    off = _off(motions, GREATER, 0.1)
    path = identified_page(tmp_path / "page.html", _identification(recordings=names), motions, off, off)
    assert said in path.read_text(encoding="utf-8")


def test_bars_are_eq_1_in_the_order_of_the_error_and_show_the_mean() -> None:
    motions = _motions()
    figure = error_pairs(motions, _off(motions, GREATER[::-1], 0.1), _off(motions, GREATER, 0.5))
    before, after, *_ = (mark for mark in figure.panels[0].marks if isinstance(mark, Bars))
    assert (before.name, after.name) == ("before", "after")
    np.testing.assert_allclose(np.asarray(after.y), [10, 20, 30, 40, 50])
    np.testing.assert_allclose(np.asarray(before.y), [50, 40, 30, 20, 10])
    assert after.labels[0].startswith("<toss>_4")
    turned = [mark for mark in figure.panels[1].marks if isinstance(mark, Bars)][1]
    np.testing.assert_allclose(np.asarray(turned.y), np.degrees(0.1))
    assert figure.panels[0].title == "position error: mean 30 before, 30 after"
    assert figure.data.rows[0][0] == "<toss>_4.csv"
    np.testing.assert_allclose(figure.data.rows[0][1:], [50, 10, np.degrees(0.5), np.degrees(0.1)])


def test_motion_goes_from_the_best_to_the_worst_and_ends_with_the_recording() -> None:
    motions = _motions()
    figure = motion_rows(motions, _off(motions, GREATER, 0.1), _off(motions, GREATER, 0.5))
    titles = [panel.title for panel in figure.panels[::3]]
    assert len(titles) == 4
    assert titles[0].startswith("best: <toss>_0")
    assert titles[-1].startswith("worst: <toss>_4")
    (height, *_), _, angles = (panel.marks for panel in figure.panels[:3])
    assert isinstance(height, Line)
    assert len(np.asarray(height.x)) == SAMPLES - 6
    np.testing.assert_allclose([np.asarray(line.y)[3] for line in angles], np.degrees([0.5, 0.1]))  # type: ignore[union-attr]
    assert figure.data.columns[:3] == ("recording", "time [s]", "real x [m]")
    np.testing.assert_allclose(figure.data.rows[3][4], 0.2 - 0.03)
    np.testing.assert_allclose(figure.data.rows[3][-2:], np.degrees([0.5, 0.1]))


def test_without_orientation_there_is_no_panel_for_rotation(tmp_path: Path) -> None:
    motions = _motions()
    blind = replace(motions, quaternion=np.full_like(motions.quaternion, np.nan))
    figure = error_pairs(blind, _off(motions, GREATER, 0.1), _off(motions, GREATER, 0.5))
    assert len(figure.panels) == 1
    assert len(figure.data.columns) == 3
    off = _off(motions, GREATER, 0.1)
    page = identified_page(tmp_path / "page.html", _identification(), blind, off, off).read_text(encoding="utf-8")
    assert "Orientation was not measured." in page
    assert "°" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.S)  # no error of a turn that nobody saw
    rows = motion_rows(blind, _off(motions, GREATER, 0.1), _off(motions, GREATER, 0.5))
    assert rows.across == 2  # height and path
    assert len(rows.panels) == 8


def test_wrong_shapes_are_refused(tmp_path: Path) -> None:
    motions = _motions()
    good = _off(motions, GREATER, 0.1)
    short = Motion.of(("cube",), motions.period, good.position[:, :-1], good.quaternion[:, :-1])
    with pytest.raises(CaromError, match=r"before: expected one rollout of 30 samples for each of 5 recordings"):
        identified_page(tmp_path / "page.html", _identification(), motions, good, short)
    with pytest.raises(CaromError, match="square matrix for 2 parameters"):
        correlation_map(["a", "b"], [[1.0]])
