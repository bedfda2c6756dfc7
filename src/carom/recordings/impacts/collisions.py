"""Strikes: a striker meets a target that rests, or two bodies meet on the move."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.recordings.differentiate import LocalFit, fit_after, fit_before, fit_polynomial, fit_robust, measured_rows
from carom.recordings.geometry import planar_gap
from carom.recordings.impacts.kinks import NEAR, kinks
from carom.recordings.impacts.measured import Impact, planar_motion, planar_samples
from carom.recordings.impacts.quality import judge_strike
from carom.recordings.sampled import (
    Onset,
    first_motion,
    last_motion,
    noise_floor,
    path_noise,
    smooth_from,
    smooth_until,
    timing_jitter,
    top_speed,
)
from carom.recordings.trajectory import Trajectory
from carom.state import Array

UNRELIABLE_TIMES = 0.1  #: sample periods of timing jitter above which the first instants cannot be resolved
BLIND_SETTLE = 0.030  #: [s] after first motion, from where states are trusted when sample times are not
LONGEST_CONTACT = 0.060  #: [s]
PRE_SPAN = 0.060  #: [s] of the fit before contact; longer where the samples scatter too much for a good velocity
PRE_SPANS = (PRE_SPAN, 0.1, 0.15, 0.2)
GOOD_VELOCITY = 0.02  #: relative standard error of a velocity that needs no longer fit
STEADY_CLOCK = 0.05  #: sample periods by which sample times may be off where one short fit is enough
DRIFTING = 0.02  #: of the top speed: slower than this before the strike is rest


def approach_fit(trajectory: Trajectory, body: str, before: float, at: float) -> LocalFit:
    """The one-sided fit behind an approach: 60 ms, or several longer ones together where sample times jitter."""
    samples = planar_samples(trajectory, body)
    rows = np.flatnonzero(measured_rows(samples) & (trajectory.time < before))
    fits: list[LocalFit] = []
    # the scatter of a handful of samples says little; what the whole approach scatters is a better floor
    noise = np.maximum(np.nan_to_num(noise_floor(trajectory.time[rows], samples[rows])), 1e-6)
    jitter = timing_jitter(trajectory.time, samples, before - PRE_SPANS[-1], before - 1e-9, trajectory.period)
    steady = not jitter > STEADY_CLOCK
    for span in PRE_SPANS:
        wanted = max(int((trajectory.time[rows] >= before - span).sum()), 6)
        index = rows[-wanted:]
        fits.append(_straight_or_bent(trajectory.time[index], samples[index], at, noise))
        if steady and not _velocity_error(fits[0]) > GOOD_VELOCITY * float(np.linalg.norm(fits[0].velocity[:2])):
            return fits[0]
    return _weighed(fits)


def _velocity_error(fit: LocalFit) -> float:
    return float(np.linalg.norm(fit.velocity_std[:2]))


def _weighed(fits: list[LocalFit]) -> LocalFit:
    """The best of several fits, with the mean of all of them, each weighed by how well it knows the velocity.

    Where clocks beat, a fit over any one span depends on how the beats happen to lie in it; their mean does less.
    """
    error = np.array([_velocity_error(fit) for fit in fits])
    usable = np.flatnonzero(np.isfinite(error))
    if not len(usable):
        return fits[0]
    weight = error[usable] ** -2.0
    weight /= weight.sum()
    value, velocity = (
        np.einsum("f,fc->c", weight, np.array([getattr(fits[i], name) for i in usable]))
        for name in ("value", "velocity")
    )
    return replace(fits[int(usable[np.argmin(error[usable])])], value=value, velocity=velocity)


def _straight_or_bent(time: Array, samples: Array, at: float, noise: Array) -> LocalFit:
    """A line, unless a parabola explains the path much better: carried to its end, a line is known twice as well."""
    straight, bent = (fit_robust(time, samples, at, order=order, noise=noise) for order in (1, 2))
    count = max(min(straight.count, bent.count), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = 2 * count * np.log(straight.residual_rms[:2] / bent.residual_rms[:2])
    # two more numbers (x and y) must pay for themselves, and clearly so (Bayesian information criterion)
    return bent if float(np.nansum(gain)) > 2 * np.log(count) + 6 else straight


def nearest_striker(trajectory: Trajectory, target: str, time: float) -> tuple[str, float, LocalFit] | None:
    """The body nearest to the target at `time`, the gap [m] between them and its fit; None if none was near."""
    found: tuple[str, float, LocalFit] | None = None
    best = np.inf
    for name in trajectory.position_world:
        if name == target or trajectory.bodies[name].role == "ground":
            continue
        fit = approach_fit(trajectory, name, time, time)
        gap = _gap_before(trajectory, target, name, time, fit)
        reach = 2 * trajectory.period * float(np.linalg.norm(fit.velocity[:2]))
        # roles first: an arm's link may be nearer than the tool it carries
        rank = gap + (0.0 if trajectory.bodies[name].role == "striker" else NEAR)
        if np.isfinite(gap) and gap <= NEAR + reach and rank < best:
            best, found = rank, (name, gap, fit)
    return found


def _gap_before(trajectory: Trajectory, target: str, striker: str, time: float, fit: LocalFit) -> float:
    """Gap [m] at `time`, both bodies carried on from their samples before it; NaN if there are too few."""
    ours, theirs = planar_samples(trajectory, target), planar_samples(trajectory, striker)
    near = (trajectory.time < time) & (trajectory.time > time - 0.2)
    if (measured_rows(ours) & measured_rows(theirs) & near).sum() < 3:
        return float("nan")
    own = fit_before(trajectory.time, ours, time, span=0.03, at_least=3, order=1)
    pose, other = own.value[[0, 1, 5]], fit.value[[0, 1, 5]]
    gap = float(planar_gap(trajectory.bodies[target], pose[None], trajectory.bodies[striker], other[None])[0])
    return gap if np.isfinite(gap) else float(np.linalg.norm(pose[:2] - other[:2]))


def strike_from_rest(trajectory: Trajectory, target: str, onset: Onset, *, settle: float | None, span: float) -> Impact:
    """The impact behind the first motion of a target that was at rest."""
    time = onset.time
    samples = planar_samples(trajectory, target)
    rest = fit_polynomial(trajectory.time[onset.rest], samples[onset.rest], time, order=0)
    drift = fit_polynomial(trajectory.time[onset.rest], samples[onset.rest], time, order=1)
    still = replace(rest, velocity=np.where(np.isnan(rest.value), np.nan, 0.0), velocity_std=drift.velocity_std)
    pace = top_speed(trajectory.time, samples[:, 3:5], trajectory.period)
    if float(np.linalg.norm(drift.velocity[3:5])) > DRIFTING * pace:
        still = drift  # on an air table nothing ever rests
    near = nearest_striker(trajectory, target, time)
    striker = None if near is None else near[0]
    stop = last_motion(trajectory.time, trajectory.planar_com(target), trajectory.period, time)
    jitter = timing_jitter(
        trajectory.time, samples[:, 3:5], time + BLIND_SETTLE, min(time + BLIND_SETTLE + span, stop), trajectory.period
    )
    chosen, used = _settle(trajectory, target, time, settle, span, stop, jitter, onset.noise)
    post = _post(trajectory, target, time + chosen, used, stop, onset.noise)
    impact = Impact(
        trajectory=trajectory.name,
        kind="strike",
        time=time,
        time_std=float(np.hypot(onset.time_std, np.nan_to_num(jitter) * trajectory.period)),
        target=target,
        striker=striker,
        pre=planar_motion(trajectory, target, still, time),
        post=planar_motion(trajectory, target, post, time + chosen),
        striker_pre=None if near is None else planar_motion(trajectory, near[0], near[2], time, of_com=False),
        settle=chosen,
        span=used,
        gap=float("nan") if near is None else near[1],
        timing_jitter=jitter,
        quality="good",
        reason="",
    )
    return judge_strike(trajectory, impact)


def _settle(
    trajectory: Trajectory,
    target: str,
    time: float,
    settle: float | None,
    span: float,
    stop: float,
    jitter: float,
    noise: float,
) -> tuple[float, float]:
    """How long after first motion the post state is taken [s], and the span [s] of its fit."""
    if settle is not None:
        return settle, span
    if jitter > UNRELIABLE_TIMES:
        return BLIND_SETTLE, span
    com = trajectory.planar_com(target)
    floor = float(np.linalg.norm(noise_floor(trajectory.time, com)))
    floor = max(floor, 1e-6) if np.isfinite(floor) else noise
    for shorter in (span, span / 2, span / 4):
        # what a fit of this span leaves over once contact is surely past: noise, and what a quadratic cannot follow
        past = time + LONGEST_CONTACT
        quiet = path_noise(trajectory.time, com, past, min(past + shorter, stop), floor)
        begin = smooth_from(trajectory.time, com, time, span=shorter, noise=quiet, latest=LONGEST_CONTACT, limit=stop)
        if begin is not None:
            return max(begin - time, 0.0), shorter
    return BLIND_SETTLE, span


def _post(trajectory: Trajectory, target: str, at: float, span: float, stop: float, noise: float) -> LocalFit:
    samples = planar_samples(trajectory, target)
    floor = np.array([noise, noise, noise, noise, noise, 0.0]) / np.sqrt(2)
    return fit_after(trajectory.time, samples, at, span=span, not_after=stop, noise=floor)


def collisions(
    trajectory: Trajectory, target: str, striker: str, *, settle: float | None, span: float
) -> tuple[Impact, ...]:
    """Impacts between two bodies that both may move: kinks in both paths where the two are near."""
    instants = kinks(trajectory, target, striker)
    impacts = []
    for number, instant in enumerate(instants):
        following = instants[number + 1] if number + 1 < len(instants) else float(trajectory.time[-1])
        previous = instants[number - 1] if number else float(trajectory.time[0])
        impacts.append(_collision(trajectory, target, striker, instant, previous, following, settle=settle, span=span))
    return tuple(impacts)


def _collision(
    trajectory: Trajectory,
    target: str,
    striker: str,
    instant: float,
    previous: float,
    following: float,
    *,
    settle: float | None,
    span: float,
) -> Impact:
    clock, period = trajectory.time, trajectory.period
    com, other = trajectory.planar_com(target), trajectory.planar_com(striker)
    noise = max(float(np.linalg.norm(noise_floor(clock, com))), 1e-6)
    between = com - other
    relative_noise = float(np.hypot(noise, np.linalg.norm(noise_floor(clock, other))))
    clear = instant - LONGEST_CONTACT
    relative_noise = path_noise(clock, between, max(clear - PRE_SPAN, previous), clear, relative_noise)
    touch = smooth_until(
        clock, between, instant + period, span=PRE_SPAN, noise=relative_noise, earliest=LONGEST_CONTACT
    )
    touch = instant if touch is None else touch
    jitter = timing_jitter(clock, com, instant + BLIND_SETTLE, min(instant + BLIND_SETTLE + span, following), period)
    chosen, used = _settle(trajectory, target, touch, settle, span, following, jitter, noise)
    # a contact shorter than three samples is not resolved: the two one-sided paths meet at its instant
    brief = chosen <= 3 * period
    fits = [
        fit_before(clock, planar_samples(trajectory, body), touch + 0.5 * period, span=PRE_SPAN, not_before=previous)
        for body in (target, striker)
    ]
    after = _post(trajectory, target, touch + chosen, used, following, noise)
    time = touch
    if brief:
        time = float(np.clip(_meeting(fits[0], after, touch + 0.5 * period, touch + chosen), touch, touch + chosen))
    pre = [_moved(fit, time - (touch + 0.5 * period)) for fit in fits]
    if brief and settle is None:
        chosen = max(touch + chosen - time, 0.0)
    post = _post(trajectory, target, time + chosen, used, following, noise)
    poses = [fit.value[[0, 1, 5]][None] for fit in pre]
    gap = planar_gap(trajectory.bodies[target], poses[0], trajectory.bodies[striker], poses[1])[0]
    impact = Impact(
        trajectory=trajectory.name,
        kind="strike",
        time=time,
        time_std=period / np.sqrt(12) if brief else period,
        target=target,
        striker=striker,
        pre=planar_motion(trajectory, target, pre[0], time),
        post=planar_motion(trajectory, target, post, time + chosen),
        striker_pre=planar_motion(trajectory, striker, pre[1], time, of_com=False),
        settle=chosen,
        span=used,
        gap=float(gap),
        timing_jitter=jitter,
        quality="good",
        reason="",
    )
    return judge_strike(trajectory, impact)


def _moved(fit: LocalFit, later: float) -> LocalFit:
    """A fit evaluated `later` seconds after its own time."""
    powers = later ** np.arange(fit.order + 1)
    slopes = np.arange(1, fit.order + 1) * later ** np.arange(fit.order)
    return replace(fit, value=powers @ fit.coefficients, velocity=slopes @ fit.coefficients[1:])


def _meeting(before: LocalFit, after: LocalFit, t_before: float, t_after: float) -> float:
    """Time at which two straight continuations come nearest to each other."""
    jump = after.velocity[3:5] - before.velocity[3:5]
    apart = (after.value[3:5] - after.velocity[3:5] * t_after) - (before.value[3:5] - before.velocity[3:5] * t_before)
    size = float(jump @ jump)
    return -float(apart @ jump) / size if size > 0 else 0.5 * (t_before + t_after)


def onset_of(trajectory: Trajectory, target: str) -> Onset | None:
    """First motion of a target seen from above, if it rests before."""
    return first_motion(trajectory.time, trajectory.planar_com(target), trajectory.period)
