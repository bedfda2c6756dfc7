"""Identification on MuJoCo itself, without gradients: grid search and CMA-ES (the paper's first baseline, IV-A)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TypedDict, Unpack

import numpy as np

from carom.core.cma import Cma
from carom.core.progress import Steps
from carom.core.spread import even_spread
from carom.identify import trust
from carom.identify.result import Errors, Identification
from carom.identify.strikes.trials import AROUND, LEVELS, PENALTY, POLISH, StrikeProblem, Trials
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts

BUDGET = 2500  #: strikes simulated in one identification: a few seconds
LUCK = 1.2  #: times the best loss seen: a smoothed optimum may be so much worse and still be preferred
MOST_FOLDS = 20
GRIDS = ((0.5, 0.45), (0.22, 0.2), (0.1, 0.2), (0.04, 0.15))  #: half width of each grid, and its share of the budget


class Options(TypedDict, total=False):
    """What `grid` and `cma` take beside strikes."""

    parameters: Sequence[Parameter | str] | None  #: those to look for; default: all that MuJoCo knows of the scene
    fixed: Mapping[str, float] | None  #: others, held at a value
    budget: int  #: number of strikes to simulate
    again: int  #: times, at most, that a search goes on where its intervals come upon a better place (0)
    seed: int
    threads: int
    progress: Steps | None


def grid(scene: StrikeScene, impacts: Impacts, **options: Unpack[Options]) -> Identification:
    """Grid search, coarse to fine: evenly spread candidates over all values, then closer and closer around the best."""
    return _searched("grid", _grid, scene, impacts, options)


def cma(scene: StrikeScene, impacts: Impacts, **options: Unpack[Options]) -> Identification:
    """CMA-ES, from the best of a first even spread; every generation is one call of the engine."""
    return _searched("cma", _cma, scene, impacts, options)


def _searched(
    method: str, look: Callable[[Trials, int], None], scene: StrikeScene, impacts: Impacts, options: Options
) -> Identification:
    """What a way of looking through the trials finds."""
    start, seed = perf_counter(), options.get("seed", 0)
    problem = StrikeProblem.of(
        scene,
        impacts,
        parameters=options.get("parameters"),
        fixed=options.get("fixed"),
        threads=options.get("threads", 0),
    )
    trials = Trials(problem, options.get("budget", BUDGET), options.get("progress"))
    trials.probe(seed)
    look(trials, seed)
    return _finish(method, trials, options.get("again", 0), seed, start)


def _grid(trials: Trials, seed: int) -> None:
    total = trials.left()
    for level, (half, share) in enumerate(GRIDS):
        count = max(min(round(share * total), trials.left()), 2)
        centre = trials.unit[trials.best] if level else np.full(trials.unit.shape[1], 0.5)
        trials.run(_spread(count, centre, half, seed + level))


def _spread(count: int, centre: Array, half: float, seed: int) -> Array:
    """Evenly spread points [count, A] in a box around a centre, cut to the unit cube."""
    points = even_spread(count, len(centre), seed)
    low, high = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
    return np.asarray(low + points * (high - low))


def _cma(trials: Trials, seed: int) -> None:
    count = trials.unit.shape[1]
    trials.run(_spread(max(trials.left() // 4, 2), np.full(count, 0.5), 0.5, seed))
    size = min(max(4 + int(3 * np.log(count)), 10), max(trials.left(), 2))
    search = Cma(np.clip(trials.unit[trials.best], 0.05, 0.95), sigma=0.2, seed=seed, population=size)
    while trials.left() >= size and not search.converged:
        search.tell(trials.run(search.ask()))


def _polished(trials: Trials, seed: int) -> Array:
    """The best point [A], with the engine's scatter smoothed out where the candidates around it allow that."""
    count = trials.unit.shape[1]
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


def _finish(method: str, trials: Trials, again: int, seed: int, start: float) -> Identification:
    problem = trials.problem
    for turn in range(again + 1):
        unit = _polished(trials, seed + turn)
        fit = trials.smoothed(unit)
        # along the ridges may be a better place than the one that was found: the search goes on from there
        found, ridge = trials.loss[_nearest(trials, unit)], trials.run(trust.ridges(fit, LEVELS))
        if ridge.min() * LUCK >= found:
            break
    at = _nearest(trials, unit)
    residual = trials.residual[at]
    # the scatter is part of what the simulator leaves over: the parabola's own residual would be too good
    fit = replace(fit, residual=np.where(np.abs(residual) > np.abs(fit.residual), residual, fit.residual))
    held_out = _held_out(problem, fit, seed)
    fit = replace(fit, others=trials.unit, others_loss=trials.loss, drifts=(problem.unread(unit),))
    notes = [f"the engine's own scatter is {100 * trials.scatter:.2g} % of the outcomes"]
    effort = problem.effort
    if effort.failures:
        share = f"{effort.failures} of {effort.evaluations} simulated strikes"
        notes.append(f"{share} missed or failed; each counted as a relative error of {PENALTY:g}")
    return Identification(
        method=method,
        scene=problem.scene.name,
        estimates=trust.estimates(problem, fit),
        training=problem.errors(residual),
        held_out=held_out,
        held_out_by=trust.held_out_words(len(problem.impacts), MOST_FOLDS),
        evaluations=effort.evaluations,
        failures=effort.failures,
        seconds=perf_counter() - start,
        seed=seed,
        notes=tuple(notes),
    )


def _nearest(trials: Trials, unit: Array) -> int:
    """The candidate that was tried nearest to a point [A]."""
    return int(np.argmin(np.abs(trials.unit - unit).max(axis=1)))


def _held_out(problem: StrikeProblem, fit: trust.Fit, seed: int) -> Errors | None:
    """Error on strikes left out in turn, each simulated with the parameters that the others alone would give."""
    count = len(problem.impacts)
    if count < 3:
        return None
    unit = np.zeros((count, len(fit.unit)))
    for rows in trust.folds(count, most=MOST_FOLDS, seed=seed):
        unit[rows] = trust.leave_out(fit, rows)
    return problem.errors(problem.residuals(unit, np.arange(count)))
