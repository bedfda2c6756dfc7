"""Strikes from approach to rest in MuJoCo, thousands at a time on its thread pool.

Alone it is the calibrated MuJoCo. With an `answer` it is the hybrid: MuJoCo still finds the contact, the answer gives
the outcome, and MuJoCo goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from carom.engines.contract import Rollout, Validation
from carom.engines.mujoco.batch import ModelBatch
from carom.engines.mujoco.collide import Collider
from carom.engines.mujoco.long_steps import slower_batch
from carom.engines.mujoco.strike_run import Answer, MujocoStrikes
from carom.engines.planar import StrikeEngine, joined, unknown_to_mujoco
from carom.scenes.strike import StrikeScene
from carom.state import Array, Status, Strikes

CHUNK = 512  #: strikes that share one batch


@final
class MujocoSimulator(StrikeEngine):
    """Strikes of one scene in MuJoCo, with parameters by name; what is not given has its default."""

    def __init__(
        self,
        scene: StrikeScene,
        values: Mapping[str, float] | None = None,
        *,
        threads: int = 0,
        answer: Answer | None = None,
    ) -> None:
        self.scene, self.threads, self.answer = scene, threads, answer
        parameters = scene.parameters("mujoco")
        self.values = {p.name: float((values or {}).get(p.name, p.default)) for p in parameters}
        self.model = Collider(scene, parameters).model_with(np.array([self.values[p.name] for p in parameters]))
        self.batch = ModelBatch(self.model, threads=threads)
        self.slower = slower_batch(self.model, threads=threads) if answer else None

    def __deepcopy__(self, memo: dict[int, Any]) -> MujocoSimulator:
        """Another one alike: Gymnasium copies what environments are made of, and a batch cannot be copied."""
        other = object.__new__(MujocoSimulator)
        other.__dict__.update(self.__dict__, batch=deepcopy(self.batch), slower=deepcopy(self.slower))  # compiled once
        return other

    def judged(self, scene: StrikeScene) -> Validation:
        """MuJoCo leaves out what only the analytic teacher knows."""
        return Validation(unknown_to_mujoco(scene))

    @property
    def takes(self) -> tuple[str, ...]:
        """See `StrikeEngine`: the parameters of the scene in MuJoCo."""
        return tuple(self.values)

    def stepping(self, start: Strikes, bad: NDArray[np.bool_], values: Mapping[str, Array]) -> MujocoStrikes:
        """See `StrikeEngine`."""
        made = MujocoStrikes(self, start, np.full((len(start), 1), np.inf), None, values)
        made.status[bad] = Status.FAILED
        return made

    def rolled(self, initial: Strikes, times: Array, orders: Array | None, values: Mapping[str, Array]) -> Rollout:
        """See `StrikeEngine`."""
        parts = []
        for low in range(0, len(initial), CHUNK):
            rows = slice(low, low + CHUNK)
            own = {name: value[rows] for name, value in values.items()}
            ordered = None if orders is None else orders[rows]
            parts.append(MujocoStrikes(self, initial[rows], times[rows], ordered, own).run())
        return joined(parts)
