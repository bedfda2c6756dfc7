"""The picture of Fig. 6: a cube strikes ten, in calibrated MuJoCo and in the graph simulator that learned from it.

`python -m carom.bench.bowling_picture --data DIR` writes docs/images/bowling.gif, and the last frame as bowling.png,
from the network that `carom bench graph` trained for its first draw. Drawing needs the extra `rl`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from carom.bench.benchmark import Options
from carom.bench.graph_models import calibrated, of_scenes
from carom.bench.graph_scenes import drawn, roll_out
from carom.core.rotations import matrices
from carom.envs.render import animation
from carom.report.style import INK, ORANGE, SOFT
from carom.scale import cubes
from carom.scenes.free import FreeScene
from carom.state import Array, Motion

FOLDER = Path("docs/images")
WIDTH, HEIGHT, HEAD = 320, 280, 30  #: [px] of a panel, and of the text above it
FINE = 3  #: drawn this much larger, then reduced: smooth edges
AIR = 0.05  #: [m] around what is drawn
EVERY, HELD = 6, 12  #: frames that are shown, and how long the end stays
SHADES = ("#d9dde2", "#f6d9bd")  #: of what stands, and of the cube that strikes


def pictures(scene: FreeScene, motions: dict[str, Motion]) -> list[NDArray[np.uint8]]:
    """The scene from above, one panel for each engine, with the other one's ends outlined."""
    first = next(iter(motions.values()))
    shown = np.concatenate([m.position[0, ..., :2].reshape(-1, 2) for m in motions.values()])
    low, high = shown.min(axis=0) - AIR, shown.max(axis=0) + AIR
    scale = FINE * float(min(WIDTH / (high[0] - low[0]), (HEIGHT - HEAD) / (high[1] - low[1])))
    frames, last = [], first.position.shape[1] - 1
    for number in [*range(0, last, EVERY), *[last] * HELD]:
        image = Image.new("RGB", (FINE * WIDTH * len(motions), FINE * HEIGHT), "white")
        draw = ImageDraw.Draw(image)
        for panel, (name, motion) in enumerate(motions.items()):
            centre = FINE * np.array([WIDTH * (panel + 0.5), HEAD + (HEIGHT - HEAD) / 2])
            view = ((low + high) / 2, scale, centre)
            for body in range(len(scene.bodies)):
                _cube(draw, scene, motion, (number, body), view, SHADES[int(body == 0)], INK)
            for other in motions.values():
                if other is not motion and number == last:
                    for body in range(len(scene.bodies)):
                        _cube(draw, scene, other, (number, body), view, None, ORANGE)
            font = ImageFont.load_default(14 * FINE)
            draw.text((FINE * (WIDTH * panel + 12), 8 * FINE), name, fill=INK, font=font)
        words = f"{number * (first.time[0, 1] - first.time[0, 0]):.2f} s"
        draw.text((FINE * 12, FINE * (HEIGHT - 20)), words, fill=SOFT, font=ImageFont.load_default(12 * FINE))
        size = (WIDTH * len(motions), HEIGHT)
        frames.append(np.asarray(image.resize(size, Image.Resampling.LANCZOS), dtype=np.uint8))
    return frames


def _cube(
    draw: ImageDraw.ImageDraw,
    scene: FreeScene,
    motion: Motion,
    which: tuple[int, int],
    view: tuple[Array, float, Array],
    fill: str | None,
    colour: str,
) -> None:
    """The outline of a body's upper face, seen from above."""
    frame, body = which
    middle, scale, centre = view
    half = np.asarray(scene.bodies[body].solid.extent) / 2
    corners = half * [[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]]
    turned = corners @ matrices(motion.quaternion[0, frame, body]).T + motion.position[0, frame, body]
    placed = centre + scale * (turned[:, :2] - middle) * [1.0, -1.0]
    points = [(float(x), float(y)) for x, y in placed]
    if fill:
        draw.polygon(points, fill=fill)
    draw.line([*points, *points[:2]], fill=colour, width=FINE, joint="curve")


def main() -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of recorded tosses")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder of the benchmark's models")
    given = parser.parse_args()
    o = Options(given.out, draws=1, data=given.data)
    found, learned = calibrated(o, 0), of_scenes(o, 0)
    scene, starts = drawn(cubes(bodies=(10, 10), rate=1 / found.period), found.contact, 1, o.seed)
    both = roll_out(scene, starts, found.contact, learned, o.seed)
    frames = pictures(scene, {"calibrated MuJoCo": both.mujoco, "graph simulator": both.graph})
    FOLDER.mkdir(parents=True, exist_ok=True)
    animation(frames, FOLDER / "bowling.gif", seconds=0.05)
    Image.fromarray(frames[-1]).save(FOLDER / "bowling.png")
    print(f"wrote {FOLDER / 'bowling.gif'} and bowling.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
