"""Broken recordings: each kind is refused with its file, row and column, what was expected and what came."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from carom.core.errors import RecordingError
from carom.recordings import check, read

HEADER = """\
format: carom-recordings/1
bodies:
  box: {role: target, shape: box, size: [0.2, 0.2, 0.1], mass: 0.5}
  tool: {role: striker, shape: sphere, radius: 0.015}
"""
COLUMNS = "time,box.x,box.y,box.z,box.qw,box.qx,box.qy,box.qz,tool.x,tool.y,tool.z"
ROWS = [f"{0.01 * i:.2f},0,0,0.05,1,0,0,0,{-0.3 + 0.01 * i:.2f},0,0.05" for i in range(6)]


def swap(row: int, column: str, cell: str) -> str:
    """The data file with one cell changed (`row` is the line of the file)."""
    rows = [line.split(",") for line in ROWS]
    rows[row - 2][COLUMNS.split(",").index(column)] = cell
    return "\n".join([COLUMNS, *(",".join(cells) for cells in rows)]) + "\n"


GOOD = "\n".join([COLUMNS, *ROWS]) + "\n"

DATA_FAULTS = {
    "not a number": (
        swap(4, "box.y", "oops"),
        "hit.csv, row 4, column 'box.y': expected a number or an empty cell, got 'oops'; "
        "leave a lost sample's cell empty",
    ),
    "decimal comma": (
        GOOD.replace("0.02,0,0,0.05", '"0,02",0,0,0.05', 1),
        "hit.csv, row 4, column 'time': expected a number or an empty cell, got '0,02'; "
        "leave a lost sample's cell empty",
    ),
    "infinity": (
        swap(3, "tool.x", "inf"),
        "hit.csv, row 3, column 'tool.x': expected a finite number or an empty cell, got infinity; "
        "leave a lost sample's cell empty",
    ),
    "row too long": (
        GOOD.replace(ROWS[2], ROWS[2] + ",9"),
        "hit.csv, row 4: expected 11 cells as in the header, got 12; complete or remove the row",
    ),
    "row too short": (
        GOOD.replace(ROWS[3], "0.03,0,0"),
        "hit.csv, row 5: expected 11 cells as in the header, got 3; complete or remove the row",
    ),
    "empty file": ("", "hit.csv: empty file; expected a header line and samples"),
    "header only": (COLUMNS + "\n", "hit.csv: expected samples, got 0 of them"),
    "no time": (GOOD.replace("time", "tool.vx", 1), "hit.csv: no column 'time'; found: tool.vx, box.x, box.y"),
    "clock jumps": (
        swap(7, "time", "100000.05"),
        "hit.csv, row 7, column 'time': expected a sample within 10 s of the one before, got a jump in time of "
        "100000 s (1 such rows); correct the clock, or split the recording there",
    ),
    "time goes back": (
        swap(5, "time", "0.005"),
        "hit.csv, row 5, column 'time': expected a time after 0.02, got 0.005: time goes back (1 such rows); "
        "sort the rows or remove the repeated ones",
    ),
    "time repeats": (
        swap(5, "time", "0.02"),
        "hit.csv, row 5, column 'time': expected a time after 0.02, got 0.02: time repeats (1 such rows); "
        "sort the rows or remove the repeated ones",
    ),
    "time lost": (
        swap(6, "time", ""),
        "hit.csv, row 6, column 'time': expected a time, got an empty cell; every row needs its time",
    ),
    "duplicate column": (
        GOOD.replace("box.y", "box.x", 1),
        "hit.csv, row 1, column 'box.x': there are two columns of this name; rename or remove one",
    ),
    "missing column": (
        GOOD.replace("box.y", "box.vx", 1).replace("box.z", "box.vy", 1).replace("box.x", "box.vz", 1),
        "hit.csv, column 'box.x': body 'box' (target) has no columns; expected box.x, box.y, box.z",
    ),
    "part of a group": (
        GOOD.replace("box.qz", "ctrl.u", 1),
        "hit.csv, column 'box.qz': missing, though box.qw is there; expected box.qw, box.qx, box.qy, box.qz",
    ),
    "unknown body": (
        GOOD.replace("tool.z", "tol.z", 1),
        "hit.csv, column 'tol.z': unknown body 'tol' (did you mean 'tool'?); known: box, tool; "
        "name it in recordings.yaml",
    ),
    "unknown ending": (
        GOOD.replace("tool.z", "tool.q", 1),
        "hit.csv, column 'tool.q': unknown column ending 'q' (did you mean 'qz'?); known: x, y, z, qw",
    ),
    "column without body": (
        GOOD.replace("tool.z", "force", 1),
        "hit.csv, column 'force': unknown column 'force'; known: box.x, tool.x; name it in recordings.yaml",
    ),
    "half a quaternion": (
        swap(4, "box.qy", ""),
        "hit.csv, row 4, column 'box.qy': empty, though other cells of box.qw to box.qz are not (1 such rows); "
        "a lost sample leaves all 4 cells empty",
    ),
    "half a position": (
        swap(7, "tool.z", "NaN"),
        "hit.csv, row 7, column 'tool.z': empty, though other cells of tool.x to tool.z are not (1 such rows); "
        "a lost sample leaves all 3 cells empty",
    ),
    "no unit quaternion": (
        swap(3, "box.qw", "57.3"),
        "hit.csv, row 3, column 'box.qw': expected a unit quaternion (w first), got length 57.3 (1 such rows); "
        "check the columns' order and the units",
    ),
    "semicolons": (
        GOOD.replace(",", ";"),
        "hit.csv, row 1: expected columns separated by commas, got 'time;box.x;box.y;",
    ),
    "binary": ("PK\0\0\0" + GOOD, "hit.csv: not a text file; expected CSV"),
}

HEADER_FAULTS = {
    "version": (
        HEADER.replace("recordings/1", "recordings/2"),
        "recordings.yaml, row 1: expected format: carom-recordings/1, got 'carom-recordings/2'; "
        "this version of carom reads format 1 only",
    ),
    "no version": (
        HEADER.replace("format: carom-recordings/1\n", ""),
        "recordings.yaml, row 1: expected format: carom-recordings/1, got nothing; "
        "this version of carom reads format 1 only",
    ),
    "no yaml": (HEADER + "ground: {height: 0\n", "recordings.yaml, row 6: not valid YAML: "),
    "no mapping": ("- a\n- b\n", "recordings.yaml: expected a mapping that starts with 'format:', got no mapping"),
    "unknown key": (
        HEADER + "gravty: 9.81\n",
        "recordings.yaml, row 5: unknown key in the header 'gravty' (did you mean 'gravity'?); known: format, units",
    ),
    "unknown body key": (
        HEADER.replace("radius: 0.015", "raduis: 0.015"),
        "recordings.yaml, row 4: unknown key in bodies.tool 'raduis' (did you mean 'radius'?); known: shape, size",
    ),
    "unknown trajectory key": (
        HEADER + "trajectories:\n  - {file: hit.csv}\n  - {file: hit2.csv, tag: {a: b}}\n",
        "recordings.yaml, row 7: unknown key in trajectories.1 'tag' (did you mean 'tags'?); "
        "known: file, tags, bodies, orientation",
    ),
    "duplicate key": (HEADER + "bodies: {}\n", "recordings.yaml, row 5: key 'bodies' is there twice; keep one"),
    "bodies missing": ("format: carom-recordings/1\n", "recordings.yaml, row 1: key 'bodies' is missing; add it"),
    "bad unit": (
        HEADER + "units: {length: inch}\n",
        "recordings.yaml, row 5: units.length: expected 'm', 'cm' or 'mm', got 'inch'",
    ),
    "bad frame": (HEADER + "frame: x-up\n", "recordings.yaml, row 5: frame: expected 'z-up' or 'y-up', got 'x-up'"),
    "word for a number": (
        HEADER.replace("mass: 0.5", "mass: heavy"),
        "recordings.yaml, row 3: bodies.box.mass: input should be a valid number, "
        "unable to parse string as a number, got 'heavy'",
    ),
    "bad role": (
        HEADER.replace("role: target", "role: taget"),
        "recordings.yaml: body 'box': unknown role 'taget' (did you mean 'target'?); "
        "known: target, striker, ground, arm, tool, other",
    ),
    "no role": (
        HEADER.replace("role: target, ", ""),
        "recordings.yaml: body 'box': key 'role' is missing; one of target, striker, ground, arm, tool, other",
    ),
    "bad shape": (
        HEADER.replace("shape: sphere", "shape: spere"),
        "recordings.yaml: body 'tool': unknown shape 'spere' (did you mean 'sphere'?); known: box, sphere",
    ),
    "shape needs": (HEADER.replace(", radius: 0.015", ""), "recordings.yaml: body 'tool': shape sphere needs radius"),
    "negative size": (
        HEADER.replace("radius: 0.015", "radius: -1"),
        "recordings.yaml: body 'tool': sphere: radius must be a positive length in metres, got -1.0",
    ),
    "no mesh": (
        HEADER.replace("shape: sphere, radius: 0.015", "shape: mesh, file: tool.stl"),
        "recordings.yaml: body 'tool': mesh file tool.stl does not exist",
    ),
    "negative mass": (
        HEADER.replace("mass: 0.5", "mass: -0.5"),
        "recordings.yaml: body 'box': mass must be positive [kg], got -0.5",
    ),
    "negative inertia": (
        HEADER.replace("mass: 0.5", "inertia: [1, 0, 1]"),
        "recordings.yaml: body 'box': inertia must be positive [kg m^2], got [1.0, 0.0, 1.0]",
    ),
    "missing file": (
        HEADER + "trajectories: [{file: gone.csv}]\n",
        "gone.csv: no such file, though it is listed; correct the list or add it",
    ),
    "listed twice": (
        HEADER + "trajectories: [{file: hit.csv}, {file: hit.csv}]\n",
        "recordings.yaml: trajectory 'hit.csv' is listed twice",
    ),
    "unknown suffix": (
        HEADER + "trajectories: [{file: hit.txt}]\n",
        "hit.txt: unknown kind of data file '.txt'; expected .csv, .npz, .parquet",
    ),
    "override of nobody": (
        HEADER + "trajectories: [{file: hit.csv, bodies: {bx: {mass: 1}}}]\n",
        "recordings.yaml: trajectory hit.csv: unknown body 'bx' (did you mean 'box'?); known: box, tool",
    ),
    "orientation stated": (
        HEADER + "trajectories: [{file: flat.csv, orientation: true}]\n",
        "flat.csv, column 'box.qw': orientation: true is stated, but every quaternion of 'box' is empty; "
        "state orientation: false",
    ),
    "ground not unit": (
        HEADER + "ground: {normal: [0, 0, 2], height: 0}\n",
        "recordings.yaml: ground.normal: expected a unit vector, got [0.0, 0.0, 2.0] of length 2; "
        "divide it by its length",
    ),
}


def make(folder, header=HEADER, data=GOOD):
    (folder / "recordings.yaml").write_text(header)
    (folder / "hit.csv").write_text(data)
    (folder / "hit.txt").write_text("")
    (folder / "flat.csv").write_text(GOOD.replace("0.05,1,0,0,0,", "0.05,,,,,"))
    if "trajectories" not in header:
        (folder / "flat.csv").unlink()


def refusal(folder) -> str:
    with pytest.raises(RecordingError) as caught:
        read(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(folder))
    return message[len(str(folder)) + 1 :]


def test_the_unbroken_one_is_read(tmp_path):
    make(tmp_path)
    assert len(read(tmp_path)) == 1
    assert check(tmp_path).ok


@pytest.mark.parametrize("kind", DATA_FAULTS)
def test_broken_data_file(tmp_path, kind):
    data, expected = DATA_FAULTS[kind]
    make(tmp_path, data=data)
    assert refusal(tmp_path).startswith(expected)
    (finding,) = [f for f in check(tmp_path).findings if f.level == "error"]
    assert finding.file == "hit.csv"
    assert finding.message.startswith(expected)


@pytest.mark.parametrize("kind", HEADER_FAULTS)
def test_broken_header(tmp_path, kind):
    header, expected = HEADER_FAULTS[kind]
    make(tmp_path, header=header)
    assert refusal(tmp_path).startswith(expected)
    report = check(tmp_path)
    assert not report.ok
    assert any(f.message.startswith(expected) for f in report.findings)


def test_places_are_given_as_numbers_too(tmp_path):
    make(tmp_path, data=DATA_FAULTS["not a number"][0])
    finding = check(tmp_path).findings[0]
    assert (finding.level, finding.code) == ("error", "not-a-number")
    assert (finding.file, finding.row, finding.column) == ("hit.csv", 4, "box.y")


def test_blank_lines_do_not_shift_the_rows(tmp_path):
    lines = swap(5, "time", "0.005").splitlines()
    make(tmp_path, data="\n".join([*lines[:3], "", "", *lines[3:]]) + "\n")
    assert refusal(tmp_path).startswith("hit.csv, row 7, column 'time': expected a time after 0.02")


def test_one_bad_file_does_not_hide_the_others(tmp_path):
    make(tmp_path)
    (tmp_path / "b.csv").write_text(DATA_FAULTS["not a number"][0])
    (tmp_path / "c.csv").write_text(DATA_FAULTS["row too short"][0])
    (tmp_path / "d.csv").write_text(DATA_FAULTS["row too short"][0])
    report = check(tmp_path)
    assert (report.listed, report.readable, report.ok) == (4, 1, False)
    errors = {f.code: f for f in report.findings if f.level == "error"}
    assert set(errors) == {"not-a-number", "row-length"}
    assert errors["row-length"].count == 2
    assert errors["row-length"].message.endswith("in 2 of 4 files (c.csv, d.csv)")


def test_folder_faults(tmp_path):
    with pytest.raises(RecordingError, match=r"no such folder; give the folder that holds recordings\.yaml"):
        read(tmp_path / "none")
    with pytest.raises(RecordingError, match=r"recordings\.yaml: missing; a recordings folder needs it"):
        read(tmp_path)
    (tmp_path / "recordings.yaml").write_text(HEADER)
    with pytest.raises(RecordingError, match=r"no data file \(\.csv, \.npz, \.parquet\) in this folder"):
        read(tmp_path)
    assert not check(tmp_path).ok


def test_broken_binary_files(tmp_path):
    (tmp_path / "recordings.yaml").write_text(HEADER)
    good = {name: np.linspace(0, 1, 5) for name in COLUMNS.split(",")}
    good |= {"box.qw": np.ones(5), "box.qx": np.zeros(5), "box.qy": np.zeros(5), "box.qz": np.zeros(5)}

    def npz(**changes):
        np.savez(tmp_path / "hit.npz", **{**good, **changes})
        return refusal(tmp_path)

    assert npz(**{"box.x": np.zeros(4)}).startswith("hit.npz, column 'box.x': expected 5 numbers, got shape (4,)")
    assert npz(**{"box.x": np.array(["a"] * 5)}).startswith("hit.npz, column 'box.x': expected 5 numbers, got shape")
    assert npz(**{"box.x": np.array([None] * 5)}).startswith("hit.npz: cannot be read as npz")
    late = good["time"][[0, 2, 1, 3, 4]]
    assert npz(time=late).startswith("hit.npz, sample 3, column 'time': expected a time after 0.5, got 0.25")
    (tmp_path / "hit.npz").write_bytes(b"PK nonsense")
    assert refusal(tmp_path).startswith("hit.npz: cannot be read as npz")
    (tmp_path / "hit.npz").unlink()
    (tmp_path / "hit.parquet").write_bytes(b"nonsense")
    assert refusal(tmp_path).startswith("hit.parquet: cannot be read as Parquet")
    pa.parquet.write_table(pa.table({**good, "box.x": ["a"] * 5}), tmp_path / "hit.parquet")
    assert refusal(tmp_path).startswith("hit.parquet, column 'box.x': expected numbers, got string")
