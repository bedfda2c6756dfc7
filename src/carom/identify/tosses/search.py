"""Identification from whole trajectories: a search, coarse before fine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

import numpy as np
from scipy.stats import qmc

from carom.core.errors import CaromError, unknown_name
from carom.identify.tosses.gauss_newton import Linearised, polished, with_refined_starts
from carom.identify.tosses.mjx import mjx_fit
from carom.identify.tosses.problem import MotionProblem
from carom.identify.tosses.read_off import read_off
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.sides import is_cube
from carom.scenes.free import timestep
from carom.scenes.parameters import DIRECT, FREE, Parameter, free_parameters, resolved
from carom.state import Array

METHODS = ("cma", "least-squares", "mjx", "surrogate")
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
Step = Callable[[int, int], None]


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
    names = tuple(default_names(motions) if names is None else names)
    for name, value in (fixed or {}).items():
        if name not in FREE:
            raise CaromError(unknown_name("parameter", name, FREE))
        if not np.isfinite(value) or (FREE[name].log and value <= 0):
            sort = "positive" if FREE[name].log else "finite"
            raise CaromError(
                f"fixed parameter '{name}' must be a {sort}, finite number [{FREE[name].unit}], got {value}"
            )
    if (fixed or {}).get("com_offset"):
        raise CaromError("com_offset can be looked for, or held at 0: its side is found together with its size")
    free_parameters([*names, *(fixed or {})])
    wanted = free_parameters([name for name in names if name not in (fixed or {})])
    if "com_offset" in names and not is_cube(motions.scene.bodies[0]):
        raise CaromError("com_offset is for cubes, whose sides look alike; use com_x, com_y and com_z for other bodies")
    read = read_off(motions, [p.name for p in wanted])
    return resolved([p for p in wanted if p.name not in read], timestep(motions.period)), read


def search(
    motions: Motions,
    parameters: Sequence[Parameter],
    held: Mapping[str, float],
    *,
    method: str = "cma",
    budget: Budget | None = None,
    refine_starts: bool = False,
    seed: int = 0,
    threads: int = 0,
    progress: Step | None = None,
) -> Found:
    """Look for parameters, from an even first look over short motions to a fit of whole recordings."""
    if method not in METHODS:
        raise CaromError(unknown_name("method", method, METHODS))
    budget, told = budget or Budget(), progress or (lambda done, total: None)
    total = RESTARTS[1] * (budget.first + budget.sides) + budget.last
    problem = MotionProblem.of(motions, parameters, held, threads=threads)
    if not parameters:  # all of it was read off the recordings
        return Found(problem, np.zeros(0), None, np.zeros((0, 0)))
    linearised = mjx_fit(problem) if method == "mjx" else None
    ends: list[tuple[float, Array, MotionProblem, Array | None]] = []
    while len(ends) < RESTARTS[1]:
        ends.append(_short(problem, budget, seed + 50 * len(ends), linearised))
        ends.sort(key=lambda end: end[0])
        told(len(ends) * (budget.first + budget.sides), total)
        if len(ends) >= RESTARTS[0] and np.abs(ends[1][1] - ends[0][1]).max() < AGREE:
            break
    _, short, problem, sides = ends[0]
    if refine_starts:
        problem = with_refined_starts(problem, short, seed)
        _, short, problem, sides = polished(problem, short, seed, sides, linearised=linearised)
    unit = short
    if method == "least-squares":
        tries = np.array([_least_squares(problem, start) for start in _around(unit, seed)])
        unit = tries[int(np.argmin(problem.losses(tries)))]
    elif method == "surrogate":
        unit = _surrogate(problem, unit, budget, seed)
    elif method == "cma":
        walk = Cma(problem, unit, 0.08, budget.population, seed)
        unit = walk.run(min(LOOK, budget.last))
        first, best = problem.losses(np.stack([short, walk.best]))
        if best < first:
            unit = walk.run(max(budget.last - LOOK, 0))
    unit = _better(problem.losses, short, _by_distance(problem, unit))
    told(total, total)
    alike = [end[1] for end in ends if end[0] <= PLAUSIBLE * ends[0][0]]
    return Found(problem, unit, sides, np.array(alike))


def _by_distance(problem: MotionProblem, unit: Array) -> Array:
    """The point with its friction fitted once more, to positions alone: nothing tells it better than how far bodies
    slid, and in a common fit rotations, which bounces make erratic, would outvote them."""
    names = [p.name for p in problem.parameters]
    if "friction" not in names or problem.scene.planar:
        return unit
    at = names.index("friction")
    friction = problem.parameters[at]
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


def _short(
    problem: MotionProblem, budget: Budget, seed: int, linearised: Linearised | None
) -> tuple[float, Array, MotionProblem, Array | None]:
    """Search on short motions: loss, point, and the sides of the mass where they are looked for."""
    names = [p.name for p in problem.parameters]
    offset = names.index("com_offset") if "com_offset" in names else None
    points = qmc.Sobol(len(names), seed=seed).random(SPREAD)
    if offset is not None:
        points[:, offset] = 0.0
    unit = points[int(np.argmin(problem.losses(points, short=True)))]
    unit = Cma(problem, unit, 0.2, budget.population, seed, short=True, still=offset).run(budget.first)
    if offset is None:
        end = polished(problem, unit, seed, linearised=linearised)
        if end[0] < PAYS * problem.losses(unit, short=True)[0]:
            return end
        unit = Cma(problem, unit, 0.15, budget.population, seed, short=True).run(budget.sides)
        return min(end, polished(problem, unit, seed, linearised=linearised), key=lambda e: e[0])
    tries = []
    for share in OFFSETS:
        unit[offset] = share
        sides, errors = problem.best_sides(unit)
        tries.append((float(errors.min(axis=0).mean()), unit.copy(), sides))
    _, unit, sides = min(tries, key=lambda t: t[0])
    walk = Cma(problem.with_sides(sides), unit, 0.15, budget.population, seed, short=True)
    for _ in range(budget.sides // AGAIN):
        unit = walk.run(AGAIN)
        sides, _ = problem.best_sides(unit)
        walk.problem = problem.with_sides(sides)
    return polished(problem, unit, seed, sides, linearised=linearised)


def _around(unit: Array, seed: int) -> Array:
    """The point itself and a few around it [STARTS, A]."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([unit[None], unit + 0.1 * rng.normal(size=(STARTS - 1, len(unit)))])
    return np.asarray(np.clip(points, 0.02, 0.98))


class Cma:
    """CMA-ES in the unit cube, every generation in one batch.

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
        from cmaes import CMA

        self.problem, self.short, self.still = problem, short, still
        self.count, self.population, self.unit = len(unit), population, np.array(unit)
        self.best, self._lowest = self.unit, np.inf  #: the best point seen, and its loss
        width = max(self.count, 2)  # the library wants two dimensions: one parameter gets one that nothing depends on
        mean = np.full(width, 0.5)
        mean[: self.count] = np.clip(unit, 0.03, 0.97)
        bounds = np.array([[0.0, 1.0]] * width)
        self._cma = CMA(mean=mean, sigma=sigma, bounds=bounds, seed=seed, population_size=population)

    def run(self, generations: int) -> Array:
        """So many generations more; the mean [A] after them. The parameter `still` stays where it was."""
        for _ in range(generations):
            asked = np.array([self._cma.ask() for _ in range(self.population)])
            points = asked[:, : self.count].copy()
            if self.still is not None:
                points[:, self.still] = self.unit[self.still]
            losses = self.problem.losses(points, short=self.short, early=not self.short)
            if losses.min() < self._lowest:
                self.best, self._lowest = points[int(np.argmin(losses))], float(losses.min())
            self._cma.tell([(z, float(v)) for z, v in zip(asked, losses, strict=True)])
        mean = np.clip(self._cma.mean[: self.count], 0.0, 1.0)
        if self.still is not None:
            mean[self.still] = self.unit[self.still]
        return np.asarray(mean)


def _least_squares(problem: MotionProblem, unit: Array) -> Array:
    """`mujoco.minimize.least_squares` from a point [A]; the derivatives' rollouts are one batch."""
    from mujoco import minimize

    def residual(points: Array) -> Array:
        asked = np.clip(points.T, 0.0, 1.0)
        return np.asarray(problem.residuals(asked).reshape(len(asked), -1).T)

    bounds = [np.zeros(len(unit)), np.ones(len(unit))]
    out, _ = minimize.least_squares(
        np.clip(unit, 0.001, 0.999),
        residual,
        bounds=bounds,
        eps=STEP,
        max_iter=8,
        xtol=1e-3,
        verbose=0,
        output=StringIO(),
    )
    return np.asarray(np.clip(np.ravel(out), 0.0, 1.0))


def _surrogate(problem: MotionProblem, unit: Array, budget: Budget, seed: int) -> Array:
    """A Gaussian process stands for the error of whole recordings: fitted to points around the best, asked for its
    minimum, corrected there, and again."""
    count = len(unit)
    rounds = 4
    share = max(budget.last * budget.population // rounds, 2 * count + 2)
    reach, centre = 0.2, np.asarray(unit)
    points, losses = np.zeros((0, count)), np.zeros(0)
    for turn in range(rounds):
        spread = np.random.default_rng(seed + turn).random((share, count))
        fresh = np.clip(centre + reach * (2 * spread - 1), 0.0, 1.0)
        found = problem.losses(fresh)
        points, losses = np.concatenate([points, fresh]), np.concatenate([losses, found])
        centre = _lowest(points, np.log(losses), centre, reach, seed + turn)
        reach *= 0.6
    return centre


def _lowest(points: Array, heights: Array, centre: Array, reach: float, seed: int) -> Array:
    """Where a Gaussian process through these heights [C] is lowest, within reach of a point."""
    mean, scale = float(heights.mean()), max(float(heights.std()), 1e-6)
    length, noise = 2.0 * reach, 0.1  # of the unit cube; of the heights' spread: bounces make them rugged

    def kernel(a: Array, b: Array) -> Array:
        return np.asarray(np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(axis=-1) / length**2))

    weights = np.linalg.solve(kernel(points, points) + noise * np.eye(len(points)), (heights - mean) / scale)
    asked = np.random.default_rng(seed).uniform(-reach, reach, (4000, points.shape[1]))
    asked = np.clip(centre + asked, 0.0, 1.0)
    return np.asarray(asked[int(np.argmin(kernel(asked, points) @ weights))])
