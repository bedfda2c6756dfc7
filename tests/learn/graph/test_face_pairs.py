"""Near triangles by Coal: as MuJoCo sees distances, and Eqs. 5 to 7 against finite differences."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("coal", reason="Coal is not installed: pip install carom[graph]")

from test_candidates import BOX, OTHER, distance_in_mujoco, placed

from carom.learn.graph.face_pairs import HALF, NEAR, face_pairs
from carom.learn.graph.solids import solids_of
from carom.learn.graph.turning import turn

SOLIDS = solids_of([(BOX, OTHER)], dtype=torch.float64)


def near_boxes(seed: int, least: float = 0.001) -> tuple[torch.Tensor, torch.Tensor]:
    for apart in torch.linspace(0.055, 0.13, 150).tolist():
        position, rotation = placed(seed, apart)
        if least < distance_in_mujoco(position, rotation) < 0.5 * NEAR:
            return position, rotation
    pytest.skip("these boxes do not come near each other")


@pytest.mark.parametrize("seed", range(12))
def test_the_nearest_pair_is_as_far_apart_as_mujoco_finds(seed: int) -> None:
    position, rotation = near_boxes(seed)
    found = face_pairs(SOLIDS, position, rotation, None)
    apart = (found.point_second - found.point_first).norm(dim=-1)
    assert float(apart.min()) == pytest.approx(distance_in_mujoco(position, rotation), abs=1e-6)
    assert float(apart.max()) < NEAR + 1e-6
    for point, body, solid in ((found.point_first, 0, BOX), (found.point_second, 1, OTHER)):
        own = (point - position[0, body]) @ rotation[0, body]
        half = torch.tensor(solid.solid.size) / 2
        assert ((own.abs() - half).amax(-1).abs() < 1e-6).all(), "nearest points lie on the surface"


@pytest.mark.parametrize("seed", range(12))
def test_distances_change_as_eq_7_says(seed: int) -> None:
    """Along the line between nearest points the derivative is exact, though the points themselves also glide."""
    position, rotation = near_boxes(seed)

    def least(move: torch.Tensor) -> torch.Tensor:
        found = face_pairs(SOLIDS, position + move[None, :, :3], (turn(move[:, 3:]) @ rotation[0])[None], None)
        return (found.point_second - found.point_first).norm(dim=-1).min()

    exact = torch.autograd.functional.jacobian(least, torch.zeros(2, 6, dtype=torch.float64)).flatten()
    step, columns = 1e-6, []
    for i in range(12):
        change = torch.zeros(12, dtype=torch.float64)
        change[i] = step
        columns.append((least(change.reshape(2, 6)) - least(-change.reshape(2, 6))) / (2 * step))
    cosine = torch.nn.functional.cosine_similarity(exact, torch.stack(columns), dim=0)
    assert cosine > 0.99


def test_points_move_with_their_bodies() -> None:
    position, rotation = near_boxes(0)
    at = torch.zeros(2, 6, dtype=torch.float64)

    def points(move: torch.Tensor) -> torch.Tensor:
        found = face_pairs(SOLIDS, position + move[None, :, :3], (turn(move[:, 3:]) @ rotation[0])[None], None)
        return torch.stack([found.point_first[0], found.point_second[0]])

    slope = torch.autograd.functional.jacobian(points, at)
    arm = points(at)[1] - position[0, 1]
    cross = torch.tensor([[0.0, arm[2], -arm[1]], [-arm[2], 0.0, arm[0]], [arm[1], -arm[0], 0.0]]).double()
    assert torch.allclose(slope[1, :, 1, :3], torch.eye(3).double())
    assert torch.allclose(slope[1, :, 1, 3:], cross, atol=1e-12)  # Eq. 6: -[r]x
    assert (slope[1, :, 0] == 0).all()


def test_the_ground_lies_below_every_body_however_far_away() -> None:
    position = torch.tensor([[[50.0, -20.0, 0.0305], [-80.0, 0.0, 1.0]]], dtype=torch.float64)
    rotation = torch.eye(3).double().expand(1, 2, 3, 3)
    found = face_pairs(SOLIDS, position, rotation, torch.zeros(1).double())
    assert (found.first == 0).all()
    assert (found.second == 2).all(), "objects 2 and 3 are the ground below bodies 0 and 1"
    assert (found.point_second[:, 2] == 0).all()
    assert (found.point_second - position[0, 0]).norm(dim=-1).max() < HALF * float(SOLIDS.reach[0, 0])
