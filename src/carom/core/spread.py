"""Points spread evenly over the unit cube."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc


def even_spread(count: int, dimension: int, seed: int | np.random.Generator) -> NDArray[np.float64]:
    """The first points [count, dimension] of a scrambled Sobol sequence."""
    power = int(np.ceil(np.log2(max(count, 2))))
    return np.asarray(qmc.Sobol(dimension, seed=seed).random_base2(power)[:count])
