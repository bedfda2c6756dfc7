"""Where a striker first touches a target, and along which normal; all in the target's body frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.scenes.shapes import Shape
from carom.state import Array

ON_OUTLINE = 1e-3  #: [m] a commanded point may be this far off the outline; it is moved onto it
FLUSH = np.radians(3.0)  #: [rad] a flat face within this of an edge lands on one end of it and then on the other
LONG_EDGE = 0.005  #: [m] shorter edges are facets of a curve: nothing lands flush on them
GIVE = 0.3e-3  #: [m] a face with a smaller gap at its far end is pressed together and pushes from nearer its middle
ARC_POINTS = 241  #: corners that stand for a half circle where a flat face meets it


@dataclass(frozen=True)
class Touch:
    """How N strikers meet their target, in the target's body frame at rest."""

    points: Array  #: [N, 3, 2] the point touched first; then both ends of a flush face's overlap, else repeats [m]
    normal: Array  #: [N, 2] unit normal into the target
    flush: NDArray[np.bool_]  #: [N] whether the other points can touch as well
    striker: Array  #: [N, 3] x, y, yaw of the striker's frame as it touches [m, m, rad]


def surface(shape: Shape, points: Array) -> tuple[Array, Array]:
    """The nearest points of a shape's outline to points [N, 2] [m], and the unit normals into the shape there [N, 2].

    Arcs are exact, not the polygon that stands for them elsewhere.
    """
    radius = float(shape.radius or 0.0)
    if shape.is_round or shape.kind == "semi-cylinder":
        distance = np.linalg.norm(points, axis=1, keepdims=True)
        outward = points / np.where(distance > 0, distance, 1.0)
        if shape.is_round:
            return radius * outward, -outward
        on_flat = np.stack([np.clip(points[:, 0], -radius, radius), np.zeros(len(points))], axis=-1)
        off_flat = np.linalg.norm(points - on_flat, axis=1)
        flat = (points[:, 1] <= 0) | (off_flat < np.abs(distance[:, 0] - radius))
        normal = np.where(flat[:, None], np.array([0.0, 1.0]), -outward)
        return np.where(flat[:, None], on_flat, radius * outward), normal
    start = shape.planar_outline
    edge = np.roll(start, -1, axis=0) - start
    along = np.einsum("nej,ej->ne", points[:, None] - start, edge) / np.einsum("ej,ej->e", edge, edge)
    nearest = start + np.clip(along, 0.0, 1.0)[..., None] * edge
    which = np.argmin(np.linalg.norm(points[:, None] - nearest, axis=-1), axis=1)
    return nearest[np.arange(len(points)), which], _inward(edge)[which]


def check_on_outline(shape: Shape, points: Array, velocity: Array) -> tuple[Array, Array]:
    """`surface` of commanded points; raises with the number of the first strike that misses or does not approach."""
    snapped, normal = surface(shape, points)
    gap = np.linalg.norm(points - snapped, axis=1)
    if (gap > ON_OUTLINE).any():
        worst = int(np.argmax(gap > ON_OUTLINE))
        raise CaromError(
            f"strike {worst}: expected a contact point on the target's outline (within {1e3 * ON_OUTLINE:g} mm), "
            f"got {points[worst].tolist()}, {1e3 * gap[worst]:.1f} mm away; the nearest is {snapped[worst].tolist()}"
        )
    approach = np.einsum("ni,ni->n", velocity, normal)
    if not (approach > 0).all():
        worst = int(np.argmax(~(approach > 0)))
        raise CaromError(
            f"strike {worst}: expected a velocity into the target at its contact point, "
            f"got {velocity[worst].tolist()} against the inward normal {normal[worst].round(6).tolist()}"
        )
    return snapped, normal


def round_touch(points: Array, normal: Array, *, radius: float) -> Touch:
    """A round striker that touches at points [N, 2] of the outline with inward normals [N, 2]."""
    centre = points - radius * normal
    yaw = np.arctan2(normal[:, 1], normal[:, 0])
    striker = np.concatenate([centre, yaw[:, None]], axis=1)
    return Touch(_thrice(points), normal, np.zeros(len(points), dtype=bool), striker)


def flat_touch(shape: Shape, aim: Array, yaw: Array, velocity: Array, *, width: float, depth: float) -> Touch:
    """A flat face that faces along yaw [N] and whose middle is sent through aim [N, 2] at velocity [N, 2].

    Which part lands first, a corner of the face on an edge or a corner of the target on the face, comes out of the
    geometry. `width` and `depth` are the striker's full lengths along its y and x axes [m]; its face is at x = depth/2.
    """
    if shape.kind == "semi-cylinder":
        angle = np.linspace(0.0, np.pi, ARC_POINTS)
        outline = float(shape.radius or 0.0) * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    else:
        outline = shape.planar_outline
    facing = np.stack([np.cos(yaw), np.sin(yaw)], axis=-1)
    along = np.stack([-facing[:, 1], facing[:, 0]], axis=-1)
    way = velocity / np.linalg.norm(velocity, axis=1, keepdims=True)
    reach, point, normal = _corners_on_edges(outline, aim, along * width / 2, way)
    reach_v, point_v = _vertices_on_face(outline, aim, facing, along, way, width)
    by_vertex = reach_v < reach
    travelled = np.minimum(reach, reach_v)
    if not np.isfinite(travelled).all():
        raise CaromError(f"strike {int(np.argmax(~np.isfinite(travelled)))}: the flat striker misses the target")
    point = np.where(by_vertex[:, None], point_v, point)
    normal = np.where(by_vertex[:, None], facing, normal)
    middle = aim + way * travelled[:, None]
    striker = np.concatenate([middle - facing * depth / 2, yaw[:, None]], axis=1)
    touch = Touch(_thrice(point), normal, np.zeros(len(aim), dtype=bool), striker)
    return _with_ends(touch, outline, middle, facing, along, width)


def _thrice(points: Array) -> Array:
    return np.repeat(points[:, None], 3, axis=1)


def _inward(edge: Array) -> Array:
    normal = np.stack([-edge[:, 1], edge[:, 0]], axis=-1)
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def _cross(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _corners_on_edges(outline: Array, aim: Array, half: Array, way: Array) -> tuple[Array, Array, Array]:
    """How far the face travels until one of its corners meets an edge [N], with that point and inward normal [N, 2]."""
    edge = np.roll(outline, -1, axis=0) - outline
    inward = _inward(edge)
    corners = np.stack([aim - half, aim + half], axis=1)[:, :, None]  # [N, 2, 1, 2]
    sweep = way[:, None, None]
    slope = _cross(sweep, edge)
    entering = np.einsum("ni,ei->ne", way, inward)[:, None] > 1e-9
    safe = np.where(entering, slope, 1.0)
    reach = _cross(outline - corners, edge) / safe
    share = _cross(outline - corners, sweep) / safe
    reach = np.where(entering & (share >= 0) & (share <= 1), reach, np.inf).reshape(len(aim), -1)
    best = np.argmin(reach, axis=1)
    row = np.arange(len(aim))
    travelled = reach[row, best]
    corner = corners[row, best // len(edge), 0]
    hit = corner + way * np.where(np.isfinite(travelled), travelled, 0.0)[:, None]
    return travelled, hit, inward[best % len(edge)]


def _vertices_on_face(
    outline: Array, aim: Array, facing: Array, along: Array, way: Array, width: float
) -> tuple[Array, Array]:
    """How far the face travels until a corner of the target meets it [N], and that corner [N, 2]."""
    offset = outline - aim[:, None]
    reach = np.einsum("nvi,ni->nv", offset, facing) / np.einsum("ni,ni->n", way, facing)[:, None]
    across = np.einsum("nvi,ni->nv", offset - reach[..., None] * way[:, None], along)
    reach = np.where(np.abs(across) <= width / 2, reach, np.inf)
    best = np.argmin(reach, axis=1)
    return reach[np.arange(len(aim)), best], outline[best]


def _with_ends(touch: Touch, outline: Array, middle: Array, facing: Array, along: Array, width: float) -> Touch:
    """The touch with both ends of the overlap, where the face lands flush on a long edge: the far end, then the near.

    With a gap at the far end of less than `GIVE` the first push comes from between the near end and the middle, so
    that the outcome turns steeply, but does not jump, as the face turns from one side to the other.
    """
    edge = np.roll(outline, -1, axis=0) - outline
    length = np.linalg.norm(edge, axis=1)
    inward = _inward(edge)
    aligned = np.einsum("ni,ei->ne", facing, inward) * (length > LONG_EDGE)
    which = np.argmax(aligned, axis=1)
    start, direction = outline[which], (edge / length[:, None])[which]
    ends = [np.einsum("ni,ni->n", middle + s * width / 2 * along - start, direction) for s in (-1, 1)]
    low, high = np.maximum(np.minimum(*ends), 0.0), np.minimum(np.maximum(*ends), length[which])
    flush = (aligned[np.arange(len(which)), which] > np.cos(FLUSH)) & (high - low > 1e-3)
    at = np.einsum("ni,ni->n", touch.points[:, 0] - start, direction)
    first_low = np.abs(at - low) < np.abs(at - high)
    near, far = np.where(first_low, low, high), np.where(first_low, high, low)
    share = np.minimum(np.abs(_cross(facing, inward[which])) * (high - low) / GIVE, 1.0)
    first = (low + high) / 2 + share * (near - (low + high) / 2)
    landings = start[:, None] + np.stack([first, far, near], axis=1)[..., None] * direction[:, None]
    return replace(touch, points=np.where(flush[:, None, None], landings, touch.points), flush=flush)
