"""Pictures of the table from above: corridor, sub-goals, the block, its last strike and its former rests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from carom.core.errors import CaromError
from carom.envs.batch import StrikeBatch
from carom.envs.task import HALF_WIDTH, REACH, STRIKES
from carom.state import Array, rotate

Pixels = NDArray[np.uint8]
Colour = tuple[int, int, int]

WIDTH = 480  #: [px]
MARGIN = 0.11  #: [m] of table around the corridor
HEADER = 30  #: [px] for the text
FINE = 3  #: drawn this much larger, then reduced: smooth edges
BLOW = 0.12  #: [s] the arrow of a strike is its velocity times this

TABLE: Colour = (233, 224, 206)
CORRIDOR: Colour = (250, 247, 240)
BORDER: Colour = (176, 160, 132)
LINE: Colour = (205, 193, 170)
GOAL: Colour = (38, 139, 94)
LATER: Colour = (160, 190, 172)
BLOCK: Colour = (52, 86, 139)
EDGE: Colour = (33, 58, 100)
MARK: Colour = (245, 190, 65)
GHOST: Colour = (168, 182, 208)
STRIKER: Colour = (200, 70, 48)
INK: Colour = (60, 55, 48)


@dataclass(frozen=True)
class Canvas:
    """World coordinates on an image."""

    image: Image.Image
    draw: ImageDraw.ImageDraw
    low: Array  #: [2] world corner at the lower left [m]
    scale: float  #: [px/m] of the fine image
    bottom: float  #: [px]

    def at(self, points: Array) -> list[tuple[float, float]]:
        """World points [M, 2] [m] on the image."""
        p = (np.atleast_2d(points) - self.low) * self.scale
        return [(float(x), float(self.bottom - y)) for x, y in p]

    def polygon(self, points: Array, fill: Colour | None, outline: Colour | None = None, width: int = 2) -> None:
        places = self.at(points)
        if fill is not None:
            self.draw.polygon(places, fill=fill)
        if outline is not None:
            self.draw.line([*places, places[0], places[1]], fill=outline, width=width * FINE, joint="curve")

    def circle(self, centre: Array, radius: float, fill: Colour | None, outline: Colour | None = None) -> None:
        turn = np.linspace(0.0, 2 * np.pi, 61)[:-1]
        self.polygon(centre + radius * np.stack([np.cos(turn), np.sin(turn)], axis=-1), fill, outline)

    def arrow(self, start: Array, end: Array, colour: Colour, width: int = 3) -> None:
        """A shaft and a head whose tip is `end`."""
        way = end - start
        length = float(np.linalg.norm(way))
        if length < 1e-6:
            return
        ahead = way / length
        size = min(0.014, 0.6 * length)
        side = 0.5 * size * np.array([-ahead[1], ahead[0]])
        neck = end - size * ahead
        self.draw.line(self.at(np.stack([start, neck])), fill=colour, width=width * FINE)
        self.polygon(np.stack([end, neck + side, neck - side]), colour)


def checked_mode(mode: str | None) -> str | None:
    """A render mode that there is."""
    if mode not in (None, "rgb_array"):
        raise CaromError(f"render_mode: expected None or 'rgb_array', got '{mode}'")
    return mode


def frame(batch: StrikeBatch, row: int = 0) -> Pixels:
    """One task as an RGB picture [H, W, 3], 480 pixels wide."""
    if not 0 <= row < batch.count:
        raise CaromError(f"row: expected 0 to {batch.count - 1}, got {row}")
    canvas = _table(batch.points)
    _corridor(canvas, batch.points)
    _sub_goals(canvas, batch, row)
    for former in batch.trail[row][np.isfinite(batch.trail[row, :, 0])]:
        canvas.polygon(_outline(batch, former), None, GHOST)
    _block(canvas, batch, row)
    _last_strike(canvas, batch.blow[row])
    _text(canvas, batch, row)
    size = (WIDTH, canvas.image.height // FINE)
    return np.asarray(canvas.image.resize(size, Image.Resampling.LANCZOS), dtype=np.uint8)


def animation(frames: Sequence[Pixels], path: Path, *, seconds: float = 0.6) -> None:
    """Frames as a GIF that repeats, each shown this long."""
    if not len(frames):
        raise CaromError("animation: expected one frame or more, got none")
    if not 0.02 <= seconds <= 60:
        raise CaromError(f"animation: expected 0.02 to 60 seconds for each frame, got {seconds}")
    height, width = (max(f.shape[i] for f in frames) for i in (0, 1))
    pictures = [Image.new("RGB", (width, height), "white") for _ in frames]  # routes need tables of their own size
    for picture, pixels in zip(pictures, frames, strict=True):
        picture.paste(Image.fromarray(pixels), (0, 0))
    images = [picture.quantize(colors=256, dither=Image.Dither.NONE) for picture in pictures]
    more = {"save_all": True, "append_images": images[1:], "duration": round(1000 * seconds), "loop": 0}
    images[0].save(path, format="GIF", optimize=True, **more)


def _table(corners: Array) -> Canvas:
    low, high = corners.min(axis=0) - MARGIN, corners.max(axis=0) + MARGIN
    scale = FINE * WIDTH / float(high[0] - low[0])
    if high[1] - low[1] > 2 * (high[0] - low[0]):  # a route that goes up: as wide, and no taller than twice that
        middle, half = (low[0] + high[0]) / 2, (high[1] - low[1]) / 4
        low[0], high[0] = middle - half, middle + half
        scale = FINE * WIDTH / float(high[0] - low[0])
    height = FINE * (round(scale * float(high[1] - low[1]) / FINE) + HEADER)
    image = Image.new("RGB", (FINE * WIDTH, height), TABLE)
    return Canvas(image, ImageDraw.Draw(image), low, scale, float(height))


def _corridor(canvas: Canvas, corners: Array) -> None:
    """The safe zone with its border: the same shape twice, the inner one narrower by the border."""
    border = 1.5 * FINE / canvas.scale
    for half, colour in ((HALF_WIDTH + border, BORDER), (HALF_WIDTH, CORRIDOR)):
        for start, end in pairwise(corners):
            along = (end - start) / np.linalg.norm(end - start)
            side = half * np.array([-along[1], along[0]])
            canvas.polygon(np.stack([start + side, end + side, end - side, start - side]), colour)
        for corner in corners:
            canvas.circle(corner, half, colour)
    for start, end in pairwise(corners):
        for low in np.arange(0.0, 1.0, 0.1):
            piece = np.stack([start + low * (end - start), start + (low + 0.05) * (end - start)])
            canvas.draw.line(canvas.at(piece), fill=LINE, width=FINE)


def _sub_goals(canvas: Canvas, batch: StrikeBatch, row: int) -> None:
    current = int(batch.current[row])
    for index, goal in enumerate(batch.goals[row]):
        if index >= current:
            colour = GOAL if index == current else LATER
            canvas.circle(goal[:2], REACH, None, colour)
            canvas.circle(goal[:2], 0.003, colour)
            ahead = np.array([np.cos(goal[2]), np.sin(goal[2])])
            canvas.arrow(goal[:2], goal[:2] + 0.07 * ahead, colour, 2)


def _outline(batch: StrikeBatch, pose: Array) -> Array:
    """The block's outline [M, 2] at a heading pose, world [m]."""
    x, y, yaw = batch.of_frame(pose[None])[0]
    return np.array([x, y]) + rotate(batch.scene.outline.vertices, yaw)


def _block(canvas: Canvas, batch: StrikeBatch, row: int) -> None:
    """The block, its heading, and the point of it that has to reach the sub-goal."""
    pose = batch.pose[row]
    outline = _outline(batch, pose)
    canvas.polygon(outline, BLOCK, EDGE)
    heading = batch.heading[row]
    ahead = np.array([np.cos(heading), np.sin(heading)])
    reach = (outline - pose[:2]) @ ahead
    tail, tip = np.quantile([reach.min(), reach.max()], [0.15, 0.85])
    canvas.arrow(pose[:2] + tail * ahead, pose[:2] + tip * ahead, (255, 255, 255), 2)
    canvas.circle(pose[:2], 0.0055, MARK, EDGE)


def _last_strike(canvas: Canvas, blow: Array) -> None:
    if np.isfinite(blow).all():
        canvas.arrow(blow[:2] - BLOW * blow[2:], blow[:2], STRIKER, 3)


def _text(canvas: Canvas, batch: StrikeBatch, row: int) -> None:
    total, away = batch.goals.shape[1], np.linalg.norm(batch.goal[row, :2] - batch.pose[row, :2])
    words = (
        f"strike {int(batch.strikes[row])}/{STRIKES}    sub-goals {int(batch.stage[row])}/{total}",
        "arrived" if batch.stage[row] == total else f"{100 * away:.1f} cm to go",
    )
    canvas.draw.rectangle((0, 0, canvas.image.width, HEADER * FINE), fill=(255, 255, 255))
    font = ImageFont.load_default(15 * FINE)
    canvas.draw.text((10 * FINE, HEADER * FINE / 2), words[0], fill=INK, font=font, anchor="lm")
    canvas.draw.text((canvas.image.width - 10 * FINE, HEADER * FINE / 2), words[1], fill=INK, font=font, anchor="rm")
