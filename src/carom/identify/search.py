"""Identification on MuJoCo itself, without gradients: grid search and CMA-ES (the paper's first baseline, IV-A).

Every candidate is tried on every strike, a whole generation in one call of the engine, and kept. MuJoCo's outcomes
scatter by a few percent with where a contact falls between two time steps, so the lowest loss is partly luck: a
parabola through all candidates around it gives the optimum and the sensitivities with that smoothed out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
from scipy.stats import qmc

from carom.errors import CaromError, unknown_name
from carom.identify import trust
from carom.identify.result import Errors, Identification
from carom.scenes.collide import FAILED, MISSED, Collider
from carom.scenes.parameters import Parameter, defaults, from_unit
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts

Progress = Callable[[int, int], None]
BUDGET = 2500  #: strikes simulated in one identification: a few seconds
PENALTY = 10.0  #: relative error that a missed or failed strike counts as: large, but finite
PROBES = 2  #: places from which each parameter is moved over its whole range, to see whether it does anything
TINY = 0.004  #: step in unit space that matters to nobody: what it changes is the engine's scatter
NUDGES = 3  #: such steps from each place
CHANCE = 1.5  #: times the scatter: what an effect must exceed
AROUND = 0.2  #: distance in unit space of the candidates that give the sensitivities at the best one
POLISH = 2  #: smoothed steps at the end
LUCK = 1.2  #: times the best loss seen: a smoothed optimum may be so much worse and still be preferred
MOST_FOLDS = 20
LEVELS = ((0.5, 0.45), (0.22, 0.2), (0.1, 0.2), (0.04, 0.15))  #: half width of each grid, and its share of the budget


class Trials:
    """Candidates tried on all strikes in MuJoCo, and kept with their residuals."""

    def __init__(
        self,
        scene: StrikeScene,
        impacts: Impacts,
        *,
        parameters: Sequence[Parameter] | None,
        fixed: Mapping[str, float] | None,
        budget: int,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.scene, self.impacts = scene, trust.measured(impacts)
        self.parameters = tuple(scene.parameters("mujoco"))
        self.held = held_values(self.parameters, parameters, fixed)
        self.dead: dict[str, float] = {}
        self.active = [i for i, p in enumerate(self.parameters) if p.name not in self.held]
        if not self.active:
            raise CaromError("every parameter is fixed: nothing is left to identify")
        self.collider = Collider(scene, self.parameters, threads=threads)
        self.budget, self.progress = budget, progress
        self.unit = np.zeros((0, len(self.active)))  #: [C, A]
        self.residual = np.zeros((0, len(impacts), 3))  #: [C, N, 3]
        self.evaluations, self.failures, self.scatter = 0, 0, 0.0
        size = np.linalg.norm(trust.residuals(np.zeros((len(impacts), 3)), impacts.post, scene.gyration_radius), axis=-1)
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
        counts is an effect beyond the one of a step so small that it cannot matter.
        """
        count = len(self.active)
        places = qmc.Sobol(count, seed=seed).random(2)[:PROBES] * 0.6 + 0.2
        unit = np.repeat(np.repeat(places[:, None, None], count, axis=1), 2, axis=2)  # [places, A, low or high, A]
        unit[:, np.arange(count), 0, np.arange(count)] = 0.02
        unit[:, np.arange(count), 1, np.arange(count)] = 0.98
        tiny = TINY * np.random.default_rng(seed).choice([-1.0, 1.0], size=(NUDGES, count))
        self.run(np.concatenate([unit.reshape(-1, count), (places[:, None] + tiny).reshape(-1, count)]))
        shared = self.residual / self._size[:, None]
        ends = shared[: PROBES * count * 2].reshape(PROBES, count, 2, -1)
        near = shared[PROBES * count * 2 :].reshape(PROBES, NUDGES, -1)
        effect = np.sqrt(((ends[:, :, 1] - ends[:, :, 0]) ** 2).mean(axis=(0, 2)) * 3)
        self.scatter = float(np.sqrt(near.var(axis=1, ddof=1).mean() * 2 * 3))
        keep = effect >= max(trust.DEAD, CHANCE * self.scatter)
        if not keep.any():
            names = ", ".join(self.parameters[i].name for i in self.active)
            raise CaromError(f"none of these parameters changes the outcome of these strikes: {names}; nothing to identify")
        self.dead = {self.parameters[i].name: float(e) for i, e, k in zip(self.active, effect, keep, strict=True) if not k}
        self.held |= {p.name: (p.default, "") for p in self.parameters if p.name in self.dead}
        self.active = [i for i, k in zip(self.active, keep, strict=True) if k]
        self.unit = self.unit[:, keep]

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


def held_values(
    known: Sequence[Parameter], wanted: Sequence[Parameter | str] | None, fixed: Mapping[str, float] | None
) -> dict[str, tuple[float, str]]:
    """Value and reason of every parameter that is not to be looked for."""
    names = [p.name for p in known]
    asked = names if wanted is None else [w if isinstance(w, str) else w.name for w in wanted]
    for name in (*asked, *(fixed or {})):
        if name not in names:
            raise CaromError(unknown_name("parameter", name, names))
    held: dict[str, tuple[float, str]] = {}
    for p in known:
        if fixed and p.name in fixed:
            if not np.isfinite(fixed[p.name]):
                raise CaromError(f"fixed parameter '{p.name}' must be a finite number [{p.unit}], got {fixed[p.name]}")
            held[p.name] = (float(fixed[p.name]), "held at the value that was given")
        elif p.name not in asked:
            held[p.name] = (p.default, "held at its default: it was not asked for")
    return held


def grid(
    scene: StrikeScene,
    impacts: Impacts,
    *,
    parameters: Sequence[Parameter | str] | None = None,
    fixed: Mapping[str, float] | None = None,
    budget: int = BUDGET,
    seed: int = 0,
    threads: int = 0,
    progress: Progress | None = None,
) -> Identification:
    """Grid search, coarse to fine: evenly spread candidates over all values, then closer and closer around the best.

    `parameters` are those to look for (default: all that MuJoCo knows of the scene), `fixed` holds others at a
    value, `budget` is the number of strikes to simulate.
    """
    start = perf_counter()
    trials = Trials(
        scene, impacts, parameters=parameters, fixed=fixed, budget=budget, threads=threads, progress=progress
    )  # fmt: skip
    trials.probe(seed)
    total = trials.left()
    for level, (half, share) in enumerate(LEVELS):
        count = max(min(int(round(share * total)), trials.left()), 2)
        centre = trials.unit[trials.best] if level else np.full(len(trials.active), 0.5)
        trials.run(_spread(count, centre, half, seed + level))
    return _finish("grid", trials, seed, start)


def _spread(count: int, centre: Array, half: float, seed: int) -> Array:
    """Evenly spread points [count, A] in a box around a centre, cut to the unit cube."""
    power = int(np.ceil(np.log2(max(count, 2))))
    points = qmc.Sobol(len(centre), seed=seed).random_base2(power)[:count]
    low, high = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
    return np.asarray(low + points * (high - low))


def cma(
    scene: StrikeScene,
    impacts: Impacts,
    *,
    parameters: Sequence[Parameter | str] | None = None,
    fixed: Mapping[str, float] | None = None,
    budget: int = BUDGET,
    seed: int = 0,
    threads: int = 0,
    progress: Progress | None = None,
) -> Identification:
    """CMA-ES, from the best of a first even spread; every generation is one call of the engine. Options as `grid`."""
    from cmaes import CMA

    start = perf_counter()
    trials = Trials(
        scene, impacts, parameters=parameters, fixed=fixed, budget=budget, threads=threads, progress=progress
    )  # fmt: skip
    trials.probe(seed)
    count = len(trials.active)
    trials.run(_spread(max(trials.left() // 4, 2), np.full(count, 0.5), 0.5, seed))
    # the library wants two dimensions at least: a single parameter gets a second one that nothing depends on
    width = max(count, 2)
    mean = np.full(width, 0.5)
    mean[:count] = np.clip(trials.unit[trials.best], 0.05, 0.95)
    size = min(max(4 + int(3 * np.log(width)), 10), max(trials.left(), 2))
    search = CMA(mean=mean, sigma=0.2, bounds=np.array([[0.0, 1.0]] * width), seed=seed, population_size=size)
    while trials.left() >= size and not search.should_stop():
        asked = np.array([search.ask() for _ in range(size)])
        search.tell([(z, float(v)) for z, v in zip(asked, trials.run(asked[:, :count]), strict=True)])
    return _finish("cma", trials, seed, start)


def _polished(trials: Trials, seed: int) -> Array:
    """The best point [A], with the engine's scatter smoothed out where the candidates around it allow that."""
    count = len(trials.active)
    point, loss = trials.unit[trials.best], float(trials.loss.min())
    for turn in range(POLISH):
        trials.run(_spread(2 * (count + 1), point, 0.75 * AROUND, seed + 17 + turn))
        if trials.loss.min() * LUCK < loss:
            point, loss = trials.unit[trials.best], float(trials.loss.min())
        step = trust.newton_step(trials.smoothed(point), most=0.75 * AROUND)
        losses = trials.run(point + np.array([[0.5], [1.0]]) * step)
        if losses.min() <= LUCK * loss:
            point, loss = trials.unit[-2:][int(np.argmin(losses))], float(losses.min())
    return np.asarray(point)


def _finish(method: str, trials: Trials, seed: int, start: float) -> Identification:
    unit = _polished(trials, seed)
    fit = trials.smoothed(unit)
    at = int(np.argmin(np.abs(trials.unit - unit).max(axis=1)))
    residual = trials.residual[at]
    # the scatter is part of what the simulator leaves over: the parabola's own residual would be too good
    fit = replace(fit, residual=np.where(np.abs(residual) > np.abs(fit.residual), residual, fit.residual))
    k, post = trials.scene.gyration_radius, trials.impacts.post
    held_out = _held_out(trials, fit, seed)
    notes = [f"the engine's own scatter is {100 * trials.scatter:.2g} % of the outcomes"]
    if trials.failures:
        notes.append(f"{trials.failures} of {trials.evaluations} simulated strikes missed or failed; each cost {PENALTY:g}")
    return Identification(
        method=method,
        scene=trials.scene.name,
        estimates=trust.estimates(trials.parameters, fit, trials.active, held=trials.held, dead=trials.dead),
        training=trust.errors(residual, trust.relative_errors(residual, post, k)),
        held_out=held_out,
        held_out_by=trust.held_out_words(len(post), MOST_FOLDS),
        evaluations=trials.evaluations,
        failures=trials.failures,
        seconds=perf_counter() - start,
        seed=seed,
        notes=tuple(notes),
    )


def _held_out(trials: Trials, fit: trust.Fit, seed: int) -> Errors | None:
    """Error on strikes left out in turn, each simulated with the parameters that the others alone would give."""
    count = len(trials.impacts)
    if count < 3:
        return None
    unit = np.zeros((count, len(trials.active)))
    for rows in trust.folds(count, most=MOST_FOLDS, seed=seed):
        unit[rows] = trust.leave_out(fit, rows)
    residual = trials.simulate(unit, np.arange(count))
    return trust.errors(residual, trust.relative_errors(residual, trials.impacts.post, trials.scene.gyration_radius))
