"""How far to trust an identification: errors, 90 % intervals, and a verdict for each parameter, from residuals.

All methods end with the same four things, in the unit space of the parameters (0: lower bound, 1: upper): the best
point, the residuals there, how the residuals change with each parameter, and how good other points were. Three
readings of the interval are taken and the widest counts: the curvature of the loss (Gauss-Newton), how the best
point moves when one strike is left out (jackknife), and which other points explain the strikes about as well. Among
the other points have to be some with each parameter at every place of its range (`ridges`): a loss that is flat on one
side of the optimum, as that of friction is beyond the angle at which a striker no longer slips, has no curvature to
tell. To the widest is added how far the best point would move by errors that all strikes share (`drifts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import f as fisher
from scipy.stats import t as student

from carom.core.constants import GRAVITY
from carom.core.errors import CaromError
from carom.engines.patch import drag, patch_of
from carom.identify.problem import Problem
from carom.identify.result import CONFIDENCE, Errors, Estimate, Verdict
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts

PRIOR = 12.0  #: inverse variance of a number that may be anywhere in [0, 1]: what is known without recordings
SHARP = 0.2  #: width of an interval, as a share of the range, up to which a parameter counts as identified
VAGUE = 0.7  #: and beyond which it counts as not identifiable
EDGE = 0.01  #: distance from a bound, as a share of the range, that counts as on it
ENTANGLED = 0.9  #: correlation of two parameters' errors that is worth telling


@dataclass(frozen=True)
class Fit:
    """Where a method ended, for A parameters that it looked for and R residuals."""

    unit: Array  #: [A] the best point, in [0, 1]
    residual: Array  #: [N, R/N] of each strike at the best point
    jacobian: Array  #: [N, R/N, A] change of the residual with each unit parameter
    doubt: Array  #: [A, A] covariance of a row of the Jacobian, where it comes from a simulator with scatter; else 0
    others: Array  #: [C, A] other points that were tried
    others_loss: Array  #: [C] their mean squared residual, as that of `residual`
    drifts: Sequence[Array] = ()  #: [N, R/N] each: changes of all residuals together that no recording rules out


def measured(impacts: Impacts) -> Impacts:
    """The impacts, if there is something to fit; raises otherwise."""
    if not len(impacts):
        raise CaromError("no impacts to identify from; `carom check` says why recordings cannot be used")
    for name, post in zip(impacts.names, impacts.post, strict=True):
        if not np.isfinite(post[:2]).all():
            raise CaromError(f"impact '{name}': its velocity after the impact is not a number: {post.tolist()}")
    return impacts


def residuals(predicted: Array, post: Array, gyration_radius: float) -> Array:
    """Predicted minus measured outcomes [..., N, 3] [m/s] in the kinetic-energy norm; 0 where nothing was measured."""
    scale = np.array([1.0, 1.0, gyration_radius])
    return np.asarray(np.nan_to_num((predicted - post) * scale, nan=0.0))


def sizes(post: Array, gyration_radius: float) -> Array:
    """Sizes [N] [m/s] of measured outcomes [N, 3] in the kinetic-energy norm; what was not measured counts as 0."""
    return np.asarray(np.linalg.norm(residuals(np.zeros_like(post), post, gyration_radius), axis=-1))


def errors(residual: Array, size: Array) -> Errors:
    """Eq. 3 and Eq. 4 for residuals [N, 3] of measured outcomes of these sizes [N]."""
    relative = np.linalg.norm(residual, axis=-1) / np.maximum(size, 1e-9)
    loss = float((residual**2).sum(axis=-1).mean())
    return Errors(loss, float(np.median(relative)), float((relative < 0.1).mean()), len(relative))


def folds(count: int, *, most: int, seed: int) -> list[np.ndarray]:
    """Rows to hold out in turn: one each, or `most` groups drawn by the seed where there are more."""
    order = np.random.default_rng(seed).permutation(count)
    return [np.sort(part) for part in np.array_split(order, min(count, most))]


def held_out_words(count: int, most: int) -> str:
    """How `folds` left strikes out, in words."""
    return "leave-one-out" if count <= most else f"{most}-fold"


def regression(design: Array, values: Array, ridge: Sequence[float]) -> tuple[Array, Array, float]:
    """Coefficients [K, R] of values [C, R] over a design [C, K], their covariance over the variance, the squares left.

    `ridge` [K] pulls each coefficient to zero, faintly: directions with few points would run away without it.
    """
    inverse = np.asarray(np.linalg.inv(design.T @ design + np.diag(ridge)), dtype=np.float64)
    found = inverse @ design.T @ values
    return found, inverse, float(((values - design @ found) ** 2).sum())


def covariance(fit: Fit) -> Array:
    """Gauss-Newton covariance [A, A] of the best unit point; a direction without information keeps its prior."""
    count = len(fit.unit)
    variance = _variance(fit)
    return np.asarray(np.linalg.inv(_gram(fit).sum(axis=0) / variance + PRIOR * np.eye(count)))


def _variance(fit: Fit) -> float:
    """Variance of one residual, from what the best point leaves over."""
    return max(float((fit.residual**2).sum()) / max(fit.residual.size - len(fit.unit), 1), 1e-12)


def _gram(fit: Fit) -> Array:
    """What each strike says about the parameters [N, A, A]: J^T J, without what the scatter of J alone adds to it."""
    gram = np.einsum("nra,nrb->nab", fit.jacobian, fit.jacobian)
    total = gram.sum(axis=0)
    level, axes = np.linalg.eigh(total - fit.residual.size * fit.doubt)
    wanted = (axes * np.maximum(level, 0.0)) @ axes.T
    return np.asarray(gram + (wanted - total) / len(gram))


def leave_out(fit: Fit, rows: Array | Sequence[int]) -> Array:
    """Where the best point [A] moves without these strikes: one Gauss-Newton step, against the one with them."""
    count = len(fit.unit)
    gram, pull = _gram(fit), np.einsum("nra,nr->na", fit.jacobian, fit.residual)
    keep = np.setdiff1d(np.arange(len(fit.residual)), rows)
    prior = _variance(fit) * PRIOR * np.eye(count)
    without = -np.linalg.solve(gram[keep].sum(axis=0) + prior, pull[keep].sum(axis=0))
    everything = -np.linalg.solve(gram.sum(axis=0) + prior, pull.sum(axis=0))
    return np.clip(fit.unit + without - everything, 0.0, 1.0)


def newton_step(fit: Fit, *, most: float) -> Array:
    """The Gauss-Newton step [A] from the best point, inside the unit cube and at most `most` in any direction."""
    step = moved_by(fit, fit.residual)
    return np.asarray(np.clip(fit.unit + np.clip(step, -most, most), 0.0, 1.0) - fit.unit)


def moved_by(fit: Fit, change: Array) -> Array:
    """How far the best point moves [A] when residuals change by [N, R/N], to first order."""
    pull = np.einsum("nra,nr->a", fit.jacobian, change)
    prior = _variance(fit) * PRIOR * np.eye(len(fit.unit))
    return np.asarray(-np.linalg.solve(_gram(fit).sum(axis=0) + prior, pull))


def jackknife(fit: Fit) -> Array:
    """Standard error [A] of the best point from leaving out one strike at a time."""
    strikes = len(fit.residual)
    if strikes < 3:
        return np.zeros(len(fit.unit))
    moved = np.array([leave_out(fit, [i]) for i in range(strikes)])
    return np.asarray(np.sqrt((strikes - 1) / strikes * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0)))


def intervals(fit: Fit) -> tuple[Array, Array]:
    """Lower and upper ends [A] of the 90 % intervals, in unit space, the widest of three readings."""
    count, strikes = len(fit.unit), len(fit.residual)
    freedom = max(fit.residual.size - count, 1)
    curved, left_out = np.sqrt(np.diag(covariance(fit))), jackknife(fit)
    # a spread that comes from few strikes, of which each parameter takes one up, is itself uncertain
    reach = np.maximum(_student(freedom) * curved, _student(max(strikes - count, 1)) * left_out)
    low, high = fit.unit - reach, fit.unit + reach
    loss = float((fit.residual**2).sum(axis=-1).mean())
    # the residuals of one strike err together: where that makes the jackknife wider, losses tell as much less
    alone = np.maximum(left_out / np.maximum(curved, 1e-12), 1.0) ** 2
    allowed = loss * (1 + alone * float(fisher.ppf(CONFIDENCE, 1, freedom)) / freedom)
    for a in range(count):
        alike = fit.others[fit.others_loss <= allowed[a], a]
        low[a], high[a] = min([low[a], *alike]), max([high[a], *alike])
    unsure = np.abs([np.zeros(count), *(moved_by(fit, drift) for drift in fit.drifts)]).sum(axis=0)
    return np.clip(low - unsure, 0.0, 1.0), np.clip(high + unsure, 0.0, 1.0)


def _student(freedom: int) -> float:
    return float(student.ppf(0.5 + CONFIDENCE / 2, freedom))


def draws(fit: Fit, covariance: Array, seed: int, *, count: int, freedom: int) -> Array:
    """Unit points [D, A] around the best one that are as likely as a covariance says (Student's), in the unit cube."""
    rng = np.random.default_rng(seed)
    level, axes = np.linalg.eigh(covariance)
    normal = rng.normal(size=(count, len(fit.unit))) * np.sqrt(np.maximum(level, 0.0)) @ axes.T
    heavy = np.sqrt(freedom / rng.chisquare(freedom, size=(count, 1)))  # for all parameters at once
    return np.asarray(np.clip(fit.unit + normal * heavy, 0.0, 1.0))


def ridges(fit: Fit, levels: int) -> Array:
    """Points [A * levels, A] with each parameter over its whole range, the others where the curvature has them then."""
    spread = covariance(fit)
    points = []
    for a, row in enumerate(spread):
        moved = np.linspace(0.0, 1.0, levels)[:, None] - fit.unit[a]
        points.append(fit.unit + moved * row / row[a])
    return np.asarray(np.clip(np.concatenate(points), 0.0, 1.0))


def unread(scene: StrikeScene, impacts: Impacts, lasting: Array, friction: float) -> Array:
    """What the ground takes from the outcomes [N, 3] in half the time that contacts last [N] [s]; [m/s, m/s, rad/s].

    Simulated outcomes are those at the end of contact. Recorded ones are read where the slide begins to be smooth, and
    a blow that fades away within few samples looks like one at its middle. So all may be early together, by about half
    a contact; or late, where the true contact is shorter than the simulated one.
    """
    post = np.nan_to_num(impacts.post)
    direction, lever = drag(patch_of(scene.target), impacts.strikes.target_pose[:, 2], post)
    brake = np.column_stack([direction, lever / scene.gyration_radius**2])
    return np.asarray(-friction * GRAVITY * lasting[:, None] / 2 * brake)


def estimates(problem: Problem, fit: Fit, ends: tuple[Array, Array] | None = None) -> tuple[Estimate, ...]:
    """An estimate for every parameter; `ends` are the intervals [A] in unit space, if not those of `intervals`."""
    low, high = intervals(fit) if ends is None else ends
    spread = covariance(fit)
    std = np.sqrt(np.diag(spread))
    correlation = spread / np.outer(std, std) - np.eye(len(std))
    names = [p.name for p in problem.sought]
    made = []
    for p in problem.parameters:
        bounds = (p.low, p.high)
        if p.name in problem.dead:
            effect = f"over its whole range it changes the outcomes by {100 * problem.dead[p.name]:.2g} %"
            reason = f"{effect}, no more than chance does: it was left at its default"
            verdict: Verdict = "not identifiable from these recordings"
            made.append(Estimate(p.name, p.default, p.unit, p.low, p.high, bounds, verdict, reason))
        elif p.name in problem.held:
            value, why = problem.held[p.name]
            made.append(Estimate(p.name, value, p.unit, value, value, bounds, "given", why))
        else:
            at = names.index(p.name)
            interval = (float(p.from_unit(low[at])), float(p.from_unit(high[at])))
            with_whom = int(np.argmax(np.abs(correlation[at])))
            close = abs(correlation[at, with_whom]) > ENTANGLED
            tangled = f"; it trades off against {names[with_whom]}" if close else ""
            verdict, reason = _verdict(float(fit.unit[at]), float(high[at] - low[at]), tangled)
            value = float(p.from_unit(fit.unit[at]))
            made.append(Estimate(p.name, value, p.unit, *interval, bounds, verdict, reason))
    return tuple(made)


def _verdict(unit: float, width: float, tangled: str) -> tuple[Verdict, str]:
    share = f"its 90 % interval covers {100 * width:.0f} % of its range{tangled}"
    if width > VAGUE:
        return "not identifiable from these recordings", share
    if min(unit, 1 - unit) < EDGE:
        side = "lower" if unit < 0.5 else "upper"
        return "on a bound", f"best on its {side} bound: the truth may lie beyond, or it makes up for another effect"
    if width > SHARP:
        return "weakly identified", share
    return "identified", share
