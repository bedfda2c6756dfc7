"""The command that closes the gap by itself: loop."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from carom.cli.console import run
from carom.cli.options import Json, On, new_folder


def loop(
    config: Annotated[Path, typer.Argument(help="what to do, as YAML (docs/loop.md has every key)")],
    out: Annotated[
        Path, typer.Option(callback=new_folder, help="folder for the rounds; an interrupted loop goes on there")
    ],
    on: On = None,
    json_file: Json = None,
) -> None:
    """Run the real-sim-real loop: tune, train, deploy, record, again. Resumes after a kill, and after a person."""
    rounds = import_module("carom.loop")  # heavy: not when the command line starts
    run(json_file, lambda progress: rounds.loop(config, out, progress=progress), on=on)
