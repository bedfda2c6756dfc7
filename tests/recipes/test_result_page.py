"""Pages of results: every command leaves one that says what it found and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_pages import downloads, good_page, next_commands, sections
from synthetic_recordings import Strike

from carom import recipes
from carom.envs.pushing.files import load_task
from carom.identify.next.choose import Spread, Suggestion
from carom.recipes.result import PrintedTable, Result
from carom.recipes.result_page import result_page
from carom.recordings import Recordings, write
from carom.report import write_report
from carom.report.routes import trials_figure
from carom.report.suggested import suggestion_figures
from carom.train import Policy, save_policy
from carom.train.push_trials import still_policy
from carom.train.pushing import ENVIRONMENT
from carom.view import opened


@dataclass(frozen=True)
class Found(Result):
    """A result like any other."""

    def to_dict(self) -> dict[str, Any]:
        return {"speed": 0.5}

    def tables(self) -> Sequence[PrintedTable]:
        return [PrintedTable("what <b>was</b> found", ("", "speed"), [["1", 0.5], ["2", [1, 2]]], ("speed: in m/s",))]

    def notes(self) -> Sequence[str]:
        return ("one was left out",)

    def next_commands(self) -> Sequence[str]:
        return ("carom check 'my lab'",)


def test_any_result_has_a_page(tmp_path: Path) -> None:
    page = good_page(result_page(tmp_path / "page.html", Found(), title="Found", short=("In **short**.",)))
    assert sections(page) == ["In short", "What <b>was</b> found", "What else there is to say", "What to do next"]
    assert "Speed: in m/s." in page
    assert "1 to 2" in page
    assert "one was left out" in page
    assert next_commands(page) == [["carom", "check", "my lab"]]


def test_trials_are_drawn_with_their_data(tmp_path: Path) -> None:
    points = np.array([[0.0, 0.0], [0.3, 0.0], [0.3, 0.3]])
    paths = np.full((3, 4, 3), np.nan)
    paths[:, 0] = 0.0
    paths[0, 1:3] = [[0.1, 0.0, 0.1], [0.3, 0.0, 0.2]]
    figure = trials_figure("Trials", points, 0.04, paths, [True, False, False])
    (rows,) = downloads(write_report(tmp_path / "p.html", [figure], title="t").read_text()).values()
    assert rows[0] == ["trial", "strike", "x [m]", "y [m]", "yaw [rad]", "reached the end"]
    assert rows[1:] == [
        ["0", "0", "0", "0", "0", "True"],
        ["0", "1", "0.1", "0", "0.1", "True"],
        ["0", "2", "0.3", "0", "0.2", "True"],
        ["1", "0", "0", "0", "0", "False"],
        ["2", "0", "0", "0", "0", "False"],
    ]


def test_suggestions_are_drawn_with_what_they_narrow(tmp_path: Path) -> None:
    spread = Spread("friction", "1", (0.1, 0.5), (0.2, 0.3), 1.4, True)
    unknown = Spread("mass", "kg", (np.nan, np.nan), (np.nan, np.nan), 0.0, False)
    made = Suggestion("strike the left edge", {"x": 0.1}, 1.5, 0.5, (spread, unknown), "friction", 3)
    page = write_report(tmp_path / "p.html", suggestion_figures("lab", [made]), title="t").read_text()
    gains, intervals = downloads(page).values()
    assert gains[1] == ["1", "strike the left edge", "1.5", "0.5", "friction"]
    assert intervals[1] == ["friction", "1", "0.1", "0.5", "0.2", "0.3"]
    assert intervals[2] == ["mass", "kg", "", "", "", ""]
    assert "left:25.00%;width:25.00%" in page  # from 0.2 to 0.3 of 0.1 to 0.5


def test_trials_of_a_policy_leave_a_page_beside_their_animation(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    seen, low = np.full(6, 10.0, np.float32), np.full(3, -1, np.float32)
    straight = (np.zeros((3, 6), np.float32),), (np.zeros(3, np.float32),)
    save_policy(tmp_path / "policy", Policy("ppo", "test", "tanh", False, *straight, -seen, seen, low, -low, {}))
    result = recipes.rollout(tmp_path / "policy", trials=3, routes=("1", "3"))
    assert result.report == tmp_path / "policy" / "trials.html"
    page = good_page(result.report)
    assert "Trials along route 3" in sections(page)
    assert "stand-in" in page
    assert next_commands(page)[-1] == ["carom", "view", str(tmp_path / "policy")]


def test_a_model_its_predictions_and_its_motions_have_pages(tmp_path: Path) -> None:
    made = [
        Strike(striker_velocity=(0.05, 0.7 + 0.05 * s), velocity=(-0.1, 1.0 + 0.06 * s), duration=1.5).trajectory(s)
        for s in range(5)
    ]
    names = [f"hit_{i:03d}.csv" for i in range(5)]
    named = tuple(replace(t, name=n) for t, n in zip(made, names, strict=True))
    write(tmp_path / "lab", Recordings(tmp_path / "lab", named[0].bodies, named))
    recipes.adapt(None, tmp_path / "lab", tmp_path / "model")
    page = good_page(tmp_path / "model" / "report.html")
    assert sections(page)[:2] == ["In short", "Predicted and measured outcomes"]
    view = next(c for c in next_commands(page) if c[1] == "view")
    assert view == ["carom", "view", str(tmp_path / "lab"), "--with", str(tmp_path / "model")]

    said = recipes.predict(tmp_path / "model", tmp_path / "lab", report=tmp_path / "predict.html")
    page = good_page(tmp_path / "predict.html")
    rows = downloads(page)["predicted-and-measured-outcomes.csv"]
    assert [r[0] for r in rows[1:]] == names
    assert float(rows[1][4]) == pytest.approx(said.predictions[names[0]]["post"][0], rel=1e-4)

    take = opened(tmp_path / "lab", [tmp_path / "model"]).take(0)
    assert [t.name for t in take.tracks] == ["recorded", "hybrid", "MuJoCo, fitted", "MuJoCo, default contact"]
    assert len(take.tracks[1].ghosts) >= 6
    alone = opened(tmp_path / "model")
    assert alone.names == tuple(names)
    ended = take.tracks[1].position[-1, 0, :2]
    rest = said.predictions[names[0]]["rest"]
    assert np.linalg.norm(ended - rest[:2]) < 0.02  # the viewer shows what is predicted


def test_trials_of_a_policy_that_pushes_leave_a_page(tmp_path: Path) -> None:
    task = load_task("planar-cube")
    save_policy(tmp_path / "policy", replace(still_policy(task), environment=ENVIRONMENT))
    recipes.rollout_pushes(tmp_path / "policy", trials=2)
    page = good_page(tmp_path / "policy" / "trials.html")
    rows = downloads(page)["ends-of-the-trials.csv"]
    assert rows[0][1:] == ["distance [mm]", "turn missing [degrees]", "success"]
    assert len(rows) == 3
    assert float(rows[1][1]) <= float(rows[2][1])
    assert next_commands(page)[-1] == ["carom", "view", str(tmp_path / "policy")]
