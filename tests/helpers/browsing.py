"""A page in a real, headless Chromium, as wide as asked for: its picture, what it says, and what it loaded."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.request import urlopen

import numpy as np

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--remote-debugging-port=0",
)


class Page:
    """One page under the browser's own protocol for tools."""

    def __init__(self, socket: Any) -> None:
        self.socket, self.number, self.loaded = socket, 0, []

    def ask(self, method: str, **values: Any) -> dict[str, Any]:
        """The answer to a command; notes every address that is loaded meanwhile."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": values}))
        while True:
            told = json.loads(self.socket.recv(timeout=60))
            if told.get("method") == "Network.requestWillBeSent":
                self.loaded.append(told["params"]["request"]["url"])
            if told.get("method") == "Network.webSocketCreated":
                self.loaded.append(told["params"]["url"])
            if told.get("id") == self.number:
                assert "error" not in told, told
                return told["result"]

    def open(self, address: str, width: int, height: int) -> None:
        """Go to an address, seen as wide as this [px]."""
        self.ask("Network.enable")
        self.ask("Page.enable")
        narrow = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=narrow)
        self.ask("Page.navigate", url=address)

    def value(self, expression: str) -> Any:
        """What JavaScript finds."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 60.0) -> bool:
        """Whether something becomes true in time."""
        end = monotonic() + seconds
        while monotonic() < end:
            if self.value(f"(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"):
                return True
            sleep(0.25)
        return False

    def picture(self) -> bytes:
        """What is to be seen, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


def pixels(picture: bytes) -> np.ndarray:
    """A PNG as an array [H, W, 3]."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))


@contextmanager
def browsed(folder: Path, address: str, width: int, height: int) -> Iterator[Page]:
    """A page of Chromium at an address, whose profile is in a folder."""
    from websockets.sync.client import connect

    assert CHROMIUM is not None
    profile = folder / "profile"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"]
    with (folder / "chromium.log").open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        told, end = profile / "DevToolsActivePort", monotonic() + 60
        while not (told.is_file() and told.read_text().strip()):
            if running.poll() is not None or monotonic() > end:
                raise RuntimeError(f"Chromium does not run here: {(folder / 'chromium.log').read_text()[-300:]}")
            sleep(0.1)
        port = told.read_text().split()[0]
        with urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            place = next(t["webSocketDebuggerUrl"] for t in json.load(answer) if t["type"] == "page")
        with connect(place, max_size=None) as socket:
            page = Page(socket)
            page.open(address, width, height)
            yield page
    finally:
        running.terminate()
        running.wait(30)
