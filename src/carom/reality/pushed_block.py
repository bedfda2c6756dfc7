"""A block that a round tool pushes over a table, by physics that is not MuJoCo's.

The block rests on a pressure patch: Coulomb friction acts at every cell of its base, against that cell's own slip,
perhaps more across the table's grain than along it. Tool and block meet as rigid bodies with friction (complementarity
of gap and impulse, Coulomb's cone). Each step is implicit, so that a block that sticks really rests:

    M (v' - v) = -h C(v') v' - sum J^T lambda,   0 <= lambda_n,  gap + h u_n >= 0,  |lambda_t| <= mu lambda_n

C is the secant of the patch's friction, which dissipates whatever the velocity. Without `inertia` M is zero: the
quasi-static limit, in which the block moves only while it is pushed and the forces lie on its limit surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carom.core.constants import GRAVITY
from carom.reality.pressure_slide import footprint
from carom.scenes.shapes import polygon_properties
from carom.state import Array, rotate

CREEP = 1e-4  #: [m/s] of slip up to which friction grows in proportion: a block that sticks creeps this much at most
ITERATIONS = 2  #: of friction's secant, each with its contacts, in a step
SWEEPS = 6  #: over the contacts of a row, where a tool touches two parts of a block
FASTEST = 2.0  #: [m/s] at which a tool and a block come near each other
RECOVERY = 0.2  #: share of an overlap that a step takes away


@dataclass(frozen=True)
class Base:
    """A block as the table and the tool feel it, in its own frame."""

    parts: tuple[Array, ...]  #: convex outlines [V, 2], counter-clockwise, that it is made of [m]
    com: Array  #: [2] centre of mass [m]
    mass: float  #: [kg]
    gyration: float  #: radius of gyration about the vertical through the centre of mass [m]
    points: Array  #: [Q, 2] centres of the patch's cells, from the centre of mass [m]
    share: Array  #: [Q] share of the weight on each
    cell: float  #: side of a cell [m]


@dataclass(frozen=True)
class Rubbing:
    """Friction of N pushes."""

    ground: Array  #: [N] between block and table, along the grain
    tool: Array  #: [N] between block and tool
    across: float = 1.0  #: ground friction across the grain, over that along it
    grain: float = 0.0  #: direction of the grain in the world [rad]
    spin: float = 0.0  #: further torque against spin, over friction times weight [m]
    rise: float = 0.0  #: relative growth of the friction with the slip, far beyond `RISE_SPEED`


RISE_SPEED = 0.1  #: [m/s] of slip over which friction that grows with it does so


@dataclass
class Pushed:
    """N blocks and tools on their way; changed in place by `step`."""

    centre: Array  #: [N, 2] the block's centre of mass, world [m]
    yaw: Array  #: [N] rad
    velocity: Array  #: [N, 3] of the centre of mass, and spin
    tool: Array  #: [N, 2] centre of the tool's tip [m]
    tool_velocity: Array  #: [N, 2]

    def frame(self, com: Array) -> Array:
        """Pose [N, 3] of the block's frame."""
        return np.column_stack([self.centre - rotate(com, self.yaw), self.yaw])


@dataclass(frozen=True)
class Tip:
    """The round end of the tool."""

    radius: float  #: [m]
    offset: Array | None = None  #: [2] where it really is, seen from where it is thought to be [m]


@dataclass(frozen=True)
class Drive:
    """What tools do in one step: `weight` w' = `push`, were nothing in their way; an infinite weight: w' = `push`."""

    weight: Array  #: [N] kg, the implicit parts of its servo included
    push: Array  #: [N, 2] kg m/s; of a tool that nothing holds up: its velocity [m/s]

    @classmethod
    def along(cls, velocity: Array) -> Drive:
        """Tools that nothing holds up."""
        return cls(np.full(len(velocity), np.inf), velocity)


def base_of(
    parts: Sequence[Array], *, mass: float, offset: Array | None = None, tilt: Array | None = None, cells: int = 8
) -> Base:
    """The base of a block of these convex parts, with even density unless the centre of mass is `offset` [2] [m].

    The pressure's centre lies under the centre of mass; `tilt` [2] [1/m] tilts the pressure beyond that.
    """
    areas, centres, seconds = zip(*(polygon_properties(part) for part in parts), strict=True)
    area = np.array(areas)
    centroid = (area[:, None] * np.array(centres)).sum(axis=0) / area.sum()
    apart = ((np.array(centres) - centroid) ** 2).sum(axis=1)
    second = float((area * (np.array(seconds) + apart)).sum() / area.sum())
    shift = np.zeros(2) if offset is None else np.asarray(offset, dtype=np.float64)
    com = centroid + shift
    finest = min(float(np.ptp(part, axis=0).max()) for part in parts) / cells
    made = []
    for part in parts:
        count = int(np.ceil(float(np.ptp(part, axis=0).max()) / finest - 1e-9))
        made.append(footprint(part, centroid, 1.0, cells=max(count, 1)))
    points = np.concatenate([one.points for one in made])
    share = np.concatenate([one.share * a for one, a in zip(made, area, strict=True)])
    share = share / share.sum()
    spread = np.einsum("q,qi,qj->ij", share, points, points)
    gradient = np.linalg.solve(spread, shift) + (0.0 if tilt is None else np.asarray(tilt))
    share = share * np.maximum(1.0 + points @ gradient, 0.05)
    gyration = float(np.sqrt(max(second - float(shift @ shift), 0.25 * second)))
    return Base(tuple(parts), com, mass, gyration, points - shift, share / share.sum(), max(o.cell for o in made))


def secant(base: Base, rubbing: Rubbing, yaw: Array, velocity: Array) -> Array:
    """C [N, 3, 3]: the ground's friction is -C v, at yaw [N] and velocity [N, 3] of the centre of mass."""
    c, s = np.cos(yaw - rubbing.grain)[:, None], np.sin(yaw - rubbing.grain)[:, None]
    x, y = base.points.T
    along, across = c * x - s * y, s * x + c * y  # of each cell from the centre of mass, in the grain's frame
    turned = rotate(velocity[:, :2], -rubbing.grain)
    spin = velocity[:, 2:]
    ux, uy = turned[:, :1] - spin * across, turned[:, 1:] + spin * along
    square = ux * ux + (rubbing.across * uy) ** 2 + (spin * base.cell) ** 2 / 12 + CREEP**2
    pull = (rubbing.ground * base.mass * GRAVITY)[:, None] * base.share / np.sqrt(square)
    if rubbing.rise:
        pull = pull * (1 - rubbing.rise * np.expm1(-np.sqrt(square) / RISE_SPEED))
    k1, k2 = pull, pull * rubbing.across**2
    out = np.zeros((len(yaw), 3, 3))
    out[:, 0, 0], out[:, 1, 1] = k1.sum(axis=1), k2.sum(axis=1)
    out[:, 0, 2] = out[:, 2, 0] = -(k1 * across).sum(axis=1)
    out[:, 1, 2] = out[:, 2, 1] = (k2 * along).sum(axis=1)
    out[:, 2, 2] = (k1 * across**2 + k2 * along**2).sum(axis=1)
    if rubbing.spin:
        limit = rubbing.ground * base.mass * GRAVITY * rubbing.spin
        out[:, 2, 2] += limit / np.sqrt(velocity[:, 2] ** 2 + (CREEP / base.gyration) ** 2)
    if rubbing.grain:
        turn = np.array(
            [[np.cos(rubbing.grain), -np.sin(rubbing.grain)], [np.sin(rubbing.grain), np.cos(rubbing.grain)]]
        )
        out[:, :2, :2] = turn @ out[:, :2, :2] @ turn.T
        out[:, :2, 2] = out[:, :2, 2] @ turn.T
        out[:, 2, :2] = out[:, :2, 2]
    return out


def nearest(part: Array, points: Array) -> tuple[Array, Array, Array]:
    """Signed distance [N] of points [N, 2] from a convex outline [V, 2], the nearest boundary points and normals."""
    edge = np.roll(part, -1, axis=0) - part
    rel = points[:, None, :] - part[None]
    along = np.clip((rel * edge).sum(-1) / (edge * edge).sum(-1), 0.0, 1.0)
    foot = part[None] + along[..., None] * edge
    away = points[:, None, :] - foot
    distance = np.sqrt((away * away).sum(-1))
    outward = np.stack([edge[:, 1], -edge[:, 0]], axis=-1) / np.linalg.norm(edge, axis=-1, keepdims=True)
    height = (rel * outward).sum(-1)
    inside = (height < 0).all(axis=1)
    best = np.where(inside, np.argmax(height, axis=1), np.argmin(distance, axis=1))
    rows = np.arange(len(points))
    own = distance[rows, best]
    radial = away[rows, best] / np.maximum(own, 1e-12)[:, None]
    normal = np.where((inside | (own < 1e-9))[:, None], outward[best], radial)
    signed = np.where(inside, height[rows, best], own)
    return signed, points - signed[:, None] * normal, normal


@dataclass(frozen=True)
class _Contact:
    """Where each tool is nearest to one part, and how impulses act there: rows along the normal and the tangent."""

    gap: Array  #: [N] m
    block: Array  #: [N, 2, 3] rows: velocity of the block's point along normal and tangent
    tool: Array  #: [N, 2, 2] the same of the tool


def _contacts(base: Base, state: Pushed, tip: Tip, reaches: Array) -> list[_Contact]:
    """The nearest point of each part; a tool that is lifted over the block (not `reaches` [N]) meets nothing."""
    found = []
    centre = state.tool if tip.offset is None else state.tool + tip.offset
    local = rotate(centre - state.centre, -state.yaw) + base.com
    for part in base.parts:
        distance, point, normal = nearest(part, local)
        n, arm = rotate(normal, state.yaw), rotate(point - base.com, state.yaw)
        t = np.stack([-n[:, 1], n[:, 0]], axis=-1)
        rows = np.stack([n, t], axis=1)
        lever = arm[:, None, 0] * rows[..., 1] - arm[:, None, 1] * rows[..., 0]
        gap = np.where(reaches, distance - tip.radius, np.inf)
        found.append(_Contact(gap, np.concatenate([rows, lever[..., None]], axis=-1), rows))
    return found


def step(
    base: Base,
    rubbing: Rubbing,
    state: Pushed,
    drive: Drive,
    h: float,
    *,
    tip: Tip,
    reaches: Array | None = None,
    inertia: bool = True,
) -> Array:
    """Advance all rows by `h` [s], in place; gives the impulses that the tools took [N, 2] [N s]."""
    count = len(state.yaw)
    near = _contacts(base, state, tip, np.ones(count, dtype=bool) if reaches is None else reaches)
    mass = base.mass * np.array([1.0, 1.0, base.gyration**2]) * (1.0 if inertia else 0.0)
    held = np.isinf(drive.weight)
    lightness: Array = np.asarray(np.where(held, 0.0, 1.0 / np.where(held, 1.0, drive.weight)))
    free_tool = np.where(held[:, None], drive.push, drive.push * lightness[:, None])
    velocity, tool, impulse = state.velocity, free_tool, np.zeros((count, 2))
    for _ in range(ITERATIONS):
        held_back = np.diag(mass) + h * secant(base, rubbing, state.yaw, velocity)
        inverse = np.asarray(np.linalg.inv(held_back), dtype=np.float64)
        velocity = np.einsum("nij,j,nj->ni", inverse, mass, state.velocity)
        velocity, tool, impulse = _pushed(near, inverse, lightness, velocity, free_tool, rubbing.tool, h)
    state.velocity, state.tool_velocity = velocity, tool
    state.centre = state.centre + h * velocity[:, :2]
    state.yaw = state.yaw + h * velocity[:, 2]
    state.tool = state.tool + h * tool
    return impulse


def _pushed(
    near: Sequence[_Contact], inverse: Array, lightness: Array, velocity: Array, tool: Array, friction: Array, h: float
) -> tuple[Array, Array, Array]:
    """Velocities of block [N, 3] and tool [N, 2] after the contacts, and the impulses on the tools [N, 2]."""
    total = np.zeros_like(tool)
    close = [c for c in near if bool((c.gap < h * FASTEST).any())]
    both = len(close) > 1 and bool((np.sum([c.gap < h * FASTEST for c in close], axis=0) > 1).any())
    impulses = [np.zeros((len(tool), 2)) for _ in close]
    grips = [c.block @ inverse for c in close]  # [N, 2, 3]
    delassus = [
        grip @ np.swapaxes(c.block, 1, 2) + lightness[:, None, None] * (c.tool @ np.swapaxes(c.tool, 1, 2))
        for c, grip in zip(close, grips, strict=True)
    ]
    for _ in range(SWEEPS if both else 1):
        for i, (c, grip, w) in enumerate(zip(close, grips, delassus, strict=True)):
            relative = np.einsum("nai,ni->na", c.tool, tool) - np.einsum("nai,ni->na", c.block, velocity)
            relative = relative - np.einsum("nab,nb->na", w, impulses[i])  # as if this contact were not there
            relative[:, 0] += np.where(c.gap > 0, c.gap, RECOVERY * c.gap) / h
            new = impulse_at(relative, w, friction)
            change = new - impulses[i]
            impulses[i] = new
            velocity = velocity - np.einsum("nai,na->ni", grip, change)
            push = np.einsum("nai,na->ni", c.tool, change)
            tool, total = tool + lightness[:, None] * push, total + push
    return velocity, tool, total


def impulse_at(relative: Array, delassus: Array, friction: Array) -> Array:
    """Impulses [N, 2] (normal, tangent) at contacts that would move by `relative` [N, 2]: none, stick or slip."""
    wnn, wnt, wtt = delassus[:, 0, 0], delassus[:, 0, 1], delassus[:, 1, 1]
    det = np.maximum(wnn * wtt - wnt * wnt, 1e-30)
    un, ut = relative[:, 0], relative[:, 1]
    stick_n, stick_t = -(wtt * un - wnt * ut) / det, -(wnn * ut - wnt * un) / det
    sticks = (stick_n >= 0) & (np.abs(stick_t) <= friction * stick_n)
    # it slips towards the side to which the stick impulse leaves the cone
    side = np.where(stick_n > 0, np.sign(stick_t), -np.sign(ut))
    slip_n = -un / np.maximum(wnn + side * friction * wnt, 1e-12 * wnn + 1e-300)
    n = np.where(sticks, stick_n, slip_n)
    t = np.where(sticks, stick_t, side * friction * slip_n)
    touches = (un < 0) & np.isfinite(un)
    return np.where(touches[:, None], np.stack([n, t], axis=-1), 0.0)
