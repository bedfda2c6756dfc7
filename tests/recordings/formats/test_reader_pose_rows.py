"""Trajectories of TUM, EuRoC and KITTI: told apart by what is in them, and read as their makers mean them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from spoilt_files import spoilt

from carom.core.errors import CaromError, RecordingError
from carom.recordings.formats import euroc, kitti, tum
from carom.recordings.formats.found import reader_of
from carom.recordings.formats.take import ReadOptions, Take

OPTIONS = ReadOptions()
TIME = 1403636580.838555648 + np.arange(60) / 20
POSITION = np.column_stack([np.cos(TIME - TIME[0]), 0.2 * np.sin(TIME - TIME[0]), 0.9 + 0 * TIME])
TURN = Rotation.from_rotvec(np.outer(0.3 + 0.5 * (TIME - TIME[0]), [0.1, 0.5, 0.86]))
W_FIRST = TURN.as_quat(scalar_first=True)
NANO = np.round(TIME * 1e9).astype(np.int64)
GROUND_TRUTH = (
    "#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z [], "
    "v_RS_R_x [m s^-1], v_RS_R_y [m s^-1], v_RS_R_z [m s^-1], b_w_RS_S_x [rad s^-1], b_w_RS_S_y [rad s^-1], "
    "b_w_RS_S_z [rad s^-1], b_a_RS_S_x [m s^-2], b_a_RS_S_y [m s^-2], b_a_RS_S_z [m s^-2]"
)
VICON = "#timestamp [ns],p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m],q_RS_w [],q_RS_x [],q_RS_y [],q_RS_z []"


def rows(columns: np.ndarray, separator: str, stamps: np.ndarray | None = None, end: str = "\n") -> str:
    lines = []
    for place, row in enumerate(columns):
        cells = [f"{value:.9f}" for value in row]
        lines.append(separator.join([*([] if stamps is None else [str(stamps[place])]), *cells]))
    return end.join(lines) + end


def tum_text(_: Path) -> str:
    stamps = np.array([f"{t:.6f}" for t in TIME])
    return "# ground truth\n# file: 'a.bag'\n# timestamp tx ty tz qx qy qz qw\n" + rows(
        np.column_stack([POSITION, W_FIRST[:, [1, 2, 3, 0]]]), " ", stamps
    )


def euroc_text(header: str, width: int = 8, end: str = "\n") -> str:
    more = np.ones((len(TIME), max(width - 8, 0)))
    whole = np.column_stack([POSITION, W_FIRST, more])[:, : width - 1]
    return (header + end if header else "") + rows(whole, ",", NANO, end)


def kitti_text(folder: Path) -> str:
    (folder / "times.txt").write_text(rows((TIME - TIME[0])[:, None], " "))
    return rows(np.concatenate([TURN.as_matrix(), POSITION[:, :, None]], axis=2).reshape(-1, 12), " ")


FILES: dict[str, tuple[str, Callable[[Path], str]]] = {
    "freiburg.txt": ("tum", tum_text),
    "no_header.csv": ("tum", lambda f: "\n".join(tum_text(f).splitlines()[3:])),
    "truth.csv": ("euroc", lambda _: euroc_text(GROUND_TRUTH, 17, "\r\n")),
    "vicon.csv": ("euroc", lambda _: euroc_text(VICON)),
    "plain.csv": ("euroc", lambda _: euroc_text("", 17)),
    "plain8.txt": ("euroc", lambda _: euroc_text("")),
    "00.txt": ("kitti", kitti_text),
}


@pytest.mark.parametrize("name", FILES)
def test_each_is_found_by_its_content_and_read(tmp_path: Path, name: str) -> None:
    kind, make = FILES[name]
    file = tmp_path / name
    file.write_text(make(tmp_path), newline="")
    reader = reader_of(file)
    assert getattr(reader, "__name__", "").endswith(f".{kind}")
    (take,) = reader.read(file, OPTIONS)
    (track,) = take.tracks
    assert track.name == file.stem
    start = 0.0 if kind == "kitti" else TIME[0]
    np.testing.assert_allclose(track.time - start, TIME - TIME[0], atol=2e-6)
    np.testing.assert_allclose(track.position, POSITION, atol=1e-8)
    assert track.quaternion is not None
    np.testing.assert_allclose(track.quaternion * np.sign(track.quaternion[:1, :1]), W_FIRST, atol=1e-8)
    assert take.rate == pytest.approx(20, rel=1e-4)


def test_what_the_files_have_besides_becomes_signals_and_a_folder_is_read_whole(tmp_path: Path) -> None:
    for sensor, text in (("state_groundtruth_estimate0", euroc_text(GROUND_TRUTH, 17)), ("vicon0", euroc_text(VICON))):
        (tmp_path / "V1" / "mav0" / sensor).mkdir(parents=True)
        (tmp_path / "V1" / "mav0" / sensor / "data.csv").write_text(text)
    (tmp_path / "V1" / "mav0" / "leica0").mkdir()
    header = "#timestamp [ns],p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m]"
    (tmp_path / "V1" / "mav0" / "leica0" / "data.csv").write_text(euroc_text(header, 4))
    assert reader_of(tmp_path / "V1") is euroc
    (take,) = euroc.read(tmp_path / "V1", OPTIONS)
    assert [track.name for track in take.tracks] == ["state_groundtruth_estimate0", "vicon0", "leica0"]
    assert take.tracks[2].quaternion is None
    assert "state_groundtruth_estimate0.v_x" in {signal.name for signal in take.signals}


def test_kitti_without_times_asks_for_a_rate(tmp_path: Path) -> None:
    file = tmp_path / "poses" / "07.txt"
    file.parent.mkdir()
    file.write_text(kitti_text(tmp_path / "poses"))
    (file.parent / "times.txt").unlink()
    with pytest.raises(RecordingError, match=r"have no times.*give --rate HZ"):
        kitti.read(file, OPTIONS)
    (take,) = kitti.read(file, ReadOptions(rate=10.0))
    assert take.tracks[0].time[-1] == pytest.approx(5.9)
    times = tmp_path / "sequences" / "07" / "times.txt"
    times.parent.mkdir(parents=True)
    times.write_text("0.0\n0.1\n")
    with pytest.raises(RecordingError, match=r"expected 60 times, one for each row of 07.txt, got 2"):
        kitti.read(file, OPTIONS)


def test_what_is_ambiguous_is_left_to_the_user(tmp_path: Path) -> None:
    """Commas, seconds and no names: nobody knows where w is."""
    file = tmp_path / "poses.csv"
    file.write_text(rows(np.column_stack([POSITION, W_FIRST]), ",", np.array([f"{t:.6f}" for t in TIME])))
    with pytest.raises(RecordingError, match="this is neither; say --quaternion"):
        reader_of(file).read(file, OPTIONS)
    (take,) = reader_of(file).read(file, ReadOptions(quaternion_order="wxyz"))
    np.testing.assert_allclose(take.tracks[0].quaternion, W_FIRST, atol=1e-8)  # type: ignore[arg-type]
    still = np.column_stack([POSITION, np.tile([1.0, 0.0, 0.0, 0.0], (60, 1))])
    file.write_text(rows(still, " ", np.array([f"{t:.6f}" for t in TIME])))
    (take,) = tum.read(file, OPTIONS)
    assert any("if that is w, say --quaternion wxyz" in words for words in take.said)
    (take,) = tum.read(file, ReadOptions(quaternion_order="wxyz"))
    np.testing.assert_allclose(take.tracks[0].quaternion, still[:, 3:])  # type: ignore[arg-type]


def is_the_motion(take: Take) -> None:
    (track,) = take.tracks
    np.testing.assert_allclose(track.time - track.time[0], TIME - TIME[0], atol=1e-6)
    np.testing.assert_allclose(track.position, POSITION, atol=1e-8)
    assert track.quaternion is not None
    np.testing.assert_allclose(track.quaternion * np.sign(track.quaternion[:1, :1]), W_FIRST, atol=1e-8)


@pytest.mark.parametrize("separator", [" ", "\t", ",", "; "])
@pytest.mark.parametrize("first", [True, False])
def test_a_comment_says_where_w_is(tmp_path: Path, separator: str, first: bool) -> None:
    turn = W_FIRST if first else W_FIRST[:, [1, 2, 3, 0]]
    stamps = np.array([f"{t:.6f}" for t in TIME])
    comment = "# timestamp tx ty tz " + ("qw qx qy qz" if first else "qx qy qz qw")
    file = tmp_path / "a.txt"
    file.write_text(comment + "\n" + rows(np.column_stack([POSITION, turn]), separator, stamps))
    assert reader_of(file) is tum
    is_the_motion(tum.read(file, OPTIONS)[0])


@pytest.mark.parametrize("order", ["qw,qx,qy,qz", "qx,qy,qz,qw"])
def test_names_count_in_files_of_nanoseconds(tmp_path: Path, order: str) -> None:
    file = tmp_path / "a.csv"
    turn = W_FIRST if order.startswith("qw") else W_FIRST[:, [1, 2, 3, 0]]
    file.write_text(f"#timestamp,tx,ty,tz,{order}\n" + rows(np.column_stack([POSITION, turn]), ",", NANO))
    is_the_motion(reader_of(file).read(file, OPTIONS)[0])


@pytest.mark.parametrize(("unit", "digits"), [("ns", 0), ("us", 0), ("ms", 0), ("ms", 1)])
def test_stamps_that_begin_at_zero_have_their_unit_from_their_steps(tmp_path: Path, unit: str, digits: int) -> None:
    """Nanoseconds since the start were once read as seconds: four seconds became a century."""
    size = {"ns": 1e9, "us": 1e6, "ms": 1e3}[unit]
    stamps = np.array([f"{t:.{digits}f}" for t in (TIME - TIME[0]) * size])
    poses = np.column_stack([POSITION, W_FIRST[:, [1, 2, 3, 0]]])
    file = tmp_path / "a.txt"
    file.write_text(rows(poses, " ", stamps))
    if digits == 0:
        is_the_motion(tum.read(file, OPTIONS)[0])
    if unit == "ns":
        named = tmp_path / "b.csv"
        named.write_text(VICON + "\n" + rows(np.column_stack([POSITION, W_FIRST]), ",", stamps))
        is_the_motion(euroc.read(named, OPTIONS)[0])
    file.write_text(rows(poses, " ", np.array([f"{t:.3f}" for t in 1000.0 / 120 * np.arange(60)])))
    with pytest.raises(RecordingError, match=r"a\.txt: its stamps are in steps of 8\.333: say their unit"):
        tum.read(file, OPTIONS)
    assert tum.read(file, ReadOptions(time_unit="ms"))[0].rate == pytest.approx(120, rel=1e-3)
    file.write_text(rows(poses, " ", np.arange(60)))
    with pytest.raises(RecordingError, match="its stamps count rows"):
        tum.read(file, OPTIONS)
    assert tum.read(file, ReadOptions(rate=20.0))[0].rate == pytest.approx(20)


def test_places_that_no_lab_holds_are_said(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    stamps = np.array([f"{t:.6f}" for t in TIME])
    file.write_text(rows(np.column_stack([1000 * POSITION, W_FIRST[:, [1, 2, 3, 0]]]), " ", stamps))
    assert any("if the numbers are millimetres" in words for words in tum.read(file, OPTIONS)[0].said)
    take = tum.read(file, ReadOptions(length_unit="mm"))[0]
    assert not any("millimetres" in words for words in take.said)
    is_the_motion(take)


@pytest.mark.parametrize("separator", [" ", ","])
@pytest.mark.parametrize("width", [12, 16])
def test_kitti_with_the_last_row_and_with_commas(tmp_path: Path, separator: str, width: int) -> None:
    matrix = np.concatenate([TURN.as_matrix(), POSITION[:, :, None]], axis=2).reshape(-1, 12)
    whole = np.column_stack([matrix, np.tile([0.0, 0.0, 0.0, 1.0], (60, 1))])[:, :width]
    file = tmp_path / "00.txt"
    file.write_text(rows(whole, separator))
    assert reader_of(file) is kitti
    is_the_motion(kitti.read(file, ReadOptions(rate=20.0))[0])


GOOD_ROW = "1.0 2.0 3.0 4.0 0 0 0 1\n"


@pytest.mark.parametrize(
    ("text", "reader", "words"),
    [
        (GOOD_ROW + "2.0 2.0 3.0 4.0 0 0 x 1\n", tum, r"row 2, column '7': expected a number"),
        (GOOD_ROW + "2.0 2.0\n" + GOOD_ROW, tum, r"row 2: expected 8 numbers \(time x y z qx qy qz qw\), got 2"),
        ("# nothing\n", tum, "no row of numbers"),
        ("# nothing\n", euroc, "no row of numbers"),
        ("1,2,3,4,5\n", euroc, "expected 4, 8 or 17 numbers, got 5"),
        ("1 2 3\n", kitti, "12 numbers"),
    ],
)
def test_faults_have_their_place(tmp_path: Path, text: str, reader: object, words: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(CaromError, match=words):
        reader.read(tmp_path / "a.txt", ReadOptions(rate=10.0))  # type: ignore[attr-defined]


def test_stamps_that_repeat_run_back_or_miss_a_pose(tmp_path: Path) -> None:
    lines = tum_text(tmp_path).splitlines()[3:]
    lines[10], lines[11] = lines[11], lines[10]
    lines.insert(20, lines[20])
    lines[30] = " ".join([lines[30].split()[0], *["0"] * 7])
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    (take,) = tum.read(tmp_path / "a.txt", OPTIONS)
    track = take.tracks[0]
    assert len(track.time) == 60
    assert np.isnan(track.position).all(axis=1).sum() == 1
    assert any("stamps repeat" in words for words in take.said)
    assert any("came late" in words for words in take.said)


@pytest.mark.parametrize("name", ["freiburg.txt", "truth.csv", "plain.csv", "00.txt"])
def test_trajectories_cut_and_spoilt_at_random(tmp_path: Path, name: str) -> None:
    kind, make = FILES[name]
    file = tmp_path / name
    file.write_text(make(tmp_path))
    reader = {"tum": tum, "euroc": euroc, "kitti": kitti}[kind]

    def attempt() -> tuple[Take, ...]:
        reader.recognise(file, file.read_bytes())
        return reader.read(file, OPTIONS)

    refused, accepted = spoilt(file, attempt, count=200, damaged=60)
    assert refused
    assert accepted
