"""The Gaussian process that corrects the members' prediction with the recordings, in closed form.

Its covariance has four parts. How the members differ: if one strike spins more than expected, which others
would too? How strong a blow is here rather than there, at this speed rather than that: no surface is the same all
around. A linear term in where and how it hits and in what the planar picture leaves out (height and lean of
the tool, its spin). A smooth term for what no parameter can express. Few amplitudes, fitted to the training
samples' evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from carom.engines.contact_frames import Frames
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

#: Logarithm of each amplitude and length: prior mean and standard deviation. Outcomes are shares of the approach speed.
HYPER = {
    "simulator": (0.0, 0.7),  # factor on the covariance of the members
    "linear": (2 * np.log(0.03), 1.4),
    "smooth": (2 * np.log(0.08), 1.4),
    "place": (2 * np.log(0.05), 1.4),  # relative change of a blow's strength around the outline
    "pace": (2 * np.log(0.05), 1.4),  # and with the speed
    "noise": (2 * np.log(0.04), 1.0),
    "length": (np.log(1.5), 0.4),  # of the smooth term, in standard deviations of its inputs
}
PLACE = 1.0  #: way along the outline over which a blow's strength changes, over the radius of gyration
PACE = 0.7  #: change of the speed's logarithm over which it does
POSTURE_WEIGHT = 0.5  #: of posture in the smooth term's distance: it matters, but less than where and how it hits


@dataclass(frozen=True)
class Standard:
    """Shift and scale of a set of inputs, from the training strikes; columns that did not vary there are left out."""

    mean: Array  #: [C]
    scale: Array  #: [C]
    keep: Array  #: [C] 1 if used, 0 if not

    def apply(self, columns: Array) -> Array:
        z = (columns - self.mean) / self.scale
        return np.asarray(np.clip(z, -5, 5)[:, self.keep > 0])


@dataclass(frozen=True)
class Points:
    """Strikes as the process sees them."""

    mean: Array  #: [N, 3] the members' weighted mean
    deviation: Array  #: [M, N, 3] their deviations from it, times the root of their weights
    posture: Array  #: [N, L] standardised
    contact: Array  #: [N, S] standardised
    place: Array  #: [N, 2] contact point over the radius of gyration
    pace: Array  #: [N, 1] logarithm of the speed


def posture_columns(frames: Frames, strikes: Strikes) -> Array:
    """Height, lean (2) and vertical speed of the striker, its spin, the target's yaw [N, 6]."""
    yaw = strikes.target_pose[:, 2]
    return np.column_stack([strikes.posture, frames.spin, np.arctan2(np.sin(yaw), np.cos(yaw))])


def contact_columns(scene: StrikeScene, frames: Frames) -> Array:
    """Where (2) and how it hits: contact point, face angle, heading, logarithm of the speed [N, 5]."""
    heading = np.arctan2(frames.velocity[:, 0], frames.velocity[:, 1])
    return np.column_stack([frames.point / scene.gyration_radius, frames.angle, heading, np.log(frames.speed)])


POSTURE_FLOORS = np.array([1e-3, 3e-3, 3e-3, 0.01, 0.03, 5e-3])  #: spread below which a column says nothing
CONTACT_FLOORS = np.array([0.02, 0.02, 5e-3, 5e-3, 0.02])
YAW_SPREAD = 0.5  #: [rad] a target whose yaw varies more stood anyhow: its yaw is no posture


def standardise(columns: Array, floors: Array) -> Standard:
    """Shift and scale from the training strikes' columns."""
    spread = columns.std(axis=0)
    keep = spread > floors
    if columns.shape[1] == len(POSTURE_FLOORS):
        keep[5] &= spread[5] < YAW_SPREAD
    return Standard(columns.mean(axis=0), np.maximum(spread, floors), keep.astype(float))


def kernel(hyper: dict[str, float], a: Points, b: Points) -> Array:
    """Covariance [3N, 3M] between the outcomes of two sets of strikes."""
    n, m = len(a.mean), len(b.mean)
    flat_a, flat_b = a.deviation.reshape(-1, 3 * n), b.deviation.reshape(-1, 3 * m)
    simulator = np.exp(hyper["simulator"]) * (flat_a.T @ flat_b)
    distance = _squared_distance(a.contact, b.contact)
    distance += POSTURE_WEIGHT**2 * _squared_distance(a.posture, b.posture)
    shared = np.exp(hyper["linear"]) * (a.posture @ b.posture.T + a.contact @ b.contact.T)
    shared += np.exp(hyper["smooth"]) * np.exp(-0.5 * distance / np.exp(2 * hyper["length"]))
    return np.asarray(simulator + np.kron(shared, np.eye(3)) + _blow(hyper, a, b))


def _blow(hyper: dict[str, float], a: Points, b: Points) -> Array:
    """A blow's strength that varies over the outline and with the speed: covariance [3N, 3M]."""
    gain = np.exp(hyper["place"]) * np.exp(-0.5 * _squared_distance(a.place, b.place) / PLACE**2)
    gain += np.exp(hyper["pace"]) * np.exp(-0.5 * _squared_distance(a.pace, b.pace) / PACE**2)
    return np.asarray(np.einsum("nm,ni,mj->nimj", gain, a.mean, b.mean).reshape(3 * len(a.mean), 3 * len(b.mean)))


def _squared_distance(a: Array, b: Array) -> Array:
    return np.asarray(((a[:, None] - b[None]) ** 2).sum(-1))


def fit_hyper(train: Points, local: Array, measured: Array) -> tuple[dict[str, float], float]:
    """Amplitudes that maximise the evidence of the training outcomes `local` [N, 3], and its logarithm.

    `measured` [3N] is the variance of the outcomes' measurement. Type-II maximum likelihood: the only data
    used are the training impacts themselves. The priors are weak.
    """
    residual = (local - train.mean).ravel()
    names = list(HYPER)
    centre, width = np.array([HYPER[n][0] for n in names]), np.array([HYPER[n][1] for n in names])

    def cost(h: Array) -> float:
        hyper = dict(zip(names, h, strict=True))
        k = kernel(hyper, train, train) + np.diag(np.exp(hyper["noise"]) + measured)
        lower = cholesky(k, lower=True)
        white = solve_triangular(lower, residual, lower=True)
        prior = 0.5 * (((h - centre) / width) ** 2).sum()
        return float(0.5 * white @ white + np.log(np.diag(lower)).sum() + prior)

    bounds = list(zip(centre - 4 * width, centre + 4 * width, strict=True))
    best = minimize(cost, centre, method="L-BFGS-B", bounds=bounds)
    return dict(zip(names, (float(v) for v in best.x), strict=True)), -float(best.fun)


def condition(
    hyper: dict[str, float], train: Points, local: Array, measured: Array, asked: Points
) -> tuple[Array, Array]:
    """Mean [N, 3] and covariance [N, 3, 3] of outcomes, given the training outcomes `local`."""
    noise = np.exp(hyper["noise"])
    lower = cholesky(kernel(hyper, train, train) + np.diag(noise + measured), lower=True)
    cross = kernel(hyper, asked, train)
    correction = cross @ cho_solve((lower, True), (local - train.mean).ravel())
    explained = solve_triangular(lower, cross.T, lower=True).reshape(local.size, len(asked.mean), 3)
    prior = np.exp(hyper["simulator"]) * np.einsum("mic,mid->icd", asked.deviation, asked.deviation)
    size = (asked.posture**2).sum(-1) + (asked.contact**2).sum(-1)
    shared = np.exp(hyper["linear"]) * size + np.exp(hyper["smooth"]) + noise
    gain = np.exp(hyper["place"]) + np.exp(hyper["pace"])
    prior = prior + gain * np.einsum("nc,nd->ncd", asked.mean, asked.mean)
    covariance = prior + shared[:, None, None] * np.eye(3) - np.einsum("tic,tid->icd", explained, explained)
    return asked.mean + correction.reshape(-1, 3), covariance
