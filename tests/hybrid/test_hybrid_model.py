"""Students of impact models, their draws, and hybrids on disk."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from sealed import reseal

from carom.compare.metrics import relative_error
from carom.core.errors import CaromError, ModelError
from carom.engines import Rollout, slider_for
from carom.engines.contact_frames import contact_frames
from carom.hybrid import HybridModel, HybridSimulator, LearnedImpact, load_hybrid, make_hybrid, save_hybrid
from carom.hybrid.draws import hybrid_draws
from carom.learn import Student, teach
from carom.learn.impact.adapted_model import Prediction
from carom.learn.impact.dataset import generate
from carom.learn.impact.ranges import within_learned
from carom.learn.impact.sample import sample_strikes
from carom.learn.impact.student import Perturbed
from carom.learn.impact.training import train
from carom.reality import Effects, sample_commands, standin
from carom.recordings import read, scene_of, strike_impacts
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Array, Strikes

SQUARE, SEMI = builtin("square"), builtin("semi-cylinder")
SPREAD = np.array([0.03, 0.03, 1.0])  #: [m/s, m/s, rad/s] that the teacher states


class Rigid:
    """Frictionless impact with restitution 0.6, that says how sure it is."""

    def __init__(self, scene: StrikeScene, std: Array = SPREAD) -> None:
        self.scene, self.std = scene, std

    def predict(self, strikes: Strikes) -> Prediction:
        frames = contact_frames(self.scene, strikes)
        k2, lever = self.scene.gyration_radius**2, frames.lever[:, 0]
        push = 1.6 * frames.velocity[:, 1] / (1 + lever**2 / k2)
        post = strikes.target_velocity + np.column_stack([push[:, None] * frames.axes[:, 1], push * lever / k2])
        return Prediction(post, np.tile(self.std, (len(strikes), 1)), within_learned(self.scene, frames))


@pytest.fixture(scope="module")
def student() -> Student:
    return teach(Rigid(SEMI), steps=400)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> HybridModel:
    """A hybrid of a small base model and a few strikes: everything that is on disk, quickly made."""
    reality = standin("resin-high", "square", seed=2, effects=Effects.none())
    commands = sample_commands(reality.shape, 6, np.random.default_rng(0))
    recordings = read(reality.execute(commands, tmp_path_factory.mktemp("lab") / "strikes", seed=1))
    scene = scene_of(recordings)
    data = generate(scene, "compliant", 2048, tmp_path_factory.mktemp("data"))
    base = train(scene, "compliant", data, steps=60)
    impacts, _ = strike_impacts(recordings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("carom.learn.impact.student.SAMPLES", 640)
        return make_hybrid([base], impacts, recordings, fixed={"ground_friction": 0.45}, steps=60)


@pytest.fixture
def saved(hybrid: HybridModel, tmp_path: Path) -> Path:
    save_hybrid(tmp_path / "model", hybrid, made_by={"command": "test"})
    return tmp_path / "model"


def starting(scene: StrikeScene, count: int, seed: int = 0) -> Strikes:
    strikes = sample_strikes(scene, count, np.random.default_rng(seed))
    return replace(strikes, striker_pose=strikes.striker_pose - 0.03 * strikes.striker_velocity)


def identical(one: Rollout, other: Rollout) -> None:
    for field in fields(Rollout):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)


def test_a_student_answers_as_its_teacher_does(student: Student) -> None:
    strikes = sample_strikes(SEMI, 400, np.random.default_rng(9))
    told, said = Rigid(SEMI).predict(strikes), student.predict(strikes)
    error = relative_error(said.post, told.post, SEMI.gyration_radius)
    assert np.median(error) < 0.02
    assert student.fidelity["median"] == pytest.approx(np.median(error), rel=0.5)  # and says how well
    assert student.fidelity["p95"] > student.fidelity["median"]
    np.testing.assert_array_equal(said.known, told.known)


def test_a_student_is_as_sure_as_its_teacher(student: Student) -> None:
    strikes = sample_strikes(SEMI, 200, np.random.default_rng(10))
    said = student.predict(strikes).post_std
    np.testing.assert_allclose(np.median(said, axis=0), SPREAD, rtol=0.1)
    assert teach(Rigid(SEMI, np.zeros(3)), steps=5).spread is None
    assert teach(Rigid(SEMI, np.full(3, np.nan)), steps=5).spread is None


def test_same_seed_same_student() -> None:
    strikes = sample_strikes(SQUARE, 20, np.random.default_rng(11))
    one, two, other = (teach(Rigid(SQUARE), steps=20, seed=seed).predict(strikes).post for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_teaching_leaves_the_global_seed_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    teach(Rigid(SQUARE), steps=2)
    assert torch.rand(1) == expected


def test_a_teacher_without_numbers_is_refused() -> None:
    class Broken(Rigid):
        def predict(self, strikes: Strikes) -> Prediction:
            said = super().predict(strikes)
            return replace(said, post=np.full_like(said.post, np.nan))

    with pytest.raises(CaromError, match=r"^scene 'square': the impact model gives no finite outcome"):
        teach(Broken(SQUARE), steps=2)


def test_a_perturbed_student_is_off_by_so_many_standard_deviations(student: Student) -> None:
    strikes = sample_strikes(SEMI, 50, np.random.default_rng(12))
    plain, frames = student.predict(strikes), contact_frames(SEMI, strikes)
    np.testing.assert_array_equal(Perturbed(student, np.zeros(3)).predict(strikes).post, plain.post)
    shift = np.array([0.5, -2.0, 1.5])
    off = Perturbed(student, shift).predict(strikes).post - plain.post
    local = np.einsum("nai,ni->na", frames.axes, off[:, :2]) / plain.post_std[:, :1]
    np.testing.assert_allclose(local, np.tile(shift[:2], (50, 1)), atol=1e-9)
    np.testing.assert_allclose(off[:, 2] / plain.post_std[:, 2], shift[2], rtol=1e-9)


def test_draws_scatter_about_the_hybrid_itself(student: Student) -> None:
    own = HybridSimulator(LearnedImpact(SEMI, student, slider_for(SEMI, 0.3)), threads=1)
    strikes = starting(SEMI, 12)
    posts = np.array([draw.rollout(strikes, 0.1).post for draw in hybrid_draws(own, 48, friction_spread=0.03)])
    plain = own.rollout(strikes, 0.1).post
    free = np.abs(np.median(posts, axis=0) - plain) < 0.5 * SPREAD  # but where the guard holds some back
    assert free.mean() > 0.9
    np.testing.assert_allclose(posts.std(axis=0)[:, 2].mean(), SPREAD[2], rtol=0.25)
    frictions = np.log([draw.impact.slider.friction / 0.3 for draw in hybrid_draws(own, 48, friction_spread=0.03)])
    assert frictions.mean() == pytest.approx(0.0, abs=1e-12)
    assert frictions.std() == pytest.approx(0.03, rel=0.25)
    again = hybrid_draws(own, 48, friction_spread=0.03)[-1]
    np.testing.assert_array_equal(posts[-1], again.rollout(strikes, 0.1).post)


def test_mean_of_perturbed_students_is_the_student(student: Student) -> None:
    own = HybridSimulator(LearnedImpact(SEMI, student, slider_for(SEMI, 0.3)), threads=1)
    strikes = sample_strikes(SEMI, 30, np.random.default_rng(13))
    draws = hybrid_draws(own, 5, friction_spread=0.0)
    mean = np.mean([draw.impact.model.predict(strikes).post for draw in draws], axis=0)
    np.testing.assert_allclose(mean, student.predict(strikes).post, atol=1e-9)


def test_draws_in_mujoco_differ_in_friction_too(student: Student) -> None:
    learned = LearnedImpact(SEMI, student, slider_for(SEMI, 0.3))
    own = HybridSimulator(learned, {"striker_damping": 0.5}, sliding="mujoco", threads=1)
    draws = hybrid_draws(own, 4, friction_spread=0.03)
    for draw in draws:
        assert draw.engine.values["ground_friction"] == pytest.approx(draw.impact.slider.friction)
        assert draw.engine.values["striker_damping"] == 0.5


def test_too_few_draws_or_a_model_that_is_always_sure_are_refused(student: Student) -> None:
    learned = LearnedImpact(SEMI, student, slider_for(SEMI, 0.3))
    for count in (1, 0, -2):
        with pytest.raises(CaromError, match=rf"^draws: expected 2 or more, got {count}$"):
            hybrid_draws(HybridSimulator(learned, threads=1), count, friction_spread=0.03)
    for model in (replace(student, spread=None), Rigid(SEMI)):
        with pytest.raises(CaromError, match=r"^this needs a model that states its uncertainty"):
            hybrid_draws(HybridSimulator(replace(learned, model=model), threads=1), 4, friction_spread=0.03)


def test_a_hybrid_survives_the_disk(hybrid: HybridModel, saved: Path) -> None:
    again = load_hybrid(saved)
    assert again.sliding == hybrid.sliding
    assert again.values == hybrid.values
    assert again.student.fidelity == hybrid.student.fidelity
    assert again.scene.signature() == hybrid.scene.signature()
    strikes = starting(hybrid.scene, 8)
    for engine in ("hybrid", "hybrid-mujoco", "mujoco"):
        one, two = (h.simulator(engine, threads=1).rollout(strikes, 0.3, frames=4) for h in (hybrid, again))
        identical(one, two)
    one, two = (h.simulator(exact=True, threads=1).rollout(strikes, 0.3, frames=4) for h in (hybrid, again))
    np.testing.assert_allclose(one.target_pose, two.target_pose, atol=1e-9)


def test_a_hybrid_slides_as_it_was_recorded(hybrid: HybridModel) -> None:
    assert hybrid.sliding.friction == pytest.approx(0.45, rel=0.04)
    simulator = hybrid.simulator(threads=1)
    assert isinstance(simulator, HybridSimulator)
    assert simulator.impact.lag == hybrid.sliding.lag
    assert simulator.engine.values["ground_friction"] == pytest.approx(0.45)


def test_an_engine_that_does_not_exist_is_refused(hybrid: HybridModel) -> None:
    with pytest.raises(CaromError, match=r"^unknown engine 'mujoko' \(did you mean 'mujoco'\?\)"):
        hybrid.simulator("mujoko")


def test_a_missing_hybrid_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no hybrid simulator \(hybrid/hybrid\.json is missing\): make it with"):
        load_hybrid(tmp_path)


def test_an_interrupted_save_is_no_hybrid(saved: Path) -> None:
    (saved / "hybrid" / "hybrid.json").unlink()  # the header is written last
    with pytest.raises(ModelError, match="holds no hybrid simulator"):
        load_hybrid(saved)


def _set(header: dict[str, object], path: str, value: object) -> None:
    *parents, last = path.split(".")
    place = header
    for name in parents:
        place = place[name]  # type: ignore[assignment]
    place[last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", "carom-hybrid/9", r"hybrid\.json: expected format carom-hybrid/2, got carom-hybrid/9"),
        ("sliding.friction", "rough", r"hybrid\.json: key 'sliding.friction': input should be a valid number"),
        ("sliding.friction", -0.2, r"must be finite, the first two positive"),
        ("sliding.size", 0.0, r"must be finite, the first two positive"),
        ("sliding.lag", float("nan"), r"must be finite, the first two positive"),
        ("sliding.colour", 1.0, r"hybrid\.json: key 'sliding\.colour': unexpected keyword argument"),
        ("sliding", None, r"hybrid\.json: key 'sliding'"),
        ("engine_values", [1, 2], r"hybrid\.json: key 'engine_values'"),
        ("engine_values.ground_friction", float("inf"), r"must be finite, the first two positive"),
        ("engine_values.com_y", 10**400, r"hybrid\.json is damaged: OverflowError"),
    ],
)
def test_a_damaged_header_is_named(saved: Path, path: str, value: object, message: str) -> None:
    place = saved / "hybrid" / "hybrid.json"
    header = json.loads(place.read_text())
    _set(header, path, value)
    reseal(place, **header)
    with pytest.raises(ModelError, match=message):
        load_hybrid(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", "\udcff"])
def test_a_header_that_is_none_is_named(saved: Path, text: str) -> None:
    (saved / "hybrid" / "hybrid.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ModelError, match=r"hybrid\.json is damaged"):
        load_hybrid(saved)


def test_a_damaged_table_of_slides_is_named_and_one_of_other_slides_is_not_used(saved: Path) -> None:
    place, header = saved / "hybrid" / "slides.safetensors", saved / "hybrid" / "hybrid.json"
    tensors = load(place.read_bytes())
    table = load_hybrid(saved).slides
    assert table is not None
    np.testing.assert_array_equal(table.coefficients, tensors["coefficients"])
    for name, spoilt in (("coefficients", tensors["coefficients"][0]), ("numbers", tensors["numbers"][:3])):
        place.write_bytes(save(tensors | {name: spoilt.contiguous()}))
        reseal(header)
        with pytest.raises(ModelError, match=r"slides\.safetensors is damaged"):
            load_hybrid(saved)
    place.write_bytes(save(tensors | {"points": 1.1 * tensors["points"]}))
    reseal(header)
    engine = load_hybrid(saved).simulator(threads=1)
    assert isinstance(engine, HybridSimulator)
    assert engine.impact.slider.table is None
    place.unlink()
    with pytest.raises(ModelError, match=r"slides\.safetensors is missing"):
        load_hybrid(saved)


def test_missing_or_damaged_networks_are_named(saved: Path, hybrid: HybridModel) -> None:
    place = saved / "hybrid" / "student.safetensors"
    whole = place.read_bytes()
    place.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match=r"student\.safetensors is damaged"):
        load_hybrid(saved)
    shutil.copy(saved / "hybrid" / "correction.safetensors", place)  # tensors, but of something else
    reseal(saved / "hybrid" / "hybrid.json")
    with pytest.raises(ModelError, match=r"student\.safetensors does not fit its scene"):
        load_hybrid(saved)
    place.unlink()
    with pytest.raises(ModelError, match=r"student\.safetensors is missing"):
        load_hybrid(saved)
