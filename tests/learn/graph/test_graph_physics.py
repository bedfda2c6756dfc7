"""What a trained graph simulator does: it rests, it creates no energy, it is corrected by recordings, it plans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from free_recordings import starts_of_tosses

from carom.core.errors import CaromError
from carom.core.rotations import random_turn
from carom.envs.push import REACHED, push_of
from carom.identify.tosses.predict import MotionModel
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.simulate import Sampled
from carom.learn.graph import GraphEngine, GraphModel, Recipe, Stage, corrected, fine_tuned, load_graph, train_graph
from carom.learn.graph.correct import PRIOR
from carom.learn.graph.dynamics import inertia_in_world
from carom.learn.graph.rollout import moving_of
from carom.learn.graph.turning import turn
from carom.plan import plan_pushes, push_scene, push_tasks
from carom.scale import Variation, calibration, cubes, scale, toss
from carom.scenes.free import toss_scene
from carom.state import SceneState
from carom.train.pushes import train_pushes

SAME = Variation(size=(1.0, 1.0), aspect=1.0, mass=(1.0, 1.0))
RECIPE = Recipe(
    stages=(Stage(1, 256, 300), Stage(8, 48, 80), Stage(20, 24, 20)), single=128, judged_every=100, judged=10
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> GraphModel:
    place = tmp_path_factory.mktemp("trained")
    sources = {"toss": toss(rate=100.0, duration=0.8), "cubes": cubes(bodies=(1, 1), rate=100.0, duration=0.8)}
    for name, source in sources.items():
        scale(source, calibration(None), place / name, count=120, variation=SAME, threads=1)
    return train_graph([place / name for name in sources], place / "model", recipe=RECIPE).model


def thrown(count: int, seed: int) -> SceneState:
    rng = np.random.default_rng(seed)
    quaternion = np.array([[random_turn(rng)] for _ in range(count)])
    velocity, spin = rng.normal(size=(count, 1, 3)) * [0.6, 0.6, 0.3], 4 * rng.normal(size=(count, 1, 3))
    return SceneState(("cube",), np.tile([0.0, 0.0, 0.2], (count, 1, 1)), quaternion, velocity, spin)


def test_a_cube_that_lies_still_stays_for_two_thousand_steps(model: GraphModel) -> None:
    one, none = np.ones((1, 1, 1)), np.zeros((1, 1, 3))
    lying = SceneState(("cube",), one * [0.0, 0.0, 0.05], one * [1.0, 0.0, 0.0, 0.0], none, none)
    motion = GraphEngine(model, toss_scene()).open(lying).rollout(2000 * model.step, frames=2001)
    assert np.abs(motion.position[0, :, 0] - [0.0, 0.0, 0.05]).max() < 1e-3
    assert np.abs(motion.quaternion[0, :, 0, 0]).min() > 1 - 1e-6


def test_no_contact_creates_energy(model: GraphModel) -> None:
    """From the last frame of free flight before a contact to the first one after it."""
    engine = GraphEngine(model, toss_scene(), dtype=torch.float64)
    start, height = thrown(60, 1), 0.05
    world = engine.world({}, len(start))
    now = moving_of(engine, world, start)
    before, touched, events = None, np.zeros(len(start), dtype=bool), 0
    for step in range(80):
        then, found, impulse = engine.network.advance(world, now, half=step == 0)
        hit = np.zeros(len(start), dtype=bool)
        hit[found.second[impulse.norm(dim=-1) > 1e-9].numpy()] = True
        mass, middle = world.solids.mass[:, 0], turn(-world.step / 2 * then.spin) @ then.rotation
        spinning = torch.einsum("nbi,nbij,nbj->n", then.spin, inertia_in_world(middle, world.solids.inertia), then.spin)
        lifted = (then.position + now.position)[:, 0, 2] / 2
        energy = mass / 2 * then.velocity[:, 0].pow(2).sum(-1) + spinning / 2 + mass * 9.81 * (lifted - height)
        energy = energy.numpy()
        if before is None:
            before = energy
        over = touched & ~hit
        assert (energy[over] <= 1.01 * before[over]).all()
        events += int(over.sum())
        before, touched, now = np.where(hit, before, energy), hit, then
    assert events > 15, "they have bounced"


class TestCorrection:
    """Tosses of a cube that rubs and springs otherwise than the calibration says."""

    def recorded(self, engine: GraphEngine, model: GraphModel, count: int, seed: int) -> Motions:
        starts = starts_of_tosses(count, np.random.default_rng(seed))
        motion = Sampled(engine.scene, engine, model.step).simulate(starts, {}, 45)
        none, every = np.zeros((count, 3)), [f"t{n}" for n in range(count)]
        by_com = np.zeros((count, 3, 3))
        args = (motion.position, motion.quaternion, none, by_com, np.ones(count))
        return Motions(engine.scene, tuple(every), model.step, starts, *args)

    def test_the_difference_is_found_and_kept(self, model: GraphModel, tmp_path: Path) -> None:
        truth = {**dict.fromkeys(PRIOR, 0.0), "friction": -0.25, "face_friction": -0.25, "damping": 0.2}
        scene = toss_scene()
        real = GraphEngine(replace(model, correction=truth), scene)
        calibrated = MotionModel(scene, {}, None)
        motions, others = (self.recorded(real, model, n, seed) for n, seed in ((5, 3), (20, 4)))
        found = corrected(model, calibrated, motions)
        assert found.width > 0
        assert found.model.correction["friction"] < -0.1
        found.model.save(tmp_path / "corrected")
        kept = load_graph(tmp_path / "corrected")
        assert kept.correction == pytest.approx(dict(found.model.correction))

        def error(learned: GraphModel) -> float:
            engine = GraphEngine(learned, scene)
            motion = Sampled(scene, engine, model.step).simulate(others.starts, {}, others.samples)
            return float(np.linalg.norm(motion.position - others.position, axis=-1).mean())

        assert error(kept) < 0.6 * error(model)
        tuned = fine_tuned(model, calibrated, motions, steps=3)
        assert any(
            not torch.equal(a, b) for a, b in zip(tuned.network.parameters(), model.network.parameters(), strict=True)
        )

    def test_a_corrected_model_is_corrected_anew(self, model: GraphModel) -> None:
        truth = {**dict.fromkeys(PRIOR, 0.0), "friction": -0.25, "face_friction": -0.25}
        scene, made = toss_scene(), replace(model, correction=truth)
        motions = self.recorded(GraphEngine(made, scene), model, 5, 3)
        found = corrected(made, MotionModel(scene, {}, None), motions)
        assert found.model.correction["friction"] < -0.1, "what was known before is found again, not lost"

    def test_recordings_at_another_rate_are_refused(self, model: GraphModel) -> None:
        scene = toss_scene()
        motions = self.recorded(GraphEngine(model, scene), model, 3, 5)
        slow = replace(model, step=0.5 * model.step)
        with pytest.raises(CaromError, match="has a step of 5 ms and the recordings one sample in 10 ms"):
            corrected(slow, MotionModel(scene, {}, None), motions)

    def test_where_nothing_differs_little_is_changed(self, model: GraphModel) -> None:
        scene = toss_scene()
        motions = self.recorded(GraphEngine(model, scene), model, 3, 5)
        found = corrected(model, MotionModel(scene, {}, None), motions)
        assert abs(found.model.correction["friction"]) < 0.02


def test_pushes_are_planned_by_gradient(model: GraphModel) -> None:
    engine = GraphEngine(model, push_scene())
    tasks = push_tasks(engine, 3, seed=2, duration=0.6)
    plans = plan_pushes(engine, tasks, guesses=3, epochs=6)
    assert sum(plan.miss < 0.01 for plan in plans) >= 2
    for plan in plans:
        assert plan.curve[-1] == plan.miss
        assert list(plan.curve) == sorted(plan.curve, reverse=True)
    again = tasks.misses(engine, np.array([plan.push for plan in plans]))
    assert again == pytest.approx([plan.miss for plan in plans], abs=1e-4)


def test_a_policy_of_pushes_learns_by_backpropagation(model: GraphModel) -> None:
    engine = GraphEngine(model, push_scene())
    tasks = push_tasks(engine, 64, seed=1, duration=0.6)
    made = train_pushes(engine, tasks, updates=14, batch=12, seed=0)
    first, last = (np.mean([row[1] for row in rows]) for rows in (made.curve[:4], made.curve[-4:]))
    assert last < 0.8 * first
    assert made.curve[-1][0] == 14 * 12 * 60
    push = made.policy.push(tasks)
    assert (push >= push_of(-np.ones(3))).all()
    assert (tasks.misses(engine, push) < 5 * REACHED).mean() > 0.3
