"""What `carom bench graph` measures with: yardstick, overlaps, stand-in, and searches that find what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carom.bench import graph_parameters
from carom.bench.graph import BENCHMARK
from carom.bench.graph_models import Calibrated
from carom.bench.graph_plans import by_cma, in_bullet, in_mujoco, tasks_of
from carom.bench.graph_scenes import MOVED, TURNED, _worst, deepest, drawn, moved, unseen_bodies
from carom.bench.results import Row
from carom.core.rotations import to_scipy
from carom.engines import MujocoEngine
from carom.identify.tosses.predict import MotionModel
from carom.plan import push_scene
from carom.reality.bullet import bullet_missing
from carom.scale import shapes, toss
from carom.scenes.free import timestep, toss_scene
from carom.state import Motion, SceneState

VALUES = {"friction": 0.2, "stiffness": 20_000.0, "damping": 200.0, "gravity": 9.7}


@pytest.fixture(scope="module")
def found() -> Calibrated:
    nothing: Any = None
    return Calibrated(MotionModel(toss_scene(), VALUES, None), nothing, nothing, nothing, Path(), 0.01)


def test_the_yardstick_moves_starts_by_as_much_as_it_says() -> None:
    rng, count = np.random.default_rng(0), 40
    position, none = rng.normal(size=(count, 2, 3)), np.zeros((count, 2, 3))
    quaternion = np.tile([1.0, 0.0, 0.0, 0.0], (count, 2, 1))
    going = none.copy()
    going[:, 0] = 1.0
    states = SceneState(("a", "b"), position, quaternion, going, none)
    other = moved(states, seed=3)
    assert np.linalg.norm(other.position - position, axis=-1) == pytest.approx(MOVED)
    assert other.position[..., 2] == pytest.approx(position[..., 2])
    turned = to_scipy(other.quaternion.reshape(-1, 4)).as_rotvec().reshape(count, 2, 3)
    assert np.linalg.norm(turned, axis=-1) == pytest.approx(TURNED)
    assert np.abs(turned[:, 1, :2]).max() < 1e-12, "what stands stays on its face"


def test_only_what_was_run_is_explained() -> None:
    rows = [Row("two-cubes", "cma", "seconds per plan", 1.0, 0.0, 1), Row("real-tosses", "mujoco", "m", 1.0, 0.0, 1)]
    assert [note.split(":")[0] for note in BENCHMARK.remarks(rows)] == ["real-tosses", "two-cubes"]


def test_the_worst_of_several_settings_stands_under_the_name_of_all() -> None:
    rows: list[dict[str, Any]] = [
        {"setting": f"s, {n}", "method": "graph", "metric": metric, "value": value}
        for n, value in enumerate((1.5, 3.0, 2.0))
        for metric in ("distance-percent over yardstick", "overlap-percent")
    ]
    found = {"setting": "s", "method": "graph", "metric": "distance-percent over yardstick", "value": 3.0}
    assert _worst("s", rows) == [found]


def test_overlaps_are_those_of_the_deepest_frame() -> None:
    scene = push_scene()
    side = float(scene.bodies[0].solid.extent[0])
    position = np.zeros((1, 2, 2, 3))
    position[..., 2] = side / 2
    position[0, :, 1, 0] = [2 * side, side - 0.004]
    quaternion = np.tile([1.0, 0.0, 0.0, 0.0], (1, 2, 2, 1))
    motion = Motion(("pushed", "moved"), np.array([[0.0, 0.1]]), position, quaternion, np.zeros(1, dtype=int))
    assert deepest(scene, motion) == pytest.approx(0.004, abs=1e-5)


def test_shapes_that_are_tried_are_not_among_those_that_are_learned_from() -> None:
    learned = {len(body.solid.corners) for body in shapes().templates if body.solid.kind == "mesh"}
    names = {body.name for body in shapes().templates}
    for name, body in unseen_bodies().items():
        assert name.replace(" ", "_") not in names
        if "prism" in name:
            assert len(body.solid.corners) not in learned
    assert not {"prism_3", "prism_6"} & names


def test_a_search_without_derivatives_finds_pushes(found: Calibrated) -> None:
    tasks = tasks_of(found, 2, seed=1)
    engine = in_mujoco(found, 1)
    plans = by_cma(engine, tasks, found.contact, 240, seed=0)
    assert all(plan.miss < 0.02 for plan in plans)
    push = np.array([plan.push for plan in plans])
    assert tasks.misses(engine, push, found.contact) == pytest.approx([plan.miss for plan in plans], abs=1e-6)
    assert [plan.rollouts for plan in plans] == [240, 240]
    alone = by_cma(engine, tasks[np.array([1])], found.contact, 240, seed=1)
    assert alone[0].push == pytest.approx(plans[1].push, abs=1e-6), "searches do not see each other"


@pytest.mark.skipif(bool(bullet_missing()), reason=bullet_missing() or "Bullet is there")
def test_the_stand_in_moves_what_is_pushed_and_nothing_else(found: Calibrated) -> None:
    task = tasks_of(found, 1, seed=1)
    stays = float(np.linalg.norm(task.goal - task.place("moved")))
    assert in_bullet(found, task, np.array([0.1, 0.0, 0.0])) == pytest.approx(stays, abs=1e-3)
    assert abs(in_bullet(found, task, np.array([1.6, 0.0, 0.0])) - stays) > 0.01


def test_known_parameters_are_found_again_in_the_engine_that_made_the_tosses(found: Calibrated) -> None:
    scene, starts = drawn(toss(rate=100.0), found.contact, 6, 0)
    engine = MujocoEngine(scene, tuple(VALUES), step=timestep(0.01), threads=1)
    motion = graph_parameters._moved(engine, starts, found, {**VALUES, "friction": 0.34})
    values = graph_parameters._by_cma(engine, scene, starts, found, motion, seed=0)
    assert values["friction"] == pytest.approx(0.34, rel=0.03)
