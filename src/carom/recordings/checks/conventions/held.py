"""What a held striker says: it points where it goes, and when it is jolted it turns about a point on its own line."""

from __future__ import annotations

import numpy as np

from carom.core.rotations import to_world, unit
from carom.recordings.checks.conventions.contacts import Contact
from carom.recordings.checks.conventions.hypotheses import ANYWHERE, mixed, near_axis, scattered
from carom.state import Array

POINTING = 0.15  #: [rad] by which a tool that points along its way is off
SPEED = 0.05  #: [m/s] slower is no approach
LEVER = 5.0  #: [1/m] turn per sideways motion: a fifth of a metre to the point that it turns about
DRIFT = 0.3  #: [rad/s] of spin that an arm's own motion gains in the time of a blow
SPIN = (0.02, 5.0)  #: [rad/s] scatter of spins, least and most
FEWEST = 3  #: contacts


def of_approach(contacts: list[Contact], frame: str) -> Array | None:
    """Log likelihood [4] of the four ways from the direction of approach in the striker's frame."""
    seen = [c.before[1] for c in contacts if np.isfinite(c.before[1].numbers).all()]
    seen = [m for m in seen if float(np.linalg.norm(m.velocity[:2])) > SPEED]
    if len(seen) < FEWEST:
        return None
    way = unit(np.array([m.velocity for m in seen]))
    turns = np.stack([m.turns(frame) for m in seen], axis=1) * np.array([1.0, -1.0, -1.0, -1.0])
    ahead = to_world(turns, np.broadcast_to(way, (4, *way.shape)))  # [4, N, 3]
    mean = unit(ahead.mean(axis=1, keepdims=True) + 1e-12)
    angle = 2 * np.arcsin(np.clip(0.5 * np.linalg.norm(ahead - mean, axis=-1), 0, 1))
    fixed = mixed([0.95, 0.05], near_axis(angle, POINTING), np.array(ANYWHERE)).sum(axis=-1)
    return np.asarray(mixed([0.5, 0.5], fixed, np.full(4, len(seen) * ANYWHERE)))


def of_jolts(contacts: list[Contact], frame: str) -> Array | None:
    """Log likelihood [4] of the four ways from how a striker turns and gives way when it strikes.

    What holds it lies behind it, so sideways and upwards dv = dw x r, with r along the way of approach and the same
    length in all strikes. The turn about the way of approach is free.
    """
    seen = [c for c in contacts if c.jolted is not None and np.isfinite(c.jolted.numbers).all()]
    seen = [c for c in seen if np.isfinite(c.before[1].numbers).all()]
    if len(seen) < FEWEST:
        return None
    turned = np.stack([_change(c, frame) for c in seen], axis=1)  # [4, N, 3]
    pushed = np.array([c.jolted.velocity - c.before[1].velocity for c in seen if c.jolted is not None])
    way = np.array([c.before[1].velocity for c in seen]) * [1.0, 1.0, 0.0]
    way = way / np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-9)
    side = np.stack([-way[:, 1], way[:, 0], np.zeros(len(way))], axis=-1)
    # w = a (f x v): about the vertical from what goes sideways, about the side from what goes up
    level, steep = np.sum(turned * side, axis=-1), turned[..., 2]  # [4, N]
    causes = -pushed[:, 2], np.sum(pushed * side, axis=-1)
    count = len(seen)
    columns = np.zeros((2 * count, 3))
    columns[:count, 0], columns[count:, 0] = causes
    columns[:count, 1], columns[count:, 2] = 1.0, 1.0
    both = np.concatenate([level, steep], axis=-1)
    total = scattered(
        both, np.broadcast_to(columns, (4, *columns.shape)), [LEVER, DRIFT, DRIFT], least=SPIN[0], most=SPIN[1]
    )
    roll = np.sum(turned * way, axis=-1)
    return np.asarray(total + scattered(roll, np.ones((4, count, 1)), [DRIFT], least=SPIN[0], most=SPIN[1]))


def _change(contact: Contact, frame: str) -> Array:
    """Change of angular velocity [4, 3] rad/s from before the blow to just after its beginning, in the four ways."""
    after = contact.before[1] if contact.jolted is None else contact.jolted
    return after.spins(frame) - contact.before[1].spins(frame)
