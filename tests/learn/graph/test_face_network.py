"""The preset `paper`: its graph has the shapes of the paper, learns, is an engine like the others, and is saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("coal", reason="Coal is not installed: pip install carom[graph]")

from test_dynamics import meeting, world

from carom.core.errors import CaromError
from carom.learn.graph import GraphEngine, GraphModel, Recipe, Stage, load_graph, new_network, train_graph
from carom.learn.graph.dynamics import Moving
from carom.learn.graph.face_network import FaceNetwork, FaceSizes
from carom.learn.graph.mesh_graph import EDGE, FACE, NODE, graph_of, mesh_of
from carom.scale import Variation, calibration, scale, toss
from carom.scenes.free import toss_scene
from carom.state import SceneState

SMALL = {"latent": 24, "layers": 2, "hidden": 1}


def test_a_box_on_the_ground_is_the_graph_of_the_paper() -> None:
    here, now = world(0.0, 2), meeting(2, height=0.06)
    mesh = mesh_of(here)
    graph = graph_of(here, mesh, now)
    # two boxes and two squares of ground in each of two rows: corners, and one node for each object
    assert len(graph.corners) == 2 * (8 + 8 + 4 + 4)
    assert graph.corners.shape[1] == graph.objects.shape[1] == NODE
    assert len(graph.objects) == 2 * 4
    # 12 triangles of a box have 18 edges, the two of a square 5; each leads both ways
    assert graph.along.shape == (2 * 2 * (18 + 18 + 5 + 5), EDGE)
    assert graph.outward.shape == graph.inward.shape == (len(graph.corners), EDGE)
    assert graph.near.shape[1] == FACE
    assert len(graph.near) % 2 == 0
    assert len(graph.near) > 0
    ways = set(zip(mesh.sender.tolist(), mesh.receiver.tolist(), strict=True))
    assert {(b, a) for a, b in ways} == ways


def test_sizes_are_fignet_s() -> None:
    network = new_network("paper")
    assert isinstance(network, FaceNetwork)
    assert network.settings() == {"latent": 128, "layers": 10, "hidden": 2}
    step = network.messages[0]
    assert step.near.first.in_features == 3 * 128 + 6 * 128, "an edge and the corners of two triangles"
    assert step.near.rest[-1].out_features == 3 * 128, "a message for each corner of the receiver"
    assert network.decode.rest[-1].out_features == 3
    assert sum(p.numel() for p in network.parameters()) == 6_549_123


def test_parts_are_multiplied_as_if_they_stood_side_by_side() -> None:
    network = new_network("paper", SMALL)
    layer = network.messages[0].along  # type: ignore[union-attr]
    edge, node, index = torch.randn(5, 24), torch.randn(3, 24), torch.tensor([0, 2, 1, 1, 0])
    once = layer(edge, (node, index), (node, index.flip(0)))
    together = torch.cat([edge, node[index], node[index.flip(0)]], dim=-1)
    assert torch.allclose(once, layer(together), atol=1e-5)


def test_with_no_acceleration_bodies_go_on_and_keep_their_shape() -> None:
    network = FaceNetwork(FaceSizes(**SMALL)).double()
    with torch.no_grad():
        network.decode.rest[-1].weight.zero_()
        network.decode.rest[-1].bias.zero_()
    here, now = world(None, 4), meeting(4)
    then = network.advance(here, now).moving
    assert torch.allclose(then.position, now.position + here.step * now.velocity, atol=1e-4)
    assert torch.allclose(then.rotation @ then.rotation.transpose(-1, -2), torch.eye(3).double().expand(4, 2, 3, 3))
    assert then.velocity.detach().numpy() == pytest.approx(
        now.velocity.numpy(), abs=2e-2
    )  # Verlet of corners, not of angles


def test_what_is_aimed_for_is_reached_if_it_is_predicted() -> None:
    """The loss of a step is zero for the accelerations that lead to the next frame."""
    from carom.learn.graph.face_network import _gained

    here, now = world(0.0, 3), meeting(3, height=0.08)
    then = Moving(now.position + 0.001, now.rotation, now.velocity, now.spin)
    mesh = mesh_of(here)
    graph = graph_of(here, mesh, now)
    wanted = graph.corner + graph.moved + _gained(here, mesh, graph, then)
    bodies = mesh.owner % 4 < 2
    own = torch.einsum("cij,cj->ci", then.rotation.flatten(0, 1)[_body(mesh.owner)], mesh.own)
    there = then.position.flatten(0, 1)[_body(mesh.owner)] + own
    assert torch.allclose(wanted[bodies], there[bodies], atol=1e-12)


def _body(owner: torch.Tensor) -> torch.Tensor:
    """Body of a corner's object, counted without the ground."""
    return torch.div(owner, 4, rounding_mode="floor") * 2 + (owner % 2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("paper")
    same = Variation(size=(1.0, 1.0), aspect=1.0, mass=(1.0, 1.0))
    scale(toss(rate=100.0, duration=0.5), calibration(None), place / "data", count=40, variation=same, threads=1)
    recipe = Recipe(stages=(Stage(1, 16, 150),), single=16, learning_rate=2e-3, judged_every=50)
    made = train_graph([place / "data"], place / "model", preset="paper", sizes=SMALL, recipe=recipe)
    assert made.curve[-1][2] < made.curve[0][2], "rollouts that it has not seen get better"
    return place / "model"


def test_normalisers_are_saved_with_the_weights(trained: Path) -> None:
    model = load_graph(trained)
    spread = model.network.normal["near"].spread  # type: ignore[union-attr, index]
    assert not torch.allclose(spread, torch.ones_like(spread))
    assert model.network.settings() == SMALL


def test_it_is_an_engine_like_the_others(trained: Path) -> None:
    engine = GraphEngine(load_graph(trained), toss_scene())
    one, none = np.ones((3, 1, 1)), np.zeros((3, 1, 3))
    start = SceneState(("cube",), one * [0.0, 0.0, 0.3], one * [1.0, 0.0, 0.0, 0.0], none, none)
    run = engine.open(start)
    motion = run.rollout(0.1, frames=11)
    assert motion.position.shape == (3, 11, 1, 3)
    assert np.isfinite(motion.position).all()
    assert motion.position[0] == pytest.approx(motion.position[2])
    with pytest.raises(CaromError, match="preset `paper` gives accelerations, no impulses"):
        run.contacts()


def test_derivatives_lead_through_contact_and_shape_matching() -> None:
    torch.manual_seed(1)
    network, here, now = FaceNetwork(FaceSizes(**SMALL)).double(), world(0.0, 2), meeting(2, height=0.05)

    def end(velocity: torch.Tensor) -> torch.Tensor:
        state = Moving(now.position, now.rotation, velocity, now.spin)
        for _ in range(2):
            state = network.advance(here, state).moving
        return state.position.sum() + state.rotation[..., 0].sum()

    speed = now.velocity.clone().requires_grad_()
    (found,) = torch.autograd.grad(end(speed), speed)
    assert torch.isfinite(found).all()
    assert float(found.abs().max()) > 1e-4


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(CaromError, match=r"unknown preset of graph simulators 'papr' \(did you mean 'paper'\?\)"):
        new_network("papr")
    with pytest.raises(CaromError, match="size 'latent' of a network: expected 1 to 1024, got 0"):
        new_network("paper", {"latent": 0})
    with pytest.raises(CaromError, match="unknown size of a network 'wide'"):
        new_network("paper", {"wide": 4})
    assert GraphModel(new_network("paper", SMALL), 0.01, {}, {}).network.preset == "paper"
