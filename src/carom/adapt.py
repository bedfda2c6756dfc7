"""Few-shot correction: ten real impacts turn a distilled base model into one that predicts reality.

The default correction asks the base models what they would predict over the whole range of their parameters.
Members that contradict the recordings lose weight; what the rest agree on is the prediction, and how they
differ is a covariance between impacts: if one strike spins more than expected, which others would too, and by
how much? A Gaussian process with that covariance, a linear term for what the planar picture leaves out, and a
smooth term for what no parameter can express, is conditioned on the recordings in closed form. Its few
amplitudes maximise the evidence of the training samples alone. Every prediction has an uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.stats import qmc

from carom.distill.frames import Frames, contact_frames, to_local, to_world
from carom.distill.model import BaseModel
from carom.errors import CaromError
from carom.scenes.parameters import from_unit
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

MEMBERS = 4096  #: draws of the parameters for each base model
EFFECTIVE = 50.0  #: members that must remain in effect after weighting: ten samples cannot choose more sharply
KEPT = 256  #: members kept in the model: those with the greatest weights

#: log of each amplitude and length: prior mean and standard deviation. Outcomes are shares of the approach speed.
HYPER = {
    "simulator": (0.0, 0.7),  # factor on the covariance of the members
    "linear": (2 * np.log(0.03), 1.4),
    "smooth": (2 * np.log(0.08), 1.4),
    "noise": (2 * np.log(0.04), 1.0),
    "length": (np.log(1.5), 0.4),  # of the smooth term, in standard deviations of its inputs
}


@dataclass(frozen=True)
class Member:
    """Parameters of one base model that remain plausible after seeing the recordings."""

    base: int  #: index of the base model
    values: Array  #: [M, P]
    weights: Array  #: [M], all members together sum to one


@dataclass(frozen=True)
class Prediction:
    """Predicted outcomes of N strikes."""

    post: Array  #: [N, 3] vx, vy, wz of the target's centre of mass, world frame [m/s, m/s, rad/s]
    post_std: Array  #: [N, 3] standard deviation of each
    known: np.ndarray  #: [N] bool: the strike is within what the model has learned


@dataclass(frozen=True)
class Inputs:
    """What the correction sees of a strike beside the members' predictions."""

    linear: Array  #: [N, L] standardised
    smooth: Array  #: [N, S] standardised


@dataclass(frozen=True)
class Standard:
    """Shift and scale of the correction's inputs, from the training strikes; columns that did not vary are dropped."""

    mean: Array
    scale: Array
    keep: np.ndarray


@dataclass(frozen=True)
class AdaptedModel:
    """An impact model corrected with real impacts."""

    scene: StrikeScene
    bases: tuple[BaseModel, ...]
    members: tuple[Member, ...]
    standard: tuple[Standard, Standard]  #: of the linear and the smooth inputs
    hyper: dict[str, float]
    train: Impacts

    def predict(self, strikes: Strikes) -> Prediction:
        """Outcomes of strikes from what is known before contact."""
        frames = contact_frames(self.scene, strikes)
        local, covariance = _condition(self, frames, strikes)
        post = to_world(self.scene, frames, local)
        std = _world_std(self.scene, frames, covariance)
        return Prediction(post, std, _within(self.scene, frames))


def adapt(bases: Sequence[BaseModel], impacts: Impacts, *, fixed: dict[str, float] | None = None, seed: int = 0) -> AdaptedModel:
    """Correct base models of one scene with real impacts; `fixed` parameters were identified otherwise."""
    scene = bases[0].scene
    if len(impacts) < 3:
        raise CaromError(f"{len(impacts)} usable impacts are too few to correct a model with; record 3 or more, better 10")
    frames = contact_frames(scene, impacts.strikes)
    local = to_local(scene, frames, impacts.post)
    members = _weigh(bases, frames, local, fixed or {}, seed)
    raw = _raw_inputs(scene, frames, impacts.strikes)
    standard = (_standardise(*raw[0]), _standardise(*raw[1]))
    model = AdaptedModel(scene, tuple(bases), members, standard, {}, impacts)
    return AdaptedModel(scene, tuple(bases), members, standard, _fit_hyper(model, frames, local), impacts)


def _weigh(
    bases: Sequence[BaseModel], frames: Frames, local: Array, fixed: dict[str, float], seed: int
) -> tuple[Member, ...]:
    """Draw parameters for every base model and weigh them by how well they explain the recordings."""
    drawn, misfit = [], []
    for index, base in enumerate(bases):
        parameters = base.parameters
        unit = qmc.Sobol(len(parameters), seed=seed + index).random(MEMBERS)
        values = from_unit(parameters, unit)
        for i, p in enumerate(parameters):
            if p.name in fixed:
                values[:, i] = np.clip(fixed[p.name], p.low, p.high)
        with torch.no_grad():
            spread = torch.as_tensor(values)[:, None, :].expand(-1, len(frames), -1)
            predicted = base.outcome(frames, spread).double().numpy()
        drawn.append(values)
        misfit.append(((predicted - local) ** 2).sum((1, 2)))
    weights = _temper(np.concatenate(misfit))
    threshold = np.sort(weights)[-min(KEPT, len(weights))]
    members, start = [], 0
    for index, values in enumerate(drawn):
        own = weights[start : start + len(values)]
        start += len(values)
        keep = own >= threshold
        if keep.any():
            members.append(Member(index, values[keep], own[keep]))
    total = sum(m.weights.sum() for m in members)
    return tuple(Member(m.base, m.values, m.weights / total) for m in members)


def _temper(misfit: Array) -> Array:
    """Weights exp(-c * misfit), as sharp as leaves `EFFECTIVE` members in effect."""
    best = misfit - misfit.min()
    low, high = 1e-6, 1e6
    for _ in range(80):
        middle = np.sqrt(low * high)
        w = np.exp(-middle * best)
        low, high = (middle, high) if w.sum() ** 2 / (w**2).sum() > EFFECTIVE else (low, middle)
    w = np.exp(-low * best)
    return np.asarray(w / w.sum())


def _member_outcomes(model: AdaptedModel, frames: Frames) -> tuple[Array, Array]:
    """Weighted mean [N, 3] of the members' predictions, and their weighted deviations [M, N, 3]."""
    outcomes, weights = [], []
    for member in model.members:
        with torch.no_grad():
            values = torch.as_tensor(member.values)[:, None, :].expand(-1, len(frames), -1)
            outcomes.append(model.bases[member.base].outcome(frames, values).double().numpy())
        weights.append(member.weights)
    out, w = np.concatenate(outcomes), np.concatenate(weights)
    mean = np.einsum("m,mnc->nc", w, out)
    return mean, np.sqrt(w)[:, None, None] * (out - mean)


def _raw_inputs(scene: StrikeScene, frames: Frames, strikes: Strikes) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Inputs of the linear and the smooth term, each with the spread below which a column says nothing."""
    log_speed = np.log(frames.speed)
    heading = np.arctan2(frames.velocity[:, 0], frames.velocity[:, 1])
    yaw = strikes.target_pose[:, 2]
    linear = np.column_stack([strikes.posture, frames.spin, yaw])
    floors = np.array([1e-3, 3e-3, 3e-3, 0.01, 0.03, 5e-3])
    if np.ptp(yaw) > 1.0:  # the target stood anyhow: its yaw is no posture, and it wraps
        linear[:, 5] = 0.0
    k = scene.gyration_radius
    smooth = np.column_stack([frames.point / k, frames.angle, heading, log_speed])
    return (linear, floors), (smooth, np.array([0.02, 0.02, 5e-3, 5e-3, 0.02]))


def _standardise(columns: Array, floors: Array) -> Standard:
    spread = columns.std(axis=0)
    return Standard(columns.mean(axis=0), np.maximum(spread, floors), spread > floors)


def _inputs(model: AdaptedModel, frames: Frames, strikes: Strikes) -> Inputs:
    linear, smooth = (
        ((raw - s.mean) / s.scale)[:, s.keep]
        for (raw, _), s in zip(_raw_inputs(model.scene, frames, strikes), model.standard, strict=True)
    )
    return Inputs(np.clip(linear, -4, 4), smooth)


def _kernel(hyper: dict[str, float], a: tuple[Array, Inputs], b: tuple[Array, Inputs]) -> Array:
    """Covariance [3N, 3M] between outcomes of two sets of strikes: members' deviations and inputs of each."""
    simulator = np.exp(hyper["simulator"]) * np.einsum("mic,mjd->icjd", a[0], b[0])
    distance = ((a[1].smooth[:, None] - b[1].smooth[None]) ** 2).sum(-1)
    shared = np.exp(hyper["linear"]) * (a[1].linear @ b[1].linear.T)
    shared = shared + np.exp(hyper["smooth"]) * np.exp(-0.5 * distance / np.exp(2 * hyper["length"]))
    n, m = shared.shape
    return np.asarray(simulator.reshape(3 * n, 3 * m) + np.kron(shared, np.eye(3)))


def _fit_hyper(model: AdaptedModel, frames: Frames, local: Array) -> dict[str, float]:
    """Amplitudes that maximise the evidence of the training impacts, with weak priors (type-II maximum likelihood)."""
    mean, deviation = _member_outcomes(model, frames)
    inputs = _inputs(model, frames, model.train.strikes)
    residual, measured = (local - mean).ravel(), _measured_variance(model, frames)
    names = list(HYPER)
    centre, width = np.array([HYPER[n][0] for n in names]), np.array([HYPER[n][1] for n in names])

    def cost(h: Array) -> float:
        hyper = dict(zip(names, h, strict=True))
        k = _kernel(hyper, (deviation, inputs), (deviation, inputs)) + np.diag(np.exp(hyper["noise"]) + measured)
        lower = cholesky(k, lower=True)
        white = solve_triangular(lower, residual, lower=True)
        return float(0.5 * white @ white + np.log(np.diag(lower)).sum() + 0.5 * (((h - centre) / width) ** 2).sum())

    best = minimize(cost, centre, method="L-BFGS-B", bounds=list(zip(centre - 4 * width, centre + 4 * width, strict=True)))
    return dict(zip(names, (float(v) for v in best.x), strict=True))


def _measured_variance(model: AdaptedModel, frames: Frames) -> Array:
    """Variance of the training outcomes from their measurement alone [3N], as shares of the approach speed squared."""
    scale = np.array([1.0, 1.0, model.scene.gyration_radius]) / frames.speed[:, None]
    std = model.train.post_std * scale
    std[:, :2] = np.sqrt((std[:, :2] ** 2).mean(axis=1, keepdims=True))  # the frame's axes are not the world's
    return np.asarray(np.nan_to_num(std, nan=0.0) ** 2).ravel()


def _condition(model: AdaptedModel, frames: Frames, strikes: Strikes) -> tuple[Array, Array]:
    """Conditional mean [N, 3] and covariance [N, 3, 3] of scaled outcomes in the contact frame."""
    train_frames = contact_frames(model.scene, model.train.strikes)
    local = to_local(model.scene, train_frames, model.train.post)
    mean_train, dev_train = _member_outcomes(model, train_frames)
    mean, dev = _member_outcomes(model, frames)
    known, asked = _inputs(model, train_frames, model.train.strikes), _inputs(model, frames, strikes)
    noise = np.exp(model.hyper["noise"])
    k = _kernel(model.hyper, (dev_train, known), (dev_train, known)) + np.diag(noise + _measured_variance(model, train_frames))
    lower = cholesky(k, lower=True)
    cross = _kernel(model.hyper, (dev, asked), (dev_train, known))
    correction = cross @ cho_solve((lower, True), (local - mean_train).ravel())
    explained = solve_triangular(lower, cross.T, lower=True).reshape(local.size, len(frames), 3)
    prior = np.exp(model.hyper["simulator"]) * np.einsum("mic,mid->icd", dev, dev)
    shared = np.exp(model.hyper["linear"]) * (asked.linear**2).sum(-1) + np.exp(model.hyper["smooth"]) + noise
    covariance = prior + shared[:, None, None] * np.eye(3) - np.einsum("tic,tid->icd", explained, explained)
    return mean + correction.reshape(-1, 3), covariance


def _world_std(scene: StrikeScene, frames: Frames, covariance: Array) -> Array:
    """Standard deviations in the world [N, 3] of outcomes with this covariance in the contact frame."""
    linear = np.einsum("nai,nab,nbi->ni", frames.axes, covariance[:, :2, :2], frames.axes)
    variance = np.concatenate([linear, covariance[:, 2:, 2] / scene.gyration_radius**2], axis=-1)
    return np.sqrt(np.maximum(variance, 0.0)) * frames.speed[:, None]


def _within(scene: StrikeScene, frames: Frames) -> np.ndarray:
    """Whether strikes are within the ranges that the base model was trained on [N], with a margin of a tenth."""
    speed = np.linalg.norm(frames.velocity, axis=-1)
    heading = np.abs(np.arctan2(frames.velocity[:, 0], frames.velocity[:, 1]))
    low, high = scene.speed
    inside = (speed > 0.9 * low) & (speed < 1.1 * high) & (heading < 1.1 * scene.deflection + 0.05)
    return np.asarray(inside & (np.abs(frames.angle) < 1.1 * scene.face_angle + 0.05))
