"""Tables of slides: made from integrated ones, and tried on others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from carom.core.progress import Steps
from carom.engines.slide_table import BEND, CLOSE, MOST, SlideTable
from carom.state import Array

if TYPE_CHECKING:
    from carom.engines.slider import Slider

NEAR = 1e-4  #: [m] that a slide's end may lie off the integrated one
TURNED = float(np.radians(0.1))  #: [rad] that it may be turned off it
LOST = 1e-3  #: share of slides that may be further off, up to three times as far
FINE_STEP, FINE_TAIL = 0.25, 0.01  #: of the integrator that tables are made with: twice as fine as usual
DIRECTIONS = 48  #: of the glide in the body's frame, all around
FAR = 24.0  #: v^2 / (2 mu g k), about the turn of a fast slide [rad], up to which tables go: the rest is integrated
LEAST = 1e-3  #: of the table's highest speed, that stands for none
TRIED = 2048  #: slides that a table is tried on
TOGETHER = 1024  #: slides integrated at a time


def make_table(slider: Slider, top: float, *, progress: Steps | None = None) -> SlideTable:
    """The ends of a slider's slides up to speeds |(vx, vy, k wz)| of `top` [m/s], or as far as a table holds."""
    grip, growth = slider.friction * slider.gravity, slider.viscosity * slider.gravity
    top = min(top, float(np.sqrt(2 * grip * slider.gyration * FAR)))
    turns = top**2 / (2 * grip * slider.gyration)
    folds = _folds(slider.points)
    sizes = max(DIRECTIONS // folds, 12), 2 * round(15 + turns) + 1, round(13 + 1.3 * turns)
    direction = np.arange(sizes[0]) * 2 * np.pi / folds / sizes[0]
    angle = CLOSE * np.sinh(MOST * np.linspace(-1.0, 1.0, sizes[1]))
    bent = np.linspace(0.0, 1 + BEND, sizes[2])
    pace = top * np.maximum((np.sqrt(1 + 4 * BEND * bent) - 1) / (2 * BEND), LEAST)
    image = _image(slider.points, sizes[0], folds)
    half = 0 if image is None else sizes[1] // 2  # of a base that is its own mirror image, one way to turn will do
    nodes = np.stack([part.ravel() for part in np.meshgrid(direction, angle[half:], pace, indexing="ij")])
    found = np.empty((*sizes, 4))
    found[:, half:] = _scaled_ends(slider, nodes, progress).reshape(sizes[0], -1, sizes[2], 4)
    if image is not None:
        found[:, :half] = (found * [1.0, -1.0, -1.0, 1.0])[image, : -half - 1 : -1]
    for axis, solved in enumerate((_around(sizes[0]), _between(sizes[1]), _between(sizes[2]))):
        found = np.moveaxis(np.tensordot(solved, found, axes=(1, axis)), 0, axis)
    coefficients = np.ascontiguousarray(found, dtype=np.float32)
    made = SlideTable(coefficients, slider.points, folds, grip, growth, slider.gyration, top, top)
    return replace(made, reach=_reach(made, slider))


def integrated_ends(slider: Slider, velocity: Array, *, progress: Steps | None = None) -> Array:
    """x, y, yaw and time [N, 4] at the ends of slides from the origin, finely integrated.

    Velocities [N, 3] are of the actual centre of mass.
    """
    found, centred = np.empty((len(velocity), 4)), replace(slider, offset=(0.0, 0.0))
    turning = slider.gyration * velocity[:, 2]
    order = np.argsort((velocity[:, :2] ** 2).sum(axis=1) + 5 * turning**2)  # those of as many steps go together
    for low in range(0, len(order), TOGETHER):
        rows = order[low : low + TOGETHER]
        start = torch.zeros(len(rows), 3, dtype=torch.float64)
        with torch.no_grad():
            slide = centred.slide(start, torch.as_tensor(velocity[rows]), step=FINE_STEP, tail=FINE_TAIL)
        found[rows] = torch.cat([slide.pose[:, -1], slide.time[:, -1:]], dim=1).numpy()
        if progress:
            progress(low + len(rows), len(order))
    return found


def velocities(slider: Slider, direction: Array, angle: Array, pace: Array) -> Array:
    """Velocities [N, 3] of these directions of the glide, angles between glide and spin, and speeds [N]."""
    glide = pace * np.cos(angle)
    return np.stack(
        [glide * np.cos(direction), glide * np.sin(direction), pace * np.sin(angle) / slider.gyration], axis=-1
    )


def _scaled_ends(slider: Slider, nodes: Array, progress: Steps | None) -> Array:
    """Ends of integrated slides [N, 4] as a table holds them, at directions, angles and speeds [3, N]."""
    direction, angle, pace = nodes
    x, y, turn, time = integrated_ends(slider, velocities(slider, direction, angle, pace), progress=progress).T
    grip = slider.friction * slider.gravity
    way, c, s = pace**2 / (2 * grip), np.cos(direction), np.sin(direction)
    scaled = (c * x + s * y) / way, (c * y - s * x) / way, turn * slider.gyration / way, time * grip / pace
    return np.stack(scaled, axis=-1)


def _reach(table: SlideTable, slider: Slider) -> float:
    """The speed [m/s] up to which a table holds, by slides that lie anywhere between its nodes."""
    rng = np.random.default_rng(7)
    pace = np.sort(table.top * np.sqrt(rng.uniform(0, 1, TRIED)))
    given = velocities(slider, rng.uniform(0, 2 * np.pi, TRIED), np.arcsin(rng.uniform(-1, 1, TRIED)), pace)
    rests, _ = table.rests(np.zeros((TRIED, 3)), given, table.grip)
    away = rests.pose - integrated_ends(slider, given)[:, :3]
    off = np.maximum(np.linalg.norm(away[:, :2], axis=1) / NEAR, np.abs(away[:, 2]) / TURNED)
    far = np.cumsum(off > 1) > np.maximum(LOST * np.arange(1, TRIED + 1), 2)
    wrong = np.flatnonzero(far | (off > 3))
    return float(pace[max(wrong[0] - 1, 0)]) if len(wrong) else table.top


def _folds(points: Array) -> int:
    """Into how many equal parts a circle can be cut, so that a turn by one of them leaves the points as they are."""
    for folds in (6, 4, 3, 2):
        c, s = np.cos(2 * np.pi / folds), np.sin(2 * np.pi / folds)
        turned = points @ np.array([[c, s], [-s, c]])
        apart = np.linalg.norm(turned[:, None] - points[None], axis=-1).min(axis=1)
        if apart.max() < 1e-9:
            return folds
    return 1


def _image(points: Array, count: int, folds: int) -> NDArray[np.int64] | None:
    """Of each direction [N] its mirror image, where the points are their own mirror image in x or in y."""
    for flip, turned in (([1.0, -1.0], 0), ([-1.0, 1.0], count * folds // 2)):
        apart = np.linalg.norm((points * flip)[:, None] - points[None], axis=-1).min(axis=1)
        if apart.max() < 1e-9:
            return np.asarray((turned - np.arange(count)) % count)
    return None


def _around(count: int) -> Array:
    """From values at nodes around a circle to the coefficients of their cubic spline [N, N]."""
    one = np.eye(count)
    return np.asarray(np.linalg.inv((4 * one + np.roll(one, 1, axis=1) + np.roll(one, -1, axis=1)) / 6))


def _between(count: int) -> Array:
    """From values at nodes to the coefficients of their cubic spline [N + 2, N], not a knot next to its ends."""
    rows = np.zeros((count + 2, count + 2))
    for i in range(count):
        rows[i, i : i + 3] = np.array([1, 4, 1]) / 6
    rows[count, :5] = rows[count + 1, -5:] = [1, -4, 6, -4, 1]
    return np.asarray(np.linalg.inv(rows)[:, :count])
