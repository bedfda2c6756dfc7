"""Shape matching: rigid motions are found exactly, and derivatives are right where singular values repeat."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from carom.core.rotations import matrices, random_turn
from carom.learn.graph.shape_matching import matched, nearest_rotation
from carom.learn.graph.turning import turn

CUBE = torch.tensor([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=torch.float64) * 0.05


def random_rotation(seed: int) -> torch.Tensor:
    return torch.tensor(matrices(random_turn(np.random.default_rng(seed))))


@pytest.mark.parametrize("seed", range(5))
def test_a_rigid_motion_is_found_whatever_is_padded(seed: int) -> None:
    rotation, position = random_rotation(seed), torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64)
    own = torch.cat([CUBE + torch.tensor([0.01, 0.0, -0.02]), torch.full((2, 3), 7.0)])
    points = own @ rotation.T + position
    points[8:] = -3.0
    there = torch.arange(10) < 8
    place, turned = matched(own[None], there[None], points[None])
    assert torch.allclose(place[0], position, atol=1e-12)
    assert torch.allclose(turned[0], rotation, atol=1e-12)


def test_what_is_not_rigid_becomes_a_rotation() -> None:
    points = (
        CUBE @ random_rotation(1).T + 0.004 * torch.randn(8, 3, generator=torch.Generator().manual_seed(0)).double()
    )
    _, turned = matched(CUBE[None], torch.ones(1, 8, dtype=torch.bool), points[None])
    assert torch.allclose(turned[0] @ turned[0].T, torch.eye(3).double(), atol=1e-12)
    assert torch.linalg.det(turned[0]) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_finite_differences(seed: int) -> None:
    matrix = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(seed)).double()
    matrix = matrix * torch.linalg.det(matrix).sign()[:, None, None]
    assert torch.autograd.gradcheck(nearest_rotation, (matrix.requires_grad_(),))


def test_derivatives_are_right_for_a_cube_whose_singular_values_are_all_the_same() -> None:
    """Those of torch's own singular vectors are not: they divide by differences that are zero."""
    small = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    points = CUBE @ (turn(small) @ random_rotation(2)).T
    _, turned = matched(CUBE[None], torch.ones(1, 8, dtype=torch.bool), points[None])
    weights = torch.randn(3, 3, generator=torch.Generator().manual_seed(4)).double()
    (found,) = torch.autograd.grad((weights * turned[0]).sum(), small)
    step, wanted = 1e-6, []
    for axis in range(3):
        ends = [weights * (turn(s * step * torch.eye(3).double()[axis]) @ random_rotation(2)) for s in (1, -1)]
        wanted.append(float((ends[0] - ends[1]).sum() / (2 * step)))
    assert torch.isfinite(found).all()
    assert found.numpy() == pytest.approx(np.array(wanted), abs=1e-7)
