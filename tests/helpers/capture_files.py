"""Exports of capture systems for tests, written from a known motion in the ways in which their makers write them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

RATE, COUNT = 100.0, 44
TIME = np.arange(COUNT) / RATE
POSITION = np.column_stack([0.3 * TIME, 0.2 * np.sin(4 * TIME), 1.0 + 0.1 * np.cos(3 * TIME)])  #: [m]
TURN = Rotation.from_rotvec(np.outer(0.3 + 1.5 * TIME, [0.48, 0.6, 0.64]))
W_FIRST = TURN.as_quat(scalar_first=True)
LOST = slice(30, 36)  #: samples in which the body is not seen
GLUED = np.array([[0.04, 0.0, 0.0], [-0.03, 0.02, 0.0], [0.0, -0.05, 0.01], [0.01, 0.02, 0.06]])  #: markers on the body
MARKERS = POSITION[:, None] + np.stack([TURN.apply(point) for point in GLUED], axis=1)  #: [T, 4, 3] m
NAMES = ("box:a", "box:b", "box:c", "box:d")


def lines(rows: Sequence[Sequence[object]], separator: str = ",", end: str = "\n") -> str:
    return end.join(separator.join(map(str, row)) for row in rows) + end


def cells(values: np.ndarray, form: str = "{:.6f}", lost: str = "") -> list[str]:
    return [form.format(v) if np.isfinite(v) else lost for v in values]


def motive(
    path: Path,
    *,
    version: str = "1.23",
    rotation: str = "Quaternion",
    unit: float = 1.0,
    labels: bool = True,
    end: str = "\r\n",
    stamps: str = "{:.6f}",
    comma: bool = False,
    encoding: str = "utf-8",
    parent: bool = False,
) -> Path:
    """Motive's columns: the body, its quality, its markers as the solver expects them, and a measured one."""
    named = {1.0: "Meters", 0.001: "Millimeters"}[unit]
    head = ["Format Version", version, "Take Name", "a take, with comma", "Capture Frame Rate", "100.000000"]
    head += ["Export Frame Rate", "100.000000", "Total Frames in Take", 999, "Total Exported Frames", 999]
    head += ["Rotation Type", rotation, "Length Units", named, "Coordinate Space", "Global"]
    head = [f'"{cell}"' if "," in str(cell) else cell for cell in head]
    axes = ["X", "Y", "Z", "W"] if rotation == "Quaternion" else list(rotation)
    if rotation == "Quaternion":
        turn = W_FIRST[:, [1, 2, 3, 0]] * np.where(np.arange(COUNT) == 3, -1.0, 1.0)[:, None]
    else:
        turn = TURN.as_euler(rotation, degrees=True)
    body = np.column_stack([turn, POSITION / unit])
    body[LOST] = np.nan
    glued = MARKERS[:, 0] / unit
    kinds = ["Rigid Body"] * (len(axes) + 4) + ["Rigid Body Marker"] * 3 + ["Marker"] * 3
    names = ["box"] * (len(axes) + 4) + ["box:Marker1"] * 3 + ["Unlabeled 7"] * 3
    what = ["Rotation"] * len(axes) + ["Position"] * 3 + ["Mean Marker Error"] + ["Position"] * 6
    last = [*axes, "X", "Y", "Z", "", "X", "Y", "Z", "X", "Y", "Z"]
    left = ("Type", "Name", "ID") if labels else ("", "", "")
    rows: list[list[object]] = [
        head,
        [],
        ["", left[0], *kinds],
        ["", left[1], *names],
        ["", left[2], *[f"id {n}" for n in names]],
    ]
    rows += [["", "Parent", *([""] * len(names))]] if parent else []
    rows += [["", "", *what], ["Frame", "Time (Seconds)" if labels else "Time", *last]]
    for t in range(COUNT):
        values = np.concatenate([body[t], [0.0003], glued[t], glued[t]])
        rows.append([t, stamps.format(TIME[t]), *cells(values)])
    text = lines(rows, ";" if comma else ",", end)
    if comma:
        header, rest = text.split(end, 1)
        text = header + end + rest.replace(".", ",")
    path.write_bytes(text.encode(encoding))
    return path


def motive_rows(path: Path, *, handed: str = "righthanded") -> Path:
    """The older row form: each row says what it is."""
    mirror = np.array([1.0, 1.0, -1.0]) if handed == "lefthanded" else np.ones(3)
    rows: list[list[object]] = [
        ["comment", "made by a test"],
        [handed],
        ["info", "version", "1.1"],
        ["info", "framecount", COUNT],
    ]
    rows += [["info", "rigidbodycount", 1], ["rigidbody", "box", 1, 3, *GLUED[:3].ravel()]]
    for t in range(COUNT):
        turn = W_FIRST[t, [1, 2, 3, 0]] * (np.array([-1, -1, 1, 1]) if handed == "lefthanded" else 1)
        place = POSITION[t] * mirror
        if LOST.start <= t < LOST.stop:
            turn, place = np.zeros(4), np.zeros(3)
        marker = MARKERS[t, 0] * mirror
        rows.append(
            ["frame", t, f"{TIME[t]:.6f}", 1, 1, *cells(place), *cells(turn), 0, 0, 0, 1, *cells(marker), 17, "M17"]
        )
    path.write_text(lines(rows))
    return path


def tracker(path: Path, *, rotation: str = "vector") -> Path:
    """Vicon Tracker's objects, in millimetres: rotation vectors longer than pi, quaternions, or Euler angles."""
    if rotation == "quaternion":
        labels, turn = ["RX", "RY", "RZ", "RW"], W_FIRST[:, [1, 2, 3, 0]]
    elif rotation == "vector":
        labels, turn = ["RX", "RY", "RZ"], np.outer(2.9 + 1.5 * TIME, [0.48, 0.6, 0.64])
    else:
        labels, turn = ["RX", "RY", "RZ"], (TURN * Rotation.from_euler("x", 0)).as_euler("XYZ")
    values = np.column_stack([turn, 1000 * POSITION])
    values[LOST] = 0.0
    rows: list[list[object]] = [
        ["Objects"],
        [100],
        ["", "", "Global Angle box:box", *[""] * (len(labels) - 1), "", "", ""],
    ]
    rows += [["Frame", "Sub Frame", *labels, "TX", "TY", "TZ"]]
    rows += [["", "", *["rad"] * 3, *([""] if len(labels) == 4 else []), "mm", "mm", "mm"]]
    rows += [[t + 1, 0, *cells(values[t])] for t in range(COUNT)]
    path.write_text(lines(rows))
    return path


def nexus(path: Path) -> Path:
    """Vicon Nexus's trajectories below a table of devices, with blank cells."""
    points = 1000 * MARKERS.reshape(COUNT, -1)
    points[LOST, :3] = np.nan
    rows: list[list[object]] = [["Devices"], [1000], ["", "", "Force"], ["Frame", "Sub Frame", "Fx"], ["", "", "N"]]
    rows += [[1 + t // 10, t % 10, 0.5 * t] for t in range(20)]
    names = [cell for name in NAMES for cell in (name, "", "")]
    rows += [[], ["Trajectories"], [100], ["", "", *names], ["Frame", "Sub Frame", *"XYZ" * len(NAMES)]]
    rows += [["", "", *["mm"] * 12], *[[t + 1, 0, *cells(points[t], "{:g}")] for t in range(COUNT)]]
    path.write_text(lines(rows))
    return path


def qualisys_3d(path: Path, *, labelled: bool = True) -> Path:
    """QTM's 3D export in millimetres: zeros where a marker was not seen, a tab at the end of the row of columns."""
    points = 1000 * MARKERS.reshape(COUNT, -1)
    points[LOST, :3] = 0.0
    rows: list[list[object]] = [["NO_OF_FRAMES", 999], ["NO_OF_CAMERAS", 4], ["NO_OF_MARKERS", 4], ["FREQUENCY", 100]]
    rows += [["TIME_STAMP", "2026-01-09, 11:32:05"], ["DATA_INCLUDED", "3D"], ["MARKER_NAMES", *NAMES]]
    if labelled:
        rows += [["Frame", "Time", *[f"{name} {axis}" for name in NAMES for axis in "XYZ"], ""]]
        rows += [[t + 1, f"{TIME[t]:.5f}", *cells(points[t], "{:.3f}")] for t in range(COUNT)]
    else:
        rows += [cells(points[t], "{:.3f}") for t in range(COUNT)]
    path.write_text(lines(rows, "\t"))
    return path


def qualisys_6d(path: Path) -> Path:
    """QTM's 6D export: a matrix written column after column, all zeros where the body was not seen."""
    angles = TURN.as_euler("XYZ", degrees=True)
    matrix = TURN.as_matrix().transpose(0, 2, 1).reshape(COUNT, 9)
    values = np.column_stack([1000 * POSITION, angles, np.full(COUNT, 0.3), matrix])
    values[LOST] = 0.0
    labels = ["box X", "Y", "Z", "Roll", "Pitch", "Yaw", "Residual", *[f"Rot[{i}]" for i in range(9)]]
    rows: list[list[object]] = [
        ["NO_OF_FRAMES", COUNT],
        ["NO_OF_BODIES", 1],
        ["FREQUENCY", 100],
        ["DATA_INCLUDED", "6D"],
    ]
    rows += [["BODY_NAMES", "box"], ["Frame", "Time", *labels]]
    rows += [[t + 1, f"{TIME[t]:.5f}", *cells(values[t], "{:.7f}")] for t in range(COUNT)]
    path.write_text(lines(rows, "\t"))
    return path


def trc(path: Path, *, separator: str = "\t", blank: bool = False) -> Path:
    """TRC in millimetres, with a header that counts wrongly."""
    points = 1000 * MARKERS.reshape(COUNT, -1)
    points[LOST, :3] = np.nan
    rows: list[list[object]] = [["PathFileType", 4, "(X/Y/Z)", path.name]]
    rows += [
        ["DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units", "OrigDataRate"],
        [100, 100, 652, 4, "mm", 100],
    ]
    rows += [[""]] if blank else []
    rows += [["Frame#", "Time", *[cell for name in NAMES for cell in (name, "", "")]]]
    rows += [["", "", *[f"{axis}{k + 1}" for k in range(4) for axis in "XYZ"]], [""]]
    rows += [[t + 1, f"{TIME[t] - 0.005:.3f}", *cells(points[t], "{:.4f}")] for t in range(COUNT)]
    path.write_text(lines(rows, separator))
    return path


def c3d(path: Path, *, processor: str = "intel", integers: bool = False, unit: str = "mm") -> Path:
    """C3D with four points; residual -1 and zeros where the first was not seen."""
    order = ">" if processor == "mips" else "<"
    factor = {"mm": 1000.0, "m": 1.0}[unit]
    scale = 0.05 if integers else -0.05

    def real(value: float) -> bytes:
        if processor != "dec":
            return struct.pack(order + "f", value)
        low, high = struct.unpack("<HH", struct.pack("<f", 4 * value))
        return struct.pack("<HH", high, low)

    def word(value: int) -> bytes:
        return struct.pack(order + "H", value & 0xFFFF)

    def parameter(name: str, kind: int, shape: Sequence[int], content: bytes) -> bytes:
        body = struct.pack("bB", kind, len(shape)) + bytes(shape) + content + b"\0"
        return struct.pack("bb", len(name), 1) + name.encode() + word(len(body) + 2) + body

    labels = b"".join(name.ljust(8).encode() for name in NAMES)
    block = struct.pack("bb", 5, -1) + b"POINT" + word(3) + b"\0"
    block += parameter("USED", 2, (), word(4)) + parameter("FRAMES", 2, (), word(COUNT))
    block += parameter("SCALE", 4, (), real(scale)) + parameter("RATE", 4, (), real(RATE))
    block += parameter("UNITS", -1, (len(unit),), unit.encode()) + parameter("LABELS", -1, (8, 4), labels)
    block = bytes([1, 0x50, 1, {"intel": 84, "dec": 85, "mips": 86}[processor]]) + block + b"\0\0"
    block = block.ljust(1024, b"\0")
    head = (
        bytes([2, 0x50])
        + word(4)
        + word(0)
        + word(1)
        + word(COUNT)
        + word(0)
        + real(scale)
        + word(4)
        + word(0)
        + real(RATE)
    )
    content = head.ljust(512, b"\0") + block
    points = factor * MARKERS
    for t in range(COUNT):
        for k in range(4):
            lost = k == 0 and LOST.start <= t < LOST.stop
            values = np.zeros(3) if lost else points[t, k]
            if integers:
                content += b"".join(word(round(v / scale)) for v in values) + word(-1 if lost else 1)
            else:
                content += b"".join(real(v) for v in values) + real(-1.0 if lost else 0.5)
    path.write_bytes(content)
    return path


def plain(path: Path, *, separator: str = ",", end: str = "\n", encoding: str = "utf-8", names: bool = True) -> Path:
    """A table of a body's poses, with names of columns or without."""
    labels = ["time", *[f"box.{part}" for part in ("x", "y", "z", "qw", "qx", "qy", "qz")]]
    values = np.column_stack([TIME, POSITION, W_FIRST])
    values[LOST, 1:] = np.nan
    rows: list[list[object]] = [labels] if names else []
    rows += [list(cells(row, "{:.9g}")) for row in values]
    if separator == ";":
        rows = [row if row is labels else [str(cell).replace(".", ",") for cell in row] for row in rows]
    path.write_bytes(lines(rows, separator, end).encode(encoding))
    return path


#: a file of each kind, by the reader that it is for
WRITERS: Mapping[str, tuple[str, Callable[[Path], Path]]] = {
    "motive": ("take.csv", motive),
    "motive euler": ("euler.csv", lambda path: motive(path, rotation="ZYX", version="1.25")),
    "motive_rows": ("rows.csv", motive_rows),
    "vicon tracker": ("tracker.csv", tracker),
    "vicon nexus": ("nexus.csv", nexus),
    "qualisys 3d": ("points.tsv", qualisys_3d),
    "qualisys 6d": ("bodies.tsv", qualisys_6d),
    "c3d": ("points.c3d", c3d),
    "c3d mips": ("mips.c3d", lambda path: c3d(path, processor="mips", integers=True)),
    "trc": ("points.trc", trc),
    "plain_table": ("table.csv", plain),
}
