"""The scene in the browser: bodies, arrows and ghosts. Each take is drawn once, and then only moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.state import Array
from carom.view.shown import RECORDED, RECORDED_COLOUR, Take, Track, arrow_scale, poses_at
from carom.view.solids import arrow, triangles

GROUND = (236, 238, 240)
SOLID = 0.85  #: opacity of a recorded body that hides arrows
SEEN_THROUGH = 0.55  #: opacity of what is simulated, where something recorded stands beside it
VIEW = 0.8  #: angle from top to bottom of the picture [rad]
GHOST = 0.12  #: opacity of a ghost
FROM = np.array([0.45, -0.75, 0.55])  #: where it is looked at from, over the size of what is shown


class Drawing:
    """viser's scene."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.take: Take | None = None
        self._seen: object = None  #: what was shown last
        self.bodies: dict[tuple[str, str], Any] = {}  #: by track and body
        self.ghosts: dict[tuple[str, int, str], Any] = {}  #: by track, number and body
        self.arrows: list[Any] = []
        self.paths: dict[str, Any] = {}  #: by track
        server.scene.set_up_direction("+z")
        # the page has its own controls; without the button to share, viser 0.2.23 breaks down on a phone
        server.gui.configure_theme(show_logo=False, show_share_button=True)

    def draw(self, take: Take) -> None:
        """Draw a take in place of the former one."""
        self.take, self._seen = take, None
        self.bodies, self.ghosts, self.arrows, self.paths = {}, {}, [], {}
        low, high = take.box()
        with self.server.atomic():
            self.server.scene.reset()
            if take.ground is not None:
                self._ground(low, high, take)
            self._tracks(take)
            self._marks(take)
            self._arrows(take, 0.006 * float(np.linalg.norm(high - low)))
        for client in self.server.get_clients().values():
            self.look(client)

    def _tracks(self, take: Take) -> None:
        scene, meshes = self.server.scene, {name: triangles(shape) for name, shape in take.shapes.items()}
        for number, track in enumerate(take.tracks):
            solid = track.name == RECORDED or take.recorded is None
            whole = SOLID if take.arrows else None
            look = {"color": rgb(track.colour), "flat_shading": True, "side": "double"}
            for body in track.bodies:
                handle = scene.add_mesh_simple(
                    f"/track{number}/{named(body)}", *meshes[body], opacity=whole if solid else SEEN_THROUGH, **look
                )
                self.bodies[track.name, body] = handle
                for g, ghost in enumerate(track.ghosts):
                    if differs(track, ghost.position, ghost.quaternion, body):
                        place = f"/ghost{number}_{g}/{named(body)}"
                        handle = scene.add_mesh_simple(place, *meshes[body], opacity=GHOST, **look)
                        self.ghosts[track.name, g, body] = handle
            way = track.position[:, 0]  # of the first body, which is what is watched
            way = way[np.isfinite(way).all(axis=1)]
            if len(way) > 1:
                self.paths[track.name] = self._line(f"/way{number}", way, track.colour)

    def _marks(self, take: Take) -> None:
        for number, mark in enumerate(take.marks):
            vertices, faces = triangles(take.shapes[mark.body])
            look = {"color": rgb(mark.colour), "wireframe": True, "position": mark.position, "wxyz": mark.quaternion}
            self.server.scene.add_mesh_simple(f"/mark{number}", vertices, faces, **look)
        for number, way in enumerate(take.paths.values()):
            self._line(f"/path{number}", way, RECORDED_COLOUR)

    def _line(self, name: str, way: Array, colour: str) -> Any:
        pieces = np.stack([way[:-1], way[1:]], axis=1)
        return self.server.scene.add_line_segments(name, pieces, np.array(rgb(colour), dtype=np.uint8), 2.0)

    def _arrows(self, take: Take, thick: float) -> None:
        scale, colours = arrow_scale(take), {t.name: t.colour for t in take.tracks}
        for number, one in enumerate(take.arrows):
            vector = scale[one.unit] * one.vector
            vertices, faces = arrow(one.point - vector if one.ends else one.point, vector, thick)
            look = {"color": rgb(colours.get(one.track, RECORDED_COLOUR)), "side": "double", "visible": False}
            self.arrows.append(self.server.scene.add_mesh_simple(f"/arrow{number}", vertices, faces, **look))

    def _ground(self, low: Array, high: Array, take: Take) -> None:
        middle, half = (low + high) / 2, 0.62 * float(np.max((high - low)[:2]))
        cell = float(10.0 ** np.floor(np.log10(half)))
        half = cell / 2 * float(np.ceil(2 * half / cell))
        corners = np.array([[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]])
        place, scene = np.array([middle[0], middle[1], float(take.ground or 0.0)]), self.server.scene
        look = {"color": GROUND, "side": "double", "wxyz": take.tilt, "position": place - [0, 0, 2e-3 * half]}
        scene.add_mesh_simple("/ground", corners, np.array([[0, 1, 2], [0, 2, 3]]), **look)
        cells = {"cell_size": cell / 2, "section_size": cell}
        scene.add_grid("/grid", 2 * half, 2 * half, **cells, position=place, wxyz=take.tilt)

    def look(self, client: Any) -> None:
        """Look at all of it from above and aside."""
        if self.take is None:
            return
        low, high = self.take.box()
        middle, size = (low + high) / 2, float(np.linalg.norm(high - low))
        client.camera.up_direction = (0.0, 0.0, 1.0)
        client.camera.fov = VIEW
        narrow = float(np.clip(1 / max(client.camera.aspect, 0.1), 1.0, 2.2))
        client.camera.position = middle + 0.9 * size * narrow * FROM
        client.camera.look_at = middle

    def move(self, now: float, on: frozenset[str], arrows: frozenset[int], *, ghosts: bool) -> None:
        """Put everything where it is at this time [s]; `on` are the tracks and `arrows` those that are to be seen."""
        wanted = (now, on, arrows, ghosts)
        if self.take is None or wanted == self._seen:
            return
        self._seen = wanted
        with self.server.atomic():
            for track in self.take.tracks:
                self._move(track, now, track.name in on, ghosts)
            for number, handle in enumerate(self.arrows):
                if handle.visible != (number in arrows):
                    handle.visible = number in arrows

    def _move(self, track: Track, now: float, on: bool, ghosts: bool) -> None:
        if (path := self.paths.get(track.name)) is not None and path.visible != on:
            path.visible = on
        places, turns, seen = poses_at(track.time, track.position, track.quaternion, now)
        for i, body in enumerate(track.bodies):
            put(self.bodies[track.name, body], places[i], turns[i], bool(on and seen[i]))
        for g, ghost in enumerate(track.ghosts):
            places, turns, seen = poses_at(track.time, ghost.position, ghost.quaternion, now)
            for i, body in enumerate(track.bodies):
                if (handle := self.ghosts.get((track.name, g, body))) is not None:
                    put(handle, places[i], turns[i], bool(on and ghosts and seen[i]))


def put(handle: Any, place: Array, turn: Array, visible: bool) -> None:
    """Move a body, or hide it; nothing is sent that has not changed."""
    if handle.visible != visible:
        handle.visible = visible
    if visible and not (np.array_equal(handle.position, place) and np.array_equal(handle.wxyz, turn)):
        handle.position, handle.wxyz = place, turn


def differs(track: Track, position: Array, quaternion: Array, body: str) -> bool:
    """Whether a ghost's body ever is somewhere else than the track's."""
    i = track.bodies.index(body)
    apart = np.nan_to_num(np.abs(position[:, i] - track.position[:, i])).max()
    turned = np.nan_to_num(np.abs(quaternion[:, i] - track.quaternion[:, i])).max()
    return bool(apart > 1e-6 or turned > 1e-6)


def named(body: str) -> str:
    """A body's name as one step of a path in the scene."""
    return body.replace("/", "_")


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour.

    >>> rgb("#0072b2")
    (0, 114, 178)
    """
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
