"""Towards which face the mass of a cube lies, in each recording.

A cube looks the same from all sides, and trackers name its faces anew whenever they start: the same cube, with the same
mass off centre, is then recorded with its heavy side called x here and -z there. So `com_offset` is one parameter, and
the side a label of each recording: chosen by what fits where the whole recording may be used, and otherwise by what can
be seen before the first contact: in flight it is the centre of mass that falls freely, not the middle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from carom.identify.tosses.recorded import Motions
from carom.scenes.shapes import Body
from carom.state import Array

SIDES = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float)
EQUAL = 0.01  #: relative difference of the edges of a box that still counts as a cube


def is_cube(body: Body) -> bool:
    """Whether a body looks the same from six sides."""
    if body.shape is None or body.shape.kind != "box":
        return False
    return float(np.ptp(body.shape.size)) <= EQUAL * max(body.shape.size)


@dataclass(frozen=True)
class SideKnowledge:
    """What training recordings tell about sides: how often each occurred, and how noisy flights are."""

    offset: float  #: com_offset [m]
    gravity: float  #: [m/s^2]
    counts: Array  #: [6] of the training recordings
    noise: float  #: [m/s^2] of one component of an acceleration in flight, beyond its own standard error

    def log_likelihood(self, motions: Motions) -> Array:
        """How well each side [N, 6] explains the flight of each recording."""
        fall = np.array([0.0, 0.0, motions.starts.gravity - self.gravity])
        left = motions.strange - fall
        by_side = left[:, None] + np.einsum("nij,sj->nsi", motions.strange_by_com, self.offset * SIDES)
        variance = np.where(np.isfinite(motions.strange_std), motions.strange_std, 1e6) ** 2 + self.noise**2
        return np.asarray(-0.5 * (by_side**2).sum(axis=-1) / variance[:, None])

    def probabilities(self, motions: Motions) -> Array:
        """Chances [N, 6] of each side, from the flight before the first contact and from how often it occurred."""
        log = self.log_likelihood(motions) + np.log((self.counts + 1.0) / (self.counts.sum() + 6.0))
        return np.asarray(np.exp(log - logsumexp(log, axis=-1, keepdims=True)))

    def likeliest(self, motions: Motions) -> Array:
        """The likeliest direction [N, 3] of each recording's mass."""
        return np.asarray(SIDES[np.argmax(self.probabilities(motions), axis=-1)])


def learn_sides(motions: Motions, sides: Array, offset: float, gravity: float) -> SideKnowledge:
    """From training recordings whose sides [N] were found by their whole motion."""
    counts = np.bincount(np.asarray(sides, dtype=int), minlength=6).astype(float)
    fall = np.array([0.0, 0.0, motions.starts.gravity - gravity])
    left = motions.strange - fall + np.einsum("nij,nj->ni", motions.strange_by_com, offset * SIDES[sides])
    excess = (left**2).mean(axis=-1) - motions.strange_std**2
    excess = excess[np.isfinite(excess)]
    # a handful of recordings says little about noise: half a dozen more of 0.1 m/s^2 are taken for granted
    noise = np.sqrt(max((float(np.maximum(excess, 0.0).sum()) + 6 * 0.1**2) / (len(excess) + 6), 1e-6))
    return SideKnowledge(offset, gravity, counts, float(noise))
