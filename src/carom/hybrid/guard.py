"""What physics forbids a learned outcome to do: create energy, or push the bodies into each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carom.engines.contact_frames import Frames
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

SLACK = 0.02  #: share of the approach speed that a contact may still close with: the ground drags while bodies part

FAR_BEYOND = 10.0  #: times the greatest change of velocity that energy allows: no outcome, but a broken model


@dataclass(frozen=True)
class Guarded:
    """Outcomes that physics allows."""

    post: Array  #: [N, 3] vx, vy, wz of the declared centre of mass [m/s, m/s, rad/s]
    corrected: NDArray[np.bool_]  #: [N] whether the outcome was changed
    created: NDArray[np.bool_]  #: [N] whether it was because the outcome would have created energy


def absurd(scene: StrikeScene, strikes: Strikes, frames: Frames, post: Array) -> NDArray[np.bool_]:
    """Which outcomes [N] are no numbers, or so far beyond what energy allows that there is nothing to correct.

    Energy is lost or kept only if the change of velocity, in the norm (vx, vy, k wz), is at most twice that with which
    the bodies met in the same norm.
    """
    scale = np.array([1.0, 1.0, scene.gyration_radius])
    met = strikes.target_velocity * scale
    met[:, :2] -= strikes.striker_velocity[:, :2]
    most = 2 * np.maximum(np.linalg.norm(met, axis=1), frames.speed)
    finite = np.asarray(np.isfinite(post).all(axis=1))
    change = np.where(finite[:, None], (post - strikes.target_velocity) * scale, 0.0)
    return np.asarray(~finite | (np.abs(change).max(axis=1) > FAR_BEYOND * most))


def guard(scene: StrikeScene, strikes: Strikes, frames: Frames, post: Array) -> Guarded:
    """Correct outcomes [N, 3] that would keep the bodies moving into each other, or create energy.

    The impulse on the target is what its centre of mass gained; the striker gets its reaction, by its effective mass.
    Bodies that still approach get the impulse along the normal that stops it. If target and striker then have more
    kinetic energy than before, the outcome is drawn towards the plastic impact until they do not.
    """
    mass, k2 = scene.mass, scene.gyration_radius**2
    share = mass / scene.striker_mass
    normal, arm = frames.axes[:, 1], np.einsum("nai,na->ni", frames.axes, frames.lever)
    turn = arm[:, 0] * normal[:, 1] - arm[:, 1] * normal[:, 0]
    before = strikes.target_velocity
    relative = before[:, :2] - strikes.striker_velocity[:, :2]

    def separation(change: Array) -> Array:
        parting = relative + (1.0 + share) * change[:, :2]
        spin = before[:, 2] + change[:, 2]
        return np.asarray((parting * normal).sum(-1) + spin * turn)

    def stopping(change: Array) -> Array:
        """The change by the impulse along the normal that ends the approach left after `change`."""
        push = -separation(change) / (1.0 + share + turn**2 / k2)
        return np.column_stack([push[:, None] * normal, push * turn / k2])

    def product(a: Array, b: Array) -> Array:
        return np.asarray((1.0 + share) * (a[:, :2] * b[:, :2]).sum(-1) + k2 * a[:, 2] * b[:, 2])

    def linear(change: Array) -> Array:
        return np.asarray((change[:, :2] * relative).sum(-1) + k2 * change[:, 2] * before[:, 2])

    change = post - before
    into = separation(change) < -SLACK * frames.speed
    change = change + np.where(into[:, None], stopping(change), 0.0)
    creates = linear(change) + 0.5 * product(change, change) > 1e-9 * frames.speed**2
    # towards the plastic impact, which neither creates energy nor closes in, until no energy is created
    plastic = stopping(np.zeros_like(change))
    rest = change - plastic
    a, b = 0.5 * product(rest, rest), linear(rest) + product(plastic, rest)
    c = linear(plastic) + 0.5 * product(plastic, plastic)
    part = (-b + np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))) / np.maximum(2 * a, 1e-12)
    change = np.where(creates[:, None], plastic + np.clip(part, 0.0, 1.0)[:, None] * rest, change)
    return Guarded(np.where((into | creates)[:, None], before + change, post), into | creates, creates)
