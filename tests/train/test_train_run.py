import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bit_flips import accepted_flips
from toy_env import ToyVecEnv, best

from carom.core.artefacts import read_header
from carom.core.errors import CaromError
from carom.train import Policy, Preset, Training, load_policy, preset_of, train
from carom.train import run as module
from carom.train.checkpoint import (
    _jax_leaves,
    _restore_jax,
    drop_checkpoints,
    load_checkpoint,
    pack,
    save_checkpoint,
    unpack,
)
from carom.train.models import new_model, policy_of


class KilledError(Exception):
    pass


def small(algorithm: str) -> Preset:
    numbers = {"envs": 4, "layers": (16, 16), "warm_up": 40, "batch": 40, "updates": 2, "rollout": 10, "buffer": 120}
    return replace(preset_of("fast", algorithm), **numbers)


def run(out: Path, algorithm: str = "sac", make_env=ToyVecEnv, progress=None, made_by=None, **options) -> Policy:
    given = {"algo": algorithm, "steps": 200, "preset": small(algorithm), "seed": 3, **options}
    return train(make_env, out, Training(**given), progress=progress, made_by=made_by)


def stop_at(step: int, error: type[BaseException] = KilledError):
    def progress(what: str, done: int, total: int) -> None:
        if step <= done < total:
            raise error

    return progress


def assert_same(one: Policy, other: Policy) -> None:
    for a, b in zip(one.weights + one.biases, other.weights + other.biases, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """A training that nothing stopped."""
    return run(tmp_path_factory.mktemp("finished"))


# the buffer of 120 is full by then and begins anew, so its place is needed too
@pytest.mark.parametrize("algorithm", ["sac", "ppo"])
def test_goes_on_after_a_kill_bit_for_bit(algorithm: str, finished: Policy, tmp_path: Path) -> None:
    straight = finished if algorithm == "sac" else run(tmp_path / "a", algorithm)
    with pytest.raises(KilledError):
        run(tmp_path / "b", algorithm, progress=stop_at(133))
    assert len(list((tmp_path / "b").glob("checkpoint-*"))) == 1
    assert not (tmp_path / "b" / "policy.json").exists()
    seen: list[int] = []
    resumed = run(tmp_path / "b", algorithm, progress=lambda what, done, total: seen.append(done))
    assert seen[0] >= 132
    assert seen[-1] == 200
    assert_same(straight, resumed)
    assert not list((tmp_path / "b").glob("checkpoint*"))


@pytest.mark.parametrize("algorithm", ["sac", "ppo"])
def test_a_checkpoint_of_sbx_holds_all_of_it(algorithm: str, tmp_path: Path) -> None:
    """Training compiles for long; so every array is filled with numbers, saved, and compared with what comes back."""
    pytest.importorskip("sbx")
    env, rng = ToyVecEnv(4), np.random.default_rng(0)
    model, fresh = (new_model(env, small(algorithm), library="sbx", seed=seed) for seed in (1, 2))
    leaves = [np.asarray(leaf) for leaf in _jax_leaves(model)[0]]
    filled = {f"jax/{i}": rng.integers(0, 99, leaf.shape).astype(leaf.dtype) for i, leaf in enumerate(leaves)}
    _restore_jax(model, filled)
    model._last_obs, model._last_episode_starts, model.num_timesteps = env.reset(), np.ones(4, dtype=bool), 100
    save_checkpoint(tmp_path, model, env, {"a": 1})
    env.reset()
    assert load_checkpoint(tmp_path, fresh, env) == {"a": 1}
    new = _jax_leaves(fresh)[0]
    assert len(new) == len(filled) > 20
    for one, other in zip(filled.values(), new, strict=True):
        np.testing.assert_array_equal(one, other)
    assert fresh.num_timesteps == 100
    np.testing.assert_array_equal(model._last_obs, env.observations)


def test_quick_goes_on_after_a_kill_bit_for_bit_though_its_rate_falls(tmp_path: Path) -> None:
    quick = replace(preset_of("quick", "sac"), envs=8, layers=(16,), warm_up=40, batch=40, updates=2, buffer=120)
    straight = run(tmp_path / "a", preset=quick)
    with pytest.raises(KilledError):
        run(tmp_path / "b", preset=quick, progress=stop_at(133))
    assert_same(straight, run(tmp_path / "b", preset=quick))
    steady = run(tmp_path / "c", preset=replace(quick, fading=False))
    assert not np.array_equal(straight.weights[0], steady.weights[0])


def test_the_rate_of_quick_falls_to_zero_in_the_second_half_and_never_below() -> None:
    quick = preset_of("quick", "sac")
    model = new_model(ToyVecEnv(4), replace(quick, envs=4), library="sb3", seed=0)
    rates = [model.lr_schedule(left) for left in (1.0, 0.5, 0.25, 0.0, -0.01)]  # the last step may go beyond the end
    assert rates == [quick.learning_rate, quick.learning_rate, quick.learning_rate / 2, 0.0, 0.0]
    assert model.tau == quick.target_rate


def test_a_preset_says_how_long_it_trains_unless_told() -> None:
    assert [Training(preset=name).chosen.steps for name in ("paper", "fast", "quick")] == [200_000, 200_000, 120_000]
    assert Training(steps=5120, preset="quick").chosen.steps == 5120
    with pytest.raises(CaromError, match=r"unknown preset for ppo 'quick'; known: paper, fast"):
        preset_of("quick", "ppo")


def test_another_seed_is_another_policy(tmp_path: Path) -> None:
    one, other = run(tmp_path / "a", steps=100), run(tmp_path / "b", steps=100, seed=4)
    assert not np.array_equal(one.weights[0], other.weights[0])


def test_an_interrupt_keeps_what_was_done(finished: Policy, tmp_path: Path) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if done == 92:
            os.kill(os.getpid(), signal.SIGINT)

    former = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is former
    kept = json.loads((tmp_path / "checkpoint.json").read_text())["folder"]
    assert kept == "checkpoint-000000096"  # one rollout later, and not the 88 of the usual checkpoints
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, progress=stop_at(150, KeyboardInterrupt))
    assert_same(run(tmp_path), finished)


def test_a_kill_while_a_checkpoint_is_written_leaves_the_former(
    finished: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from carom.train import checkpoint

    write = checkpoint.write_header

    def killed(path: Path, value: dict[str, object]) -> None:
        if path.name == "state.json" and path.parent.name.endswith("-000000120"):
            raise KilledError
        write(path, value)

    monkeypatch.setattr(checkpoint, "write_header", killed)
    with pytest.raises(KilledError):
        run(tmp_path)
    monkeypatch.undo()
    assert json.loads((tmp_path / "checkpoint.json").read_text())["folder"] == "checkpoint-000000108"
    assert_same(run(tmp_path), finished)


def test_finished_is_returned_at_once_and_other_settings_are_refused(tmp_path: Path) -> None:
    first = run(tmp_path, steps=80, made_by={"simulator": "hybrid"})
    assert first.made_by["simulator"] == "hybrid"
    assert first.made_by["steps"] == 80

    def never(count: int) -> ToyVecEnv:
        raise AssertionError

    options = {"make_env": never, "made_by": {"simulator": "hybrid"}}
    again = run(tmp_path, steps=80, **options)
    assert_same(first, again)
    with pytest.raises(CaromError, match=r"steps 80 \(now 160\)"):
        run(tmp_path, steps=160, **options)
    with pytest.raises(CaromError, match=r"preset.learning_rate 0.001 \(now 0.1\)"):
        run(tmp_path, steps=80, **{**options, "preset": replace(small("sac"), learning_rate=0.1)})
    with pytest.raises(CaromError, match=r"made_by.simulator hybrid \(now mujoco\)"):
        run(tmp_path, steps=80, **{**options, "made_by": {"simulator": "mujoco"}})


@pytest.mark.parametrize("file", ["arrays.npz", "state.json", "tensors.safetensors"])
def test_a_damaged_checkpoint_is_named(file: str, tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        run(tmp_path, progress=stop_at(60))
    next(tmp_path.glob(f"checkpoint-*/{file}")).write_bytes(b"{}")
    with pytest.raises(CaromError, match=r"checkpoint.*damaged"):
        run(tmp_path)


def test_no_flipped_bit_of_a_checkpoint_or_policy_is_accepted_silently(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        run(tmp_path / "stopped", progress=stop_at(60))
    run(tmp_path / "policy", steps=40)
    env = ToyVecEnv(4)

    def checkpoint() -> str:
        model = new_model(env, small("sac"), library="sb3", seed=3)
        settings = tmp_path / "stopped" / "settings.json"
        read_header(settings, module.SettingsHeader, module.FORMAT, missing="", again="")
        extra = load_checkpoint(tmp_path / "stopped", model, env)
        weights = [t.tolist() for t in model.policy.state_dict().values()]
        return str(
            [extra, weights, model.replay_buffer.rewards.tolist(), model.num_timesteps, env.observations.tolist()]
        )

    def policy() -> str:
        settings = tmp_path / "policy" / "settings.json"
        read_header(settings, module.SettingsHeader, module.FORMAT, missing="", again="")
        found = load_policy(tmp_path / "policy")
        return str([w.tolist() for w in (*found.weights, *found.biases)]) + str(dict(found.made_by))

    count = int(os.environ.get("CAROM_FLIPS", "60"))
    assert accepted_flips(tmp_path / "stopped", checkpoint, count) == []
    assert accepted_flips(tmp_path / "policy", policy, count) == []


def test_no_file_of_a_training_is_pickled(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        run(tmp_path, progress=stop_at(100))
    kinds = {p.suffix for p in tmp_path.rglob("*") if p.is_file() and "tensorboard" not in p.parts}
    assert kinds == {".json", ".npz", ".safetensors"}
    with np.load(next(tmp_path.glob("checkpoint-*/arrays.npz")), allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
        assert len(archive["buffer/rewards"]) == 24  # what is filled: 96 transitions of 4 environments


def test_time_is_told_apart(tmp_path: Path) -> None:
    timing = run(tmp_path, steps=120).made_by["timing"]
    assert set(timing) == {"environment", "updates", "rest", "total", "cpu"}
    assert timing["updates"] > timing["environment"] > 0
    assert timing["environment"] + timing["updates"] + timing["rest"] == pytest.approx(timing["total"], abs=2e-3)
    assert load_policy(tmp_path).made_by["timing"] == timing


def test_learns_the_best_action(tmp_path: Path) -> None:
    light = replace(preset_of("fast", "sac"), layers=(64, 64), batch=256, warm_up=500, updates=8)
    learned = train(ToyVecEnv, tmp_path, Training(steps=6000, preset=light))
    seen = np.random.default_rng(5).uniform(-1, 1, (500, 6)).astype(np.float32)
    error = np.abs(learned.act(seen) - best(seen)).mean()
    assert error < 0.06  # an action of zero: 0.25


def test_logs_are_csv_where_tensorboard_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    for done in (0, 80):
        logger = module._logger(tmp_path, done)
        logger.record("a", 1)
        logger.dump(done)
        logger.close()
    assert len(list(tmp_path.glob("*.csv"))) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algo": "td3"}, "unknown algorithm 'td3'"),
        ({"preset": "fats"}, "did you mean 'fast'"),
        ({"library": "rllib"}, "unknown library"),
        ({"steps": 10}, "steps: expected 128 or more"),
        ({"algo": "sac", "preset": preset_of("fast", "ppo")}, "is for ppo"),
    ],
)
def test_says_what_is_wrong_with_a_request(options: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(CaromError, match=message):
        train(ToyVecEnv, tmp_path, Training(**options))


def test_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sbx", None)
    with pytest.raises(CaromError, match="pip install sbx-rl"):
        run(tmp_path, library="sbx")
    run(tmp_path, steps=40)  # nothing was begun: the folder is free for another library


def test_pack_gives_back_nested_state() -> None:
    state = {"a": np.arange(3), "b": [1, None, {"array": "no array", "c": np.float64(2.5)}], "d": {}}
    arrays: dict[str, np.ndarray] = {}
    again = unpack(json.loads(json.dumps(pack(state, arrays))), arrays)
    np.testing.assert_array_equal(again.pop("a"), np.arange(3))
    assert again == {"b": [1, None, {"array": "no array", "c": 2.5}], "d": {}}


def test_policies_are_not_taken_from_what_they_cannot_keep() -> None:
    from stable_baselines3 import SAC, TD3
    from stable_baselines3.common.vec_env import VecNormalize

    for model, reason in (
        (SAC("MlpPolicy", VecNormalize(ToyVecEnv(2)), buffer_size=10), "VecNormalize"),
        (TD3("MlpPolicy", ToyVecEnv(2), buffer_size=10), "SAC or PPO, got TD3"),
    ):
        with pytest.raises(CaromError, match=reason):
            policy_of(model)


def test_folders_that_only_look_like_checkpoints_stay(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoint-mine"
    kept.mkdir()
    drop_checkpoints(tmp_path)
    assert kept.is_dir()
