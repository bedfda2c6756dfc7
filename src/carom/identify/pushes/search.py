"""A simulator of pushes tuned to recordings: a search, Gauss-Newton steps, intervals, verdicts, plausible draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Literal

import numpy as np

from carom.core.cma import Cma
from carom.core.errors import CaromError, UninformativeError, unknown_name
from carom.core.progress import Steps
from carom.core.spread import even_spread
from carom.identify import trust
from carom.identify.planes import NEAR, SHARES, Valley
from carom.identify.problem import Effort
from carom.identify.pushes.drifts import drifts
from carom.identify.pushes.led import led_windows_of
from carom.identify.pushes.problem import (
    USUAL,
    USUAL_LED,
    PushProblem,
    given_values,
    held_at,
    held_values,
    parameters_of,
)
from carom.identify.pushes.tuned import Tuned, tuned
from carom.identify.pushes.windows import WINDOW, Windows, windows_of
from carom.recordings import Recordings
from carom.scenes.pushing import GuidedScene, PushScene
from carom.state import Array, Motion

Method = Literal["cma", "gauss-newton", "random"]
METHODS: tuple[Method, ...] = ("cma", "gauss-newton", "random")
EACH = 25  #: replays of everything that CMA-ES may take for each parameter,
EVEN = 60  #: and an even spread
POPULATION, SIGMA = 10, 0.25  #: of CMA-ES
MANY, ENOUGH = 8, 0.06  #: windows that it looks at, until its generation is as narrow as this in the unit cube
REACH, FAR = 0.05, 0.08  #: half width of the neighbourhood of the first Gauss-Newton step, after CMA-ES and without it
TURNS, FAR_TURNS = 3, 12  #: such steps, at most
BACK = 0.2  #: share by which a step may make a rugged loss larger
NEARLY = 0.1  #: of a neighbourhood's half widths: a step that is as short is the last
REPLAYED = 4000  #: rows that are simulated at once
LEVELS = 7  #: places of each parameter's range at which it is asked whether the rest can make up for it
UNSEEN = 2e-5  #: [m] a parameter that moves nothing by more over its whole range is not seen


@dataclass(frozen=True)
class Tuning:
    """What is looked for, and how."""

    parameters: Sequence[str] | None = None  #: names; None: the usual ones
    fixed: Mapping[str, float] = field(default_factory=dict)  #: held at these values
    #: `cma` searches with CMA-ES on a few windows and goes on by Gauss-Newton steps with batched differences,
    #: `gauss-newton` is the latter alone, `random` takes the best of an even spread. All end with a Gauss-Newton step.
    method: Method = "cma"
    budget: int | None = None  #: how often all pushes may be replayed
    start: Mapping[str, float] | None = None  #: values to begin at, by name
    window: float = WINDOW  #: what is played again at once, at most [s]


def tune(
    scene: PushScene | GuidedScene,
    recordings: Recordings | Sequence[Recordings],
    tuning: Tuning | None = None,
    *,
    seed: int = 0,
    threads: int = 0,
    progress: Steps | None = None,
) -> Tuned:
    """Find parameters with which a scene of pushing, told the recorded set-points, moves as it was recorded to move."""
    began, asked = perf_counter(), tuning or Tuning()
    if asked.method not in METHODS:
        raise CaromError(f"tuning with pushes: {unknown_name('method', asked.method, METHODS)}")
    names = asked.parameters or (USUAL_LED if isinstance(scene, GuidedScene) else USUAL)
    looked_for = parameters_of(scene, [n for n in names if n not in asked.fixed])
    held, least = held_at(scene, asked.fixed), 2 * len(looked_for) + 1
    if asked.budget is not None and asked.budget < least:
        raise CaromError(f"budget: expected {least} replays of all pushes or more, got {asked.budget}")
    if isinstance(scene, GuidedScene):
        windows = led_windows_of(scene, recordings, window=asked.window)
    else:
        windows = windows_of(scene, recordings, window=asked.window)
    whole = PushProblem.of(scene, windows, (*looked_for, *held), held_values(asked.fixed), threads=threads)
    problem = replace(whole.giving_up(_unseen(whole)), effort=Effort())
    first = given_values(problem.sought, asked.start)
    unit = _search(problem, asked.method, asked.budget, first, seed, progress or (lambda done, total: None))
    problem = problem.weighed(unit)
    fit = _fit(problem, unit, seed)
    return tuned(problem, fit, asked.method, seed, perf_counter() - began)


def replayed(
    scene: PushScene | GuidedScene, recordings: Recordings | Sequence[Recordings], values: Mapping[str, float]
) -> tuple[Windows, Motion]:
    """The windows of recordings, and what comes of them with these values."""
    windows = led_windows_of(scene, recordings) if isinstance(scene, GuidedScene) else windows_of(scene, recordings)
    held = held_at(scene, values)
    problem = PushProblem.of(scene, windows, held, held_values(values))
    return windows, problem.simulate(np.zeros((1, 0)))


def _unseen(problem: PushProblem) -> dict[str, float]:
    """The parameters that move nothing over their whole range, and by how much of the lever they do."""
    count = len(problem.active)
    points = np.repeat(np.full((1, count), 0.5), 2 * count, axis=0)
    points[np.arange(count), np.arange(count)], points[count + np.arange(count), np.arange(count)] = 0.02, 0.98
    off = np.concatenate([problem.offsets(problem.simulate(p)) for p in _pieces(problem, points)])
    effect = np.nanmax(np.abs(off[count:] - off[:count]).reshape(count, -1), axis=1)
    dead = {p.name: float(e) / problem.lever for p, e in zip(problem.sought, effect, strict=True) if not e > UNSEEN}
    if len(dead) == count:
        raise UninformativeError(f"nothing to tune: none of these moves anything in these pushes: {', '.join(dead)}")
    return dead


def _pieces(problem: PushProblem, points: Array) -> list[Array]:
    """Points [C, A] in pieces that are simulated at once."""
    most = max(REPLAYED // len(problem.windows), 1)
    return [points[i : i + most] for i in range(0, len(points), most)]


def _losses(problem: PushProblem, points: Array) -> Array:
    return np.concatenate([problem.losses(p) for p in _pieces(problem, points)])


def _residuals(problem: PushProblem, points: Array) -> Array:
    return np.concatenate([problem.residuals(p) for p in _pieces(problem, points)])


def _search(
    problem: PushProblem, method: Method, budget: int | None, first: Array | None, seed: int, told: Steps
) -> Array:
    """The best point [A] that a method finds within its budget."""
    count = len(problem.active)
    here = np.array([float(p.to_unit(p.default)) for p in problem.sought]) if first is None else first
    here = np.clip(here, 0.02, 0.98)
    step = NEAR * count + 1 + len(SHARES)  # replays of a Gauss-Newton step
    turns = TURNS if method == "cma" else FAR_TURNS
    if method == "random":
        allowed = EVEN * count if budget is None else budget
        points = np.concatenate([here[None], even_spread(allowed - 1, count, seed)])
        told(allowed, allowed)
        return np.asarray(points[int(np.argmin(_losses(problem, points)))])
    allowed = (EACH * count if method == "cma" else 0) + step * turns if budget is None else budget
    used = 0.0
    if method == "cma":
        share = max(allowed - step * turns, allowed // 2)
        here, used = _cma(problem, here, share, seed, known=first is not None, told=lambda done, _: told(done, allowed))
    valley = Valley.even(count, REACH if method == "cma" else FAR)
    for turn in range(min(turns, max(int((allowed - used) // step), 1))):
        before = here
        here, valley = _stepped(problem, here, valley, seed + turn)
        told(min(int(used + step * (turn + 1)), allowed), allowed)
        if np.abs((here - before) @ valley.axes / valley.size).max() < NEARLY:
            break
    told(allowed, allowed)
    return here


def _cma(
    problem: PushProblem, here: Array, budget: float, seed: int, *, known: bool, told: Steps
) -> tuple[Array, float]:
    """Where CMA-ES ends [A], begun at the best of a first look or at a known point, and the replays of all it took.

    A few windows are enough to find the place; all of them count afterwards.
    """
    few = problem.some(MANY, seed)
    cost, used = len(few.windows) / len(problem.windows), 0.0
    if not known:
        points = np.concatenate([here[None], even_spread(2 * POPULATION, len(here), seed)])
        here, used = points[int(np.argmin(_losses(few, points)))], cost * len(points)
    search = Cma(np.clip(here, 0.02, 0.98), sigma=0.1 if known else SIGMA, seed=seed, population=POPULATION)
    while used + cost * POPULATION <= budget:
        points = search.ask()
        search.tell(_losses(few, points))
        used += cost * POPULATION
        told(int(used), int(budget))
        if points.std(axis=0).max() < ENOUGH:
            break
    return np.clip(search.mean, 0.0, 1.0), used


def _stepped(problem: PushProblem, here: Array, valley: Valley, seed: int) -> tuple[Array, Valley]:
    """A Gauss-Newton step from a point [A], if it is not one back; and where to look next.

    Weights are those of the point. Frictions and mass make up for each other nearly, so points are scattered along the
    valley: an even neighbourhood would show its walls. Some pushes jump from point to point (pushed near its corner, a
    block turns to this side or that): these count little, for the step and for whether it is one back.
    """
    weighed = problem.weighed(here)
    points = valley.scattered(here, seed)
    found = _residuals(weighed, points)
    fit, counts = valley.smooth(here, points, found)
    ahead = valley.along(fit)
    residual = counts * np.concatenate([_residuals(weighed, ahead), found[:1]])
    losses = (residual**2).sum(axis=(1, 2))
    best = int(np.argmin(losses[:-1]))
    if losses[best] > (1 + BACK) * losses[-1]:
        best = -1
    return np.concatenate([ahead, here[None]])[best], Valley.of(replace(fit, residual=residual[best]))


def _fit(problem: PushProblem, unit: Array, seed: int) -> trust.Fit:
    """What the intervals are made from, of a problem with the weights of this point, after a last step from it."""
    valley = Valley.even(len(unit), REACH / 2)
    for turn in range(2):
        points = valley.scattered(unit, seed + turn, near=(1 + turn) * NEAR)
        residual = _residuals(problem, points)
        fit, counts = valley.smooth(unit, points, residual)
        if not turn:
            valley = Valley.of(replace(fit, residual=counts * residual[0]))
    last = valley.along(fit)[:1]
    others = np.concatenate([last, trust.ridges(replace(fit, unit=last[0]), LEVELS)])
    every = counts * np.concatenate([_residuals(problem, others), residual])
    others = np.concatenate([others, points])
    losses = (every**2).sum(axis=-1).mean(axis=-1)
    # a plane smooths scatter away that the optimum does leave over
    fit = replace(fit, unit=last[0], residual=every[0], others=others, others_loss=losses)
    # a search that ended too early would go on by what is left over: so far the optimum may be
    return replace(fit, drifts=(every[0], *(counts * change for change in drifts(problem, last[0]))))
