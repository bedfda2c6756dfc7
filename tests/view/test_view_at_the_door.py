"""`carom view` as one types it: what cannot be is said in one line, and Ctrl-C is a clean end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from urllib.request import urlopen

import pytest
from free_recordings import tosses_folder
from typer.testing import CliRunner

from carom import cli
from carom.core.errors import CaromError
from carom.view import Place, opened

pytest.importorskip("viser", reason="needs the extra 'view'")


@pytest.fixture(scope="module")
def tosses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tosses_folder(tmp_path_factory.mktemp("lab") / "tosses", 1, seed=3)


def refused(*words: str) -> str:
    """What the command says in place of a page."""
    done = CliRunner().invoke(cli.app, ["view", *words, "--no-open"])
    assert isinstance(done.exception, CaromError | SystemExit), done.exception
    said = str(done.exception) if isinstance(done.exception, CaromError) else done.output
    assert "\n" not in said.strip()
    return said


def test_addresses_of_other_machines_are_refused_before_any_work(tosses: Path) -> None:
    for host in ("0.0.0.0", "::", "192.168.0.2", "example.org"):
        assert "this machine only" in refused(str(tosses), "--host", host)


def test_a_port_in_use_and_what_cannot_be_shown_are_said(tosses: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"--port {port} cannot be used" in refused(str(tosses), "--port", port)
    assert "expected recordings, an adapted model" in refused(str(tmp_path))
    assert "does not exist" in refused(str(tosses), "--with", str(tmp_path / "none"))
    assert f"carom view {tosses}" in refused(str(tosses.parent))


def test_without_the_extra_it_says_what_to_install(tosses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    assert "pip install 'carom[view]'" in refused(str(tosses))
    assert opened(tosses).names  # what is shown needs no viewer


def test_two_viewers_find_ports_of_their_own() -> None:
    with Place.taken(port=0) as one, Place.taken(port=0) as other:
        assert one.port != other.port


def test_it_serves_until_ctrl_c_and_ends_cleanly(tosses: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "carom", "view", str(tosses), "--port", "0", "--no-open"]
    log = tmp_path / "log"
    with log.open("w") as out:
        running = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        end = monotonic() + 120
        while "http://127.0.0.1:" not in log.read_text():
            assert running.poll() is None, log.read_text()
            assert monotonic() < end
            sleep(0.2)
        address = next(word for word in log.read_text().split() if word.startswith("http://127.0.0.1:"))
        with urlopen(address) as answer:
            assert b"toss" in answer.read()
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0
        assert "Traceback" not in log.read_text()
    finally:
        running.kill()
