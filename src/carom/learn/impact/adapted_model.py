"""Impact models that predict real strikes: teachers corrected with a handful of recorded strikes, and weighed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError, ModelError
from carom.core.progress import Steps
from carom.engines.contact_frames import to_world
from carom.learn.impact.base_model import BaseModel
from carom.learn.impact.hypotheses import (
    ALONE,
    Hypothesis,
    combined,
    groups_of,
    hypotheses_for,
    log_density,
    stretch,
    weigh,
)
from carom.learn.impact.members import Known, Teacher, misfits, plausible_members
from carom.learn.impact.process import LEAST, Learned, Points, condition, learn, points_of, told_by, without_teacher
from carom.learn.impact.rigid import RigidTeacher, ways_of
from carom.learn.impact.seen import Explanation, Seen, Told, points_by_teacher, world_std
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

FAITHFUL = 0.75  #: in-simulator accuracy, relative to the best base model's, below which one is not considered
WITHIN = 0.8  #: share of the recorded strikes that base models must have learned about, or they are left out
ODD = 30.0  #: squared error of a left-out strike, over its stated variance, from where on it does not fit the others
MOST_ODD = 0.2  #: share of the strikes that may be odd; where more are, the hypotheses are
TOGETHER = 40  #: strikes for each one that is found odd at a time
NOTHING = 1e-20  #: of the greatest weight: what a hypothesis of less adds is lost in rounding
CHUNK = 128  #: strikes predicted together: bounds the memory of the members' outcomes
WILD = 1e5  #: number in a recorded strike, or in what a network says of one, that no body reaches [SI units]
WORKERS = 2  #: such chunks, or teachers, at a time


@dataclass(frozen=True)
class Prediction:
    """Predicted outcomes of N strikes."""

    post: Array  #: [N, 3] vx, vy, wz of the target's centre of mass, world frame [m/s, m/s, rad/s]
    post_std: Array  #: [N, 3] standard deviation of each; NaN where the method has none
    known: Array  #: [N] 1 where the strike is within what the model has learned, 0 elsewhere


class ImpactModel(Protocol):
    """Anything that predicts the outcome of strikes from what is known before contact."""

    def predict(self, strikes: Strikes) -> Prediction: ...


@dataclass(frozen=True)
class AdaptedModel:
    """What may explain the recorded strikes, each weighed by how it predicts left-out ones: Carom's default model."""

    bases: tuple[BaseModel, ...]  #: distilled, whether they count or not
    explanations: tuple[Explanation, ...]
    hypotheses: tuple[Hypothesis, ...]
    weights: Array  #: [H] of the hypotheses
    stretch: float  #: factor on stated variances, by the errors of strikes left out
    train: Impacts
    odd: tuple[str, ...] = ()  #: training strikes that do not fit the others, and are not learned from

    @property
    def scene(self) -> StrikeScene:
        return self.bases[0].scene

    @property
    def best(self) -> Explanation:
        """The teacher that counts most."""
        return max(self.explanations, key=lambda e: self.teachers[e.base.teacher])

    @property
    def teachers(self) -> dict[str, float]:
        """How much each teacher counts, and the strikes alone."""
        found = dict.fromkeys([h.teacher for h in self.hypotheses], 0.0)
        for hypothesis, weight in zip(self.hypotheses, self.weights, strict=True):
            found[hypothesis.teacher] += float(weight)
        return found

    @property
    def reasons(self) -> dict[str, float]:
        """What carried the weight, in words, greatest first; what counts less than a twentieth is left out."""
        order = np.argsort(-self.weights)
        return {self.hypotheses[i].words: float(self.weights[i]) for i in order if self.weights[i] >= 0.05}

    @property
    def words(self) -> tuple[str, ...]:
        """For people: what the predictions rest on, and which strikes were not learned from."""
        shares = "; ".join(f"{words} ({100 * weight:.0f} %)" for words, weight in self.reasons.items())
        lines = [f"what predictions rest on, by how well it predicts recorded strikes left out: {shares}"]
        if self.odd:
            lines.append(
                f"not learned from: {', '.join(self.odd)}; nothing that explains the other strikes explains these: "
                "look at the recording (carom check), or at what was different"
            )
        return tuple(lines)

    def refuse_wild(self) -> None:
        """Raise if recorded strikes, or what the networks say of them, are nothing that bodies do."""
        told = [getattr(self.train.strikes, f.name) for f in fields(Strikes)] + [self.train.post, self.train.post_std]
        if not len(self.train) or not all((np.abs(a) <= WILD).all() for a in told) or (self.train.post_std < 0).any():
            raise ModelError(f"expected recorded strikes of finite numbers within {WILD:g}; run carom adapt again")
        for teacher, points in self.known.items():
            if not all((np.abs(a) <= WILD).all() for a in (points.mean, points.deviation, points.columns)):
                raise ModelError(
                    f"outcomes of '{teacher}' for the recorded strikes are not finite; make the model anew"
                )

    def predict(self, strikes: Strikes) -> Prediction:
        """Outcomes of strikes, with their uncertainty."""
        chunks = [strikes[i : i + CHUNK] for i in range(0, max(len(strikes), 1), CHUNK)]
        learned = self._learned  # once, before threads ask for it
        with ThreadPoolExecutor(min(len(chunks), WORKERS)) as workers:  # the networks' sums leave Python alone
            parts = list(workers.map(lambda chunk: self._predict(chunk, learned), chunks))
        return Prediction(*(np.concatenate([getattr(p, f) for p in parts]) for f in ("post", "post_std", "known")))

    @cached_property
    def told(self) -> Told:
        """The recorded strikes as the hypotheses see them."""
        return Told(self.scene, self.train, self.odd)

    @cached_property
    def known(self) -> dict[str, Points]:
        """The recorded strikes as each teacher sees them."""
        return points_by_teacher(self.explanations, self.told)

    @cached_property
    def _counting(self) -> NDArray[np.int64]:
        """The hypotheses that count, of the networks and of the others, which answer alone where networks may not."""
        found = []
        for rows in (np.flatnonzero(self._networks), np.flatnonzero(~self._networks)):
            found += [row for row in rows if self.weights[row] >= NOTHING * self.weights[rows].max()]
        return np.sort(np.array(found, dtype=np.int64))

    @cached_property
    def _networks(self) -> NDArray[np.bool_]:
        """Which hypotheses [H] a network answers for."""
        return np.array([h.teacher in {b.teacher for b in self.bases} for h in self.hypotheses])

    @cached_property
    def _learned(self) -> tuple[Learned, ...]:
        """The processes of the hypotheses that count, given all recorded strikes."""
        every = np.arange(len(self.train))
        return tuple(_learn(self.hypotheses[row], self.told, self.known, every) for row in self._counting)

    def _predict(self, strikes: Strikes, learned: Sequence[Learned]) -> Prediction:
        asked = Seen(self.scene, strikes, self.told.centre)
        own = points_by_teacher(self.explanations, asked)
        rows = self._counting
        said = [_said(self.hypotheses[row], known, own, asked.axes) for row, known in zip(rows, learned, strict=True)]
        means, spreads = np.array([mean for mean, _ in said]), np.array([spread for _, spread in said])
        weights = np.repeat(self.weights[rows, None], len(strikes), axis=1)
        inside = self.bases[0].within(asked.frames)
        networks = self._networks[rows]
        weights[np.ix_(networks, inside == 0)] = 0.0  # a network knows nothing of such strikes
        mean, spread = combined(weights, means, self.stretch * spreads)
        std = world_std(self.scene, asked.frames, spread)
        return Prediction(to_world(self.scene, asked.frames, mean), std, inside)


def _learn(hypothesis: Hypothesis, told: Told, known: Mapping[str, Points], rows: NDArray[np.int64]) -> Learned:
    """A hypothesis' process, given some rows of the recorded strikes."""
    local = (told.ahead if hypothesis.teacher == ALONE else told.local)[rows]
    process = hypothesis.process if told.flat else replace(hypothesis.process, lean=0.0)
    return learn(process, known[hypothesis.teacher][rows], local, told.measured[rows])


def _said(hypothesis: Hypothesis, learned: Learned, asked: Mapping[str, Points], axes: Array) -> tuple[Array, Array]:
    """What a hypothesis says of strikes: mean [N, 3], covariance [N, 3, 3]."""
    mean, spread = condition(learned, asked[hypothesis.teacher])
    if hypothesis.teacher != ALONE:
        return mean, spread
    return np.einsum("nji,nj->ni", axes, mean), np.einsum("nji,njk,nkl->nil", axes, spread, axes)


def adapt(
    bases: Sequence[BaseModel],
    impacts: Impacts,
    *,
    fixed: Mapping[str, Known] | None = None,
    seed: int = 0,
    progress: Steps | None = None,
) -> AdaptedModel:
    """Correct base models with real impacts; `fixed` parameters were identified otherwise (value, or with its sd).

    The base models that learned their teacher well, a rigid impact, and the strikes alone: each is a hypothesis with
    several ways to correct it, and counts by how it predicts strikes left out. The ten samples choose between them, or
    leave the choice open. Base models that have not learned about such strikes are left out.
    """
    scene = check_usable(bases, impacts)
    told = Told(scene, impacts)
    inside = bases[0].within(told.frames).mean() >= WITHIN
    teachers: list[Teacher] = [*(faithful(bases) if inside else ()), RigidTeacher(scene)]
    explanations: list[Explanation] = []

    def explained(base: Teacher) -> Explanation:
        own = {name: value for name, value in (fixed or {}).items() if name in {p.name for p in base.parameters}}
        return Explanation(base, plausible_members(base, told.frames, told.local, fixed=own, seed=seed))

    with ThreadPoolExecutor(WORKERS) as workers:
        for explanation in workers.map(explained, teachers):
            if progress:
                progress(len(explanations), len(teachers) + 1)  # weighing them is one more
            explanations.append(explanation)
    if progress:
        progress(len(teachers), len(teachers) + 1)
    hypotheses = hypotheses_for(tuple(e.base.teacher for e in explanations))
    weights, wider, odd = _weighed(hypotheses, explanations, scene, impacts, seed)
    if progress:
        progress(len(teachers) + 1, len(teachers) + 1)
    return AdaptedModel(tuple(bases), tuple(explanations), hypotheses, weights, wider, impacts, odd)


def _weighed(
    hypotheses: Sequence[Hypothesis],
    explanations: Sequence[Explanation],
    scene: StrikeScene,
    impacts: Impacts,
    seed: int,
) -> tuple[Array, float, tuple[str, ...]]:
    """Weights [H] of the hypotheses, the factor on their variances, and the strikes that do not fit the others.

    The oddest strike goes first: as long as it is learned from, it makes others look odd.
    """
    odd: tuple[str, ...] = ()
    while True:
        told = Told(scene, impacts, odd)
        means, spreads, chances = _left_out(hypotheses, explanations, told, seed)
        fits = told.fits
        densities = np.log(chances) + [log_density(told.local - m, s) for m, s in zip(means, spreads, strict=True)]
        weights = weigh(hypotheses, densities[:, fits])
        mean, spread = combined(weights[:, None], means[:, fits], spreads[:, fits])
        off = told.local[fits] - mean
        square = np.einsum("ni,nij,nj->n", off, np.linalg.inv(spread), off)
        if square.max() < ODD or len(odd) >= int(MOST_ODD * len(impacts)):
            return weights, stretch(off, spread), odd
        # one at a time, of hundreds a few: as many as do not fit the others
        oddest = np.argsort(-square)[: max(1, len(impacts) // TOGETHER)]
        odd = (*odd, *(impacts.names[int(np.flatnonzero(fits)[i])] for i in oddest if square[i] >= ODD))


def _left_out(
    hypotheses: Sequence[Hypothesis], explanations: Sequence[Explanation], told: Told, seed: int
) -> tuple[Array, Array, Array]:
    """Each recorded strike as each hypothesis predicts it from others: mean [H, N, 3], covariance [H, N, 3, 3].

    Where it may come out in several ways: in the way that it went, and the chance [H, N] of that way.
    """
    count = len(told.local)
    every = {e.base.teacher: ways_of(e.base, told.frames, e.members.values) for e in explanations}
    went = {teacher: told_by(*ways, told.local) for teacher, ways in every.items()}
    likely = {teacher: np.ones(count) for teacher in (ALONE, *every)}
    means, spreads = np.zeros((len(hypotheses), count, 3)), np.zeros((len(hypotheses), count, 3, 3))
    order = np.random.default_rng([seed, 41]).permutation(count)
    for left in np.array_split(order, groups_of(count)):
        rest = np.setdiff1d(np.arange(count), left)
        points = {ALONE: without_teacher(told.columns)}
        for e in explanations:
            (chances, ways), way = every[e.base.teacher], went[e.base.teacher]
            said = np.einsum("wmn,wmnc->mnc", chances[:, :, left], ways[:, :, left])
            weights = e.members.without(misfits(said, told.local[left]))
            points[e.base.teacher] = points_of(way, ways, weights, told.columns, recorded=True)
            likely[e.base.teacher][left] = np.einsum("m,wmn,wmn->n", weights, way, chances + LEAST)[left]
        asked = {teacher: seen[left] for teacher, seen in points.items()}
        for i, hypothesis in enumerate(hypotheses):
            learned = _learn(hypothesis, told, points, rest)
            means[i, left], spreads[i, left] = _said(hypothesis, learned, asked, told.axes[left])
    chances = np.array([likely[h.teacher] for h in hypotheses])
    return means, spreads + told.measured[:, :, None] * np.eye(3), chances


def faithful(bases: Sequence[BaseModel]) -> list[BaseModel]:
    """The base models that learned their teacher about as well as the best of them did theirs.

    A network that is off by a tenth on its own simulator's impacts has no business explaining real ones.
    """
    own = [base.held_out.get("accuracy@0.1", 1.0) for base in bases]
    return [base for base, accuracy in zip(bases, own, strict=True) if accuracy >= FAITHFUL * max(own)]


def check_usable(bases: Sequence[BaseModel], impacts: Impacts) -> StrikeScene:
    """The scene of the base models; raises unless the impacts can correct them."""
    if len(impacts) < 3:
        raise CaromError(f"{len(impacts)} usable impacts are too few to learn from; record 3 or more, better 10")
    if not np.isfinite(impacts.post).all():
        name = impacts.names[int(np.argmax(~np.isfinite(impacts.post).all(axis=1)))]
        raise CaromError(f"{name}: the outcome has no measured spin; learning needs the target's orientation")
    return bases[0].scene
