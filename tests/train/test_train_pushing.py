"""Training of pushes: kills, warm starts, draws, terms; and that it learns."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.engines.pushing import push_simulator
from carom.envs.pushing import PushingBatch, pushing_task
from carom.envs.pushing.vector import PushingVecEnv
from carom.train import Policy, load_policy
from carom.train.infogap import InfoGap, Transitions
from carom.train.pushing import LEARNER, PRESETS, Centred, PushingTraining, train_pushing, unit_of

TASK = pushing_task("planar-cube")
SMALL = {"envs": 8, "layers": (16, 16), "warm_up": 64, "batch": 64, "updates": 2, "rollout": 16, "epochs": 2}
DRAWS = [{"ground_friction": 0.2}, {"ground_friction": 0.5}]


class KilledError(Exception):
    pass


def small(algorithm: str, **options: object) -> PushingTraining:
    return PushingTraining(algorithm, 1024, seed=3, preset=replace(PRESETS[algorithm], **SMALL), **options)  # type: ignore[arg-type]


def stop(what: str, done: int, total: int) -> None:
    if 500 <= done < total:
        raise KilledError


def files(folder: Path) -> dict[str, str]:
    found = {p.name: sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()}
    return {name: digest for name, digest in found.items() if not name.endswith("lock")}


def term(weight: float = 0.5) -> InfoGap:
    rng = np.random.default_rng(0)
    return InfoGap(
        Transitions(rng.normal(size=(50, 17)), rng.normal(size=(50, 2)), rng.normal(size=(50, 17))), weight=weight
    )


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_a_killed_training_ends_with_the_same_bytes(algorithm: str, tmp_path: Path) -> None:
    options = {"draws": DRAWS, "term": term()}
    train_pushing(TASK, tmp_path / "a", small(algorithm), times=tmp_path / "times.json", **options)
    with pytest.raises(KilledError):
        train_pushing(TASK, tmp_path / "b", small(algorithm), progress=stop, **options)
    assert not (tmp_path / "b" / "policy.json").exists()
    policy = train_pushing(TASK, tmp_path / "b", small(algorithm), **options)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert set(files(tmp_path / "a")) == {"settings.json", "policy.json", "policy.safetensors", LEARNER}
    assert json.loads((tmp_path / "times.json").read_text())["cpu"] > 0
    start, goals = TASK.sample(5, np.random.default_rng(0))
    acted = load_policy(tmp_path / "a").act(TASK.observe(start, goals))
    assert acted.shape == (5, 2)
    np.testing.assert_array_equal(acted, policy.act(TASK.observe(start, goals)))
    assert policy.made_by["pushing"]["scene"] == "planar-cube"


def same(one: Policy, other: Policy) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))


def test_draws_terms_and_seeds_change_what_is_learned(tmp_path: Path) -> None:
    plain = train_pushing(TASK, tmp_path / "plain", small("ppo"))
    assert not same(plain, train_pushing(TASK, tmp_path / "draws", small("ppo"), draws=DRAWS))
    assert not same(plain, train_pushing(TASK, tmp_path / "term", small("ppo"), term=term()))
    none = train_pushing(TASK, tmp_path / "none", small("ppo"), term=term(0.0))
    assert same(plain, none)  # a term without weight pays nothing
    with pytest.raises(CaromError, match="made_by"):
        train_pushing(TASK, tmp_path / "plain", small("ppo"), draws=DRAWS)  # other settings in the same folder


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_a_warm_start_begins_where_the_earlier_training_ended(algorithm: str, tmp_path: Path) -> None:
    first = train_pushing(TASK, tmp_path / "a", small(algorithm))
    still = replace(small(algorithm, start=tmp_path / "a"), steps=128)
    slow = replace(still.preset, learning_rate=1e-12)  # type: ignore[type-var]
    after = train_pushing(TASK, tmp_path / "b", replace(still, preset=slow))
    for one, other in zip(first.weights, after.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    other = pushing_task("arm-cube")
    with pytest.raises(CaromError, match="do not fit this training"):
        train_pushing(other, tmp_path / "c", still)
    (tmp_path / "a" / LEARNER).write_bytes(b"x")
    with pytest.raises(CaromError, match="damaged"):
        train_pushing(TASK, tmp_path / "d", still)


def test_rewards_are_told_in_units_of_standing_still() -> None:
    made = PushingVecEnv(PushingBatch(TASK, push_simulator(TASK.scene), count=64))
    env = Centred(made, unit_of(TASK))
    env.reset()
    _, reward, _, _ = env.step(np.zeros((64, 2), dtype=np.float32))
    assert abs(float(reward.mean())) < 0.15
    np.testing.assert_allclose(
        reward, made.batch.task.reward(made.batch.state, made.batch.goals) / unit_of(TASK) + 1, atol=1e-5
    )


def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaromError, match="unknown algorithm 'a2c'"):
        train_pushing(TASK, tmp_path / "a", PushingTraining("a2c"))
    with pytest.raises(CaromError, match="holds no policy"):
        train_pushing(TASK, tmp_path / "a", PushingTraining(start=tmp_path / "none"))
