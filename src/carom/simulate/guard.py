"""What physics forbids a learned outcome to do: create energy, or push the bodies into each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carom.distill.frames import Frames
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

SLACK = 0.02  #: share of the approach speed that a contact may still close with: the ground drags while bodies part


@dataclass(frozen=True)
class Guarded:
    """Outcomes that physics allows."""

    post: Array  #: [N, 3] vx, vy, wz of the declared centre of mass [m/s, m/s, rad/s]
    corrected: NDArray[np.bool_]  #: [N] whether the outcome was changed


def guard(scene: StrikeScene, strikes: Strikes, frames: Frames, post: Array) -> Guarded:
    """Correct outcomes [N, 3] that would keep the bodies moving into each other, or create energy.

    The impulse on the target is what its centre of mass gained; the striker gets its reaction, by its effective mass.
    Bodies that still approach get the impulse along the normal that stops it. If target and striker then have more
    kinetic energy than before, the whole change is scaled down to what keeps it.
    """
    mass, k2 = scene.mass, scene.gyration_radius**2
    heavy = 1.0 / scene.striker_mass
    normal, arm = frames.axes[:, 1], np.einsum("nai,na->ni", frames.axes, frames.lever)
    turn = arm[:, 0] * normal[:, 1] - arm[:, 1] * normal[:, 0]
    before = strikes.target_velocity
    change = post - before

    def separation(change: Array) -> Array:
        moved = before + change
        at_contact = moved[:, :2] + moved[:, 2:] * np.stack([-arm[:, 1], arm[:, 0]], axis=-1)
        striker = strikes.striker_velocity[:, :2] - mass * heavy * change[:, :2]
        return np.asarray(((at_contact - striker) * normal).sum(-1))

    closing = separation(change)
    into = closing < -SLACK * frames.speed
    push = np.where(into, -closing / (1.0 + turn**2 / k2 + mass * heavy), 0.0)
    change = change + np.column_stack([push[:, None] * normal, push * turn / k2])
    relative = before[:, :2] - strikes.striker_velocity[:, :2]
    linear = (change[:, :2] * relative).sum(-1) + k2 * change[:, 2] * before[:, 2]
    square = 0.5 * ((change[:, :2] ** 2).sum(-1) * (1.0 + mass * heavy) + k2 * change[:, 2] ** 2)
    creates = linear + square > 1e-9 * frames.speed**2
    scale = np.where(creates, np.clip(-linear / np.maximum(square, 1e-12), 0.0, 1.0), 1.0)
    return Guarded(before + scale[:, None] * change, into | creates)
