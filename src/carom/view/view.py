"""The recipe of `carom view`: find out what a path holds, compute it, serve it until someone ends it."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from time import sleep

from carom.core.progress import Progress, silent
from carom.view import serving
from carom.view.opened import opened
from carom.view.player import RATE, Player
from carom.view.shown import Show


def view(
    path: str | Path,
    beside: Sequence[str | Path] = (),
    *,
    host: str = serving.HOST,
    port: int | None = None,
    browser: bool = True,
    told: Callable[[str], None] = print,
    progress: Progress = silent,
) -> None:
    """Show what is in `path`, with what is in `beside`, on a page of this machine; returns when it is interrupted.

    `told` is given the address, once it can be opened.
    """
    with serving.Place.taken(host, port) as place:  # before any work
        show = opened(Path(path), [Path(p) for p in beside], progress=progress)
        serve(show, place, browser=browser, told=told)


def serve(show: Show, place: serving.Place, *, browser: bool, told: Callable[[str], None]) -> None:
    """Serve a show until it is interrupted."""
    pages = serving.Pages()
    server = serving.start(pages, place)
    try:
        player = Player(server, show, pages)
        told(place.address)
        if browser:
            webbrowser.open(place.address)
        while True:
            player.tick()
            sleep(1 / RATE)
    except KeyboardInterrupt:
        return
    finally:
        server.stop()
