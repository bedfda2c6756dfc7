"""The web server: viser's, bound to this machine alone, and serving nothing but its own page.

viser by itself listens wherever it is told, takes the next port if one is taken, serves any file that a path with dots
leads to, lets a page share the scene over the internet, and loads a counter of visits from elsewhere. None of this is
wanted here. So the socket is opened by Carom, and every request goes through `Guard` first: it answers from a fixed
list of files and pages, refuses what was not addressed to this machine, and lets viser have only the web socket.
"""

from __future__ import annotations

import http
import json
import mimetypes
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl

from carom.core.errors import CaromError

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")  #: what a browser on this machine may call it
USUAL_PORT = 8642
SCENE = "/scene/"  #: where viser's own page is
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; frame-src 'self'; base-uri 'none'; "
    "connect-src 'self' ws://127.0.0.1:* ws://localhost:* data: blob:; form-action 'none'; object-src 'none'"
)
#: of viser's page: its own panel; ours has the controls
HIDDEN = ".mantine-Paper-root, img[src*=logo] { display: none !important }"
#: with these endings files need a type that a browser insists on
TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".hdr": "application/octet-stream"}


@dataclass
class Pages:
    """What is served beside viser's scene, by path; whoever plays the scene puts it here."""

    texts: dict[str, str] = field(default_factory=dict)  #: HTML by path
    now: Callable[[], Mapping[str, Any]] = dict  #: what the page asks for a few times a second
    set: Callable[[Mapping[str, str]], None] = field(default=lambda _: None)  #: what a person has chosen on the page


@dataclass(frozen=True)
class Guard:
    """Answers requests, and refuses those that do not come from a page of this server."""

    port: int
    files: Mapping[str, tuple[str, bytes]]  #: type and content by path
    pages: Pages

    def refusal(self, request: Any) -> str | None:
        """Why a request is not answered; None if it is."""
        here = {f"{name}:{self.port}" for name in NAMES}
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1 or hosts[0] not in here:
            return "this server answers to 127.0.0.1 and localhost only"
        if any(origin not in {f"http://{h}" for h in here} for origin in request.headers.get_all("Origin")):
            return "this server answers its own page only"
        return None

    def answer(self, request: Any) -> Any:
        """The response to a request; None: a web socket, which is viser's."""
        reason = self.refusal(request)
        if reason is not None:
            return _response(http.HTTPStatus.FORBIDDEN, "text/plain", reason.encode())
        if (request.headers.get("Upgrade") or "").lower() == "websocket":
            return None
        path = request.path.partition("?")[0]
        if path == "/set":
            if request.headers.get_all("X-Carom") != ["view"]:  # no other page can send this without being asked
                return _response(http.HTTPStatus.FORBIDDEN, "text/plain", b"this server answers its own page only")
            self.pages.set(dict(parse_qsl(request.path.partition("?")[2])[:8]))
            return _response(http.HTTPStatus.OK, "text/plain", b"")
        if path == "/now":
            return _response(http.HTTPStatus.OK, "application/json", json.dumps(self.pages.now()).encode())
        if path in self.pages.texts:
            return _response(http.HTTPStatus.OK, "text/html", self.pages.texts[path].encode())
        if path in self.files:
            return _response(http.HTTPStatus.OK, *self.files[path])
        return _response(http.HTTPStatus.NOT_FOUND, "text/plain", b"nothing is here")


def _response(status: http.HTTPStatus, kind: str, body: bytes) -> Any:
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    kind = kind if not kind.startswith("text/") else f"{kind}; charset=utf-8"
    headers = {
        "Content-Type": kind,
        "Content-Length": str(len(body)),
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return Response(int(status), status.phrase, Headers(**headers), body)


def client_files(root: Path) -> dict[str, tuple[str, bytes]]:
    """viser's own page with all that it loads, by path, in memory; without what it would fetch from elsewhere."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            found[SCENE + path.relative_to(root).as_posix()] = (kind, path.read_bytes())
    index = SCENE + "index.html"
    if index not in found:
        raise CaromError(
            "viser is installed without its page; reinstall it: pip install --force-reinstall 'carom[view]'"
        )
    page = without_counters(found[index][1].decode()).replace("</head>", f"<style>{HIDDEN}</style></head>")
    found[SCENE] = ("text/html", page.encode())
    found[index] = found[SCENE]
    return found


def without_counters(page: str) -> str:
    """A page without the scripts that load from, or report to, other machines.

    >>> without_counters('<script async src="https://a.b/c"></script><script type="module" src="./x.js"></script>')
    '<script type="module" src="./x.js"></script>'
    """
    page = re.sub(r"<script[^>]*\bsrc=\"https?:[^>]*>\s*</script>", "", page)
    return re.sub(r"<script>(?:(?!</script>).)*\bgtag\b.*?</script>", "", page, flags=re.S)


@dataclass(frozen=True)
class Place:
    """Where a page is to be: a socket of this machine alone."""

    socket: socket.socket

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    @property
    def address(self) -> str:
        """What a browser on this machine opens."""
        return f"http://{HOST}:{self.port}/"

    @classmethod
    @contextmanager
    def taken(cls, host: str = HOST, port: int | None = None) -> Iterator[Place]:
        """Take a port. Port 0: any free one; None: the usual one, or any free one if it is not free."""
        _viser()
        if host not in NAMES:
            raise CaromError(
                f"--host {host}: the viewer listens to this machine only (127.0.0.1 or localhost). To look from "
                f"another one, forward the port: ssh -L {USUAL_PORT}:{HOST}:{USUAL_PORT} USER@THIS_MACHINE"
            )
        place = cls(_listening(port))
        try:
            yield place
        finally:
            place.socket.close()


def _listening(port: int | None) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, USUAL_PORT if port is None else port))
        found.listen(64)
    except OSError as error:
        found.close()
        if port is None:
            return _listening(0)
        raise CaromError(
            f"--port {port} cannot be used ({error.strerror}); choose another one, or --port 0 for any free one"
        ) from error
    return found


def start(pages: Pages, place: Place) -> Any:
    """viser's server behind the guard; raises if the extra is not installed."""
    viser = _viser()
    import rich

    guard = Guard(place.port, client_files(Path(viser.__file__).parent / "client" / "build"), pages)
    rich.reconfigure(quiet=True)  # viser prints its address, and every visit, by `rich.print`
    with _guarded(place.socket, guard):
        server = viser.ViserServer(host=HOST, port=place.port, verbose=False)
    _without_sharing(server)
    return server


def _viser() -> Any:
    try:
        import viser
    except ImportError as error:
        raise CaromError(f"the viewer needs further libraries ({error}): pip install 'carom[view]'") from error
    return viser


@contextmanager
def _guarded(taken: socket.socket, guard: Guard) -> Iterator[None]:
    """viser's server as it starts, given this socket and this guard; it has no options for either."""
    from websockets.asyncio import server as sockets

    usual = sockets.serve

    def serve(handler: Any, host: str, port: int, **options: Any) -> Any:
        options["process_request"] = lambda _, request: guard.answer(request)
        return usual(handler, sock=taken, **options)

    with (
        patch.object(sockets, "serve", serve),
        patch("viser._client_autobuild.ensure_client_is_built", lambda: None),  # it may install Node.js
    ):
        yield


def _without_sharing(server: Any) -> None:
    """No page may ask viser to share the scene over the internet."""
    from viser import _messages

    handlers = server._websock_server._incoming_handlers
    for kind in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        if not handlers.pop(kind, None):
            raise CaromError("this version of viser is not known to stay on this machine; install the pinned one")
