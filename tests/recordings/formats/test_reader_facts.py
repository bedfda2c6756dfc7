"""Real exports of other labs: what readers make of them, against facts that were read with other parsers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spoilt_files import spoilt

from carom import recipes
from carom.core.errors import RecordingError
from carom.recordings.formats.found import read_take
from carom.recordings.formats.take import NoPosesError, ReadOptions, Take

OPTIONS = ReadOptions()


@pytest.fixture
def foreign(shared_data: Path) -> Path:
    folder = shared_data / "foreign"
    if not folder.is_dir():
        pytest.skip(f"files of other makers are not there ({folder}); set CAROM_DATA to the folder that has them")
    return folder


def only(path: Path, options: ReadOptions = OPTIONS) -> Take:
    (take,) = read_take(path, options)
    return take


def marker(take: Take, name: str) -> np.ndarray:
    (cloud,) = take.markers
    return cloud.position[:, cloud.names.index(name)]


def test_motive_1_21_has_no_labels_and_markers_beside_the_body(foreign):
    take = only(foreign / "motive" / "v1.21_cmu_sample_optitrack_take.csv")
    (body,) = take.tracks
    assert (take.version, len(body.time), round(take.rate)) == ("1.21", 250, 120)
    np.testing.assert_allclose(body.position[0], (0.060002, 0.019150, 0.076611), atol=1e-9)
    assert body.time[125] == pytest.approx(1.041667)


def test_motive_1_22_starts_late_and_has_three_bodies(foreign):
    take = only(foreign / "motive" / "v1.22_diabolo_z_hop_1.csv")
    tracks = {track.name: track for track in take.tracks}
    red = tracks["diabolo_red"]
    assert (len(tracks), len(red.time)) == (3, 726)
    assert red.time[0] == pytest.approx(176.0)
    np.testing.assert_allclose(red.position[0], (-0.205197, 0.638633, 0.006044), atol=1e-9)
    np.testing.assert_allclose(red.quaternion[0], (0.527493, -0.505105, -0.514809, 0.448990), atol=1e-6)


def test_motive_1_23_whose_sign_flips(foreign):
    take = only(foreign / "motive" / "v1.23_aolab_take_5974.csv")
    (body,) = take.tracks
    assert (len(body.time), round(take.rate)) == (10460, 240)
    np.testing.assert_allclose(body.position[0], (0.047597, 0.607298, 0.329784), atol=1e-9)
    assert body.time[5230] == pytest.approx(21.791667)
    assert (np.einsum("ti,ti->t", body.quaternion[1:], body.quaternion[:-1]) > 0).all()


def test_motive_1_23_with_blank_rows(foreign):
    take = only(foreign / "motive" / "v1.23_basketball_Ball_6.csv")
    (ball,) = take.tracks
    lost = np.isnan(ball.position).all(axis=1)
    assert (len(ball.time), int(lost.sum()), round(take.rate)) == (8554, 3539, 360)
    np.testing.assert_allclose(ball.position[0], (1.642341, 1.106451, 1.497325), atol=1e-9)
    before, after = (
        np.polyfit(ball.time[rows], ball.position[rows, 1], 1)[0]
        for side in (-1, 1)
        for rows in [np.flatnonzero((np.abs(ball.time - 3.317 - side * 0.02) < 0.015) & ~lost)]
    )
    assert before == pytest.approx(-4.8, abs=0.25)
    assert after == pytest.approx(3.9, abs=0.25)


def test_motive_without_bodies(foreign):
    with pytest.raises(NoPosesError, match="no rigid bodies: the take has 1353 frames"):
        read_take(foreign / "motive" / "v1.23_mm_ha5dzs_empty.csv", OPTIONS)
    take = only(foreign / "motive" / "v1.23_mm_ha5dzs_markers.csv")
    assert len(take.markers[0].names) == 18
    first = np.array((2659.741943, -830.793884, -2862.191650)) / 1000
    np.testing.assert_allclose(marker(take, "Unlabeled 1036")[0], first, atol=1e-9)
    np.testing.assert_allclose(np.diff(take.markers[0].time), 1 / take.rate, rtol=1e-6)


def test_vicon(foreign):
    take = only(foreign / "vicon" / "nexus_trajectories_pyomeca_markers.csv")
    (cloud,) = take.markers
    assert cloud.position.shape == (580, 51, 3)
    assert int(np.isnan(cloud.position).sum()) == 915
    assert take.rate == pytest.approx(100)
    np.testing.assert_allclose(marker(take, "boite:gauche_ext")[0], (0.0441628, -0.276862, 0.675697), atol=1e-9)
    with pytest.raises(NoPosesError, match="Vicon export of Devices"):
        read_take(foreign / "vicon" / "nexus_devices_pyomeca_analogs_head.csv", OPTIONS)


def test_qualisys(foreign):
    take = only(foreign / "qualisys" / "qtm2024_jugglebot_3_throws_tracking_lost_on_each.tsv")
    (cloud,) = take.markers
    assert (len(cloud.time), round(take.rate)) == (3649, 300)
    np.testing.assert_allclose(marker(take, "base_1")[0], (0.458340, -0.658915, 0.027162), atol=1e-9)
    take = only(foreign / "qualisys" / "qtm2026_fileversion2_ballbutler.tsv")
    (cloud,) = take.markers
    assert (take.version, len(cloud.time)) == ("2.0.0", 810)
    np.testing.assert_allclose(cloud.position[0, 2], (-0.589436, -0.155123, 1.726711), atol=1e-9)


def test_a_ball_seen_by_qualisys_bounces_when_it_did(foreign):
    """The ball is followed by several trajectories without names, one after the other."""
    take = only(foreign / "qualisys" / "qtm2024_jugglebot_3_throws_tracking_lost_on_each.tsv")
    (cloud,) = take.markers
    for instant in (1.757, 6.813, 10.543):
        near = np.flatnonzero(np.abs(cloud.time - instant) < 0.05)
        jumps = []
        for column in range(len(cloud.names)):
            height = cloud.position[near, column, 2]
            if np.isfinite(height).all():
                jumps.append(float(np.ptp(np.diff(height))) * 300)
        assert max(jumps) > 2.0, (instant, jumps)


def test_three_throws_become_three_recordings(foreign, tmp_path):
    """A whole import: the ball in one piece, the vertical from its fall, each bounce in a toss of its own."""
    file = foreign / "qualisys" / "qtm2024_jugglebot_3_throws_tracking_lost_on_each.tsv"
    result = recipes.import_files([file], tmp_path / "out", names=["ball:target=marker *"], cutting=True)
    assert result.about["files"][0]["up"].startswith("z: ")
    recordings = result.recordings.trajectories
    assert len(recordings) == 3
    for recording, bounce in zip(recordings, (1.757, 6.813, 10.543), strict=True):
        assert recording.time[0] < bounce < recording.time[-1]


@pytest.mark.parametrize(("name", "axis"), [("v1.22_diabolo_z_hop_1", "z"), ("v1.23_basketball_Ball_6", "y")])
def test_the_vertical_of_motives_files_is_found_from_falls(foreign, tmp_path, name, axis):
    result = recipes.import_files([foreign / "motive" / f"{name}.csv"], tmp_path / "out")
    assert result.about["files"][0]["up"].startswith(f"{axis}: ")
    assert "falls freely" in result.about["files"][0]["up"]


def test_a_vertical_that_a_real_file_does_not_show_is_asked_for(foreign, tmp_path):
    with pytest.raises(RecordingError, match="--up z or --up y"):
        recipes.import_files([foreign / "motive" / "v1.23_aolab_take_5974.csv"], tmp_path / "out")


def test_rosbag2(foreign, tmp_path):
    with pytest.raises(NoPosesError, match=r"vicon_receiver/Position.*--types Position\.msg"):
        read_take(foreign / "rosbag2" / "go2_vicon_test_6", OPTIONS)
    definition = tmp_path / "Position.msg"
    definition.write_text(
        "std_msgs/Header header\nfloat32 x_trans\nfloat32 y_trans\nfloat32 z_trans\n"
        "float32 x_rot\nfloat32 y_rot\nfloat32 z_rot\nfloat32 w\n"
    )
    take = only(foreign / "rosbag2" / "go2_vicon_test_6", ReadOptions(definitions=(definition,), length_unit="mm"))
    (body,) = take.tracks
    assert len(body.time) == pytest.approx(7396, abs=5)
    np.testing.assert_allclose(1000 * body.position[0], (58.95763, -204.86481, 380.16364), atol=1e-4)
    with pytest.raises(NoPosesError, match="no poses in this bag"):
        read_take(foreign / "rosbag2" / "bagel_split5", OPTIONS)


def test_lerobot(foreign):
    takes = read_take(foreign / "lerobot" / "v2.1_unitree_g1_first3", OPTIONS)
    assert [len(take.signals[0].time) for take in takes] == [479, 393, 343]
    assert {round(take.rate) for take in takes} == {30}
    assert len([s for s in takes[0].signals if s.name.startswith("observation.state")]) == 26


def test_hdf5(foreign):
    file = foreign / "hdf5" / "robosuite1.0_lift_panda_demo.hdf5"
    with pytest.raises(NoPosesError, match="states 412x32"):
        read_take(file, OPTIONS)
    take = only(file, ReadOptions(sources={"cube": ("states[10:13]", "states[13:17]")}))
    (cube,) = take.tracks
    assert len(cube.time) == 412
    np.testing.assert_allclose(cube.position[0], (0.0036, -0.0155, 0.8192), atol=5e-5)
    assert cube.quaternion is not None


def test_c3d(foreign):
    take = only(foreign / "c3d" / "kineticstoolkit_racing_full.c3d")
    (cloud,) = take.markers
    assert cloud.position.shape == (700, 46, 3)
    assert take.rate == pytest.approx(69.9926, abs=1e-4)
    np.testing.assert_allclose(marker(take, "WheelchairRearR")[0], (-0.9375, 0.8462, -0.2934), atol=5e-5)
    shapes = [only(foreign / "c3d" / f"hsorby_c3d_test_file_0{k}.c3d").markers[0].position.shape for k in (1, 2)]
    assert shapes == [(8, 8, 3), (100, 75, 3)]


def test_trc(foreign):
    first = only(foreign / "trc" / "hsorby_test_file_02.trc")
    (cloud,) = first.markers
    assert cloud.position.shape == (936, 37, 3)
    assert cloud.time[0] == pytest.approx(-0.005)
    assert only(foreign / "trc" / "hsorby_test_file_04.trc").markers[0].position.shape == (2, 37, 3)
    commas = only(foreign / "trc" / "pyomeca_markers.trc")
    assert commas.markers[0].position.shape == (93, 51, 3)
    assert any("652" in words for words in commas.said)


@pytest.mark.parametrize(
    "name",
    [
        "motive/v1.21_cmu_sample_optitrack_take.csv",
        "vicon/nexus_devices_pyomeca_analogs_head.csv",
        "c3d/hsorby_c3d_test_file_01.c3d",
        "trc/hsorby_test_file_04.trc",
        "hdf5/robosuite1.0_lift_panda_demo.hdf5",
    ],
)
def test_real_files_cut_off_are_read_or_refused(foreign, tmp_path, name):
    file = tmp_path / Path(name).name
    file.write_bytes((foreign / name).read_bytes())
    refused, accepted = spoilt(file, lambda: read_take(file, OPTIONS), count=12, seed=1)
    assert refused + accepted == 24
