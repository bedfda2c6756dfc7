"""How far apart two measured bodies are, seen from above, and how high a body's lowest point is."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from carom.core.rotations import axes, unit
from carom.scenes.shapes import Body, Shape
from carom.state import Array, rotate


def planar_gap(first: Body, first_pose: Array, second: Body, second_pose: Array) -> Array:
    """Distance [N] m between two outlines at poses [N, 3] (x, y, yaw); negative where they overlap, NaN if unknown."""
    if first.shape is None or second.shape is None:
        return np.full(len(first_pose), np.nan)
    if first.shape.is_round and second.shape.is_round:
        between = np.linalg.norm(first_pose[:, :2] - second_pose[:, :2], axis=-1)
        return np.asarray(between - float(first.shape.radius or 0.0) - float(second.shape.radius or 0.0))
    if first.shape.is_round:
        return planar_gap(second, second_pose, first, first_pose)
    if "compound" in (first.shape.kind, second.shape.kind):
        gaps = [planar_gap(a, first_pose, b, second_pose) for a in _convex(first) for b in _convex(second)]
        return np.asarray(np.min(gaps, axis=0))
    outline = _placed(first.shape, first_pose)
    if second.shape.is_round:
        return _point_to_polygon(second_pose[:, None, :2], outline)[:, 0] - float(second.shape.radius or 0.0)
    other = _placed(second.shape, second_pose)
    nearest = np.minimum(_point_to_polygon(other, outline).min(axis=1), _point_to_polygon(outline, other).min(axis=1))
    # apart, the nearest points include a corner of one of the two; overlapping, one edge's direction is the way out
    apart = np.maximum(_separation(outline, other), _separation(other, outline))
    return np.asarray(np.where(apart < 0, apart, nearest))


def _convex(body: Body) -> tuple[Body, ...]:
    """A body's convex parts, each as a body."""
    shape = body.solid
    if shape.kind != "compound":
        return (body,)
    height = shape.full_height
    return tuple(replace(body, shape=Shape("extruded", outline=part, height=height)) for part in shape.outlines)


@lru_cache(maxsize=256)
def _outline(shape: Shape) -> Array:
    """Outline of a shape [V, 2] m, kept because a mesh would be loaded anew for each question."""
    return shape.planar_outline


def _placed(shape: Shape, pose: Array) -> Array:
    outline = _outline(shape)
    turned = rotate(np.broadcast_to(outline, (len(pose), *outline.shape)), pose[:, None, 2])
    return np.asarray(turned + pose[:, None, :2])


def _separation(polygon: Array, points: Array) -> Array:
    """How far [N] all points [N, P, 2] lie outside of the best of a polygon's edges; negative if none parts them."""
    edge = np.roll(polygon, -1, axis=1) - polygon
    outward = np.stack([edge[..., 1], -edge[..., 0]], axis=-1) / np.linalg.norm(edge, axis=-1, keepdims=True)
    beyond = np.einsum("nvk,npk->nvp", outward, points) - np.sum(outward * polygon, axis=-1)[..., None]
    return np.asarray(beyond.min(axis=-1).max(axis=-1))


def _point_to_polygon(points: Array, polygon: Array) -> Array:
    """Signed distance [N, P] of points [N, P, 2] from convex counter-clockwise polygons [N, V, 2], negative inside."""
    edge = np.roll(polygon, -1, axis=1) - polygon
    length = np.sum(edge**2, axis=-1)
    offset = points[:, :, None, :] - polygon[:, None, :, :]
    along = np.clip(np.sum(offset * edge[:, None], axis=-1) / length[:, None], 0.0, 1.0)
    nearest = np.linalg.norm(offset - along[..., None] * edge[:, None], axis=-1).min(axis=-1)
    left = edge[:, None, :, 0] * offset[..., 1] - edge[:, None, :, 1] * offset[..., 0]
    inside = (left > 0).all(axis=-1)
    return np.asarray(np.where(inside, -nearest, nearest))


@lru_cache(maxsize=256)
def corners(shape: Shape) -> Array:
    """Points [V, 3] in the body's frame whose convex hull is the shape (a sphere has only its centre here)."""
    if shape.kind == "sphere":
        return np.zeros((1, 3))
    if shape.kind == "mesh":
        return shape.vertices
    outline = shape.planar_outline
    half = shape.full_height / 2
    return np.array([[x, y, z] for (x, y), z in product(outline, (-half, half))])


def lowest_point(shape: Shape, position: Array, quaternion: Array, normal: Array | None = None) -> Array:
    """Height [T] m, along the ground's normal (default z), of the lowest point of a shape at poses [T, 3], [T, 4]."""
    up = np.array([0.0, 0.0, 1.0]) if normal is None else normal
    up_body = axes(unit(quaternion)) @ up
    below = (up_body @ corners(shape).T).min(axis=-1)
    radius = float(shape.radius or 0.0) if shape.kind == "sphere" else 0.0
    return np.asarray(position @ up + below - radius)
