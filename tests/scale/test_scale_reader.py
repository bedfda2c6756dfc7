"""Reading scaled data, rotated recordings, and the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sealed import reseal
from simulated_tosses import CALIBRATED, parameters_file, tosses

from carom.cli import main
from carom.core.errors import CaromError
from carom.core.rotations import matrices
from carom.recordings import read
from carom.scale import augment, calibration, cubes, load, scale, toss
from carom.scale.shards import Row, table_of


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tosses(tmp_path_factory.mktemp("real"))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    made = scale(cubes(bodies=(1, 2), duration=0.05), calibration(None), tmp_path, count=9).data
    data = load(tmp_path)
    assert len(data) == 9
    assert [t.index for t in data] == list(range(9))
    for a, b in zip(made, data, strict=True):
        np.testing.assert_array_equal(a.position, b.position)
        assert a.bodies == b.bodies
        assert a.parameters == b.parameters
        assert [s.name for s in b.bodies] == ["pushed", *(f"cube_{i}" for i in range(1, len(b.bodies)))]
        assert b.position.shape == (6, len(b.bodies), 3)
        assert b.quaternion.shape == (6, len(b.bodies), 4)
        np.testing.assert_allclose(np.linalg.norm(b.quaternion, axis=-1), 1.0, atol=1e-12)
        assert b.time[-1] == pytest.approx(0.05)
    part = data[2:5]
    assert len(part) == 3
    assert part[0].index == 2
    assert data[-1].index == 8
    with pytest.raises(CaromError, match=r"do not make one array; take them apart with by_bodies\(\)"):
        data.arrays()
    for count, same in data.by_bodies().items():
        position, quaternion = same.arrays()
        assert position.shape == (len(same), 6, count, 3)
        assert quaternion.shape == (len(same), 6, count, 4)


def test_damaged_data_are_refused(tmp_path: Path) -> None:
    data = scale(toss(duration=0.05), calibration(None), tmp_path, count=3).data
    t = data[0]
    shard = tmp_path / "trajectories-00000.parquet"
    good = pq.read_table(shard)

    def broken(position: np.ndarray) -> None:
        row = Row(
            0,
            "toss",
            "ok",
            t.bodies,
            np.array(list(t.parameters.values())),
            9.81,
            np.array([0, 0, 1.0, 0]),
            position,
            t.quaternion,
            t.start_velocity,
            t.start_spin,
        )
        pq.write_table(pa.concat_tables([table_of([row]), good.slice(1)]), shard)
        reseal(tmp_path / "_header.json")

    broken(t.position[:, :, :2])
    with pytest.raises(CaromError, match=r"trajectory 0: expected 18 values of 'position', got 12"):
        load(tmp_path)
    broken(np.where(np.arange(6)[:, None, None] > 3, np.nan, t.position))
    with pytest.raises(CaromError, match=r"'position' holds numbers that are not finite"):
        load(tmp_path)
    pq.write_table(good.drop_columns(["mass"]), shard)
    reseal(tmp_path / "_header.json")
    with pytest.raises(CaromError, match=r"missing or of another type: \['mass'\]"):
        load(tmp_path)
    pq.write_table(good.slice(1), shard)
    reseal(tmp_path / "_header.json")
    with pytest.raises(CaromError, match=r"expected 3 trajectories, got 2"):
        load(tmp_path)
    header = json.loads((tmp_path / "_header.json").read_text())
    (tmp_path / "_header.json").write_text(json.dumps(header | {"format": "other/1"}))
    with pytest.raises(CaromError, match=r"expected format carom-trajectories/1, got other/1"):
        load(tmp_path)
    with pytest.raises(CaromError, match=r"holds no trajectories \(_header.json is missing\)"):
        load(tmp_path / "nowhere")


def test_rotation_keeps_heights_distances_and_angles(real: Path, tmp_path: Path) -> None:
    data = augment(real, tmp_path, count=13, seed=3).data
    recordings = {t.name: t for t in read(real).trajectories}
    assert [t.source for t in data] == [f"toss_{i % 5}.csv" for i in range(13)]
    angles = []
    for t in data:
        was = recordings[t.source]
        before, after = was.position_world["cube"], t.position[:, 0]
        np.testing.assert_array_equal(after[:, 2], before[:, 2])
        np.testing.assert_allclose(
            np.linalg.norm(np.diff(after, axis=0), axis=-1),
            np.linalg.norm(np.diff(before, axis=0), axis=-1),
            atol=1e-14,
        )
        quaternion = was.quaternion_world["cube"]
        assert quaternion is not None
        a, b = matrices(quaternion), matrices(t.quaternion[:, 0])
        np.testing.assert_allclose(b[:, 2], a[:, 2], atol=1e-12)  # gravity in the body's frame is what it was
        turn = np.einsum("tij,tkj->tik", b, a)  # one and the same turn for all samples, about the vertical
        np.testing.assert_allclose(turn, np.tile(turn[0], (len(turn), 1, 1)), atol=1e-12)
        np.testing.assert_allclose(turn[0, 2], [0, 0, 1], atol=1e-12)
        np.testing.assert_allclose(before @ turn[0].T, after, atol=1e-12)
        angles.append(np.arctan2(turn[0, 1, 0], turn[0, 0, 0]))
        assert np.isnan(t.start_velocity).all()  # nobody set it
        assert t.bodies[0].mass == 0.37
        assert t.ground is not None
    assert len(set(np.round(angles, 6))) == 13


def test_rotated_recordings_are_the_same_for_a_seed(real: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        augment(real, tmp_path / name, count=6, seed=seed)
    a, b, c = ((tmp_path / n / "trajectories-00000.parquet").read_bytes() for n in "abc")
    assert a == b
    assert a != c


def test_a_gap_ends_a_stretch(tmp_path: Path) -> None:
    data = augment(tosses(tmp_path / "gap", 3, lost=30), tmp_path / "d", count=3).data
    assert [len(t) for t in data] == [49, 80, 80]


def carom(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["carom", *map(str, arguments)])
    try:
        main()
        code = 0
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    found = capsys.readouterr()
    return code, found.out, found.err


def test_the_command_makes_data_and_says_what(
    tmp_path: Path, real: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    params = parameters_file(tmp_path / "p.yaml", CALIBRATED)
    arguments = ("scale", "toss", "--params", params, "--count", 5, "--duration", 0.1, "--out", tmp_path / "d")
    code, out, err = carom(capsys, monkeypatch, *arguments, "--json", "-")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["trajectories"] == 5
    assert facts["status"] == {"ok": 5}
    assert facts["parameters"] == "cma: toss"
    assert len(load(tmp_path / "d")) == 5
    code, out, _ = carom(capsys, monkeypatch, "scale", "--augment", real, "--count", 4, "--out", tmp_path / "a")
    assert code == 0
    assert "rotated about the vertical" in out
    assert len(load(tmp_path / "a")) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tos",), "unknown scene 'tos' (did you mean 'toss'?); known: toss, cubes, shapes, or a folder of recordings"),
        ((), "expected a scene (toss, cubes, shapes, or a recordings folder), --mesh, or --augment"),
        (("toss", "--mesh", "a.stl"), "expected a scene or --mesh, got both"),
        (("toss", "--bodies", 1, 2), "--bodies belongs to cubes, shapes and --mesh"),
        (("toss", "--density", 100), "--density belongs to --mesh"),
        (("--augment", "x", "--spread"), "--augment rotates recordings as they are: --spread has no meaning there"),
        (("--augment", "x", "--size", 1, 1), "--augment rotates recordings as they are: --size has no meaning there"),
        (("toss", "--params", "nope.yaml"), "nope.yaml does not exist; `carom identify` writes one"),
        (("--mesh", "nope.stl"), "mesh file nope.stl does not exist"),
        (("toss", "--count", 0), "Invalid value for '--count'"),
    ],
)
def test_mistakes_end_in_one_line_and_code_two(
    arguments: tuple[object, ...],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, _, err = carom(capsys, monkeypatch, "scale", *arguments, "--out", tmp_path / "x")
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "x").exists()
