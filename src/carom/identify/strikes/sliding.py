"""What recordings say about everything after the blow: how the target slides, and with what velocity it set out.

A velocity read off a few samples after contact is noisy, and clocks that beat make it worse. The slide that follows
tells it better: where a target stops depends on how fast it left. So friction, patch and every strike's velocity at
contact are fitted together, to the whole recorded slides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from carom.core.errors import RecordingError
from carom.engines.slider import Slider, at_times, slider_for
from carom.identify.strikes.slides import SlideFriction, friction_from_slides
from carom.recordings import Recordings, Trajectory, undisturbed_until
from carom.recordings.differentiate import measured_rows
from carom.recordings.strikes import first_strike
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts

CLEAR = 0.05  #: [s] after first motion from where on the slide is compared: before, a striker may still push
INSTANTS = 24  #: at which a slide is compared
LONGEST = 3.0  #: [s] of a record that are compared
QUIETEST = 0.0003  #: [m] the least scatter that is believed
NOISE = 0.003  #: [m] scatter of a recorded path around a slide that no friction law explains, at most; yaw: over k
ROUNDS = 12
#: logarithm of friction, viscosity [s/m], logarithm of the patch's size, lag [s], centre of mass over the target's size
#: (2): prior standard deviations
PRIOR = np.array([0.7, 0.1, 0.3, 0.01, 0.03, 0.03])
NUDGE = np.array([0.01, 2e-3, 0.01, 5e-4, 2e-3, 2e-3])  #: of them, for derivatives
VELOCITY_NUDGE = 1e-3  #: share of the speed, for derivatives
LIMITS = np.array(
    [[np.log(0.01), 0.0, np.log(0.3), -0.03, -0.2, -0.2], [np.log(2.0), 0.5, np.log(2.0), 0.03, 0.2, 0.2]]
)


@dataclass(frozen=True)
class Sliding:
    """How a target slides and sets out."""

    friction: float  #: Coulomb friction with the ground, at low speed [1]
    viscosity: float  #: by which it grows with the slip [s/m]
    size: float  #: of the pressure patch, relative to an even pressure under the outline [1]
    lag: float  #: by which targets set out later than at first motion, as an instant impact would have it [s]
    com_x: float = 0.0  #: actual centre of mass, from the declared one, in the target's frame [m]
    com_y: float = 0.0  #: [m]
    friction_std: float = 0.0  #: standard error of the friction [1]
    com_std: float = 0.0  #: standard error of each coordinate of the centre of mass [m]
    residual: float = float("nan")  #: rms distance between recorded and fitted slides, turning included [m]

    def slider(self, scene: StrikeScene) -> Slider:
        """The slider of a scene's target with these."""
        offset = (self.com_x, self.com_y)
        return slider_for(scene, self.friction, viscosity=self.viscosity, size=self.size, offset=offset)

    def mass_centre(self) -> dict[str, tuple[float, float]]:
        """Where the slides put the centre of mass: parameters of the impact with their standard errors [m]."""
        return {"com_x": (self.com_x, self.com_std), "com_y": (self.com_y, self.com_std)} if self.com_std > 0 else {}


@dataclass(frozen=True)
class _Tracks:
    """Recorded slides to compare with."""

    names: tuple[str, ...]
    start: Array  #: [N, 3] pose of the centre of mass before the blow
    velocity: Array  #: [N, 3] first guess at contact
    time: Array  #: [N, T] since first motion [s]
    pose: Array  #: [N, T, 3] of the centre of mass
    weight: Array  #: [N, T] 0 where there is no sample


@dataclass(frozen=True)
class Departures:
    """Velocities at contact that fit the recorded slides."""

    names: tuple[str, ...]
    velocity: Array  #: [N, 3] of the declared centre of mass [m/s, m/s, rad/s]
    std: Array  #: [N, 3] standard errors

    def applied_to(self, impacts: Impacts) -> Impacts:
        """The same impacts, with these outcomes where there are any."""
        index = {name: i for i, name in enumerate(self.names)}
        rows = [i for i, name in enumerate(impacts.names) if name in index]
        which = [index[impacts.names[i]] for i in rows]
        post, std = impacts.post.copy(), impacts.post_std.copy()
        post[rows], std[rows] = self.velocity[which], self.std[which]
        return replace(impacts, post=post, post_std=std)


def sliding_from(
    recordings: Recordings, scene: StrikeScene, *, slides: SlideFriction | None = None
) -> tuple[Sliding, Departures]:
    """Friction, patch and lag that explain a folder's slides, and the velocities at contact that go with them."""
    slides = slides or friction_from_slides(recordings)
    tracks = _tracks(recordings)
    size = slides.torsion_length / slides.patch_length
    wide = float(np.log(np.clip(size, 0.5, 1.5))) if np.isfinite(size) else 0.0
    return _fit(scene, tracks, np.array([np.log(slides.friction), 0.0, wide, 0.0, 0.0, 0.0]))


def _sliding(scene: StrikeScene, theta: Array) -> Sliding:
    """What the parameters [6] of a fit stand for."""
    extent = _extent(scene)
    friction, viscosity, size, lag, x, y = (float(v) for v in theta)
    return Sliding(float(np.exp(friction)), viscosity, float(np.exp(size)), lag, extent * x, extent * y)


def _extent(scene: StrikeScene) -> float:
    """The target's smaller extent seen from above [m], by which offsets of its centre of mass are scaled."""
    return float(np.ptp(scene.outline.vertices, axis=0).min())


def _tracks(recordings: Recordings) -> _Tracks:
    found = [track for track in (_track(t) for t in recordings.trajectories) if track is not None]
    if not found:
        raise RecordingError(f"{recordings.path}: no strike with a slide and an orientation to calibrate from")
    names, *columns = zip(*found, strict=True)
    return _Tracks(tuple(names), *(np.array(c) for c in columns))


def _track(trajectory: Trajectory) -> tuple[str, Array, Array, Array, Array, Array] | None:
    strike, _ = first_strike(trajectory)
    if strike is None or not np.isfinite(strike.post.planar_velocity).all():
        return None
    path = np.column_stack([trajectory.planar_com(strike.target), trajectory.yaw(strike.target)])
    since = trajectory.time - strike.time
    last = min(undisturbed_until(trajectory, strike) - strike.time, LONGEST)  # it is often picked up again
    rows = np.flatnonzero(measured_rows(path) & (since > CLEAR) & (since < last))
    before = np.flatnonzero(measured_rows(path) & (since < 0))
    if len(rows) < 8 or not len(before):
        return None
    chosen = rows[np.unique(np.linspace(0, len(rows) - 1, INSTANTS).round().astype(np.int64))]
    pad = INSTANTS - len(chosen)
    weight = np.concatenate([np.ones(len(chosen)), np.zeros(pad)])
    chosen = np.concatenate([chosen, np.repeat(chosen[-1:], pad)])
    still = np.median(path[before[-10:]], axis=0)
    return trajectory.name, still, strike.post.planar_velocity, since[chosen], path[chosen], weight


def _paths(scene: StrikeScene, theta: Array, tracks: _Tracks, velocity: Array) -> Array:
    """Poses of the centre of mass [N, T, 3] of slides with these parameters and velocities at contact."""
    slider = _sliding(scene, theta).slider(scene)
    with torch.no_grad():
        slide = slider.slide(torch.as_tensor(tracks.start), torch.as_tensor(velocity))
        return at_times(slide, torch.as_tensor(tracks.time - theta[3]))[0].numpy()


def _fit(scene: StrikeScene, tracks: _Tracks, prior: Array) -> tuple[Sliding, Departures]:
    """The slides' parameters and velocities; recordings that turn out quieter than `NOISE` are trusted more."""
    used = tracks.weight.sum(axis=1)
    theta, velocity, noise = prior, tracks.velocity, NOISE
    for _ in range(2):
        theta, velocity = _descend(scene, theta, velocity, tracks, prior, noise)
        scale = np.array([1.0, 1.0, scene.gyration_radius]) / noise
        residual, by_theta, by_velocity = _derivatives(scene, theta, tracks, velocity, scale)
        weight = _huber(residual, tracks)
        misfit = (weight * (residual**2).sum(-1)).sum(axis=1) / np.maximum(3 * used - 3, 1)
        quiet, noise = noise, float(np.clip(noise * np.sqrt(np.median(misfit)), QUIETEST, noise))
        if noise > 0.7 * quiet:
            break
    # neighbouring instants err alike: a slide of many samples is worth a few independent ones
    inflated = np.maximum(misfit, 1.0) * used / 6
    own, mixed, shared = _information(by_theta, by_velocity, weight / inflated[:, None])
    alone = np.linalg.inv(own)
    lever = np.einsum("nij,njk->nik", alone, mixed)  # how a velocity follows the shared parameters
    reduced = shared - np.einsum("nij,nik->jk", mixed, lever)
    covariance = np.linalg.inv(reduced + np.diag(PRIOR**-2))
    pulls = _pulls(residual, by_theta, by_velocity, weight / inflated[:, None], lever)
    covariance = _by_disagreement(covariance, pulls)
    towards = _towards_prior(theta, covariance, prior)
    theta, velocity = theta + towards, velocity - np.einsum("nij,j->ni", lever, towards)
    error = np.sqrt(np.diag(covariance))
    variance = np.einsum("nii->ni", alone + np.einsum("nij,jk,nlk->nil", lever, covariance, lever))
    found = _sliding(scene, theta)
    rms = quiet * float(np.sqrt((tracks.weight * (residual**2).sum(-1)).sum() / (tracks.weight.sum())))
    off_centre = _extent(scene) * float(error[4:].max())
    stated = replace(found, friction_std=found.friction * float(error[0]), com_std=off_centre, residual=rms)
    return stated, Departures(tracks.names, velocity, np.sqrt(variance))


def _pulls(residual: Array, by_theta: Array, by_velocity: Array, weight: Array, lever: Array) -> Array:
    """How each slide pulls at the shared parameters [N, 6], its velocity following them."""
    along = by_theta - np.einsum("ntci,nij->ntcj", by_velocity, lever)
    return np.asarray(np.einsum("nt,ntcj,ntc->nj", weight, along, residual))


def _by_disagreement(covariance: Array, pulls: Array) -> Array:
    """The covariance [6, 6] of the shared parameters, wider where slides pull at them in different directions.

    A patch that is not the ground's makes slides disagree by more than their noise. A few short slides then say
    anything, and say it surely; what the others say against it is the better measure (a sandwich estimate).
    """
    count, size = pulls.shape
    between = covariance @ (pulls.T @ pulls) @ covariance * count / max(count - size, 1)
    wider = np.sqrt(np.maximum(np.diag(between) / np.diag(covariance), 1.0))
    return np.asarray(covariance * np.outer(wider, wider))


def _towards_prior(theta: Array, covariance: Array, prior: Array) -> Array:
    """Step [6] of the centre of mass towards the declared one, as far as the slides leave it open.

    The descent believes every instant. With errors as they really are, less is known, and the declared one counts.
    """
    step, data = np.zeros(len(theta)), np.diag(covariance)
    shrunk = np.clip(data / PRIOR**2, 0.0, 1.0)  # posterior over prior variance: what the data did not say
    step[4:] = (shrunk * (prior - theta))[4:]
    return step


def _descend(
    scene: StrikeScene, theta: Array, velocity: Array, tracks: _Tracks, prior: Array, noise: float
) -> tuple[Array, Array]:
    """Gauss-Newton over the shared parameters and every strike's velocity at once; the latter are eliminated."""
    scale = np.array([1.0, 1.0, scene.gyration_radius]) / noise
    damping, best = 1e-2, np.inf
    for _ in range(ROUNDS):
        residual, by_theta, by_velocity = _derivatives(scene, theta, tracks, velocity, scale)
        weight = _huber(residual, tracks)
        step, steps = _solve(residual, by_theta, by_velocity, weight, prior - theta, damping)
        trial = np.clip(theta + step, *LIMITS)
        moved = velocity + steps
        cost = _cost(scene, trial, tracks, moved, scale, prior)
        if cost < best:
            theta, velocity, best, damping = trial, moved, cost, damping / 5
        else:
            damping *= 10
    return theta, velocity


def _huber(residual: Array, tracks: _Tracks) -> Array:
    """Weights of the instants [N, T]: those further off than 3 noises count less."""
    return np.asarray(tracks.weight / np.maximum(np.linalg.norm(residual, axis=-1) / 3.0, 1.0))


def _information(by_theta: Array, by_velocity: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Blocks of the normal equations: of each strike's velocity [N, 3, 3], with the shared ones [N, 3, 6], of those."""
    own = np.einsum("nt,ntci,ntcj->nij", weight, by_velocity, by_velocity) + 1e-9 * np.eye(3)
    mixed = np.einsum("nt,ntci,ntcj->nij", weight, by_velocity, by_theta)
    return own, mixed, np.einsum("nt,ntci,ntcj->ij", weight, by_theta, by_theta)


def _cost(scene: StrikeScene, theta: Array, tracks: _Tracks, velocity: Array, scale: Array, prior: Array) -> float:
    size = np.linalg.norm((_paths(scene, theta, tracks, velocity) - tracks.pose) * scale, axis=-1)
    huber = np.where(size < 3.0, 0.5 * size**2, 3.0 * (size - 1.5))
    return float((tracks.weight * huber).sum() + 0.5 * (((theta - prior) / PRIOR) ** 2).sum())


def _derivatives(
    scene: StrikeScene, theta: Array, tracks: _Tracks, velocity: Array, scale: Array
) -> tuple[Array, Array, Array]:
    """Residuals [N, T, 3] in noises, and their derivatives by the parameters [.., 6] and by the velocities [.., 3]."""
    here = _paths(scene, theta, tracks, velocity)
    residual = (here - tracks.pose) * scale
    by_theta = []
    for i, nudge in enumerate(NUDGE):
        there = theta.copy()
        there[i] += nudge
        by_theta.append((_paths(scene, there, tracks, velocity) - here) * scale / nudge)
    by_velocity = []
    speed = np.linalg.norm(velocity[:, :2], axis=1, keepdims=True) * VELOCITY_NUDGE
    for i in range(3):
        nudge = speed / scene.gyration_radius if i == 2 else speed
        there = velocity.copy()
        there[:, i] += nudge[:, 0]
        by_velocity.append((_paths(scene, theta, tracks, there) - here) * scale / nudge[:, None])
    return residual, np.stack(by_theta, axis=-1), np.stack(by_velocity, axis=-1)


def _solve(
    residual: Array, by_theta: Array, by_velocity: Array, weight: Array, pull: Array, damping: float
) -> tuple[Array, Array]:
    """A damped Gauss-Newton step: each strike's velocity only meets the shared parameters, so it drops out first."""
    own, cross, shared = _information(by_theta, by_velocity, weight)
    own += damping * np.einsum("nii->ni", own)[:, :, None] * np.eye(3)
    shared += damping * np.diag(np.diag(shared)) + np.diag(PRIOR**-2)
    right_own = -np.einsum("nt,ntci,ntc->ni", weight, by_velocity, residual)
    right = -np.einsum("nt,ntci,ntc->i", weight, by_theta, residual) + pull / PRIOR**2
    inverse = np.linalg.inv(own)
    reduced = shared - np.einsum("nij,nik,nkl->jl", cross, inverse, cross)
    step = np.linalg.solve(reduced, right - np.einsum("nij,nik,nk->j", cross, inverse, right_own))
    steps = np.einsum("nij,nj->ni", inverse, right_own - np.einsum("nij,j->ni", cross, step))
    return step, steps
