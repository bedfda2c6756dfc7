"""Parameter candidates tried on all strikes in MuJoCo, a whole generation in one call of the engine, and kept.

MuJoCo's outcomes scatter by a few percent with where a contact falls between two time steps, so the lowest loss is
partly luck: a parabola through all candidates around it gives the optimum and the sensitivities without that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import qmc

from carom.core.progress import Steps
from carom.engines.mujoco.collide import FAILED, MISSED, Collider
from carom.identify import trust
from carom.scenes.parameters import Parameter, defaults, from_unit
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, rotate

PENALTY = 10.0  #: relative error that a missed or failed strike counts as: large, but finite
PROBES = 3  #: places from which each parameter is moved over its whole range, to see whether it does anything
TINY = 0.004  #: change of a strike's speed and direction [1, rad] that matters to nobody: what differs is scatter
NUDGES = 3  #: such changes at each place
TYPICAL = 0.8  #: quantile over strikes: one strike at the brink of another outcome tells little
CHANCE = 2.0  #: times the scatter: what an effect over the whole range must exceed
AROUND = 0.2  #: distance in unit space of the candidates that give the sensitivities at the best one
POLISH = 2  #: smoothed steps at the end


class Trials:
    """Candidates tried on all strikes in MuJoCo, and kept with their residuals."""

    def __init__(
        self,
        scene: StrikeScene,
        impacts: Impacts,
        *,
        parameters: Sequence[Parameter | str] | None,
        fixed: Mapping[str, float] | None,
        budget: int,
        threads: int = 0,
        progress: Steps | None = None,
    ) -> None:
        self.scene, self.impacts = scene, trust.measured(impacts)
        own = {p.name: p for p in parameters or () if isinstance(p, Parameter)}  # their bounds may differ
        self.parameters = tuple(own.get(p.name, p) for p in scene.parameters("mujoco"))
        self.held = trust.held_values(self.parameters, parameters, fixed)
        self.dead: dict[str, float] = {}
        self.active = [i for i, p in enumerate(self.parameters) if p.name not in self.held]
        self.collider = Collider(scene, self.parameters, threads=threads)
        self.budget, self.progress = budget, progress
        self.unit = np.zeros((0, len(self.active)))  #: [C, A]
        self.residual = np.zeros((0, len(impacts), 3))  #: [C, N, 3]
        self.evaluations, self.failures, self.scatter = 0, 0, 0.0
        still = np.zeros((len(impacts), 3))
        size = np.linalg.norm(trust.residuals(still, impacts.post, scene.gyration_radius), axis=-1)
        self._size = np.maximum(size, 0.05 * max(float(size.max()), 1e-6))

    @property
    def per_candidate(self) -> int:
        return len(self.impacts)

    @property
    def loss(self) -> Array:
        """Eq. 3 of every candidate [C]."""
        return np.asarray((self.residual**2).sum(axis=-1).mean(axis=-1))

    @property
    def best(self) -> int:
        return int(np.argmin(self.loss))

    def left(self) -> int:
        """Candidates that the budget still allows, those of the last stage set aside."""
        return max((self.budget - self.evaluations) // self.per_candidate - self.last_stage, 0)

    @property
    def last_stage(self) -> int:
        return POLISH * (2 * (len(self.active) + 1) + 2) + 1

    def full(self, unit: Array) -> Array:
        """Values of all parameters [C, P] for unit candidates [C, A]."""
        values = np.broadcast_to(defaults(self.parameters), (len(unit), len(self.parameters))).copy()
        for i, p in enumerate(self.parameters):
            if p.name in self.held:
                values[:, i] = self.held[p.name][0]
        values[:, self.active] = from_unit([self.parameters[i] for i in self.active], np.clip(unit, 0.0, 1.0))
        return values

    def simulate(self, unit: Array, rows: np.ndarray) -> Array:
        """Residuals [M, 3] of strikes `rows` [M], each with its own unit parameters [M, A]."""
        impacts = self.impacts
        out = self.collider.run(impacts.strikes[rows], self.full(unit))
        residual = trust.residuals(out.post, impacts.post[rows], self.scene.gyration_radius)
        lost = (out.status == MISSED) | (out.status == FAILED) | ~np.isfinite(out.post).all(axis=-1)
        residual[lost] = (PENALTY * self._size / np.sqrt(3))[rows[lost], None]
        self.evaluations += len(rows)
        self.failures += int(lost.sum())
        return residual

    def run(self, unit: Array) -> Array:
        """Try candidates [C, A] on all strikes, in one call; returns their losses [C] (Eq. 3)."""
        unit = np.clip(unit, 0.0, 1.0)
        count, strikes = len(unit), self.per_candidate
        rows = np.tile(np.arange(strikes), count)
        residual = self.simulate(np.repeat(unit, strikes, axis=0), rows).reshape(count, strikes, 3)
        self.unit = np.concatenate([self.unit, unit])
        self.residual = np.concatenate([self.residual, residual])
        if self.progress:
            self.progress(min(self.evaluations, self.budget), self.budget)
        return np.asarray((residual**2).sum(axis=-1).mean(axis=-1))

    def probe(self, seed: int) -> None:
        """Move each parameter over its whole range, from a few places; those that change nothing are given up now.

        Contacts begin at one time step or the next, so outcomes scatter a little with any change at all: what
        counts is an effect beyond that of a change so small that it cannot matter.
        """
        count = len(self.active)
        places = qmc.Sobol(count, seed=seed).random(4)[:PROBES] * 0.6 + 0.2
        unit = np.repeat(np.repeat(places[:, None, None], count, axis=1), 2, axis=2)  # [places, A, low or high, A]
        for i, inside in enumerate(np.linspace(0.02, 0.1, PROBES)):  # other ends each time, or one alone would repeat
            unit[i, np.arange(count), 0, np.arange(count)] = inside
            unit[i, np.arange(count), 1, np.arange(count)] = 1 - inside
        rng = np.random.default_rng(seed)
        scaled = self._nudged(unit.reshape(PROBES, -1, count), TINY * rng.choice([-1.0, 1.0], size=(PROBES, 1, 2)))
        ends = scaled.reshape(PROBES, count, 2, -1, 3)
        moved = ends[:, :, 1] - ends[:, :, 0]
        # what is the same from every place is the parameter's doing; scatter differs, and its products average out
        pairs = np.einsum("pasc,qasc->pqa", moved, moved)[np.triu_indices(PROBES, 1)] / self.per_candidate
        effect = np.sqrt(np.maximum(pairs.mean(axis=0), 0.0))
        still = np.repeat(places[:, None], NUDGES, axis=1)
        near = self._nudged(still, TINY * rng.uniform(-1.0, 1.0, size=(PROBES, NUDGES, 2)))
        apart = np.linalg.norm(near - np.roll(near, 1, axis=1), axis=-1)
        self.scatter = float(np.quantile(apart, TYPICAL))
        names = [self.parameters[i].name for i in self.active]
        self.dead = trust.without_effect(names, effect, chance=CHANCE * self.scatter)
        keep = np.array([name not in self.dead for name in names])
        self.held |= {p.name: (p.default, "") for p in self.parameters if p.name in self.dead}
        self.active = [i for i, k in zip(self.active, keep, strict=True) if k]
        self.unit = np.zeros((0, len(self.active)))

    def _nudged(self, unit: Array, nudge: Array) -> Array:
        """Outcomes [L, M, N, 3], as shares of the measured ones, of candidates [L, M, A] with strikes a little changed.

        `nudge` [L, M or 1, 2] is the change of direction [rad] and of speed [1]; the outcomes are for the old speed.
        """
        strikes, count = self.impacts.strikes, self.per_candidate
        turn, faster = np.repeat(np.broadcast_to(nudge, (*unit.shape[:2], 2)).reshape(-1, 2), count, axis=0).T
        rows = np.tile(np.arange(count), unit.shape[0] * unit.shape[1])
        velocity = strikes.striker_velocity[rows]
        velocity[:, :2] = rotate(velocity[:, :2], turn) * (1 + faster)[:, None]
        values = np.repeat(self.full(unit.reshape(-1, unit.shape[-1])), count, axis=0)
        out = self.collider.run(replace(strikes[rows], striker_velocity=velocity), values)
        self.evaluations += len(rows)
        scale = np.array([1.0, 1.0, self.scene.gyration_radius]) / self._size[rows, None]
        return np.asarray((out.post / (1 + faster)[:, None] * scale).reshape(*unit.shape[:2], count, 3))

    def smoothed(self, centre: Array) -> trust.Fit:
        """Residuals and their sensitivities at a point, from a parabola through all candidates around it.

        One candidate's loss is partly luck with the scatter of contact times; the parabola averages over it.
        """
        count = len(centre)
        offset = self.unit - centre
        distance = np.abs(offset).max(axis=1)
        rows = np.flatnonzero(distance <= max(AROUND, float(np.sort(distance)[min(3 * count + 2, len(distance) - 1)])))
        design = np.concatenate([np.ones((len(rows), 1)), offset[rows], offset[rows] ** 2], axis=1)
        outcome = self.residual[rows].reshape(len(rows), -1)
        # a faint pull of slope and curvature to zero keeps directions with few candidates from running away
        ridge = np.diag([0.0, *([1e-4] * count), *([1e-3] * count)])
        inverse = np.linalg.inv(design.T @ design + ridge)
        found = inverse @ design.T @ outcome
        freedom = max(len(rows) - design.shape[1], 1)
        variance = float(((outcome - design @ found) ** 2).mean()) * len(rows) / freedom
        jacobian = np.moveaxis(found[1 : count + 1].reshape(count, -1, 3), 0, -1)
        doubt = variance * inverse[1 : count + 1, 1 : count + 1]
        return trust.Fit(centre, found[0].reshape(-1, 3), jacobian, doubt, self.unit, self.loss)
