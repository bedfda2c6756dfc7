"""Data sets of LeRobot and HDF5 files: joints as signals, bodies only where the user maps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spoilt_files import spoilt

from carom.core.errors import RecordingError
from carom.recordings.formats import hdf5, lerobot
from carom.recordings.formats.found import reader_of
from carom.recordings.formats.take import NoPosesError, ReadOptions, Take

OPTIONS = ReadOptions()
FPS, LENGTHS = 50, (40, 25, 30)


def state(episode: int, count: int) -> np.ndarray:
    t = np.arange(count) / FPS
    half = 0.4 * t + 0.1 * episode
    return np.column_stack([0.1 * t, 0 * t + episode, 0.5 - t, np.cos(half), 0 * t, 0 * t, np.sin(half), 3 * t])


def data_set(folder: Path, version: str, *, names: Any = None, total: int = 3, lists: str = "fixed") -> Path:
    """A data set of three episodes, in a file each (v2.1) or all in one (v3.0)."""
    names = names if names is not None else [["x", "y", "z", "qw", "qx", "qy", "qz", "grip"]]
    info = {
        "codebase_version": version,
        "fps": FPS,
        "total_episodes": total,
        "features": {
            "observation.state": {"dtype": "float32", "shape": [8], "names": names},
            "action": {"dtype": "float32", "shape": [1], "names": None},
            "observation.images.top": {"dtype": "video", "shape": [4, 4, 3], "names": ["h", "w", "c"]},
            "timestamp": {"dtype": "float32", "shape": [1], "names": None},
            "episode_index": {"dtype": "int64", "shape": [1], "names": None},
        },
    }
    (folder / "meta").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    tables = []
    for episode, count in enumerate(LENGTHS):
        values = state(episode, count).astype(np.float32)
        kind = pa.list_(pa.float32(), 8) if lists == "fixed" else pa.list_(pa.float32())
        columns = {
            "observation.state": pa.array(list(values), type=kind),
            "action": pa.array(np.arange(count, dtype=np.float32)),
            "timestamp": pa.array((np.arange(count) / FPS).astype(np.float32)),
            "frame_index": pa.array(np.arange(count)),
            "episode_index": pa.array(np.full(count, episode)),
            "index": pa.array(np.arange(count)),
            "note": pa.array(["words"] * count),
        }
        tables.append(pa.table(columns))
    place = folder / "data" / "chunk-000"
    place.mkdir(parents=True)
    if version == "v3.0":
        pq.write_table(pa.concat_tables(tables), place / "file-000.parquet")
    else:
        for episode, table in enumerate(tables):
            pq.write_table(table, place / f"episode_{episode:06d}.parquet")
    return folder


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
@pytest.mark.parametrize("lists", ["fixed", "any"])
def test_lerobot_of_both_versions(tmp_path: Path, version: str, lists: str) -> None:
    folder = data_set(tmp_path / "set", version, lists=lists)
    assert reader_of(folder) is lerobot
    takes = lerobot.read(folder, OPTIONS)
    assert [take.name for take in takes] == ["episode_000000", "episode_000001", "episode_000002"]
    for episode, take in enumerate(takes):
        signals = {signal.name: signal for signal in take.signals}
        assert len(signals) == 9
        count = LENGTHS[episode]
        np.testing.assert_allclose(signals["observation.state.grip"].values, state(episode, count)[:, 7], rtol=1e-6)
        np.testing.assert_array_equal(signals["action"].time, np.arange(count) / FPS)
        assert take.tracks == ()
        assert take.version == version
        assert any("no bodies are mapped" in words for words in take.said)
        assert any("observation.images.top" in words for words in take.left_out)


@pytest.mark.parametrize(
    "names",
    [
        ["x", "y", "z", "qw", "qx", "qy", "qz", "grip"],
        {"motors": ["x", "y", "z", "qw", "qx", "qy", "qz", "grip"]},
        {name: place for place, name in enumerate(["x", "y", "z", "qw", "qx", "qy", "qz", "grip"])},
    ],
)
def test_lerobot_names_in_their_many_forms_and_bodies_by_name(tmp_path: Path, names: Any) -> None:
    folder = data_set(tmp_path / "set", "v2.1", names=names)
    sources = tuple(f"observation.state.{name}" for name in ("x", "y", "z", "qw", "qx", "qy", "qz"))
    take = lerobot.read(folder, ReadOptions(sources={"hand": sources}))[1]
    (track,) = take.tracks
    assert track.name == "hand"
    np.testing.assert_allclose(track.position, state(1, LENGTHS[1])[:, :3], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(track.quaternion, state(1, LENGTHS[1])[:, 3:7], atol=1e-6)  # type: ignore[arg-type]
    sliced = lerobot.read(folder, ReadOptions(sources={"hand": ("observation.state[0:7]",)}))[1]
    np.testing.assert_array_equal(sliced.tracks[0].position, track.position)


def test_lerobot_says_what_is_not_there(tmp_path: Path) -> None:
    folder = data_set(tmp_path / "set", "v2.1", total=100)
    takes = lerobot.read(folder, OPTIONS)
    assert any("lists 100 episodes, 3 are there" in words for words in takes[0].said)
    with pytest.raises(RecordingError, match=r"unknown source 'observation.stat'.*did you mean 'observation.state'"):
        lerobot.read(folder, ReadOptions(sources={"hand": ("observation.stat",)}))
    (folder / "data" / "chunk-000" / "episode_000001.parquet").write_bytes(b"PAR1 no more")
    takes = lerobot.read(folder, OPTIONS)
    assert [take.name for take in takes] == ["episode_000000", "episode_000002"]
    assert any("episode_000001.parquet is damaged" in words for words in takes[0].said)


def test_lerobot_rows_without_numbers_are_refused(tmp_path: Path) -> None:
    """A file with the episode's number alone once ended in an error of Python's own."""
    folder = data_set(tmp_path / "set", "v3.0")
    file = folder / "data" / "chunk-000" / "file-000.parquet"
    pq.write_table(pa.table({"episode_index": pa.array([0, 0, 1]), "note": pa.array(["a", "b", "c"])}), file)
    with pytest.raises(RecordingError, match=r"file-000\.parquet: no columns of numbers"):
        lerobot.read(folder, OPTIONS)


def test_lerobot_stamps_that_count_from_1970_are_too_coarse(tmp_path: Path) -> None:
    folder = data_set(tmp_path / "set", "v3.0")
    file = folder / "data" / "chunk-000" / "file-000.parquet"
    table = pq.read_table(file)
    place = table.schema.get_field_index("timestamp")
    late = np.asarray(table["timestamp"]) + np.float32(1.7e9)
    pq.write_table(table.set_column(place, "timestamp", pa.array(late.astype(np.float32))), file)
    take = lerobot.read(folder, OPTIONS)[0]
    np.testing.assert_allclose(take.signals[0].time, np.arange(LENGTHS[0]) / FPS)
    assert any("too coarse" in words for words in take.said)


def test_the_g1_episodes(shared_data: Path) -> None:
    folder = shared_data / "foreign" / "lerobot" / "v2.1_unitree_g1_first3"
    if not folder.is_dir():
        pytest.skip("this data set is not there")
    takes = lerobot.read(folder, OPTIONS)
    assert [len(take.signals[0].time) for take in takes] == [479, 393, 343]
    assert takes[0].rate == pytest.approx(30)
    names = {signal.name for signal in takes[0].signals}
    assert len(names) == 52
    assert "observation.state.kLeftElbow" in names


def demos(file: Path) -> Path:
    """A file as robosuite writes it: states of time, qpos and qvel for each demonstration."""
    import h5py

    with h5py.File(file, "w") as opened:
        for number, count in enumerate((40, 25), start=1):
            group = opened.create_group(f"data/demo_{number}")
            t = np.arange(count)[:, None] / FPS
            group["states"] = np.concatenate([0.02 + t, np.ones((count, 2)), state(number, count)[:, :7]], axis=1)
            group["actions"] = np.tile([[1.0, 2.0]], (count, 1))
            group["obs/cube_pos"] = state(number, count)[:, :3]
            group["obs/cube_quat"] = state(number, count)[:, [4, 5, 6, 3]]
            group.attrs["model_file"] = "<mujoco/>"
        opened["data/demo_1/outside"] = h5py.ExternalLink("/etc/hostname", "/x")
    return file


CUBE = {"cube": ("states[3:6]", "states[6:10]")}


def test_hdf5_states_of_every_demonstration(tmp_path: Path) -> None:
    file = demos(tmp_path / "demo.hdf5")
    assert reader_of(file) is hdf5
    takes = hdf5.read(file, ReadOptions(sources=CUBE))
    assert [take.name for take in takes] == ["demo_1", "demo_2"]
    track = takes[1].tracks[0]
    np.testing.assert_allclose(track.time, 0.02 + np.arange(25) / FPS)
    np.testing.assert_allclose(track.position, state(2, 25)[:, :3])
    np.testing.assert_allclose(track.quaternion, state(2, 25)[:, 3:7])  # type: ignore[arg-type]
    assert {signal.name for signal in takes[1].signals} == {"actions.0", "actions.1"}
    assert any("w first, as MuJoCo's states" in words for words in takes[1].said)


def test_hdf5_generic_data_sets(tmp_path: Path) -> None:
    file = demos(tmp_path / "demo.hdf5")
    seen = {"cube": ("obs/cube_pos", "obs/cube_quat")}
    with pytest.raises(RecordingError, match=r"no data set of times .*give --rate HZ"):
        hdf5.read(file, ReadOptions(sources=seen, quaternion_order="xyzw"))
    takes = hdf5.read(file, ReadOptions(sources=seen, quaternion_order="xyzw", time="states[0]"))
    np.testing.assert_allclose(takes[0].tracks[0].quaternion, state(1, 40)[:, 3:7])  # type: ignore[arg-type]
    (take,) = hdf5.read(file, ReadOptions(sources={"cube": ("data/demo_2/obs/cube_pos",)}, rate=50.0))
    assert take.tracks[0].quaternion is None
    assert take.rate == pytest.approx(50)


@pytest.mark.parametrize(("size", "digits"), [(1e9, 0), (1e3, 0), (1.0, 9)])
def test_hdf5_times_have_their_unit_from_their_steps(tmp_path: Path, size: float, digits: int) -> None:
    import h5py

    file = tmp_path / "a.h5"
    with h5py.File(file, "w") as opened:
        opened["t"] = np.round(np.arange(40) / FPS * size, digits)
        opened["cube_pos"] = state(1, 40)[:, :3]
    (take,) = hdf5.read(file, ReadOptions(sources={"cube": ("cube_pos",)}))
    np.testing.assert_allclose(take.tracks[0].time, np.arange(40) / FPS, atol=1e-9)


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ({}, r"nothing is mapped; its data sets: .*states 40x10 \(2 times\).*--map 'box=states\[10:13\]"),
        ({"cube": ("state[3:6]",)}, r"unknown data set 'state' \(did you mean 'states'\?\)"),
        ({"cube": ("states[3:60]",)}, r"expected columns from 0 to 9 of states"),
        ({"cube": ("states[3:5]", "actions")}, r"body 'cube' is given 4 columns"),
    ],
)
def test_hdf5_asks_for_what_it_lacks(tmp_path: Path, sources: Any, words: str) -> None:
    with pytest.raises(RecordingError, match=words):
        hdf5.read(demos(tmp_path / "demo.hdf5"), ReadOptions(sources=sources))
    if not sources:
        with pytest.raises(NoPosesError):
            hdf5.read(tmp_path / "demo.hdf5", OPTIONS)


def test_the_robosuite_demonstration(shared_data: Path) -> None:
    file = shared_data / "foreign" / "hdf5" / "robosuite1.0_lift_panda_demo.hdf5"
    if not file.is_file():
        pytest.skip("this file is not there")
    (take,) = hdf5.read(file, ReadOptions(sources={"cube": ("states[10:13]", "states[13:17]")}))
    track = take.tracks[0]
    assert len(track.time) == 412
    np.testing.assert_allclose(track.position[0], [0.0036, -0.0155, 0.8192], atol=5e-5)


def test_files_cut_and_spoilt_at_random(tmp_path: Path) -> None:
    folder = data_set(tmp_path / "set", "v3.0")
    rows = folder / "data" / "chunk-000" / "file-000.parquet"
    refused, accepted = spoilt(rows, lambda: lerobot.read(folder, OPTIONS), count=200, damaged=60)
    assert refused
    refused, _ = spoilt(folder / "meta" / "info.json", lambda: lerobot.read(folder, OPTIONS), count=50)
    assert refused
    file = demos(tmp_path / "demo.hdf5")

    def attempt() -> tuple[Take, ...]:
        return hdf5.read(file, ReadOptions(sources=CUBE))

    refused, accepted = spoilt(file, attempt, count=200, damaged=60)
    assert refused
    assert accepted
