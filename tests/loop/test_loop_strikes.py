"""The loop on strikes: rounds on a stand-in, with a person in place of one, and after kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from jobs import content
from report_pages import good_page, sections
from said import without_progress
from small_loops import STRIKES, quick_strikes

from carom.core.errors import CaromError
from carom.loop import loop, read_config
from carom.reality import standin
from carom.state import StrikeCommands


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("strikes") / "loop.yaml"
    path.write_text(STRIKES.format(rounds=2, method="infogap"))
    return path


@pytest.fixture(scope="module")
def finished(file):
    with quick_strikes():
        return loop(file, file.parent / "quiet")


def test_rounds_use_all_recordings_so_far_and_the_gap_falls(finished):
    assert [row["recordings"] for row in finished.rows] == [0, 3, 6]
    assert [row["recorded"] for row in finished.rows] == [3, 3, 0]
    first, *_, last = (row["held_out"] for row in finished.rows)
    assert last["gap"] < 0.3 * first["gap"]
    assert last["median_relative_error"] < first["median_relative_error"]


def test_the_term_counts_from_the_second_round_on_as_the_gap_says(finished):
    weights = [row["weight"] for row in finished.rows]
    assert weights[0] == 0.0  # nothing is known that could be far or near
    assert weights[1] == 0.5  # the first gap that was measured, over itself, times `information`
    assert weights[2] is None


def test_the_page_shows_each_round_and_says_what_next(finished):
    page = good_page(finished.report)
    assert {"Rounds", "Parameters", "Real against simulated outcomes"} <= set(sections(page))
    assert "a simulation that is not MuJoCo" in page
    assert [c.split()[1] for c in finished.next_commands()] == ["plan", "train"]


def test_a_finished_loop_is_not_made_again_and_a_changed_file_is_noticed(file, finished):
    before = {p: p.stat().st_mtime_ns for p in finished.out.rglob("step.json")}
    loop(file, finished.out)
    assert before == {p: p.stat().st_mtime_ns for p in finished.out.rglob("step.json")}
    with pytest.raises(CaromError, match=r"other settings: config.seed 1 \(now 2\)"):
        loop(replace_seed(file), finished.out)
    chosen = finished.out / "round-01" / "train" / "strikes.json"
    text = chosen.read_text()
    chosen.write_text(text + " ")
    with pytest.raises(CaromError, match=r"strikes.json is not what this step wrote"):
        loop(file, finished.out)
    chosen.write_text(text)


def replace_seed(file):
    return read_config(file).model_copy(update={"seed": 2})


def test_a_loop_that_is_killed_ends_with_the_bytes_of_one_that_is_not(file, finished):
    out, rng = file.parent / "killed", np.random.default_rng(3)
    kills = 0
    while True:
        pid = os.fork()
        if not pid:
            with quick_strikes():
                loop(file, out)
            os._exit(0)
        until = time.monotonic() + float(rng.uniform(0.5, 3.0))
        while not (ended := os.waitpid(pid, os.WNOHANG)[0]) and (kills >= 3 or time.monotonic() < until):
            time.sleep(0.01)
        if ended:
            break
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        kills += 1
    assert kills
    assert content(out) == content(finished.out)


def test_a_person_in_place_of_the_stand_in(tmp_path):
    path = tmp_path / "loop.yaml"
    text = STRIKES.format(rounds=1, method="random").replace("resin-low", "person").replace("held_out: 8\n", "")
    path.write_text(text)
    done = carom("loop", path, "--out", tmp_path / "out", "--json", tmp_path / "said.json")
    assert done.returncode == 0, done.stderr
    waits = json.loads((tmp_path / "said.json").read_text())["waiting"]
    folder = tmp_path / "out" / "round-01" / "deploy" / "recordings"
    assert waits["folder"] == str(folder)
    assert np.shape(waits["rows"]) == (3, 4)
    said = " ".join(done.stdout.split())
    assert "x [m]" in said
    assert "run the same command again" in said

    rows = np.array(waits["rows"])
    commands = StrikeCommands(rows[:, :2], rows[:, 2:], np.zeros((3, 3)))
    lab = standin("resin-low", "square", seed=4)
    lab.execute(commands[[0, 1]], folder, seed=5)
    few = carom("loop", path, "--out", tmp_path / "out")
    assert few.returncode == 2
    assert "expected recordings of 3 strikes" in without_progress(few.stderr)
    assert "got 2; add those that are missing" in without_progress(few.stderr)

    spoilt = folder / "hit_000.csv"
    for place in folder.iterdir():
        place.unlink()
    folder.rmdir()
    lab.execute(commands, folder, seed=5)
    good = spoilt.read_text()
    spoilt.write_text(good.replace("time", "tame", 1))
    with pytest.raises(CaromError, match="errors were found"):
        loop(path, tmp_path / "out")
    spoilt.write_text(good)
    with quick_strikes():
        result = loop(path, tmp_path / "out")
    assert result.request is None
    assert [row["recordings"] for row in result.rows] == [0, 3]
    assert result.rows[0]["success"] is None  # no trials: each costs a person time


def carom(*arguments):
    command = [sys.executable, "-m", "carom", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)
