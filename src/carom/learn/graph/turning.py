"""Rotations as tensors: turns from rotation vectors and back, safe to differentiate at rest."""

from __future__ import annotations

import torch

SMALL = 1e-6  #: [rad^2] squared angle below which series are used


def skew(vector: torch.Tensor) -> torch.Tensor:
    """Matrices [..., 3, 3] that take the cross product with vectors [..., 3]."""
    x, y, z = vector.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=-1).reshape(*vector.shape, 3)


def vee(matrix: torch.Tensor) -> torch.Tensor:
    """Vectors [..., 3] whose `skew` is what matrices [..., 3, 3] are less their transposes."""
    parts = [matrix[..., i, j] - matrix[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]
    return torch.stack(parts, dim=-1)


def turn(vector: torch.Tensor) -> torch.Tensor:
    """Rotation matrices [..., 3, 3] of rotation vectors [..., 3] [rad]."""
    square = (vector * vector).sum(-1)[..., None, None]
    safe = torch.where(square < SMALL, torch.ones_like(square), square)
    angle = safe.sqrt()
    first = torch.where(square < SMALL, 1 - square / 6, torch.sin(angle) / angle)
    second = torch.where(square < SMALL, 0.5 - square / 24, (1 - torch.cos(angle)) / safe)
    cross = skew(vector)
    eye = torch.eye(3, dtype=vector.dtype, device=vector.device)
    return eye + first * cross + second * (cross @ cross)


def turned_by(rotation: torch.Tensor) -> torch.Tensor:
    """Rotation vectors [..., 3] [rad] of matrices [..., 3, 3], for turns below half a circle."""
    axis = vee(rotation)
    sine = axis.norm(dim=-1, keepdim=True) / 2
    cosine = (rotation.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True) - 1) / 2
    angle = torch.atan2(sine, cosine)
    return torch.where(sine > 1e-6, axis / 2 * angle / sine.clamp_min(1e-9), axis / 2)


def matrices_of(quaternion: torch.Tensor) -> torch.Tensor:
    """Rotation matrices [..., 3, 3] of unit quaternions [..., 4], w first."""
    w, x, y, z = quaternion.unbind(-1)
    rows = [
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    ]
    return torch.stack(rows, dim=-1).reshape(*quaternion.shape[:-1], 3, 3)
