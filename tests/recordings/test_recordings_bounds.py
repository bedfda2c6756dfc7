"""Data files of others, within bounds: line ends, cells, numbers, sizes, checksums, and the folder they are in."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from synthetic_recordings import Strike

from carom.core.errors import RecordingError, SceneError
from carom.recordings import Recordings, check, read, read_native, scene_of, write
from carom.recordings.formats import tables
from carom.scenes.shapes import Shape


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hit = Strike(duration=0.3, rate=50).trajectory(name="hit.csv")
    write(tmp_path / "lab", Recordings(tmp_path / "lab", hit.bodies, (hit,)))
    return tmp_path / "lab"


def refused(folder: Path) -> str:
    with pytest.raises(RecordingError) as caught:
        read(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not check(folder).ok
    return str(caught.value)


def header(folder: Path, old: str, new: str) -> None:
    text = (folder / "recordings.yaml").read_text()
    assert old in text
    (folder / "recordings.yaml").write_text(text.replace(old, new))


def test_an_empty_list_of_trajectories_is_refused(folder: Path) -> None:
    text = (folder / "recordings.yaml").read_text()
    (folder / "recordings.yaml").write_text(text[: text.index("trajectories:")] + "trajectories: []\n")
    assert "recordings.yaml: trajectories: expected one data file or more, got none" in refused(folder)


@pytest.mark.parametrize("end", [b"\r", b"\r\n"])
def test_line_ends_of_any_kind_are_read(end: bytes, folder: Path) -> None:
    before, data = read(folder).trajectories[0], (folder / "hit.csv").read_bytes()
    (folder / "hit.csv").write_bytes(data.replace(b"\n", end))
    after = read(folder).trajectories[0]
    np.testing.assert_array_equal(before.time, after.time)
    np.testing.assert_array_equal(before.position_world["box"], after.position_world["box"])
    lines = data.split(b"\n")
    (folder / "hit.csv").write_bytes(end.join([*lines[:4], b"x" + lines[4], *lines[5:]]))
    assert "hit.csv, row 5, column 'time': expected a number or an empty cell, got 'x" in refused(folder)


def test_a_huge_cell_is_refused_by_its_row(folder: Path) -> None:
    lines = (folder / "hit.csv").read_bytes().split(b"\n")
    lines[3] = b"9" * 3_000_000 + lines[3]
    (folder / "hit.csv").write_bytes(b"\n".join(lines))
    assert "hit.csv, row 4: not a row of numbers" in refused(folder)
    (folder / "hit.csv").write_bytes(b"x" * 3_000_000)
    assert "hit.csv, row 1: the first line does not end" in refused(folder)


@pytest.mark.parametrize("name", ["../x.csv", "/x.csv", "a/../../x.csv"])
def test_data_files_outside_of_the_folder_are_refused(name: str, folder: Path) -> None:
    (folder.parent / "x.csv").write_bytes((folder / "hit.csv").read_bytes())
    header(folder, "file: hit.csv", f"file: {name}")
    assert f"trajectories: file '{name}' lies outside of the folder" in refused(folder)


def test_meshes_outside_of_the_folder_are_refused(folder: Path) -> None:
    header(folder, "shape: sphere, radius: 0.015", "shape: mesh, file: ../tool.stl")
    assert "body 'tool': file '../tool.stl' lies outside of the folder" in refused(folder)


def test_meshes_are_written_into_the_folder(folder: Path, tmp_path: Path) -> None:
    import trimesh

    trimesh.creation.box((0.1, 0.1, 0.1)).export(tmp_path / "tool.stl")
    hit = read(folder).trajectories[0]
    bodies = {**hit.bodies, "tool": replace(hit.bodies["tool"], shape=Shape("mesh", file=str(tmp_path / "tool.stl")))}
    write(tmp_path / "new", Recordings(tmp_path / "new", bodies, (replace(hit, bodies=bodies),)))
    (tmp_path / "tool.stl").unlink()
    assert read(tmp_path / "new").bodies["tool"].shape == Shape("mesh", file=str(tmp_path / "new" / "tool.stl"))


def test_numbers_that_no_tracker_measures_are_refused(folder: Path) -> None:
    lines = (folder / "hit.csv").read_text().split("\n")
    cells = lines[4].split(",")
    cells[1] = "1e200"
    (folder / "hit.csv").write_text("\n".join([*lines[:4], ",".join(cells), *lines[5:]]))
    assert "hit.csv, row 5, column 'box.x': expected a number within 1e+09, got 1e+200" in refused(folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mass: 0.5", "mass: 0.5\n    inertia: [1, 1, 9]", "inertia [1.0, 1.0, 9.0] [kg m^2] is impossible"),
        ("mass: 0.5", "mass: 1e-30", "mass must be positive [kg], got 1e-30 (expected 1e-06 to 1e+06)"),
        ("radius: 0.015", "radius: 1e200", "radius must be a positive length in metres, got 1e+200"),
        ("frame: z-up", "frame: z-up\ngravity: 1e300", "gravity: input should be less than or equal to 100000"),
    ],
)
def test_bodies_that_no_engine_can_count_with_are_refused(old: str, new: str, message: str, folder: Path) -> None:
    header(folder, old, new)
    assert message in refused(folder)


def test_a_folder_that_shows_no_scene_is_named(folder: Path) -> None:
    header(folder, "    mass: 0.5\n", "")
    with pytest.raises(SceneError, match=rf"{folder}: .*target 'box' needs a mass"):
        scene_of(read(folder))


def test_an_archive_that_claims_terabytes_is_refused_unread(folder: Path) -> None:
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(folder / "hit.npz", "w") as archive:
        archive.writestr("time.npy", made.getvalue())
    header(folder, "file: hit.csv", "file: hit.npz")
    assert "hit.npz: cannot be read as npz (expected at most 20000000 values, got 1000000000000)" in refused(folder)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_have_a_largest_size(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, read(folder), file_format=kind)
    monkeypatch.setattr(tables, "MOST_CELLS", 50)
    assert f"hit.{kind}: 15 rows of 15 columns; expected at most 50 cells" in refused(folder)


def test_parquet_numbers_are_held_against_their_checksum(folder: Path) -> None:
    before = read(folder)
    write(folder, before, file_format="parquet")
    after = read(folder).trajectories[0]
    np.testing.assert_array_equal(before.trajectories[0].position_world["box"], after.position_world["box"])
    table = pq.read_table(folder / "hit.parquet")
    other = np.array(table["box.y"].to_pylist())
    other[3] += 1e-9
    pq.write_table(table.set_column(table.column_names.index("box.y"), "box.y", [other]), folder / "hit.parquet")
    assert "hit.parquet: damaged: its numbers do not fit the checksum" in refused(folder)
    pq.write_table(table.replace_schema_metadata(None), folder / "hit.parquet")
    read(folder)  # of another program, which writes no checksum


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.zeros(5, 13).to_sparse(), "expected a plain tensor of real numbers, got float32, sparse_coo"),
        (torch.zeros(5, 13, dtype=torch.complex64), "expected a plain tensor of real numbers, got complex64"),
        (torch.zeros(1).expand(100_000, 100_000), "expected at most 20000000 numbers, got 10000000000"),
        (torch.full((5, 13), 1e30), "sample 1: expected finite numbers within 1e+09"),
    ],
)
def test_tensors_that_are_no_recordings(tensor: torch.Tensor, message: str, tmp_path: Path) -> None:
    torch.save(tensor, tmp_path / "a.pt")
    with pytest.raises(RecordingError) as caught:
        read_native(tmp_path / "a.pt")
    assert message in str(caught.value)


def test_a_long_recording_needs_little_memory(folder: Path, tmp_path: Path) -> None:
    """It was 40 MB for each MB of CSV."""
    check(folder)  # what is loaded once does not count
    hit = Strike(duration=40.0, rate=200.0).trajectory()
    write(tmp_path / "long", Recordings(tmp_path / "long", hit.bodies, (hit,)))
    tracemalloc.start()
    try:
        check(tmp_path / "long")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 20 * (tmp_path / "long" / hit.name).stat().st_size
