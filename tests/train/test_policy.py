import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sealed import reseal
from toy_env import ToyVecEnv

from carom.core.errors import CaromError
from carom.train import Policy, load_policy, policy_of, preset_of, save_policy
from carom.train.models import new_model

OBSERVATIONS = np.random.default_rng(1).uniform(-3, 3, (50, 6)).astype(np.float32)


def small(algorithm: str, **changes: object) -> object:
    """A preset small enough for tests."""
    numbers = {"envs": 4, "layers": (32, 16), "warm_up": 40, "batch": 40, "updates": 2, "rollout": 10, "buffer": 1000}
    return replace(preset_of("fast", algorithm), **{**numbers, **changes})


def model_of(algorithm: str, library: str) -> object:
    if library == "sbx":
        pytest.importorskip("sbx")
    return new_model(ToyVecEnv(4), small(algorithm), library=library, seed=1)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return policy_of(model_of("sac", "sb3"), environment="toy", made_by={"seed": 1})


@pytest.mark.parametrize("library", ["sb3", "sbx"])
@pytest.mark.parametrize("algorithm", ["sac", "ppo"])
def test_acts_as_the_model_it_was_taken_from(algorithm: str, library: str, tmp_path: Path) -> None:
    model = model_of(algorithm, library)
    taken = policy_of(model)
    assert taken.algorithm == algorithm
    assert taken.sizes == (6, 32, 16, 3)
    expected, _ = model.predict(OBSERVATIONS, deterministic=True)
    save_policy(tmp_path, taken)
    for one in (taken, load_policy(tmp_path)):
        actions = one.act(OBSERVATIONS)
        assert actions.dtype == np.float32
        np.testing.assert_allclose(actions, expected, atol=1e-5)


@pytest.mark.parametrize("squashed", [True, False])
def test_actions_keep_to_bounds_that_are_not_one(squashed: bool, policy: Policy) -> None:
    low, high = np.float32([-2, 0, 1]), np.float32([-1, 5, 1.5])
    loud = tuple(100 * w for w in policy.weights)
    actions = replace(policy, weights=loud, action_low=low, action_high=high, squashed=squashed).act(OBSERVATIONS)
    assert (actions >= low).all()
    assert (actions <= high).all()
    assert np.ptp(actions, axis=0) == pytest.approx(high - low, rel=0.05)


def test_save_and_load_keep_everything(policy: Policy, tmp_path: Path) -> None:
    save_policy(tmp_path, policy)
    again = load_policy(tmp_path)
    assert (again.environment, again.made_by, again.activation) == ("toy", {"seed": 1}, "relu")
    np.testing.assert_array_equal(again.observation_high, np.full(6, 10))
    versions = json.loads((tmp_path / "policy.json").read_text())["made_with"]
    assert {"carom", "torch", "stable-baselines3"} <= set(versions)


def test_loads_where_no_learner_is_installed(policy: Policy, tmp_path: Path) -> None:
    save_policy(tmp_path, policy)
    code = (
        "import sys; sys.modules['stable_baselines3'] = sys.modules['gymnasium'] = sys.modules['sbx'] = None\n"
        "from pathlib import Path; import numpy as np; from carom.train.policy import load_policy\n"
        f"print(load_policy(Path({str(tmp_path)!r})).act(np.zeros((2, 6))).shape)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "(2, 3)", run.stderr


@pytest.mark.parametrize("bad", [np.zeros(6), np.zeros((2, 5)), np.full((1, 6), np.nan)])
def test_refuses_other_observations(bad: np.ndarray, policy: Policy) -> None:
    with pytest.raises(CaromError, match="observations"):
        policy.act(bad)


def _header(folder: Path, **changes: object) -> None:
    reseal(folder / "policy.json", **changes)


def _tensors(folder: Path, **changes: torch.Tensor) -> None:
    path = folder / "policy.safetensors"
    save_file({**load_file(path), **changes}, path)
    reseal(folder / "policy.json")


DAMAGE = {
    "no header": (lambda f: (f / "policy.json").unlink(), "policy.json is missing"),
    "no weights": (lambda f: (f / "policy.safetensors").unlink(), "is missing"),
    "header is not JSON": (lambda f: (f / "policy.json").write_text("{"), "is damaged"),
    "header is a list": (lambda f: (f / "policy.json").write_text("[]"), "expected an object"),
    "other format": (lambda f: _header(f, format="carom-policy/9"), "expected format carom-policy/1"),
    "sizes are words": (lambda f: _header(f, sizes=["six"]), "key 'sizes.0': input should be a valid integer"),
    "one size": (lambda f: _header(f, sizes=[6]), "key 'sizes': list should have at least 2 items"),
    "bounds of others": (lambda f: _header(f, action=[[0], [1]]), "do not fit the sizes"),
    "bounds not finite": (lambda f: _header(f, action=[[-1] * 3, [float("nan")] * 3]), "finite bounds"),
    "bounds the wrong way": (lambda f: _header(f, action=[[1] * 3, [-1] * 3]), "the lower below the upper"),
    "bounds beyond numbers": (lambda f: _header(f, action=[[-1] * 3, [10**400] * 3]), "is damaged"),
    "endless size": (lambda f: _header(f, sizes=[float("inf"), 3]), "key 'sizes.0'"),
    "nested too deep": (lambda f: (f / "policy.json").write_text("[" * 100_000), "is damaged"),
    "unknown algorithm": (lambda f: _header(f, algorithm="td3"), "unknown algorithm 'td3'"),
    "unknown activation": (lambda f: _header(f, activation="gelu"), "relu or tanh"),
    "no made_by": (lambda f: _header(f, made_by=None), "key 'made_by': input should be"),
    "weights cut off": (lambda f: (f / "policy.safetensors").write_bytes(b"\x10"), "is damaged"),
    "other shapes": (lambda f: _tensors(f, **{"0.weight": torch.zeros(3, 3)}), "does not fit its header"),
    "one layer more": (lambda f: _tensors(f, **{"7.bias": torch.zeros(3)}), "does not fit its header"),
    "not finite": (lambda f: _tensors(f, **{"0.bias": torch.full((32,), torch.nan)}), "not finite"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_refuses_damaged_files_in_one_line(kind: str, policy: Policy, tmp_path: Path) -> None:
    save_policy(tmp_path, policy)
    damage, message = DAMAGE[kind]
    damage(tmp_path)
    with pytest.raises(CaromError, match=message) as caught:
        load_policy(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
