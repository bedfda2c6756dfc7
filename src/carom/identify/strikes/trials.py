"""Parameter candidates tried on all strikes in MuJoCo, a whole generation in one call of the engine, and kept.

MuJoCo's outcomes scatter by a few percent with where a contact falls between two time steps, so the lowest loss is
partly luck: a parabola through all candidates around it gives the optimum and the sensitivities without that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from carom.core.progress import Steps
from carom.core.spread import even_spread
from carom.engines.mujoco.collide import FAILED, MISSED, Collider
from carom.identify import trust
from carom.identify.problem import Problem, held_values, without_effect
from carom.identify.result import Errors
from carom.scenes.parameters import Parameter
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
LEVELS = 9  #: of each parameter over its whole range, with which it is seen how far it can be off; beside the budget


@dataclass(frozen=True, kw_only=True)
class StrikeProblem(Problem):
    """Recorded strikes to be explained by MuJoCo."""

    scene: StrikeScene
    impacts: Impacts
    collider: Collider
    size: Array  #: [N] of the measured outcomes [m/s]; tiny ones count as 5 % of the largest

    @classmethod
    def of(
        cls,
        scene: StrikeScene,
        impacts: Impacts,
        *,
        parameters: Sequence[Parameter | str] | None = None,
        fixed: Mapping[str, float] | None = None,
        threads: int = 0,
    ) -> StrikeProblem:
        """The problem with these parameters looked for (default: all); a `Parameter` brings its own bounds."""
        trust.measured(impacts)
        own = {p.name: p for p in parameters or () if isinstance(p, Parameter)}
        known = tuple(own.get(p.name, p) for p in scene.parameters("mujoco"))
        held = held_values(known, parameters, fixed)
        size = trust.sizes(impacts.post, scene.gyration_radius)
        size = np.maximum(size, 0.05 * max(float(size.max()), 1e-6))
        collider = Collider(scene, known, threads=threads)
        return cls(parameters=known, held=held, scene=scene, impacts=impacts, collider=collider, size=size)

    def residuals(self, unit: Array, rows: np.ndarray) -> Array:
        """Residuals [M, 3] of strikes `rows` [M], each with its own unit parameters [M, A]."""
        impacts = self.impacts
        out = self.collider.run(impacts.strikes[rows], self.values(unit))
        residual = trust.residuals(out.post, impacts.post[rows], self.scene.gyration_radius)
        lost = (out.status == MISSED) | (out.status == FAILED) | ~np.isfinite(out.post).all(axis=-1)
        residual[lost] = (PENALTY * self.size / np.sqrt(3))[rows[lost], None]
        self.effort.evaluations += len(rows)
        self.effort.failures += int(lost.sum())
        return residual

    def unread(self, unit: Array) -> Array:
        """Change of all residuals [N, 3] that the recordings cannot rule out, at a point [A]; see `trust.unread`."""
        values = self.values(unit)
        lasting = self.collider.run(self.impacts.strikes, np.tile(values, (len(self.impacts), 1))).lasting
        names = [p.name for p in self.parameters]
        change = trust.unread(self.scene, self.impacts, lasting, float(values[0, names.index("ground_friction")]))
        return np.asarray(change * np.array([1.0, 1.0, self.scene.gyration_radius]))

    def errors(self, residual: Array) -> Errors:
        """What residuals [N, 3] of all strikes amount to."""
        return trust.errors(residual, trust.sizes(self.impacts.post, self.scene.gyration_radius))

    def nudged(self, unit: Array, nudge: Array) -> Array:
        """Outcomes [L, M, N, 3], as shares of the measured ones, of candidates [L, M, A] with strikes a little changed.

        `nudge` [L, M or 1, 2] is the change of direction [rad] and of speed [1]; the outcomes are for the old speed.
        """
        strikes, count = self.impacts.strikes, len(self.impacts)
        turn, faster = np.repeat(np.broadcast_to(nudge, (*unit.shape[:2], 2)).reshape(-1, 2), count, axis=0).T
        rows = np.tile(np.arange(count), unit.shape[0] * unit.shape[1])
        velocity = strikes.striker_velocity[rows]
        velocity[:, :2] = rotate(velocity[:, :2], turn) * (1 + faster)[:, None]
        values = np.repeat(self.values(unit.reshape(-1, unit.shape[-1])), count, axis=0)
        out = self.collider.run(replace(strikes[rows], striker_velocity=velocity), values)
        self.effort.evaluations += len(rows)
        scale = np.array([1.0, 1.0, self.scene.gyration_radius]) / self.size[rows, None]
        return np.asarray((out.post / (1 + faster)[:, None] * scale).reshape(*unit.shape[:2], count, 3))


class Trials:
    """Candidates tried on all strikes, and kept with their residuals."""

    def __init__(self, problem: StrikeProblem, budget: int, progress: Steps | None = None) -> None:
        self.problem, self.budget, self.progress = problem, budget, progress
        self.unit = np.zeros((0, len(problem.active)))  #: [C, A]
        self.residual = np.zeros((0, len(problem.impacts), 3))  #: [C, N, 3]
        self.scatter = 0.0  #: of the engine, as a share of the outcomes

    @property
    def loss(self) -> Array:
        """Eq. 3 of every candidate [C]."""
        return _loss(self.residual)

    @property
    def best(self) -> int:
        return int(np.argmin(self.loss))

    def left(self) -> int:
        """Candidates that the budget still allows, those of the last stage set aside."""
        last_stage = POLISH * (2 * (self.unit.shape[1] + 1) + 2) + 1
        spent = self.problem.effort.evaluations
        return max((self.budget - spent) // len(self.problem.impacts) - last_stage, 0)

    def run(self, unit: Array) -> Array:
        """Try candidates [C, A] on all strikes, in one call; returns their losses [C] (Eq. 3)."""
        unit = np.clip(unit, 0.0, 1.0)
        count, strikes = len(unit), len(self.problem.impacts)
        rows = np.tile(np.arange(strikes), count)
        residual = self.problem.residuals(np.repeat(unit, strikes, axis=0), rows).reshape(count, strikes, 3)
        self.unit = np.concatenate([self.unit, unit])
        self.residual = np.concatenate([self.residual, residual])
        if self.progress:
            self.progress(min(self.problem.effort.evaluations, self.budget), self.budget)
        return _loss(residual)

    def probe(self, seed: int) -> None:
        """Move each parameter over its whole range, from a few places; those that change nothing are given up now.

        Contacts begin at one time step or the next, so outcomes scatter a little with any change at all: what
        counts is an effect beyond that of a change so small that it cannot matter.
        """
        problem = self.problem
        count, names = len(problem.active), [p.name for p in problem.sought]
        places = even_spread(PROBES, count, seed) * 0.6 + 0.2
        unit = np.repeat(np.repeat(places[:, None, None], count, axis=1), 2, axis=2)  # [places, A, low or high, A]
        for i, inside in enumerate(np.linspace(0.02, 0.1, PROBES)):  # other ends each time, or one alone would repeat
            unit[i, np.arange(count), 0, np.arange(count)] = inside
            unit[i, np.arange(count), 1, np.arange(count)] = 1 - inside
        rng = np.random.default_rng(seed)
        scaled = problem.nudged(unit.reshape(PROBES, -1, count), TINY * rng.choice([-1.0, 1.0], size=(PROBES, 1, 2)))
        ends = scaled.reshape(PROBES, count, 2, -1, 3)
        moved = ends[:, :, 1] - ends[:, :, 0]
        # what is the same from every place is the parameter's doing; scatter differs, and its products average out
        pairs = np.einsum("pasc,qasc->pqa", moved, moved)[np.triu_indices(PROBES, 1)] / len(problem.impacts)
        effect = np.sqrt(np.maximum(pairs.mean(axis=0), 0.0))
        still = np.repeat(places[:, None], NUDGES, axis=1)
        near = problem.nudged(still, TINY * rng.uniform(-1.0, 1.0, size=(PROBES, NUDGES, 2)))
        apart = np.linalg.norm(near - np.roll(near, 1, axis=1), axis=-1)
        self.scatter = float(np.quantile(apart, TYPICAL))
        self.problem = problem.giving_up(without_effect(names, effect, chance=CHANCE * self.scatter))
        self.unit = np.zeros((0, len(self.problem.active)))

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
        ridge = [0.0, *([1e-4] * count), *([1e-3] * count)]
        found, inverse, squares = trust.regression(design, outcome, ridge)
        variance = squares / outcome.size * len(rows) / max(len(rows) - design.shape[1], 1)
        jacobian = np.moveaxis(found[1 : count + 1].reshape(count, -1, 3), 0, -1)
        doubt = variance * inverse[1 : count + 1, 1 : count + 1]
        return trust.Fit(centre, found[0].reshape(-1, 3), jacobian, doubt, self.unit, self.loss)


def _loss(residual: Array) -> Array:
    """Eq. 3 [C] of residuals [C, N, 3]."""
    return np.asarray((residual**2).sum(axis=-1).mean(axis=-1))
