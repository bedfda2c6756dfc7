"""Where a striker meets a convex outline: nearest boundary points and their normals, for whole batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from carom.core.errors import SceneError
from carom.state import Array

SMOOTH_TURN = np.radians(20)  #: corners flatter than this stand for a curve: normals are blended across them


@dataclass(frozen=True)
class Outline:
    """A convex outline [V, 2], counter-clockwise, in its body's frame [m]."""

    vertices: Array

    @cached_property
    def edges(self) -> tuple[Array, Array, Array, Array]:
        """Edge vectors [V, 2], outward normals [V, 2], and the normals at each edge's start and end [V, 2]."""
        edge = np.roll(self.vertices, -1, axis=0) - self.vertices
        length = np.linalg.norm(edge, axis=-1, keepdims=True)
        normal = np.stack([edge[:, 1], -edge[:, 0]], axis=-1) / length
        before = np.roll(normal, 1, axis=0)
        turn = np.arccos(np.clip((before * normal).sum(-1), -1, 1))
        blended = before + normal
        blended /= np.linalg.norm(blended, axis=-1, keepdims=True)
        smooth = turn[:, None] < SMOOTH_TURN
        start = np.where(smooth, blended, normal)
        end = np.where(np.roll(smooth, -1, axis=0), np.roll(blended, -1, axis=0), normal)
        return edge, normal, start, end

    @property
    def lengths(self) -> Array:
        """Length of each edge [V] [m]."""
        return np.asarray(np.linalg.norm(self.edges[0], axis=-1))

    def point_at(self, distance: Array) -> tuple[Array, Array]:
        """Points [N, 2] at these arc lengths along the outline [N], and the outward normals there [N, 2]."""
        edge, _, start, end = self.edges
        cumulative = np.concatenate([[0.0], np.cumsum(self.lengths)])
        distance = np.mod(distance, cumulative[-1])
        index = np.clip(np.searchsorted(cumulative, distance, side="right") - 1, 0, len(edge) - 1)
        fraction = ((distance - cumulative[index]) / self.lengths[index])[:, None]
        normal = _unit((1 - fraction) * start[index] + fraction * end[index])
        return self.vertices[index] + fraction * edge[index], normal

    def nearest(self, points: Array) -> tuple[Array, Array]:
        """The boundary point nearest to each of `points` [N, 2], and the outward normal there [N, 2].

        On a curve the normal is blended between edges; at a sharp corner, for a point outside, it is the
        direction from the corner to the point, as a round striker feels it.
        """
        edge, normal, start, end = self.edges
        ahead, square, back, length2, curves = self._for_nearest
        shifted = np.column_stack([points, np.ones(len(points))])
        way = shifted @ ahead  # along each edge, times its length
        along = np.clip(way / length2, 0.0, 1.0)
        # squared distance to each edge, less that to the origin
        distance2 = along * (along * length2 - 2 * way)
        distance2 += shifted @ square
        # outside a corner two edges tie, and either may count: the direction comes from the point itself
        best = np.argmin(distance2, axis=1)
        fraction = along[np.arange(len(points)), best]
        closest = self.vertices[best] + fraction[:, None] * edge[best]
        blended = _unit((1 - fraction)[:, None] * start[best] + fraction[:, None] * end[best])
        away = points - closest
        at_end = (fraction <= 1e-12) | (fraction >= 1 - 1e-12)
        at_end &= ~np.where(fraction < 0.5, curves[0, best], curves[1, best])  # a corner that is no part of a curve
        if at_end.any():
            rows = np.flatnonzero(at_end)
            outside = (points[rows] @ normal.T - back).max(axis=1) > 1e-9
            rows = rows[outside & (np.hypot(away[rows, 0], away[rows, 1]) > 1e-9)]
            blended[rows] = _unit(away[rows])
        return closest, blended

    @cached_property
    def _for_nearest(self) -> tuple[Array, Array, Array, Array, Array]:
        """What `nearest` needs of the edges.

        From (x, y, 1) to the way along each edge [3, V] and to the squared distance from its start, less that from the
        origin [3, V]; its distance from the origin [V]; its squared length [V]; whether its start and end are parts of
        a curve [2, V].
        """
        edge, normal, start, end = self.edges
        ahead = np.vstack([edge.T, -(self.vertices * edge).sum(-1)])
        square = np.vstack([-2 * self.vertices.T, (self.vertices**2).sum(-1)])
        curves = np.stack([_differs(start, normal), _differs(end, normal)])
        return ahead, square, (self.vertices * normal).sum(-1), (edge * edge).sum(-1), curves

    def corners_around(self, points: Array) -> tuple[Array, Array]:
        """Way along the outline from boundary points [N, 2] to the next sharp corner ahead (counter-clockwise) and
        behind [N, 2] [m], inf if there is none, and how far the outline turns there [N, 2] [rad]."""
        edge, normal, _, _ = self.edges
        turn = np.arccos(np.clip((np.roll(normal, 1, axis=0) * normal).sum(-1), -1, 1))
        sharp = np.flatnonzero(turn >= SMOOTH_TURN)
        if not len(sharp):
            return np.full((len(points), 2), np.inf), np.zeros((len(points), 2))
        start = np.concatenate([[0.0], np.cumsum(self.lengths)])
        rel = points[:, None, :] - self.vertices[None]
        along = np.clip((rel * edge).sum(-1) / (edge * edge).sum(-1), 0.0, 1.0)
        distance = np.linalg.norm(rel - along[..., None] * edge, axis=-1)
        best = np.argmin(distance, axis=1)
        here = start[best] + along[np.arange(len(points)), best] * self.lengths[best]
        around = start[-1] * (1 - 1e-9)  # rounding must not send a point at a corner all the way round
        ahead, behind = (np.mod(sign * (start[sharp] - here[:, None]), start[-1]) for sign in (1, -1))
        ahead, behind = (np.where(way > around, 0.0, way) for way in (ahead, behind))
        rows, next_, last = np.arange(len(points)), ahead.argmin(axis=1), behind.argmin(axis=1)
        ways = np.stack([ahead[rows, next_], behind[rows, last]], axis=-1)
        return ways, np.stack([turn[sharp[next_]], turn[sharp[last]]], axis=-1)

    def gap(self, points: Array) -> Array:
        """Signed distance from each point [N, 2] to the outline [N] [m]: negative inside."""
        closest, _ = self.nearest(points)
        distance = np.linalg.norm(points - closest, axis=-1)
        inside = ((points[:, None, :] - self.vertices[None]) * self.edges[1]).sum(-1).max(axis=1) < 0
        return np.asarray(np.where(inside, -distance, distance))


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.hypot(vectors[..., :1], vectors[..., 1:]))


def _differs(a: Array, b: Array) -> Array:
    """Whether the normal at an edge's end was blended, hence the corner is part of a curve [N] bool."""
    return np.asarray(np.abs(a - b).max(axis=-1) > 1e-12)


def check_convex(outline: Array, what: str) -> None:
    """Raise unless the outline [V, 2] is a convex polygon, counter-clockwise."""
    if outline.ndim != 2 or outline.shape[1] != 2 or len(outline) < 3 or not np.isfinite(outline).all():
        raise SceneError(f"{what}: outline must be at least three [x, y] corners in metres, got shape {outline.shape}")
    edge = np.roll(outline, -1, axis=0) - outline
    length = np.linalg.norm(edge, axis=-1)
    if length.min() <= 1e-9:
        raise SceneError(f"{what}: outline has corner {int(np.argmin(length)) + 1} twice; list each corner once")
    turn = edge[:, 0] * np.roll(edge, -1, axis=0)[:, 1] - edge[:, 1] * np.roll(edge, -1, axis=0)[:, 0]
    if (turn <= 1e-12).all() and (turn < -1e-12).any():
        raise SceneError(f"{what}: outline runs clockwise; list its corners counter-clockwise")
    if (turn < -1e-9).any():
        corner = (int(np.argmin(turn)) + 1) % len(outline) + 1  # turn[i] is at the end of edge i; people count from 1
        raise SceneError(f"{what}: outline is not convex at corner {corner}; split it into convex parts")
    angle = np.arcsin(np.clip(turn / (length * np.roll(length, -1)), -1, 1))
    ahead = (edge * np.roll(edge, -1, axis=0)).sum(-1) >= 0
    if turn.max() <= 1e-12 or np.where(ahead, angle, np.pi - angle).sum() > 3 * np.pi:
        raise SceneError(f"{what}: outline encloses no area or crosses itself; list its corners in order")
