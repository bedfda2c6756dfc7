"""Rewards for transitions that tell something: the paper's InfoGap, and what an ensemble of simulators disagrees about.

A term is called with observations, actions and next observations, all [N, .], and gives [N] numbers to be added to the
task's reward. Both terms are scaled: 1 times their weight is a typical transition of the data. The weight fades as the
gap closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from carom.core.errors import CaromError
from carom.state import Array
from carom.train.infogap.transport import mean_distances

MOST = 256  #: transitions that a term compares with: microseconds a step; the mean over a part has no bias
CENTRES = 256  #: of the smooth function that stands for the ensemble
TOP = 5.0  #: times the typical value beyond which a transition counts for no more: no policy is paid for a crash
NUGGET = 1e-3  #: noise of what the smooth function is fitted to, as a share of its variance
TINY = 1e-9


class InformationTerm(Protocol):
    """What a wrapper adds to the reward of each transition."""

    @property
    def weight(self) -> float:
        """What a typical transition is paid for what it tells, in units of the task's reward."""
        ...

    def __call__(self, observation: ArrayLike, action: ArrayLike, following: ArrayLike) -> Array: ...


@dataclass(frozen=True)
class Transitions:
    """M transitions as the environment shows them to a policy."""

    observation: Array  #: [M, O]
    action: Array  #: [M, A]
    following: Array  #: [M, O] the next observation

    def __post_init__(self) -> None:
        shapes = [np.shape(a) for a in (self.observation, self.action, self.following)]
        if any(len(s) != 2 for s in shapes) or len({s[0] for s in shapes}) > 1 or shapes[0] != shapes[2]:
            raise CaromError(f"transitions: expected arrays [M, O], [M, A], [M, O], got shapes {shapes}")
        if not all(np.isfinite(a).all() for a in (self.observation, self.action, self.following)):
            raise CaromError("transitions: expected finite numbers")

    def __len__(self) -> int:
        return len(self.observation)

    def __getitem__(self, rows: NDArray[np.int64]) -> Transitions:
        return Transitions(self.observation[rows], self.action[rows], self.following[rows])

    @property
    def table(self) -> Array:
        """One row for each transition [M, 2O + A]."""
        return np.column_stack([self.observation, self.action, self.following])

    @classmethod
    def joined(cls, parts: Sequence[Transitions]) -> Transitions:
        """Several sets as one."""
        if not parts:
            raise CaromError("transitions: expected a set or more, got none")
        columns = zip(*((p.observation, p.action, p.following) for p in parts), strict=True)
        return cls(*(np.concatenate(c) for c in columns))

    def thinned(self, most: int, seed: int) -> Transitions:
        """At most so many of them, drawn without bias."""
        if len(self) <= most:
            return self
        return self[np.sort(np.random.default_rng([seed, 71]).permutation(len(self))[:most])]


def fading(gaps: Sequence[float]) -> float:
    """The weight's factor: the latest gap over the first round's, from 0 to 1.

    The scale of a gap differs by orders of magnitude between estimators; relative to the first round it does not.

    >>> fading([8.0]), fading([8.0, 2.0]), fading([0.0, 0.0])
    (1.0, 0.25, 0.0)
    """
    if not gaps or not np.isfinite(gaps).all() or min(gaps) < 0:
        raise CaromError(f"gaps: expected one or more that are not negative, got {list(gaps)}")
    return float(min(gaps[-1] / gaps[0], 1.0)) if gaps[0] > 0 else 0.0


@final
class InfoGap:
    """The paper's term (Eq. 3), as a reward: KL(real || simulated) times W1(P_sim + D_t, P_sim), so -L_sr.

    W1 has a closed form, the mean distance of the new transition to the data over M + 1. Columns are in units of the
    data's standard deviations. `weight` holds the gap: see `fading`. M + 1 and the unit of distance cancel against the
    typical transition of the data itself, by which the term is divided.
    """

    def __init__(self, data: Transitions, *, weight: float, seed: int = 0) -> None:
        if len(data) < 2:
            raise CaromError(f"InfoGap: expected 2 transitions or more to compare with, got {len(data)}")
        self.weight = _checked(weight)
        table = data.table
        self._scale = np.where((spread := table.std(axis=0)) > TINY, spread, np.inf)  # what never changed tells nothing
        self._data = data.thinned(MOST, seed).table / self._scale
        count = len(self._data)
        own = mean_distances(self._data, self._data) * count / (count - 1)  # without the distance to itself
        self.typical = max(float(own.mean()), TINY)  #: mean distance between transitions of the data

    def __call__(self, observation: ArrayLike, action: ArrayLike, following: ArrayLike) -> Array:
        """The reward [N] of transitions."""
        table = np.column_stack([np.asarray(a, dtype=np.float64) for a in (observation, action, following)])
        if table.shape[1] != self._data.shape[1]:
            raise CaromError(f"InfoGap: expected {self._data.shape[1]} numbers a transition, got {table.shape[1]}")
        apart = mean_distances(self._data, table / self._scale) / self.typical
        return np.asarray(self.weight * np.clip(apart, 0.0, TOP))


def expected_information(following: ArrayLike, noise: ArrayLike) -> Array:
    """What one transition is expected to tell about the parameters [N, nats], from an ensemble's answers [E, N, D].

    E plausible simulators say what comes next. Where they disagree by more than the measurement noise [D], seeing it
    tells them apart: half the log-determinant of 1 + covariance over noise, as in the choice of experiments.

    >>> expected_information([[[0.0]], [[2.0]]], [1.0]).round(4).tolist()
    [0.3466]
    """
    said = np.asarray(following, dtype=np.float64) / np.asarray(noise, dtype=np.float64)
    if said.ndim != 3 or len(said) < 2:
        raise CaromError(f"ensemble: expected answers [E, N, D] of 2 simulators or more, got shape {said.shape}")
    away = said - said.mean(axis=0)
    spread = np.einsum("end,enf->ndf", away, away) / len(said)
    return np.asarray(0.5 * np.linalg.slogdet(np.eye(said.shape[2]) + spread)[1])


@final
class Disagreement:
    """Pays for transitions about which an ensemble of plausible simulators disagrees.

    Asking every simulator at every step would cost as many times the simulation. So they are asked once, about
    `data`, and a smooth function of the transition (a Gaussian process on some centres) stands for what they say.
    """

    def __init__(self, data: Transitions, information: ArrayLike, *, weight: float, seed: int = 0) -> None:
        told = np.asarray(information, dtype=np.float64)
        if told.shape != (len(data),) or len(data) < 4 or not np.isfinite(told).all():
            raise CaromError(f"disagreement: expected {len(data)} finite figures, one a transition, and 4 or more")
        self.weight = _checked(weight)
        table = _changes(data.observation, data.action, data.following)
        self._middle = table.mean(axis=0)
        self._scale = np.where((spread := table.std(axis=0)) > TINY, spread, np.inf)
        x = (table - self._middle) / self._scale
        self.typical = max(float(told.mean()), TINY)  #: mean information of a transition of the data [nats]
        order = np.random.default_rng([seed, 72]).permutation(len(x))
        left, rest = order[: max(1, len(x) // 5)], order[max(1, len(x) // 5) :]
        self._centres = x[rest[:CENTRES]]
        self._length = max(float(np.sqrt(np.median(_squares(x[rest[:CENTRES]], self._centres)))), TINY)
        self._mean = float(told[rest].mean())
        kernel = self._kernel(x[rest])
        ridge = NUGGET * len(rest) * np.eye(len(self._centres))
        self._weights = cho_solve(cho_factor(kernel.T @ kernel + ridge), kernel.T @ (told[rest] - self._mean))
        missed = float(((self._said(x[left]) - told[left]) ** 2).mean())
        #: share of the variance that the smooth function explains of transitions left out
        self.explained = 1 - missed / max(float(told[left].var()), TINY)

    def __call__(self, observation: ArrayLike, action: ArrayLike, following: ArrayLike) -> Array:
        """The reward [N] of transitions."""
        table = _changes(*(np.asarray(a, dtype=np.float64) for a in (observation, action, following)))
        if table.shape[1] != len(self._middle):
            raise CaromError(f"disagreement: expected {len(self._middle)} numbers a transition, got {table.shape[1]}")
        said = self._said((table - self._middle) / self._scale)
        return np.asarray(self.weight * np.clip(said / self.typical, 0.0, TOP))

    def _said(self, x: Array) -> Array:
        return np.asarray(self._mean + self._kernel(x) @ self._weights)

    def _kernel(self, x: Array) -> Array:
        return np.asarray(np.exp(-0.5 * _squares(x, self._centres) / self._length**2))


def _changes(observation: Array, action: Array, following: Array) -> Array:
    """Observation, action, and by how much the observation changed: contact shows in the change."""
    return np.column_stack([observation, action, following - observation])


def _squares(x: Array, y: Array) -> Array:
    return np.asarray(np.maximum((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T, 0.0))


def _checked(weight: float) -> float:
    if not (np.isfinite(weight) and weight >= 0):
        raise CaromError(f"weight: expected a number that is not negative, got {weight}")
    return float(weight)
