"""The scene in the browser: bodies, arrows, ghosts and controls; it is drawn once per take, then only moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from carom.state import Array
from carom.view.page import figures_page, main_page
from carom.view.serving import Pages
from carom.view.shown import RECORDED, RECORDED_COLOUR, Show, Track, arrow_scale, arrows_at, errors_of, poses_at
from carom.view.solids import arrow, triangles

SPEEDS = ("1/20", "1/10", "1/4", "1/2", "1", "2")
SPEED_AT_FIRST = "1/4"  #: impacts are over in an instant
RATE = 30.0  #: frames a second, at most
MOST_NAMED = 500  #: takes that a list can hold for a person to choose from
GROUND = (236, 238, 240)


@dataclass
class Drawn:
    """The handles of one take's things in the scene."""

    bodies: dict[tuple[str, str], Any] = field(default_factory=dict)  #: by track and body
    ghosts: dict[tuple[str, int, str], Any] = field(default_factory=dict)
    arrows: list[Any] = field(default_factory=list)
    paths: dict[str, Any] = field(default_factory=dict)


class Player:
    """Plays a show in viser's scene; `tick` is called again and again by whoever runs it."""

    def __init__(self, server: Any, show: Show, pages: Pages) -> None:
        self.server, self.show, self.pages = server, show, pages
        self.take, self.drawn, self.now, self.playing = show.take(0), Drawn(), 0.0, True
        self._seen: Any = None  # what was shown last
        self._set, self._last, self._index = 0.0, monotonic(), -1
        server.scene.set_up_direction("+z")
        server.gui.configure_theme(
            control_layout="collapsible", control_width="medium", show_logo=False, show_share_button=False
        )
        server.gui.set_panel_label("Carom")
        pages.texts["/"] = main_page(show)
        pages.now = self.state
        self._choices()
        self.open(0)
        server.on_client_connect(self._look)

    def _choices(self) -> None:
        gui = self.server.gui
        names = self.show.names[:MOST_NAMED]
        self.choice = gui.add_dropdown("show", names, names[0]) if len(names) > 1 else None
        self.folder: Any = None

    def open(self, index: int) -> None:
        """Draw a take in place of the former one, and go to its first instant."""
        self._index, self.take = index, self.show.take(index)
        self.pages.texts["/figures"] = figures_page(self.take)
        with self.server.atomic():
            self.server.scene.reset()
            self._controls()
            self.drawn = Drawn()
            self._draw()
        self._errors = errors_of(self.take)
        self._seen = None
        self.move(self.now)
        for client in self.server.get_clients().values():
            self._look(client)

    def _controls(self) -> None:
        gui, take = self.server.gui, self.take
        if self.folder is not None:
            self.folder.remove()
        first, last = take.ends
        self.folder = gui.add_folder(take.name)
        self.now = self._set = first
        with self.folder:
            self.slider = gui.add_slider("time [s]", first, last, max((last - first) / 1000, 1e-4), first)
            self.button = gui.add_button("Pause" if self.playing else "Play")
            self.button.on_click(lambda _: self.toggle())
            self.speed = gui.add_dropdown("speed", SPEEDS, SPEED_AT_FIRST)
            self.boxes = {}
            for track in take.tracks:
                self.boxes[track.name] = gui.add_checkbox(track.name, True)
            self.with_arrows = gui.add_checkbox("impulses", True) if take.arrows else None
            ghosts = any(track.ghosts for track in take.tracks)
            self.with_ghosts = gui.add_checkbox("uncertainty (ghosts)", True) if ghosts else None
            self.words = gui.add_markdown("")

    def toggle(self) -> None:
        """Play or pause; at the end, play from the start."""
        self.playing = not self.playing
        if self.playing and self.now >= self.take.ends[1]:
            self.now = self.take.ends[0]
        self.button.label = "Pause" if self.playing else "Play"

    def _draw(self) -> None:
        scene, take = self.server.scene, self.take
        low, high = take.box()
        if take.ground is not None:
            self._draw_ground(low, high, take.ground)
        meshes = {name: triangles(shape) for name, shape in take.shapes.items()}
        for number, track in enumerate(take.tracks):
            for body in track.bodies:
                vertices, faces = meshes[body]
                opacity = None if track.name == RECORDED or take.recorded is None else 0.65
                options = {"color": rgb(track.colour), "flat_shading": True, "side": "double", "opacity": opacity}
                place = f"/track{number}/{body}"
                self.drawn.bodies[track.name, body] = scene.add_mesh_simple(place, vertices, faces, **options)
                for g, ghost in enumerate(track.ghosts):
                    if differs(track, ghost.position, ghost.quaternion, body):
                        faint = {**options, "opacity": 0.13}
                        handle = scene.add_mesh_simple(f"/ghost{number}_{g}/{body}", vertices, faces, **faint)
                        self.drawn.ghosts[track.name, g, body] = handle
            self._draw_path(number, track)
        for mark in take.marks:
            vertices, faces = meshes[mark.body]
            options = {"color": rgb(mark.colour), "wireframe": True}
            scene.add_mesh_simple(
                f"/mark/{mark.name}", vertices, faces, position=mark.position, wxyz=mark.quaternion, **options
            )
        for name, way in take.paths.items():
            pieces = np.stack([way[:-1], way[1:]], axis=1)
            scene.add_line_segments(f"/path/{name}", pieces, np.array(rgb(RECORDED_COLOUR), dtype=np.uint8), 2.0)
        scale = arrow_scale(take)
        thick = 0.02 * float(np.max(high - low)) / 2
        for number, one in enumerate(take.arrows):
            vertices, faces = arrow(one.point, scale[one.unit] * one.vector, thick)
            colour = rgb(next((t.colour for t in take.tracks if t.name == one.track), RECORDED_COLOUR))
            self.drawn.arrows.append(
                scene.add_mesh_simple(f"/arrow/{number}", vertices, faces, color=colour, side="double", visible=False)
            )

    def _draw_ground(self, low: Array, high: Array, height: float) -> None:
        middle, half = (low + high) / 2, 0.75 * float(np.max(high - low))
        corners = np.array([[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]])
        place = np.array([middle[0], middle[1], height])
        faces = np.array([[0, 1, 2], [0, 2, 3]])
        scene = self.server.scene
        below = place - [0, 0, 1e-3 * half]
        options = {"color": GROUND, "side": "double", "wxyz": self.take.tilt}
        scene.add_mesh_simple("/ground", corners, faces, position=below, **options)
        cell = 10.0 ** np.floor(np.log10(half))
        cells = {"cell_size": float(cell / 2), "section_size": float(cell)}
        scene.add_grid("/grid", 2 * half, 2 * half, **cells, position=place, wxyz=self.take.tilt)

    def _draw_path(self, number: int, track: Track) -> None:
        """The way of the first body, which is what is watched."""
        way = track.position[:, 0]
        way = way[np.isfinite(way).all(axis=1)]
        if len(way) > 1:
            pieces = np.stack([way[:-1], way[1:]], axis=1)
            self.drawn.paths[track.name] = self.server.scene.add_line_segments(
                f"/path{number}", pieces, np.array(rgb(track.colour), dtype=np.uint8), 2.0
            )

    def _look(self, client: Any) -> None:
        """Look at all of it from above and aside."""
        low, high = self.take.box()
        middle, size = (low + high) / 2, float(np.linalg.norm(high - low))
        client.camera.up_direction = (0.0, 0.0, 1.0)
        client.camera.position = middle + 0.8 * size * np.array([0.45, -0.75, 0.55])
        client.camera.look_at = middle

    def tick(self) -> None:
        """Go on by the time that has passed, and show what was chosen since."""
        now = monotonic()
        passed, self._last = now - self._last, now
        chosen = self._index if self.choice is None else self.show.names.index(self.choice.value)
        if chosen != self._index:
            self.open(chosen)
            return
        if abs(self.slider.value - self._set) > 1e-9:  # someone has moved it
            self.now = float(self.slider.value)
        elif self.playing:
            self.now += min(passed, 0.2) * speed_of(self.speed.value)
        first, last = self.take.ends
        if self.now >= last and self.playing:
            self.now = first if self.now > last + 0.6 * speed_of(self.speed.value) else self.now
        self.move(self.now)

    def move(self, now: float) -> None:
        """Put everything where it is at this time [s]."""
        first, last = self.take.ends
        at = float(np.clip(now, first, last))
        on = frozenset(name for name, box in self.boxes.items() if box.value)
        ghosts = self.with_ghosts is not None and bool(self.with_ghosts.value)
        arrows = set(arrows_at(self.take, at, on)) if self.with_arrows is not None and self.with_arrows.value else set()
        if (wanted := (at, on, ghosts, frozenset(arrows))) == self._seen:
            return
        self._seen = wanted
        with self.server.atomic():
            for track in self.take.tracks:
                self._move(track, at, track.name in on, ghosts)
            for number, handle in enumerate(self.drawn.arrows):
                if handle.visible != (number in arrows):
                    handle.visible = number in arrows
            self.slider.value = at
            self.words.content = self._told(at, on)
        self._set = self.slider.value
        if not self.playing or now <= last:
            self.now = at

    def _move(self, track: Track, at: float, on: bool, ghosts: bool) -> None:
        if (path := self.drawn.paths.get(track.name)) is not None and path.visible != on:
            path.visible = on
        places, turns, seen = poses_at(track.time, track.position, track.quaternion, at)
        for i, body in enumerate(track.bodies):
            _put(self.drawn.bodies[track.name, body], places[i], turns[i], bool(on and seen[i]))
        for g, ghost in enumerate(track.ghosts):
            places, turns, seen = poses_at(track.time, ghost.position, ghost.quaternion, at)
            for i, body in enumerate(track.bodies):
                handle = self.drawn.ghosts.get((track.name, g, body))
                if handle is not None:
                    _put(handle, places[i], turns[i], bool(on and ghosts and seen[i]))

    def _told(self, at: float, on: frozenset[str]) -> str:
        """Names with their colours, and how far each is from what was recorded now."""
        lines = []
        for track in self.take.tracks:
            if track.name not in on:
                continue
            told = ""
            if track.name in self._errors:
                time, by = self._errors[track.name]
                away = [float(np.interp(at, time, e)) for e, _ in by.values() if np.isfinite(e).any()][:1]
                told = "" if not away or not np.isfinite(away[0]) else f": {1e3 * away[0]:.1f} mm off"
            lines.append(f"`{track.colour}` {track.name}{told}")
        for i in arrows_at(self.take, at, on)[:4]:
            lines.append(f"→ {self.take.arrows[i].words}")
        return "\n\n".join(lines)

    def state(self) -> dict[str, Any]:
        """What the page around the scene has to know."""
        first, last = self.take.ends
        share = 0.0 if last <= first else float(np.clip((self.now - first) / (last - first), 0.0, 1.0))
        return {"shown": self._index, "name": self.take.name, "seconds": round(self.now, 4), "share": round(share, 4)}


def _put(handle: Any, place: Array, turn: Array, visible: bool) -> None:
    if handle.visible != visible:
        handle.visible = visible
    if visible:
        handle.position, handle.wxyz = place, turn


def differs(track: Track, position: Array, quaternion: Array, body: str) -> bool:
    """Whether a ghost's body ever is somewhere else than the track's."""
    i = track.bodies.index(body)
    apart = np.nan_to_num(np.abs(position[:, i] - track.position[:, i])).max()
    turned = np.nan_to_num(np.abs(quaternion[:, i] - track.quaternion[:, i])).max()
    return bool(apart > 1e-6 or turned > 1e-6)


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour.

    >>> rgb("#0072b2")
    (0, 114, 178)
    """
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def speed_of(words: str) -> float:
    """Seconds of the motion in a second of the clock.

    >>> speed_of("1/4")
    0.25
    """
    above, _, below = words.partition("/")
    return float(above) / float(below or 1)
