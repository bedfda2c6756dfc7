"""What may explain recorded strikes, from the simplest to the richest, and how much each counts.

A hypothesis is a teacher, or none, with a process that may correct it. Each predicts every recorded strike from the
others, and counts by how well it does. So a rich model that explains ten strikes and misses the next counts little,
and so does a simple one that misses all. Predictions of left-out strikes are no independent witnesses: they share most
of what they learned from. So their logarithms count as a share (`TEMPER`), and hypotheses that are about as good are
averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from carom.learn.impact.process import Process
from carom.state import Array

#: Fixed for all recordings. Gains of a few per cent, more with speed and with pitch: a face that leans meets its
#: target higher or lower, which planar teachers do not know. Nose up, its lower edge strikes. The target is kicked back
#: on its near edge and falls forward again, so that it is seen to go faster (`lean`). One side of a target may be
#: springier than the next (`gain_around`). Offsets go with the angle of a flat face, which decides which of its ends
#: meets the target first.
SMOOTHLY = Process(
    0.02,
    members=2.0,
    gain=0.035,
    gain_speed=0.06,
    gain_pitch=0.047,
    gain_linear=0.015,
    gain_smooth=0.048,
    gain_around=0.06,
    offset=0.014,
    offset_linear=0.012,
    offset_angle=0.03,
    offset_smooth=0.032,
    lean=0.07,
)
CORRECTIONS = {
    "as it is": Process(0.03),
    "corrected smoothly": SMOOTHLY,
    "corrected freely": replace(SMOOTHLY, noise=0.03, members=0.0, offset_linear=0.03, offset_smooth=0.1, length=3.0),
}
#: Without any teacher, in the frame of the approach. The offset is wide: nothing is known before.
FROM_STRIKES_ALONE = {
    "the mean, closely": Process(0.04, offset=2.0),
    "the mean, roughly": Process(0.15, offset=2.0),
    "a line": Process(0.05, offset=2.0, offset_linear=0.05, offset_angle=0.05),
    "a smooth function": Process(
        0.03, offset=2.0, offset_linear=0.07, offset_angle=0.07, offset_smooth=0.2, length=3.0
    ),
}
#: How much each counts before any strike is seen, relative to the others; 1 where nothing is said. Teachers are wrong
#: by some per cent nearly always, and hardly ever by nothing.
BEFOREHAND = {"corrected smoothly": 100.0, "corrected freely": 10.0}
GROUPS, FEWEST = 20, 10  #: of strikes that are left out in turn, at most, and where strikes are many
ASKED = 4000  #: strikes that may be learned from, summed over the groups, before there are fewer of these
FAINTEST = -600.0  #: logarithm of a weight that still is a number: where networks may not answer, others have to
TEMPER = 0.25  #: share of the logarithms of left-out densities that counts
FREEDOM = 4.0  #: degrees of freedom of the errors of left-out strikes
HERE = 0.5  #: power of a density's height with which a hypothesis counts at a strike
PRIOR_ERRORS = 10.0  #: errors of the stated size that count beside those of left-out strikes
WORDS = {"mujoco": "MuJoCo's contact", "compliant": "springs with friction", "rigid": "a rigid impact"}
ALONE = "strikes alone"  #: in place of a teacher


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
        return f"{WORDS.get(self.teacher, self.teacher)}, {self.correction}"


def hypotheses_for(teachers: tuple[str, ...]) -> tuple[Hypothesis, ...]:
    """All hypotheses, given these teachers."""
    taught = [Hypothesis(teacher, name) for teacher in teachers for name in CORRECTIONS]
    return (*taught, *(Hypothesis(ALONE, name) for name in FROM_STRIKES_ALONE))


def groups_of(count: int) -> int:
    """Groups in which so many strikes are left out in turn: learning from the others costs the cube of their number.

    >>> [groups_of(count) for count in (5, 10, 100, 200, 500)]
    [5, 10, 20, 20, 10]
    """
    return min(count, GROUPS, max(ASKED // count, FEWEST))


def log_density(difference: Array, spread: Array) -> Array:
    """Logarithm of Student's density [N] of differences [N, 3] with covariances [N, 3, 3].

    Its tails are long: a hypothesis that is right about nine strikes must not fall by the tenth. Which end of a flat
    face meets a target first, for instance, may hang on a milliradian that nobody measured.
    """
    lower = np.linalg.cholesky(spread)
    white = np.linalg.solve(lower, difference[..., None])[..., 0]
    size = np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(-1)
    scale = (FREEDOM - 2) / FREEDOM  # of the square, so that `spread` is its covariance
    norm = gammaln((FREEDOM + 3) / 2) - gammaln(FREEDOM / 2) - 1.5 * np.log(FREEDOM * np.pi * scale)
    return np.asarray(norm - size - (FREEDOM + 3) / 2 * np.log1p((white**2).sum(-1) / (FREEDOM * scale)))


def weigh(hypotheses: Sequence[Hypothesis], log_densities: Array) -> Array:
    """Weights [H] of hypotheses whose densities of left-out strikes are given [H, N], as logarithms."""
    beforehand = np.log([BEFOREHAND.get(h.correction, 1.0) for h in hypotheses])
    log = beforehand + TEMPER * log_densities.sum(axis=1)
    weights = np.exp(np.maximum(log - log.max(), FAINTEST))
    return np.asarray(weights / weights.sum())


def combined(weights: Array, means: Array, spreads: Array) -> tuple[Array, Array]:
    """Mean [N, 3] and covariance [N, 3, 3] of a mixture: weights [H, N], means [H, N, 3], covariances [H, N, 3, 3].

    Where a strike is far from the recorded ones, those count more that still know something there. Where they
    disagree, the outcome is uncertain.
    """
    height = -0.5 * HERE * np.linalg.slogdet(spreads)[1]
    weights = weights * np.exp(height - height.max(axis=0))
    weights = weights / weights.sum(axis=0)
    mean = np.einsum("hn,hni->ni", weights, means)
    apart = means - mean
    return mean, np.einsum("hn,hnij->nij", weights, spreads) + np.einsum("hn,hni,hnj->nij", weights, apart, apart)


def stretch(difference: Array, spread: Array) -> float:
    """Factor on stated covariances [N, 3, 3] that makes errors [N, 3] of left-out strikes as large as stated."""
    square = np.einsum("ni,nij,nj->", difference, np.linalg.inv(spread), difference)
    return float((PRIOR_ERRORS + square) / (PRIOR_ERRORS + difference.size))
