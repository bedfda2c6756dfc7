"""Every option of every command: a value that makes no sense ends in one line and exit code 2, before any work."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest
from said import without_progress
from typer.models import OptionInfo

from carom import cli

#: arguments that a command cannot do without; none of these folders exists
NEEDED = {
    "check": ["nowhere"],
    "import": ["nowhere", "--out", "X"],
    "identify": ["nowhere"],
    "suggest": ["nowhere"],
    "scale": ["nowhere", "--out", "X"],
    "train-graph": ["nowhere", "--out", "X"],
    "distill": ["nowhere", "--out", "X"],
    "adapt": ["nowhere", "--out", "X"],
    "predict": ["nowhere", "nowhere"],
    "plan": ["nowhere", "--target", "0.1", "0", "0"],
    "train": ["--out", "X"],
    "rollout": ["nowhere"],
    "loop": ["nowhere", "--out", "X"],
    "view": ["nowhere"],
    "evaluate": ["--train", "nowhere", "--test", "nowhere"],
    "demo": ["--out", "X"],
    "doctor": [],
    "export": ["nowhere", "--out", "X"],
    "bench": ["speed"],
}
KINDS = {
    int: ["-1", "1" + 30 * "0", "nan", "inf", "1e300", "", "x", "1.5"],
    float: ["nan", "inf", "-inf", "1e300", "-1e300", "", "x"],
    str: ["", " ", "nonsense-\x1b[31m[/x]"],
    Path: ["", " ", os.fsdecode(b"\xff\xfe")],
}
#: what is read, in which a name that does not exist is as good as one that makes no sense (what follows --cut and is no
#: kind of event is a file)
FOUND_MISSING = {
    "model",
    "graph",
    "params",
    "mesh",
    "rotate",
    "train",
    "test",
    "data",
    "bodies",
    "types",
    "time",
    "beside",
    "cut",
    "arm",
    "tool",
    "limits",
}


def options_of(command):
    """Name on the command line, kind of value, how many values, and the lowest, of each option with a value."""
    for name, hint in get_type_hints(command, include_extras=True).items():
        annotated = next((h for h in (hint, *get_args(hint)) if hasattr(h, "__metadata__")), None)
        if annotated is None or not isinstance(annotated.__metadata__[0], OptionInfo):
            continue  # an argument
        info, inner = annotated.__metadata__[0], annotated.__origin__
        inner = (
            next((h for h in get_args(inner) if h is not type(None)), inner) if type(None) in get_args(inner) else inner
        )
        kind = next((a for a in get_args(inner) if a in KINDS), inner)
        count = len(get_args(inner)) if get_origin(inner) is tuple else 1
        if kind is not bool:
            stated = [d for d in (info.default, *(info.param_decls or ())) if isinstance(d, str)]
            yield name, (stated or [f"--{name.replace('_', '-')}"])[0].partition("/")[0], kind, count, info.min


def cases():
    found = []
    for registered in cli.app.registered_commands:
        command = registered.name or registered.callback.__name__.replace("_", "-")
        for name, option, kind, count, low in options_of(registered.callback):
            kind = Path if name == "json_file" else kind
            words = [*(["0"] if kind is int and low != 0 else []), *KINDS[kind]]
            found += [
                pytest.param(command, name, option, [word] * count, id=f"{command} {option} {word!a:.30}")
                for word in words
            ]
    return found


def carom(monkeypatch, capsys, *arguments):
    """The command in this process: exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["carom", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    return ended.value.code, said.out, without_progress(said.err)


def test_the_options_are_found():
    """As many as there are: nothing of what follows can be left out unseen."""
    found = {(case.values[0], case.values[2]) for case in cases()}
    assert {command for command, _ in found} == set(NEEDED)
    assert {("plan", "--from"), ("identify", "--fix"), ("scale", "--size"), ("evaluate", "--json")} <= found
    assert len(found) > 70, len(found)


@pytest.mark.parametrize(("command", "name", "option", "words"), cases())
def test_nonsense_is_refused_at_the_door(monkeypatch, capsys, tmp_path, command, name, option, words):
    if command in ("train", "rollout"):
        pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    monkeypatch.chdir(tmp_path)
    needed = NEEDED[command]
    code, out, err = carom(monkeypatch, capsys, command, *needed, option, *words)
    assert code == 2, ascii((out, err))  # a worker cannot send names that are not UTF-8
    assert err.startswith("carom: ")
    assert err.count("\n") == 1
    assert not out
    assert "\x1b" not in err
    if name not in FOUND_MISSING or not words[0].strip():
        assert option in err, ascii(err)
    assert "No such option" not in err
    assert not list(tmp_path.iterdir())
