"""Routh's construction: planar impact of rigid bodies with Coulomb friction, in closed form.

The stand-in realities have an impact law of their own (`carom.reality.rigid_impact`, with energetic restitution). A
method that used that law would know on stand-ins what nothing can know of a real block, and its rows would flatter
it. So this one is written apart and differs where such laws differ: its restitution is Poisson's.

Draw the impulse as a point (P, R): P along the tangent t, R along the normal n. Two lines cross that plane: on the line
of sticking the slip is zero, on the line of compression the approach is. From the origin the point goes up along the
line of friction, P = -mu R against the slip, until it meets the line of sticking. From there it follows that line, or,
where friction is too weak to hold the contact, the line of friction on the other side: the slip turns round.
Compression ends at the line of compression; the normal impulse at the end is (1 + e) times the one there (Poisson), or
the point goes on until the contact parts at e times the speed of approach (Newton). Without friction, or where the slip
keeps its direction, both agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from carom.scenes.strike import StrikeScene
from carom.state import Array

BLOWS = 4  #: of the ends of a flat face, in turn: later ones change nothing that could be measured


def rigid_outcomes(
    scene: StrikeScene,
    lever: Array,
    velocity: Array,
    *,
    restitution: ArrayLike,
    friction: ArrayLike,
    striker_mass: ArrayLike | None = None,
    face: Sequence[Array] | None = None,
    newton: ArrayLike = 0.0,
) -> Array:
    """Change of the target's velocity (t, n, k*spin) [N, 3] [m/s] for contacts at `lever` [N, 2] from its mass centre.

    `velocity` [N, 2] is the striker's against the target along t and n [m/s]. `face`, each [N] [m], leads along t from
    the middle of a flat face to the end that meets the target first, and, if that follows, to the other. A blow of one
    end makes the target turn towards the other, so both may strike, in turn.
    """
    k, m = scene.gyration_radius, scene.mass
    heavy = np.asarray(scene.striker_mass if striker_mass is None else striker_mass, dtype=np.float64)
    change, striker = np.zeros((len(lever), 3)), np.array(velocity, dtype=np.float64)
    for blow in range(1 if face is None or len(face) == 1 else BLOWS):
        arm = lever if face is None else lever + np.stack([face[blow % 2], 0 * lever[:, 1]], axis=-1)
        spin = change[:, 2] / k
        at_contact = change[:, :2] + np.stack([-spin * arm[:, 1], spin * arm[:, 0]], axis=-1)
        inverse = inverse_mass_at(arm, mass=m, inertia=m * k * k, striker_mass=heavy)
        impulse = routh_impulse(
            at_contact - striker, inverse, friction=friction, restitution=restitution, newton=newton
        )
        j_t, j_n = impulse.T
        change = change + np.column_stack([j_t / m, j_n / m, (arm[:, 0] * j_n - arm[:, 1] * j_t) / (m * k)])
        striker = striker - impulse / heavy.reshape(-1, 1)
    return change


def inverse_mass_at(lever: Array, *, mass: float, inertia: float, striker_mass: ArrayLike) -> Array:
    """Change of relative velocity at the contact per impulse there [N, 2, 2], along t and n [1/kg].

    `lever` [N, 2] is the contact point from the target's centre of mass along t and n [m]. The striker does not turn.
    """
    r_t, r_n = lever[:, 0], lever[:, 1]
    straight = 1 / mass + 1 / np.asarray(striker_mass, dtype=np.float64)
    rows = [[straight + r_n**2 / inertia, -r_t * r_n / inertia], [-r_t * r_n / inertia, straight + r_t**2 / inertia]]
    return np.moveaxis(np.array(rows), -1, 0)


def routh_impulse(
    velocity: Array, inverse: Array, *, friction: ArrayLike, restitution: ArrayLike, newton: ArrayLike = 0.0
) -> Array:
    """Impulses on the target [N, 2] along t and n [N s], from relative velocity [N, 2] (target minus striker [m/s]).

    `friction`, `restitution` (0 to 1) and `newton` (0: the restitution is Poisson's, 1: Newton's, between: a mean of
    both impulses) are [N] or one number. Bodies that do not approach get no impulse.

    >>> head_on = routh_impulse(np.array([[0.0, -1.0]]), np.eye(2)[None], friction=0.3, restitution=0.5)
    >>> head_on[0, 1].item()
    1.5
    """
    slip, approach = velocity[:, 0], np.minimum(velocity[:, 1], 0.0)
    a, b, c = inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]
    mu = np.asarray(friction, dtype=np.float64)
    before = -mu * np.sign(slip)  # P per R while it slips as it began
    after = np.clip(-b / a, -mu, mu)  # P per R from the line of sticking on: along it, or as near to it as friction can
    slows = -np.sign(slip) * (b + a * before)  # by how much each R slows the slip
    meets = np.where(slows > 0, np.abs(slip) / np.where(slows > 0, slows, 1.0), np.inf)  # R at the line of sticking
    meets = np.where(slip == 0, 0.0, meets)
    gains, whole = (c + b * before, c + b * after), 1 + np.asarray(restitution, dtype=np.float64)
    normal = whole * _normal_end(approach, meets, *gains)
    if np.any(share := np.asarray(newton, dtype=np.float64)):
        normal = (1 - share) * normal + share * _normal_end(whole * approach, meets, *gains)
    normal = np.where(velocity[:, 1] < 0, normal, 0.0)
    tangential = before * np.minimum(normal, meets) + after * np.maximum(normal - meets, 0.0)
    return np.stack([tangential, normal], axis=-1)


def _normal_end(approach: Array, meets: Array, gain_before: Array, gain_after: Array) -> Array:
    """R that takes a velocity `approach` away [N]: it grows by `gain_before` per R to `meets`, then `gain_after`.

    `gain_before` may be negative where the slip digs in; the line is then met after the slip has ended.
    """
    early = np.where(gain_before > 0, -approach / np.where(gain_before > 0, gain_before, 1.0), np.inf)
    knee = np.where(np.isfinite(meets), meets, 0.0)
    late = knee - (approach + gain_before * knee) / gain_after
    return np.where(early <= meets, early, late)
