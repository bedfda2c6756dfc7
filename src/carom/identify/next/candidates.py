"""Recordings that could be made next, around and somewhat beyond those there are, with their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from carom.core.rotations import from_scipy, matrices
from carom.identify.next.choose import Experiments
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.sides import SIDES, SideKnowledge
from carom.identify.tosses.simulate import Starts
from carom.recordings.geometry import lowest_point
from carom.recordings.starts import LEAD, SPAN
from carom.scenes.free import FreeScene
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes, rotate, wrap_angle

BEYOND = 1.3  #: how far candidates go beyond what was recorded
LEAST_DROP = 0.02  #: [m] of a body's lowest point above the ground
TILT = np.radians(12.0)  #: by which a person misses the face, edge or corner that is to land first
TURN = np.radians(25.0)  #: by which the direction of a push is varied
#: [m] that strikes keep from a corner. A robot brings its tool to about a millimetre of where it was told, markers sit
#: on a body as well as that, and a resting block lies half a millimetre off: some 2 mm together, at times twice that.
#: Beyond a corner the outcome is another one, so a strike that misses by so much tells nothing.
CORNER = 0.005
CLOSE = 0.2  #: share of the target's size within which a place counts as one that was struck
NEAR = np.radians(15.0)  #: within which a box still counts as landing on a face or an edge


@dataclass(frozen=True)
class Candidates:
    """Experiments with free bodies, and the states from which they begin."""

    starts: Starts
    experiments: Experiments


def free_candidates(
    motions: Motions, values: Mapping[str, float], sides: SideKnowledge | None, count: int, seed: int
) -> Candidates:
    """`count` experiments of the kind that was recorded: tosses, or pushes and glides that were varied."""
    tossed = len(motions.scene.bodies) == 1 and not motions.scene.planar
    made = _tosses(motions, values, count, seed) if tossed else _pushes(motions, count, seed)
    if sides is None:
        return made
    # nobody knows how the tracker will call the sides: the one seen most often stands for all
    side = np.tile(SIDES[int(np.argmax(sides.counts))], (count, 1))
    return replace(made, starts=replace(made.starts, side=side))


def _tosses(motions: Motions, values: Mapping[str, float], count: int, seed: int) -> Candidates:
    """Tosses of one body: drop height, speed sideways, spin, and what lands first."""
    scene, starts = motions.scene, motions.starts
    rng = np.random.default_rng(seed)
    gravity, scale = float(values.get("gravity", scene.gravity)), float(values.get("length_scale", 1.0))
    falls = np.maximum(-starts.velocity[:, 0, 2], 0.0) ** 2 / (2 * gravity)
    sideways = np.linalg.norm(starts.velocity[:, 0, :2], axis=-1)
    spins = np.linalg.norm(starts.spin[:, 0], axis=-1)
    top = np.array([BEYOND * max(falls.max(), 0.05), BEYOND * max(sideways.max(), 0.2), BEYOND * max(spins.max(), 1.0)])
    low = np.array([max(falls.min() / BEYOND, LEAST_DROP), 0.0, 0.0])
    drop, speed, spin = (low + rng.random((count, 3)) * (np.maximum(top, 1.05 * low) - low)).T
    heading, axis = rng.uniform(-np.pi, np.pi, count), _unit(rng.normal(size=(count, 3)))
    quaternion, lean = _landings(scene, count, rng)
    velocity = np.stack([speed * np.cos(heading), speed * np.sin(heading), -np.sqrt(2 * gravity * drop)], axis=-1)
    position = np.zeros((count, 3))
    shape = scene.bodies[0].shape
    if shape is not None:
        below = lowest_point(shape, position, quaternion) * scale
        position[:, 2] = scene.ground_height - below - velocity[:, 2] * LEAD * motions.period
    turning = spin[:, None] * axis
    made = Starts.known(position[:, None], quaternion[:, None], velocity[:, None], turning[:, None])
    by_com = _by_com(quaternion, turning, motions.period)
    made = replace(made, position_by_com=by_com[0][:, None], velocity_by_com=by_com[1][:, None], gravity=gravity)
    forward = np.stack(
        [-np.sin(heading), np.cos(heading), np.zeros(count)], axis=-1
    )  # axis of rolling the way it flies
    rolls = np.stack([(turning * forward).sum(-1), np.abs(turning @ [0.0, 0.0, 1.0])], axis=-1)
    aside = np.sqrt(np.maximum(spin**2 - (rolls**2).sum(-1), 0.0))
    parts = np.stack([0.5 + rolls[:, 0] / (2 * top[2]), rolls[:, 1] / top[2], aside / top[2]], axis=-1)
    features = np.column_stack([drop / top[0], speed / top[1], parts, lean / np.radians(55)])
    words, settings = [], []
    for i in range(count):
        turn = _spin_words(spin[i], rolls[i, 0], rolls[i, 1], aside[i])
        words.append(f"drop by {drop[i]:.2f} m, {speed[i]:.1f} m/s sideways, {turn}{_first(scene, lean[i])}")
        settings.append(
            {
                "drop_m": float(drop[i]),
                "sideways_m_s": float(speed[i]),
                "spin_rad_s": float(spin[i]),
                "spin_forward_rad_s": float(rolls[i, 0]),
                "spin_vertical_rad_s": float(rolls[i, 1]),
                "spin_aside_rad_s": float(aside[i]),
                "lean_deg": float(np.degrees(lean[i])),
            }
        )
    return Candidates(made, Experiments(features, tuple(words), tuple(settings)))


def _spin_words(spin: float, forward: float, vertical: float, aside: float) -> str:
    """A spin [rad/s] by the largest of its parts."""
    if spin < 0.3:
        return "no spin"
    most = max(abs(forward), vertical, aside)
    if most == vertical:
        return f"spin {spin:.1f} rad/s, mostly about the vertical"
    if most == aside:
        return f"spin {spin:.1f} rad/s, mostly about its line of flight"
    return f"spin {spin:.1f} rad/s, mostly {'rolling forward' if forward > 0 else 'backspin'}"


def _landings(scene: FreeScene, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Orientations [C, 4] shortly before the ground, and how far the lowest face leans [C] rad.

    Face, edge and corner first in turn, each missed by a little, as by hand; any orientation for what has none.
    """
    shape = scene.bodies[0].shape
    turn = Rotation.random(count, rng=rng)
    if shape is not None and shape.kind == "box":
        lows = _unit(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]))[np.arange(count) % 3]
        signs, order = rng.choice([-1.0, 1.0], (count, 3)), rng.permuted(np.tile(np.arange(3), (count, 1)), axis=1)
        lows = np.take_along_axis(lows, order, axis=1) * signs
        missed = Rotation.from_rotvec(TILT * rng.uniform(0, 1, (count, 1)) * _unit(rng.normal(size=(count, 3))))
        down = np.array([0.0, 0.0, -1.0])
        to_down = [Rotation.align_vectors(down[None], low[None])[0] for low in lows]
        yaw = Rotation.from_rotvec(rng.uniform(-np.pi, np.pi, (count, 1)) * np.array([0.0, 0.0, 1.0]))
        turn = missed * yaw * Rotation.concatenate(to_down)
    quaternion = from_scipy(turn)
    upright = np.abs(matrices(quaternion)[:, 2]).max(axis=-1)
    return quaternion, np.arccos(np.clip(upright, 0.0, 1.0))


def _first(scene: FreeScene, lean: float) -> str:
    """What of a box lands first, in words."""
    shape = scene.bodies[0].shape
    if shape is None or shape.kind != "box":
        return "" if shape is not None and shape.kind == "sphere" else f", leaning by {np.degrees(lean):.0f}°"
    if lean < NEAR:
        return f", nearly flat on a face ({np.degrees(lean):.0f}°)"
    return ", edge first" if lean < np.radians(46) else ", corner first"


def _by_com(quaternion: Array, spin: Array, period: float) -> tuple[Array, Array]:
    """Change of a start [C, 3, 3] per metre of the centre of mass, as `recordings.starts` would estimate it."""
    tau = np.arange(-int(SPAN / period), LEAD) * period
    here = matrices(quaternion)
    turned = Rotation.from_rotvec((tau[:, None, None] * spin).reshape(-1, 3)).as_matrix().reshape(len(tau), -1, 3, 3)
    solve = np.linalg.pinv(np.stack([np.ones_like(tau), tau], axis=-1))
    by_com = np.einsum("pt,tnij,njk->pnik", solve, turned, here)
    cross = np.cross(spin[:, None], np.swapaxes(here, 1, 2))  # rows: spin x (R e_j)
    return by_com[0] - here, by_com[1] - np.swapaxes(cross, 1, 2)


def _pushes(motions: Motions, count: int, seed: int) -> Candidates:
    """Recorded starts with the moving body faster or slower, turned a little, and spun: for pushes and air tables."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(motions), count)
    starts = motions.starts[rows]
    speeds = np.linalg.norm(starts.velocity[..., :2], axis=-1)
    body = np.argmax(speeds, axis=1)
    at = np.arange(count)
    most = float(np.linalg.norm(motions.starts.velocity[..., :2], axis=-1).max())
    factor, turn = np.exp(rng.uniform(-np.log(2.0), np.log(BEYOND), count)), rng.uniform(-TURN, TURN, count)
    spins = BEYOND * max(float(np.abs(motions.starts.spin[..., 2]).max()), 1.0) * rng.uniform(-1, 1, count)
    velocity, spin = starts.velocity.copy(), starts.spin.copy()
    velocity[at, body, :2] = rotate(velocity[at, body, :2] * factor[:, None], turn)
    if motions.scene.planar:
        spin[at, body, 2] = spins
    speed = np.linalg.norm(velocity[at, body, :2], axis=-1)
    turning = np.abs(spin[at, body, 2])
    features = np.stack(
        [
            speed / (BEYOND * most),
            0.5 + turn / (2 * TURN),
            0.5 + spin[at, body, 2] / (2 * np.abs(spins).max()),
            rows / max(len(motions), 2),
        ],
        axis=-1,
    )
    words = tuple(
        f"as in {motions.names[rows[i]]}, '{motions.scene.bodies[body[i]].name}' at {speed[i]:.2f} m/s, turned by "
        f"{np.degrees(turn[i]):+.0f}°" + (f", spin {turning[i]:.1f} rad/s" if turning[i] > 0.3 else "")
        for i in range(count)
    )
    settings = tuple(
        {"speed_m_s": float(speed[i]), "turned_deg": float(np.degrees(turn[i])), "spin_rad_s": float(turning[i])}
        for i in range(count)
    )
    return Candidates(replace(starts, velocity=velocity, spin=spin), Experiments(features, words, settings))


def practical(scene: StrikeScene, impacts: Impacts) -> StrikeScene:
    """The scene with its ranges of speed and angle narrowed to about what was recorded."""
    _, _, off, speed = _aims(scene, impacts.strikes)
    low, high = max(float(speed.min()) / BEYOND, scene.speed[0]), min(BEYOND * float(speed.max()), scene.speed[1])
    most = min(max(BEYOND * float(np.abs(off).max()), 0.1), scene.deflection)
    return replace(scene, speed=(low, high) if low < high else scene.speed, deflection=most)


def reachable(scene: StrikeScene, strikes: Strikes, impacts: Impacts) -> Strikes:
    """Those strikes that land near a place that was struck already; all of them if none does."""
    apart = _aims(scene, strikes)[0][:, None] - _aims(scene, impacts.strikes)[0]
    size = float(np.ptp(scene.outline.vertices, axis=0).max())
    near = np.flatnonzero(np.linalg.norm(apart, axis=-1).min(axis=1) < CLOSE * size)
    return strikes[near] if len(near) else strikes


def off_corners(scene: StrikeScene, strikes: Strikes) -> Strikes:
    """Those strikes that land at least `CORNER` from every corner, or an eighth of the side between two if less."""
    way, _ = scene.outline.corners_around(_aims(scene, strikes)[0])
    margin = np.minimum(CORNER, way.sum(axis=1) / 8)
    return strikes[np.flatnonzero(way.min(axis=1) >= margin)]


def strike_words(scene: StrikeScene, strikes: Strikes) -> Experiments:
    """Strikes in words and in figures."""
    point, along, off, speed = _aims(scene, strikes)
    velocity = rotate(strikes.striker_velocity[:, :2], -strikes.target_pose[:, 2])
    direction = np.degrees(np.arctan2(velocity[:, 1], velocity[:, 0]))
    size = float(np.ptp(scene.outline.vertices, axis=0).max())
    features = np.stack(
        [*(point / size).T, off / max(2 * scene.deflection, 1e-6), speed / max(scene.speed[1], 1e-6)], axis=-1
    )
    words = tuple(
        f"strike at {1000 * a:.0f} mm along the outline (x {1000 * p[0]:+.0f}, y {1000 * p[1]:+.0f} mm), {v:.2f} m/s "
        f"towards {d:+.0f}°, {np.degrees(o):+.0f}° off the normal"
        for p, a, o, v, d in zip(point, along, off, speed, direction, strict=True)
    )
    settings = tuple(
        {
            "along_m": float(a),
            "x_m": float(p[0]),
            "y_m": float(p[1]),
            "speed_m_s": float(v),
            "direction_deg": float(d),
            "off_normal_deg": float(np.degrees(o)),
        }
        for p, a, o, v, d in zip(point, along, off, speed, direction, strict=True)
    )
    return Experiments(features, words, settings)


def _aims(scene: StrikeScene, strikes: Strikes) -> tuple[Array, Array, Array, Array]:
    """Where strikes land [C, 2] m and how far along the outline [C] m, angle off the normal [C] rad, speed [C] m/s.

    All in the target's frame; the outline begins at its first corner and goes counter-clockwise.
    """
    yaw = strikes.target_pose[:, 2]
    point, normal = scene.outline.nearest(rotate(strikes.striker_pose[:, :2] - strikes.target_pose[:, :2], -yaw))
    velocity = rotate(strikes.striker_velocity[:, :2], -yaw)
    heading, inward = np.arctan2(velocity[:, 1], velocity[:, 0]), np.arctan2(-normal[:, 1], -normal[:, 0])
    edge = scene.outline.edges[0]
    from_corner = point[:, None] - scene.outline.vertices
    share = np.clip((from_corner * edge).sum(-1) / (edge**2).sum(-1), 0.0, 1.0)
    which = np.argmin(np.linalg.norm(from_corner - share[..., None] * edge, axis=-1), axis=1)
    before = np.concatenate([[0.0], np.cumsum(scene.outline.lengths)])[which]
    along = before + share[np.arange(len(point)), which] * scene.outline.lengths[which]
    return point, along, wrap_angle(heading - inward), np.linalg.norm(velocity, axis=-1)


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
