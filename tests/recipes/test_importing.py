"""`carom import`: other makers' files become recordings that the other commands read."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from long_takes import LongTake
from scipy.spatial.transform import Rotation

from carom import cli, recipes
from carom.core.errors import CaromError
from carom.recordings import kind_of, read
from carom.recordings.imports.joining import ImportOptions
from carom.recordings.pushes import pushes_in

RATE = 200.0
GRAVITY = np.array([0.0, 0.0, -9.81])


def table(path: Path, time: np.ndarray, **bodies: tuple[np.ndarray, np.ndarray]) -> Path:
    """A plain table of positions and quaternions, w first."""
    names = [f"{body}.{part}" for body in bodies for part in ("x", "y", "z", "qw", "qx", "qy", "qz")]
    rows = np.column_stack([time, *(part for pose in bodies.values() for part in pose)])
    np.savetxt(path, rows, delimiter=",", header=",".join(["time", *names]), comments="", fmt="%.9g")
    return path


def tossed(count: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stamps, places and quaternions of a body that flies and turns, z up."""
    time = np.arange(count) / RATE
    place = np.array([0.1, 0.2, 1.0]) + np.outer(time, [0.5, 0.2, 2.0]) + 0.5 * np.outer(time**2, GRAVITY)
    turn = Rotation.from_rotvec(np.outer(time, [1.0, 2.0, 0.5])).as_quat(scalar_first=True)
    return time, place, turn


def seen_along(axis: str, place: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same motion as a system sees it whose `axis` is up."""
    seen = {"z": np.eye(3), "y": [[1, 0, 0], [0, 0, 1], [0, -1, 0]], "x": [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]}[axis]
    matrix = np.asarray(seen, dtype=float)
    assert np.linalg.det(matrix) == pytest.approx(1)
    turned = Rotation.from_matrix(matrix) * Rotation.from_quat(turn, scalar_first=True)
    return place @ matrix.T, turned.as_quat(scalar_first=True)


@pytest.mark.parametrize("axis", ["z", "y", "x"])
def test_the_vertical_is_found_from_free_fall_and_the_frame_is_turned(tmp_path, axis):
    time, place, turn = tossed()
    file = table(tmp_path / "toss.csv", time, cube=seen_along(axis, place, turn))
    result = recipes.import_files([file], tmp_path / "out")
    assert result.about["files"][0]["up"].startswith(f"{axis}: cube falls freely")
    (recording,) = read(tmp_path / "out").trajectories
    np.testing.assert_allclose(recording.position_world["cube"], place, atol=1e-7)
    same = np.abs(np.einsum("ti,ti->t", recording.quaternion_world["cube"], turn))
    np.testing.assert_allclose(same, 1, atol=1e-7)


def test_a_file_that_does_not_show_the_vertical_takes_it_from_one_beside_it(tmp_path):
    """Eight pushes of one session: in one of them the block hardly moves."""
    time, place, turn = tossed()
    still = np.tile(place[:1], (len(time), 1)) + 1e-4 * np.sin(9 * time)[:, None], np.tile(turn[:1], (len(time), 1))
    files = [
        table(tmp_path / "toss.csv", time, cube=seen_along("y", place, turn)),
        table(tmp_path / "still.csv", time, cube=seen_along("y", *still)),
    ]
    with pytest.raises(CaromError, match="which axis is up"):
        recipes.import_files(files[1:], tmp_path / "alone")
    result = recipes.import_files(files, tmp_path / "out")
    assert [each["up"].split(",")[0] for each in result.about["files"]] == [
        "y: cube falls freely against it",
        "y: as toss.csv shows it",
    ]
    last = read(tmp_path / "out").trajectories[-1].position_world["cube"]
    np.testing.assert_allclose(last[:, 2], 1.0, atol=1e-3)


def test_a_vertical_that_nothing_shows_is_asked_for(tmp_path):
    time, place, turn = tossed()
    still = (place[:1] + 0 * place, turn)
    file = table(tmp_path / "still.csv", time, cube=still)
    with pytest.raises(CaromError, match=r"still\.csv: which axis is up .*--up z or --up y"):
        recipes.import_files([file], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_header_says_what_was_done(tmp_path):
    time, place, turn = tossed()
    file = table(tmp_path / "toss.csv", time, cube=(place, turn), lamp=(place * 0 + 2, turn * 0 + [1, 0, 0, 0]))
    recipes.import_files([file], tmp_path / "out", names=["cube=block:target"])
    header = yaml.safe_load((tmp_path / "out" / "recordings.yaml").read_text())
    assert header["bodies"] == {"block": {"role": "target"}}
    about = header["imported"]
    assert about["files"][0]["file"] == "toss.csv"
    assert about["files"][0]["rate"] == pytest.approx(RATE)
    assert any("'cube' is called block" in words for words in about["done"])
    assert any("lamp" in words for words in about["left_out"])


def test_an_import_replaces_an_earlier_one_and_nothing_else(tmp_path):
    time, place, turn = tossed()
    file = table(tmp_path / "toss.csv", time, cube=(place, turn))
    recipes.import_files([file], tmp_path / "out")
    recipes.import_files([table(tmp_path / "other.csv", time, cube=(place, turn))], tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["other.csv", "recordings.yaml"]
    header = tmp_path / "out" / "recordings.yaml"
    own = yaml.safe_load(header.read_text())
    del own["imported"]
    header.write_text(yaml.safe_dump(own))
    with pytest.raises(CaromError, match="were not imported"):
        recipes.import_files([file], tmp_path / "out")


def test_shapes_come_from_a_file_and_stay_when_files_are_imported_again(tmp_path):
    time, place, turn = tossed()
    file = table(tmp_path / "toss.csv", time, cube=(place, turn))
    (tmp_path / "bodies.yaml").write_text(
        "units: {length: mm}\nbodies:\n  cube: {role: target, shape: box, size: [100, 100, 50], mass: 0.3}\n"
    )
    recipes.import_files([file], tmp_path / "out", bodies=tmp_path / "bodies.yaml")
    recipes.import_files([file], tmp_path / "out")
    body = read(tmp_path / "out").bodies["cube"]
    assert body.mass == pytest.approx(0.3)
    assert body.shape.size == pytest.approx((0.1, 0.1, 0.05))


def test_a_tracked_frame_is_stated_and_stays(tmp_path):
    """What a user adds to the header of an import counts when he reads it, and when he imports again, and again."""
    time, place, turn = tossed()
    file = table(tmp_path / "toss.csv", time, cube=(place, turn), lamp=(place + 1, turn))
    recipes.import_files([file], tmp_path / "out")
    header = tmp_path / "out" / "recordings.yaml"
    own = yaml.safe_load(header.read_text())
    own["bodies"]["cube"] |= {"shape": "box", "size": [0.1, 0.1, 0.1], "tracked": {"position": [0, 0, 0.05]}}
    own["bodies"]["lamp"] |= {"shape": "sphere", "radius": 0.1}
    header.write_text(yaml.safe_dump(own))
    top = place - Rotation.from_quat(turn, scalar_first=True).apply([0, 0, 0.05])
    for names in ((), ["cube=target"], ["cube=target"]):
        recipes.import_files([file], tmp_path / "out", names=names)
        (recording,) = read(tmp_path / "out").trajectories
        np.testing.assert_allclose(recording.position_world["cube"], top, atol=1e-7)
        assert recording.bodies["cube"].shape is not None
    assert "lamp" not in recording.bodies


@pytest.mark.parametrize("drawn", ["along the file's axes", "upright"])
def test_a_shape_stands_whatever_the_file_calls_up(tmp_path, drawn):
    """Motive draws frames along its world's axes, y up; other systems turn the world alone."""
    take = LongTake()
    take.push(speed=0.08)
    take.rest(0.5)
    time, block, tool = take.arrays()
    still = np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))
    seen = {name: seen_along("y", place, still) for name, place in {"block": block, "pusher": tool}.items()}
    if drawn != "upright":
        seen = {name: (place, still) for name, (place, _) in seen.items()}
    file = table(tmp_path / "pushes.csv", time, **seen)
    (tmp_path / "bodies.yaml").write_text(
        "bodies:\n  block: {shape: box, size: [0.2, 0.2, 0.1], mass: 0.5}\n"
        "  pusher: {role: tool, shape: cylinder, radius: 0.015, height: 0.1}\n"
    )
    options = ImportOptions(up="y")
    result = recipes.import_files([file], tmp_path / "out", bodies=tmp_path / "bodies.yaml", options=options)
    (recording,) = read(tmp_path / "out").trajectories
    for name, place in {"block": block, "pusher": tool}.items():
        np.testing.assert_allclose(recording.position_world[name], place, atol=1e-7)
        np.testing.assert_allclose(np.abs(recording.quaternion_world[name][:, 0]), 1, atol=1e-7)
    told = [words for words in result.about["done"] if "stands on the file's vertical" in words]
    assert len(told) == (drawn != "upright")
    assert ("tracked" in (tmp_path / "out" / "recordings.yaml").read_text()) == (drawn != "upright")


def test_pushes_of_a_robot_become_a_folder_of_pushes(tmp_path):
    """Poses of tool and block, no impact: what `check` and `identify` know as pushes."""
    take = LongTake()
    for place in range(3):
        take.push(speed=0.05 + 0.02 * place)
        take.rest(0.5)
        take.put_back((0.05 * place, 0.0, 0.05))
        take.rest(0.5)
    time, block, tool = take.arrays()
    still = np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))
    file = table(tmp_path / "pushes.csv", time, block=(block, still), pusher=(tool, still))
    (tmp_path / "bodies.yaml").write_text(
        "bodies:\n  block: {shape: box, size: [0.2, 0.2, 0.1], mass: 0.5}\n"
        "  pusher: {shape: cylinder, radius: 0.015, height: 0.1}\n"
    )
    result = recipes.import_files([file], tmp_path / "out", bodies=tmp_path / "bodies.yaml", cutting="push")
    assert result.about["files"][0]["up"].startswith("z: ")
    recordings = read(tmp_path / "out")
    assert kind_of(recordings) == "pushes"
    assert recordings.bodies["pusher"].role == "tool"
    found = pushes_in(recordings)
    assert [push.distance for push in found] == pytest.approx([0.075, 0.105, 0.135], rel=0.1)
    assert recipes.check(tmp_path / "out").report.ok


def test_the_command_imports_and_checks(tmp_path, monkeypatch, capsys):
    time, place, turn = tossed()
    table(tmp_path / "toss.csv", time, cube=(place, turn))
    monkeypatch.chdir(tmp_path)
    for words in (["import", "toss.csv", "--out", "lab", "--map", "cube=target"], ["check", "lab"]):
        monkeypatch.setattr(sys, "argv", ["carom", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0, capsys.readouterr()
    assert "next: carom check lab" in capsys.readouterr().err


def test_what_angles_are_is_not_asked_of_files_that_say_it(tmp_path):
    from carom.recordings.formats.take import ReadOptions
    from carom.recordings.imports.joining import ImportOptions

    file = tmp_path / "a.txt"
    file.write_text("".join(f"{0.01 * k:.2f} 0 0 1 0 0 0 1\n" for k in range(40)))
    with pytest.raises(CaromError, match="--angles: TUM trajectory states how bodies are turned"):
        recipes.import_files([file], tmp_path / "out", options=ImportOptions(up="z", read=ReadOptions(angles="XYZ")))
