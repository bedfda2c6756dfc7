"""What once broke a reader, and a small share of the malformed inputs that `make fuzz` tries by the thousand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attempts import GOOD, Bench
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import reseal_folder
from readers import READERS
from run import make_seeds

from carom.core.yaml_files import yaml_text

CORPUS = sorted(path for path in (Path(__file__).parent / "corpus").iterdir() if path.suffix != ".md")
SLOW = ("hybrid", "check", "check-discs", "mesh", "mjcf")  #: readers that only `make fuzz` tries at random
SHARE = 20  #: cases of each other reader


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bench]:
    seeds, own = tmp_path_factory.mktemp("seeds"), tmp_path_factory.mktemp("own")
    made: dict[str, Bench] = {}

    def of(name: str) -> Bench:
        if name not in made:
            make_seeds(seeds, [name])
            made[name] = Bench.of(name, seeds, own)
            assert made[name].attempt().kind == "accepted"
        made[name].restore()
        return made[name]

    return of


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_once_broke_a_reader_is_refused_by_name(path: Path, bench: Callable[[str], Bench]) -> None:
    reader, file, _ = path.stem.split("--")
    tried = bench(reader)
    (tried.folder / file).write_bytes(path.read_bytes())
    outcome = tried.attempt()
    assert outcome.kind == "refused", outcome
    assert file in outcome.words


def put(*where: Any, value: Any) -> Callable[[Any], None]:
    """Changes a value of nested mappings and lists."""

    def change(tree: Any) -> None:
        for step in where[:-1]:
            tree = tree[step]
        tree[where[-1]] = value

    return change


#: reader, its header, what is changed in it, and what the refusal says
HEADERS = {
    "activation": ("bases", "model.json", put("bases", 0, "preset", "activation", value="x"), "with x, 128 wide"),
    "width": ("bases", "model.json", put("bases", 0, "preset", "width", value=10**9), "1000000000 wide and 4 deep"),
    "file": ("bases", "model.json", put("bases", 0, "file", value="../x"), "'../x' is not a plain file name"),
    "mesh": ("dropped", "_header.json", put("meshes", "rock", "faces", 0, value=[0, 1, 10**30]), "is damaged"),
    "corner": ("dropped", "_header.json", put("meshes", "rock", "faces", 0, value=[0, 1, 999]), "triangles between"),
    "long value": ("trajectories", "_header.json", put("format", value="x\n" * 999), "expected format carom-traj"),
    "activation of a policy": ("policy", "policy.json", put("activation", value="re" + "x" * 10**5), "xxx...'"),
    "units": ("bases", "model.json", put("units", value="\n"), "got '\\n'; Carom works in SI units"),
    "settings": ("impacts", "_header.json", put("ranges", value="a\nb"), "holds impacts with other settings"),
    "state": ("checkpoint", "checkpoint-*/state.json", put("state", "map", "counters", value={"map": 1.5}), "damaged"),
    "pointer": ("checkpoint", "checkpoint.json", put("folder", value="a\nb"), "key 'folder': string should match"),
    "no extra": ("checkpoint", "checkpoint-*/state.json", lambda h: h["state"]["map"].pop("extra"), "('extra')"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_headers_with_wrong_content_are_refused(kind: str, bench: Callable[[str], Bench]) -> None:
    """Their checksums fit: what lies behind those is checked too."""
    reader, pattern, change, message = HEADERS[kind]
    tried = bench(reader)
    (path,) = tried.folder.glob(pattern)
    header = json.loads(path.read_bytes())
    change(header)
    path.write_text(json.dumps(header))
    reseal_folder(tried.folder, READERS[reader].headers)
    outcome = tried.attempt()
    assert outcome.kind == "refused", outcome
    assert message in outcome.words


def test_shards_of_another_kind_are_refused(bench: Callable[[str], Bench]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for reader, column, message in (
        ("impacts", "post_vx", "column 'post_vx': expected double, got string"),
        ("trajectories", "samples", "column 'samples' has empty places"),
    ):
        tried = bench(reader)
        path = sorted(tried.folder.glob("*.parquet"))[-1]
        table = pq.read_table(path)
        kind = pa.string() if reader == "impacts" else table[column].type
        other = pa.array([None] * len(table), kind) if kind != pa.string() else pa.array(["a"] * len(table))
        pq.write_table(table.set_column(table.column_names.index(column), column, other), path)
        reseal_folder(tried.folder, READERS[reader].headers)
        outcome = tried.attempt()
        assert outcome.kind == "refused", outcome
        assert message in outcome.words


def test_tensors_of_half_types_and_wild_strikes_are_refused(bench: Callable[[str], Bench]) -> None:
    import torch
    from safetensors.torch import load, save

    for reader, file, change, message in (
        ("policy", "policy.safetensors", lambda t: t.half(), "expected numbers of 32 or 64 bits, got float16"),
        ("policy", "policy.safetensors", lambda t: t * torch.inf, "numbers that are not finite"),
    ):
        tried = bench(reader)
        path = tried.folder / file
        tensors = load(path.read_bytes())
        path.write_bytes(save({name: change(tensor).contiguous() for name, tensor in tensors.items()}))
        reseal_folder(tried.folder, READERS[reader].headers)
        outcome = tried.attempt()
        assert outcome.kind == "refused", outcome
        assert message in outcome.words


@pytest.mark.parametrize("reader", [name for name in READERS if name not in SLOW])
def test_a_share_of_malformed_inputs(reader: str, bench: Callable[[str], Bench]) -> None:
    tried = bench(reader)
    faults = []
    for number in range(SHARE):
        if tried.spoil(0, number):
            outcome = tried.attempt()
            faults += [] if outcome.kind in GOOD else [(number, outcome)]
        tried.restore()
    assert faults == []


#: what YAML can say, keys of all formats among it
WORDS = st.sampled_from(["format", "carom-scene/1", "carom-recordings/1", "target", "striker", "bodies", "points", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
READ = {"scene": "a.yaml", "recordings": "recordings.yaml", "parameters": "parameters.yaml", "route": "route.yaml"}


@pytest.mark.parametrize("reader", READ)
def test_any_yaml_is_read_or_refused(reader: str, bench: Callable[[str], Bench]) -> None:
    tried = bench(reader)
    path = tried.folder / READ[reader]
    good = path.read_text()

    @settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=30)
    @given(value=VALUES, at=st.integers(0, len(good)), whole=st.booleans())
    def any_value(value: Any, at: int, whole: bool) -> None:
        text = yaml_text(value)
        path.write_text(text if whole else good[:at] + text + good[at:], errors="replace")
        outcome = tried.attempt()
        assert outcome.kind in GOOD, outcome

    any_value()


def test_the_same_number_makes_the_same_input(bench: Callable[[str], Bench]) -> None:
    tried = bench("scene")
    found = []
    for _ in range(2):
        tried.spoil(3, 17)
        found.append({path.name: path.read_bytes() for path in tried.folder.iterdir()})
        tried.restore()
    assert found[0] == found[1]
    assert found[0] != {path.name: content for path, content in tried.contents.items()}


def test_faults_of_readers_are_seen(bench: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """A fuzzer that could not fail would be worth nothing."""
    from carom.core.errors import CaromError

    tried = bench("route")

    def fails(error: Exception) -> str:
        def load(folder: Path) -> str:
            raise error

        monkeypatch.setitem(READERS, "route", type(READERS["route"])(lambda folder: None, load, ("*",)))
        return tried.attempt().kind

    assert fails(ValueError("x")) == "traceback"
    assert fails(CaromError("no name")) == "unnamed"
    assert fails(CaromError("route.yaml:\ntwo lines")) == "lines"
    assert fails(CaromError("route.yaml: one line")) == "refused"
    assert fails(MemoryError()) == "memory"
    monkeypatch.setattr("attempts.LONGEST", 0.1)
    monkeypatch.setitem(READERS, "route", type(READERS["route"])(lambda folder: None, _busy, ("*",)))
    assert tried.attempt().kind == "slow"


def _busy(folder: Path) -> str:
    total = 0.0
    while True:
        total += float(np.sum(np.ones(100)))
