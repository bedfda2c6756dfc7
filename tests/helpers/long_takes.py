"""Long takes with known events: a block that is struck, pushed or tossed, and put back by hand in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from carom.recordings import Trajectory
from carom.recordings.formats.take import Track
from carom.scenes.shapes import Body

RATE = 200.0
NOISE = 5e-5  #: [m]
FALL = np.array([0.0, 0.0, -9.81])


@dataclass
class LongTake:
    """A block and a tool over time, grown piece by piece; both begin at rest, the tool 0.3 m before the block."""

    block: list[np.ndarray] = field(default_factory=lambda: [np.tile([0.0, 0.0, 0.05], (100, 1))])
    tool: list[np.ndarray] = field(default_factory=lambda: [np.tile([0.0, -0.3, 0.05], (100, 1))])
    events: list[tuple[float, float]] = field(default_factory=list)  #: [s] when the block moves in an event

    @property
    def now(self) -> float:
        return sum(map(len, self.block)) / RATE

    def go(self, block: np.ndarray, tool: np.ndarray) -> None:
        """Both along given paths [T, 3]."""
        self.block.append(block)
        self.tool.append(tool)

    def rest(self, seconds: float) -> None:
        count = round(seconds * RATE)
        self.go(np.tile(self.block[-1][-1], (count, 1)), np.tile(self.tool[-1][-1], (count, 1)))

    def put_back(self, place: tuple[float, float, float], seconds: float = 1.5, lift: float = 0.12) -> None:
        """By hand: lifted, carried and set down softly, while the tool goes home."""
        along = np.linspace(0, 1, round(seconds * RATE))
        smooth = along**2 * (3 - 2 * along)
        start, home = self.block[-1][-1], np.array([place[0], place[1] - 0.3, 0.05])
        path = start + np.outer(smooth, np.array(place) - start)
        path[:, 2] += lift * np.sin(np.pi * along) ** 2
        self.go(path, self.tool[-1][-1] + np.outer(smooth, home - self.tool[-1][-1]))

    def strike(self, speed: float = 0.8, braking: float = 2.0) -> None:
        """The tool comes at `speed`, the block leaves it 1.3 times as fast and slides until friction stops it."""
        gap = self.block[-1][-1][1] - self.tool[-1][-1][1] - 0.115
        before = np.arange(0, 2 * gap / speed, 1 / RATE)  # evenly faster, until it is at `speed`
        approach = self.tool[-1][-1] + np.outer(gap * (before * speed / (2 * gap)) ** 2, [0, 1, 0])
        self.go(np.tile(self.block[-1][-1], (len(before), 1)), approach)
        begin, leaving = self.now, 1.3 * speed
        time = np.arange(1, round(1.2 * RATE)) / RATE
        run = np.minimum(time, leaving / braking)
        slid = leaving * run - 0.5 * braking * run**2
        followed = 0.5 * speed * (0.15 * (1 - np.exp(-time / 0.15)))  # the blow takes half of its speed
        self.go(self.block[-1][-1] + np.outer(slid, [0, 1, 0]), self.tool[-1][-1] + np.outer(followed, [0, 1, 0]))
        self.events.append((begin, begin + leaving / braking))

    def push(self, speed: float = 0.06, seconds: float = 1.5) -> None:
        """The tool comes near, pushes slowly, and stops; so does the block."""
        gap = self.block[-1][-1][1] - self.tool[-1][-1][1] - 0.115
        near = np.linspace(0, gap, round(0.8 * RATE))
        self.go(np.tile(self.block[-1][-1], (len(near), 1)), self.tool[-1][-1] + np.outer(near, [0, 1, 0]))
        along = np.linspace(0, 1, round(seconds * RATE))
        way = np.outer(speed * seconds * (along**2 * (3 - 2 * along)), [0, 1, 0])
        self.events.append((self.now, self.now + seconds))
        self.go(self.block[-1][-1] + way, self.tool[-1][-1] + way)

    def toss(self, up: float = 2.0, bounce: float = 0.4) -> None:
        """Thrown from the hand, falls, bounces until it lies."""
        swing = np.linspace(0, 1, round(0.25 * RATE))
        start = self.block[-1][-1]
        self.go(start + np.outer(up * 0.125 * swing**2, [0, 0, 1]), np.tile(self.tool[-1][-1], (len(swing), 1)))
        begin, height, speed, ahead = self.now, self.block[-1][-1][2], up, 0.6
        path = []
        for _ in range(round(1.6 * RATE)):
            speed -= 9.81 / RATE
            height += speed / RATE + 0.5 * 9.81 / RATE**2
            if height <= 0.05:
                height, speed, ahead = 0.05, bounce * abs(speed) if abs(speed) > 0.3 else 0.0, ahead * 0.6
                ahead = 0.0 if speed == 0.0 else ahead
            path.append([ahead / RATE, height])
        moved = np.cumsum([p[0] for p in path])
        block = np.column_stack([start[0] + 0 * moved, start[1] + moved, [p[1] for p in path]])
        self.go(block, np.tile(self.tool[-1][-1], (len(block), 1)))
        self.events.append((begin, begin + 0.4))

    def arrays(self, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Stamps, places of the block and of the tool, with a tracker's noise."""
        rng = np.random.default_rng(seed)
        block, tool = (np.concatenate(p) for p in (self.block, self.tool))
        noise = NOISE * rng.standard_normal((2, len(block), 3))
        return np.arange(len(block)) / RATE, block + noise[0], tool + noise[1]

    def trajectory(self, shapes: dict[str, Body]) -> Trajectory:
        time, block, tool = self.arrays()
        still = np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))
        places = {"block": block, "tool": tool}
        return Trajectory("take", Path("take.csv"), time, places, {"block": still, "tool": still}, shapes)

    def tracks(self) -> tuple[Track, Track]:
        time, block, tool = self.arrays()
        still = np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))
        return Track("block", time, block, still), Track("tool", time, tool, still)
