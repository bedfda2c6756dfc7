"""Gaussian processes that correct what a teacher says with what the recordings say, in closed form.

The outcome of a strike is the teacher's, times one plus a gain, plus an offset, plus noise. Gain and offset have a
constant part, a part that is linear in where and how the striker hits and how it is held, and a smooth part. How far
each may go is fixed, as shares of the outcome and of the approach speed: ten strikes cannot say it. What they can say
is which of a handful of such processes predicts strikes that were left out (`hypotheses`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from carom.engines.contact_frames import Frames
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

#: What the processes look at: contact point over the radius of gyration (2), angle of the face [rad], heading [rad],
#: logarithm of the speed, height of the striker [m], its pitch [rad]; and the change of each that may matter.
UNITS = np.array([0.1, 0.1, 0.03, 0.05, 0.15, 0.01, 0.025])
ANGLE, SPEED, PITCH = 2, 4, 6  #: columns that blows depend on most
POINT = slice(0, 2)  #: columns of the contact point
AROUND = 10.0  #: units of the contact point, so one radius of gyration, over which a side differs from the next
FARTHEST = 3.0  #: units of pitch beyond which the expected gain hardly grows
ALIKE = 0.1  #: distance between outcomes, as a share of the approach speed, that tells two ways apart
LEAST = 0.01  #: chance that no way falls short of
TURNS, NEAR = 12, 0.02  #: of Weiszfeld's iteration: rounds, and the least distance that counts
NOISE = np.array([1.18, 1.51, 0.56])  #: along the side, into it, spin: how they share the scatter of outcomes


@dataclass(frozen=True)
class Process:
    """How far outcomes may differ from the teacher's: standard deviations, shares of the approach speed."""

    noise: float  #: of single outcomes
    members: float = 1.0  #: factor on the covariance of the teacher's plausible parameters
    gain: float = 0.0  #: of all blows alike, as a share of the outcome
    gain_speed: float = 0.0  #: per unit of the speed's column
    gain_pitch: float = 0.0
    gain_linear: float = 0.0  #: per unit of any other column
    gain_smooth: float = 0.0
    gain_around: float = 0.0  #: that changes from side to side, whatever else a strike is like
    offset: float = 0.0
    offset_linear: float = 0.0  #: per unit of any column but the angle
    offset_angle: float = 0.0  #: per unit of the angle of the face
    offset_smooth: float = 0.0
    length: float = 2.0  #: units over which the smooth parts change
    lean: float = 0.0  #: expected gain per unit of pitch, where a striker has a flat face

    @property
    def slopes(self) -> Array:
        """Linear gains, by column [C]."""
        slopes = np.full(len(UNITS), self.gain_linear)
        slopes[SPEED], slopes[PITCH] = self.gain_speed, self.gain_pitch
        return slopes

    @property
    def offset_slopes(self) -> Array:
        """Linear offsets, by column [C]."""
        slopes = np.full(len(UNITS), self.offset_linear)
        slopes[ANGLE] = self.offset_angle
        return slopes


@dataclass(frozen=True)
class Points:
    """Strikes as a process sees them."""

    mean: Array  #: [N, 3] what the teacher says
    deviation: Array  #: [M, N, 3] how its members deviate from that, times the root of their weights
    columns: Array  #: [N, C] in units
    scatter: Array  #: [N, 3, 3] covariance of single outcomes by what was not measured finely enough

    def __getitem__(self, rows: NDArray[np.int64]) -> Points:
        return Points(self.mean[rows], self.deviation[:, rows], self.columns[rows], self.scatter[rows])


def points_of(chances: Array, ways: Array, weights: Array, columns: Array, *, recorded: bool) -> Points:
    """Strikes as a teacher sees them whose members [M] say that they come out in some ways [W, M, N, 3].

    Each way has its chance [W, M, N]; that of strikes which were `recorded` is told by their outcomes (`told_by`). For
    others the mean may lie where no strike ever comes out: there the point counts that is nearest to all ways.
    """
    said = np.einsum("wmn,wmnc->mnc", chances, ways)
    mean = np.einsum("m,mnc->nc", weights, said)
    apart = ways - said
    scatter = np.einsum("m,wmn,wmnc,wmnd->ncd", weights, chances, apart, apart, optimize=True)
    deviation = np.sqrt(weights)[:, None, None] * (said - mean)
    if not recorded and len(ways) > 1:
        mean = _nearest_to_all(weights[:, None] * chances, ways, mean)
    return Points(mean, deviation, columns, scatter)


def told_by(chances: Array, ways: Array, outcomes: Array) -> Array:
    """Chances [W, M, N] of ways [W, M, N, 3] once the outcomes [N, 3] are known."""
    log = -0.5 * ((ways - outcomes) ** 2).sum(axis=-1) / ALIKE**2
    told = (chances + LEAST) * np.exp(log - log.max(axis=0))
    return np.asarray(told / told.sum(axis=0))


def _nearest_to_all(weights: Array, ways: Array, start: Array) -> Array:
    """The points [N, 3] with the least weighted sum of distances to `ways` [W, M, N, 3] (Weiszfeld's iteration)."""
    point = start
    for _ in range(TURNS):
        pull = weights / np.maximum(np.linalg.norm(ways - point, axis=-1), NEAR)
        point = np.einsum("wmn,wmnc->nc", pull, ways) / pull.sum(axis=(0, 1))[:, None]
    return np.asarray(point)


def without_teacher(columns: Array) -> Points:
    """Strikes of which nothing is said."""
    count = len(columns)
    return Points(np.zeros((count, 3)), np.zeros((0, count, 3)), columns, np.zeros((count, 3, 3)))


def columns_of(scene: StrikeScene, frames: Frames, strikes: Strikes) -> Array:
    """Where and how strikes hit, and how the striker is held, in units [N, C]."""
    heading = np.arctan2(frames.velocity[:, 0], frames.velocity[:, 1])
    columns = [frames.point / scene.gyration_radius, frames.angle, heading, np.log(frames.speed)]
    return np.asarray(np.column_stack([*columns, strikes.posture[:, :2]]) / UNITS)


def approach_axes(frames: Frames) -> Array:
    """Axes across and along the approach, and spin [N, 3, 3], as rows in the contact frame."""
    side = frames.velocity / np.maximum(np.linalg.norm(frames.velocity, axis=-1, keepdims=True), 1e-12)
    axes = np.zeros((len(frames), 3, 3))
    axes[:, 0, 0], axes[:, 0, 1] = side[:, 1], -side[:, 0]
    axes[:, 1, :2], axes[:, 2, 2] = side, 1.0
    return axes


def _spreads(process: Process, a: Points, b: Points) -> tuple[Array, Array]:
    """Covariance of gains and of offsets [N, M] between two sets of strikes."""
    apart = ((a.columns[:, None] - b.columns[None]) ** 2).sum(-1)
    smooth = np.exp(-0.5 * apart / process.length**2)
    slopes, sideways = process.slopes, process.offset_slopes
    aside = ((a.columns[:, None, POINT] - b.columns[None, :, POINT]) ** 2).sum(-1)
    gain = process.gain**2 + (a.columns * slopes) @ (b.columns * slopes).T + process.gain_smooth**2 * smooth
    gain = gain + process.gain_around**2 * np.exp(-0.5 * aside / AROUND**2)
    offset = process.offset**2 + (a.columns * sideways) @ (b.columns * sideways).T + process.offset_smooth**2 * smooth
    return np.asarray(gain), np.asarray(offset)


def _leaning(process: Process, points: Points) -> Points:
    """The same strikes with the gain that is expected of the striker's pitch; it ends where an edge alone strikes."""
    gain = process.lean * FARTHEST * np.tanh(points.columns[:, PITCH] / FARTHEST)
    return replace(points, mean=points.mean * (1 + gain[:, None]))


def covariance(process: Process, a: Points, b: Points) -> Array:
    """Covariance [3N, 3M] between the outcomes of two sets of strikes."""
    n, m = len(a.mean), len(b.mean)
    gain, offset = _spreads(process, a, b)
    total = np.einsum("nm,ni,mj->nimj", gain, a.mean, b.mean)  # of hundreds of strikes it is large: added to in place
    for axis in range(3):
        total[:, axis, :, axis] += offset
    total = total.reshape(3 * n, 3 * m)
    if process.members and len(a.deviation):
        shared = a.deviation.reshape(-1, 3 * n).T @ b.deviation.reshape(-1, 3 * m)
        shared *= process.members
        total += shared
    return np.asarray(total)


@dataclass(frozen=True)
class Learned:
    """A process that has seen recorded strikes: what does not depend on what it is asked, made once."""

    process: Process
    train: Points  #: as the process sees them
    lower: Array  #: [3T, 3T] Cholesky factor of the covariance of their outcomes
    pull: Array  #: [3T] how their outcomes pull


def learn(process: Process, train: Points, local: Array, measured: Array) -> Learned:
    """A process given the outcomes of training strikes, `local` [T, 3].

    `measured` [T, 3] is the variance of their measurement.
    """
    train = _leaning(process, train)
    noise = (process.noise * NOISE) ** 2
    count = len(train.mean)
    total, every = covariance(process, train, train), np.arange(count)
    # and what each strike has of its own
    total.reshape(count, 3, count, 3)[every, :, every] += train.scatter + (noise + measured)[:, :, None] * np.eye(3)
    lower = cholesky(total, lower=True, overwrite_a=True)
    return Learned(process, train, lower, cho_solve((lower, True), (local - train.mean).ravel()))


def condition(learned: Learned, asked: Points) -> tuple[Array, Array]:
    """Mean [N, 3] and covariance [N, 3, 3] of the outcomes that a process expects."""
    process, train = learned.process, learned.train
    asked, noise = _leaning(process, asked), (process.noise * NOISE) ** 2
    cross = covariance(process, asked, train)
    correction = cross @ learned.pull
    explained = solve_triangular(learned.lower, cross.T, lower=True).reshape(len(learned.pull), len(asked.mean), 3)
    even = process.gain**2 + process.gain_smooth**2 + process.gain_around**2
    gain = even + ((asked.columns * process.slopes) ** 2).sum(-1)
    offset = process.offset**2 + ((asked.columns * process.offset_slopes) ** 2).sum(-1) + process.offset_smooth**2
    prior = gain[:, None, None] * np.einsum("nc,nd->ncd", asked.mean, asked.mean)
    prior = prior + offset[:, None, None] * np.eye(3) + np.diag(noise) + asked.scatter
    if process.members and len(asked.deviation):
        prior += process.members * np.einsum("mic,mid->icd", asked.deviation, asked.deviation)
    spread = prior - np.einsum("tic,tid->icd", explained, explained)
    return asked.mean + correction.reshape(-1, 3), spread
