"""How striker and target meet: whether it was seen, whether sizes and clocks fit, whether it is a blow at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from carom.recordings.checks.findings import Observation
from carom.recordings.checks.rows import row_of
from carom.recordings.differentiate import fit_polynomial, measured_rows
from carom.recordings.geometry import planar_gap
from carom.recordings.impacts.collisions import LONGEST_CONTACT, UNRELIABLE_TIMES
from carom.recordings.impacts.frozen import frozen_at
from carom.recordings.impacts.measured import Impact, planar_samples
from carom.recordings.sampled import noise_floor, window_speed
from carom.recordings.trajectory import Trajectory
from carom.state import Array

UNSEEN = 3.5  #: periods around a contact without a sample, from where on it was not seen
LONG = 0.03  #: [s] of this, from where on the outcome suffers
APART = 0.002  #: [m] by which outlines may be apart at contact
SURELY = 4.0  #: standard errors beyond which a value is another one
VARIED = 0.1  #: relative spread of speeds that tells a wrong clock from wrong sizes
TOUCHING = 0.005  #: [m] between outlines of bodies that stay together
PUSH = 3 * LONGEST_CONTACT  #: [s] of contact, from where on it is no blow
KEPT = 0.15  #: of its velocity, by which that of a striker changes which something drives on
RISE = 0.015  #: [s] in which a blow that was not filtered gives a target its speed, if it begins before they touch


def check_meeting(trajectory: Trajectory, impacts: Sequence[Impact]) -> Iterator[Observation]:
    """What is odd about the first strike of one file."""
    strike = next((i for i in impacts if i.kind == "strike" and i.striker is not None), None)
    if strike is None or strike.striker is None:
        return
    for body in (strike.target, strike.striker):
        rows = np.flatnonzero(measured_rows(trajectory.position_world[body]))
        behind = int(np.searchsorted(trajectory.time[rows], strike.time))
        near = rows[max(behind - 2, 0) : behind + 2]
        hole = float(np.diff(trajectory.time[near]).max(initial=0.0))
        if hole > UNSEEN * trajectory.period:
            at = int(near[int(np.argmax(np.diff(trajectory.time[near])))])
            yield Observation(
                "warning" if hole > LONG else "note",
                "contact-unseen",
                f"'{body}' is not seen for {{value}} at contact",
                trajectory.name,
                row_of(trajectory, at + 1),
                f"{body}.x",
                1e3 * hole,
                style="{:.0f} ms",
                advice="when and where they met is carried on from the samples around it",
            )
    together = _together(trajectory, strike)
    if together > PUSH and _driven(trajectory, strike):
        yield Observation(
            "warning",
            "push",
            f"'{strike.striker}' stays at '{strike.target}' for {{value}} and drives it: a push, not a strike",
            trajectory.name,
            value=together,
            style="{:.2g} s",
            advice="strikes end within 60 ms; let the striker stop at contact",
        )


def _together(trajectory: Trajectory, strike: Impact) -> float:
    """How long two bodies stay at the distance at which they met [s]."""
    ours, theirs = (planar_samples(trajectory, str(name))[:, [0, 1, 5]] for name in (strike.target, strike.striker))
    gap = planar_gap(trajectory.bodies[strike.target], ours, trajectory.bodies[str(strike.striker)], theirs)
    later = np.flatnonzero((trajectory.time >= strike.time) & np.isfinite(gap))
    if not len(later):
        return 0.0
    apart = np.flatnonzero(gap[later] > np.nan_to_num(strike.gap) + TOUCHING)
    end = later[apart[0]] if len(apart) else later[-1]
    return float(trajectory.time[end]) - strike.time


def _driven(trajectory: Trajectory, strike: Impact) -> bool:
    """Whether the striker goes on as before, though it stays at the target: free bodies that stick change both."""
    path = trajectory.position_world[str(strike.striker)][:, :2]
    later = np.flatnonzero(measured_rows(path) & (np.abs(trajectory.time - strike.time - PUSH) < LONGEST_CONTACT))
    if strike.striker_pre is None or len(later) < 6:
        return False
    before = strike.striker_pre.velocity_world[:2]
    after = fit_polynomial(trajectory.time[later], path[later], strike.time + PUSH, order=1).velocity
    return float(np.linalg.norm(after - before)) < KEPT * max(float(np.linalg.norm(before)), _speed(strike))


def _speed(strike: Impact) -> float:
    """Approach speed [m/s] of the striker relative to the target."""
    if strike.striker_pre is None:
        return float("nan")
    return float(np.linalg.norm((strike.striker_pre.velocity_world - strike.pre.velocity_world)[:2]))


def check_meetings(trajectories: Sequence[Trajectory], impacts: Sequence[Impact]) -> Iterator[Observation]:
    """What all strikes of a folder have in common: unreliable clocks, outlines that do not meet, filtered motion."""
    strikes = [i for i in impacts if i.kind == "strike" and i.striker is not None]
    jitter = np.array([i.timing_jitter for i in strikes])
    jitter = jitter[np.isfinite(jitter)]
    if len(jitter) and float(np.median(jitter)) > UNRELIABLE_TIMES:
        yield Observation(
            "warning",
            "sample-times",
            f"sample times are off by {np.median(jitter):.2f} periods (rms; seen in the moving targets of "
            f"{int((jitter > UNRELIABLE_TIMES).sum())} of {len(jitter)} strikes), as when two clocks beat; "
            "states after impact are taken 30 ms after first motion, because nothing nearer can be resolved",
        )
    by_name = {t.name: t for t in trajectories}
    strikes = [i for i in strikes if frozen_at(by_name[i.trajectory], i) is None]
    gap, speed = np.array([i.gap for i in strikes]), np.array([_speed(i) for i in strikes])
    known = np.isfinite(gap) & np.isfinite(speed) & (speed > 0)
    if known.sum() < 3:
        return
    gap, speed = gap[known], speed[known]
    middle = float(np.median(gap))
    error = 1.4826 * float(np.median(np.abs(gap - middle))) / np.sqrt(len(gap))
    if abs(middle) < max(APART, 3 * error):
        return
    early = float(np.median(gap / speed))
    rise = float(np.median([_rise(by_name[i.trajectory], i) for i, k in zip(strikes, known, strict=True) if k]))
    names = strikes[0].striker, strikes[0].target
    if early > 0 and rise > max(RISE, early):
        yield Observation(
            "warning",
            "smoothed",
            f"targets begin to move {1e3 * early:.0f} ms before the outlines touch and reach their speed within "
            f"{1e3 * rise:.0f} ms (medians of {len(gap)} strikes): a filter, or a gap filled in, has smeared the "
            "impact; record without filters",
        )
    elif _is_delay(gap, speed):
        word = "later" if early > 0 else "earlier"
        yield Observation(
            "warning",
            "clock-shift",
            f"the faster '{names[0]}' comes, the further the outlines are "
            f"{'apart' if middle > 0 else 'inside each other'} at first motion: its times are about "
            f"{1e3 * abs(early):.0f} ms {word} than those of '{names[1]}' (median of {len(gap)} strikes); "
            "record both with one clock, or shift the times of one",
        )
    else:
        word = "apart" if middle > 0 else "inside each other"
        yield Observation(
            "note",
            "contact-gap",
            f"outlines are {abs(middle) * 1e3:.1f} mm {word} at contact (median of {len(gap)} strikes): stated sizes "
            f"or frames are off by as much, or the times of one body by {1e3 * abs(early):.0f} ms"
            + (", or something between the two reaches further" if middle > 0 else ""),
        )


def _is_delay(gap: Array, speed: Array) -> bool:
    """Whether gaps at contact grow with the speed as a delay makes them, and sizes alone do not explain them."""
    if float(np.std(speed)) < VARIED * float(np.mean(speed)) or len(gap) < 4:
        return False
    columns = np.stack([np.ones_like(speed), speed], axis=-1)
    found, *_ = np.linalg.lstsq(columns, gap, rcond=None)
    left = gap - columns @ found
    scale = max(1.4826 * float(np.median(np.abs(left))), 3e-4) ** 2
    error = np.sqrt(scale * np.diag(np.linalg.inv(columns.T @ columns)))
    delay = abs(found[1]) > SURELY * error[1]
    return bool(delay and abs(found[0]) < max(SURELY * error[0], 0.25 * abs(float(np.median(gap)))))


def _rise(trajectory: Trajectory, strike: Impact) -> float:
    """Time [s] in which the target reaches most of its speed after first motion."""
    com = trajectory.planar_com(strike.target)
    rows, speed = window_speed(trajectory.time, com, 2 * trajectory.period)
    at = trajectory.time[rows.astype(int)]
    near = (at >= strike.time) & (at < strike.time + 3 * LONGEST_CONTACT)
    if near.sum() < 3:
        return 0.0
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(trajectory.time, com)))) / (2 * trajectory.period)
    top = float(np.quantile(speed[near], 0.9))
    reached = np.flatnonzero(speed[near] > 0.85 * top - noise)
    return float(at[near][reached[0]] - strike.time) if len(reached) else 0.0
