"""CMA-ES in the unit cube: ask for a whole generation, tell what came of it."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@final
class Cma:
    """CMA-ES (Hansen) over points [D] in the unit cube, any D from 1 on.

    >>> search = Cma(np.array([0.5]), sigma=0.2, seed=0)
    >>> for _ in range(30):
    ...     search.tell(((search.ask() - 0.3) ** 2).sum(axis=1))
    >>> abs(search.mean[0] - 0.3) < 1e-3
    np.True_
    """

    def __init__(self, mean: Array, *, sigma: float, seed: int, population: int | None = None) -> None:
        from cmaes import CMA

        self._dimension = len(mean)
        # the library wants two dimensions at least: a single one gets a second that nothing depends on
        padded = np.full(max(self._dimension, 2), 0.5)
        padded[: self._dimension] = mean
        bounds = np.tile([0.0, 1.0], (len(padded), 1))
        self._search = CMA(mean=padded, sigma=sigma, bounds=bounds, seed=seed, population_size=population)
        self._asked = np.empty((0, len(padded)))

    @property
    def population(self) -> int:
        """Points of one generation."""
        return int(self._search.population_size)

    @property
    def mean(self) -> Array:
        """Where the next generation is drawn around [D]."""
        return np.array(self._search.mean[: self._dimension])

    @property
    def converged(self) -> bool:
        """Whether going on would change nothing."""
        return bool(self._search.should_stop())

    def ask(self) -> Array:
        """The next generation [M, D]."""
        self._asked = np.array([self._search.ask() for _ in range(self.population)])
        return self._asked[:, : self._dimension].copy()

    def tell(self, losses: Array) -> None:
        """The losses [M], finite, of the generation that was asked for last."""
        self._search.tell([(point, float(loss)) for point, loss in zip(self._asked, losses, strict=True)])
