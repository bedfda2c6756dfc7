"""Files of other makers for the fuzzer: a good one of each reader, imported as `carom import` does, without writing."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import bag_files
import capture_files
import numpy as np

from carom.recordings.formats.take import ReadOptions
from carom.recordings.imports.joining import ImportOptions, parts_of, recordings_of
from carom.recordings.imports.mapping import parse_map


def captures(*kinds: str) -> Callable[[Path], None]:
    """Writes exports of these systems."""

    def make(folder: Path) -> None:
        for kind in kinds:
            name, write = capture_files.WRITERS[kind]
            write(folder / name)

    return make


def pose_rows(folder: Path) -> None:
    """Trajectories of the TUM, EuRoC and KITTI kinds."""
    time, place = capture_files.TIME, capture_files.POSITION
    w_first, w_last = capture_files.W_FIRST, capture_files.W_FIRST[:, [1, 2, 3, 0]]
    np.savetxt(folder / "tum.txt", np.column_stack([1.4e9 + time, place, w_last]), fmt="%.9f")
    rows = [f"{round(1.4e18 + 1e9 * t)}," + ",".join(map("{:.9f}".format, p)) for t, p in
            zip(time, np.column_stack([place, w_first]), strict=True)]  # fmt: skip
    (folder / "euroc.csv").write_text("\n".join(rows) + "\n")
    matrix = np.concatenate([capture_files.TURN.as_matrix(), place[:, :, None]], axis=2).reshape(-1, 12)
    np.savetxt(folder / "kitti.txt", matrix, fmt="%.9f")
    np.savetxt(folder / "times.txt", time, fmt="%.6f")


def _sent(second: str = "transform") -> list[bag_files.Sent]:
    short = bag_files.Path3(time=bag_files.START + np.arange(20) / 100)
    return [
        *bag_files.stream("/block", "pose", motion=short),
        *bag_files.stream("/tf", second, motion=short, parent="world", child="tool"),
    ]


def ros1(folder: Path) -> None:
    """A bag of ROS 1."""
    bag_files.write_ros1(folder / "take.bag", _sent())


def ros2(folder: Path) -> None:
    """Bags of ROS 2 in SQLite and MCAP."""
    bag_files.write_ros2(folder / "bag", _sent("tf"))
    bag_files.write_ros2(folder / "mcap", _sent(), storage="mcap", packed="chunks")


def vectors(folder: Path) -> None:
    """An HDF5 file of demonstrations, and a data set of LeRobot's."""
    import json

    import h5py
    import pyarrow as pa
    import pyarrow.parquet as pq

    pose = np.column_stack([capture_files.POSITION, capture_files.W_FIRST])
    with h5py.File(folder / "demo.hdf5", "w") as file:
        for number in range(2):
            file[f"data/demo_{number}/pose"] = pose
            file[f"data/demo_{number}/time"] = capture_files.TIME
    place = folder / "set" / "data" / "chunk-000"
    place.mkdir(parents=True)
    (folder / "set" / "meta").mkdir()
    info = {"codebase_version": "v3.0", "fps": 100, "features": {"pose": {"dtype": "float32", "names": None}}}
    (folder / "set" / "meta" / "info.json").write_text(json.dumps(info))
    rows = pa.array(list(pose.astype(np.float32)), type=pa.list_(pa.float32(), 7))
    count = pa.array(np.arange(len(pose)))
    table = pa.table(
        {"pose": rows, "frame_index": count, "episode_index": pa.array(np.zeros(len(pose), dtype=np.int64))}
    )
    pq.write_table(table, place / "file-000.parquet")


def imported(*files: str, names: tuple[str, ...] = (), read: ReadOptions | None = None) -> Callable[[Path], str]:
    """Imports each of these files of a folder; what came out, as text."""
    wanted = tuple(parse_map(text) for text in names)

    def load(folder: Path) -> str:
        found = sha256()
        for name in files:
            options = ImportOptions(wanted=wanted, up="z", read=read or ReadOptions())
            for made in recordings_of([parts_of(folder / name, options)], options):
                found.update(repr((made.said, made.trajectory.name, made.parts[0].said)).encode())
                for body, position in made.trajectory.position_world.items():
                    found.update(body.encode() + position.tobytes())
        return found.hexdigest()

    return load


POINTS = ("box:target=box:*",)
VECTORS = ("box:target=pose",)
