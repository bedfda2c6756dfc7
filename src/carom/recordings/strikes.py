"""Arrays for the stages that learn from strikes: one strike per recording, before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.core.rotations import pitch_and_roll, unit
from carom.recordings.differentiate import LocalFit, fit_polynomial, measured_rows
from carom.recordings.geometry import planar_gap
from carom.recordings.impacts.collisions import approach_fit
from carom.recordings.impacts.kinks import NEAR
from carom.recordings.impacts.measured import Impact, planar_samples
from carom.recordings.impacts.segment import find_impacts
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import Array, Impacts, Strikes

Skipped = tuple[tuple[str, str], ...]
SAME_SETTLE = 0.008  #: [s] contacts of one folder may differ by this much in how long they last
LOOK_AHEAD = 0.5  #: [s] that an approach is carried on, at most, to find where the bodies touch


def first_strike(
    trajectory: Trajectory, *, settle: float | None = None, span: float = 0.12
) -> tuple[Impact | None, str]:
    """The first usable strike of a recording, or None and the reason."""
    strikes = [i for i in find_impacts(trajectory, settle=settle, span=span) if i.kind == "strike"]
    if not strikes:
        return None, "no strike found: the target never moves, or no two bodies meet"
    usable = [strike for strike in strikes if strike.quality != "unusable"]
    return (usable[0], "") if usable else (None, strikes[0].reason)


def strike_impacts(
    recordings: Recordings, *, settle: float | None = None, span: float = 0.12
) -> tuple[Impacts, Skipped]:
    """The first strike of every recording as arrays, and (file, reason) of those that cannot be used."""
    kept: list[Impact] = []
    before: list[Before] = []
    skipped: list[tuple[str, str]] = []
    found = [first_strike(trajectory, settle=settle, span=span) for trajectory in recordings.trajectories]
    usual = float(np.median([strike.settle for strike, _ in found if strike is not None] or [0.0]))
    for trajectory, (strike, reason) in zip(recordings.trajectories, found, strict=True):
        if settle is None and strike is not None and abs(strike.settle - usual) > SAME_SETTLE:
            # one laboratory, one clock and one pair of bodies: a lone contact ten times as long is a bad sample
            strike, reason = first_strike(trajectory, settle=usual, span=span)
        if strike is None or strike.striker is None:
            skipped.append((trajectory.name, reason or "no striker was near"))
            continue
        kept.append(strike)
        before.append(_before(trajectory, strike.target, strike.striker, strike.time, strike.time))
    post = np.array([i.post.planar_velocity for i in kept]).reshape(-1, 3)
    post_std = np.array([i.post.planar_velocity_std for i in kept]).reshape(-1, 3)
    return Impacts(_as_strikes(before), post, post_std, tuple(i.trajectory for i in kept)), tuple(skipped)


@dataclass(frozen=True)
class Before:
    """Target and striker as they touch, from samples before the contact."""

    target: LocalFit
    striker: LocalFit
    lean: Array  #: [2] pitch and roll of the striker [rad]; zero if not measured


def _as_strikes(rows: list[Before]) -> Strikes:
    pose = [0, 1, 5]

    def stack(values: list[Array], width: int = 3) -> Array:
        return np.array(values, dtype=np.float64).reshape(-1, width)

    return Strikes(
        target_pose=stack([r.target.value[pose] for r in rows]),
        target_velocity=stack([r.target.velocity[[3, 4, 5]] for r in rows]),
        striker_pose=stack([r.striker.value[pose] for r in rows]),
        striker_velocity=stack([r.striker.velocity[pose] for r in rows]),
        posture=stack([np.array([r.striker.value[2], *r.lean, r.striker.velocity[2]]) for r in rows], 4),
    )


def approaches(recordings: Recordings) -> tuple[Strikes, tuple[str, ...], Skipped]:
    """`S_pre` of every recording, its file names, and (file, reason) of those without one.

    Only samples before the contact are used. Where the recording goes on beyond it, the target's first motion
    says when to stop; where it ends before, the bodies are carried on until their outlines touch.
    """
    found: list[Before] = []
    names: list[str] = []
    skipped: list[tuple[str, str]] = []
    for trajectory in recordings.trajectories:
        fits, reason = _approach(trajectory)
        if fits is None:
            skipped.append((trajectory.name, reason))
        else:
            found.append(fits)
            names.append(trajectory.name)
    return _as_strikes(found), tuple(names), tuple(skipped)


def _approach(trajectory: Trajectory) -> tuple[Before | None, str]:
    """Fits of target and striker at contact, from samples before it."""
    if not trajectory.targets:
        return None, "no body has the role 'target'"
    strike = next((i for i in find_impacts(trajectory) if i.kind == "strike" and i.striker is not None), None)
    if strike is not None and strike.striker is not None:
        target, striker, stop = strike.target, strike.striker, strike.time
        return _before(trajectory, target, striker, stop, stop), ""
    target = trajectory.targets[0]
    end = float(trajectory.time[-1]) + 1e-9
    best: tuple[float, str] | None = None
    for name, body in trajectory.bodies.items():
        if name == target or body.role == "ground":
            continue
        touch = _touch_time(trajectory, target, name, end)
        if touch is not None and (best is None or touch < best[0]):
            best = (touch, name)
    if best is None:
        return None, f"no body comes to touch '{target}' within {LOOK_AHEAD:g} s of the record's end"
    return _before(trajectory, target, best[1], end, best[0]), ""


def _before(trajectory: Trajectory, target: str, striker: str, before: float, at: float) -> Before:
    samples = planar_samples(trajectory, target)
    rows = np.flatnonzero(measured_rows(samples) & (trajectory.time < before) & (trajectory.time >= before - 0.1))
    still = fit_polynomial(trajectory.time[rows], samples[rows], at, order=1)
    noise = np.linalg.norm(np.nan_to_num(noise_floor(trajectory.time[rows], samples[rows][:, 3:5])))
    moved = float(np.linalg.norm(still.velocity[3:5])) * 0.1 if still.usable else 0.0
    if moved < max(5 * float(noise), 1e-3):
        # at rest: its mean is better than a line through noise, and its velocity is none
        own = fit_polynomial(trajectory.time[rows], samples[rows], at, order=0)
        own = LocalFit(
            value=own.value,
            velocity=np.where(np.isnan(own.value), np.nan, 0.0),
            value_std=own.value_std,
            velocity_std=still.velocity_std,
            residual_rms=own.residual_rms,
            count=own.count,
            order=1,
            coefficients=own.coefficients,
        )
    else:
        own = approach_fit(trajectory, target, before, at)
    return Before(own, approach_fit(trajectory, striker, before, at), _lean(trajectory, striker, before))


def _lean(trajectory: Trajectory, body: str, before: float) -> Array:
    """Mean pitch and roll of a body over the last 0.1 s before `before` [2] [rad]."""
    quaternion = trajectory.quaternion_world[body]
    if quaternion is None:
        return np.zeros(2)
    rows = (trajectory.time < before) & (trajectory.time >= before - 0.1) & np.isfinite(quaternion).all(axis=-1)
    if not rows.any():
        return np.zeros(2)
    return np.asarray(pitch_and_roll(unit(quaternion[rows])).mean(axis=0))


def _touch_time(trajectory: Trajectory, target: str, striker: str, before: float) -> float | None:
    """When the outlines touch if both bodies go on as they did before `before`."""
    state = _before(trajectory, target, striker, before, before)
    fits = [state.target, state.striker]
    if any(fit.count < 4 or not np.isfinite(fit.velocity[:2]).all() for fit in fits):
        return None
    ahead = np.linspace(-0.02, LOOK_AHEAD, 521)
    # straight on: a quadratic carried far beyond its samples bends back
    poses = [fit.value[[0, 1, 5]] + ahead[:, None] * fit.velocity[[0, 1, 5]] for fit in fits]
    gap = planar_gap(trajectory.bodies[target], poses[0], trajectory.bodies[striker], poses[1])
    if not np.isfinite(gap).any():
        return None
    touching = gap <= 0
    if touching.any():
        at = int(np.argmax(touching))
        if at == 0:
            return before
        share = gap[at - 1] / (gap[at - 1] - gap[at])
        return float(before + ahead[at - 1] + share * (ahead[at] - ahead[at - 1]))
    at = int(np.nanargmin(gap))
    return float(before + ahead[at]) if gap[at] < NEAR and 0 < at < len(ahead) - 1 else None
