"""Free bodies rolled out in MuJoCo, with values of parameters in rows: what tests of them share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carom.engines.mujoco.engine import Keep, MujocoEngine
from carom.identify.tosses.simulate import Sampled, Starts
from carom.scenes.free import FreeScene, timestep
from carom.scenes.parameters import Parameter
from carom.state import Motion


class Rolled:
    """One scene; `run` takes a row of values for each start, or one for all, in the parameters' order."""

    def __init__(
        self,
        scene: FreeScene,
        parameters: Sequence[Parameter],
        *,
        period: float,
        step: float | None = None,
        threads: int = 1,
    ) -> None:
        self.scene, self.parameters, self.period = scene, tuple(parameters), period
        self.step = timestep(period) if step is None else period / max(round(period / step), 1)
        names = [p.name for p in self.parameters]
        made = MujocoEngine(scene, names, step=self.step, threads=threads)
        self.sampled, self.model = Sampled(scene, made, period), made.model

    def run(self, starts: Starts, values: np.ndarray, samples: int, *, keep: Keep | None = None) -> Motion:
        rows = np.broadcast_to(np.asarray(values, dtype=float), (len(starts), len(self.parameters)))
        named = {p.name: rows[:, i] for i, p in enumerate(self.parameters)}
        return self.sampled.simulate(starts, named, max(samples, 2), keep=keep)
