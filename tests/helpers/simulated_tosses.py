"""Recordings of simulated tosses, and parameters as `carom identify` writes them, for the tests of scaling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rolled_bodies import Rolled

from carom.identify.result import Errors, Estimate, Identification
from carom.identify.tosses.simulate import Starts
from carom.recordings import Recordings, Trajectory, write
from carom.scenes.free import toss_scene
from carom.scenes.parameters import FREE, free_parameters

CALIBRATED = {"friction": 0.2, "stiffness": 25_000.0, "damping": 150.0}


def parameters_file(path: Path, values: dict[str, float], *, width: float = 0.1) -> Path:
    """A `parameters.yaml` with these values and intervals of so much about them."""
    estimates = tuple(
        Estimate(
            name,
            value,
            FREE[name].unit if name in FREE else "1",
            value * (1 - width),
            value * (1 + width),
            (0.0, 1.0),
            "identified",
            "made up",
        )
        for name, value in values.items()
    )
    errors = Errors(0.1, 0.1, 0.5, 8)
    found = Identification(
        method="cma",
        scene="toss",
        estimates=estimates,
        training=errors,
        held_out=None,
        held_out_by="",
        evaluations=1,
        failures=0,
        seconds=1.0,
        seed=0,
    )
    return found.write(path)


def tosses(folder: Path, count: int = 5, *, rate: float = 120.0, lost: int = 0) -> Path:
    """A recordings folder of tossed cubes; the first one loses a sample at row `lost`."""
    scene, rng = toss_scene(), np.random.default_rng(7)
    batch = Rolled(scene, free_parameters(list(CALIBRATED)), period=1 / rate, threads=1)
    turns = rng.normal(size=(count, 1, 4))
    turns /= np.linalg.norm(turns, axis=-1, keepdims=True)
    position = np.tile([0.3, -0.1, 0.25], (count, 1, 1))
    starts = Starts.known(position, turns, rng.normal(size=(count, 1, 3)), 2 * rng.normal(size=(count, 1, 3)))
    motion = batch.run(starts, np.array(list(CALIBRATED.values())), 80)
    if lost:
        motion.position[0, lost], motion.quaternion[0, lost] = np.nan, np.nan
    bodies = {"cube": scene.bodies[0]}
    trajectories = tuple(
        Trajectory(
            f"toss_{i}.csv",
            folder / f"toss_{i}.csv",
            np.arange(80) / rate,
            {"cube": motion.position[i, :, 0]},
            {"cube": motion.quaternion[i, :, 0]},
            bodies,
        )
        for i in range(count)
    )
    write(folder, Recordings(folder, bodies, trajectories))
    return folder
