"""The command to look at things: view."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from carom.cli.console import say, working


def view(
    path: Annotated[
        Path,
        typer.Argument(help="recordings, an adapted model, a plan, a policy, a graph simulator, or a loop's round"),
    ],
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            help="what to show beside it: a model, identified parameters, a graph simulator, recordings; several times",
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="of the page; 0: any free one; default: 8642 if it is free")
    ] = None,
    host: Annotated[str, typer.Option(help="127.0.0.1 or localhost: only this machine can look")] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", help="print the address, and open no browser")] = False,
) -> None:
    """Look at motions in 3-D in the browser: recorded against simulated, with contacts and errors. Ctrl-C ends it."""
    viewer = import_module("carom.view")  # heavy: not when the command line starts
    with viewer.Place.taken(host, port) as place:  # before any work
        with working(None) as (progress, _):
            show = viewer.opened(path, beside or (), progress=progress)
        viewer.serve(
            show,
            place,
            browser=not no_open,
            told=lambda address: say(f"{address} (only from this machine; Ctrl-C ends it)", whole=True),
        )
