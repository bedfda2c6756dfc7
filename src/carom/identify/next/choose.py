"""The choice of experiments: what each would tell about parameters, and which to carry out one after the other.

How well parameters are known now is what the identification states. An experiment is expected to narrow an interval
by as much as it narrows the one that the curvature alone would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from carom.core.errors import CaromError
from carom.identify import trust
from carom.identify.result import Estimate
from carom.scenes.parameters import Parameter
from carom.state import Array

ALIKE = 0.2  #: distance of two experiments' features (root mean square) below which they are nearly the same
SHOWN = 1.3  #: information in one experiment (inverse variance in unit space): less narrows the bounds by under 5 %
CAUTION = 2.0  #: times the scatter of a simulated outcome is taken off what a candidate seems to tell
SHARES = (1 / 3, 2 / 3, 1.0)  #: of the reach, at which outcomes are compared


@dataclass(frozen=True)
class Experiments:
    """C experiments that could be carried out: what tells them apart, and their descriptions."""

    features: Array  #: [C, F] each about 0 to 1 over the range tried: near duplicates are close
    words: tuple[str, ...]
    settings: tuple[Mapping[str, float], ...]  #: name with unit -> value, for machines


@dataclass(frozen=True)
class Spread:
    """The 90 % interval of one parameter before an experiment, and the one expected after it [unit]."""

    name: str
    unit: str
    before: tuple[float, float]  #: of the first experiment: as the identification states it
    after: tuple[float, float]
    gain: float  #: ln(width before / after)
    shown: bool  #: False: no experiment that was tried shows this parameter


@dataclass(frozen=True)
class Suggestion:
    """One experiment worth recording, given those suggested before it."""

    words: str  #: what to do
    settings: Mapping[str, float]  #: the same for machines, names with units
    gain: float  #: expected drop of the summed ln(standard deviation)
    typical: float  #: the same of the median candidate, at this turn
    spreads: tuple[Spread, ...]
    most: str  #: name of the parameter that gains most
    alike: int  #: other candidates that are nearly the same

    @property
    def unseen(self) -> tuple[str, ...]:
        """Parameters that no experiment tried shows."""
        return tuple(s.name for s in self.spreads if not s.shown)

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        spreads = {
            s.name: {"unit": s.unit, "before": list(s.before), "after": list(s.after), "gain": s.gain, "shown": s.shown}
            for s in self.spreads
        }
        return {
            "what": self.words,
            "settings": dict(self.settings),
            "gain": self.gain,
            "typical_gain": self.typical,
            "gains_most": self.most,
            "alike": self.alike,
            "interval_90": spreads,
        }


@dataclass(frozen=True)
class Told:
    """What N experiments say about A parameters, for residuals of variance 1."""

    residual: Array  #: [N, R] at the point
    gram: Array  #: [N, A, A] J^T J
    scatter: Array  #: [N, A, A] what the scatter of outcomes alone adds to it

    def information(self, times: float) -> Array:
        """Inverse covariances [N, A, A] without so many times the scatter's share."""
        level, axes = np.linalg.eigh(self.gram - times * self.scatter)
        return np.asarray(np.einsum("nab,nb,ncb->nac", axes, np.maximum(level, 0.0), axes))


def around(unit: Array, reach: float) -> Array:
    """A point [A] and pairs either side of it, along each parameter and at several distances [C, A]."""
    steps = np.multiply.outer(np.eye(len(unit)), np.multiply.outer(reach * np.array(SHARES), [1.0, -1.0]))
    return np.concatenate([unit[None], unit + np.moveaxis(steps, 1, -1).reshape(-1, len(unit))])


def told_by(residual: Array, reach: float) -> Told:
    """What residuals [C, N, R] at the points of `around` tell: their slopes, and how far pairs are from one slope.

    Differences of pairs are free of curvature, and a parameter that does nothing gets a slope of exactly zero.
    """
    pairs = residual[1:].reshape(-1, len(SHARES), 2, *residual.shape[1:])
    rise, run = (pairs[:, :, 0] - pairs[:, :, 1]) / 2, reach * np.array(SHARES)  # [A, W, N, R] over [W]
    slope = np.einsum("w,awnr->anr", run, rise) / (run**2).sum()
    left = rise - run[:, None, None] * slope[:, None]
    variance = (left**2).sum(axis=(1, 3)) / (len(run) - 1) / (run**2).sum()  # [A, N] of all R slopes together
    gram = np.einsum("anr,bnr->nab", slope, slope)
    return Told(residual[0], gram, np.einsum("an,ab->nab", variance, np.eye(len(variance))))


@dataclass(frozen=True)
class Known:
    """What is known of A parameters now."""

    parameters: tuple[Parameter, ...]
    unit: Array  #: [A] where they were found; the middle where that means nothing
    low: Array  #: [A] lower ends of their 90 % intervals, in unit space
    high: Array  #: [A]

    @classmethod
    def of(cls, parameters: Sequence[Parameter], estimates: Sequence[Estimate]) -> Known:
        """What an identification states."""
        by_name = {e.name: e for e in estimates}
        found = [by_name[p.name] for p in parameters]
        ends = [
            [float(p.to_unit(np.clip(v, p.low, p.high))) for v in (e.value, e.low, e.high)]
            for p, e in zip(parameters, found, strict=True)
        ]
        value, low, high = np.array(ends).reshape(-1, 3).T
        shown = np.array([not e.verdict.startswith("not identifiable") for e in found])
        value = np.where(shown, value, (low + high) / 2)
        return cls(tuple(parameters), value, np.minimum(low, value), np.maximum(high, value))

    def narrowed(self, share: Array) -> list[tuple[float, float]]:
        """The intervals [unit] when either side of each is this share [A] of what it is."""
        low, high = self.unit - share * (self.unit - self.low), self.unit + share * (self.high - self.unit)
        return [
            (float(p.from_unit(a)), float(p.from_unit(b))) for p, a, b in zip(self.parameters, low, high, strict=True)
        ]


def choose(
    known: Known,
    now: Told,
    new: Told,
    tried: Experiments,
    fine: np.ndarray,
    *,
    count: int,
    blur: Array | None = None,
    missed: float = 0.0,
) -> tuple[Suggestion, ...]:
    """The best candidates, one after the other.

    `blur` [N] is what errors of the start add to the variance of a candidate's residuals. Where nobody hits an
    experiment exactly but misses it by about `missed` (a distance of features), those around it count too.
    """
    if not fine.any():
        raise CaromError("no candidate could be simulated with these parameters; check the scene and the parameters")
    count_of = len(known.parameters)
    variance = max(float((now.residual**2).sum()) / max(now.residual.size - count_of, 1), 1e-12)
    precision = now.information(1.0).sum(axis=0) / variance + trust.PRIOR * np.eye(count_of)
    noise = variance + (np.zeros(len(fine)) if blur is None else blur)
    told = np.where(fine[:, None, None], new.information(CAUTION) / noise[:, None, None], 0.0)
    apart = np.sqrt(((tried.features[:, None] - tried.features) ** 2).mean(axis=-1))
    if missed > 0:
        weight = np.exp(-0.5 * (apart / missed) ** 2) * fine
        told = np.einsum("nm,mab->nab", weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-12), told)
    shown = np.einsum("naa->na", told)[fine].max(axis=0) > SHOWN
    left, first = fine.copy(), np.sqrt(np.diag(np.linalg.inv(precision)))
    made: list[Suggestion] = []
    while len(made) < count and left.any():
        before = np.sqrt(np.diag(np.linalg.inv(precision)))
        after = np.sqrt(np.einsum("naa->na", np.linalg.inv(precision + told)))
        gains = np.log(before / after)
        total = np.where(left, gains.sum(axis=-1), -np.inf)
        best = int(np.argmax(total))
        near = apart[best] < ALIKE
        made.append(
            Suggestion(
                tried.words[best],
                tried.settings[best],
                float(total[best]),
                float(np.median(gains[fine].sum(axis=-1))),
                _spreads(known, before / first, after[best] / first, shown),
                known.parameters[int(np.argmax(gains[best]))].name,
                int((near & fine).sum()) - 1,
            )
        )
        precision = precision + told[best]
        left &= ~near
    return tuple(made)


def _spreads(known: Known, before: Array, after: Array, shown: np.ndarray) -> tuple[Spread, ...]:
    """Intervals that are so many times [A] as wide as now."""
    rows = zip(
        known.parameters, known.narrowed(before), known.narrowed(after), np.log(before / after), shown, strict=True
    )
    return tuple(Spread(p.name, p.unit, was, becomes, float(gain), bool(seen)) for p, was, becomes, gain, seen in rows)
