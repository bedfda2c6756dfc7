"""Exports of capture systems: the motion that a file was written from comes back, in whatever way it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import capture_files as files
import numpy as np
import pytest
from capture_files import COUNT, LOST, MARKERS, NAMES, POSITION, RATE, TIME, TURN, W_FIRST, WRITERS
from scipy.spatial.transform import Rotation
from spoilt_files import spoilt

from carom.core.errors import CaromError
from carom.recordings.formats.found import read_take, reader_of
from carom.recordings.formats.take import NoPosesError, ReadOptions, Take, Track

OPTIONS = ReadOptions()
SEEN = np.setdiff1d(np.arange(COUNT), np.arange(COUNT)[LOST])


def take_of(path: Path, options: ReadOptions = OPTIONS) -> Take:
    (take,) = read_take(path, options)
    return take


def is_the_body(track: Track, turn: Rotation = TURN, *, place: float = 1e-6, angle: float = 1e-5) -> None:
    assert track.name == "box"
    np.testing.assert_allclose(track.time, TIME, atol=1e-6)
    np.testing.assert_allclose(track.position[SEEN], POSITION[SEEN], atol=place)
    assert np.isnan(track.position[LOST]).all()
    assert track.quaternion is not None
    assert np.isnan(track.quaternion[LOST]).all()
    found = Rotation.from_quat(track.quaternion[SEEN], scalar_first=True)
    assert (turn[SEEN].inv() * found).magnitude().max() < angle
    steps = np.einsum("ti,ti->t", track.quaternion[SEEN][1:], track.quaternion[SEEN][:-1])
    assert (steps > 0).all()


def are_the_points(take: Take, place: float = 1e-6) -> None:
    (cloud,) = take.markers
    assert cloud.names == NAMES
    np.testing.assert_allclose(cloud.position[:, 1:], MARKERS[:, 1:], atol=place)
    np.testing.assert_allclose(cloud.position[SEEN, 0], MARKERS[SEEN, 0], atol=place)
    assert np.isnan(cloud.position[LOST, 0]).all()


MOTIVE: dict[str, dict[str, Any]] = {
    "1.2": {"version": "1.2"},
    "1.21, no labels": {"version": "1.21", "labels": False},
    "1.25 in millimetres": {"version": "1.25", "unit": 0.001},
    "1.25 with parents": {"version": "1.25", "parent": True},
    "line feeds": {"end": "\n"},
    "byte order mark": {"encoding": "utf-8-sig"},
    "UTF-16": {"encoding": "utf-16"},
    "semicolons and decimal commas": {"comma": True},
    **{f"Euler {order}": {"rotation": order} for order in ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")},
}


@pytest.mark.parametrize("how", MOTIVE)
def test_motive(tmp_path, how):
    take = take_of(files.motive(tmp_path / "take.csv", **MOTIVE[how]))
    assert take.format == "OptiTrack Motive CSV"
    assert take.rate == pytest.approx(RATE)
    (body,) = take.tracks
    is_the_body(body, place=2e-6, angle=3e-5)
    assert [cloud.names for cloud in take.markers] == [("Unlabeled 7",)]
    np.testing.assert_allclose(take.markers[0].position[:, 0], MARKERS[:, 0], atol=2e-6)
    assert any("999 frames" in words for words in take.said)
    assert any("expected places" in words for words in take.left_out)
    if "Euler" not in how:
        assert any("sign of the quaternion" in words for words in take.said)


def test_motives_rounded_stamps_are_frames_over_the_rate(tmp_path):
    take = take_of(files.motive(tmp_path / "take.csv", stamps="{:.2f}"))
    np.testing.assert_allclose(np.diff(take.tracks[0].time), 0.01, atol=1e-9)


def test_motives_time_codes_are_left_out(tmp_path):
    """Motive 3 writes a column of SMPTE time codes after the times, when it has them."""
    lines = files.motive(tmp_path / "take.csv", version="1.24", parent=True).read_text().splitlines()
    top = next(k for k, line in enumerate(lines) if line.startswith("Frame,"))
    for k in range(2, len(lines)):
        cells = lines[k].split(",")
        cells.insert(2, "TimeCode" if k == top else "" if k < top else f"15:26:46:{k % 100:02d}.02")
        lines[k] = ",".join(cells)
    (tmp_path / "take.csv").write_text("\n".join(lines) + "\n")
    take = take_of(tmp_path / "take.csv")
    is_the_body(take.tracks[0], place=2e-6, angle=3e-5)
    assert "column TimeCode" in take.left_out


def test_motive_in_rows_says_when_a_body_was_not_tracked(tmp_path):
    """A lost body keeps its last pose in its frame's row; the row after it says for how many frames."""
    lines = files.motive_rows(tmp_path / "rows.csv").read_text().splitlines()
    frames = [k for k, line in enumerate(lines) if line.startswith("frame,")]
    held = lines[frames[LOST.start - 1]].split(",")[4:15]
    for number, k in reversed(list(enumerate(frames))):
        lost = number - LOST.start + 1 if LOST.start <= number < LOST.stop else 0
        cells = lines[k].split(",")
        lines[k] = ",".join([*cells[:4], *(held if lost else cells[4:15]), *cells[15:]])
        lines.insert(k + 1, f"rigidbody,{number},{TIME[number]:.6f},box,1,{lost},3,0,0,0")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    take = take_of(tmp_path / "rows.csv")
    is_the_body(take.tracks[0], place=2e-6, angle=3e-5)
    assert any("6 poses are from before it was lost" in words for words in take.said)


@pytest.mark.parametrize("handed", ["righthanded", "lefthanded"])
def test_motive_in_rows(tmp_path, handed):
    take = take_of(files.motive_rows(tmp_path / "rows.csv", handed=handed))
    (body,) = take.tracks
    is_the_body(body, place=2e-6, angle=3e-5)
    assert take.markers[0].names == ("M17",)
    assert any("left-handed" in words for words in take.said) == (handed == "lefthanded")


@pytest.mark.parametrize("rotation", ["vector", "quaternion"])
def test_vicon_tracker(tmp_path, rotation):
    take = take_of(files.tracker(tmp_path / "tracker.csv", rotation=rotation))
    turn = TURN if rotation == "quaternion" else Rotation.from_rotvec(np.outer(2.9 + 1.5 * TIME, [0.48, 0.6, 0.64]))
    (body,) = take.tracks
    is_the_body(body, turn, place=2e-6, angle=3e-5)


def tracker_of(
    path: Path, turn: Rotation, kind: str, words: str = "Global Angle", place: np.ndarray = POSITION
) -> Path:
    """Tracker's objects with three angles of a kind."""
    angles = turn.as_rotvec() if kind == "vector" else turn.as_euler(kind)[:, [kind.index(axis) for axis in "XYZ"]]
    rows: list[list[object]] = [["Objects"], [100], ["", "", f"{words} box:box"]]
    rows += [["Frame", "Sub Frame", "RX", "RY", "RZ", "TX", "TY", "TZ"], ["", "", *["rad"] * 3, *["mm"] * 3]]
    poses = np.column_stack([angles, 1000 * place])
    rows += [[t + 1, 0, *files.cells(poses[t], "{:.8f}")] for t in range(COUNT)]
    path.write_text(files.lines(rows))
    return path


def turn_off(take: Take, turn: Rotation) -> float:
    """How far a take's only body is turned from what it should be [rad]."""
    found = Rotation.from_quat(take.tracks[0].quaternion, scalar_first=True)
    return float((turn.inv() * found).magnitude().max())


TILTED = Rotation.from_euler("xyz", [0.4, -0.7, 0.9])


@pytest.mark.parametrize("kind", ["vector", "XYZ"])
@pytest.mark.parametrize("turned", [0.5, 1.4])
def test_vicons_angles_are_known_by_a_body_on_a_table(tmp_path, kind, turned):
    """Neither reading jumps here, but the wrong one makes the body's axis wobble, or at least slants it."""
    level = np.column_stack([0.3 * TIME, 0.2 * TIME, 0.05 + 0 * TIME])
    turn = Rotation.from_rotvec(np.outer(turned * TIME / TIME[-1], [0, 0, 1])) * TILTED
    take = take_of(tracker_of(tmp_path / "t.csv", turn, kind, place=level))
    assert turn_off(take, turn) < 1e-6
    why = "else would wobble" if turned > 1 else "then turns in that plane"
    assert any(why in words for words in take.said)


@pytest.mark.parametrize(
    ("words", "kind"), [("Helical", "vector"), ("XYZ", "XYZ"), ("Euler ZYX", "ZYX"), ("YXZ", "YXZ")]
)
def test_vicons_names_say_what_angles_are(tmp_path, words, kind):
    take = take_of(tracker_of(tmp_path / "t.csv", TURN, kind, f"Global Angle ({words})"))
    assert turn_off(take, TURN) < 1e-6


def test_vicons_angles_that_nothing_shows_are_said_and_can_be_stated(tmp_path):
    slow = TILTED * Rotation.from_rotvec(0.2 * np.column_stack([np.sin(9 * TIME), np.cos(7 * TIME), TIME]))
    file = tracker_of(tmp_path / "t.csv", slow, "XYZ")
    take = take_of(file)
    assert turn_off(take, slow) > 0.05
    assert any("nothing shows it: as Euler angles they would be up to" in words for words in take.said)
    assert turn_off(take_of(file, ReadOptions(angles="XYZ")), slow) < 1e-6


def test_a_body_with_two_angles_has_no_orientation(tmp_path):
    file = tracker_of(tmp_path / "t.csv", TURN, "vector")
    file.write_text(file.read_text().replace("RX,RY,RZ", "RX,RY,QZ"))
    assert take_of(file).tracks[0].quaternion is None


def test_vicon_without_the_name_of_its_section(tmp_path):
    """As people cut them: names, labels and rows are there, the first lines are not."""
    file = files.tracker(tmp_path / "tracker.csv", rotation="quaternion")
    file.write_text("\n".join(file.read_text().splitlines()[2:]) + "\n")
    (body,) = take_of(file, ReadOptions(rate=RATE)).tracks
    is_the_body(body, place=2e-6, angle=3e-5)
    file.write_text("\n".join(file.read_text().splitlines()[1:]) + "\n")
    (body,) = take_of(file, ReadOptions(rate=RATE)).tracks
    assert body.name == "body 1"


def test_vicon_nexus_below_devices(tmp_path):
    take = take_of(files.nexus(tmp_path / "nexus.csv"))
    are_the_points(take, 1e-5)
    assert take.rate == pytest.approx(RATE)
    assert any("Devices" in words for words in take.left_out)


def test_vicon_devices_alone_are_refused_by_name(tmp_path):
    text = files.nexus(tmp_path / "nexus.csv").read_text().split("Trajectories")[0]
    (tmp_path / "devices.csv").write_text(text)
    with pytest.raises(NoPosesError, match=r"devices\.csv: no rigid bodies.*Devices"):
        take_of(tmp_path / "devices.csv")


@pytest.mark.parametrize("labelled", [True, False])
def test_qualisys_points(tmp_path, labelled):
    take = take_of(files.qualisys_3d(tmp_path / "points.tsv", labelled=labelled))
    are_the_points(take, 2e-6)
    assert take.rate == pytest.approx(RATE)


def test_qualisys_bodies_have_matrices_by_columns(tmp_path):
    (body,) = take_of(files.qualisys_6d(tmp_path / "bodies.tsv")).tracks
    is_the_body(body, place=2e-6, angle=3e-5)


def test_qualisys_columns_between_bodies_and_angles_with_other_names(tmp_path):
    """An empty column is no fault. Angles with other names are passed over beside a matrix, else refused."""
    file = files.qualisys_6d(tmp_path / "bodies.tsv")
    text = file.read_text()
    file.write_text(text.replace("Residual\t", "Residual\t\t").replace("\t0.3000000\t", "\t0.3000000\t\t"))
    is_the_body(take_of(file).tracks[0], place=2e-6, angle=3e-5)
    file.write_text(text.replace("Roll\tPitch\tYaw", "Rx\tRy\tRz"))
    is_the_body(take_of(file).tracks[0], place=2e-6, angle=3e-5)
    short = "\n".join("\t".join(line.split("\t")[:9]) for line in text.splitlines()) + "\n"
    file.write_text(short.replace("Roll\tPitch\tYaw", "Rx\tRy\tRz"))
    with pytest.raises(CaromError, match="angles are called Rx, Ry, Rz"):
        take_of(file)
    file.write_text(short.replace("Roll\tPitch\tYaw", "Yaw\tPitch\tRoll"))
    with pytest.raises(CaromError, match="not in QTM's own order"):
        take_of(file)


@pytest.mark.parametrize("separator", ["\t", ","])
@pytest.mark.parametrize("blank", [True, False])
def test_trc(tmp_path, separator, blank):
    take = take_of(files.trc(tmp_path / "points.trc", separator=separator, blank=blank))
    are_the_points(take, 2e-6)
    assert take.markers[0].time[0] == pytest.approx(-0.005)
    assert any("652" in words for words in take.said)


@pytest.mark.parametrize("processor", ["intel", "dec", "mips"])
@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("unit", ["mm", "m"])
def test_c3d(tmp_path, processor, integers, unit):
    if integers and unit == "m":
        pytest.skip("16-bit metres in steps of 50 mm are nobody's file")
    take = take_of(files.c3d(tmp_path / "points.c3d", processor=processor, integers=integers, unit=unit))
    are_the_points(take, 3e-5 if integers else 2e-6)
    assert take.rate == pytest.approx(RATE)


def test_c3d_as_another_library_writes_it(tmp_path):
    """ezc3d as a second opinion on what a file of ours holds: it reads what our writer made, as our reader does."""
    ezc3d = pytest.importorskip("ezc3d", reason="ezc3d is not installed")
    points = np.array(ezc3d.c3d(str(files.c3d(tmp_path / "points.c3d")))["data"]["points"])
    np.testing.assert_allclose(points[:3, 1].T / 1000, MARKERS[:, 1], atol=2e-6)


PLAIN: dict[str, dict[str, Any]] = {
    "commas": {},
    "tabs": {"separator": "\t"},
    "semicolons and decimal commas": {"separator": ";"},
    "byte order mark": {"encoding": "utf-8-sig"},
    "UTF-16": {"encoding": "utf-16"},
    "carriage returns": {"end": "\r\n"},
}


@pytest.mark.parametrize("how", PLAIN)
def test_plain_tables(tmp_path, how):
    (body,) = take_of(files.plain(tmp_path / "table.csv", **PLAIN[how])).tracks
    is_the_body(body, place=1e-8, angle=1e-7)


def test_a_table_without_names_is_read_as_it_is_mapped(tmp_path):
    file = files.plain(tmp_path / "table.csv", names=False)
    (body,) = take_of(file, ReadOptions(sources={"box": ("2-8",)}, time="1", quaternion_order="wxyz")).tracks
    is_the_body(body, place=1e-8, angle=1e-7)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", ["wrong.txt", "wrong.c3d", "wrong.bag", "no_suffix"])
def test_a_format_is_found_by_content(tmp_path, kind, name):
    own, write = WRITERS[kind]
    right = write(tmp_path / own)
    wrong = tmp_path / name
    wrong.write_bytes(right.read_bytes())
    assert reader_of(wrong) is reader_of(right)
    assert reader_of(right).__name__.endswith(kind.split()[0])


@pytest.mark.parametrize("kind", WRITERS)
def test_a_reader_survives_files_cut_off_and_damaged(tmp_path, kind):
    name, write = WRITERS[kind]
    file = write(tmp_path / name)
    refused, accepted = spoilt(file, lambda: read_take(file, OPTIONS), count=200, damaged=40, seed=len(kind))
    assert refused + accepted == 240
    assert refused
    assert accepted


@pytest.mark.parametrize("kind", WRITERS)
def test_what_a_cut_file_still_has_is_right(tmp_path, kind):
    """Rows before the cut are those of the whole file: no half of a number is read."""
    name, write = WRITERS[kind]
    file = write(tmp_path / name)
    whole = take_of(file)
    content = file.read_bytes()
    compared = 0
    for place in np.random.default_rng(4).integers(len(content) // 2, len(content), size=25):
        file.write_bytes(content[: int(place)])
        try:
            part = take_of(file)
        except CaromError:
            continue
        for one, other in zip(part.tracks, whole.tracks, strict=True):
            count = len(one.time)
            np.testing.assert_allclose(one.position, other.position[:count], atol=1e-9)
            compared += 1
        for one, other in zip(part.markers, whole.markers, strict=True):
            count = len(one.time)
            np.testing.assert_allclose(one.position, other.position[:count], atol=1e-9)
            compared += 1
    assert compared


def columns(path: Path, header: str, rows: list[list[object]]) -> Path:
    path.write_text(files.lines([header.split(","), *rows]))
    return path


def test_columns_of_text_and_dates_in_a_table(tmp_path):
    """Labels are left out, dates are seconds."""
    rows: list[list[object]] = [
        [f"2024-05-01 12:00:{1 + t:06.3f}", "hit", *place, *turn, "ok" if t < 0.2 else "lost?"]
        for t, place, turn in zip(TIME, POSITION, W_FIRST, strict=True)
    ]
    take = take_of(
        columns(tmp_path / "t.csv", "timestamp,label,box_px,box_py,box_pz,box_qw,box_qx,box_qy,box_qz,s", rows)
    )
    (body,) = take.tracks
    np.testing.assert_allclose(body.time - body.time[0], TIME, atol=1e-6)
    np.testing.assert_allclose(body.position, POSITION)
    assert any("columns of text are left out: label, s" in words for words in take.said)
    assert any("dates became seconds" in words for words in take.said)


def test_an_echo_of_a_topic_has_a_frame_and_two_stamps(tmp_path):
    """As `rostopic echo -p` writes it: the message's own stamp counts, not when it was written down."""
    rows: list[list[object]] = [
        [
            round(1e9 * (1.6e9 + t)) + 7_000_000 * (k % 3),
            k,
            round(1e9 * (1.6e9 + t)),
            "world",
            *POSITION[k],
            *W_FIRST[k, [1, 2, 3, 0]],
        ]
        for k, t in enumerate(TIME)
    ]
    parts = [
        f"field.pose.{p}" for p in ("position.x", "position.y", "position.z", *(f"orientation.{a}" for a in "xyzw"))
    ]
    header = ",".join(["%time", "field.header.seq", "field.header.stamp", "field.header.frame_id", *parts])
    take = take_of(columns(tmp_path / "echo.csv", header, rows))
    (body,) = take.tracks
    assert take.clock == "column 'field.header.stamp'"
    np.testing.assert_allclose(np.diff(body.time), 0.01, atol=1e-6)
    assert (TURN.inv() * Rotation.from_quat(body.quaternion, scalar_first=True)).magnitude().max() < 1e-6


def test_a_motive_file_whose_row_of_types_was_taken_away(tmp_path):
    file = files.motive(tmp_path / "take.csv")
    kept = [line for line in file.read_text().splitlines() if not line.startswith(",Type")]
    file.write_text("\n".join(kept) + "\n")
    take = take_of(file)
    is_the_body(take.tracks[0], place=2e-6, angle=3e-5)


def test_points_of_a_plane_beside_a_block_that_turns(tmp_path):
    rows: list[list[object]] = [
        [t, *place[:2], 0.3, *(place[:2] - 0.1)] for t, place in zip(TIME, POSITION, strict=True)
    ]
    take = take_of(columns(tmp_path / "push.csv", "t,block_x,block_y,block_theta,tip_x,tip_y", rows))
    block, tip = take.tracks
    assert (block.name, tip.name, take.up) == ("block", "tip", "z")
    assert tip.quaternion is None
    np.testing.assert_allclose(tip.position[:, :2], POSITION[:, :2] - 0.1)


def test_a_table_between_spaces_with_an_empty_cell_is_refused(tmp_path):
    """Where a cell is missing, all later ones move up: a tool's pose would be read as the block's."""
    text = files.plain(tmp_path / "table.csv").read_text().replace(",", " ")
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(CaromError, match=r"row 32: expected 8 numbers between spaces, got 1"):
        take_of(tmp_path / "table.csv")


def test_columns_of_one_name_are_not_guessed_at(tmp_path):
    """A capture system's rows without the header that says whose they are."""
    rows: list[list[object]] = [[t, *turn, *place] for t, turn, place in zip(TIME, W_FIRST, POSITION, strict=True)]
    file = columns(tmp_path / "rows.csv", "Time,W,X,Y,Z,X,Y,Z", rows)
    with pytest.raises(CaromError, match="2 columns are called 'X'"):
        take_of(file)
    (body,) = take_of(file, ReadOptions(sources={"box": ("6-8",)})).tracks
    np.testing.assert_allclose(body.position, POSITION)


def test_roll_pitch_and_yaw_are_what_the_user_says(tmp_path):
    angles = TURN.as_euler("XYZ")
    rows: list[list[object]] = [[t, *place, *turn] for t, place, turn in zip(TIME, POSITION, angles, strict=True)]
    file = columns(tmp_path / "t.csv", "time,box_x,box_y,box_z,box_roll,box_pitch,box_yaw", rows)
    assert turn_off(take_of(file, ReadOptions(angles="XYZ")), TURN) < 1e-6
    assert turn_off(take_of(file), TURN) > 0.01
