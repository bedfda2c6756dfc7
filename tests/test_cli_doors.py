"""What a shell does to a command: closed streams, readers that leave, and places that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from synthetic_recordings import Strike

from carom.recordings import Recordings, write

CAROM = f"{sys.executable} -m carom"


def shell(text, cwd):
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=cwd, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    place = tmp_path_factory.mktemp("lab") / "[/x]\x1b[31m"
    trajectory = Strike(duration=1.0).trajectory(0)
    write(place, Recordings(place, trajectory.bodies, (trajectory,)))
    return place


def test_a_reader_that_leaves_ends_the_command_quietly(lab):
    code, out, err = shell(f"{CAROM} check '[/x]'* | (read line; echo $line); echo ${{PIPESTATUS[0]}}", lab.parents[1])
    assert code == 0
    assert out.splitlines()[-1] in ("0", "141")  # it may have written everything before the reader left
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_a_pipe_that_nobody_reads_is_said_by_the_exit_code(lab):
    read, write_end = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "carom", "check", str(lab)], stdout=write_end, stderr=subprocess.PIPE, timeout=120
    )
    os.close(write_end)
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(lab, closed):
    code, _, err = shell(f"{CAROM} check '[/x]'* {closed}", lab.parents[1])
    assert code == 0
    assert "Traceback" not in err


def test_json_for_a_closed_stdout_is_refused(lab):
    code, _, err = shell(f"{CAROM} check '[/x]'* --json - >&-", lab.parents[1])
    assert code == 2
    assert "stdout is closed" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_under_stdout_is_an_error(lab):
    code, _, err = shell(f"{CAROM} check '[/x]'* > /dev/full", lab.parents[1])
    assert code == 2
    assert err.strip().splitlines()[-1].startswith("carom: ")
    assert "Traceback" not in err


def test_names_that_are_markup_or_commands_to_the_terminal_are_shown(lab):
    code, out, err = shell(f"{CAROM} check '[/x]'*", lab.parents[1])
    assert code == 0, err
    assert r"[/x]\x1b[31m" in out
    assert "\x1b" not in out + err
    done = subprocess.run(
        [sys.executable, "-m", "carom", "check", str(lab / "[red]\x1b[2Jgone")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert "\x1b" not in done.stdout + done.stderr
    assert r"[red]\x1b[2Jgone: no such folder" in done.stderr


def test_letters_that_a_terminal_lacks_are_escaped(tmp_path):
    trajectory = Strike(duration=1.0).trajectory(0)
    write(tmp_path / "würfel", Recordings(tmp_path, trajectory.bodies, (trajectory,)))
    code, out, err = shell(f"PYTHONIOENCODING=ascii {CAROM} check würfel", tmp_path)
    assert code == 0, err
    assert r"w\xfcrfel" in out


OUTPUTS = {
    "import": ("nowhere", "--out"),
    "distill": ("square", "--out"),
    "adapt": ("nowhere", "--out"),
    "scale": ("toss", "--out"),
    "identify": ("nowhere", "--out"),
    "train": ("--out",),
    "demo": ("--out",),
    "plan": ("nowhere", "--target", "0.1", "0", "0", "--report"),
    "rollout": ("nowhere", "--animation"),
    "check": ("nowhere", "--json"),
}


@pytest.mark.parametrize("command", OUTPUTS)
def test_a_place_that_cannot_be_made_is_refused_before_the_work(tmp_path, command, monkeypatch, capsys):
    from carom import cli

    (tmp_path / "file").write_text("here")
    monkeypatch.setattr(sys, "argv", ["carom", command, *OUTPUTS[command], str(tmp_path / "file" / "x.gif")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert f"cannot be made: {tmp_path / 'file'} is a file" in err
    assert OUTPUTS[command][-1] in err
    assert err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_refused_before_the_work(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o555)
    code, _, err = shell(f"{CAROM} distill square --out locked/base", tmp_path)
    assert code == 2
    assert "cannot be written into" in err
