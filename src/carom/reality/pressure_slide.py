"""Sliding to rest on a pressure patch: what a block does on the table after the blow.

Coulomb friction acts at every point of the base, against that point's own velocity, so drag and torsional
friction couple: spin makes a block glide further and a glide makes it spin longer. The base is a grid of cells
of the outline, each with its share of the weight. Friction may grow with the slip, up to a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from carom.core.constants import GRAVITY
from carom.state import Array, rotate

AT_REST = 1e-5  #: [m/s] below this the last few micrometres are taken in one straight, evenly braked stretch
MAX_STEPS = 2000
RISE_SPEED = 0.6  #: [m/s] of slip over which friction that grows with it does so


@dataclass(frozen=True)
class Footprint:
    """The base of a block: where its weight rests, seen from its centre of mass."""

    points: Array  #: [Q, 2] centres of the cells, in the body's frame, from the centre of mass [m]
    share: Array  #: [Q] share of the weight (times relative friction) on each cell [1]
    cell: float  #: side of a cell [m]
    gyration: float  #: radius of gyration about the vertical through the centre of mass [m]
    rise: float = 0.0  #: relative growth of the friction with the slip, far beyond `RISE_SPEED` [1]


@dataclass(frozen=True)
class Slide:
    """N slides: motion of the centre of mass on each strike's own time grid of S knots."""

    times: Array  #: [N, S] since the start of the slide [s]; the last knot is at rest
    pose: Array  #: [N, S, 3] x, y of the centre of mass and yaw, world, yaw not wrapped [m, m, rad]
    velocity: Array  #: [N, S, 3] vx, vy, wz, world [m/s, m/s, rad/s]

    @property
    def rest_time(self) -> Array:
        """When each stopped [N], since the start of the slide [s]."""
        return self.times[:, -1]

    def at(self, times: Array) -> Array:
        """Pose [N, T, 3] at times [N, T] [s] since the start: cubic between knots, held before and after."""
        count, knots = self.times.shape
        t = np.clip(times, 0.0, self.times[:, -1:])
        # One search for all rows: shift each row's times beyond the row before.
        shift = np.arange(count)[:, None] * (self.times.max() + 1.0)
        flat = np.searchsorted((self.times + shift).ravel(), (t + shift).ravel(), side="right") - 1
        k = np.clip(flat.reshape(t.shape) - np.arange(count)[:, None] * knots, 0, knots - 2)
        row = np.arange(count)[:, None]
        h = self.times[row, k + 1] - self.times[row, k]
        s = ((t - self.times[row, k]) / np.where(h > 0, h, 1.0))[..., None]
        p0, p1 = self.pose[row, k], self.pose[row, k + 1]
        m0, m1 = self.velocity[row, k] * h[..., None], self.velocity[row, k + 1] * h[..., None]
        rise = s * s * (3 - 2 * s)
        return np.asarray(p0 + (p1 - p0) * rise + m0 * s * (1 - s) ** 2 - m1 * s * s * (1 - s))


def footprint(
    outline: Array,
    com: ArrayLike,
    gyration: float,
    *,
    gradient: ArrayLike = (0.0, 0.0),
    cells: int = 10,
    rise: float = 0.0,
) -> Footprint:
    """The base of a convex outline [V, 2] [m]: `cells` x `cells` over its bounds, cut to the outline.

    `com` [2] is the centre of mass in the body's frame [m]; `gradient` [2] tilts the pressure by that share per
    metre [1/m] along x and y. A tilt that would lift one side off the table leaves it a twentieth of its load.
    """
    low, high = outline.min(axis=0), outline.max(axis=0)
    side = float((high - low).max()) / cells
    columns, rows = (int(n) for n in np.maximum(np.ceil((high - low) / side - 1e-9), 1))
    size = (high - low) / (columns, rows)
    centres, areas = [], []
    for i in range(columns):
        for j in range(rows):
            corner = low + size * (i, j)
            square = corner + size * np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
            area, centre = _area_centre(_cut(square, outline))
            if area > 1e-6 * side**2:
                centres.append(centre)
                areas.append(area)
    points, weight = np.array(centres), np.array(areas)
    middle = weight @ points / weight.sum()
    weight = weight * np.maximum(1.0 + (points - middle) @ np.asarray(gradient, dtype=np.float64), 0.05)
    return Footprint(points - np.asarray(com, dtype=np.float64), weight / weight.sum(), side, gyration, rise)


def _cut(polygon: Array, by: Array) -> Array:
    """The part of a convex polygon inside another, counter-clockwise one (Sutherland and Hodgman)."""
    for start, end in zip(by, np.roll(by, -1, axis=0), strict=True):
        if not len(polygon):
            break
        edge = end - start
        inside = edge[0] * (polygon[:, 1] - start[1]) - edge[1] * (polygon[:, 0] - start[0])
        if (inside >= 0).all():
            continue
        corners = []
        for p, q, a, b in zip(polygon, np.roll(polygon, -1, axis=0), inside, np.roll(inside, -1), strict=True):
            if a >= 0:
                corners.append(p)
            if (a >= 0) != (b >= 0):
                corners.append(p + (q - p) * (a / (a - b)))
        polygon = np.array(corners)
    return polygon


def _area_centre(polygon: Array) -> tuple[float, Array]:
    if len(polygon) < 3:
        return 0.0, np.zeros(2)
    origin = polygon[0]  # near the polygon, so that a sliver keeps its digits
    p = polygon - origin
    q = np.roll(p, -1, axis=0)
    cross = p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]
    area = float(cross.sum()) / 2
    if area <= 0:
        return 0.0, origin
    return area, origin + ((p + q) * cross[:, None]).sum(axis=0) / (6 * area)


def friction_acceleration(base: Footprint, yaw: Array, velocity: Array, friction: Array) -> Array:
    """Acceleration [N, 3] by the ground, world, at yaw [N] and velocity [N, 3], with friction [N].

    Near the centre of rotation the direction of slip turns within one cell. Averaging it over the cell's own
    spread of velocities (spin times its size) keeps that smooth, and changes nothing in pure translation.
    """
    v = rotate(velocity[:, :2], -yaw)
    spin = velocity[:, 2:]
    x, y = base.points.T
    ux, uy = v[:, :1] - spin * y, v[:, 1:] + spin * x
    speed = np.sqrt(ux * ux + uy * uy + (spin * base.cell) ** 2 / 12 + 1e-24)
    grown = (1 - base.rise * np.expm1(-speed / RISE_SPEED)) / speed if base.rise else 1 / speed
    ux *= grown
    uy *= grown
    grip = friction * GRAVITY
    force = np.stack([ux @ base.share, uy @ base.share], axis=-1)
    torque = uy @ (base.share * x) - ux @ (base.share * y)
    pull = np.concatenate([rotate(force, yaw), torque[:, None] / base.gyration**2], axis=-1)
    return np.asarray(-grip[:, None] * pull)


def slide(base: Footprint, pose: Array, velocity: Array, friction: ArrayLike, *, step: float = 0.1) -> Slide:
    """Slide N blocks to rest from the pose [N, 3] and velocity [N, 3] of their centres of mass, world.

    Runge-Kutta of order four. Each strike has its own step, the share `step` of the time in which it would stop,
    so that the way to rest, where velocities shrink together, takes equal steps in their logarithm.
    """
    mu = np.broadcast_to(np.asarray(friction, dtype=np.float64), (len(pose),)).copy()
    q, v, t = np.array(pose, dtype=np.float64), np.array(velocity, dtype=np.float64), np.zeros(len(pose))
    lever = np.array([1.0, 1.0, base.gyration])
    knots_t, knots_q, knots_v = [t.copy()], [q.copy()], [v.copy()]
    for _ in range(MAX_STEPS):
        speed = np.linalg.norm(v * lever, axis=1)
        moving = np.flatnonzero(speed > AT_REST)
        if not len(moving):
            break
        h = step * np.minimum(speed[moving] / (mu[moving] * GRAVITY), 2.0 / np.maximum(np.abs(v[moving, 2]), 1e-9))
        q[moving], v[moving] = _runge_kutta(base, q[moving], v[moving], mu[moving], h[:, None])
        t[moving] += h
        knots_t.append(t.copy())
        knots_q.append(q.copy())
        knots_v.append(v.copy())
    stop = np.linalg.norm(v * lever, axis=1) / (mu * GRAVITY)
    knots_t.append(t + stop)
    knots_q.append(q + v * stop[:, None] / 2)
    knots_v.append(np.zeros_like(v))
    return Slide(np.stack(knots_t, axis=1), np.stack(knots_q, axis=1), np.stack(knots_v, axis=1))


def _runge_kutta(base: Footprint, q: Array, v: Array, mu: Array, h: Array) -> tuple[Array, Array]:
    a1 = friction_acceleration(base, q[:, 2], v, mu)
    v2 = v + h / 2 * a1
    a2 = friction_acceleration(base, (q + h / 2 * v)[:, 2], v2, mu)
    v3 = v + h / 2 * a2
    a3 = friction_acceleration(base, (q + h / 2 * v2)[:, 2], v3, mu)
    v4 = v + h * a3
    a4 = friction_acceleration(base, (q + h * v3)[:, 2], v4, mu)
    return q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
