"""Which parameters of a base model remain plausible after seeing the recordings: a weighted ensemble.

Ten impacts rarely pin all parameters down, and often leave several explanations. Instead of one best fit this
keeps a population: drawn over the whole range, weighted by how well it explains the recordings, drawn again
around what got weight, a few rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from scipy.stats import qmc, truncnorm

from carom.engines.contact_frames import Frames
from carom.scenes.parameters import Parameter, from_unit
from carom.state import Array

DRAWS = 4096  #: of the parameters, in each round
ROUNDS = 3
EFFECTIVE = 50.0  #: members that must remain in effect: ten samples cannot choose more sharply
DISCREPANCY = 0.06  #: smallest misfit, as a share of the approach speed, that a member is blamed for
KEPT = 256  #: members kept: those with the greatest weights
DEFENSIVE = 0.15  #: share of each round drawn over the whole range, so that no explanation is lost early
INFLATION = 1.5  #: widening of the population between rounds
ENOUGH = 100  #: strikes that members are judged by: what more of them say, the corrections learn
STRAY = (
    0.3  #: misfit of a strike, as a share of the approach speed, beyond which more of it is hardly blamed on members
)
TOGETHER = 8192  #: outcomes asked for at a time: inputs of all of them would be tens of megabytes
MOST = 50.0  #: [nat] by which a member's weight may grow where a strike is left out


Known = float | tuple[float, float]  #: a parameter that was identified otherwise: its value, or value and sd


class Teacher(Protocol):
    """What says how strikes come out, given parameters: a base model, or a formula."""

    @property
    def teacher(self) -> str: ...

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    def outcome(self, frames: Frames, values: torch.Tensor) -> torch.Tensor:
        """Scaled outcomes in the contact frame [..., N, 3] for values [..., N, P]."""
        ...


@dataclass(frozen=True)
class Members:
    """Weighted parameters of a base model."""

    values: Array  #: [M, P] parameters
    weights: Array  #: [M], sum to one
    sharpness: float  #: weights fall with exp(-sharpness * squared misfit)

    def without(self, misfit: Array) -> Array:
        """Weights [M] had strikes not been seen whose squared misfits are `misfit` [M]."""
        weights = self.weights * np.exp(np.minimum(self.sharpness * misfit, MOST))
        return np.asarray(weights / weights.sum())


def plausible_members(base: Teacher, frames: Frames, local: Array, *, fixed: Mapping[str, Known], seed: int) -> Members:
    """The population of a base model, given scaled outcomes `local` [N, 3] of strikes in `frames`.

    Population Monte Carlo over its parameters, in the unit cube.
    """
    parameters, size = base.parameters, len(base.parameters)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(77,)))
    frames, local, share = _some(frames, local)
    unit = qmc.Sobol(size, rng=rng).random(DRAWS)
    log_density = np.zeros(DRAWS)
    limit = 1 / (2 * DISCREPANCY**2)
    for turn in range(ROUNDS):
        values = from_unit(parameters, unit)
        for i, p in enumerate(parameters):
            if p.name in fixed:
                values[:, i] = _known_values(fixed[p.name], unit[:, i], p)
        misfit = share * misfits(outcomes(base, frames, values), local)
        weights, sharpness = _temper(misfit, log_density, limit)
        if sharpness >= limit or turn == ROUNDS - 1:
            break
        unit, log_density = _draw_again(unit, weights, rng)
    keep = np.argsort(-weights)[:KEPT]
    return Members(values[keep], weights[keep] / weights[keep].sum(), sharpness)


def _some(frames: Frames, local: Array) -> tuple[Frames, Array, float]:
    """At most `ENOUGH` strikes, spread over the recorded ones, and for how many each stands."""
    if len(local) <= ENOUGH:
        return frames, local, 1.0
    rows = np.linspace(0, len(local) - 1, ENOUGH).round().astype(np.int64)
    return frames.at(rows), local[rows], len(local) / ENOUGH


def misfits(said: Array, local: Array) -> Array:
    """Squared misfit [M] of what members say [M, N, 3]. One strike that was read wrongly cannot outweigh the others."""
    square = ((said - local) ** 2).sum(-1)
    return np.asarray((square / (1 + square / STRAY**2)).sum(-1))


def _known_values(known: Known, unit: Array, parameter: Parameter) -> Array:
    """Values [N] of a parameter that was identified otherwise: all the same, or spread as its sd says."""
    value, std = known if isinstance(known, tuple) else (known, 0.0)
    value = float(np.clip(value, parameter.low, parameter.high))
    if std <= 0:
        return np.full(len(unit), value)
    low, high = ((bound - value) / std for bound in (parameter.low, parameter.high))
    return np.asarray(truncnorm.ppf(unit, low, high, loc=value, scale=std))


def outcomes(base: Teacher, frames: Frames, values: Array) -> Array:
    """Scaled outcomes [M, N, 3] of each strike for each member's parameters [M, P]."""
    count, members = len(frames), torch.as_tensor(values)
    found, step = np.empty((len(values), count, 3)), max(TOGETHER // max(count, 1), 1)
    with torch.no_grad():
        for low in range(0, len(values), step):
            some = members[low : low + step, None, :].expand(-1, count, -1)
            found[low : low + step] = base.outcome(frames, some).numpy()
    return found


def _temper(misfit: Array, log_density: Array, limit: float) -> tuple[Array, float]:
    """Weights exp(-c * misfit) over the density drawn from, as sharp as leaves `EFFECTIVE` members in effect."""

    def weigh(c: float) -> Array:
        log = -c * (misfit - misfit.min()) - log_density
        w = np.exp(log - log.max())
        return np.asarray(w / w.sum())

    def effective(c: float) -> float:
        return float(1 / (weigh(c) ** 2).sum())

    if effective(limit) >= EFFECTIVE:
        return weigh(limit), limit
    low, high = 1e-6, limit
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if effective(middle) > EFFECTIVE else (low, middle)
    return weigh(low), low


def _draw_again(unit: Array, weights: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """New draws around the weighted ones, and the logarithm of the density they were drawn with."""
    size = unit.shape[1]
    centre = weights @ unit
    covariance = np.cov(unit.T, aweights=weights).reshape(size, size) * INFLATION + 1e-4 * np.eye(size)
    lower = np.linalg.cholesky(covariance)
    wanted = int((1 - DEFENSIVE) * DRAWS)
    near = np.empty((0, size))
    for _ in range(20):
        draw = centre + rng.standard_normal((8 * DRAWS, size)) @ lower.T
        near = np.concatenate([near, draw[((draw > 0) & (draw < 1)).all(axis=1)]])[:wanted]
        if len(near) == wanted:
            break
    new = np.concatenate([near, rng.random((DRAWS - len(near), size))])
    distance = np.linalg.solve(lower, (new - centre).T)
    log_normal = -0.5 * (distance**2).sum(0) - np.log(np.diag(lower)).sum() - 0.5 * size * np.log(2 * np.pi)
    return new, np.log((1 - DEFENSIVE) * np.exp(log_normal) + DEFENSIVE)
