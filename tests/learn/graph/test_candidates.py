"""Where bodies may touch: as MuJoCo sees it, and with derivatives that finite differences confirm."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from carom.core.rotations import matrices, random_turn
from carom.learn.graph.candidates import NEAR, candidates
from carom.learn.graph.solids import polytope, solids_of
from carom.learn.graph.turning import turn
from carom.scenes.shapes import Body, Shape

BOX = Body("box", "target", Shape("box", size=(0.1, 0.08, 0.06)), mass=0.3)
OTHER = Body("other", "target", Shape("box", size=(0.07, 0.09, 0.05)), mass=0.2)


def placed(seed: int, apart: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Two boxes, each turned anyhow, centres `apart` [m]."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=3)
    position = torch.tensor(np.array([[[0.0, 0.0, 1.0], [0.0, 0.0, 1.0] + apart * way / np.linalg.norm(way)]]))
    rotation = torch.tensor(np.array([[matrices(random_turn(rng)) for _ in range(2)]]))
    return position, rotation


def distance_in_mujoco(position: torch.Tensor, rotation: torch.Tensor) -> float:
    spec = mujoco.MjSpec()
    for i, body in enumerate((BOX, OTHER)):
        made = spec.worldbody.add_body(name=body.name, pos=position[0, i].numpy())
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, rotation[0, i].numpy().ravel())
        made.quat = quaternion
        made.add_geom(name=body.name, type=mujoco.mjtGeom.mjGEOM_BOX, size=np.array(body.solid.size) / 2)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return float(mujoco.mj_geomDistance(model, data, 0, 1, 1.0, np.zeros(6)))


def test_a_box_has_eight_corners_six_faces_and_twelve_edges() -> None:
    solid = polytope(BOX.solid)
    assert (len(solid.corners), len(solid.normals), len(solid.edges)) == (8, 6, 12)
    assert solid.corners @ solid.normals.T == pytest.approx(np.minimum(solid.corners @ solid.normals.T, solid.offsets))


@pytest.mark.parametrize("seed", range(25))
def test_the_nearest_candidate_is_the_distance_that_mujoco_finds(seed: int) -> None:
    for apart in np.linspace(0.06, 0.13, 15):
        position, rotation = placed(seed, apart)
        distance = distance_in_mujoco(position, rotation)
        if not 0.0005 < distance < 0.5 * NEAR:
            continue
        found = candidates(solids_of([(BOX, OTHER)], dtype=torch.float64), position, rotation, None, torch.zeros(1, 2))
        assert len(found), "bodies this near have a candidate"
        nearest = float(found.gap.min())
        # corner on edge and corner on corner are not candidates of their own: the planes through them are nearer
        assert nearest <= distance + 1e-6
        assert nearest > distance - 0.004
        assert torch.allclose(found.normal.norm(dim=-1), torch.ones(len(found), dtype=torch.float64))
        towards = ((position[0][found.second] - position[0][found.first]) * found.normal).sum(-1)
        assert (towards > 0).all(), "normals lead from the first to the second"


def test_corners_over_the_ground() -> None:
    position, rotation = torch.tensor([[[0.0, 0.0, 0.031]]]), torch.eye(3).expand(1, 1, 3, 3)
    found = candidates(solids_of([(BOX,)]), position, rotation, torch.zeros(1), torch.zeros(1, 1))
    assert len(found) == 4
    assert found.gap.numpy() == pytest.approx(0.001, abs=1e-6)
    assert (found.first == -1).all()
    assert found.flat_second.numpy() == pytest.approx(1.0)
    far = candidates(solids_of([(BOX,)]), position + 0.1, rotation, torch.zeros(1), torch.zeros(1, 1))
    assert not len(far)


@pytest.mark.parametrize("seed", range(12))
def test_derivatives_of_gaps_and_points_are_those_of_finite_differences(seed: int) -> None:
    """Eqs. 5 to 7, where the nearest features stay the same."""
    solids = solids_of([(BOX, OTHER)], dtype=torch.float64)
    for apart in np.linspace(0.06, 0.12, 25):
        position, rotation = placed(seed, apart)
        if 0.001 < distance_in_mujoco(position, rotation) < 0.4 * NEAR:
            break
    else:
        pytest.skip("these boxes do not come near each other")

    def seen(move: torch.Tensor) -> torch.Tensor:
        turned = turn(move[:, 3:]) @ rotation[0]
        found = candidates(solids, position + move[None, :, :3], turned[None], None, torch.zeros(1, 2))
        return torch.cat([found.gap[:, None], found.point, found.normal], dim=-1)

    at = torch.zeros(2, 6, dtype=torch.float64)
    exact = torch.autograd.functional.jacobian(seen, at)
    step, columns = 1e-7, []
    for i in range(12):
        change = torch.zeros(12, dtype=torch.float64)
        change[i] = step
        columns.append((seen(at + change.reshape(2, 6)) - seen(at - change.reshape(2, 6))) / (2 * step))
    differences = torch.stack(columns, dim=-1).reshape(exact.shape)
    cosine = torch.nn.functional.cosine_similarity(exact.flatten(), differences.flatten(), dim=0)
    assert cosine > 0.9999


@pytest.mark.parametrize("depth", [0.0, 0.002, 0.01, 0.03])
def test_cubes_of_the_same_height_push_each_other_aside_and_never_up(depth: float) -> None:
    """Their tops are level: the nearest face of a corner inside may be the top, but it keeps nothing apart."""
    cube = Body("cube", "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.3)
    position = torch.tensor([[[0.0, 0.0, 0.05], [0.1 - depth, 0.03, 0.05]]], dtype=torch.float64)
    rotation = torch.eye(3, dtype=torch.float64).expand(1, 2, 3, 3)
    found = candidates(solids_of([(cube, cube)], dtype=torch.float64), position, rotation, None, torch.zeros(1, 2))
    assert len(found) >= 4
    assert found.normal[:, 0].numpy() == pytest.approx(1.0 - 2.0 * (found.first.numpy() == 1))
    assert found.gap.numpy() == pytest.approx(-depth, abs=1e-9)
