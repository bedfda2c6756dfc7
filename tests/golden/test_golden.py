"""Numbers that must not change by accident: small runs with fixed seeds, as they were before the code was rearranged.

`results.json` was recorded then. Where a result is meant to change, record it anew and say why in the commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike

from carom.bench.simulated_tosses import toss
from carom.engines import MujocoSimulator, slider_for
from carom.engines.approach import at_distance
from carom.engines.compliant import simulate
from carom.engines.contact_frames import contact_frames
from carom.engines.mujoco.collide import Collider
from carom.identify import cma
from carom.learn.impact.sample import sample_parameters, sample_strikes
from carom.plan import plan_strike, strike_space
from carom.scale import calibration, cubes, scale
from carom.scale import toss as tossed_cubes
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Impacts

GOLDEN = json.loads((Path(__file__).parent / "results.json").read_text())
LAST_DIGITS = 1e-9  #: relative; another processor may differ there
TRUTH = {
    "friction": 0.2,
    "stiffness": 30_000.0,
    "damping": 250.0,
    "inertia_scale": 1.3,
    "com_offset": 0.006,
    "gravity": 9.7,
    "length_scale": 0.98,
    "face_friction": 0.25,
}


def of_strikes(scene: StrikeScene) -> Iterator[tuple[str, ArrayLike]]:
    """Collisions, analytic impacts, rollouts and slides of 24 strikes."""
    rng = np.random.default_rng(1)
    strikes, parameters = sample_strikes(scene, 24, rng), scene.parameters("mujoco")
    run = Collider(scene, parameters, threads=1).run(strikes, sample_parameters(parameters, 24, rng))
    yield "collisions", run.post
    yield "statuses", run.status
    analytic = scene.parameters("compliant")
    values = sample_parameters(analytic, 24, rng)
    yield "compliant", simulate(scene, contact_frames(scene, strikes), analytic, values)
    engine = MujocoSimulator(scene, {"ground_friction": 0.3}, threads=1)
    rolled = engine.rollout(at_distance(scene, strikes[:8], 0.01, {}), 1.0, frames=3)
    yield "rollout", rolled.target_pose
    yield "post", rolled.post
    slider = slider_for(scene, 0.3, viscosity=0.05, size=0.9, offset=(0.002, -0.001))
    yield "slider", slider.slide(torch.zeros(24, 3, dtype=torch.float64), torch.as_tensor(run.post)).pose[:, -1]


def same(found: ArrayLike, key: str) -> None:
    expected = np.asarray(GOLDEN[key])
    np.testing.assert_allclose(np.asarray(found), expected, rtol=LAST_DIGITS, atol=LAST_DIGITS, err_msg=key)


@pytest.mark.parametrize("name", ["square", "semi-cylinder"])
def test_strikes(name: str) -> None:
    for key, found in of_strikes(builtin(name)):
        same(found, f"{key}/{name}")


def test_tosses() -> None:
    motions = toss(3, TRUTH, seed=4, samples=70).motions
    same(motions.position[:, ::10, 0], "tosses")
    same(motions.quaternion[:, ::10, 0], "tosses/turn")


@pytest.mark.parametrize("name", ["toss", "cubes"])
def test_scaled_trajectories(name: str, tmp_path: Path) -> None:
    source = tossed_cubes() if name == "toss" else cubes(bodies=(2, 3))
    data = scale(source, calibration(None), tmp_path / "data", count=6, seed=3, threads=1).data
    for i, trajectory in enumerate(data):
        np.testing.assert_allclose(trajectory.position[-1], GOLDEN[f"scaled/{name}"][i], atol=LAST_DIGITS)
        inertia = [np.diagonal(body.inertia_matrix) for body in trajectory.bodies]
        np.testing.assert_allclose(inertia, GOLDEN[f"scaled/{name}/inertia"][i], rtol=LAST_DIGITS)


def test_identified_parameters_and_a_plan() -> None:
    scene = builtin("square")
    strikes, parameters = sample_strikes(scene, 6, np.random.default_rng(5)), scene.parameters("mujoco")
    true = {"striker_friction": 0.25, "ground_friction": 0.35, "striker_damping": 0.6}
    values = np.tile([true.get(p.name, p.default) for p in parameters], (6, 1))
    post = Collider(scene, parameters, threads=1).run(strikes, values).post
    impacts = Impacts(strikes, post, np.full_like(post, 0.01), tuple("abcdef"))
    found = cma(scene, impacts, budget=900, seed=2, threads=1)
    same([[e.value, e.low, e.high] for e in found.estimates], "identify/cma")
    engine = MujocoSimulator(scene, {"ground_friction": 0.3}, threads=1)
    space, wanted = strike_space(scene, np.zeros(3)), np.array([0.05, 0.02, 0.2])
    plan = plan_strike(engine, space, wanted, method="cma", budget=60, seed=1)
    same([*plan.rest, plan.loss], "plan")
