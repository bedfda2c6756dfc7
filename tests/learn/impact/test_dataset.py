"""Simulated data and training: the same bytes after a kill and on any threads, and a network that learns."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from carom.core.errors import CaromError
from carom.engines.contact_frames import contact_frames, to_local
from carom.learn.impact import dataset
from carom.learn.impact.base_model import PRESETS, new_network, plain_features, plain_targets, plain_to_local
from carom.learn.impact.dataset import ImpactData, generate
from carom.learn.impact.sample import sample_parameters, sample_strikes
from carom.learn.impact.training import train
from carom.scenes.strike import Striker, StrikeScene, builtin

SQUARE = builtin("square")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "SHARD", 64)


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


@pytest.mark.parametrize("teacher", ["mujoco", "compliant"])
def test_a_deleted_shard_comes_back_with_the_same_bytes(teacher: str, tmp_path: Path) -> None:
    whole = generate(SQUARE, teacher, 150, tmp_path, threads=1)
    before = digests(tmp_path)
    assert sorted(before) == ["_header.json", *(f"impacts-{i:05d}.parquet" for i in range(3))]
    (tmp_path / "impacts-00001.parquet").unlink()
    again = generate(SQUARE, teacher, 150, tmp_path, threads=1)
    assert digests(tmp_path) == before
    assert again.simulated == 64
    np.testing.assert_array_equal(whole.post, again.post)
    np.testing.assert_array_equal(whole.values, again.values)
    third = generate(SQUARE, teacher, 150, tmp_path, threads=1)
    assert third.simulated == 0
    assert third.engine_share == 1.0


def test_thread_count_changes_no_byte(tmp_path: Path) -> None:
    for threads in (1, 2):
        generate(SQUARE, "mujoco", 128, tmp_path / str(threads), threads=threads)
    assert digests(tmp_path / "1") == digests(tmp_path / "2")


def test_more_impacts_keep_the_first_ones(tmp_path: Path) -> None:
    few = generate(SQUARE, "compliant", 64, tmp_path)
    many = generate(SQUARE, "compliant", 128, tmp_path)
    assert many.simulated == 64
    np.testing.assert_array_equal(few.post, many.post[: len(few.post)])


def test_another_seed_gives_other_impacts(tmp_path: Path) -> None:
    a, b = (generate(SQUARE, "compliant", 64, tmp_path / str(seed), seed=seed) for seed in (0, 1))
    assert not np.array_equal(a.post, b.post)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ("scene", "scene.target.outline_m"),
        ("teacher", r"teacher compliant \(now mujoco\)"),
        ("seed", r"seed 0 \(now 1\)"),
        ("bounds", r"ranges.speed_m_s .* \(now \[0.1, 0.8\]\)"),
    ],
)
def test_a_folder_of_other_impacts_is_refused(other: str, named: str, tmp_path: Path) -> None:
    generate(SQUARE, "compliant", 64, tmp_path)
    scene = {"scene": builtin("triangle"), "bounds": replace(SQUARE, speed=(0.1, 0.8))}.get(other, SQUARE)
    with pytest.raises(
        CaromError, match=rf"holds impacts with other settings: {named}.*; repeat them or choose another folder"
    ):
        generate(scene, "mujoco" if other == "teacher" else "compliant", 64, tmp_path, seed=int(other == "seed"))


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    generate(SQUARE, "compliant", 64, tmp_path)
    (tmp_path / "impacts-00000.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(
        CaromError, match=r"impacts-00000.parquet is damaged \(.*\); delete it and run the same command again"
    ):
        generate(SQUARE, "compliant", 64, tmp_path)


def test_progress_counts_up_to_what_was_asked(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    generate(SQUARE, "compliant", 100, tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(64, 100), (100, 100)]


@pytest.mark.parametrize("scene", [builtin("semi-cylinder"), replace(SQUARE, striker=Striker(width=0.03))])
def test_samples_stay_within_the_scene_s_ranges(scene: StrikeScene) -> None:
    rng = np.random.default_rng(0)
    case, values = sample_strikes(scene, 500, rng), sample_parameters(scene.parameters(), 500, rng)
    speed = np.linalg.norm(case.striker_velocity[:, :2], axis=-1)
    assert scene.speed[0] <= speed.min() < speed.max() <= scene.speed[1]
    frames = contact_frames(scene, case)
    deflection = np.arctan2(frames.velocity[:, 0], frames.velocity[:, 1])
    # blended normals, and corners that are met before the side, let a few per cent lie outside
    assert np.quantile(np.abs(deflection), 0.9) <= scene.deflection + 0.02
    low, high = (np.array([getattr(p, key) for p in scene.parameters()]) for key in ("low", "high"))
    assert ((values >= low - 1e-12) & (values <= high + 1e-12)).all()
    if scene.arc is not None:
        theta = np.arctan2(frames.point[:, 1], frames.point[:, 0])
        assert scene.arc[0] - 0.05 < theta.min() < theta.max() < scene.arc[1] + 0.05


def test_paper_preset_is_the_paper_s() -> None:
    preset = PRESETS["paper"]
    network = new_network(SQUARE, "mujoco", preset)
    hidden = [m for m in network.body if isinstance(m, nn.Linear)]
    assert [m.out_features for m in hidden] == [128, 128, 128]
    assert all(isinstance(m, nn.ReLU) for m in network.body if not isinstance(m, nn.Linear))
    assert (preset.steps, preset.learning_rate, preset.weight_decay, preset.decay) == (1000, 1e-3, 0.01, False)
    assert not network.mirror
    assert "default" in PRESETS
    assert new_network(SQUARE, "mujoco", PRESETS["default"]).mirror


def test_plain_outcomes_and_back() -> None:
    case = sample_strikes(SQUARE, 30, np.random.default_rng(1))
    frames, local = contact_frames(SQUARE, case), np.random.default_rng(2).normal(size=(30, 3))
    plain = torch.from_numpy(plain_targets(frames, local))
    np.testing.assert_allclose(plain_to_local(frames, plain), local, atol=1e-12)
    values = torch.from_numpy(sample_parameters(SQUARE.parameters(), 30, np.random.default_rng(3)))
    assert plain_features(SQUARE, frames, SQUARE.parameters(), values).shape == (30, 4 + len(SQUARE.parameters()))


@pytest.fixture(scope="module")
def impacts(tmp_path_factory: pytest.TempPathFactory) -> ImpactData:
    return generate(SQUARE, "compliant", 4096, tmp_path_factory.mktemp("impacts"))


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_a_little_training_helps_a_lot(preset: str, impacts: ImpactData) -> None:
    torch.set_num_threads(1)
    early, late = (train(SQUARE, "compliant", impacts, preset=preset, steps=steps) for steps in (2, 120))
    assert late.held_out["median-relative-error"] < 0.5 * early.held_out["median-relative-error"]
    assert late.curve[-1][2] < 0.3 * late.curve[0][2]
    assert not any(p.requires_grad for p in late.network.parameters())
    frames = contact_frames(SQUARE, impacts.strikes[:100])
    local = to_local(SQUARE, frames, late.predict(impacts.strikes[:100], impacts.values[:100]))
    truth = to_local(SQUARE, frames, impacts.post[:100])
    error = np.linalg.norm(local - truth, axis=-1) / np.linalg.norm(truth, axis=-1)
    assert np.median(error) < 2 * late.held_out["median-relative-error"]


def test_training_is_the_same_for_a_seed_and_leaves_the_global_one_alone(impacts: ImpactData) -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    a, b = (train(SQUARE, "compliant", impacts, steps=5, seed=3) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    for x, y in zip(a.network.state_dict().values(), b.network.state_dict().values(), strict=True):
        assert torch.equal(x, y)


def test_base_model_is_differentiable_in_its_parameters(impacts: ImpactData) -> None:
    model = train(SQUARE, "compliant", impacts, steps=5)
    frames = contact_frames(SQUARE, impacts.strikes[:8])
    values = torch.tensor([p.default for p in model.parameters], dtype=torch.float64, requires_grad=True)
    model.outcome(frames, values).pow(2).sum().backward()  # type: ignore[no-untyped-call]
    assert values.grad is not None
    assert (values.grad != 0).all()


def test_wrong_requests_are_refused(impacts: ImpactData, tmp_path: Path) -> None:
    with pytest.raises(CaromError, match=r"^unknown preset 'papr' \(did you mean 'paper'\?\); known: paper, default$"):
        train(SQUARE, "compliant", impacts, preset="papr")
    few = generate(SQUARE, "compliant", 64, tmp_path)
    with pytest.raises(
        CaromError, match=r"^64 simulated impacts are too few to train on; give --samples 1000 or more$"
    ):
        train(SQUARE, "compliant", few)
