"""Bags of ROS 1 and ROS 2 and MCAP files, as `rosbags` and `mcap` write them, read by Carom's own readers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_files import DELAY, MOTION, START, Path3, Sent, stream, write_json, write_ros1, write_ros2
from spoilt_files import spoilt

from carom.core.errors import CaromError, RecordingError
from carom.recordings.formats import mcap, rosbag1, rosbag2
from carom.recordings.formats.take import NoPosesError, ReadOptions, Take, Track

OPTIONS = ReadOptions()


def of(take: Take, name: str) -> Track:
    return next(track for track in take.tracks if track.name == name)


def assert_moves(track: Track, motion: Path3 = MOTION, tolerance: float = 1e-6) -> None:
    """The track is the motion that was sent."""
    np.testing.assert_allclose(track.time, motion.time, atol=tolerance)
    np.testing.assert_allclose(track.position, motion.position, atol=1e-12)
    assert track.quaternion is not None
    np.testing.assert_allclose(track.quaternion, motion.quaternion, atol=1e-12)


@pytest.mark.parametrize("storage", ["db3", "mcap"])
@pytest.mark.parametrize("packed", ["no", "file", "message", "chunks"])
def test_ros2_bags_of_every_storage_and_packing(tmp_path: Path, storage: Any, packed: Any) -> None:
    if packed == "chunks" and storage == "db3":
        pytest.skip("only MCAP has chunks")
    write_ros2(tmp_path / "bag", stream("/box", "pose"), storage=storage, packed=packed)
    assert rosbag2.recognise(tmp_path / "bag", b"") > 0.9
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    assert_moves(of(take, "/box"))
    assert take.clock == "header stamps"
    assert take.rate == pytest.approx(100, rel=1e-3)
    assert "poses are in frame 'world'" in take.said


def test_every_kind_of_pose(tmp_path: Path) -> None:
    sent = [
        *stream("/pose", "pose"),
        *stream("/covariance", "covariance"),
        *stream("/odometry", "odometry", child="base"),
        *stream("/array", "array"),
        *stream("/bare", "bare"),
        Sent("/talk", "string", START),
    ]
    write_ros2(tmp_path / "bag", sent, version=8)  # without definitions in the bag
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    assert {track.name for track in take.tracks} == {
        "/pose", "/covariance", "/odometry", "/array[0]", "/array[1]", "/bare"
    }  # fmt: skip
    for track in take.tracks:
        assert_moves(track)
    assert any("topics without header stamps" in words and "0.004 s" in words for words in take.said)
    assert any("neither poses nor joints (std_msgs/String)" in words for words in take.left_out)


def test_transforms_are_chained_to_the_fixed_frame(tmp_path: Path) -> None:
    half = np.sqrt(0.5)
    sent = [
        Sent("/tf_static", "tf", START, (1.0, 2.0, 3.0), (half, 0.0, 0.0, half), "world", "table"),
        Sent("/tf_static", "tf", START, (0.0, 0.0, 0.1), child="lid", parent="box"),
        *stream("/tf", "tf", parent="table", child="box"),
    ]
    write_ros2(tmp_path / "bag", sent)
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    assert {track.name for track in take.tracks} == {"box", "lid"}
    x, y, z = MOTION.position.T
    np.testing.assert_allclose(of(take, "box").position, np.column_stack([1 - y, 2 + x, 3 + z]), atol=1e-12)
    lid = of(take, "lid")
    assert lid.quaternion is not None
    apart = lid.position - of(take, "box").position
    np.testing.assert_allclose(np.linalg.norm(apart, axis=1), 0.1, atol=1e-12)
    assert "frames of tf are chained to 'world'" in take.said
    assert any("do not move" in words and "table" in words for words in take.left_out)


def test_frames_with_and_without_a_slash_in_front_are_the_same(tmp_path: Path) -> None:
    """Nodes of ROS 1 wrote '/camera', others 'camera' for it; both stand in one bag."""
    sent = [
        Sent("/tf_static", "tf", START, (0.0, 0.0, 1.0), parent="/world", child="/camera"),
        *stream("/tf", "tf", parent="camera", child="/box"),
        *stream("/seen", "pose", parent="/camera"),
    ]
    write_ros2(tmp_path / "bag", sent)
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    assert {track.name for track in take.tracks} == {"box", "/seen"}
    for track in take.tracks:
        np.testing.assert_allclose(track.position - [0, 0, 1], MOTION.position, atol=1e-12)


def test_a_moving_parent_is_interpolated_and_not_extrapolated(tmp_path: Path) -> None:
    """A box that lies still on a sledge: the sledge is sampled at other times, and not at the end."""
    sledge = Path3(START + np.arange(40) / 80)
    turn = (1.0, 0.0, 0.0, 0.0)
    sent = [Sent("/tf", "tf", float(t), (2 * (t - START), 0, 0), turn, "world", "sledge") for t in sledge.time]
    sent += [Sent("/tf", "tf", float(t) + 0.003, (0, 0.5, 0), turn, "sledge", "box") for t in MOTION.time]
    write_ros2(tmp_path / "bag", sent)
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    box = of(take, "box")
    inside = box.time <= sledge.time[-1]
    assert not inside.all()
    np.testing.assert_allclose(box.position[inside, 0], 2 * (box.time[inside] - START), atol=1e-6)
    assert np.isnan(box.position[~inside]).all()


def test_a_pose_in_a_frame_of_tf_is_chained_and_one_elsewhere_is_said(tmp_path: Path) -> None:
    sent = [
        Sent("/tf_static", "tf", START, (0.0, 0.0, 1.0), parent="world", child="camera"),
        *stream("/seen", "pose", parent="camera"),
        *stream("/lost", "pose", parent="nowhere"),
    ]
    write_ros2(tmp_path / "bag", sent)
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    np.testing.assert_allclose(of(take, "/seen").position - [0, 0, 1], MOTION.position, atol=1e-12)
    assert_moves(of(take, "/lost"))
    assert any("/lost is in frame 'nowhere', which nothing joins to 'world'" in words for words in take.said)


@pytest.mark.parametrize("packed", ["no", "bz2", "lz4"])
def test_ros1_bags(tmp_path: Path, packed: Any) -> None:
    sent = [*stream("/vicon/box/box", "transform", child="box"), *stream("/tool", "pose")]
    write_ros1(tmp_path / "take.bag", sorted(sent, key=lambda each: each.stamp), packed=packed)
    assert rosbag1.recognise(tmp_path / "take.bag", (tmp_path / "take.bag").read_bytes()[:100]) > 0.9
    (take,) = rosbag1.read(tmp_path / "take.bag", OPTIONS)
    assert take.name == "take"
    assert_moves(of(take, "box"))
    assert_moves(of(take, "/tool"))


@pytest.mark.parametrize("protobuf", [False, True])
def test_foxglove_messages_in_mcap(tmp_path: Path, protobuf: bool) -> None:
    write_json(tmp_path / "take.mcap", stream("/box", "pose"), protobuf=protobuf)
    assert mcap.recognise(tmp_path / "take.mcap", (tmp_path / "take.mcap").read_bytes()[:100]) > 0.9
    (take,) = mcap.read(tmp_path / "take.mcap", OPTIONS)
    assert_moves(of(take, "/box"))


def test_joints_become_signals(tmp_path: Path) -> None:
    sent = [Sent("/joints", "joints", START + k / 50, joints=(0.1 * k, -0.2)) for k in range(10)]
    write_ros2(tmp_path / "bag", [*stream("/box", "pose"), *sent])
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    signals = {signal.name: signal for signal in take.signals}
    assert set(signals) == {f"joint_{n}.{what}" for n in (0, 1) for what in ("position", "velocity")}
    np.testing.assert_allclose(signals["joint_0.velocity"].values, 0.2 * np.arange(10))
    np.testing.assert_allclose(signals["joint_0.velocity"].time, START + np.arange(10) / 50, atol=1e-6)


def test_the_clock_is_chosen_and_said(tmp_path: Path) -> None:
    simulated = [replace(each, stamp=each.stamp - START + 5, received=each.stamp) for each in stream("/box", "pose")]
    write_ros2(tmp_path / "simulated", simulated)
    (take,) = rosbag2.read(tmp_path / "simulated", OPTIONS)
    assert take.tracks[0].time[0] == pytest.approx(5)
    assert any("another clock, or simulated time" in words for words in take.said)
    (take,) = rosbag2.read(tmp_path / "simulated", ReadOptions(clock="received"))
    assert take.clock == "times of receipt"
    assert take.tracks[0].time[0] == pytest.approx(START, abs=1e-6)
    unset = [replace(each, stamp=0.0, received=each.stamp + DELAY) for each in stream("/box", "pose")]
    write_ros2(tmp_path / "unset", unset)
    (take,) = rosbag2.read(tmp_path / "unset", OPTIONS)
    assert take.clock == "times of receipt"
    assert take.tracks[0].time[0] == pytest.approx(START + DELAY, abs=1e-6)
    with pytest.raises(RecordingError, match="expected header stamps, got none"):
        rosbag2.read(tmp_path / "unset", ReadOptions(clock="header"))


def test_messages_out_of_order_and_repeated(tmp_path: Path) -> None:
    sent = stream("/box", "pose")
    shuffled = [sent[k] for k in np.random.default_rng(0).permutation(len(sent))]
    write_ros2(tmp_path / "bag", [*shuffled, sent[3], sent[4]], storage="mcap")
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    assert_moves(take.tracks[0])
    assert any("2 stamps repeat" in words for words in take.said)
    assert any("came late" in words for words in take.said)


def test_one_damaged_stamp_costs_one_sample(tmp_path: Path) -> None:
    sent = stream("/box", "pose")
    sent[10] = replace(sent[10], stamp=START + 1e8, received=sent[10].stamp)
    write_ros2(tmp_path / "bag", sent)
    (take,) = rosbag2.read(tmp_path / "bag", OPTIONS)
    assert len(take.tracks[0].time) == len(sent) - 1


def test_split_bags_and_missing_metadata(tmp_path: Path) -> None:
    sent = stream("/box", "pose")
    folder = tmp_path / "bag"
    for part in range(11):
        write_ros2(tmp_path / f"p{part}", sent[part * 5 : part * 5 + 5 if part < 10 else None])
    folder.mkdir()
    for part in range(10):
        shutil.copy(tmp_path / f"p{part}" / f"p{part}.db3", folder / f"bag_{part}.db3")
    (take,) = rosbag2.read(folder, OPTIONS)
    assert_moves(take.tracks[0])
    assert any("no metadata.yaml" in words for words in take.said)
    text = "rosbag2_bagfile_information:\n  relative_file_paths: [bag/bag_0.db3, ../bag_1.db3, bag_77.db3]\n"
    (folder / "metadata.yaml").write_text(text)
    (take,) = rosbag2.read(folder, OPTIONS)
    assert_moves(take.tracks[0])
    assert any("bag_77.db3 is not there" in words for words in take.said)
    assert any("does not list bag_2.db3" in words for words in take.said)
    (take,) = rosbag2.read(folder / "bag_3.db3", OPTIONS)
    assert len(take.tracks[0].time) == 5


@pytest.mark.parametrize("kind", ["bag", "bz2.bag", "lz4.bag", "mcap", "zstd.mcap"])
def test_a_bag_that_was_cut_off_gives_what_is_whole(tmp_path: Path, kind: str) -> None:
    full = 12_000 if "bz2" in kind else 3000  # bz2 can only be unpacked by whole chunks, of 1 MB here
    sent = stream("/box", "pose", motion=Path3(START + np.arange(full) / 100))
    if kind.endswith("bag"):
        file = tmp_path / "take.bag"
        write_ros1(file, sent, packed=kind.split(".")[0] if "." in kind else "no")  # type: ignore[arg-type]
        reader: Any = rosbag1
    else:
        write_ros2(tmp_path / "whole", sent, storage="mcap", packed="chunks" if "zstd" in kind else "no")
        (file,), reader = tuple((tmp_path / "whole").glob("*.mcap")), mcap
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * 0.6)])
    (take,) = reader.read(file, OPTIONS)
    count = len(take.tracks[0].time)
    assert 0.2 * full < count < full
    assert_moves(take.tracks[0], Path3(START + np.arange(count) / 100))
    assert any("cut off" in words for words in take.said)


def test_a_database_that_was_cut_off(tmp_path: Path) -> None:
    write_ros2(tmp_path / "bag", stream("/box", "pose", motion=Path3(START + np.arange(3000) / 100)))
    file = tmp_path / "bag" / "bag.db3"
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * 0.6)])
    (take,) = rosbag2.read(file, OPTIONS)
    assert 600 < len(take.tracks[0].time) < 3000
    assert any("damaged" in words for words in take.said)


def test_bags_without_poses_say_what_they_hold(tmp_path: Path) -> None:
    write_ros2(tmp_path / "bag", [Sent("/talk", "string", START)])
    with pytest.raises(NoPosesError, match=r"no poses in this bag, but /talk \(std_msgs/String\)"):
        rosbag2.read(tmp_path / "bag", OPTIONS)
    (tmp_path / "empty").mkdir()
    assert rosbag2.recognise(tmp_path / "empty", b"") == 0
    with pytest.raises(RecordingError, match="no file of a bag"):
        rosbag2.read(tmp_path / "empty", OPTIONS)


POSITION = """\
std_msgs/Header header
float32 x_trans
float32 y_trans
float32 z_trans
float32 x_rot
float32 y_rot
float32 z_rot
float32 w
string segment_name
string subject_name
"""


def test_a_type_without_definition_is_refused_or_read_with_the_users(shared_data: Path, tmp_path: Path) -> None:
    bag = shared_data / "foreign" / "rosbag2" / "go2_vicon_test_6"
    if not bag.is_dir():
        pytest.skip("this bag is not there")
    with pytest.raises(NoPosesError, match=r"vicon_receiver/Position is not defined in it: give its definition"):
        rosbag2.read(bag, OPTIONS)
    (tmp_path / "Position.msg").write_text(POSITION)
    (take,) = rosbag2.read(bag, ReadOptions(definitions=(tmp_path / "Position.msg",), length_unit="mm"))
    (track,) = take.tracks
    assert track.name == "UnitreeGo2"
    assert len(track.time) == 7396
    np.testing.assert_allclose(track.position[0], [0.05895763, -0.20486481, 0.38016364], atol=1e-8)
    assert track.quaternion is not None
    assert np.abs(np.linalg.norm(track.quaternion, axis=1) - 1).max() < 1e-12
    (take,) = rosbag2.read(bag, ReadOptions(definitions=(tmp_path / "Position.msg",)))
    assert any("if the numbers are millimetres" in words for words in take.said)


def test_a_split_bag_of_strings_is_refused(shared_data: Path) -> None:
    bag = shared_data / "foreign" / "rosbag2" / "bagel_split5"
    if not bag.is_dir():
        pytest.skip("this bag is not there")
    with pytest.raises(NoPosesError, match=r"AAA \(std_msgs/String\)"):
        rosbag2.read(bag, OPTIONS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("float64 x y z", None),
        ("hello", None),
        ("float64[ x", "a line that is no field"),
        ("Loop a\n", "holds itself"),
        ("\0", "as text"),
    ],
)
def test_definitions_that_make_no_sense(tmp_path: Path, text: str, words: str | None) -> None:
    (tmp_path / "Loop.msg").write_text(text)
    write_ros2(tmp_path / "bag", stream("/box", "pose"))
    options = ReadOptions(definitions=(tmp_path / "Loop.msg",))
    if words in (None, "holds itself"):
        rosbag2.read(tmp_path / "bag", options)  # not asked for
    else:
        with pytest.raises(CaromError, match=words):
            rosbag2.read(tmp_path / "bag", options)


@pytest.mark.parametrize(
    "kind", ["db3", "db3.zstd", "mcap", "zstd.mcap", "json.mcap", "protobuf.mcap", "bag", "lz4.bag"]
)
def test_bags_cut_and_spoilt_at_random(tmp_path: Path, kind: str) -> None:
    sent: list[Sent] = [*stream("/box", "pose"), *stream("/far", "array")]
    sent += stream("/tf", "transform" if kind.endswith("bag") else "tf", child="box")
    sent += [Sent("/joints", "joints", START + k / 50, joints=(0.1 * k, -0.2)) for k in range(10)]
    sent.sort(key=lambda each: each.stamp)
    file = tmp_path / f"take.{kind}"
    if kind.endswith("bag"):
        write_ros1(file, sent, packed="lz4" if "lz4" in kind else "no")
        reader: Any = rosbag1
    elif kind in ("json.mcap", "protobuf.mcap"):
        write_json(file, stream("/box", "pose"), protobuf="protobuf" in kind)
        reader = mcap
    else:
        packed: Any = "file" if kind == "db3.zstd" else "chunks" if kind == "zstd.mcap" else "no"
        write_ros2(tmp_path / "bag", sent, storage="mcap" if "mcap" in kind else "db3", packed=packed)
        shutil.copy(next(f for f in (tmp_path / "bag").iterdir() if f.suffix != ".yaml"), file)
        reader = rosbag2 if "db3" in kind else mcap
    refused, accepted = spoilt(file, lambda: reader.read(file, OPTIONS), count=200, damaged=40)
    assert refused
    assert accepted
