"""What may explain recorded strikes, from the simplest to the richest, and how much each counts.

A hypothesis is a teacher, or none, with a process that may correct it. Each predicts every recorded strike from the
others. They are stacked: weights are those with which the mixture predicts left-out strikes best (Yao et al. 2018).
So a rich model that explains ten strikes and misses the next counts little, and so does a simple one that misses all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.learn.impact.process import Process
from carom.state import Array

#: Fixed for all recordings. Gains of a few per cent, more with speed and with pitch: a face that leans meets its
#: target higher or lower, which planar teachers do not know.
_GAINS = Process(0.04, gain=0.035, gain_speed=0.06, gain_pitch=0.047, gain_linear=0.015, offset=0.014)
CORRECTIONS = {
    "as it is": Process(0.03),
    "roughly": Process(0.06),
    "with gains": Process(**{**vars(_GAINS), "offset_linear": 0.006}),
    "with smooth gains": Process(
        **{**vars(_GAINS), "noise": 0.02, "offset_linear": 0.006, "gain_smooth": 0.048, "offset_smooth": 0.032}
    ),
    "freely": Process(
        **{
            **vars(_GAINS),
            "noise": 0.03,
            "members": 0.0,
            "gain_smooth": 0.048,
            "offset_linear": 0.03,
            "offset_smooth": 0.1,
            "length": 3.0,
        }
    ),
}
#: Without any teacher, in the frame of the approach. The offset is wide: nothing is known before.
FROM_STRIKES_ALONE = {
    "the mean, closely": Process(0.04, offset=2.0),
    "the mean, roughly": Process(0.15, offset=2.0),
    "a line": Process(0.05, offset=2.0, offset_linear=0.05),
    "a smooth function": Process(0.03, offset=2.0, offset_linear=0.07, offset_smooth=0.2, length=3.0),
}
WORDS = {"mujoco": "MuJoCo's contact", "compliant": "springs with friction", "rigid": "a rigid impact"}
ALONE = "strikes alone"  #: in place of a teacher
PRIOR_STRIKES = 2.0  #: strikes that the prior of the weights counts for: every hypothesis alike


@dataclass(frozen=True)
class Hypothesis:
    """A teacher (or `ALONE`) and how it is corrected."""

    teacher: str
    correction: str

    @property
    def process(self) -> Process:
        return (FROM_STRIKES_ALONE if self.teacher == ALONE else CORRECTIONS)[self.correction]

    @property
    def words(self) -> str:
        """For people."""
        if self.teacher == ALONE:
            return f"{self.correction} of the recorded strikes, no physics"
        said = WORDS.get(self.teacher, self.teacher)
        return f"{said}, {self.correction if self.correction != 'freely' else 'corrected freely'}"


def hypotheses_for(teachers: tuple[str, ...]) -> tuple[Hypothesis, ...]:
    """All hypotheses, given these teachers."""
    taught = [Hypothesis(teacher, name) for teacher in teachers for name in CORRECTIONS]
    return (*taught, *(Hypothesis(ALONE, name) for name in FROM_STRIKES_ALONE))


def log_density(difference: Array, spread: Array) -> Array:
    """Logarithm of the normal density [N] of differences [N, 3] with covariances [N, 3, 3]."""
    lower = np.linalg.cholesky(spread)
    white = np.linalg.solve(lower, difference[..., None])[..., 0]
    size = np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(-1)
    return np.asarray(-0.5 * (white**2).sum(-1) - size - 1.5 * np.log(2 * np.pi))


def stacked(log_densities: Array) -> Array:
    """Weights [H] of hypotheses whose densities of left-out strikes are given [H, N], as logarithms."""
    count = len(log_densities)
    likely = np.exp(log_densities - log_densities.max(axis=0))
    weights = np.full(count, 1 / count)
    for _ in range(500):  # expectation maximisation: it only goes up
        share = weights[:, None] * likely
        share /= share.sum(axis=0)
        weights = share.sum(axis=1) + PRIOR_STRIKES / count
        weights /= weights.sum()
    return np.asarray(weights)


def weights_at(weights: Array, spreads: Array) -> Array:
    """Weights [H, N] for single strikes: times the height of each hypothesis's density, covariances [H, N, 3, 3].

    Where a strike is far from the recorded ones, those hypotheses count that still know something there.
    """
    height = -0.5 * np.linalg.slogdet(spreads)[1]
    scaled = weights[:, None] * np.exp(height - height.max(axis=0))
    return np.asarray(scaled / scaled.sum(axis=0))
