"""Plays a show: what was chosen on the page, what time it is, and what the page is told."""

from __future__ import annotations

from collections.abc import Mapping
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

import numpy as np

from carom.core.errors import CaromError
from carom.view.drawn import Drawing
from carom.view.page import SPEED_AT_FIRST, SPEEDS, figures_page, main_page
from carom.view.serving import Pages
from carom.view.shown import Show, arrows_at, errors_of

RATE = 30.0  #: frames a second, at most
STAYS = 0.6  #: [s] of the clock at the end before it plays again
MOST_TOLD = 3  #: impulses in words at a time


class Player:
    """Plays a show in viser's scene; `tick` is called again and again by whoever runs it.

    Requests of the page come in other threads. They wait in a queue until the next tick, so that only one thread ever
    changes the scene.
    """

    def __init__(self, server: Any, show: Show, pages: Pages) -> None:
        self.show, self.pages = show, pages
        self.index, self.now, self.playing, self.speed = 0, 0.0, True, speed_of(SPEED_AT_FIRST)
        self.off, self.arrows, self.ghosts = set[str](), True, True
        self._asked: SimpleQueue[Mapping[str, str]] = SimpleQueue()
        self._last, self._rested = monotonic(), 0.0
        self.drawing = Drawing(server)
        pages.texts["/"] = main_page(show)
        pages.now, pages.set = self.state, self._asked.put
        self.open(0)
        server.on_client_connect(self.drawing.look)

    def open(self, index: int) -> None:
        """Draw a take in place of the former one, and go to its first instant."""
        take = self.show.take(index)
        self.take, self._errors = take, errors_of(take)
        self.pages.texts["/figures"] = figures_page(take)
        self.off &= {track.name for track in take.tracks}
        self.now, self.index = take.ends[0], index
        self.drawing.draw(take)
        self.move()

    def tick(self) -> None:
        """Do what was asked for, go on by the time that has passed, and show it."""
        now = monotonic()
        passed, self._last = min(now - self._last, 0.2), now
        try:
            while True:
                self.obey(self._asked.get_nowait())
        except Empty:
            pass
        if self.playing:
            self.go_on(passed)
        self.move()

    def go_on(self, seconds: float) -> None:
        """Play for this long [s] of the clock; after a pause at the end it begins again."""
        first, last = self.take.ends
        if self.now < last:
            self.now, self._rested = min(self.now + seconds * self.speed, last), 0.0
            return
        self._rested += seconds
        if self._rested > STAYS:
            self.now, self._rested = first, 0.0

    def obey(self, asked: Mapping[str, str]) -> None:
        """Do what the page asks for; what it cannot mean is passed over."""
        try:
            self._obey(asked)
        except (ValueError, IndexError, KeyError, CaromError):
            return

    def _obey(self, asked: Mapping[str, str]) -> None:
        if "take" in asked and 0 <= (index := int(asked["take"])) < len(self.show.names):
            self.open(index)
        first, last = self.take.ends
        if "share" in asked and np.isfinite(share := float(asked["share"])):
            self.now = first + float(np.clip(share, 0.0, 1.0)) * (last - first)
        if "play" in asked:
            self.playing = asked["play"] == "1"
            self.now = first if self.playing and self.now >= last else self.now
        if "speed" in asked and asked["speed"] in SPEEDS:
            self.speed = speed_of(asked["speed"])
        if "track" in asked:
            name = self.take.tracks[int(asked["track"])].name
            (self.off.discard if asked["on"] == "1" else self.off.add)(name)
        self.arrows = asked.get("arrows", str(int(self.arrows))) == "1"
        self.ghosts = asked.get("ghosts", str(int(self.ghosts))) == "1"

    @property
    def on(self) -> frozenset[str]:
        """Tracks that are shown."""
        return frozenset(t.name for t in self.take.tracks) - self.off

    def move(self) -> None:
        """Put everything where it is now."""
        arrows = frozenset(arrows_at(self.take, self.now, self.on)) if self.arrows else frozenset()
        self.drawing.move(self.now, self.on, arrows, ghosts=self.ghosts)

    def state(self) -> dict[str, Any]:
        """What the page has to know."""
        take, (first, last) = self.take, self.take.ends
        share = 0.0 if last <= first else float(np.clip((self.now - first) / (last - first), 0.0, 1.0))
        strongest = sorted(
            (take.arrows[i] for i in arrows_at(take, self.now, self.on)), key=lambda a: -float(np.linalg.norm(a.vector))
        )
        return {
            "shown": self.index,
            "seconds": round(self.now, 4),
            "share": round(share, 4),
            "playing": self.playing,
            "told": " · ".join(a.words for a in strongest[:MOST_TOLD]) if self.arrows else "",
            "has_arrows": bool(take.arrows),
            "has_ghosts": any(t.ghosts for t in take.tracks),
            "tracks": [
                {"name": t.name, "colour": t.colour, "on": t.name not in self.off, "told": self._away(t.name)}
                for t in take.tracks
            ],
        }

    def _away(self, name: str) -> str:
        """How far a motion is from the recorded one now, in words."""
        if name not in self._errors:
            return ""
        time, by = self._errors[name]
        found = [float(np.interp(self.now, time[g], e[g])) for e, _ in by.values() if (g := np.isfinite(e)).any()]
        return f"{1e3 * found[0]:.1f} mm off" if found else ""


def speed_of(words: str) -> float:
    """Seconds of the motion in a second of the clock.

    >>> speed_of("1/4")
    0.25
    """
    above, _, below = words.partition("/")
    return float(above) / float(below or 1)
