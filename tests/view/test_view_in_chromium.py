"""The viewer in a real browser, as wide as a desk and as a phone: the scene is there, nothing comes from elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browsing import CHROMIUM, browsed, pixels
from free_recordings import tosses_folder

from carom.view import Place, opened

pytest.importorskip("viser", reason="needs the extra 'view'")

from carom.view import serving
from carom.view.player import Player


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    show = opened(tosses_folder(tmp_path_factory.mktemp("lab") / "tosses", 2, seed=3))
    pages, over = serving.Pages(), threading.Event()
    with Place.taken(port=0) as place:
        server = serving.start(pages, place)
        player = Player(server, show, pages)
        player.playing = False

        def play() -> None:
            while not over.wait(0.05):
                player.tick()

        playing = threading.Thread(target=play)
        playing.start()
        yield place.address
        over.set()
        playing.join()
        server.stop()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_page_shows_the_scene_and_stays_on_this_machine(
    address: str, tmp_path: Path, width: int, height: int
) -> None:
    scene = "document.getElementById('scene')"
    with browsed(tmp_path, address, width, height) as page:
        assert page.wait(f"{scene}.contentDocument.querySelector('canvas')", 90)
        box = page.value(f"(r => [r.left, r.top, r.right, r.bottom].map(Math.round))({scene}.getBoundingClientRect())")
        left, top, right, bottom = box

        def coloured() -> int:
            """Pixels of the scene that are of a body: neither white nor the ground's grey."""
            part = pixels(page.picture())[top:bottom, left:right].astype(int)
            return int((np.ptp(part, axis=-1) > 25).sum())

        for _ in range(60):
            if coloured() > 1000:
                break
            page.wait("false", 1.0)
        assert coloured() > 1000
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.wait("document.getElementById('figures').contentDocument.querySelector('svg.panel .now')", 30)
        inner = page.value("document.getElementById('figures').contentDocument.documentElement.scrollWidth")
        assert inner <= width
        page.value("(() => { const t = document.getElementById('time'); t.value = 500; t.oninput(); })()")
        assert page.wait("parseFloat(document.getElementById('now').textContent) > 0.1", 30)
        hosts = {url.split("/")[2] for url in page.loaded if url.split(":")[0] in ("http", "https", "ws", "wss")}
        assert hosts == {address.split("/")[2]}
        controls = page.value("document.getElementById('told').getBoundingClientRect().bottom")
        assert controls <= height + 1  # scene and controls fit the screen together
