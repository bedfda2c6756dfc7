"""Rigid planar impact with dry friction: what one blow does to the velocities of two bodies.

The normal impulse is the independent variable (Routh). With friction after Coulomb and restitution after
Stronge (the normal impulse gives back e^2 of the work it took in), every phase is linear in it, so the whole
impact has a closed form of two stretches: slip as it began, until the slip dies, and then stick or slip the
other way. There are no small steps and no Python per strike.

Contact frame: (t, n), with n the unit normal into the target and t = n turned by -90 degrees. The relative
velocity is target minus striker at the contact, so n-component < 0 means approach. The impulse acts on the
target, its opposite on the striker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.state import Array

APART, SLIDES, STICKS, REVERSES = -1, 0, 1, 2  #: how a contact ended; see `Blow.mode`


@dataclass(frozen=True)
class Blow:
    """The impulses of N impacts."""

    impulse: Array  #: [N, 2] tangential, normal; on the target, in the contact frame [N s]
    mode: NDArray[np.int64]  #: [N] -1 never approached, 0 slid throughout, 1 stuck at the end, 2 slip turned round


@dataclass(frozen=True)
class _Stretch:
    """The impact from here on while one state of slip lasts: rates per unit of normal impulse [1/kg]."""

    tangential: Array  #: [N] impulse along t per normal impulse [1]
    du_t: Array  #: [N] change of tangential velocity per normal impulse [1/kg]
    du_n: Array  #: [N] change of normal velocity per normal impulse [1/kg]


def tangent_of(normal: Array) -> Array:
    """The contact frame's t [..., 2] for its n [..., 2]."""
    return np.stack([normal[..., 1], -normal[..., 0]], axis=-1)


def inverse_mass(normal: Array, lever: Array, *, mass: float, inertia: float, striker: ArrayLike = 0.0) -> Array:
    """Relative velocity at the contact per impulse there [N, 2, 2], in the contact frame [1/kg].

    `normal` [N, 2] and `lever` [N, 2] (contact point minus the target's centre of mass [m]) share one frame with
    `striker`, the striker's inverse effective mass [2, 2] or [N, 2, 2] [1/kg]; 0 is a striker that nothing stops.
    """
    frame = np.stack([tangent_of(normal), normal], axis=-2)  # rows t, n
    arm = np.stack([lever[:, 0] * frame[:, k, 1] - lever[:, 1] * frame[:, k, 0] for k in (0, 1)], axis=-1)
    target = np.eye(2) / mass + arm[:, :, None] * arm[:, None, :] / inertia
    held = np.broadcast_to(np.asarray(striker, dtype=np.float64), (len(normal), 2, 2))
    return np.asarray(target + np.einsum("nai,nij,nbj->nab", frame, held, frame))


def restitution_at(speed: ArrayLike, *, e0: ArrayLike, exponent: float, reference: float = 0.5) -> Array:
    """Restitution at a normal approach speed [m/s]: e0 at `reference`, falling as the power -`exponent`, in [0, 0.95].

    Real solids lose more in a faster blow; the ceiling keeps a creeping one from giving energy back for free.
    """
    ratio = np.maximum(np.asarray(speed, dtype=np.float64), 1e-3) / reference
    return np.asarray(np.clip(np.asarray(e0) * ratio**-exponent, 0.0, 0.95))


def impact(velocity: Array, inverse: Array, *, friction: ArrayLike, restitution: ArrayLike) -> Blow:
    """The impulses of N impacts from relative velocity [N, 2] [m/s] and inverse mass [N, 2, 2] [1/kg], in (t, n).

    `friction` and `restitution` (energetic, 0 to 1) are [N] or one number. A pair that does not approach gets none.

    >>> head_on = impact(np.array([[0.0, -1.0]]), np.eye(2)[None], friction=0.3, restitution=0.5)
    >>> head_on.impulse[0, 1].round(9).item()
    1.5
    """
    u_t, u_n = velocity[:, 0], np.minimum(velocity[:, 1], 0.0)
    mu = np.broadcast_to(np.asarray(friction, dtype=np.float64), u_t.shape)
    e = np.broadcast_to(np.asarray(restitution, dtype=np.float64), u_t.shape)
    first, second, sticks = _stretches(np.sign(u_t), inverse, mu)
    # Normal impulse at which the first slip dies: at once where there is none, never where friction cannot stop it.
    dying = first.du_t * np.sign(u_t) < 0
    turn = np.where(u_t == 0, 0.0, np.where(dying, -u_t / np.where(dying, first.du_t, 1.0), np.inf))
    last = _end(u_n, turn, first.du_n, second.du_n, e)
    slid, rest = np.minimum(last, turn), np.maximum(last - turn, 0.0)
    tangential = slid * first.tangential + rest * second.tangential
    mode = np.where(rest > 0, np.where(sticks, STICKS, np.where(u_t == 0, SLIDES, REVERSES)), SLIDES)
    mode = np.where(velocity[:, 1] < 0, mode, APART)
    return Blow(np.where(mode[:, None] == APART, 0.0, np.stack([tangential, last], axis=-1)), mode)


def _stretches(slip: Array, inverse: Array, mu: Array) -> tuple[_Stretch, _Stretch, NDArray[np.bool_]]:
    """Rates while the first slip (signs [N]) lasts and after it, and whether the contact sticks then [N]."""
    a, b, c = inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]
    sticks = np.abs(b) <= mu * a  # the ratio of impulses that holds the contact is within the friction cone
    before = -mu * slip
    after = np.where(sticks, -b / a, -mu * np.sign(b))

    def rates(ratio: Array) -> _Stretch:
        return _Stretch(ratio, b + ratio * a, c + ratio * b)

    return rates(before), rates(after), sticks


def _end(u_n: Array, turn: Array, k1: Array, k2: Array, e: Array) -> Array:
    """Normal impulse at separation [N]: where the work given back is e^2 of the work taken in.

    The normal velocity starts at u_n <= 0 and rises by k1 per impulse up to `turn`, by k2 > 0 after it. k1 may be
    negative (the slip digs in), but then the slip dies before compression can end.
    """
    early = (k1 > 0) & (-u_n <= np.where(k1 > 0, k1, 1.0) * turn)  # compression ends before the slip does
    k1_safe = np.where(early, k1, 1.0)
    at_turn = np.where(np.isfinite(turn), turn, 0.0)
    u_turn = u_n + k1 * at_turn  # normal velocity as the slip dies
    full = np.where(early, -u_n / k1_safe, at_turn - u_turn / k2)  # impulse at full compression
    taken = np.where(early, u_n**2 / (2 * k1_safe), -(u_n + u_turn) / 2 * at_turn + u_turn**2 / (2 * k2))
    given = e**2 * taken
    within = full + np.sqrt(2 * given / k1_safe)  # separation while still in the first slip
    left = np.maximum(given - u_turn**2 / (2 * k1_safe), 0.0)  # work still to give after the turn
    after = turn + (np.sqrt(np.maximum(u_turn, 0.0) ** 2 + 2 * k2 * left) - np.maximum(u_turn, 0.0)) / k2
    late = full + np.sqrt(2 * given / k2)
    return np.where(early, np.where(within <= turn, within, after), late)
