"""Checkpoints: a killed benchmark goes on where it was, and never with pieces of other settings."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.core.work import Checkpoint, fingerprint

SETTINGS = {"draws": 10, "seed": 0}
ROWS = [{"setting": "D1", "method": "carom", "metric": "accuracy@0.1", "value": 0.75}]


def test_finished_pieces_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "robot-hits.jsonl"
    first = Checkpoint(path, SETTINGS)
    assert not first.has("D1/0")
    first.put("D1/0", ROWS)
    assert first.get("D1/0") == ROWS
    again = Checkpoint(path, SETTINGS)
    assert again.get("D1/0") == ROWS
    assert not again.has("D1/1")


def test_pieces_of_other_settings_are_not_used_and_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    Checkpoint(path, SETTINGS).put("a", ROWS)
    other = Checkpoint(path, SETTINGS | {"draws": 5})
    assert not other.has("a")
    other.put("a", [])
    assert Checkpoint(path, SETTINGS).get("a") == ROWS
    assert Checkpoint(path, SETTINGS | {"draws": 5}).get("a") == []


def test_order_of_settings_does_not_matter_but_their_values_do() -> None:
    assert fingerprint({"a": 1, "b": [2, 3]}) == fingerprint({"b": [2, 3], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


@pytest.mark.parametrize("kept", [1, 7, 40, -1])
def test_a_torn_last_line_costs_only_its_own_piece(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "c.jsonl"
    checkpoint = Checkpoint(path, SETTINGS)
    checkpoint.put("a", ROWS)
    whole = path.read_bytes()
    checkpoint.put("b", ROWS)
    path.write_bytes(whole + path.read_bytes()[len(whole) :][:kept])  # -1: all but the line's end
    after = Checkpoint(path, SETTINGS)
    assert after.get("a") == ROWS
    assert not after.has("b")
    after.put("b", ROWS)
    after.put("c", [])
    last = Checkpoint(path, SETTINGS)
    assert [last.get(k) for k in "abc"] == [ROWS, ROWS, []]


def test_a_killed_process_leaves_whole_pieces(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    code = (
        "import sys; from pathlib import Path; from carom.core.work import Checkpoint\n"
        "c = Checkpoint(Path(sys.argv[1]), {})\n"
        "for i in range(10**6):\n    c.put(str(i), [{'value': 'x' * 20000}])\n    print(i, flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 5:
                process.send_signal(signal.SIGKILL)
                break
    found = Checkpoint(path, {})
    assert all(found.has(str(i)) for i in range(6))  # each was announced only after it was on the disk
    assert found.get("5") == [{"value": "x" * 20000}]


def test_damage_in_the_middle_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    Checkpoint(path, SETTINGS).put("a", ROWS)
    path.write_bytes(b"half a li\n" + path.read_bytes())
    with pytest.raises(CaromError, match=r"c\.jsonl, line 1: not a finished piece"):
        Checkpoint(path, SETTINGS)


def test_numpy_values_are_kept_as_numbers_and_objects_are_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c.jsonl", {"seeds": np.arange(3), "data": tmp_path})
    checkpoint.put("a", [{"value": np.float64(0.5), "n": np.int64(3)}])
    assert checkpoint.get("a") == [{"value": 0.5, "n": 3}]
    with pytest.raises(CaromError, match="JSON cannot express the object"):
        checkpoint.put("b", [{"value": object()}])
    assert not checkpoint.has("b")
