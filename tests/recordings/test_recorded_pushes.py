"""Pushes told from strikes, what a folder of them shows, and what `check` says of odd ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded_pushes import poses_folder, servo_folder
from synthetic_recordings import Strike

from carom.core.errors import SceneError
from carom.recordings import Recordings, read, scene_of
from carom.recordings.checks.pushes import check_pushes
from carom.recordings.kind import kind_of
from carom.recordings.pushes import push_of, pushes_in, summary_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return poses_folder(tmp_path_factory.mktemp("pushes") / "poses", 5)


def kinds(recordings: Recordings) -> set[str]:
    return {found.code for found in check_pushes(recordings)}


def test_pushes_are_told_from_strikes(folder: Path) -> None:
    recordings = read(folder)
    assert kind_of(recordings) == "pushes"
    assert len(pushes_in(recordings)) == 5
    assert push_of(Strike().trajectory()) is None


def test_what_a_push_shows(folder: Path) -> None:
    recordings = read(folder)
    for trajectory in recordings.trajectories:
        push = push_of(trajectory)
        assert push is not None
        assert (push.target, push.tool) == ("block", "tool")
        assert abs(push.least_gap) < 2e-3
        path = trajectory.planar_com("block")
        good = path[np.isfinite(path).all(axis=1)]
        assert push.distance <= np.linalg.norm(np.diff(good, axis=0), axis=1).sum()
        assert 0.25 < push.contact < trajectory.time[-1]
    summary = summary_of(recordings)
    assert summary is not None
    assert (summary.count, summary.with_controls) == (5, 0)
    assert dict(summary.rows())["pushes"] == "5, 0 with commands (ctrl.*)"


def test_commands_are_counted(tmp_path: Path) -> None:
    summary = summary_of(read(servo_folder(tmp_path / "servo", 2)))
    assert summary is not None
    assert summary.with_controls == 2


def test_odd_pushes_are_named(folder: Path) -> None:
    recordings = read(folder)
    few = replace(recordings, trajectories=recordings.trajectories[:2])
    assert "few-pushes" in kinds(few)
    assert "few-pushes" not in kinds(recordings)
    first = recordings.trajectories[0]
    alone = replace(first, bodies={"block": first.bodies["block"]})
    assert "no-tool" in kinds(replace(recordings, trajectories=(alone,)))
    still = np.tile(first.position_world["block"][:1], (len(first), 1))
    rests = replace(first, position_world={**first.position_world, "block": still})
    assert "target-still" in kinds(replace(recordings, trajectories=(rests,)))
    slow = replace(first, time=first.time * 20)
    assert "slow-pushes" in kinds(replace(recordings, trajectories=(slow,)))


def test_a_tool_that_is_said_to_be_smaller_than_it_is_shows_as_a_gap(folder: Path) -> None:
    first = read(folder).trajectories[0]
    shape = first.bodies["tool"].shape
    assert shape is not None
    small = replace(first.bodies["tool"], shape=replace(shape, radius=0.004))
    recordings = replace(read(folder), trajectories=(replace(first, bodies={**first.bodies, "tool": small}),))
    assert "push-gap" in kinds(recordings)


def test_ground_that_is_stated_at_another_height_is_named(folder: Path) -> None:
    recordings = read(folder)
    assert recordings.ground is not None
    assert "ground-height" not in kinds(recordings)
    sunk = replace(recordings, ground=replace(recordings.ground, height=-0.75))
    (first, *_) = [each for each in check_pushes(sunk) if each.code == "ground-height"]
    assert first.value == pytest.approx(750, abs=2)
    assert "above the stated ground" in first.text


def test_who_wants_strikes_is_told_that_these_are_pushes(folder: Path) -> None:
    recordings = read(folder)
    with pytest.raises(SceneError, match="these are pushes: carom identify and carom evaluate take them"):
        scene_of(recordings)
    away = tuple(
        replace(t, position_world={**t.position_world, "tool": t.position_world["tool"] + [0.5, 0.5, 0]})
        for t in recordings.trajectories
    )
    with pytest.raises(SceneError, match="most recordings do not look like pushes, see carom check"):
        scene_of(replace(recordings, trajectories=away))
