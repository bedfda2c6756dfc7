"""Ctrl-C: what a command says of what it kept is true of that command."""

from __future__ import annotations

import sys

import pytest

from carom import cli

SAID = {
    "train": "what was finished is kept, the same command goes on from there",
    "scale": "what was finished is kept, the same command goes on from there",
    "demo": "recordings and base models that it made are kept",
    "adapt": "the model is not finished, the same command starts anew",
    "identify": "nothing was kept, the same command starts anew",
    "plan": "nothing was kept, the same command starts anew",
    "check": "nothing was kept, the same command starts anew",
}


@pytest.mark.parametrize("command", SAID)
def test_what_was_kept_is_said_by_command(monkeypatch, capsys, command):
    def stop(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", stop)
    monkeypatch.setattr(sys, "argv", ["carom", command, "somewhere", "--out", "train"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert f"carom: stopped; {SAID[command]}" in capsys.readouterr().err
