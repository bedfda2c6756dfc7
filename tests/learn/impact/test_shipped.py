"""The base models that come with Carom: small, whole, right on a shape they never saw, and enough for `carom adapt`."""

import json
import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sealed import reseal
from small_loops import quick_strikes
from typed import typed

from carom.core.errors import ModelError
from carom.engines.contact_frames import contact_frames
from carom.learn.impact.base_files import load_bases, save_bases
from carom.learn.impact.dataset import simulated
from carom.learn.impact.features import feature_names, mirror_signs
from carom.learn.impact.sample import sample_strikes
from carom.learn.impact.shipped import HEADER, NETWORKS, load_any, shipped_bases
from carom.learn.impact.shipped.make import Plan, make_any
from carom.learn.impact.training import relative_errors
from carom.learn.impact.variety import random_scene
from carom.reality import sample_commands, standin
from carom.recordings import read
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import DISTILLED, Striker, StrikeScene, builtin, com_unknown

FOLDER = Path(str(files("carom.learn.impact.shipped")))
#: A kite that stands among no built-in shapes.
KITE = Shape("extruded", outline=((-0.03, -0.01), (0.0, -0.05), (0.04, 0.0), (0.0, 0.04)), height=0.04)
ROUND = StrikeScene("kite", Body("kite", "target", KITE, 0.2), Striker(radius=0.02), com_unknown(KITE))
FLAT = replace(ROUND, striker=Striker(width=0.02))


def test_files_are_in_the_package_and_small() -> None:
    size = sum((FOLDER / name).stat().st_size for name in (HEADER, NETWORKS))
    assert 100_000 < size < 5_000_000
    header = json.loads((FOLDER / HEADER).read_text())
    assert header["made_by"]["command"].startswith("python -m carom.learn.impact.shipped")
    assert {(n["teacher"], n["striker"]) for n in header["networks"]} == {
        (t, s) for t in DISTILLED for s in ("round", "flat")
    }


@pytest.mark.parametrize(
    ("scene", "teacher", "accuracy"),
    [(ROUND, "mujoco", 0.95), (ROUND, "compliant", 0.98), (FLAT, "mujoco", 0.75), (FLAT, "compliant", 0.95)],
)
def test_it_knows_its_teacher_on_a_shape_it_never_saw(scene: StrikeScene, teacher: str, accuracy: float) -> None:
    base = next(b for b in shipped_bases(scene) if b.teacher == teacher)
    errors = relative_errors(base, simulated(scene, teacher, 400, seed=9))
    assert (errors < 0.1).mean() > accuracy
    assert base.held_out["impacts"] == 512
    assert base.held_out["accuracy@0.1"] == pytest.approx((errors < 0.1).mean(), abs=0.06)


@pytest.mark.parametrize("scene", [ROUND, FLAT], ids=["round", "flat"])
def test_mirror_images_are_one_impact_exactly(scene: StrikeScene) -> None:
    for base in shipped_bases(scene):
        x = torch.randn(3000, len(feature_names(scene, base.teacher)))  # more than are answered together
        signs = torch.from_numpy(mirror_signs(feature_names(scene, base.teacher))).float()
        with torch.no_grad():
            a, b = base.network(x), base.network(x * signs)
        assert torch.equal(a * base.network.get_buffer("output_signs"), b)


def test_outcomes_can_be_differentiated_in_the_parameters() -> None:
    frames = contact_frames(ROUND, sample_strikes(ROUND, 5, np.random.default_rng(0)))
    for base in shipped_bases(ROUND):
        values = torch.tensor([p.default for p in base.parameters], dtype=torch.float64, requires_grad=True)
        base.outcome(frames, values).square().sum().backward()
        assert values.grad is not None
        assert torch.isfinite(values.grad).all()
        assert (values.grad != 0).sum() >= 4


def test_it_says_what_it_has_not_learned() -> None:
    base = shipped_bases(builtin("square"))[0]
    assert base.ranges is not None
    assert base.ranges.outside(base.scene) == ()
    strikes = sample_strikes(base.scene, 20, np.random.default_rng(0))
    assert base.within(contact_frames(base.scene, strikes)).all()
    fast = replace(strikes, striker_velocity=20 * strikes.striker_velocity)
    assert not base.within(contact_frames(base.scene, fast)).any()
    huge = replace(base.scene, target=Body("b", "target", Shape("box", size=(1.0, 1.0, 0.5)), 3.0))
    assert base.ranges.outside(huge) == ("target's extent in m is 1, learned were 0.03 to 0.4",)
    assert not replace(base, scene=huge).within(contact_frames(base.scene, strikes)).any()


def test_it_is_the_same_after_saving_with_a_corrected_model(tmp_path: Path) -> None:
    bases = shipped_bases(FLAT)
    save_bases(tmp_path, bases, made_by={})
    strikes = sample_strikes(FLAT, 10, np.random.default_rng(0))
    for before, after in zip(bases, load_bases(tmp_path), strict=True):
        assert after.ranges == before.ranges
        values = np.array([p.default for p in before.parameters])
        np.testing.assert_array_equal(after.predict(strikes, values), before.predict(strikes, values))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in (HEADER, NETWORKS):
        shutil.copy(FOLDER / name, tmp_path / name)
    return tmp_path


def test_another_file_than_the_header_was_written_for_is_refused(copy: Path) -> None:
    tensors = load_file(copy / NETWORKS)
    tensors["mujoco.round.head.bias"] += 1
    save_file(tensors, copy / NETWORKS)
    with pytest.raises(ModelError, match=r"networks.safetensors is damaged: it is not the file"):
        load_any(copy)


@pytest.mark.parametrize("damage", ["nan", "shape", "cut", "missing"])
def test_a_damaged_file_is_refused_by_name(copy: Path, damage: str) -> None:
    tensors = load_file(copy / NETWORKS)
    name = "compliant.flat.head.weight"
    tensors[name] = {"nan": tensors[name] * torch.nan, "shape": tensors[name][:, :5]}.get(damage, tensors[name])
    save_file({k: v.contiguous() for k, v in tensors.items()}, copy / NETWORKS)
    if damage == "cut":
        (copy / NETWORKS).write_bytes((copy / NETWORKS).read_bytes()[:5000])
    if damage == "missing":
        (copy / NETWORKS).unlink()
    else:
        reseal(copy / HEADER)
    words = {"nan": "not finite", "shape": "does not fit", "cut": "is damaged", "missing": "is missing"}
    with pytest.raises(ModelError, match=words[damage]):
        load_any(copy)


def test_random_scenes_are_within_the_stated_ranges() -> None:
    header_ranges = shipped_bases(ROUND)[0].ranges
    assert header_ranges is not None
    for i in range(60):
        scene = random_scene(np.random.default_rng([7, i]), flat=i % 2 == 0)
        outside = [w for w in header_ranges.outside(scene) if "height" not in w]  # an uneven mass changes k a little
        assert not outside, outside


def test_making_them_again_is_resumable_and_the_same_for_a_seed(tmp_path: Path) -> None:
    plan = Plan(scenes=2, steps=3, threads=1)
    make_any(tmp_path, plan)
    first = (tmp_path / NETWORKS).read_bytes()
    shutil.rmtree(tmp_path / "data" / "mujoco" / "flat" / "0001")
    (tmp_path / NETWORKS).unlink()
    make_any(tmp_path, plan)
    assert (tmp_path / NETWORKS).read_bytes() == first
    assert {base.teacher for base in load_any(tmp_path).values()} == set(DISTILLED)


def test_adapt_needs_no_model(tmp_path: Path) -> None:
    reality = standin("nylon-low", "square", seed=5)
    reality.execute(sample_commands(reality.shape, 6, np.random.default_rng(0)), tmp_path / "lab", seed=1)
    assert read(tmp_path / "lab").trajectories

    with quick_strikes():
        code, said, told = typed("adapt", tmp_path / "lab", "--out", tmp_path / "model", "--json", "-")
    assert code == 0, told
    assert json.loads(said)["strikes"] == 6
    code, said, told = typed("predict", tmp_path / "model", tmp_path / "lab", "--json", "-")
    assert code == 0, told
    assert len(json.loads(said)) == 6
    code, _, told = typed("adapt", "a", "b", tmp_path / "lab", "--out", tmp_path / "other")
    assert code == 2
    assert "adapt takes RECORDINGS, or MODEL and RECORDINGS; got 3 folders" in told
