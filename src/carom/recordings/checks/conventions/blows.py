"""What a blow says about orientation: sizes that meet, a lever arm that makes the spin, friction that ends the slip.

A blow changes a body's velocity by dv and its spin by dw. Both come from one impulse, so that k^2 dw = r x dv, with k
the radius of gyration and r the lever arm to the contact. Friction takes slip away: after the blow the two surfaces
move alike, or at least slip less and not the other way. Two equations for two numbers: the density of what was seen is
the product of those of lever arm and slip. Two bodies that nothing holds keep their angular momentum too, wherever and
however long they touch.
"""

from __future__ import annotations

import numpy as np

from carom.core.errors import CaromError
from carom.core.rotations import axes, to_world, yaw
from carom.recordings.checks.conventions.contacts import Contact, Motion
from carom.recordings.checks.conventions.hypotheses import mixed, scattered
from carom.scenes.shapes import Body
from carom.state import Array, rotate

SIX = np.concatenate([np.eye(3), -np.eye(3)])
FACE_CENTRE = 0.01  #: [m] by which the middle of a striker's face may lie beside its frame
FACE_WIDTH = 1.0  #: [m/rad] by which the place of contact moves along a flat face that is not parallel
LEVER = (0.001, 0.2)  #: [m] scatter of lever arms, least and most
SLIP = (0.02, 2.0)  #: the same of slip over the change of velocity
LEFT = 0.7  #: share of the slip that a blow leaves
GAP = (0.001, 0.005)  #: [m] the same of the gap at contact
ODD = 0.01  #: share of folders in which shapes or frames are not what the header says
SIZE = 0.01  #: [m] by which stated sizes are off
UPRIGHT = 0.9  #: height of a unit z axis from where on a body stands upright
HELD = 0.1  #: share of the momentum that may be lost between two bodies that nothing holds
FEWEST = 3  #: contacts


def of_pairs(contacts: list[Contact], frame: str) -> Array | None:
    """Log likelihood [4, 4] of the ways of target and striker, from all their contacts; None if they do not show."""
    seen = [c for c in contacts if _known(c.target) and np.isfinite(c.before[0].numbers).all()]
    seen = [c for c in seen if np.isfinite(c.after[0].numbers).all()]
    if len(seen) < FEWEST:
        return None
    heading = _headings(seen, frame)  # [4, N]
    meetings = [_meeting(contact, frame) for contact in seen]
    lever = np.stack([m[0] for m in meetings], axis=-1)  # [4, N]
    slips = np.stack([m[1] for m in meetings], axis=-1)  # [2, 4, 4, N], before and after
    normal = np.stack([m[2] for m in meetings], axis=-1)  # [4, N], its direction
    gap = np.stack([m[3] for m in meetings], axis=-1)  # [4, N]
    beside = normal[:, None] - heading[None]
    beside = np.where(np.isfinite(beside), (beside + np.pi) % (2 * np.pi) - np.pi, 0.0)
    columns = np.stack([np.ones_like(beside), beside], axis=-1)
    levers = np.broadcast_to(lever[:, None], beside.shape)
    total = np.zeros((4, 4))
    if are_free(seen) and all(np.isfinite(c.after[1].numbers).all() for c in seen):
        other = np.stack([_meeting(c.swapped, frame)[0] for c in seen], axis=-1)
        kept = (lever[:, None] + other) / np.sqrt(2)  # the two together are an error of the angular momentum
        total = scattered(kept, np.ones((*kept.shape, 1)), [LEVER[0]], least=LEVER[0], most=LEVER[1])
        levers = (lever[:, None] - other) / np.sqrt(2)
    reach = sum(np.log(float(np.ptp(c.target.solid.planar_outline))) for c in seen)  # of places that are just any
    placed = scattered(levers, columns, [FACE_CENTRE, FACE_WIDTH], least=LEVER[0], most=LEVER[1])
    total = total + mixed([1 - ODD, ODD], placed, np.array(-reach))
    total = total + scattered(slips[1], slips[0, ..., None], [LEFT], least=SLIP[0], most=SLIP[1])
    if np.isfinite(gap).all():
        met = scattered(gap, np.ones((*gap.shape, 1)), [SIZE], least=GAP[0], most=GAP[1])
        if float(met.max()) < -reach:
            return None  # outlines meet in none of the ways: sizes or frames are wrong, and lever arms prove nothing
        total = total + mixed([1 - ODD, ODD], met, np.array(-reach))[:, None]
    # blows are looked at from above: they say nothing about ways in which the target would not stand upright
    upward = np.median([axes(c.before[0].turns(frame))[:, 2, 2] for c in seen], axis=0)
    stands = upward > UPRIGHT
    if not stands.any():
        return None
    return np.where(stands[:, None], total, total[stands].max(axis=0))


def are_free(contacts: list[Contact]) -> bool:
    """Whether two bodies keep their momentum when they meet, as they do when nothing holds them."""
    lost = []
    for contact in contacts:
        if contact.target.mass is None or contact.striker.mass is None or not _known(contact.striker):
            return False
        masses = np.array([contact.target.mass, contact.striker.mass])
        gained = np.array([a.velocity[:2] - b.velocity[:2] for a, b in zip(contact.after, contact.before, strict=True)])
        gained = gained * masses[:, None]
        lost.append(np.linalg.norm(gained.sum(axis=0)) / max(float(np.linalg.norm(gained, axis=-1).sum()), 1e-12))
    return bool(lost) and float(np.median(lost)) < HELD


def _known(body: Body) -> bool:
    try:
        return body.shape is not None and body.gyration_radius > 0
    except CaromError:
        return False


def _headings(contacts: list[Contact], frame: str) -> Array:
    """Direction [4, N] rad in which the striker's forward axis points; NaN where it has no orientation."""
    turns = np.stack([c.before[1].turns(frame) for c in contacts], axis=1)  # [4, N, 4]
    way = np.array([c.before[1].velocity for c in contacts]) * [1.0, 1.0, 0.0]
    way = way / np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-9)
    back = turns * np.array([1.0, -1.0, -1.0, -1.0])
    ahead = np.nan_to_num(to_world(back, np.broadcast_to(way, (4, *way.shape)))).mean(axis=1)
    forward = SIX[np.argmax(ahead @ SIX.T, axis=-1)]  # [4, 3]
    pointing = to_world(turns, np.broadcast_to(forward[:, None], (4, len(contacts), 3)))
    return np.asarray(np.arctan2(pointing[..., 1], pointing[..., 0]))


def _meeting(contact: Contact, frame: str) -> tuple[Array, Array, Array, Array]:
    """Lever arm's error [4] m, slip before and after [2, 4, 4] over the change of velocity, the normal's direction [4]
    rad, gap [4] m."""
    body, shape = contact.target, contact.target.solid
    centre, velocity, spin, change, turn = _planar(contact.before[0], contact.after[0], body, frame)
    place = contact.before[1].position[:2]
    frame_place = contact.before[0].position[:2]
    if shape.is_round:
        towards = np.broadcast_to(frame_place - place, (4, 2))
        inward = towards / np.linalg.norm(towards, axis=-1, keepdims=True)
        point = frame_place - float(shape.radius or 0.0) * inward
        apart = np.linalg.norm(towards, axis=-1) - float(shape.radius or 0.0)
        angle = np.full(4, np.nan)
    else:
        outline = rotate(np.broadcast_to(shape.planar_outline, (4, *shape.planar_outline.shape)), turn[:, None])
        point, inward, apart = _nearest(outline + frame_place, place)
        angle = np.arctan2(inward[:, 1], inward[:, 0])
    size = np.maximum(np.linalg.norm(change, axis=-1), 1e-6)
    arm = point - centre
    lever = (_cross(arm, change) - body.gyration_radius**2 * spin[1]) / size
    along = _left(inward)
    slips = []
    for other, speed, turning in (
        (contact.before[1], velocity - change, spin[0]),
        (contact.after[1], velocity, spin[0] + spin[1]),
    ):
        own = speed + turning[:, None] * _left(arm)
        theirs = np.nan_to_num(other.spins(frame)[:, 2])
        surface = other.velocity[:2] + theirs[None, :, None] * _left(point - place)[:, None]
        slips.append(np.sum((own[:, None] - surface) * along[:, None], axis=-1) / size[:, None])
    striker = contact.striker.shape
    gap = apart - float(striker.radius or 0.0) if striker is not None and striker.is_round else np.full(4, np.nan)
    return lever, np.stack(slips), angle, gap


def _planar(before: Motion, after: Motion, body: Body, frame: str) -> tuple[Array, Array, Array, Array, Array]:
    """Centre of mass [4, 2], its velocity after [4, 2], spin before and its change [2, 4], change of velocity [4, 2],
    and yaw before [4], in the four ways."""
    spins = np.stack([before.spins(frame)[:, 2], after.spins(frame)[:, 2]])
    turns = yaw(before.turns(frame)), yaw(after.turns(frame))
    offset = np.broadcast_to(body.planar_com, (4, 2))
    velocities = []
    for motion, spin, turn in zip((before, after), spins, turns, strict=True):
        velocities.append(motion.velocity[:2] + spin[:, None] * _left(rotate(offset, turn)))
    centre = before.position[:2] + rotate(offset, turns[0])
    spin = np.stack([spins[0], spins[1] - spins[0]])
    return centre, velocities[1], spin, velocities[1] - velocities[0], turns[0]


def _nearest(outlines: Array, place: Array) -> tuple[Array, Array, Array]:
    """Nearest points [4, 2] of outlines [4, V, 2] to a place [2], inward normals there [4, 2], distances [4]."""
    edge = np.roll(outlines, -1, axis=1) - outlines
    offset = place - outlines
    share = np.clip(np.sum(offset * edge, axis=-1) / np.sum(edge**2, axis=-1), 0.0, 1.0)
    points = outlines + share[..., None] * edge
    away = np.linalg.norm(place - points, axis=-1)
    best = np.argmin(away, axis=1)
    pick = np.arange(len(outlines)), best
    point, distance = points[pick], away[pick]
    inside = (_cross(edge, offset) > 0).all(axis=1)
    side = edge[pick] / np.linalg.norm(edge[pick], axis=-1, keepdims=True)
    inward = _left(side)
    direct = (point - place) / np.maximum(distance, 1e-9)[:, None]
    inward = np.where((inside | (distance < 1e-3))[:, None], inward, direct)
    return point, inward, np.where(inside, -distance, distance)


def _cross(one: Array, other: Array) -> Array:
    return np.asarray(one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0])


def _left(vectors: Array) -> Array:
    """Vectors [..., 2] after a quarter turn to the left."""
    return np.stack([-vectors[..., 1], vectors[..., 0]], axis=-1)
