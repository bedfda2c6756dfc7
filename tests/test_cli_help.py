"""Around the commands: help in groups, quiet, completion, and the doctor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_recordings import Strike, toss

from carom import cli, recipes
from carom.cli import console
from carom.cli.help import STAGES
from carom.recipes import doctoring
from carom.recordings import Recordings, write


@pytest.fixture
def carom(monkeypatch, capsys):
    """The command in this process: exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["carom", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    yield run
    console.hush(False)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Strikes, and tosses."""
    place = tmp_path_factory.mktemp("folders")
    hits = [Strike(striker_velocity=(0.05, 0.7 + 0.05 * s), duration=1.5).trajectory(s) for s in range(3)]
    found = {}
    for name, made in {"strikes": hits, "tosses": [toss(seed=s) for s in range(3)]}.items():
        named = tuple(replace(t, name=f"file_{i:02d}.csv") for i, t in enumerate(made))
        write(place / name, Recordings(place / name, named[0].bodies, named))
        found[name] = place / name
    return found


def headings(text: str) -> list[str]:
    return [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]


def test_every_command_stands_in_one_stage(carom):
    code, out, _ = carom("--help")
    assert code == 0
    assert headings(out) == ["Options", *STAGES]
    named = [name for names in STAGES.values() for name in names]
    known = [c.name or c.callback.__name__.replace("_", "-") for c in cli.app.registered_commands]
    assert sorted(named) == sorted(known)


def test_options_are_grouped_by_what_they_are_for(carom):
    _, out, _ = carom("identify", "--help")
    groups = ["Arguments", "Options", "For strikes", "For free bodies"]
    assert [name for name in headings(out) if name in groups] == groups
    assert headings(out)[-2:] == ["What is written", "How it is run"]
    strikes = out[out.index("For strikes:") : out.index("For free bodies:")]
    assert "--settle" in strikes
    assert "--fit" not in strikes


@pytest.mark.parametrize(
    ("kind", "shown", "hidden"), [("strikes", "--settle", "--fit"), ("tosses", "--fit", "--settle")]
)
def test_with_a_folder_the_help_leaves_out_what_is_for_others(carom, folders, kind, shown, hidden):
    code, out, _ = carom("identify", folders[kind], "--help")
    assert code == 0
    assert shown in out
    assert hidden not in out
    assert "options for other recordings: carom identify --help" in " ".join(out.split())


def test_a_folder_that_cannot_be_read_leaves_nothing_out(carom, tmp_path):
    (tmp_path / "recordings.yaml").write_text("format: [")
    _, out, _ = carom("identify", tmp_path, "--help")
    assert "--settle" in out
    assert "--fit" in out


def test_quiet_leaves_results_and_errors(carom, folders):
    code, loud, said = carom("check", folders["strikes"])
    assert code == 0
    assert "next: " in said
    code, out, err = carom("check", folders["strikes"], "--quiet")
    assert (code, out) == (0, loud)
    assert not [line for line in err.splitlines() if not line.startswith("warning")]
    code, _, err = carom("check", "-q", "nowhere")
    assert code == 2
    assert err.startswith("carom: ")
    assert carom("check", folders["strikes"])[2] == said  # and the next one is not quiet


@pytest.mark.parametrize(
    ("typed", "count", "found"), [("carom exp", 1, "export"), ("carom identify --qu", 2, "--quiet")]
)
def test_the_shell_completes(typed, count, found):
    asked = {"_CAROM_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(count)}
    code = "import sys; sys.argv = ['carom']; from carom.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **asked}
    )
    assert done.returncode == 0
    assert found in done.stdout.split()


def test_the_doctor_finds_this_installation_well(carom, tmp_path):
    code, out, err = carom("doctor", "--json", tmp_path / "doctor.json")
    found = json.loads((tmp_path / "doctor.json").read_text())
    states = {one["what"]: one["state"] for one in found["findings"]}
    assert code == 0, out
    assert not found["broken"]
    assert {"system", "mujoco", "extra ray", "a ball that falls", "a box that slides", "threads"} <= set(states)
    assert states["a ball that falls"] == states["network taught by mujoco"] == "ok"
    assert "this installation works" in err
    assert str(Path.home()) not in json.dumps(found) or str(Path.home()) == "/"


def test_the_doctor_says_what_is_broken(carom, monkeypatch):
    needed = [("mujoco", "99.0"), ("no-such-library", "1.0")]
    monkeypatch.setattr(doctoring, "_requirements", lambda: (needed, {"import": [("no-such-reader", "2")]}))
    monkeypatch.setattr(doctoring, "GRAVITY", 9.0)
    monkeypatch.setattr(doctoring, "BALL", doctoring.BALL.replace("{gravity}", "9.81"))
    monkeypatch.setattr(doctoring, "_networks", lambda: iter(()))

    def _threads():
        raise ZeroDivisionError("no cores")

    monkeypatch.setattr(doctoring, "_threads", _threads)
    code, out, err = carom("doctor")
    assert code == 1
    words = " ".join((out + err).split())
    assert "is older than 99.0: pip install --upgrade mujoco" in words
    assert "broken: no-such-library: no-such-library is missing" in words
    assert "optional: extra import: no-such-reader is missing; where it is wanted: pip install 'carom[import]'" in words
    assert "broken: a ball that falls:" in words
    assert "broken: threads: ZeroDivisionError" in words
    assert "something is broken" in words
    states = {one.what: one.state for one in recipes.doctor().findings}
    assert states["a box that slides"] == "ok"  # it is computed with the other gravity as well
