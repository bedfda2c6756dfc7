"""The preset `paper`: message passing over meshes and near triangles (few-shot paper, section III-C; FIGNet).

Encode, L steps of messages (Eqs. 2 and 3), decode an acceleration for each corner (Eq. 4), go on by Verlet, and bring
the corners back into a rigid body by shape matching. It keeps neither momentum nor energy, and learns flight too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import torch
from torch import nn

from carom.learn.graph.dynamics import Advanced, GraphNetwork, Moving, World
from carom.learn.graph.mesh_graph import EDGE, FACE, NODE, Graph, Mesh, graph_of, mesh_of
from carom.learn.graph.shape_matching import matched
from carom.learn.graph.turning import turned_by

STEADY = 1e-8  #: a feature that varies by less is left as it is


@dataclass(frozen=True)
class FaceSizes:
    """How large the network is; FIGNet's own sizes."""

    latent: int = 128
    layers: int = 10
    hidden: int = 2


class Normaliser(nn.Module):
    """Features with mean 0 and spread 1 over the training data; saved with the weights."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mean: torch.Tensor
        self.spread: torch.Tensor
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    def fit(self, values: torch.Tensor) -> None:
        """Take mean and spread from values [K, width]."""
        spread = values.std(dim=0, unbiased=False)
        self.mean.copy_(values.mean(dim=0))
        self.spread.copy_(torch.where(spread > STEADY, spread, torch.ones_like(spread)))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return (values - self.mean) / self.spread

    def back(self, values: torch.Tensor) -> torch.Tensor:
        """The other way."""
        return values * self.spread + self.mean


class Perceptron(nn.Module):
    """Hidden layers with ReLU, then layer normalisation. Its input is given in parts, each from a list of its own."""

    def __init__(self, inputs: int, sizes: FaceSizes, outputs: int, *, normed: bool = True) -> None:
        super().__init__()
        widths = [sizes.latent] * sizes.hidden
        self.first = nn.Linear(inputs, widths[0])
        pairs = zip(widths, [*widths[1:], outputs], strict=True)
        self.rest = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        self.norm: nn.Module = nn.LayerNorm(outputs) if normed else nn.Identity()

    def forward(self, *parts: torch.Tensor | tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Each part is [K, W], or values [M, W] with their numbers [K]: those are multiplied before they spread."""
        begin = 0
        total: torch.Tensor = self.first.bias
        for part in parts:
            values, index = part if isinstance(part, tuple) else (part, None)
            made = values @ self.first.weight[:, begin : begin + values.shape[-1]].T
            total = total + (made if index is None else made[index])
            begin += values.shape[-1]
        for layer in self.rest:
            total = layer(torch.relu(total))
        result: torch.Tensor = self.norm(total)
        return result


class Messages(nn.Module):
    """One step of message passing: edges first (Eq. 2), then nodes (Eq. 3), each added to what it was."""

    def __init__(self, sizes: FaceSizes) -> None:
        super().__init__()
        wide = sizes.latent
        self.along, self.outward, self.inward = (Perceptron(3 * wide, sizes, wide) for _ in range(3))
        self.near = Perceptron(9 * wide, sizes, 3 * wide)
        self.corner, self.object = Perceptron(4 * wide, sizes, wide), Perceptron(2 * wide, sizes, wide)

    def forward(self, mesh: Mesh, graph: Graph, state: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        corners, objects, along, outward, inward, near = state
        along = along + self.along(along, (corners, mesh.sender), (corners, mesh.receiver))
        outward = outward + self.outward(outward, (objects, mesh.owner), corners)
        inward = inward + self.inward(inward, corners, (objects, mesh.owner))
        ends = [(corners, side[:, k]) for side in (graph.face_sender, graph.face_receiver) for k in range(3)]
        near = near + self.near(near, *ends)
        none = torch.zeros_like(corners)
        from_near = none
        for k, message in enumerate(near.chunk(3, dim=-1)):
            from_near = from_near.index_add(0, graph.face_receiver[:, k], message)
        from_along = none.index_add(0, mesh.receiver, along)
        to_object = torch.zeros_like(objects).index_add(0, mesh.owner, inward)
        corners = corners + self.corner(corners, from_along, outward, from_near)
        return corners, objects + self.object(objects, to_object), along, outward, inward, near


@final
class FaceNetwork(GraphNetwork):
    """Accelerations of corners from a graph of meshes and near triangles."""

    preset = "paper"
    flies = False

    def __init__(self, sizes: FaceSizes = FaceSizes()) -> None:  # noqa: B008 - frozen
        super().__init__()
        self.sizes = sizes
        widths = {"corners": NODE, "objects": NODE, "along": EDGE, "outward": EDGE, "inward": EDGE, "near": FACE}
        self.normal = nn.ModuleDict({name: Normaliser(width) for name, width in {**widths, "result": 3}.items()})
        self.encode = nn.ModuleDict(
            {
                name: Perceptron(width, sizes, sizes.latent * (3 if name == "near" else 1))
                for name, width in widths.items()
            }
        )
        self.messages = nn.ModuleList(Messages(sizes) for _ in range(sizes.layers))
        self.decode = Perceptron(sizes.latent, sizes, 3, normed=False)

    def settings(self) -> dict[str, Any]:
        """What it takes to make this network again, weights apart."""
        return asdict(self.sizes)

    def advance(self, world: World, now: Moving, *, half: bool = False) -> Advanced:
        """See `GraphNetwork`."""
        mesh = mesh_of(world)
        graph = graph_of(world, mesh, now)
        gained = self.normal["result"].back(self(mesh, graph))  # type: ignore[operator]
        ahead = graph.corner + graph.moved + (gained / 2 if half else gained)  # Verlet: 2 p_t - p_(t-1) + a
        bodies = world.solids.mass.shape[1]
        points = ahead[mesh.node[:, :bodies].clamp_min(0)]
        own = graph.corner.new_zeros(*mesh.there.shape, 3)
        own[mesh.there] = mesh.own
        position, rotation = matched(own[:, :bodies], mesh.there[:, :bodies], points)
        spin = turned_by(rotation @ now.rotation.transpose(-1, -2)) / world.step
        return Advanced(Moving(position, rotation, (position - now.position) / world.step, spin), None, None)

    def forward(self, mesh: Mesh, graph: Graph) -> torch.Tensor:
        """Accelerations [C, 3] of the corners times the step squared, normalised (Eq. 4)."""
        names = ("corners", "objects", "along", "outward", "inward", "near")
        state = tuple(self.encode[name](self.normal[name](getattr(graph, name))) for name in names)
        for step in self.messages:
            state = step(mesh, graph, state)
        result: torch.Tensor = self.decode(state[0])
        return result

    def step_loss(self, world: World, now: Moving, then: Moving) -> torch.Tensor:
        """Mean square of the corners' accelerations, normalised."""
        mesh = mesh_of(world)
        graph = graph_of(world, mesh, now)
        wanted = self.normal["result"](_gained(world, mesh, graph, then))
        moves = _bodies(world, mesh)
        loss: torch.Tensor = ((self(mesh, graph) - wanted)[moves] ** 2).mean()
        return loss

    @torch.no_grad()
    def prepare(self, examples: Sequence[tuple[World, Moving, Moving]]) -> None:
        """Fit the normalisers."""
        kept: dict[str, list[torch.Tensor]] = {name: [] for name in self.normal}
        for world, now, then in examples:
            mesh = mesh_of(world)
            graph = graph_of(world, mesh, now)
            for name in kept:
                if name != "result":
                    kept[name].append(getattr(graph, name))
            kept["result"].append(_gained(world, mesh, graph, then)[_bodies(world, mesh)])
        for name, values in kept.items():
            every = torch.cat(values)
            if len(every):
                self.normal[name].fit(every)  # type: ignore[operator]


def _bodies(world: World, mesh: Mesh) -> torch.Tensor:
    """Corners [C] that are not the ground's."""
    bodies = world.solids.mass.shape[1]
    return mesh.owner % (2 * bodies) < bodies


def _gained(world: World, mesh: Mesh, graph: Graph, then: Moving) -> torch.Tensor:
    """Accelerations [C, 3] times the step squared that lead to another frame; zero for the ground's."""
    turned = torch.cat([then.rotation, then.rotation], dim=1).flatten(0, 1)[mesh.owner]
    place = torch.cat([then.position, then.position], dim=1).flatten(0, 1)[mesh.owner]
    there = place + torch.einsum("cij,cj->ci", turned, mesh.own)
    gained = there - graph.corner - graph.moved
    return torch.where(_bodies(world, mesh)[:, None], gained, torch.zeros_like(gained))
