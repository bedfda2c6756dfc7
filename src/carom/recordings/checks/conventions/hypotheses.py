"""Four ways in which the numbers of a quaternion may be meant, and how evidence for them is weighed.

All four are rotations or mirrorings of the four numbers as a vector. So they keep every path's smoothness: continuity
in time, or an even spin in flight, looks the same under all of them and says nothing. For the same reason a density of
what is physically likely can be asked at the numbers read in each of the four ways, and its values compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from carom.state import Array

CHANGES = ("as declared", "w-last", "inverted", "w-last and inverted")
STEPS = 25  #: values of an unknown scatter that are tried
_CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


def read_as(quaternion: Array, frame: str) -> Array:
    """The recorded numbers [..., 4] read in the four ways [4, ..., 4], in the order of `CHANGES`.

    Linear, so rates of change can be given too. `frame` is the header's: with y up, the numbers were turned when they
    were read, and are turned back before they are read otherwise.
    """
    numbers = quaternion if frame == "z-up" else _raised(quaternion, -1.0)
    last = numbers[..., [3, 0, 1, 2]]
    ways = np.stack([numbers, last, numbers * _CONJUGATE, last * _CONJUGATE])
    return ways if frame == "z-up" else _raised(ways, 1.0)


def _raised(quaternion: Array, sign: float) -> Array:
    """Quaternions after a quarter turn of the world about x (back: sign -1)."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    s = sign
    return np.asarray(np.stack([w - s * x, x + s * w, y - s * z, z + s * y], axis=-1) * np.sqrt(0.5))


def scattered(values: Array, columns: Array, widths: ArrayLike, *, least: float, most: float) -> Array:
    """Log of the probability density [...] of values [..., N] that scatter about an unknown combination of columns.

    The columns [..., N, P] have coefficients of about `widths` [P] or less (normal); how much the values scatter about
    them is unknown between `least` and `most`, every order of magnitude alike. Both are integrated over.
    """
    sigma = np.geomspace(least, most, STEPS)[:, None]
    with np.errstate(invalid="ignore"):
        u, s, _ = np.linalg.svd(columns * np.asarray(widths), full_matrices=False)
    along = np.einsum("...np,...n->...p", u, values)[..., None, :]
    rest = (values**2).sum(axis=-1)[..., None] - (along[..., 0, :] ** 2).sum(axis=-1)[..., None]
    spread = sigma**2 + (s**2)[..., None, :]
    outside = values.shape[-1] - s.shape[-1]
    total = -0.5 * (np.log(spread) + along**2 / spread).sum(axis=-1)
    total = total - 0.5 * (outside * np.log(sigma[:, 0] ** 2) + np.maximum(rest, 0.0) / sigma[:, 0] ** 2)
    return np.asarray(mean_of(total, axis=-1) - 0.5 * values.shape[-1] * np.log(2 * np.pi))


def mean_of(logs: Array, axis: int = -1) -> Array:
    """Log of the mean of what the logs stand for."""
    return np.asarray(np.logaddexp.reduce(logs, axis=axis) - np.log(logs.shape[axis]))


def mixed(shares: ArrayLike, *logs: Array) -> Array:
    """Log of a mixture of densities with these shares."""
    parts = np.broadcast_arrays(*(np.log(s) + part for s, part in zip(np.asarray(shares), logs, strict=True)))
    return np.asarray(np.logaddexp.reduce(parts))


def near_axis(angle: Array, sigma: Array | float) -> Array:
    """Log density, per solid angle, of a direction that lies this far [rad] from where it should."""
    return np.asarray(-np.log(2 * np.pi * sigma**2) - 0.5 * (angle / sigma) ** 2)


ANYWHERE = -float(np.log(4 * np.pi))  #: log density of a direction of which nothing is known
