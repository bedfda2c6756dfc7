"""Contact parameters from whole trajectories: the search, how far to trust it, and what the contact is like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import t as student

from carom.core.errors import CaromError, UninformativeError
from carom.core.progress import Steps
from carom.identify import trust
from carom.identify.problem import Effort
from carom.identify.result import CONFIDENCE, Errors, Estimate, Identification
from carom.identify.tosses.gauss_newton import fit_around
from carom.identify.tosses.predict import MotionModel
from carom.identify.tosses.problem import MotionProblem
from carom.identify.tosses.recorded import Motions, trajectory_errors
from carom.identify.tosses.restitution import played
from carom.identify.tosses.search import Found, How, held_and_looked_for, search
from carom.identify.tosses.sides import SIDES, learn_sides
from carom.identify.tosses.simulate import Sampled
from carom.scenes.free import timestep
from carom.scenes.parameters import FREE
from carom.state import Array, Motion

NORM = "Eq. 1 of the few-shot paper: distance over body width plus angle [rad], mean over frames"
GOOD = 0.1  #: Eq. 1 of a recording that counts as reproduced
AROUND = 0.05  #: half width, in unit space, of the points from which sensitivities are taken
DRAWS = 400  #: of the bootstrap
TOGETHER = 160  #: draws of all parameters at once, for what follows from several of them
SIDE_NAMES = ("+x", "-x", "+y", "-y", "+z", "-z")
UNSEEN = 1e-4  #: widths plus radians: a parameter that moves no frame by more over its whole range is not seen


def with_found_sides(motions: Motions, identification: Identification) -> Motions:
    """Fitted recordings with the heavy sides that the fit found, if it looked for any."""
    found = identification.extra.get("sides")
    return motions if found is None else motions.with_sides(SIDES[[SIDE_NAMES.index(found[n]) for n in motions.names]])


def identify_motions(
    motions: Motions,
    *,
    names: Sequence[str] | None = None,
    fixed: Mapping[str, float] | None = None,
    how: How | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Steps | None = None,
) -> tuple[Identification, MotionModel]:
    """Identify contact parameters of free bodies from whole recordings.

    `names` are the parameters to look for (default: what such recordings show), `fixed` holds others at a value. If
    starts are refined, errors are still those from the starts as flights tell them; intervals take the fitted ones for
    granted.
    """
    start, how = perf_counter(), how or How()
    looked_for, read = held_and_looked_for(motions, names, fixed)
    held = {**{k: v for k, (v, _) in read.items()}, **(fixed or {})}
    problem = MotionProblem.of(motions, looked_for, held, threads=threads)
    dead = _unseen(problem)
    if len(dead) == len(looked_for) and not read:
        if dead:
            raise UninformativeError(
                f"nothing to identify: none of these moves anything in these recordings: {', '.join(dead)}"
            )
        raise CaromError("every parameter is held: nothing is left to identify")
    problem = replace(problem.giving_up(dead), effort=Effort())  # the effort of the search alone is told
    found = search(problem, how, seed=seed, progress=progress)
    fit = fit_around(found.problem, found.unit, AROUND, seed + 7)
    # a plane smooths scatter away that the optimum does leave over
    fit = replace(fit, residual=found.problem.residuals(found.unit, short=True)[0])
    identification = _identification(motions, found, fit, read, how, seed=seed, seconds=perf_counter() - start)
    values = _values(found)
    sides = None
    if found.sides is not None:
        gravity = values.get("gravity", motions.starts.gravity)
        sides = learn_sides(motions, found.sides, values["com_offset"], gravity)
    return identification, MotionModel(motions.scene, values, sides)


def _unseen(problem: MotionProblem) -> dict[str, float]:
    """The parameters that move nothing, with their largest effect on a frame."""
    count = len(problem.active)
    if not count:
        return {}
    points = np.repeat(np.full((1, count), 0.5), 2 * count, axis=0)
    points[np.arange(count), np.arange(count)] = 0.02
    points[count + np.arange(count), np.arange(count)] = 0.98
    motion = problem.simulate(points, samples=problem.short)
    position, quaternion = motion.position.reshape(2, count, -1), motion.quaternion.reshape(2, count, -1)
    effect = np.abs(position[1] - position[0]).max(axis=-1) / float(problem.scene.widths.mean())
    effect = effect + np.abs(quaternion[1] - quaternion[0]).max(axis=-1)
    return {p.name: float(e) for p, e in zip(problem.sought, effect, strict=True) if e < UNSEEN}


def _values(found: Found) -> dict[str, float]:
    """Value of every parameter: those looked for, then the held ones, then those without effect."""
    problem = found.problem
    values = dict(zip((p.name for p in problem.parameters), problem.values(found.unit)[0], strict=True))
    order = [*(p.name for p in problem.sought), *problem.held, *problem.dead]
    return {name: float(values[name]) for name in order}


def _carried_over(problem: MotionProblem, fit: trust.Fit, read: Mapping[str, tuple[float, float]]) -> Array:
    """Variance [A] of the best point because what was read off, and then held, is uncertain itself."""
    variance = np.zeros(len(fit.unit))
    for name, (value, std) in read.items():
        ends = (problem.holding(name, value + sign * std) for sign in (1.0, -1.0))
        more, less = (end.residuals(fit.unit, short=True)[0] for end in ends)
        variance += trust.moved_by(fit, (more - less) / 2) ** 2
    return variance


def intervals(
    fit: trust.Fit, seed: int, restarts: Array | None = None, carried: Array | None = None
) -> tuple[Array, Array]:
    """90 % intervals [A] in unit space: the wider of curvature and of bootstrap draws of the recordings.

    Added to it is how far searches from other starts [S, A] ended from each other and from the optimum, and variance
    [A] that was `carried` over. With few recordings a spread is itself uncertain: Student's factor has one freedom less
    than there are recordings.
    """
    spread = np.sqrt(np.diag(_spread(fit, seed, restarts, carried)))
    reach = float(student.ppf(0.5 + CONFIDENCE / 2, freedom(fit))) * spread
    return np.clip(fit.unit - reach, 0.0, 1.0), np.clip(fit.unit + reach, 0.0, 1.0)


def _spread(fit: trust.Fit, seed: int, restarts: Array | None, carried: Array | None) -> Array:
    """Covariance [A, A] of the best unit point; how parameters trade off is taken from the loss's curvature."""
    curved = trust.covariance(fit)
    std = np.sqrt(np.diag(curved))
    drawn = bootstrap(fit, seed)
    wide = np.maximum(std, drawn.std(axis=0)) if len(drawn) else std
    found = curved * np.outer(wide / std, wide / std)
    if restarts is not None and len(restarts):
        ends = np.concatenate([restarts, fit.unit[None]])
        found = found + np.atleast_2d(np.cov(ends, rowvar=False))
    return np.asarray(found if carried is None else found + np.diag(carried))


def freedom(fit: trust.Fit) -> int:
    """Degrees of freedom of the spread: one less than there are recordings, where there are some."""
    return max(len(fit.residual) - 1, 1) if len(fit.residual) > 2 else fit.residual.size


def bootstrap(fit: trust.Fit, seed: int) -> Array:
    """Where the optimum moves [D, A] with recordings drawn with replacement; empty with fewer than three."""
    count = len(fit.residual)
    if count < 3:
        return np.zeros((0, len(fit.unit)))
    rng = np.random.default_rng(seed)
    gram, pull = (
        np.einsum("nra,nrb->nab", fit.jacobian, fit.jacobian),
        np.einsum("nra,nr->na", fit.jacobian, fit.residual),
    )
    variance = max(float((fit.residual**2).mean()), 1e-12)
    prior = variance * trust.PRIOR * np.eye(len(fit.unit))
    everything = np.linalg.solve(gram.sum(axis=0) + prior, pull.sum(axis=0))
    moved = []
    for rows in rng.integers(0, count, (DRAWS, count)):
        step = np.linalg.solve(gram[rows].sum(axis=0) + prior, pull[rows].sum(axis=0))
        moved.append(np.clip(fit.unit - step + everything, 0.0, 1.0))
    return np.array(moved)


def _identification(
    motions: Motions,
    found: Found,
    fit: trust.Fit,
    read: Mapping[str, tuple[float, float]],
    how: How,
    *,
    seed: int,
    seconds: float,
) -> Identification:
    problem = found.problem
    carried = _carried_over(problem, fit, read)
    made = _estimates(found, fit, read, intervals(fit, seed, found.restarts, carried))
    spread = _spread(fit, seed, found.restarts, carried)
    points = trust.draws(fit, spread, seed, count=TOGETHER, freedom=freedom(fit))
    bounce = played(problem, found.unit, points, timestep(motions.period), seed)
    # errors are those of starts as flights tell them, whatever the fit made of them
    judged = replace(problem, motions=motions if found.sides is None else motions.with_sides(SIDES[found.sides]))
    motion = judged.simulate(found.unit[None])
    held_out = _held_out(judged, fit)
    default = as_it_comes(motions)
    extra: dict[str, Any] = {
        "errors_before": percent_errors(motions, default),
        "errors_after": percent_errors(motions, motion),
        **_ends(found, fit),
        "read_off": list(read),
        "refined_starts": how.refine_starts,
        "engine_share": problem.effort.engine_seconds / max(seconds, 1e-9),
        "recordings": list(motions.names),
    }
    if found.sides is not None:
        extra["sides"] = dict(zip(motions.names, (SIDE_NAMES[i] for i in found.sides), strict=True))
    return Identification(
        method=how.method,
        scene=motions.scene.name,
        estimates=made,
        training=errors_of(motions, motion),
        held_out=held_out,
        held_out_by="leave-one-out, one Gauss-Newton step",
        evaluations=problem.effort.evaluations,
        failures=problem.effort.failures,
        seconds=seconds,
        seed=seed,
        norm=NORM,
        extra=extra,
        derived=bounce,
    )


def _estimates(
    found: Found, fit: trust.Fit, read: Mapping[str, tuple[float, float]], ends: tuple[Array, Array]
) -> tuple[Estimate, ...]:
    """What was looked for (with these intervals), then what has no effect, was read off, and was given."""
    problem = found.problem
    made = {e.name: e for e in trust.estimates(problem, fit, ends)}
    made |= {name: _read_estimate(name, *read[name], len(problem.motions)) for name in read}
    order = [*(p.name for p in problem.sought), *problem.dead, *problem.held]
    return tuple(made[name] for name in order)


def _ends(found: Found, fit: trust.Fit) -> dict[str, Any]:
    """How parameters trade off against each other, and where searches from other starts ended."""
    covariance = trust.covariance(fit)
    std = np.sqrt(np.diag(covariance))
    sought = found.problem.sought
    return {
        "correlations": {
            "names": [p.name for p in sought],
            "matrix": np.round(covariance / np.outer(std, std), 3).tolist(),
        },
        "restarts": [
            {p.name: float(p.from_unit(z)) for p, z in zip(sought, end, strict=True)} for end in found.restarts
        ],
    }


def _read_estimate(name: str, value: float, std: float, count: int) -> Estimate:
    reach = float(student.ppf(0.5 + CONFIDENCE / 2, max(count - 1, 1))) * std
    p = FREE[name]
    reason = "read off the recordings directly, without a search"
    return Estimate(name, value, p.unit, value - reach, value + reach, (p.low, p.high), "identified", reason)


def errors_of(motions: Motions, motion: Motion) -> Errors:
    """Eq. 1, the median distance over the width, and the share of recordings that count as reproduced."""
    position, angle = (e[0] for e in trajectory_errors(motions, motion))
    loss = position + angle
    return Errors(float(loss.mean()), float(np.median(position)), float((loss < GOOD).mean()), len(motions))


def percent_errors(motions: Motions, motion: Motion) -> dict[str, float]:
    """Mean Eq. 1, distance in percent of the width, and angle in degrees."""
    position, angle = (e[0] for e in trajectory_errors(motions, motion))
    return {
        "equation_1": float((position + angle).mean()),
        "position_percent": 100 * float(position.mean()),
        "rotation_deg": float(np.degrees(angle).mean()),
    }


def _held_out(problem: MotionProblem, fit: trust.Fit) -> Errors | None:
    """Errors of recordings left out in turn, simulated with what the others alone would give."""
    count = len(problem.motions)
    if count < 3:
        return None
    points = np.array([trust.leave_out(fit, [i]) for i in range(count)])
    return errors_of(problem.motions, problem.simulate_each(points))


def as_it_comes(motions: Motions, *, threads: int = 0) -> Motion:
    """The recordings in MuJoCo with its defaults: friction 1, solref (0.02 s, 1), solimp (0.9, 0.95, 1 mm, 0.5, 2).

    Only the step (below 1 ms, it divides the sample period) and the elliptic cones are Carom's.
    """
    engine = Sampled.in_mujoco(motions.scene, (), period=motions.period, threads=threads)
    return engine.simulate(motions.starts, {}, motions.samples)
