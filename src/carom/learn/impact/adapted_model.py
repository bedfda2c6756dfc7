"""Impact models that predict real strikes: base models corrected with a handful of real impacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from carom.core.errors import CaromError
from carom.engines.contact_frames import Frames, contact_frames, to_local, to_world
from carom.learn.impact.base_model import BaseModel
from carom.learn.impact.members import Known, Members, outcomes, plausible_members
from carom.learn.impact.process import (
    CONTACT_FLOORS,
    POSTURE_FLOORS,
    Points,
    Standard,
    condition,
    contact_columns,
    fit_hyper,
    posture_columns,
    standardise,
)
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

FAITHFUL = 0.9  #: in-simulator accuracy, relative to the best base model's, below which one is not considered
NEGLIGIBLE = 5.0  #: [nat] of evidence behind the best, from where on a correction is left out
CHUNK = 2048  #: strikes predicted together: bounds the memory of the members' outcomes


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
class Correction:
    """One base model with what the real impacts say about it."""

    base: BaseModel
    members: Members
    hyper: dict[str, float]
    evidence: float  #: logarithm of the impacts' probability [nat]

    def points(self, frames: Frames, strikes: Strikes, posture: Standard, contact: Standard) -> Points:
        """Strikes as this correction's process sees them."""
        out, weights = outcomes(self.base, frames, self.members.values), self.members.weights
        mean = np.einsum("m,mnc->nc", weights, out)
        deviation = np.sqrt(weights)[:, None, None] * (out - mean)
        columns = contact_columns(self.base.scene, frames)
        own = posture.apply(posture_columns(frames, strikes))
        return Points(mean, deviation, own, contact.apply(columns), columns[:, :2], columns[:, 4:])


@dataclass(frozen=True)
class AdaptedModel:
    """Base models corrected with real impacts, each weighed by its evidence: Carom's default impact model."""

    corrections: tuple[Correction, ...]  #: greatest evidence first
    posture: Standard
    contact: Standard
    train: Impacts

    @property
    def scene(self) -> StrikeScene:
        return self.best.base.scene

    @property
    def best(self) -> Correction:
        return self.corrections[0]

    @property
    def evidence(self) -> dict[str, float]:
        """Logarithm of each teacher's evidence [nat]."""
        return {c.base.teacher: c.evidence for c in self.corrections}

    @property
    def weights(self) -> Array:
        """How much each correction counts [C]: the probability of its teacher, given the impacts."""
        odds = np.exp([c.evidence - self.best.evidence for c in self.corrections])
        return np.asarray(odds / odds.sum())

    def predict(self, strikes: Strikes) -> Prediction:
        """Outcomes of strikes, with their uncertainty."""
        frames = contact_frames(self.scene, self.train.strikes)
        local = to_local(self.scene, frames, self.train.post)
        measured = measured_variance(self.scene, frames, self.train)
        known = [c.points(frames, self.train.strikes, self.posture, self.contact) for c in self.corrections]
        parts = [
            self._predict(strikes[i : i + CHUNK], known, local, measured) for i in range(0, max(len(strikes), 1), CHUNK)
        ]
        return Prediction(*(np.concatenate([getattr(p, f) for p in parts]) for f in ("post", "post_std", "known")))

    def _predict(self, strikes: Strikes, known: list[Points], local: Array, measured: Array) -> Prediction:
        frames = contact_frames(self.scene, strikes)
        means, covariances = [], []
        for correction, training in zip(self.corrections, known, strict=True):
            asked = correction.points(frames, strikes, self.posture, self.contact)
            mean, covariance = condition(correction.hyper, training, local, measured, asked)
            means.append(mean)
            covariances.append(covariance)
        mean = np.einsum("c,cni->ni", self.weights, means)
        apart = np.array(means) - mean  # where the teachers disagree, the outcome is uncertain
        covariance = np.einsum("c,cnij->nij", self.weights, covariances)
        covariance += np.einsum("c,cni,cnj->nij", self.weights, apart, apart)
        std = _world_std(self.scene, frames, covariance)
        return Prediction(to_world(self.scene, frames, mean), std, within_learned(self.scene, frames))


def adapt(
    bases: Sequence[BaseModel], impacts: Impacts, *, fixed: Mapping[str, Known] | None = None, seed: int = 0
) -> AdaptedModel:
    """Correct base models with real impacts; `fixed` parameters were identified otherwise (value, or with its sd).

    Each base model that learned its teacher well is corrected, and counts by its evidence for the impacts: the ten
    samples themselves choose between the teachers, or leave the choice open.
    """
    scene = check_usable(bases, impacts)
    frames = contact_frames(scene, impacts.strikes)
    local, measured = to_local(scene, frames, impacts.post), measured_variance(scene, frames, impacts)
    posture = standardise(posture_columns(frames, impacts.strikes), POSTURE_FLOORS)
    contact = standardise(contact_columns(scene, frames), CONTACT_FLOORS)
    found: list[Correction] = []
    for base in faithful(bases):
        members = plausible_members(base, frames, local, fixed=fixed or {}, seed=seed)
        draft = Correction(base, members, {}, 0.0)
        hyper, evidence = fit_hyper(draft.points(frames, impacts.strikes, posture, contact), local, measured)
        found.append(replace(draft, hyper=hyper, evidence=evidence))
    found.sort(key=lambda c: -c.evidence)
    likely = [c for c in found if c.evidence > found[0].evidence - NEGLIGIBLE]
    return AdaptedModel(tuple(likely), posture, contact, impacts)


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


def measured_variance(scene: StrikeScene, frames: Frames, impacts: Impacts) -> Array:
    """Variance of the outcomes from their measurement alone [3N], as shares of the approach speed squared."""
    std = impacts.post_std * np.array([1.0, 1.0, scene.gyration_radius]) / frames.speed[:, None]
    std[:, :2] = np.sqrt((std[:, :2] ** 2).mean(axis=1, keepdims=True))  # the frame's axes are not the world's
    return np.asarray(np.nan_to_num(std, nan=0.0) ** 2).ravel()


def _world_std(scene: StrikeScene, frames: Frames, covariance: Array) -> Array:
    """Standard deviations in the world [N, 3] of outcomes with this covariance in the contact frame."""
    linear = np.einsum("nai,nab,nbi->ni", frames.axes, covariance[:, :2, :2], frames.axes)
    variance = np.concatenate([linear, covariance[:, 2:, 2] / scene.gyration_radius**2], axis=-1)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) * frames.speed[:, None])


def within_learned(scene: StrikeScene, frames: Frames) -> Array:
    """1 where strikes are within the ranges that the base model was trained on [N], with a margin of a tenth."""
    speed = np.linalg.norm(frames.velocity, axis=-1)
    heading = np.abs(np.arctan2(frames.velocity[:, 0], frames.velocity[:, 1]))
    low, high = scene.speed
    inside = (speed > 0.9 * low) & (speed < 1.1 * high) & (heading < 1.1 * scene.deflection + 0.05)
    return np.asarray(inside & (np.abs(frames.angle) < 1.1 * scene.face_angle + 0.05), dtype=float)
