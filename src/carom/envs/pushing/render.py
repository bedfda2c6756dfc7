"""Pictures of a pushing task from above: the block, where it should be, the tool and its way."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from carom.core.rotations import yaw
from carom.envs.pushing.batch import PushingBatch
from carom.envs.pushing.starts import Zone
from carom.envs.pushing.task import NEAR
from carom.envs.render import (
    BLOCK,
    BORDER,
    CORRIDOR,
    EDGE,
    FINE,
    GHOST,
    GOAL,
    HEADER,
    INK,
    STRIKER,
    TABLE,
    WIDTH,
    Canvas,
    Pixels,
)
from carom.scenes.pushing.robots import ROUND
from carom.state import Array, rotate

MARGIN = 0.02  #: [m] of table around the part in reach


def frame(batch: PushingBatch, trail: Array, row: int = 0) -> Pixels:
    """One task as an RGB picture [H, W, 3], 480 pixels wide; `trail` [K, 2] is where the block was [m]."""
    task, state = batch.task, batch.state
    ring = _outline(task.places.border)
    low, high = ring.min(axis=0) - MARGIN, ring.max(axis=0) + MARGIN
    scale = FINE * WIDTH / float(high[0] - low[0])
    height = FINE * (round(scale * float(high[1] - low[1]) / FINE) + HEADER)
    image = Image.new("RGB", (FINE * WIDTH, height), TABLE)
    canvas = Canvas(image, ImageDraw.Draw(image), low, scale, float(height))
    canvas.polygon(ring, CORRIDOR, BORDER)
    goal, turn = batch.goals.position[row], float(yaw(batch.goals.quaternion[[row]])[0])
    pose, heading = state.position[row, 0], float(yaw(state.quaternion[[row], 0])[0])
    if len(trail) > 1:
        canvas.draw.line(canvas.at(trail), fill=GHOST, width=2 * FINE)
    for part in task.scene.corners:
        canvas.polygon(pose[:2] + rotate(part, heading), BLOCK, EDGE)
    if task.turns:
        for part in task.scene.corners:
            canvas.polygon(goal[:2] + rotate(part, turn), None, GOAL)
    else:
        canvas.circle(goal[:2], NEAR["cube"], None, GOAL)
    canvas.circle(goal[:2], 0.003, GOAL)
    canvas.circle(task.scene.tool_position(state.joint_position[[row]])[0, :2], ROUND, STRIKER)
    _text(canvas, batch, row)
    return np.asarray(image.resize((WIDTH, height // FINE), Image.Resampling.LANCZOS), dtype=np.uint8)


def _outline(zone: Zone) -> Array:
    """The outline [M, 2] of a part of the table [m]."""
    turn = np.linspace(-zone.aside, zone.aside, 91)
    around = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    inner = zone.near * around[::-1] if zone.near > 0 or zone.aside < np.pi else np.zeros((0, 2))
    return np.asarray(zone.centre + np.concatenate([zone.far * around, inner]))


def _text(canvas: Canvas, batch: PushingBatch, row: int) -> None:
    away, turned = batch.task.errors(batch.state, batch.goals)
    words = f"{100 * away[row]:.1f} cm" + (f", {np.degrees(turned[row]):.0f} degrees" if batch.task.turns else "")
    canvas.draw.rectangle((0, 0, canvas.image.width, HEADER * FINE), fill=(255, 255, 255))
    font, middle = ImageFont.load_default(15 * FINE), HEADER * FINE / 2
    canvas.draw.text((10 * FINE, middle), f"period {int(batch.elapsed[row])}", fill=INK, font=font, anchor="lm")
    canvas.draw.text((canvas.image.width - 10 * FINE, middle), f"{words} to go", fill=INK, font=font, anchor="rm")
