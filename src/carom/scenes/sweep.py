"""How far a striker travels in a straight line until it touches a convex target: closed form, whole batches."""

from __future__ import annotations

import numpy as np

from carom.scenes.outline import Outline
from carom.state import Array

CHUNK = 2048  #: strikers worked on together: what fits into a cache


def round_travel(outline: Outline, centre: Array, towards: Array, radius: float) -> Array:
    """Way [N] [m] of discs at `centre` [N, 2], outside, along unit vectors `towards` [N, 2]; inf: it passes by.

    A disc touches where its centre meets the outline grown by its radius: sides moved out, and a circle at each corner.
    """
    start, normal, along, length = _sides(outline)
    to, behind, corner2 = (
        radius + (start * normal).sum(-1),
        (start * along).sum(-1),
        (start * start).sum(-1) - radius**2,
    )
    way = np.empty(len(centre))
    for low in range(0, len(centre), CHUNK):
        c, d = centre[low : low + CHUNK], towards[low : low + CHUNK]
        sinking = d @ normal.T
        with np.errstate(divide="ignore", invalid="ignore"):
            to_side = (to - c @ normal.T) / sinking
            foot = c @ along.T + to_side * (d @ along.T) - behind
        on_side = (sinking < 0) & (foot >= 0) & (foot <= length)
        best = np.where(on_side, to_side, np.inf).min(axis=1)
        ahead = d @ start.T - (d * c).sum(-1)[:, None]
        inside = ahead * ahead + 2 * (c @ start.T)
        inside -= (c * c).sum(-1)[:, None] + corner2
        to_corner = np.where(inside >= 0, ahead - np.sqrt(np.maximum(inside, 0.0)), np.inf)
        way[low : low + CHUNK] = np.minimum(best, to_corner.min(axis=1))
    return way


def flat_travel(outline: Outline, middle: Array, towards: Array, facing: Array, width: Array) -> Array:
    """Way [N] [m] of flat faces with these middles and unit normals [N, 2] and widths [N]; inf: it passes by.

    Either an end of the face meets a side, or a corner of the target meets the face.
    """
    start, normal, along, length = _sides(outline)
    way = np.full(len(middle), np.inf)
    side = np.stack([-facing[:, 1], facing[:, 0]], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        for end in (-0.5, 0.0, 0.5):
            c = middle + end * width[:, None] * side
            sinking = towards @ normal.T
            to_side = ((start * normal).sum(-1) - c @ normal.T) / sinking
            foot = c @ along.T - (start * along).sum(-1) + to_side * (towards @ along.T)
            hit = (sinking < 0) & (foot >= 0) & (foot <= length)
            way = np.minimum(way, np.where(hit, to_side, np.inf).min(axis=1))
        rel = start[None] - middle[:, None]
        ahead = (towards * facing).sum(-1)[:, None]
        to_face = (rel * facing[:, None]).sum(-1) / ahead
        across = (rel * side[:, None]).sum(-1) - to_face * (towards * side).sum(-1)[:, None]
        hit = (ahead > 0) & (np.abs(across) <= width[:, None] / 2)
        return np.asarray(np.minimum(way, np.where(hit, to_face, np.inf).min(axis=1)))


def _sides(outline: Outline) -> tuple[Array, Array, Array, Array]:
    """First corner, outward normal and direction of each side [V, 2], and its length [V]."""
    start = outline.vertices
    edge = np.roll(start, -1, axis=0) - start
    length = np.linalg.norm(edge, axis=-1)
    along = edge / length[:, None]
    return start, np.stack([along[:, 1], -along[:, 0]], axis=-1), along, length
