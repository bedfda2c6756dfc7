"""The analytic teacher: a planar impact on springs with friction, integrated for thousands of strikes at once.

Where MuJoCo's contact is a poor picture of an impact (its restitution and its friction are by-products of a
constraint), this teacher has what textbooks have: a normal spring whose damping gives a chosen restitution,
Coulomb friction with a tangential spring, a striker with effective mass and inertia, and a flat face as a row
of springs. It lives in the contact frame (`contact_frames`) and knows no shape beyond curvature.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from carom.core.constants import GRAVITY
from carom.engines.contact_frames import SPEED_SCALE, Frames, shifted
from carom.scenes.parameters import Parameter
from carom.scenes.strike import KINEMATIC_MASS, StrikeScene
from carom.state import Array

FACE_POINTS = 5  #: springs along a flat face
STEPS_PER_CONTACT = 24
HORIZON = 0.03  #: [s] later touches of the face count as part of the impact
CHUNK = 4096  #: strikes integrated together: the arrays stay in cache


@lru_cache(maxsize=1)
def _damping_table() -> tuple[Array, Array]:
    """Restitution reached by damping c in f = K d (1 + c v / v0), by integrating a central impact (increasing e)."""
    c = np.concatenate([[0.0], np.geomspace(0.02, 60.0, 160)])
    d, v, out, done = np.zeros_like(c), np.ones_like(c), np.zeros_like(c), np.zeros(len(c), dtype=bool)
    dt = np.pi / 400
    for _ in range(4000):
        v = v - dt * np.maximum(d * (1 + c * v), 0.0)
        d = d + dt * v
        ended = ~done & (d <= 0)
        out[ended] = -v[ended]
        done |= ended
    out[~done] = -v[~done]
    return out[::-1].copy(), c[::-1].copy()


def damping_for(restitution: Array) -> Array:
    """Damping c of the contact that gives this restitution in a central impact."""
    e, c = _damping_table()
    return np.interp(restitution, e, c)


def simulate(scene: StrikeScene, frames: Frames, parameters: Sequence[Parameter], values: Array) -> Array:
    """Scaled outcomes in the contact frame [N, 3] of each strike with its own parameters `values` [N, P]."""
    lever_t, lever_n, angle = (x.numpy() for x in shifted(frames, parameters, torch.from_numpy(values)))
    given = {p.name: values[:, i] for i, p in enumerate(parameters)}
    out = np.empty((len(frames), 3))
    for low in range(0, len(frames), CHUNK):
        rows = slice(low, low + CHUNK)
        out[rows] = _integrate(
            scene,
            {name: v[rows] for name, v in given.items()},
            np.stack([lever_t[rows], lever_n[rows]], axis=-1),
            angle[rows],
            frames.curvature[rows],
            frames.velocity[rows],
        )
    return out / frames.speed[:, None]


def _spring(given: dict[str, Array], mass: Array, velocity: Array, points: int) -> tuple[Array, Array]:
    """Stiffness and damping [N, 1] of each point of contact between bodies of this reduced mass [N]."""
    speed = np.maximum(velocity[:, 1], 0.05 * np.linalg.norm(velocity, axis=-1))
    stiffness = (mass * (np.pi / given["contact_time"]) ** 2 / points)[:, None]
    restitution = given["restitution"] * (np.maximum(speed, 0.01) / SPEED_SCALE) ** -given["restitution_slope"]
    return stiffness, (damping_for(np.clip(restitution, 0.02, 0.98)) / np.maximum(speed, 1e-3))[:, None]


def _face(along: Array, angle: Array, lever: Array, curvature: Array) -> tuple[Array, Array]:
    """Points of the face from its middle, and where they are as the foremost just touches [N, points, 2]."""
    side = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    arm = along[..., None] * side[:, None]
    face = lever[:, None] + arm
    depth = face[..., 1] - (lever[:, 1:] + 0.5 * curvature[:, None] * (face[..., 0] - lever[:, :1]) ** 2)
    face[..., 1] -= depth.max(axis=1, keepdims=True)
    return arm, face


def _integrate(
    scene: StrikeScene, given: dict[str, Array], lever: Array, angle: Array, curvature: Array, velocity: Array
) -> Array:
    """Change of the target's velocity (t, n, k*spin) [N, 3] [m/s]; semi-implicit Euler in the contact frame.

    The target's centre of mass starts at the origin; the struck side is at lever[:, 1] < 0 below it.
    """
    count, k, m = len(lever), scene.gyration_radius, scene.mass
    striker_mass = given.get("striker_mass", np.full(count, scene.striker_mass))
    striker_inertia = given.get("striker_inertia", np.full(count, KINEMATIC_MASS))
    width = given.get("face_width", np.full(count, scene.striker.width or 0.0))
    points = FACE_POINTS if scene.striker.flat else 1
    along = np.linspace(-0.5, 0.5, points) * width[:, None] if points > 1 else np.zeros((count, 1))
    reduced = 1 / (1 / m + 1 / striker_mass + (lever[:, 0] / k) ** 2 / m)
    stiffness, damping = _spring(given, reduced, velocity, points)
    tangential = stiffness * given["tangential_stiffness"][:, None]
    mu, drag = given["striker_friction"][:, None], given["ground_friction"] * GRAVITY
    dt = given["contact_time"] / STEPS_PER_CONTACT
    arm, face = _face(along, angle, lever, curvature)
    body, rate = np.zeros((2, count, 3))  # the target's displacement and velocity: t, n, yaw
    striker = np.concatenate([velocity, np.zeros((count, 1))], axis=-1)
    stretch = np.zeros((count, points))
    # one point parts once; a face may touch again, so it is followed for longer
    full_dt, limit = dt, np.maximum(HORIZON, 1.5 * given["contact_time"]) if points > 1 else 4 * given["contact_time"]
    steps = int(np.ceil((limit / dt).max()))
    for step in range(steps):
        dt = np.where(step * full_dt < limit, full_dt, 0.0)  # each strike has its own clock
        yaw = body[:, 2:]
        rel = face - body[:, None, :2]
        local_t = rel[..., 0] + yaw * rel[..., 1]
        local_n = rel[..., 1] - yaw * rel[..., 0]
        run = local_t - lever[:, :1]
        depth = local_n - (lever[:, 1:] + 0.5 * curvature[:, None] * run**2)
        touching = depth > 0
        if step and not touching.any() and points == 1:
            break
        lean = yaw + curvature[:, None] * run  # the side's normal has turned by this much
        vel_t = striker[:, :1] - striker[:, 2:] * arm[..., 1] - (rate[:, :1] - rate[:, 2:] * rel[..., 1])
        vel_n = striker[:, 1:2] + striker[:, 2:] * arm[..., 0] - (rate[:, 1:2] + rate[:, 2:] * rel[..., 0])
        closing, slipping = vel_n - lean * vel_t, vel_t + lean * vel_n
        normal = np.where(touching, np.maximum(stiffness * depth * (1 + damping * closing), 0.0), 0.0)
        stretch = np.where(touching, stretch + slipping * dt[:, None], 0.0)
        force = np.clip(tangential * stretch, -mu * normal, mu * normal)
        stretch = np.where(touching, force / tangential, 0.0)
        force_t, force_n = force - lean * normal, normal + lean * force
        total_t, total_n = force_t.sum(1), force_n.sum(1)
        busy = touching.any(axis=1)
        moving = np.sqrt(rate[:, 0] ** 2 + rate[:, 1] ** 2 + (k * rate[:, 2]) ** 2 + 1e-6)
        # the ground takes its share while they touch, and never more than there is
        slow = np.where(busy, np.minimum(drag / moving, 0.5 / np.maximum(dt, 1e-12)), 0.0)
        torque = (rel[..., 0] * force_n - rel[..., 1] * force_t).sum(1)
        rate += dt[:, None] * (np.stack([total_t / m, total_n / m, torque / (m * k * k)], -1) - slow[:, None] * rate)
        back = (arm[..., 0] * force_n - arm[..., 1] * force_t).sum(1)
        striker -= dt[:, None] * np.stack([total_t / striker_mass, total_n / striker_mass, back / striker_inertia], -1)
        body += dt[:, None] * rate
        arm = arm + (dt * striker[:, 2])[:, None, None] * np.stack([-arm[..., 1], arm[..., 0]], -1)
        face = face + dt[:, None, None] * (
            striker[:, None, :2] + striker[:, None, 2:] * np.stack([-arm[..., 1], arm[..., 0]], -1)
        )
    return np.asarray(rate * np.array([1.0, 1.0, k]))
