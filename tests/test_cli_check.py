"""`carom check` as a user types it: what it prints of bad folders, and its exit code."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from synthetic_recordings import Strike

from carom.cli import main
from carom.core.rotations import multiply
from carom.recordings import Recordings, write


@pytest.fixture
def found(monkeypatch, capsys, tmp_path):
    """Exit code, the findings by code, and the last line of stderr, of `carom check` on a folder of strikes."""

    def run(*trajectories):
        place = tmp_path / "lab"
        named = tuple(replace(t, name=f"hit_{i:03d}.csv") for i, t in enumerate(trajectories))
        write(place, Recordings(place, named[0].bodies, named))
        monkeypatch.setattr(sys, "argv", ["carom", "check", str(place), "--json", "-"])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        shown = capsys.readouterr()
        return code, {f["code"]: f["message"] for f in json.loads(shown.out)["findings"]}, shown.err

    return run


def hits(count=4):
    return [
        Strike(striker_velocity=(0.05, 0.7 + 0.05 * s), velocity=(-0.1, 1.0 + 0.06 * s), duration=1.5).trajectory(s)
        for s in range(count)
    ]


def changed(t, change):
    path, turn = change(t.position_world["box"].copy()), change(t.quaternion_world["box"].copy())
    positions, turns = {**t.position_world, "box": path}, {**t.quaternion_world, "box": turn}
    return replace(t, position_world=positions, quaternion_world=turns)


def rows(first, last, value):
    def change(array):
        array[first:last] = array[first - 1] if value is None else value
        return array

    return change


def test_a_good_folder(found):
    assert found(*hits())[:2] == (0, {})


def test_all_strikes_unusable(found):
    far = [
        replace(t, position_world={**t.position_world, "tool": t.position_world["tool"] + [0.5, 0, 0]}) for t in hits()
    ]
    code, findings, error = found(*far)
    assert code == 2
    assert "none of the 4 recorded impacts can be used" in findings["no-usable-impact"]
    assert all(f"hit_{i:03d}.csv" in findings["unusable-impact"] for i in range(4))
    assert "errors were found" in error


def test_w_last(found):
    code, findings, _ = found(
        *(replace(t, quaternion_world={n: q[:, [1, 2, 3, 0]] for n, q in t.quaternion_world.items()}) for t in hits())
    )
    assert code == 2
    assert "look like x, y, z, w under w-first names" in findings["quaternion-convention"]


def test_y_up(found):
    half = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0])
    code, findings, _ = found(
        *(
            replace(
                t,
                position_world={n: p[:, [0, 2, 1]] * [1, 1, -1] for n, p in t.position_world.items()},
                quaternion_world={n: multiply(half, q) for n, q in t.quaternion_world.items()},
            )
            for t in hits()
        )
    )
    assert code == 2
    assert list(findings) == ["frame"]
    assert findings["frame"].endswith("state frame: y-up")


def test_frozen_and_lost_samples(found):
    frozen = changed(hits()[0], rows(50, 75, None))
    lost = [changed(t, rows(200, 200 + n, np.nan)) for t, n in zip(hits(), (12, 62, 95), strict=False)]
    code, findings, _ = found(frozen, *lost[1:], *hits())
    assert code == 0
    assert "in 25 of its rows; up to 25 in a row" in findings["frozen"]
    assert findings["lost-samples"].endswith("up to 95 in a row")
    assert "hit_000.csv: its strike cannot be used: the pose of 'box' is frozen" in findings["unusable-impact"]


def test_ten_strikes_alike(found):
    code, findings, _ = found(*(Strike(duration=1.5).trajectory(s) for s in range(10)))
    assert (code, list(findings)) == (0, ["strikes-alike"])


def test_lengths_ten_percent_off_in_one_file(found):
    large = replace(hits()[3], position_world={n: 1.1 * p for n, p in hits()[3].position_world.items()})
    code, findings, _ = found(*hits(), large)
    assert (code, list(findings)) == (0, ["other-size"])
    assert findings["other-size"].startswith("hit_004.csv: ")


@pytest.mark.parametrize("options", [["check"], ["adapt", "--out", "models"]])
def test_json_takes_no_other_files_place(options, monkeypatch, capsys, tmp_path):
    (hit,) = hits(1)
    write(tmp_path, Recordings(tmp_path, hit.bodies, (hit,)))
    kept = (tmp_path / hit.name).read_bytes()
    monkeypatch.setattr(sys, "argv", ["carom", *options, str(tmp_path), "--json", str(tmp_path / hit.name)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "holds something else, which would be lost; choose another name" in capsys.readouterr().err
    assert (tmp_path / hit.name).read_bytes() == kept


def test_json_is_written_anew(monkeypatch, tmp_path):
    (hit,) = hits(1)
    write(tmp_path / "lab", Recordings(tmp_path / "lab", hit.bodies, (hit,)))
    place = tmp_path / "found.json"
    for before in ("", '{"old": 1}'):
        place.write_text(before)
        monkeypatch.setattr(sys, "argv", ["carom", "check", str(tmp_path / "lab"), "--json", str(place)])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        assert "findings" in json.loads(place.read_text())


@pytest.mark.parametrize(
    "command", [["scale", "toss"], ["distill", "semi-cylinder"], ["train"], ["train-graph", "data"]]
)
def test_what_is_made_does_not_go_among_recordings(command, monkeypatch, capsys, tmp_path):
    (hit,) = hits(1)
    write(tmp_path, Recordings(tmp_path, hit.bodies, (hit,)))
    monkeypatch.setattr(sys, "argv", ["carom", *command, "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "holds recordings; choose another folder" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == [hit.name, "recordings.yaml"]
