"""Bodies as a graph (few-shot paper, section III-C; FIGNet): nodes at corners and centres, edges along their meshes.

The ground is made of objects like the others: below each body a square of it that does not move. Objects are numbered
through all rows, 2 B in each, the bodies first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from carom.learn.graph.dynamics import Moving, World
from carom.learn.graph.face_pairs import GROUND_CORNERS, GROUND_TRIANGLES, FacePairs, face_pairs, with_ground
from carom.learn.graph.turning import turn

NODE, EDGE, FACE = 9, 8, 34  #: features of a node, of an edge along a mesh or to its centre, of two near triangles


@dataclass(frozen=True)
class Mesh:
    """What does not change over a rollout: corners, edges and triangles of all objects in one list each."""

    node: torch.Tensor  #: [N, 2 B, V] number of each corner's node
    there: torch.Tensor  #: [N, 2 B, V] not padding
    owner: torch.Tensor  #: [C] object of each corner
    own: torch.Tensor  #: [C, 3] corners in their body's axes, about its centre of mass [m]
    sender: torch.Tensor  #: [E] corner that an edge comes from
    receiver: torch.Tensor  #: [E] corner that it leads to
    triangles: torch.Tensor  #: [N * 2 B, T, 3] corners' nodes


def mesh_of(world: World) -> Mesh:
    """The meshes of all bodies and of the ground."""
    solids = world.solids
    rows, bodies, most = solids.corner_there.shape
    square = torch.as_tensor(GROUND_CORNERS, dtype=solids.corners.dtype, device=solids.mass.device)
    faces = torch.as_tensor(GROUND_TRIANGLES, device=solids.mass.device)
    wide, deep = max(most, len(square)), max(solids.triangles.shape[2], len(faces))
    own = square.new_zeros(rows, 2 * bodies, wide, 3)
    there = torch.zeros(rows, 2 * bodies, wide, dtype=torch.bool, device=own.device)
    triangles = torch.zeros(rows, 2 * bodies, deep, 3, dtype=torch.long, device=own.device)
    real = torch.zeros(rows, 2 * bodies, deep, dtype=torch.bool, device=own.device)
    own[:, :bodies, :most], there[:, :bodies, :most] = solids.corners, solids.corner_there
    own[:, bodies:, : len(square)] = solids.reach[..., None, None] * square
    there[:, bodies:, : len(square)] = world.ground is not None
    triangles[:, :bodies, : solids.triangles.shape[2]] = solids.triangles
    real[:, :bodies, : solids.triangles.shape[2]] = solids.triangle_there
    triangles[:, bodies:, : len(faces)], real[:, bodies:, : len(faces)] = faces, world.ground is not None
    node = there.flatten().cumsum(0).reshape(there.shape) - 1
    numbered = torch.gather(node, 2, triangles.flatten(2)).reshape(triangles.shape)
    count = int(there.sum())
    a, b, c = numbered[real].unbind(-1)
    ways = torch.cat([torch.stack(pair) for pair in ((a, b), (b, c), (c, a), (b, a), (c, b), (a, c))], dim=1)
    code = torch.unique(ways[0] * count + ways[1])
    owner = torch.arange(rows * 2 * bodies, device=own.device).reshape(rows, 2 * bodies, 1).expand_as(there)[there]
    sender, receiver = torch.div(code, count, rounding_mode="floor"), code % count
    return Mesh(node, there, owner, own[there], sender, receiver, numbered.flatten(0, 1))


@dataclass(frozen=True)
class Graph:
    """A mesh at an instant, as the network reads it. Every edge is there in both directions."""

    corner: torch.Tensor  #: [C, 3] where corners are [m]
    moved: torch.Tensor  #: [C, 3] since the last frame [m]
    corners: torch.Tensor  #: [C, NODE] features
    objects: torch.Tensor  #: [O, NODE]
    along: torch.Tensor  #: [E, EDGE] of edges along meshes
    outward: torch.Tensor  #: [C, EDGE] from an object's centre to its corners
    inward: torch.Tensor  #: [C, EDGE] and back
    near: torch.Tensor  #: [F, FACE] of near triangles
    face_sender: torch.Tensor  #: [F, 3] corners
    face_receiver: torch.Tensor  #: [F, 3]


def graph_of(world: World, mesh: Mesh, now: Moving) -> Graph:
    """The graph of bodies that are on their way."""
    step, still = world.step, torch.zeros_like(now.velocity)
    place, turned = (v.flatten(0, 1) for v in with_ground(now.position, now.rotation, world.ground))
    before = with_ground(now.position, turn(-step * now.spin) @ now.rotation, world.ground)[1].flatten(0, 1)
    gone = step * torch.cat([now.velocity, still], dim=1).flatten(0, 1)
    arm = torch.einsum("cij,cj->ci", turned[mesh.owner], mesh.own)
    arm_before = torch.einsum("cij,cj->ci", before[mesh.owner], mesh.own)
    corner, moved = place[mesh.owner] + arm, gone[mesh.owner] + arm - arm_before
    fixed = _fixed(world)
    pairs = face_pairs(world.solids, now.position, now.rotation, world.ground)
    near, sender, receiver = _near(mesh, corner, pairs)
    return Graph(
        corner,
        moved,
        torch.cat([moved, fixed[mesh.owner]], dim=-1),
        torch.cat([gone, fixed], dim=-1),
        _edge(corner[mesh.sender] - corner[mesh.receiver], mesh.own[mesh.sender] - mesh.own[mesh.receiver]),
        _edge(-arm, -mesh.own),
        _edge(arm, mesh.own),
        near,
        sender,
        receiver,
    )


def _fixed(world: World) -> torch.Tensor:
    """What objects [O, NODE - 3] are: the ground or a body, their mass, their row's parameters."""
    rows, bodies = world.solids.mass.shape
    ground = world.solids.mass.new_zeros(rows, 2 * bodies, 1)
    ground[:, bodies:] = 1.0
    mass = torch.nn.functional.pad(torch.log(world.solids.mass), (0, bodies))[..., None]
    told = world.conditions[:, None].expand(-1, 2 * bodies, -1)
    return torch.cat([ground, mass, told], dim=-1).flatten(0, 1)


def _edge(way: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Features [..., EDGE]: the way from receiver to sender as it is and as it was drawn, with lengths."""
    return torch.cat([way, length(way), own, length(own)], dim=-1)


def length(vector: torch.Tensor) -> torch.Tensor:
    """Lengths [..., 1], with a derivative at zero."""
    return torch.sqrt((vector * vector).sum(-1, keepdim=True) + 1e-12)


def _near(mesh: Mesh, corner: torch.Tensor, pairs: FacePairs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features [F, FACE] of near triangles, both ways, and the corners [F, 3] that send and receive."""
    one, other = mesh.triangles[pairs.first, pairs.face_first], mesh.triangles[pairs.second, pairs.face_second]
    ways = ((one, other, pairs.point_first, pairs.point_second), (other, one, pairs.point_second, pairs.point_first))
    features = []
    for sender, receiver, sent, received in ways:
        away = sent - received
        arms = [corner[sender[:, k]] - sent for k in range(3)] + [corner[receiver[:, k]] - received for k in range(3)]
        parts = [away, length(away)] + [part for arm in arms for part in (arm, length(arm))]
        features.append(torch.cat([*parts, _normal(corner[sender]), _normal(corner[receiver])], dim=-1))
    return torch.cat(features), torch.cat([one, other]), torch.cat([other, one])


def _normal(corners: torch.Tensor) -> torch.Tensor:
    """Normals [F, 3] of triangles with corners [F, 3, 3]."""
    across = torch.linalg.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal: torch.Tensor = across / length(across)
    return normal
