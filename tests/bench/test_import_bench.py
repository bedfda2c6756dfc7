"""`carom bench import`: any folder of other makers' files, with a line for each and its refusals in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import capture_files
import numpy as np
import pytest

from carom.bench import importing, run_benchmark
from carom.bench.import_facts import FACTS, Fact, Known, body, markers, rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "data" / "mixed"
    place.mkdir(parents=True)
    capture_files.motive(place / "take.csv")
    capture_files.c3d(place / "points.c3d")
    (place / "notes.txt").write_text("nothing to see\n")
    return tmp_path / "data"


def test_every_file_is_read_or_refused_with_its_reason(folder, tmp_path, monkeypatch):
    first = tuple(capture_files.POSITION[0])
    known = Known((Fact("frames", rows, (capture_files.COUNT,)), Fact("place", body("box", 0), first, 1e-5)), up="z")
    wrong = Known((Fact("markers", markers, (5,)),), names=("box:target=box:*",), up="z")
    monkeypatch.setattr(importing, "FACTS", {"mixed/take.csv": known, "mixed/points.c3d": wrong})
    results = run_benchmark("import", data=folder, out=tmp_path / "out")
    found = {(row.setting.split(": ")[0], row.metric): row.mean for row in results.rows}
    assert found["mixed/take.csv", "facts right"] == 2
    assert found["mixed/take.csv", "imported"] == 1
    assert found["mixed/points.c3d", "facts right"] == 0  # there are four
    assert found["mixed/notes.txt", "refused"] == 1
    (refusal,) = [note for note in results.notes if note.startswith("refused")]
    assert "mixed/notes.txt: its content is of no known format" in refusal
    table = importing.matrix(results)
    assert "| mixed/take.csv | OptiTrack Motive CSV 1.23 | 1 | 44 | 100 | 1 | 1 |  | yes | 2 of 2 |" in table
    assert "| mixed/notes.txt | refused |" in table


def test_a_fact_that_cannot_be_looked_up_is_wrong():
    assert not importing.agrees(Fact("place", body("box", 0), (0.0, 0.0, 0.0)), ())
    assert all(known.facts or known.refused for known in FACTS.values())
    assert not importing.agrees(replace(Fact("rows", rows, (3,)), found=lambda takes: np.full(1, np.nan)), ())
