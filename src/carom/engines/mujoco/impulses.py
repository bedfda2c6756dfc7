"""What contacts push while a row of MuJoCo is on its way: the sums over each frame, for whoever looks at one motion.

`Run.contacts` tells the contacts of an instant; a bounce is over between two frames. So one row is stepped here by
itself, and every step's contacts are added up. The motion is that of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from carom.core.errors import CaromError
from carom.engines.mujoco.engine import MujocoRun
from carom.state import Array


@dataclass(frozen=True)
class FrameImpulse:
    """What one body gave to another between two frames."""

    frame: int  #: at whose beginning it begins
    bodies: tuple[str, str]  #: "world" is the ground and all that stands on it
    point: Array  #: [3] mean of where they pushed, by how much they did [m]
    impulse: Array  #: [3] on the second body, world [N s]


def impulses_of(run: MujocoRun, row: int, period: float, frames: int) -> list[FrameImpulse]:
    """The impulses of a row that has just been opened, over `frames` periods [s]; the run itself stays where it is."""
    steps = round(period / run.engine.timestep)
    if steps < 1 or abs(steps * run.engine.timestep - period) > 1e-6 * period:
        raise CaromError(
            f"period: expected a multiple of the engine's step of {run.engine.timestep:g} s, got {period:g}"
        )
    model, data = run.model_and_data(row)
    names = [model.body(i).name or "world" for i in range(model.nbody)]
    found, force = [], np.zeros(6)
    for frame in range(frames):
        pushed: dict[tuple[str, str], tuple[Array, Array, float]] = {}
        for _ in range(steps):
            mujoco.mj_step(model, data)
            for i in range(data.ncon):
                contact = data.contact[i]
                mujoco.mj_contactForce(model, data, i, force)
                impulse = model.opt.timestep * (force[:3] @ np.asarray(contact.frame).reshape(3, 3))
                first, second = (names[model.geom_bodyid[geom]] for geom in contact.geom)
                total, centre, heavy = pushed.get((first, second), (np.zeros(3), np.zeros(3), 0.0))
                size = float(np.linalg.norm(impulse))
                pushed[first, second] = (total + impulse, centre + size * np.array(contact.pos), heavy + size)
        found += [
            FrameImpulse(frame, pair, centre / heavy, total)
            for pair, (total, centre, heavy) in pushed.items()
            if heavy > 0
        ]
    return found
