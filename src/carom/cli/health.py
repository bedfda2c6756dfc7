"""The command that looks at the installation: doctor."""

from __future__ import annotations

import typer

from carom import recipes
from carom.cli.console import Out, say, working
from carom.cli.options import Json


def doctor(json_file: Json = None) -> None:
    """Look whether this installation works, and say what to send with a bug report; exit code 1 if it does not."""
    printer = Out(json_file)
    with working(None) as (progress, _):
        result = recipes.doctor(progress=progress)
    printer.show(result)
    if result.broken:
        say("carom: this installation is broken", whole=True)
        raise typer.Exit(1)
