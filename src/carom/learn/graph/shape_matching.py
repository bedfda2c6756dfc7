"""Shape matching: the rigid motion that brings corners of a body nearest to where a network put them.

Müller et al. 2005, weighed. The rotation is the orthogonal part of a polar decomposition. Its derivative is computed
from the symmetric part, not from singular vectors: these are undefined where singular values repeat, as a cube's do.
"""

from __future__ import annotations

from typing import Any

import torch

from carom.learn.graph.turning import skew, vee

LEAST = 1e-9  #: of the largest singular value, below which a body is as flat as a needle and turns anyhow


class _Nearest(torch.autograd.Function):
    """Rotations [..., 3, 3] nearest to matrices [..., 3, 3]."""

    @staticmethod
    def forward(ctx: Any, matrix: torch.Tensor) -> Any:
        """`matrix` = rotation @ symmetric."""
        left, _, right = torch.linalg.svd(matrix)
        sign = torch.ones_like(matrix[..., 0])
        sign[..., 2] = torch.linalg.det(left @ right).sign()
        rotation = (left * sign[..., None, :]) @ right
        symmetric = rotation.transpose(-1, -2) @ matrix
        ctx.save_for_backward(rotation, (symmetric + symmetric.transpose(-1, -2)) / 2)
        return rotation

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """With dR = R [w]x: (tr(S) 1 - S) w = vee(R'dA - dA'R). So the derivative is R [h]x, (tr(S) 1 - S) h = vee."""
        rotation, symmetric = ctx.saved_tensors
        seen = rotation.transpose(-1, -2) @ grads[0]
        eye = torch.eye(3, dtype=symmetric.dtype, device=symmetric.device)
        size = symmetric.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        turned = torch.linalg.solve(size * eye - symmetric + LEAST * size.abs() * eye, vee(seen)[..., None])[..., 0]
        return rotation @ skew(turned)


def nearest_rotation(matrix: torch.Tensor) -> torch.Tensor:
    """The rotations [..., 3, 3] nearest to matrices [..., 3, 3]; can be differentiated wherever they are unique."""
    found: torch.Tensor = _Nearest.apply(matrix)  # type: ignore[no-untyped-call]
    return found


def matched(own: torch.Tensor, there: torch.Tensor, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions [..., 3] of the bodies' centres and rotations [..., 3, 3] that bring corners nearest to points.

    Corners `own` [..., V, 3] are about the centre of mass, in the body's axes; those not `there` [..., V] do not count.
    """
    weight = there.to(points.dtype)[..., None]
    weight = weight / weight.sum(dim=-2, keepdim=True).clamp_min(1.0)
    middle, mean = (weight * own).sum(-2), (weight * points).sum(-2)
    spread = weight * (points - mean[..., None, :])
    rotation = nearest_rotation(spread.transpose(-1, -2) @ (own - middle[..., None, :]))
    return mean - (rotation @ middle[..., None])[..., 0], rotation
