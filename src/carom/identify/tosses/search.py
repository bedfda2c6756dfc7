"""Identification from whole trajectories: a search, coarse before fine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from typing import NamedTuple

import numpy as np

from carom.core.cma import Cma
from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Steps
from carom.core.spread import even_spread
from carom.core.work import in_order
from carom.identify.problem import Effort, check_fixed
from carom.identify.tosses.gauss_newton import End, polished, with_refined_starts
from carom.identify.tosses.problem import MotionProblem
from carom.identify.tosses.read_off import read_off
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.sides import is_cube
from carom.scenes.free import timestep
from carom.scenes.parameters import DIRECT, FREE, Parameter, free_parameters, resolved
from carom.state import Array

METHODS = ("cma", "least-squares")
RECIPE = 3  #: counts changes of what a search finds: pieces of benchmarks made by another one are not used again
SPREAD = 64  #: points of the first even look
OFFSETS = (0.25, 0.5, 0.75)  #: shares of the largest com_offset that are tried before the search knows better
AGAIN = 2  #: generations after which sides are looked at again
LOOK = 3  #: generations on whole recordings after which the search ends if none was better than where it began
RESTARTS = (2, 4)  #: at least and at most, of the search on short motions, from other even spreads
PLAUSIBLE = 1.5  #: times the best restart's loss, up to which another one is a story of its own
PAYS = 0.5  #: share of the loss that Gauss-Newton steps leave over where no further search is needed
AGREE = 0.02  #: distance in unit space, in any parameter, up to which the two best restarts tell the same story
STARTS = 2  #: of the least squares
STEP = 0.02  #: of finite differences, in unit space: wider than the engine's scatter
FRICTIONS = np.arange(-5, 6) / 100.0  #: around the best, at which positions are looked at


@dataclass(frozen=True)
class Budget:
    """Generations and population of the stages of a search."""

    first: int = 6  #: short motions, mass in the middle
    sides: int = 8  #: short motions, after which Gauss-Newton steps go on
    last: int = 20  #: whole recordings
    population: int = 14

    def __post_init__(self) -> None:
        if min(self.first, self.sides, self.last) < 1 or self.population < 4:
            raise CaromError(f"a search needs a generation in each stage and a population of 4 at least, got {self}")


@dataclass(frozen=True)
class How:
    """How to search."""

    method: str = "cma"
    budget: Budget | None = None  #: None: the usual one
    refine_starts: bool = False  #: fit the velocities before the first contact too, once, to the first moments after it

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise CaromError(unknown_name("method", self.method, METHODS))


class _End(NamedTuple):
    """An `End` without its problem, which is large."""

    loss: float
    unit: Array
    sides: Array | None


@dataclass(frozen=True)
class Found:
    """Where a search ended."""

    problem: MotionProblem  #: with the sides that fit best
    unit: Array  #: [A]
    sides: Array | None  #: [N] index into `SIDES`; None: the mass is not looked for
    restarts: Array  #: [S, A] where searches from other starts ended that explain about as much, before the last stage


def default_names(motions: Motions) -> tuple[str, ...]:
    """What is looked for unless told: contact in the direct form, and what recordings of tosses show beside it."""
    if motions.scene.planar:
        return (*DIRECT, "length_scale")
    tossed = np.isfinite(motions.strange_std).any()
    names = [*DIRECT, *(("inertia_scale",) if tossed else ())]
    if tossed and len(motions.scene.bodies) == 1 and is_cube(motions.scene.bodies[0]):
        names += ["com_offset", "face_friction"]
    return (*names, *(("length_scale", "gravity") if tossed else ()))


def held_and_looked_for(
    motions: Motions, names: Sequence[str] | None, fixed: Mapping[str, float] | None
) -> tuple[tuple[Parameter, ...], dict[str, tuple[float, float]]]:
    """Parameters to search, and those read off (value, standard error)."""
    names, fixed = tuple(default_names(motions) if names is None else names), fixed or {}
    check_fixed(fixed, FREE)
    for p in resolved([FREE[name] for name in fixed], timestep(motions.period)):
        name, value = p.name, fixed[p.name]
        if not p.low <= value <= p.high:
            raise CaromError(
                f"fixed parameter '{name}' must lie from {p.low:g} to {p.high:g} [{p.unit}], got {value:g}"
            )
    if fixed.get("com_offset"):
        raise CaromError("com_offset can be looked for, or held at 0: its side is found together with its size")
    free_parameters([*names, *fixed])
    wanted = free_parameters([name for name in names if name not in fixed])
    if "com_offset" in names and not is_cube(motions.scene.bodies[0]):
        raise CaromError("com_offset is for cubes, whose sides look alike; use com_x, com_y and com_z for other bodies")
    read = read_off(motions, [p.name for p in wanted])
    return resolved([p for p in wanted if p.name not in read], timestep(motions.period)), read


def search(problem: MotionProblem, how: How | None = None, *, seed: int = 0, progress: Steps | None = None) -> Found:
    """Look for parameters, from an even first look over short motions to a fit of whole recordings."""
    how = how or How()
    budget, told = how.budget or Budget(), progress or (lambda done, total: None)
    total = RESTARTS[1] * (budget.first + budget.sides) + budget.last
    if not problem.sought:  # all of it was read off the recordings
        return Found(problem, np.zeros(0), None, np.zeros((0, 0)))
    ends: list[End] = []
    seeds = [seed + 50 * turn for turn in range(RESTARTS[1])]
    for end, effort in in_order(partial(_restart, problem, budget), seeds):
        problem.effort.add(effort)
        ends.append(End(*end[:2], problem if end.sides is None else problem.with_sides(end.sides), end.sides))
        ends.sort(key=lambda end: end.loss)
        told(len(ends) * (budget.first + budget.sides), total)
        if len(ends) >= RESTARTS[0] and np.abs(ends[1].unit - ends[0].unit).max() < AGREE:
            break
    best = ends[0]
    if how.refine_starts:
        refined = with_refined_starts(best.problem, best.unit, seed)
        best = polished(refined, best.unit, seed, best.sides)
    unit = _least_squares(best, seed) if how.method == "least-squares" else _cma(best, budget, seed)
    unit = _better(best.problem.losses, best.unit, _by_distance(best.problem, unit))
    told(total, total)
    alike = [end.unit for end in ends if end.loss <= PLAUSIBLE * ends[0].loss]
    return Found(best.problem, unit, best.sides, np.array(alike))


def _cma(start: End, budget: Budget, seed: int) -> Array:
    """CMA-ES on whole recordings; it goes on only where a first look was better than where it began."""
    walk = Walk(start.problem, start.unit, 0.08, budget.population, seed)
    unit = walk.run(min(LOOK, budget.last))
    first, best = start.problem.losses(np.stack([start.unit, walk.best]))
    return walk.run(max(budget.last - LOOK, 0)) if best < first else unit


def _by_distance(problem: MotionProblem, unit: Array) -> Array:
    """The point with its friction fitted once more, to positions alone: nothing tells it better than how far bodies
    slid, and in a common fit rotations, which bounces make erratic, would outvote them."""
    names = [p.name for p in problem.sought]
    if "friction" not in names or problem.scene.planar:
        return unit
    at = names.index("friction")
    friction = problem.sought[at]
    here = float(friction.from_unit(unit[at]))
    offset = np.clip(here + FRICTIONS, friction.low, friction.high) - here
    points = np.repeat(unit[None], len(offset), axis=0)
    points[:, at] = friction.to_unit(here + offset)
    distance, _ = problem.whole(problem.simulate(points))
    bend, slope, _ = np.polyfit(offset, distance, 2)
    best = -slope / (2 * bend) if bend > 0 else offset[int(np.argmin(distance))]
    moved = unit.copy()
    moved[at] = friction.to_unit(here + float(np.clip(best, offset.min(), offset.max())))
    return _better(lambda points: problem.whole(problem.simulate(points))[0], unit, moved)


def _better(losses: Callable[[Array], Array], one: Array, other: Array) -> Array:
    """The second of two points if its loss is lower; where the first explains everything, a search can only lose."""
    first, second = losses(np.stack([one, other]))
    return other if second < first else one


def _restart(problem: MotionProblem, budget: Budget, seed: int) -> tuple[_End, Effort]:
    """One search on short motions, and what it took."""
    own = replace(problem, effort=Effort())
    end = _short(own, budget, seed)
    return _End(end.loss, end.unit, end.sides), own.effort


def _short(problem: MotionProblem, budget: Budget, seed: int) -> End:
    """Search on short motions."""
    names = [p.name for p in problem.sought]
    offset = names.index("com_offset") if "com_offset" in names else None
    points = even_spread(SPREAD, len(names), seed)
    if offset is not None:
        points[:, offset] = 0.0
    unit = points[int(np.argmin(problem.losses(points, short=True)))]
    unit = Walk(problem, unit, 0.2, budget.population, seed, short=True, still=offset).run(budget.first)
    if offset is None:
        end = polished(problem, unit, seed)
        if end.loss < PAYS * problem.losses(unit, short=True)[0]:
            return end
        unit = Walk(problem, unit, 0.15, budget.population, seed, short=True).run(budget.sides)
        return min(end, polished(problem, unit, seed), key=lambda e: e.loss)
    tries = []
    for share in OFFSETS:
        unit[offset] = share
        sides, errors = problem.best_sides(unit)
        tries.append((float(errors.min(axis=0).mean()), unit.copy(), sides))
    _, unit, sides = min(tries, key=lambda t: t[0])
    walk = Walk(problem.with_sides(sides), unit, 0.15, budget.population, seed, short=True)
    for _ in range(budget.sides // AGAIN):
        unit = walk.run(AGAIN)
        sides, _ = problem.best_sides(unit)
        walk.problem = problem.with_sides(sides)
    return polished(problem, unit, seed, sides)


class Walk:
    """CMA-ES over a problem, every generation in one batch.

    It ends at the mean of its last generation, not at the best point seen: bounces make errors rugged, and the best
    of many is the luckiest.
    """

    def __init__(
        self,
        problem: MotionProblem,
        unit: Array,
        sigma: float,
        population: int,
        seed: int,
        *,
        short: bool = False,
        still: int | None = None,
    ) -> None:
        self.problem, self.short, self.still, self.unit = problem, short, still, np.array(unit)
        self.best, self._lowest = self.unit, np.inf  #: the best point seen, and its loss
        self._cma = Cma(np.clip(unit, 0.03, 0.97), sigma=sigma, seed=seed, population=population)

    def run(self, generations: int) -> Array:
        """So many generations more; the mean [A] after them. The parameter `still` stays where it was."""
        for _ in range(generations):
            points = self._kept(self._cma.ask())
            losses = self.problem.losses(points, short=self.short, early=not self.short)
            if losses.min() < self._lowest:
                self.best, self._lowest = points[int(np.argmin(losses))], float(losses.min())
            self._cma.tell(losses)
        return self._kept(np.clip(self._cma.mean, 0.0, 1.0))

    def _kept(self, points: Array) -> Array:
        """The points [..., A], changed in place, with the parameter `still` where it was."""
        if self.still is not None:
            points[..., self.still] = self.unit[self.still]
        return points


def _least_squares(start: End, seed: int) -> Array:
    """`mujoco.minimize.least_squares` on whole recordings, from the point and a few around it: the best end [A]."""
    problem, count = start.problem, len(start.unit)
    rng = np.random.default_rng(seed)
    points = np.concatenate([start.unit[None], start.unit + 0.1 * rng.normal(size=(STARTS - 1, count))])
    tries = np.array([_minimized(problem, point) for point in np.clip(points, 0.02, 0.98)])
    return np.asarray(tries[int(np.argmin(problem.losses(tries)))])


def _minimized(problem: MotionProblem, unit: Array) -> Array:
    """Where `mujoco.minimize.least_squares` ends from a point [A]; the derivatives' rollouts are one batch."""
    from mujoco import minimize

    def residual(points: Array) -> Array:
        asked = np.clip(points.T, 0.0, 1.0)
        return np.asarray(problem.residuals(asked).reshape(len(asked), -1).T)

    out, _ = minimize.least_squares(
        np.clip(unit, 0.001, 0.999),
        residual,
        bounds=[np.zeros(len(unit)), np.ones(len(unit))],
        eps=STEP,
        max_iter=8,
        xtol=1e-3,
        verbose=0,
        output=StringIO(),
    )
    return np.asarray(np.clip(np.ravel(out), 0.0, 1.0))
