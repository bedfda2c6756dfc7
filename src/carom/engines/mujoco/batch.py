"""The one batch of MuJoCo simulations: made once for a size, reset for each use, stepped row by row.

Collisions, strikes, free bodies and robots all run on it. A row that MuJoCo gives up is named; the others go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from time import perf_counter
from typing import Any, final

import mujoco
import numpy as np
from mujoco.batch import Batch, SimulationError
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.core.work import threads as threads_of
from carom.state import Array

NONE = np.zeros(0, dtype=np.int64)  #: rows, of which there are none


@final
class ModelBatch:
    """Simulations of one compiled model, each with its own state and, where expanded, its own model fields."""

    def __init__(self, model: mujoco.MjModel, *, threads: int = 0) -> None:
        self.model, self.threads = model, threads
        self.seconds = 0.0  #: wall time spent inside MuJoCo
        self._batch: Batch | None = None
        self._written: frozenset[str] = frozenset()
        self.uses = 0  #: how often it was prepared: a run belongs to one of them

    def prepare(self, count: int, written: Iterable[str] = ()) -> Batch:
        """A batch of this size at the model's first state, for these parameters to be written into.

        The last one is used again if it fits, and if no parameter was written into it that would now be left there.
        """
        names = frozenset(written)
        if self._batch is None or self._batch.nsim != count or not self._written <= names:
            self._batch = Batch(self.model, count, threads_of(self.threads))
        self._written = names
        self.uses += 1
        self._batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        return self._batch

    @property
    def batch(self) -> Batch:
        """The batch that was prepared last."""
        if self._batch is None:
            raise RuntimeError("prepare a batch first")
        return self._batch

    def step(self, rows: NDArray[np.int64], steps: int = 1) -> NDArray[np.int64]:
        """Advance these rows by so many steps; returns the rows that MuJoCo gave up."""
        before, failed = perf_counter(), NONE
        try:
            self.batch.step(rows, nstep=steps)
        except SimulationError as error:
            failed = np.asarray(error.ids, dtype=np.int64)
        self.seconds += perf_counter() - before
        return failed

    def check(self, use: int) -> None:
        """Refuse to go on with a run after another one was opened."""
        if use != self.uses:
            raise CaromError("this run is over: its engine was opened or rolled out again; use an engine for each run")

    def bind(self, name: str) -> Array:
        """A field of the data [N, ...], as MuJoCo holds it: writing to it changes the simulations."""
        return np.asarray(self.batch.bind(name))

    def expand(self, name: str) -> Array:
        """A field of the model with a copy for each simulation [N, ...]."""
        return np.asarray(self.batch.expand(name))

    def __deepcopy__(self, memo: dict[int, Any]) -> ModelBatch:
        """Another one alike: Gymnasium copies what environments are made of, and a batch cannot be copied."""
        return ModelBatch(self.model, threads=self.threads)

    def __reduce__(self) -> tuple[Any, ...]:  # to another process, with the model as it was compiled
        return partial(ModelBatch, threads=self.threads), (self.model,)
