"""Where bodies may touch within the next step: corners over the ground, corners over faces, edges across edges.

Which features these are is decided without derivatives; where they are, how far apart and along which normal follows
from the poses and can be differentiated (the few-shot paper's surrogate gradients, Eqs. 5 to 7: features stay what they
are within a step, nearest points move with their bodies).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from carom.learn.graph.solids import Solids

NEAR = 0.01  #: [m] beyond what two bodies approach within a step: nearer ones are candidates
DEEP = 0.04  #: [m] at most that features lie inside each other
ALIKE = 2e-3  #: [m] by which edges may overlap further than a face and count beside it
SLACK = 1e-3  #: [m] by which a corner's foot may lie outside of a face
LEAN = 1e-3  #: [rad] by which a normal may lie beyond those between two faces: upright boxes meet at its very end


@dataclass(frozen=True)
class Candidates:
    """C pairs of nearest features. `first` is -1 for the ground; bodies are numbered through all rows."""

    first: torch.Tensor  #: [C] body, or -1
    second: torch.Tensor  #: [C] body
    point: torch.Tensor  #: [C, 3] between the two nearest points, world [m]
    normal: torch.Tensor  #: [C, 3] from the first to the second, world
    gap: torch.Tensor  #: [C] negative: they overlap [m]
    flat_first: torch.Tensor  #: [C] how far a face of the first lies across the normal: 1 flat; 1 for the ground
    flat_second: torch.Tensor  #: [C]
    crossed: torch.Tensor  #: [C] whether edges cross: which of the two bodies comes first means nothing

    def __len__(self) -> int:
        return len(self.second)


def candidates(
    solids: Solids, position: torch.Tensor, rotation: torch.Tensor, ground: torch.Tensor | None, reach: torch.Tensor
) -> Candidates:
    """Pairs of features that may touch, of bodies at positions [N, B, 3] (centres of mass) and rotations [N, B, 3, 3].

    `ground` [N] is its height (None: there is none); `reach` [N, B] how far each body may move within the step [m].
    """
    parts = [] if ground is None else [_over_ground(solids, position, rotation, ground, reach)]
    if position.shape[1] > 1:
        parts += _between(solids, position, rotation, reach)
    names = ("first", "second", "point", "normal", "gap", "flat_first", "flat_second", "crossed")
    return Candidates(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def _flatness(solids: Solids, rotation: torch.Tensor, body: torch.Tensor, normal: torch.Tensor) -> torch.Tensor:
    """Cosine [C] between a normal and the face that lies across it most."""
    own = torch.einsum("cij,ci->cj", rotation.flatten(0, 1)[body], normal)
    return torch.einsum("cfj,cj->cf", solids.normals.flatten(0, 1)[body], own).abs().max(dim=-1).values


def _over_ground(
    solids: Solids, position: torch.Tensor, rotation: torch.Tensor, ground: torch.Tensor, reach: torch.Tensor
) -> Candidates:
    corners = torch.einsum("nbij,nbvj->nbvi", rotation, solids.corners) + position[:, :, None]
    gap = corners[..., 2] - ground[:, None, None]
    near = solids.corner_there & (gap.detach() < NEAR + reach[..., None])
    row, body, corner = near.nonzero(as_tuple=True)
    second, point, apart = row * position.shape[1] + body, corners[row, body, corner], gap[row, body, corner]
    normal = torch.zeros_like(point)
    normal[:, 2] = 1.0
    flat = _flatness(solids, rotation, second, normal)
    half = torch.stack([0 * apart, 0 * apart, apart / 2], dim=-1)
    ground_first, no = torch.full_like(second, -1), torch.zeros_like(second, dtype=torch.bool)
    return Candidates(ground_first, second, point - half, normal, apart, torch.ones_like(flat), flat, no)


def _between(solids: Solids, position: torch.Tensor, rotation: torch.Tensor, reach: torch.Tensor) -> list[Candidates]:
    bodies = position.shape[1]
    i, j = torch.triu_indices(bodies, bodies, 1, device=position.device)
    far = (position[:, i] - position[:, j]).detach().norm(dim=-1)
    close = far < solids.reach[:, i] + solids.reach[:, j] + NEAR + reach[:, i] + reach[:, j]
    row, pair = close.nonzero(as_tuple=True)
    one, other = row * bodies + i[pair], row * bodies + j[pair]
    near = NEAR + (reach.flatten()[one] + reach.flatten()[other])
    flat = _Flat(solids, position.flatten(0, 1), rotation.flatten(0, 1))
    over_one, apart_one = _corners_over_faces(flat, one, other, near)
    over_other, apart_other = _corners_over_faces(flat, other, one, near)
    least = torch.maximum(apart_one, apart_other) - ALIKE
    return [over_one, over_other, _edges_across_edges(flat, one, other, near, least)]


class _Flat:
    """Bodies of all rows in one list, at their places."""

    def __init__(self, solids: Solids, position: torch.Tensor, rotation: torch.Tensor) -> None:
        self.solids, self.position, self.rotation = solids, position, rotation
        self.corners, self.there = solids.corners.flatten(0, 1), solids.corner_there.flatten(0, 1)
        self.normals, self.offsets = solids.normals.flatten(0, 1), solids.offsets.flatten(0, 1)
        self.edges, self.sides = solids.edges.flatten(0, 1), solids.sides.flatten(0, 1)
        self.edge_there = solids.edge_there.flatten(0, 1)

    def world(self, body: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Points [P, ..., 3] of bodies [P] in the world."""
        shape = (len(body), *([1] * (own.ndim - 2)), 3)
        return torch.einsum("pij,p...j->p...i", self.rotation[body], own) + self.position[body].reshape(shape)

    def own(self, body: torch.Tensor, world: torch.Tensor) -> torch.Tensor:
        """World points [P, ..., 3] in the axes of bodies [P], about their centres."""
        shape = (len(body), *([1] * (world.ndim - 2)), 3)
        return torch.einsum("pji,p...j->p...i", self.rotation[body], world - self.position[body].reshape(shape))


def _corners_over_faces(
    flat: _Flat, faced: torch.Tensor, pointed: torch.Tensor, near: torch.Tensor
) -> tuple[Candidates, torch.Tensor]:
    """Corners of `pointed` bodies [P] over a face of `faced` ones [P]; and how far that face keeps them apart [P]."""
    with torch.no_grad():
        seen = flat.own(faced, flat.world(pointed, flat.corners[pointed]))
        height = torch.einsum("pvj,pfj->pvf", seen, flat.normals[faced]) - flat.offsets[faced][:, None]
        height = torch.where(torch.isfinite(height), height, -torch.inf)
        # the face that keeps the bodies apart, or nearly: of a corner inside, another face may be nearer by chance
        above = torch.where(flat.there[pointed][..., None], height, torch.inf).amin(dim=1)
        separation, face = above.max(dim=-1)
        gap = height[torch.arange(len(face), device=face.device), :, face]
        normal = flat.normals[faced, face]
        foot = seen - gap[..., None] * normal[:, None]
        outside = torch.einsum("pvj,pfj->pvf", foot, flat.normals[faced]) - flat.offsets[faced][:, None]
        inside = torch.where(torch.isfinite(outside), outside, -torch.inf).max(dim=-1).values < SLACK
        keep = flat.there[pointed] & inside & (gap < near[:, None]) & (gap > -DEEP)
        pair, corner = keep.nonzero(as_tuple=True)
        side = face[pair]
    first, second = faced[pair], pointed[pair]
    point = flat.world(second, flat.corners[second, corner])
    normal = torch.einsum("pij,pj->pi", flat.rotation[first], flat.normals[first, side])
    apart = ((point - flat.position[first]) * normal).sum(-1) - flat.offsets[first, side]
    flatness = _flatness(flat.solids, _rows(flat), second, normal)
    middle = point - normal * apart[:, None] / 2
    no = torch.zeros_like(second, dtype=torch.bool)
    return Candidates(first, second, middle, normal, apart, torch.ones_like(apart), flatness, no), separation


def _rows(flat: _Flat) -> torch.Tensor:
    return flat.rotation.reshape(*flat.solids.mass.shape, 3, 3)


def _edges_across_edges(
    flat: _Flat, one: torch.Tensor, other: torch.Tensor, near: torch.Tensor, least: torch.Tensor
) -> Candidates:
    """Edges of two bodies [P] that cross: their common normal lies between the faces beside each of them.

    Edges that overlap further than `least` [P] [m] do not keep the bodies apart: a face does.
    """
    with torch.no_grad():
        begin_a, along_a, left_a, right_a = _edges(flat, one)
        begin_b, along_b, left_b, right_b = _edges(flat, other)
        cross = torch.linalg.cross(along_a[:, :, None], along_b[:, None, :])
        size = cross.norm(dim=-1)
        normal = cross / size.clamp_min(1e-12)[..., None]
        across = begin_b[:, None, :] - begin_a[:, :, None]
        towards = (flat.position[other] - flat.position[one])[:, None, None]
        normal = normal * torch.where((normal * towards).sum(-1) < 0, -1.0, 1.0)[..., None]
        gap = (across * normal).sum(-1)
        ok = _between_faces(normal, along_a[:, :, None], left_a[:, :, None], right_a[:, :, None])
        ok &= _between_faces(-normal, along_b[:, None], left_b[:, None], right_b[:, None])
        s, t = _crossing(across, along_a[:, :, None], along_b[:, None, :])
        ok &= (s > 0) & (s < 1) & (t > 0) & (t < 1) & (gap < near[:, None, None]) & (gap > -DEEP)
        parallel = size < 0.05 * along_a.norm(dim=-1)[:, :, None] * along_b.norm(dim=-1)[:, None, :]
        ok &= gap > least[:, None, None]
        ok &= ~parallel & flat.edge_there[one][:, :, None] & flat.edge_there[other][:, None, :]
        pair, edge_a, edge_b = ok.nonzero(as_tuple=True)
        sign = torch.where((cross[pair, edge_a, edge_b] * normal[pair, edge_a, edge_b]).sum(-1) < 0, -1.0, 1.0)
    first, second = one[pair], other[pair]
    start_a, way_a = _edge(flat, first, edge_a)
    start_b, way_b = _edge(flat, second, edge_b)
    normal = torch.linalg.cross(way_a, way_b) * sign[:, None]
    normal = normal / normal.norm(dim=-1, keepdim=True)
    between = start_b - start_a
    s, t = _crossing(between, way_a, way_b)
    on_a, on_b = start_a + s[:, None] * way_a, start_b + t[:, None] * way_b
    apart = (between * normal).sum(-1)
    rotation = _rows(flat)
    return Candidates(
        first,
        second,
        (on_a + on_b) / 2,
        normal,
        apart,
        _flatness(flat.solids, rotation, first, normal),
        _flatness(flat.solids, rotation, second, normal),
        torch.ones_like(second, dtype=torch.bool),
    )


def _edges(flat: _Flat, body: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Begin, direction and the two faces' normals [P, E, 3] of all edges of bodies [P], world."""
    shape = (len(body), flat.edges.shape[1], 2, 3)
    pair = torch.gather(flat.corners[body], 1, flat.edges[body].flatten(1)[..., None].expand(-1, -1, 3)).reshape(shape)
    faces = torch.gather(flat.normals[body], 1, flat.sides[body].flatten(1)[..., None].expand(-1, -1, 3)).reshape(shape)
    turn = flat.rotation[body]
    begin, end = flat.world(body, pair[:, :, 0]), flat.world(body, pair[:, :, 1])
    left, right = (torch.einsum("pij,pej->pei", turn, faces[:, :, k]) for k in (0, 1))
    return begin, end - begin, left, right


def _edge(flat: _Flat, body: torch.Tensor, edge: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    ends = flat.edges[body, edge]
    begin = flat.world(body, flat.corners[body, ends[:, 0]])
    return begin, flat.world(body, flat.corners[body, ends[:, 1]]) - begin


def _between_faces(normal: torch.Tensor, along: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Whether a direction across an edge lies between the normals of the faces that meet there."""
    turn = (torch.linalg.cross(left, right) * along).sum(-1)
    from_left = (torch.linalg.cross(left.expand_as(normal), normal) * along).sum(-1)
    to_right = (torch.linalg.cross(normal, right.expand_as(normal)) * along).sum(-1)
    outward = ((left + right) * normal).sum(-1) > 0
    beyond = -LEAN * (along * along).sum(-1)
    between: torch.Tensor = (from_left * turn >= beyond) & (to_right * turn >= beyond) & outward
    return between


def _crossing(between: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Shares s, t [...] along two lines at which they are nearest, from the vector between their beginnings."""
    aa, bb, ab = (a * a).sum(-1), (b * b).sum(-1), (a * b).sum(-1)
    ea, eb = (between * a).sum(-1), (between * b).sum(-1)
    below = (aa * bb - ab * ab).clamp_min(1e-18)
    return (bb * ea - ab * eb) / below, (ab * ea - aa * eb) / below
