"""Ground friction from recorded slides, by linear regression (section III-C of CLASH), corrected for spin.

While a target slides freely, its path is  p(t) = p0 + v0 t - mu g D(t)  with D the slip direction integrated twice.
The direction follows from the motion itself (`patch.drag`), so the path is linear in p0, v0 and mu, and one
regression over the whole slide gives mu without differentiating twice: noise and clocks that beat average out. The
yaw is linear in the same way with the mean lever in place of the direction; the size of the patch for which both
give the same mu tells the torsional friction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.stats import t as student

from carom.core.constants import GRAVITY
from carom.core.errors import RecordingError
from carom.engines.patch import Patch, drag, patch_of
from carom.identify.result import CONFIDENCE
from carom.recordings import Impact, Recordings, Trajectory, find_impacts, segment
from carom.recordings.differentiate import fit_polynomial, measured_rows
from carom.state import Array

SHORTEST = 0.08  #: [s] a shorter slide says nothing: noise of a tenth of a millimetre is as large as what friction does
FEWEST = 8  #: samples
CLEAR = 0.08  #: [s] after first motion a striker may still be pushing; long slides are used from there on
SLOWEST = 0.1  #: share of its first speed below which a slide is not used: last wobbles, stick and slip
SPINNING = 0.1  #: share of the speed that k * spin must reach for a slide to tell torsional friction
SIZES = np.geomspace(0.35, 2.2, 8)  #: of the patch, relative to the outline: torsional friction is looked for between
ROUNDS = 5  #: of path and slip direction made to agree
#: relative error of friction that all slides of a block share: its weight is not where its outline has it, and a mass
#: off its middle goes round while it spins. With 3 % of the size off, slides in MuJoCo and on stand-ins err by so much.
UNEVEN = 0.01
FAR = 4.0  #: robust standard deviations from the median at which a slide counts as disturbed


@dataclass(frozen=True)
class SlideFriction:
    """Friction between target and ground, pooled over slides."""

    friction: float  #: mu_2 [1]
    friction_std: float  #: its standard error, the scatter between slides included [1]
    torsion_length: float  #: torque over force of friction in pure spin [m]; NaN if no slide spins
    torsion_std: float  #: its standard error [m]
    slides: int  #: that were used
    skipped: tuple[tuple[str, str], ...]  #: (file, reason) of those that were not
    patch_length: float  #: torsion length of an even pressure under the whole outline [m], to compare; NaN: no shape
    each: Array  #: [slides] mu of every slide used
    names: tuple[str, ...]  #: the files of `each`

    @property
    def spread(self) -> float:
        """Standard deviation of mu between slides."""
        return float(np.std(self.each, ddof=1)) if len(self.each) > 1 else float("nan")

    def interval(self) -> tuple[float, float]:
        """90 % interval of mu, not below zero: the scatter of so many slides, and what all of them share."""
        std = float(np.hypot(self.friction_std, UNEVEN * self.friction))
        reach = float(student.ppf(0.5 + CONFIDENCE / 2, max(self.slides - 1, 1))) * std
        return max(self.friction - reach, 0.0), self.friction + reach


@dataclass(frozen=True)
class _Slide:
    """Samples of one free slide."""

    name: str
    time: Array  #: [T] from its start [s]
    path: Array  #: [T, 2] centre of mass [m]
    yaw: Array | None  #: [T] [rad]; None: not measured
    start: Array  #: [3] first guess of the velocity at its start
    gyration: float  #: k [m]; NaN where unknown
    patch: Patch | None


@dataclass(frozen=True)
class _Fit:
    friction: float  #: from the path
    variance: float
    turning: float  #: from the yaw; NaN without orientation, outline or inertia
    turning_variance: float
    spinning: bool  #: enough for `turning` to mean something


@dataclass(frozen=True)
class _Turning:
    """Friction of S slides that spin, over the Z sizes of the patch [S, Z]: from the path and from the yaw."""

    sliding: Array
    sliding_variance: Array
    spinning: Array
    spinning_variance: Array


def friction_from_slides(recordings: Recordings) -> SlideFriction:
    """Ground friction and torsional friction from all free slides of a folder."""
    gravity = recordings.gravity or GRAVITY
    slides: list[_Slide] = []
    skipped: list[tuple[str, str]] = []
    for trajectory in recordings.trajectories:
        found, reason = _free_slide(trajectory, gravity)
        if found is None:
            skipped.append((trajectory.name, reason))
        else:
            slides.append(found)
    if not slides:
        reasons = sorted({reason for _, reason in skipped})
        why = "; ".join(reasons) or "it is empty"
        raise RecordingError(f"{recordings.path}: no slide to take ground friction from ({why})")
    slides, fits = _undisturbed(slides, gravity, skipped)
    turning = _over_sizes(slides, fits, gravity)
    size = float("nan") if turning is None else _patch_size(turning, np.arange(len(turning.sliding)))
    fits = [_fit(s, gravity, size) for s in slides] if np.isfinite(size) else fits
    mu, variance = _pooled(np.array([f.friction for f in fits]), np.array([f.variance for f in fits]))
    lever = next((s.patch.lever for s in slides if s.patch is not None), float("nan"))
    return SlideFriction(
        friction=mu,
        friction_std=float(np.sqrt(variance)),
        torsion_length=size * lever,
        torsion_std=float("nan") if turning is None else _size_std(turning) * lever,
        slides=len(slides),
        skipped=tuple(skipped),
        patch_length=lever,
        each=np.array([f.friction for f in fits]),
        names=tuple(s.name for s in slides),
    )


def _free_slide(trajectory: Trajectory, gravity: float) -> tuple[_Slide | None, str]:
    """The longest free slide of a recording, or None and the reason."""
    impacts = find_impacts(trajectory)
    best: tuple[float, str, float, float] | None = None
    for target in trajectory.targets:
        for phase in segment(trajectory, target, impacts):
            if phase.kind == "slide" and (best is None or phase.end - phase.start > best[0]):
                best = (phase.end - phase.start, target, phase.start, phase.end)
    if any(impact.kind == "ground" for impact in impacts):
        return None, "the target is tossed, it does not slide"
    if best is None or best[0] < SHORTEST:
        return None, f"no slide of {SHORTEST:g} s or more"
    _, target, start, end = best
    start = _clear_of_striker(impacts, target, start, end)
    path, yaw = trajectory.planar_com(target), trajectory.yaw(target)
    measured = np.isfinite(yaw).any()
    columns = np.column_stack([path, yaw]) if measured else path
    rows = np.flatnonzero(measured_rows(columns) & (trajectory.time >= start) & (trajectory.time <= end))
    if len(rows) < FEWEST:
        return None, f"only {len(rows)} samples of its slide were tracked"
    time = trajectory.time[rows]
    fit = fit_polynomial(time, columns[rows], float(time[0]), order=2)
    velocity = np.concatenate([fit.velocity, np.zeros(3)])[:3]
    body = trajectory.bodies[target]
    known = body.shape is not None or (body.inertia is not None and body.mass is not None)
    return _Slide(
        name=trajectory.name,
        time=time - time[0],
        path=path[rows],
        yaw=yaw[rows] if measured else None,
        start=velocity,
        gyration=body.gyration_radius if known else float("nan"),
        patch=patch_of(body) if measured else None,
    ), ""


def _clear_of_striker(impacts: tuple[Impact, ...], target: str, start: float, end: float) -> float:
    """From when on nothing but the ground acts, as far as the slide's length allows to wait."""
    struck = [i.time for i in impacts if i.target == target and i.time <= start + 1e-9]
    if not struck:
        return start
    return max(start, min(max(struck) + CLEAR, start + (end - start) / 4))


def _fit(slide: _Slide, gravity: float, size: float = 1.0) -> _Fit:
    """mu from the path and from the yaw of one slide; the slip directions follow from the fit itself, by iteration."""
    t = slide.time
    spins = slide.yaw is not None and slide.patch is not None and np.isfinite(slide.gyration)
    speed = max(float(np.linalg.norm(slide.start[:2])), 1e-6)
    mu = speed / (gravity * max(float(t[-1]), 1e-6)) / 2
    velocity = slide.start * np.maximum(1 - mu * gravity * t / speed, SLOWEST)[:, None]
    angle = slide.yaw if slide.yaw is not None else np.zeros(len(t))
    turning, variance, turning_variance = float("nan"), float("nan"), float("nan")
    for _ in range(ROUNDS):
        direction, lever = drag(slide.patch, angle, velocity, size)
        mu, v0, variance = _regress(t, slide.path, direction * gravity, velocity)
        moved = v0 - mu * gravity * _integral(t, direction)
        spin = np.zeros(len(t))
        if slide.yaw is not None and spins:
            brake = (lever * gravity / slide.gyration**2)[:, None]
            turning, w0, turning_variance = _regress(t, slide.yaw[:, None], brake, velocity)
            spin = (w0 - turning * _integral(t, brake))[:, 0]
        velocity = np.column_stack([moved, spin])
    fastest = np.abs(velocity).max(axis=0)
    spinning = spins and bool(slide.gyration * fastest[2] > SPINNING * np.linalg.norm(fastest[:2]))
    return _Fit(mu, variance, turning, turning_variance, spinning)


def _regress(t: Array, path: Array, brake: Array, velocity: Array) -> tuple[float, Array, float]:
    """mu, the first velocity [D] and the variance of mu of  path = p0 + v0 t - mu * brake'' (linear)."""
    speed = np.linalg.norm(velocity[:, :2], axis=-1)
    keep = speed >= SLOWEST * speed[0]
    keep &= np.cumprod(keep).astype(bool)  # up to the first slow sample, not after
    keep[:FEWEST] = True
    dimension = path.shape[1]
    twice = -_integral(t, _integral(t, brake))[keep]
    count = int(keep.sum())
    straight = np.column_stack([np.ones(count), t[keep]])
    basis, _ = np.linalg.qr(straight)
    x = twice - basis @ (basis.T @ twice)
    y = path[keep] - basis @ (basis.T @ path[keep])
    power = max(float((x * x).sum()), 1e-18)
    mu = float((x * y).sum()) / power
    left = y - mu * x
    v0 = np.linalg.lstsq(straight, path[keep] - mu * twice, rcond=None)[0][1]
    variance = float((left**2).sum()) / max(dimension * (count - 2) - 1, 1) / power
    alike = float((left[1:] * left[:-1]).sum() / max(float((left**2).sum()), 1e-18))
    alike = min(max(alike, 0.0), 0.9)  # neighbours that err alike are fewer samples than they seem
    return mu, np.asarray(v0), variance * (1 + alike) / (1 - alike)


def _integral(t: Array, values: Array) -> Array:
    """Running integral over time [T, D], by trapezoids."""
    step = np.diff(t)[:, None] * (values[1:] + values[:-1]) / 2
    return np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(step, axis=0)])


def _undisturbed(
    slides: list[_Slide], gravity: float, skipped: list[tuple[str, str]]
) -> tuple[list[_Slide], list[_Fit]]:
    """The slides that agree with each other; the others join `skipped`, each with the reason."""
    fits = [_fit(s, gravity) for s in slides]
    mu = np.array([f.friction for f in fits])
    middle = float(np.median(mu))
    width = max(1.4826 * float(np.median(np.abs(mu - middle))), 0.03 * abs(middle))
    keep = [i for i in range(len(mu)) if abs(mu[i] - middle) <= FAR * width or len(mu) < 4]
    for i in sorted(set(range(len(mu))) - set(keep)):
        reason = f"its friction would be {mu[i]:.3g} where the others have {middle:.3g}: something else acts on it"
        skipped.append((slides[i].name, reason))
    return [slides[i] for i in keep], [fits[i] for i in keep]


def _pooled(values: Array, variances: Array) -> tuple[float, float]:
    """Mean of values that scatter by more than their own variances, and its variance (DerSimonian and Laird)."""
    weight = 1 / np.maximum(variances, 1e-12)
    mean = float(weight @ values / weight.sum())
    excess = float(weight @ (values - mean) ** 2) - (len(values) - 1)
    between = max(excess / max(weight.sum() - (weight**2).sum() / weight.sum(), 1e-12), 0.0) if len(values) > 1 else 0.0
    weight = 1 / (np.maximum(variances, 1e-12) + between)
    return float(weight @ values / weight.sum()), float(1 / weight.sum())


def _over_sizes(slides: list[_Slide], fits: list[_Fit], gravity: float) -> _Turning | None:
    """Friction from path and from yaw over sizes of the patch, for the slides that spin; None if none does."""
    spinning = [s for s, f in zip(slides, fits, strict=True) if f.spinning]
    if not spinning:
        return None
    table = [[_fit(s, gravity, float(size)) for size in SIZES] for s in spinning]

    def column(name: str) -> Array:
        return np.array([[getattr(f, name) for f in row] for row in table])

    return _Turning(column("friction"), column("variance"), column("turning"), column("turning_variance"))


def _patch_size(turning: _Turning, rows: NDArray[np.integer]) -> float:
    """Size of the patch, relative to the outline, for which path and yaw of these slides give the same friction.

    NaN if there is none between the sizes tried.
    """
    sliding = [_pooled(turning.sliding[rows, j], turning.sliding_variance[rows, j])[0] for j in range(len(SIZES))]
    spinning = [_pooled(turning.spinning[rows, j], turning.spinning_variance[rows, j])[0] for j in range(len(SIZES))]
    # the torque grows with the size, so this is nearly straight over its logarithm, and falls
    excess = np.array(spinning) * SIZES - np.array(sliding) * SIZES
    crossing = np.flatnonzero((excess[:-1] > 0) & (excess[1:] <= 0))
    if not np.isfinite(excess).all() or not len(crossing):
        return float("nan")
    j = int(crossing[0])
    curve = PchipInterpolator(np.log(SIZES), excess)
    return float(np.exp(brentq(curve, np.log(SIZES[j]), np.log(SIZES[j + 1]))))


def _size_std(turning: _Turning) -> float:
    """Standard error of the patch size, from leaving slides out in turn; NaN with fewer than three."""
    count = len(turning.sliding)
    if count < 3:
        return float("nan")
    sizes = np.array([_patch_size(turning, np.delete(np.arange(count), i)) for i in range(count)])
    found = sizes[np.isfinite(sizes)]
    if len(found) < 2:
        return float("nan")
    return float(np.sqrt((len(found) - 1) / len(found) * ((found - found.mean()) ** 2).sum()))
