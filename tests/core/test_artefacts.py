"""Artefacts on disk: damage, mixtures, full disks, second writers and earlier versions are refused by name."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from bit_flips import accepted_flips
from sealed import reseal

import carom
from carom.core import artefacts
from carom.core.artefacts import Header, atomically, made_from, read_header, write_header, write_payload
from carom.core.errors import CaromError
from carom.core.folders import replacing
from carom.core.locks import LOCK, locked
from carom.core.tensors import load_tensors, write_tensors
from carom.identify import Errors, Estimate, Identification
from carom.identify import read as read_parameters
from carom.learn.impact.adapted_files import load_model, save_model
from carom.learn.impact.base_files import load_bases
from carom.learn.impact.dataset import generate
from carom.learn.impact.distill import DistillOptions, distill
from carom.learn.impact.paper import TunedModel
from carom.scale import calibration, load, scale, toss
from carom.scenes.strike import builtin

SQUARE = builtin("square")


def weights_of(bases: Any) -> str:
    return str([[t.tolist() for t in b.network.state_dict().values()] for b in bases])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Base models of a tiny distillation."""
    out = tmp_path_factory.mktemp("base") / "model"
    distill(SQUARE, out, samples=1000, teachers=("compliant",), training=DistillOptions(steps=2), threads=1)
    return out


def models(tmp_path: Path, base: Path) -> tuple[Path, Callable[[], str]]:
    model = load_bases(base)[0]
    save_model(tmp_path, TunedModel(model, np.array([p.default for p in model.parameters])), made_by={})

    def loaded() -> str:
        found = load_model(tmp_path)
        assert isinstance(found, TunedModel)
        return weights_of([found.base]) + str(found.values.tolist())

    return tmp_path, loaded


def impacts(tmp_path: Path, base: Path) -> tuple[Path, Callable[[], str]]:
    def made() -> str:
        data = generate(SQUARE, "compliant", 100, tmp_path, shard=64)
        assert not data.simulated or not list(tmp_path.glob("*.parquet"))
        return str(data.post.tolist())

    generate(SQUARE, "compliant", 100, tmp_path, shard=64)
    return tmp_path, made


def trajectories(tmp_path: Path, base: Path) -> tuple[Path, Callable[[], str]]:
    scale(toss(duration=0.05), calibration(None), tmp_path, count=4)
    return tmp_path, lambda: str([(t.position.tolist(), dict(t.parameters), t.status) for t in load(tmp_path)])


def parameters(tmp_path: Path, base: Path) -> tuple[Path, Callable[[], str]]:
    estimate = Estimate("friction", 0.3, "1", 0.2, 0.4, (0.0, 2.0), "identified", "why")
    errors = Errors(0.1, 0.2, 0.9, 5)
    Identification("cma", "toss", (estimate,), errors, None, "", 5, 0, 0.1, 0).write(tmp_path)
    return tmp_path, lambda: str(read_parameters(tmp_path).to_dict())


@pytest.mark.parametrize("make", [models, impacts, trajectories, parameters])
def test_no_flipped_bit_is_accepted_silently(make: Callable[..., Any], base: Path, tmp_path: Path) -> None:
    folder, loaded = make(tmp_path, base)
    assert accepted_flips(folder, loaded, int(os.environ.get("CAROM_FLIPS", "75"))) == []


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    digest = write_tensors(tmp_path / "a.safetensors", {"w": torch.tensor([1.0, torch.inf])})
    with pytest.raises(CaromError, match=r"a.safetensors: 'w' holds numbers that are not finite"):
        load_tensors(tmp_path / "a.safetensors", {"a.safetensors": digest})


def test_models_of_earlier_versions_are_refused(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "old")
    header = json.loads((tmp_path / "old" / "model.json").read_text())
    del header["header_sha256"]
    (tmp_path / "old" / "model.json").write_text(json.dumps(header))
    with pytest.raises(CaromError, match=r"model.json was made by an earlier version of Carom .*; run carom distill"):
        load_bases(tmp_path / "old")


@pytest.mark.parametrize(("name", "make"), [("header.json", "scale"), ("dataset.json", "distill")])
def test_data_sets_of_earlier_versions_are_refused(name: str, make: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"format": "x"}')
    makers: dict[str, Callable[[], object]] = {
        "scale": lambda: scale(toss(duration=0.05), calibration(None), tmp_path, count=4),
        "distill": lambda: generate(SQUARE, "compliant", 64, tmp_path, shard=64),
    }
    with pytest.raises(CaromError, match=rf"made by an earlier version of Carom .*; run carom {make}"):
        makers[make]()


def test_a_shard_copied_over_another_is_noticed(tmp_path: Path) -> None:
    generate(SQUARE, "compliant", 128, tmp_path, shard=64)
    shutil.copy(tmp_path / "impacts-00000.parquet", tmp_path / "impacts-00001.parquet")
    with pytest.raises(CaromError, match=r"impacts-00001.parquet is damaged \(its content is not what the header"):
        generate(SQUARE, "compliant", 128, tmp_path, shard=64)


def test_a_shard_of_another_run_is_refused(tmp_path: Path) -> None:
    for seed in (0, 1):
        scale(toss(duration=0.05), calibration(None), tmp_path / str(seed), count=4, seed=seed)
    shutil.copy(tmp_path / "1" / "trajectories-00000.parquet", tmp_path / "0" / "trajectories-00000.parquet")
    with pytest.raises(CaromError, match=r"trajectories-00000.parquet is damaged"):
        load(tmp_path / "0")


def test_parquet_readers_take_the_folder_of_a_data_set(tmp_path: Path) -> None:
    scale(toss(duration=0.05), calibration(None), tmp_path / "a", count=4)
    generate(SQUARE, "compliant", 64, tmp_path / "b", shard=64)
    assert len(pq.read_table(tmp_path / "a")) == 4
    assert len(pq.read_table(tmp_path / "b")) == 64


def test_a_weight_file_of_another_run_beside_a_header_is_refused(base: Path, tmp_path: Path) -> None:
    """What a kill leaves between the writes of a second distillation into the same folder."""
    distill(SQUARE, tmp_path, samples=1000, teachers=("compliant",), training=DistillOptions(steps=3), threads=1)
    shutil.copy(base / "compliant-default.safetensors", tmp_path)
    with pytest.raises(CaromError, match=r"compliant-default.safetensors is damaged: it is not the file"):
        load_bases(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bases": 3}, "key 'bases': input should be"),
        ({"bases": [{"file": 3}]}, "key 'bases.0.file': input should be a valid string, got 3"),
        ({"made_with": {"carom": 1}}, "key 'made_with.carom'"),
        ({"colour": 1}, "unknown key 'colour'"),
        ({"scene": [[[[]]]]}, "key 'scene'"),
    ],
)
def test_wrong_keys_are_named(changes: dict[str, Any], message: str, base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "copy")
    reseal(tmp_path / "copy" / "model.json", **changes)
    with pytest.raises(CaromError, match=rf"model.json: {message}") as caught:
        load_bases(tmp_path / "copy")
    assert "\n" not in str(caught.value)


def test_headers_say_what_they_were_made_with_and_from(base: Path) -> None:
    header = json.loads((base / "model.json").read_text())
    assert header["made_with"]["carom"] == carom.__version__
    assert header["made_from"]["scene"] == SQUARE.name
    data = json.loads((base / "data" / "compliant" / "_header.json").read_text())
    assert header["made_from"]["data"] == {"compliant": data["header_sha256"]}


def test_made_from_follows_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = made_from(tmp_path, [tmp_path / "a"])
    assert before["name"] == tmp_path.name
    (tmp_path / "a").write_text("2")
    assert made_from(tmp_path, [tmp_path / "a"])["sha256"] != before["sha256"]


def test_files_have_the_rights_that_the_user_gives_new_files(tmp_path: Path) -> None:
    former = os.umask(0o022)
    try:
        write_payload(tmp_path / "a", b"1")
        os.umask(0o007)
        write_header(tmp_path / "b", {"format": "x"})
    finally:
        os.umask(former)
    assert [(tmp_path / n).stat().st_mode & 0o777 for n in "ab"] == [0o644, 0o660]


def test_a_full_disk_leaves_the_old_file_and_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    atomically(tmp_path / "a", lambda file: file.write(b"old"))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(artefacts.os, "fsync", full)
    with pytest.raises(CaromError, match=r"a: no space left on the disk; free some, then run the same command again"):
        atomically(tmp_path / "a", lambda file: file.write(b"new"))
    with pytest.raises(CaromError, match="no space left"):
        generate(SQUARE, "compliant", 128, tmp_path / "data", shard=64)
    monkeypatch.undo()
    assert generate(SQUARE, "compliant", 128, tmp_path / "data", shard=64).simulated == 128
    assert (tmp_path / "a").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "data"]


def test_a_kill_while_a_folder_is_replaced_leaves_the_old_one(tmp_path: Path) -> None:
    place = tmp_path / "model"

    def write(text: str, *, kill: bool = False) -> None:
        with replacing(place, ("one", "two")) as fresh:
            (fresh / "one").write_text(text)
            if kill:
                raise KeyboardInterrupt
            (fresh / "two").write_text(text)

    write("old")
    with pytest.raises(KeyboardInterrupt):
        write("new", kill=True)
    assert [(place / n).read_text() for n in ("one", "two")] == ["old", "old"]
    write("new")
    assert [(place / n).read_text() for n in ("one", "two")] == ["new", "new"]
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_folder_with_a_user_s_own_files_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CaromError, match=r"holds notes.txt, which is no part"), replacing(tmp_path, ("one",)):
        pass
    assert (tmp_path / "notes.txt").read_text() == "mine"


HOLDS = """
import sys, time
from pathlib import Path
from carom.core.locks import locked
out = Path(sys.argv[1])
with locked(out):
    (out / ".x.1.carom-part").write_text("")
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = subprocess.Popen([sys.executable, "-c", HOLDS, str(out)], stdout=subprocess.PIPE)
    try:
        assert first.stdout is not None
        first.stdout.readline()
        with pytest.raises(CaromError, match=rf"is being written by process {first.pid} on \S+; wait"), locked(out):
            pass
        with pytest.raises(CaromError, match="is being written by"):
            distill(SQUARE, out, samples=1000, teachers=("compliant",))
    finally:
        first.kill()
        first.wait()
    assert (out / LOCK).exists()  # the kill left it
    with locked(out):
        assert [p.name for p in out.iterdir()] == [LOCK]  # and what was unfinished is gone
    assert list(out.iterdir()) == []


def test_a_lock_leaves_no_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bad"), locked(tmp_path / "out"):
        raise ValueError("bad")
    assert not (tmp_path / "out").exists()


def test_a_header_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    write_header(path, {"format": "x/1", "made_with": {}})
    assert read_header(path, Header, "x/1", missing="none", again="it")["format"] == "x/1"
    path.write_text(path.read_text().replace("{}", '{"carom": "9"}', 1))
    with pytest.raises(CaromError, match=r"h.json is damaged or was edited: .* run it again"):
        read_header(path, Header, "x/1", missing="none", again="it")


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(carom.__file__).parent / "py.typed").is_file()
