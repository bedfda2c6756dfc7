"""The page is this machine's alone, and nothing but it is served; the scene holds the poses of the time."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.scenes.shapes import Shape
from carom.view import Arrow, Ghost, Place, Show, Take, Track
from carom.view.shown import RECORDED

viser = pytest.importorskip("viser", reason="needs the extra 'view'")

from carom.view import serving  # noqa: E402
from carom.view.page import main_page  # noqa: E402
from carom.view.player import Player  # noqa: E402


def made(index: int) -> Take:
    time = np.linspace(0.0, 1.0, 21)
    real, other = np.zeros((21, 1, 3)), np.zeros((21, 1, 3))
    real[:, 0, 0], other[:, 0, 0] = time * (index + 1), 2 * time * (index + 1)
    turn = about_z(0.5 * time)[:, None]
    ghost = Ghost(other + np.array([0.0, 0.1, 0.0]), turn)
    arrow = Arrow("engine", 0.4, 0.6, np.zeros(3), np.array([1.0, 0.0, 0.0]), "1 N s")
    tracks = (
        Track(RECORDED, ("cube",), time, real, turn),
        Track("engine", ("cube",), time, other, turn, "#0072b2", (ghost,)),
    )
    return Take(f"take {index}", {"cube": Shape("box", size=(0.1, 0.1, 0.1))}, tracks, (arrow,))


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Player, Place]]:
    pages = serving.Pages()
    with Place.taken(port=0) as place:
        server = serving.start(pages, place)
        yield Player(server, Show("two takes", ("take 0", "take 1"), made), pages), place
        server.stop()


def asked(place: Place, path: str, **headers: str) -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=20)
    connection.request("GET", path, headers={"Host": f"127.0.0.1:{place.port}", **headers})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def test_only_this_machine_is_listened_to(running: tuple[Player, Place]) -> None:
    _, place = running
    assert place.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(OSError, match=r"refused|assign"):  # another address of the same machine
        socket.create_connection(("127.0.0.2", place.port), timeout=5)
    with pytest.raises(CaromError, match="this machine only"), Place.taken("0.0.0.0", 0):
        pass


def test_a_port_that_is_taken_is_said(running: tuple[Player, Place]) -> None:
    _, place = running
    with pytest.raises(CaromError, match=f"--port {place.port} cannot be used.*--port 0"), Place.taken(port=place.port):
        pass


def test_nothing_of_the_file_system_is_served(running: tuple[Player, Place]) -> None:
    _, place = running
    for path in (
        "/etc/passwd",
        "/../../../../../../../../etc/passwd",
        "/scene/../../../../../../../../../../etc/passwd",
        "/scene/%2e%2e/%2e%2e/package.json",
        "/scene/assets",
        "//etc/passwd",
        f"/{Path(__file__)}",
    ):
        assert asked(place, path)[0] == 404, path


def test_pages_of_other_sites_are_refused(running: tuple[Player, Place]) -> None:
    _, place = running
    assert asked(place, "/", Host="carom.example:80")[0] == 403  # a name that was pointed at this machine
    for headers in ({"Origin": "https://carom.example"}, {"Origin": "null"}):
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        assert asked(place, "/scene", **upgrade, **key, **headers)[0] == 403


def test_the_pages_load_nothing_from_elsewhere(running: tuple[Player, Place]) -> None:
    _, place = running
    for path in ("/", "/figures", "/scene/"):
        status, body, headers = asked(place, path)
        assert status == 200
        assert b'src="http' not in body
        assert b"googletagmanager" not in body
        assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert b"<script" in asked(place, "/scene/")[1]


def test_viser_cannot_be_asked_to_share_the_scene(running: tuple[Player, Place]) -> None:
    player, _ = running
    from viser import _messages

    assert _messages.ShareUrlRequest not in player.drawing.server._websock_server._incoming_handlers


def test_the_scene_holds_the_poses_arrows_and_ghosts_of_the_time(running: tuple[Player, Place]) -> None:
    player, place = running
    player.playing = False
    player.open(0)
    player.obey({"share": "0.5"})
    player.move()
    drawing = player.drawing
    assert np.allclose(drawing.bodies[RECORDED, "cube"].position, [0.5, 0, 0])
    assert np.allclose(drawing.bodies["engine", "cube"].position, [1.0, 0, 0])
    assert np.allclose(drawing.bodies["engine", "cube"].wxyz, about_z(0.25), atol=1e-4)
    assert np.allclose(drawing.ghosts["engine", 0, "cube"].position, [1.0, 0.1, 0])
    assert drawing.arrows[0].visible
    told = json.loads(asked(place, "/now")[1])
    assert told["share"] == pytest.approx(0.5)
    assert told["told"] == "1 N s"
    assert told["tracks"][1]["told"] == "500.0 mm off"
    player.obey({"share": "0.9"})
    player.move()
    assert not drawing.arrows[0].visible
    assert b"Errors of cube" in asked(place, "/figures")[1]


def test_a_track_is_hidden_with_its_ghosts_and_arrows(running: tuple[Player, Place]) -> None:
    player, _ = running
    player.playing = False
    player.open(0)
    player.obey({"track": "1", "on": "0", "share": "0.5"})
    player.move()
    drawing = player.drawing
    assert not drawing.bodies["engine", "cube"].visible
    assert not drawing.ghosts["engine", 0, "cube"].visible
    assert not drawing.arrows[0].visible
    assert drawing.bodies[RECORDED, "cube"].visible
    player.obey({"track": "1", "on": "1", "ghosts": "0", "arrows": "0"})
    player.move()
    assert drawing.bodies["engine", "cube"].visible
    assert not drawing.ghosts["engine", 0, "cube"].visible
    assert not drawing.arrows[0].visible
    player.obey({"ghosts": "1", "arrows": "1"})


def test_it_plays_at_its_speed_seeks_rests_at_the_end_and_begins_again(running: tuple[Player, Place]) -> None:
    player, _ = running
    player.open(0)
    player.obey({"share": "0.75", "speed": "1/2", "play": "1"})
    player.go_on(0.1)
    assert player.now == pytest.approx(0.8)
    player.go_on(1.0)
    assert player.now == 1.0
    player.go_on(0.3)
    assert player.now == 1.0
    player.go_on(0.4)
    assert player.now == 0.0
    player.obey({"play": "0"})


def test_the_page_chooses_what_is_shown(running: tuple[Player, Place]) -> None:
    player, place = running
    ours = {"X-Carom": "view"}
    assert asked(place, "/set?take=1&share=0.5&play=0")[0] == 403  # an image of another site cannot say who asks
    assert asked(place, "/set?take=1&share=0.5&play=0", **ours)[0] == 200
    player.tick()
    assert np.allclose(player.drawing.bodies[RECORDED, "cube"].position, [1.0, 0, 0])
    for nonsense in ("take=7", "take=x", "share=nan", "speed=99", "track=9&on=1", "track=0", "%ff=%00"):
        asked(place, f"/set?{nonsense}", **ours)
    player.tick()
    assert json.loads(asked(place, "/now")[1])["shown"] == 1
    assert 0 <= player.now <= 1
    asked(place, "/set?take=0", **ours)
    player.tick()
    assert json.loads(asked(place, "/now")[1])["shown"] == 0


def test_names_are_text_and_nothing_else() -> None:
    pages = main_page(Show("<script>a</script>", ("<b>one</b>", "{x}"), made))
    assert "<script>a" not in pages
    assert "<b>one" not in pages
