"""Slides in longer steps: once a target is alone and no longer rocks, nothing stiff is left that would need short ones.

A step of MuJoCo moves a body at the velocity that it has at its end, so that longer steps brake a little sooner. What
goes over to longer steps therefore gets its velocity half of the difference earlier; its way is then the same.
"""

from __future__ import annotations

from copy import deepcopy
from typing import final

import mujoco
import numpy as np
from numpy.typing import NDArray

from carom.engines.approach import time_to_touch
from carom.engines.mujoco.batch import ModelBatch
from carom.engines.strike_states import PLANAR
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

SETTLED = 0.03  #: [s] after the blow in which a struck target rocks most: more than a time constant of its contacts
LONG = 8  #: steps in one longer step: together less than half a time constant of the contacts
OFF = -1e3  #: [m] margin of a pair that shall not even be looked at
STANDING = 6  #: steps in which a target stands on its ground before it is touched


def slower_batch(model: mujoco.MjModel, *, threads: int) -> ModelBatch:
    """Simulations of a strike scene's model with so much longer steps, and with strikers that are gone."""
    longer, pair = deepcopy(model), model.pair("striker").id
    longer.pair_margin[pair], longer.pair_gap[pair] = OFF, 0.0
    longer.opt.timestep = LONG * model.opt.timestep
    return ModelBatch(longer, threads=threads)


def steps_alone(scene: StrikeScene, strikes: Strikes, timestep: float, most: NDArray[np.int64]) -> NDArray[np.int64]:
    """Steps [N] in which strikers come nearer to targets at rest and nothing else happens; at most so many [N]."""
    near = time_to_touch(scene, strikes) / timestep - STANDING
    coming = np.isfinite(near) & ~strikes.target_velocity.any(axis=1)
    return np.asarray(np.clip(np.minimum(np.where(coming, near, 0.0), most), 0, None).astype(np.int64))


@final
class LongSteps:
    """Rows of a batch that go on in longer steps, in a batch of their own."""

    def __init__(self, batch: ModelBatch, short: float, states: tuple[Array, Array]) -> None:
        self.batch, self.short, self.states = batch, short, states  #: `qpos` and `qvel` of the rows, as they are seen
        self.sooner = (float(batch.model.opt.timestep) - short) / 2
        count = len(states[0])
        batch.prepare(count)
        self.qpos, self.qvel = batch.bind("qpos"), batch.bind("qvel")
        self.begun, self.left, self.first = np.zeros(count, dtype=bool), np.full(count, np.inf), np.zeros((count, 3))

    def set_out(self, rows: NDArray[np.int64], step: int) -> None:
        """Targets that leave now."""
        self.left[rows], self.first[rows] = step, self.states[1][rows[:, None], PLANAR]

    def settled(self, rows: NDArray[np.int64], step: int) -> NDArray[np.bool_]:
        """Which of these may go on in longer steps [n]."""
        return np.asarray(step >= self.left[rows] + SETTLED / self.short)

    def step(self, rows: NDArray[np.int64], step: int) -> NDArray[np.int64]:
        """One longer step of these rows; returns those that MuJoCo gave up."""
        qpos, qvel = self.states
        fresh = rows[~self.begun[rows]]
        if len(fresh):
            self.begun[fresh] = True
            self.qpos[fresh], self.qvel[fresh] = qpos[fresh], qvel[fresh]
            lost = self.first[fresh] - qvel[fresh[:, None], PLANAR]  # since it left: at an instant it rocks
            since = (step - self.left[fresh])[:, None] * self.short
            self.qvel[fresh[:, None], PLANAR] += self.sooner * lost / since
        failed = self.batch.step(rows)
        qpos[rows], qvel[rows] = self.qpos[rows], self.qvel[rows]
        return failed
