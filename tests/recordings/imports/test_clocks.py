"""Bodies on several clocks: read between samples, never beyond them; and by how much two files' clocks differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from long_takes import LongTake
from scipy.spatial.transform import Rotation

from carom import recipes
from carom.core.errors import RecordingError
from carom.recordings import read
from carom.recordings.formats.take import Signal, Track
from carom.recordings.imports.clocks import at_times, signal_at
from carom.recordings.imports.joining import ImportOptions
from carom.recordings.imports.offsets import offset_of

ROLES = {"block": "target", "tool": "tool"}
FILES = ("mocap.csv", "robot.csv")


def session(kind: str = "strike") -> tuple[Track, Track]:
    take = LongTake()
    for place in range(3):
        getattr(take, kind)()
        take.rest(0.4 + 0.3 * place)
        take.put_back((0.03 * place, -0.02, 0.05), seconds=1.2 + 0.4 * place)
        take.rest(0.5)
    return take.tracks()


def sampled_at(track: Track, time: np.ndarray, delay: float = 0.0) -> Track:
    """A body as another system sees it, whose clock shows `delay` more."""
    moved = at_times(track, time)
    return replace(moved, time=time + delay)


def test_motion_between_samples_is_read_and_gaps_stay():
    time = np.arange(0, 1, 0.01)
    turn = Rotation.from_rotvec(np.outer(time, [0, 0, 2.0]))
    track = Track("a", time, np.outer(time, [1.0, 2.0, 0.0]), turn.as_quat(scalar_first=True))
    track.position[40:50] = np.nan
    asked = np.array([-0.1, 0.005, 0.333, 0.45, 0.995, 1.2])
    found = at_times(track, asked)
    np.testing.assert_allclose(found.position[[1, 2]], np.outer(asked[[1, 2]], [1.0, 2.0, 0.0]), atol=1e-12)
    np.testing.assert_allclose(2 * np.arctan2(found.quaternion[2, 3], found.quaternion[2, 0]), 2 * asked[2])
    assert np.isnan(found.position[[0, 3, 4, 5]]).all()
    assert at_times(track, time) is track


def test_a_command_stands_until_the_next():
    signal = Signal("action", np.array([0.1, 0.2]), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(signal_at(signal, np.array([0.0, 0.1, 0.19, 5.0])), [np.nan, 1.0, 1.0, 2.0])


@pytest.mark.parametrize("delay", [0.0, -3.217, 812.0043])
@pytest.mark.parametrize("kind", ["strike", "push"])
def test_the_same_body_in_both_files_shows_the_offset(kind, delay):
    block, tool = session(kind)
    robot = sampled_at(tool, np.arange(0.7, tool.time[-1] - 0.4, 1 / 497), delay)
    found = offset_of((block, tool), (robot,), ROLES, None, FILES)
    assert found.seconds == pytest.approx(-delay, abs=0.002)
    assert "tool is in both" in found.words


def test_blows_show_the_offset_where_no_body_is_in_both():
    block, tool = session()
    robot = sampled_at(tool, np.arange(0.3, tool.time[-1] - 0.1, 1 / 500), 57.31)
    found = offset_of((block,), (robot,), ROLES, None, FILES)
    assert found.seconds == pytest.approx(-57.31, abs=0.02)


def test_pushes_show_it_too():
    block, tool = session("push")
    robot = sampled_at(tool, np.arange(0.3, tool.time[-1] - 0.1, 1 / 500), 57.31)
    found = offset_of((block,), (robot,), ROLES, None, FILES)
    assert found.seconds == pytest.approx(-57.31, abs=0.03)


@pytest.mark.parametrize("order", ["block first", "tool first"])
def test_a_tool_that_sets_out_early_does_not_mislead(order):
    """The times of motion are half a second off here; how fast the one goes while the other does is not."""
    time = np.arange(0, 4, 0.01)
    way = 0.5 * np.clip((time - 0.5) / 2.5, 0, 1) ** 2 * (3 - 2 * np.clip((time - 0.5) / 2.5, 0, 1))
    tool = Track("tool", time, np.column_stack([way, 0 * time, 0 * time]))
    block = Track("block", time, np.column_stack([np.maximum(way - 0.1, 0), 0 * time, 0 * time]))
    robot = sampled_at(tool, np.arange(0.1, 3.8, 1 / 250), 41.7)
    pair = ((block,), (robot,)) if order == "block first" else ((robot,), (block,))
    found = offset_of(*pair, ROLES, None, FILES)
    assert found.seconds == pytest.approx(-41.7 if order == "block first" else 41.7, abs=0.03)
    assert "go alike while the one pushes the other" in found.words


def test_what_nothing_shows_is_asked_for():
    block, tool = session()
    still = replace(
        tool, position=0 * tool.position + 1e-5 * np.random.default_rng(0).standard_normal((len(tool.time), 3))
    )
    later = replace(still, time=still.time + 3.0)
    with pytest.raises(RecordingError, match=r"robot\.csv: nothing shows .*--offset SECONDS"):
        offset_of((block,), (later,), ROLES, None, FILES)
    assert offset_of((block,), (later,), ROLES, 0.25, FILES).seconds == 0.25


def test_files_with_the_same_stamps_share_a_clock():
    """Two exports of one take: a pusher moves long before the block, which would show an offset that is none."""
    time = np.arange(0, 4, 0.01)
    way = np.clip(0.2 * (time - 0.5), 0, 0.5)
    tool = Track("tool", time, np.column_stack([way, 0 * time, 0 * time]))
    block = Track("block", time, np.column_stack([np.maximum(way - 0.15, 0), 0 * time, 0 * time]))
    found = offset_of((block,), (tool,), ROLES, None, FILES)
    assert found.seconds == 0
    assert "begin and end at the same stamps" in found.words


def test_clocks_that_count_from_1970_are_one_unless_the_motion_says_more():
    block, tool = session()
    stamps = tool.time[::2]
    for late in (0.0, 0.031):
        robot = sampled_at(tool, stamps, 1.7e9 + late)
        seen = replace(tool, time=tool.time + 1.7e9)
        found = offset_of((replace(block, time=block.time + 1.7e9), seen), (robot,), ROLES, None, FILES)
        assert found.seconds == pytest.approx(-late, abs=0.002)
    still = replace(robot, position=0 * robot.position)
    found = offset_of((replace(block, time=block.time + 1.7e9),), (still,), ROLES, None, FILES)
    assert found.seconds == 0.0
    assert "taken as one" in found.words


def table(path: Path, *tracks: Track) -> Path:
    names = [f"{t.name}.{part}" for t in tracks for part in ("x", "y", "z", "qw", "qx", "qy", "qz")]
    rows = np.column_stack([tracks[0].time, *(part for t in tracks for part in (t.position, t.quaternion))])
    np.savetxt(path, rows, delimiter=",", header=",".join(["time", *names]), comments="", fmt="%.9f")
    return path


def test_two_files_become_one_recording_per_strike(tmp_path):
    block, tool = session()
    mocap = table(tmp_path / "mocap.csv", block)
    robot = table(tmp_path / "robot.csv", sampled_at(tool, np.arange(0.2, tool.time[-1] - 0.2, 1 / 500), -11.5))
    result = recipes.import_files(
        [mocap, robot],
        tmp_path / "out",
        names=["block=target", "tool=striker"],
        cutting="strike",
        options=ImportOptions(up="z"),
    )
    assert len(result.recordings) == 3
    (words,) = [words for words in result.about["done"] if words.startswith("robot.csv: its clock is moved by")]
    assert float(words.split(" by ")[1].split(" s")[0]) == pytest.approx(11.5, abs=0.02)
    assert any("its frame is taken to be that of the first file" in words for words in result.about["done"])
    for recording in read(tmp_path / "out").trajectories:
        assert set(recording.bodies) == {"block", "tool"}
        assert np.isfinite(recording.position_world["tool"]).mean() > 0.98


def test_a_body_in_both_files_brings_their_frames_together(tmp_path):
    block, tool = session()
    turn = Rotation.from_euler("z", 0.7)
    seen = sampled_at(tool, np.arange(0.2, tool.time[-1] - 0.2, 1 / 250), 3.0)
    arm = replace(seen, name="arm", position=seen.position + np.array([0.0, 0.0, 0.4]))
    away = [
        replace(
            track,
            position=turn.apply(track.position) + np.array([1.0, -2.0, 0.1]),
            quaternion=(turn * Rotation.from_quat(track.quaternion, scalar_first=True)).as_quat(scalar_first=True),
        )
        for track in (seen, arm)
    ]
    files = [table(tmp_path / "mocap.csv", block, tool), table(tmp_path / "robot.csv", *away)]
    result = recipes.import_files(files, tmp_path / "out", options=ImportOptions(up="z"))
    (recording,) = result.recordings.trajectories
    np.testing.assert_allclose(
        recording.position_world["arm"][200:-200], tool.position[200:-200] + np.array([0, 0, 0.4]), atol=3e-3
    )
    assert any("turned by -40" in words for words in result.about["done"])


def test_files_of_the_same_bodies_are_recordings_of_their_own(tmp_path):
    block, tool = session()
    files = [table(tmp_path / f"take_{k}.csv", block, tool) for k in range(3)]
    result = recipes.import_files(files, tmp_path / "out", options=ImportOptions(up="z"))
    assert [t.name for t in result.recordings.trajectories] == ["take_0.csv", "take_1.csv", "take_2.csv"]
    with pytest.raises(RecordingError, match="files of different bodies are joined one by one"):
        recipes.import_files(
            [*files[:2], table(tmp_path / "lone.csv", tool)], tmp_path / "b", options=ImportOptions(up="z", offset=0.0)
        )
