"""What a strike that could be recorded would tell a corrected model about all others: which to strike next.

The correction is a Gaussian process, so what one more strike would do to the uncertainty of all predictions is known
before it is carried out: its outcome does not matter. Each hypothesis counts by its weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from carom.learn.impact.adapted_model import AdaptedModel
from carom.learn.impact.process import NOISE, Points, Process, covariance
from carom.learn.impact.seen import Seen, points_by_teacher
from carom.state import Array, Strikes

LEAST = 0.02  #: weight of a hypothesis below which it is not asked


@dataclass(frozen=True)
class _Belief:
    """What one hypothesis is unsure of: covariances between the outcomes of candidates and of what is asked."""

    weight: float
    among: Array  #: [3C, 3C] of candidates
    across: Array  #: [3A, 3C] of what is asked and candidates
    own: Array  #: [3] what each outcome has of its own
    total: float  #: summed variance of what is asked

    def gains(self) -> Array:
        """By how much each candidate would lower the summed variance [C], times the weight."""
        count = len(self.among) // 3
        found = np.zeros(count)
        for row in range(count):
            part = slice(3 * row, 3 * row + 3)
            shared = self.across[:, part]
            found[row] = np.trace(np.linalg.solve(self.among[part, part] + np.diag(self.own), shared.T @ shared))
        return np.asarray(self.weight * found)

    def after(self, row: int) -> _Belief:
        """The belief once this candidate is known."""
        part = slice(3 * row, 3 * row + 3)
        step = np.linalg.solve(self.among[part, part] + np.diag(self.own), self.among[part])
        return replace(
            self, among=self.among - self.among[:, part] @ step, across=self.across - self.across[:, part] @ step
        )


@dataclass(frozen=True)
class Beliefs:
    """What a corrected model is unsure of, by hypothesis."""

    parts: tuple[_Belief, ...]
    total: float  #: mean over the hypotheses of the summed variance, before any candidate was chosen

    def gains(self) -> Array:
        """By how much each candidate would lower the mean variance of what is asked, as a share of it [C]."""
        return np.asarray(np.sum([b.gains() for b in self.parts], axis=0) / self.total)

    def after(self, row: int) -> Beliefs:
        """The same once this candidate is known, whatever comes of it."""
        return replace(self, parts=tuple(b.after(row) for b in self.parts))


def beliefs_of(model: AdaptedModel, candidates: Strikes, asked: Strikes) -> Beliefs:
    """What `candidates` would tell of the outcomes of `asked` strikes."""
    counts = [index for index, weight in enumerate(model.weights) if weight >= LEAST]
    parts = tuple(_belief(model, index, candidates, asked) for index in counts)
    return Beliefs(parts, sum(b.weight * b.total for b in parts))


def _belief(model: AdaptedModel, index: int, candidates: Strikes, asked: Strikes) -> _Belief:
    hypothesis = model.hypotheses[index]
    told = model.told
    process = hypothesis.process if told.flat else replace(hypothesis.process, lean=0.0)
    train = model.known[hypothesis.teacher]
    tried, wanted = (_seen(model, strikes, hypothesis.teacher) for strikes in (candidates, asked))
    noise = (process.noise * NOISE) ** 2
    own = covariance(process, train, train) + np.diag((noise + told.measured).ravel())
    factor = cho_factor(own, lower=True)
    to_tried, to_wanted = (covariance(process, points, train) for points in (tried, wanted))
    among = covariance(process, tried, tried) - to_tried @ cho_solve(factor, to_tried.T)
    across = covariance(process, wanted, tried) - to_wanted @ cho_solve(factor, to_tried.T)
    prior = _variance(process, wanted)
    total = prior - float(np.einsum("ij,ji->", to_wanted, cho_solve(factor, to_wanted.T)))
    return _Belief(float(model.weights[index]), among, across, noise, max(total, 1e-12))


def _seen(model: AdaptedModel, strikes: Strikes, teacher: str) -> Points:
    return points_by_teacher(model.explanations, Seen(model.scene, strikes, model.told.centre))[teacher]


def _variance(process: Process, points: Points) -> float:
    """Summed prior variance of outcomes, row by row: no large matrix for it."""
    rows = np.arange(len(points.mean))
    return float(sum(np.trace(covariance(process, points[r], points[r])) for r in np.split(rows, len(rows))))
