"""Pairs of triangles that are near each other, found by Coal, with their nearest points (few-shot paper, III-C).

Which triangles these are, and where on them the nearest points lie, stays as it is within a step; the points move with
their bodies. So their derivatives by the bodies' poses are those of Eqs. 5 to 7.

Where this is exact: the distance along the line between the points, as long as the pair of features stays the same,
and a point that is a corner. Where it is not: a point in the middle of a face or an edge also glides along it as the
other body moves; Eq. 7 leaves that out. Where two faces are parallel the nearest points are not unique and jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.learn.graph.solids import Solids
from carom.state import Array

NEAR = 0.01  #: [m] triangles that are further apart than this do not see each other (d_eps)
MOST = 4096  #: pairs of triangles of two bodies
HALF = 3.0  #: half the side of the square of ground below each body, over the body's reach
GROUND_CORNERS = HALF * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
GROUND_TRIANGLES = np.array([[0, 1, 2], [0, 2, 3]])


def coal_missing() -> str:
    """What to say if Coal is not installed; empty if it is."""
    return "" if find_spec("coal") else "Coal is not installed; pip install 'carom[graph]'"


def refuse_without_coal() -> None:
    """Raise unless Coal is installed."""
    if missing := coal_missing():
        raise CaromError(f"the preset `paper` needs Coal. {missing}")


@dataclass(frozen=True)
class FacePairs:
    """E pairs of triangles.

    Objects are numbered through all rows, 2 B in each: the bodies, then the squares of ground below them.
    """

    first: torch.Tensor  #: [E] object
    second: torch.Tensor  #: [E] object
    face_first: torch.Tensor  #: [E] triangle of the first
    face_second: torch.Tensor  #: [E]
    point_first: torch.Tensor  #: [E, 3] nearest points, world [m]
    point_second: torch.Tensor  #: [E, 3]


class _Moved(torch.autograd.Function):
    """Points of bodies in the world; derivatives as in Eq. 7, the points fixed to their bodies."""

    @staticmethod
    def forward(ctx: Any, point: torch.Tensor, position: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
        """`point` [E, 3] in the world, of bodies at `position` [E, 3], turned by `rotation` [E, 3, 3]."""
        ctx.save_for_backward(torch.einsum("eij,ei->ej", rotation, point - position))
        return point.clone()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        (own,) = ctx.saved_tensors
        return None, grads[0], grads[0][:, :, None] * own[:, None, :]


def face_pairs(
    solids: Solids, position: torch.Tensor, rotation: torch.Tensor, ground: torch.Tensor | None, near: float = NEAR
) -> FacePairs:
    """Pairs of triangles nearer than `near` [m], of bodies at positions [N, B, 3], turned by rotations [N, B, 3, 3].

    `ground` [N] is its height (None: there is none). A square of it lies below each body.
    """
    place, turned = with_ground(position, rotation, ground)
    pairs, points = _found(solids, place.detach(), turned.detach(), ground is not None, near)
    flat_place, flat_turn = place.flatten(0, 1), turned.flatten(0, 1)
    found = torch.as_tensor(pairs, device=position.device)
    there = torch.as_tensor(points, dtype=position.dtype, device=position.device)
    moved = [_Moved.apply(there[:, k], flat_place[found[:, k]], flat_turn[found[:, k]]) for k in (0, 1)]  # type: ignore[no-untyped-call]
    return FacePairs(found[:, 0], found[:, 1], found[:, 2], found[:, 3], moved[0], moved[1])


def with_ground(
    position: torch.Tensor, rotation: torch.Tensor, ground: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions [N, 2 B, 3] and rotations [N, 2 B, 3, 3] of bodies and of the squares of ground below them."""
    place = position.detach().clone()
    place[..., 2] = 0.0 if ground is None else ground[:, None]
    eye = torch.eye(3, dtype=rotation.dtype, device=rotation.device).expand_as(rotation)
    return torch.cat([position, place], dim=1), torch.cat([rotation, eye], dim=1)


def _found(
    solids: Solids, place: torch.Tensor, turned: torch.Tensor, grounded: bool, near: float
) -> tuple[NDArray[np.int64], Array]:
    """Objects and triangles [E, 4], and nearest points [E, 2, 3], by Coal."""
    refuse_without_coal()
    import coal

    request = coal.CollisionRequest()
    request.security_margin, request.num_max_contacts, request.enable_contact = near, MOST, True
    at, turn = place.double().cpu().numpy(), turned.double().cpu().numpy()
    poses = [[coal.Transform3s(turn[n, b], at[n, b]) for b in range(at.shape[1])] for n in range(len(at))]
    pairs: list[tuple[int, int, int, int]] = []
    points: list[tuple[Array, Array]] = []
    objects = at.shape[1]
    for n, i, j in _close(solids, place, turned, grounded, near):
        one, other = (_mesh(solids, n, k) for k in (i, j))
        result = coal.CollisionResult()
        if not coal.collide(one, poses[n][i], other, poses[n][j], request, result):
            continue
        for contact in result.getContacts():
            pairs.append((n * objects + i, n * objects + j, contact.b1, contact.b2))
            points.append((contact.getNearestPoint1(), contact.getNearestPoint2()))
    return np.array(pairs, dtype=np.int64).reshape(-1, 4), np.array(points, dtype=np.float64).reshape(-1, 2, 3)


def _close(
    solids: Solids, place: torch.Tensor, turned: torch.Tensor, grounded: bool, near: float
) -> list[tuple[int, int, int]]:
    """Rows and two of their objects [K][3] whose hulls are near enough for a closer look."""
    bodies = solids.mass.shape[1]
    i, j = torch.triu_indices(bodies, bodies, 1)
    apart = (place[:, i] - place[:, j]).norm(dim=-1)
    row, pair = (apart < solids.reach[:, i] + solids.reach[:, j] + near).nonzero(as_tuple=True)
    found = list(zip(row.tolist(), i[pair].tolist(), j[pair].tolist(), strict=True))
    if grounded:
        corners = torch.einsum("nbj,nbvj->nbv", turned[:, :bodies, 2], solids.corners)
        lowest = torch.where(solids.corner_there, corners, torch.inf).amin(-1) + place[:, :bodies, 2]
        row, body = (lowest < place[:, bodies:, 2] + near).nonzero(as_tuple=True)
        found += [(n, b, bodies + b) for n, b in zip(row.tolist(), body.tolist(), strict=True)]
    return found


def _mesh(solids: Solids, row: int, body: int) -> Any:
    """An object's triangles, as Coal keeps them."""
    bodies = solids.mass.shape[1]
    if body >= bodies:
        corners = float(solids.reach[row, body - bodies]) * GROUND_CORNERS
        return _tree(corners.tobytes(), GROUND_TRIANGLES.tobytes())
    corners = solids.corners[row, body][solids.corner_there[row, body]].double().cpu().numpy()
    triangles = solids.triangles[row, body][solids.triangle_there[row, body]].cpu().numpy()
    return _tree(corners.tobytes(), triangles.tobytes())


@lru_cache(maxsize=4096)
def _tree(corners: bytes, triangles: bytes) -> Any:
    import coal

    points, faces = np.frombuffer(corners).reshape(-1, 3), np.frombuffer(triangles, dtype=np.int64).reshape(-1, 3)
    tree = coal.BVHModelOBBRSS()
    tree.beginModel(len(faces), len(points))
    for face in faces:
        tree.addTriangle(*(points[k] for k in face))
    tree.endModel()
    return tree
