"""Strikes made by hand, shared by the tests of this folder."""

from __future__ import annotations

import numpy as np

from carom.engines.compliant import simulate
from carom.engines.contact_frames import contact_frames, to_world
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import Striker, StrikeScene
from carom.state import Array, Strikes, rotate

TARGET_MASS, STRIKER_MASS = 0.2, 0.5
SQUARE = Body("block", "target", Shape("box", size=(0.08, 0.08, 0.05)), TARGET_MASS)
DISC = Body("puck", "target", Shape("cylinder", radius=0.05, height=0.05), TARGET_MASS)
ROUND = StrikeScene("round", SQUARE, Striker(radius=0.02, mass=STRIKER_MASS))
FLAT = StrikeScene("flat", SQUARE, Striker(width=0.03, mass=STRIKER_MASS))
PUCK = StrikeScene("puck", DISC, Striker(radius=0.02, mass=STRIKER_MASS))
#: no friction anywhere, restitution that does not depend on speed
PLAIN = {
    "striker_friction": 1e-9,
    "ground_friction": 1e-9,
    "restitution": 0.6,
    "restitution_slope": 0.0,
    "contact_time": 0.006,
    "tangential_stiffness": 1.0,
}


def strikes(position: object, velocity: object, yaw: float = 0.0) -> Strikes:
    """Strikes of a target at rest at the origin; position and velocity [2] or [N, 2] of the striker."""
    p, v = np.broadcast_arrays(np.atleast_2d(position), np.atleast_2d(velocity))
    zero = np.zeros((len(p), 3))
    return Strikes(zero, zero, np.c_[p, np.full(len(p), yaw)], np.c_[v, np.zeros(len(p))])


def moved(case: Strikes, turn: float, shift: tuple[float, float]) -> Strikes:
    """The same strikes, turned about the origin and then moved, all of them together."""

    def pose(p: Array) -> Array:
        return np.c_[rotate(p[:, :2], turn) + np.asarray(shift), p[:, 2] + turn]

    def velocity(v: Array) -> Array:
        return np.c_[rotate(v[:, :2], turn), v[:, 2]]

    return Strikes(
        pose(case.target_pose), velocity(case.target_velocity), pose(case.striker_pose), velocity(case.striker_velocity)
    )


def compliant(scene: StrikeScene, case: Strikes, **given: object) -> Array:
    """World outcomes [N, 3] of the analytic teacher, with `PLAIN` for what is not given."""
    known = {p.name: p.default for p in scene.unknown} | PLAIN | given
    parameters = scene.parameters("compliant")
    values = np.stack([np.broadcast_to(known[p.name], (len(case),)) for p in parameters], axis=-1).astype(float)
    frames = contact_frames(scene, case)
    return to_world(scene, frames, simulate(scene, frames, parameters, values))


def energy(scene: StrikeScene, post: Array) -> Array:
    """Kinetic energy of the target [N] [J]."""
    scaled = post * np.array([1.0, 1.0, scene.gyration_radius])
    return np.asarray(0.5 * scene.mass * (scaled**2).sum(-1))
