"""The README's picture: one strike planned in calibrated MuJoCo and one in the hybrid, and what came of them.

`python -m carom.bench.picture` writes docs/images/planned_strike.gif. It is one repeat of `carom bench planning` (the
first target of the semi-cylinder, the first ten strikes), on a stand-in reality. Drawing needs the extra `rl`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from carom.bench.benchmark import Options
from carom.bench.impact_accuracy import SHAPE_SETTING
from carom.bench.planning import BUDGET, SHAPES, hybrid_of, learned, reachable_targets
from carom.compare.simulators import mujoco_simulator
from carom.engines.contract import Simulator
from carom.envs.render import animation
from carom.plan import approach, plan_strike, strike_space
from carom.plan.search import HORIZON
from carom.reality import standin
from carom.recipes.plan_page import executed_motion
from carom.recordings import read
from carom.report.style import BLUE, INK, ORANGE, PURPLE, SOFT
from carom.state import Array, rotate, wrap_angle

PATH = Path("docs/images/planned_strike.gif")
FRAMES, HELD = 30, 20  #: frames of the motion, and of the end
WIDTH, HEIGHT, HEAD = 360, 260, 52  #: [px] of a panel, and of the text above it
FINE = 3  #: drawn this much larger, then reduced: smooth edges
AIR = 0.03  #: [m] around what is drawn


@dataclass(frozen=True)
class Strike:
    """A planned strike and what came of it, at the same instants."""

    title: str
    wanted: Array  #: [3] x, y, yaw [m, m, rad]
    planned: Array  #: [T, 3]
    executed: Array  #: [T, 3]
    striker: Array  #: [T, 2]


def strike_in(simulator: Simulator, wanted: Array, title: str, folder: Path, *, seed: int) -> Strike:
    """Plan in a simulator, carry out on the stand-in, and bring both to the same instants."""
    space = strike_space(simulator.scene, np.zeros(3))
    plan = plan_strike(simulator, space, wanted, method="cma", budget=BUDGET, seed=seed)
    run = simulator.rollout(approach(simulator.scene, plan.commands), HORIZON, frames=20 * FRAMES)
    reality = standin(SHAPE_SETTING, SHAPES[0], seed=seed + 1)
    if not (folder / "recordings.yaml").is_file():
        reality.execute(plan.commands, folder, seed=seed)
    clock, poses = executed_motion(read(folder))
    since = run.time[0] - float(run.contact_time[0])
    moving = np.flatnonzero(np.abs(run.target_velocity[0]).max(axis=-1) > 0)
    last = max(since[min(moving[-1] + 1, len(since) - 1)], clock[-1])
    even = np.linspace(since[0], last, FRAMES)

    def at(time: Array, path: Array) -> Array:
        return np.column_stack([np.interp(even, time, path[:, c]) for c in range(path.shape[1])])

    return Strike(title, wanted, at(since, run.target_pose[0]), at(clock, poses), at(since, run.striker_pose[0, :, :2]))


def drawn(strikes: list[Strike], outline: Array) -> list[NDArray[np.uint8]]:
    """The frames, one panel beside the other; all panels show the same piece of the table."""
    shown = np.vstack([p for s in strikes for p in (s.wanted[None], s.planned, s.executed)])
    reach = float(np.linalg.norm(outline, axis=1).max()) + AIR
    low, high = shown[:, :2].min(axis=0) - reach, shown[:, :2].max(axis=0) + reach
    scale = FINE * float(min(WIDTH / (high[0] - low[0]), (HEIGHT - HEAD) / (high[1] - low[1])))
    middle = (low + high) / 2
    frames = []
    for number in [*range(FRAMES), *[FRAMES - 1] * HELD]:
        image = Image.new("RGB", (FINE * WIDTH * len(strikes), FINE * HEIGHT), "white")
        draw = ImageDraw.Draw(image)
        for panel, strike in enumerate(strikes):
            centre = FINE * np.array([WIDTH * (panel + 0.5), HEAD + (HEIGHT - HEAD) / 2])
            _panel(draw, strike, number, outline, (middle, scale, centre))
        size = (WIDTH * len(strikes), HEIGHT)
        frames.append(np.asarray(image.resize(size, Image.Resampling.LANCZOS), dtype=np.uint8))
    return frames


def _panel(
    draw: ImageDraw.ImageDraw, strike: Strike, number: int, outline: Array, view: tuple[Array, float, Array]
) -> None:
    middle, scale, centre = view

    def on_image(points: Array) -> list[tuple[float, float]]:
        placed = centre + scale * (points - middle) * [1.0, -1.0]
        return [(float(x), float(y)) for x, y in placed]

    def block(pose: Array, colour: str, fill: str | None = None, width: int = 2) -> None:
        corners = on_image(rotate(outline, pose[2]) + pose[:2])
        if fill:
            draw.polygon(corners, fill=fill)
        draw.line([*corners, *corners[:2]], fill=colour, width=width * FINE, joint="curve")

    planned, executed = strike.planned[number], strike.executed[number]
    draw.line(on_image(strike.executed[: number + 1, :2]), fill=SOFT, width=FINE)
    block(executed, INK, "#d9dde2")
    block(planned, ORANGE)
    block(strike.wanted, BLUE, width=1)
    ((x, y),) = on_image(strike.striker[number][None])
    draw.ellipse([x - 5 * FINE, y - 5 * FINE, x + 5 * FINE, y + 5 * FINE], fill=PURPLE)
    font, left = ImageFont.load_default(14 * FINE), float(centre[0]) - FINE * (WIDTH / 2 - 12)
    draw.text((left, 8 * FINE), strike.title, fill=INK, font=font)
    end = strike.executed[-1] - strike.wanted
    error = (
        f"{1e3 * np.linalg.norm(end[:2]):.0f} mm and {abs(np.degrees(wrap_angle(end[2]))):.0f}° from the wanted pose"
    )
    draw.text((left, 28 * FINE), error if number == FRAMES - 1 else "", fill=SOFT, font=font)


def main() -> int:
    """Make the picture; what was learned for it is kept in out/bench."""
    options = Options(Path("out/bench"), draws=1, samples=60_000)
    lesson, recordings = learned(options, SHAPES[0], 0)
    hybrid = hybrid_of(lesson, recordings).simulator("hybrid")
    mujoco = mujoco_simulator(lesson)
    wanted = reachable_targets(strike_space(lesson.scene, np.zeros(3)), SHAPES[0], options.seed)[0]
    strikes = [
        strike_in(engine, wanted, f"planned in {title}", options.out / "picture" / name, seed=options.seed)
        for name, title, engine in (("mujoco", "calibrated MuJoCo", mujoco), ("hybrid", "Carom's hybrid", hybrid))
    ]
    PATH.parent.mkdir(parents=True, exist_ok=True)
    animation(drawn(strikes, lesson.scene.outline.vertices), PATH, seconds=0.07)
    print(f"wrote {PATH}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
