"""Convex bodies as tensors: corners, faces and edges about the centre of mass, masses and inertias; rows of scenes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from carom.core.errors import SceneError
from carom.scenes.shapes import Body, Shape
from carom.state import Array

FLAT = 1e-6  #: triangles whose normals (and distances over the reach) differ by less lie in one face
SOLID = ("box", "cylinder", "disc", "mesh")  #: shapes that have corners, faces and edges here; round ones are prisms


class Polytope(NamedTuple):
    """A convex solid in its body's frame."""

    corners: Array  #: [V, 3] [m]
    normals: Array  #: [F, 3] outward
    offsets: Array  #: [F] of the faces' planes: inside is normals . p <= offsets [m]
    edges: NDArray[np.int64]  #: [E, 2] corners
    sides: NDArray[np.int64]  #: [E, 2] the two faces that meet there
    triangles: NDArray[np.int64]  #: [T, 3] corners, counter-clockwise from outside


@lru_cache(maxsize=4096)
def polytope(shape: Shape) -> Polytope:
    """Corners, faces and edges of a shape; triangles that lie in one plane are one face."""
    if shape.kind not in SOLID:
        raise SceneError(f"the graph simulator has no '{shape.kind}'; expected {', '.join(SOLID)}")
    corners, triangles = shape.surface()
    first, second, third = (corners[triangles[:, i]] for i in range(3))
    normal = np.cross(second - first, third - first)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    offset = (normal * first).sum(axis=-1)
    reach = float(np.linalg.norm(corners, axis=-1).max())
    face = np.full(len(triangles), -1)
    leaders: list[int] = []
    for i in range(len(triangles)):
        if face[i] < 0:
            same = (normal @ normal[i] > 1 - FLAT) & (np.abs(offset - offset[i]) < 1e-4 * reach)
            face[same & (face < 0)] = len(leaders)
            leaders.append(i)
    met: dict[tuple[int, int], list[int]] = {}
    for index, (a, b, c) in enumerate(triangles.tolist()):
        for one, other in ((a, b), (b, c), (c, a)):
            met.setdefault((min(one, other), max(one, other)), []).append(int(face[index]))
    sharp = [(pair, faces) for pair, faces in met.items() if len(faces) == 2 and faces[0] != faces[1]]
    edges = np.array([pair for pair, _ in sharp], dtype=np.int64).reshape(-1, 2)
    sides = np.array([faces for _, faces in sharp], dtype=np.int64).reshape(-1, 2)
    return Polytope(corners, normal[leaders], offset[leaders], edges, sides, triangles.astype(np.int64))


@dataclass(frozen=True)
class Solids:
    """B bodies in each of N rows, about their centres of mass, in their own axes; padded, as shapes differ."""

    corners: torch.Tensor  #: [N, B, V, 3] [m]
    corner_there: torch.Tensor  #: [N, B, V] not padding
    normals: torch.Tensor  #: [N, B, F, 3]
    offsets: torch.Tensor  #: [N, B, F] [m]; padding is never reached
    edges: torch.Tensor  #: [N, B, E, 2] corners
    sides: torch.Tensor  #: [N, B, E, 2] faces
    edge_there: torch.Tensor  #: [N, B, E]
    triangles: torch.Tensor  #: [N, B, T, 3] corners
    triangle_there: torch.Tensor  #: [N, B, T]
    mass: torch.Tensor  #: [N, B] [kg]
    inertia: torch.Tensor  #: [N, B, 3, 3] [kg m^2]
    centre: torch.Tensor  #: [N, B, 3] of mass, in the body's frame [m]
    reach: torch.Tensor  #: [N, B] radius of the sphere about the centre that holds all [m]

    @property
    def gyration(self) -> torch.Tensor:
        """Mean radius of gyration [N, B] [m]: the lever of the error norm."""
        trace = self.inertia.diagonal(dim1=-2, dim2=-1).sum(-1)
        return torch.sqrt(trace / 3 / self.mass)

    def __len__(self) -> int:
        return len(self.mass)

    def __getitem__(self, rows: torch.Tensor | slice | NDArray[np.integer]) -> Solids:
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def to(self, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Solids:
        """The same on another device, or with numbers of another kind."""
        moved = {}
        for f in fields(self):
            value: torch.Tensor = getattr(self, f.name)
            moved[f.name] = value.to(device=device, dtype=dtype if value.is_floating_point() else None)
        return replace(self, **moved)


def solids_of(
    rows: Sequence[Sequence[Body]], bodies: int | None = None, *, dtype: torch.dtype = torch.float32
) -> Solids:
    """The bodies of each row [N][B]; `bodies` is B, for an empty batch."""
    bodies = len(rows[0]) if len(rows) else bodies or 0
    made = [[polytope(body.solid) for body in row] for row in rows]
    count = len(rows)
    counts = [[(len(p.corners), len(p.normals), len(p.edges), len(p.triangles)) for p in row] for row in made]
    most = np.array(counts, dtype=np.int64).reshape(-1, 4).max(axis=0, initial=1).tolist()
    corners, normals = np.zeros((count, bodies, most[0], 3)), np.zeros((count, bodies, most[1], 3))
    offsets, there = np.full((count, bodies, most[1]), np.inf), np.zeros((count, bodies, most[0]), dtype=bool)
    edges = np.zeros((2, count, bodies, most[2], 2), dtype=np.int64)
    edge_there = np.zeros((count, bodies, most[2]), dtype=bool)
    triangles = np.zeros((count, bodies, most[3], 3), dtype=np.int64)
    triangle_there = np.zeros((count, bodies, most[3]), dtype=bool)
    mass, inertia = np.ones((count, bodies)), np.tile(np.eye(3), (count, bodies, 1, 1))
    centre, reach = np.zeros((count, bodies, 3)), np.zeros((count, bodies))
    for n, row in enumerate(rows):
        for b, body in enumerate(row):
            solid, middle = made[n][b], body.centre
            v, f, e = len(solid.corners), len(solid.normals), len(solid.edges)
            corners[n, b, :v], there[n, b, :v] = solid.corners - middle, True
            normals[n, b, :f], offsets[n, b, :f] = solid.normals, solid.offsets - solid.normals @ middle
            edges[0, n, b, :e], edges[1, n, b, :e], edge_there[n, b, :e] = solid.edges, solid.sides, True
            triangles[n, b, : len(solid.triangles)], triangle_there[n, b, : len(solid.triangles)] = (
                solid.triangles,
                True,
            )
            mass[n, b], inertia[n, b], centre[n, b] = float(body.mass or 1.0), body.inertia_matrix, middle
            reach[n, b] = np.linalg.norm(solid.corners - middle, axis=-1).max()
    real = [torch.as_tensor(v, dtype=dtype) for v in (corners, normals, offsets, mass, inertia, centre, reach)]
    whole = [torch.as_tensor(v) for v in (there, edges[0], edges[1], edge_there, triangles, triangle_there)]
    return Solids(real[0], whole[0], real[1], real[2], *whole[1:], *real[3:])
