"""Policies between models and realities: what a training is known by, and trials by whatever fulfils `Reality`."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

from carom.core.artefacts import write_header
from carom.core.errors import CaromError
from carom.envs import ROUTES
from carom.envs.task import strikes_of, task_scene
from carom.reality import sample_commands, standin
from carom.recipes import policies, rollout
from carom.recipes.policies import EngineOptions, reality_strike, standin_strike, training_engines
from carom.recordings import read, write
from carom.scenes.load import scene_to_dict
from carom.scenes.strike import builtin, from_bodies
from carom.state import StrikeCommands, wrap_angle
from carom.train import Policy, run_trials, save_policy

LAB = standin("nylon-padded", seed=4)


def commands(count: int) -> StrikeCommands:
    return sample_commands(LAB.shape, count, np.random.default_rng(3), speed=(0.4, 0.8))


def test_rests_are_read_off_what_a_reality_records(tmp_path: Path) -> None:
    strike, wanted = reality_strike(LAB, tmp_path, seed=7), commands(5)
    for call in (1, 2):  # every call is other strikes, with their own scatter
        rest, struck = strike(wanted)
        truth = LAB.truth(wanted, seed=7 + call).rest
        assert struck.all()
        np.testing.assert_allclose(rest[:, :2], truth[:, :2], atol=1e-3)  # oil: it creeps for long
        np.testing.assert_allclose(wrap_angle(rest[:, 2] - truth[:, 2]), 0.0, atol=0.01)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["strikes-001", "strikes-002"]


class Misses:
    """A robot that never reaches the block, or that loses recordings."""

    def __init__(self, keep: int) -> None:
        self.keep = keep

    def execute(self, commands: StrikeCommands, folder: str | Path, *, seed: int) -> Path:
        found = read(LAB.execute(commands, folder, seed=seed))
        for trajectory in found.trajectories[: self.keep]:
            trajectory.position_world["striker"][:, 0] += 5.0
            trajectory.position_world["block"][:] = trajectory.position_world["block"][:1]
            trajectory.quaternion_world["block"][:] = trajectory.quaternion_world["block"][:1]
        there = Path(f"{folder}-seen")
        kept = type(found)(
            there, found.bodies, found.trajectories[: self.keep], gravity=found.gravity, ground=found.ground
        )
        write(there, kept)
        return there


def test_a_strike_that_misses_leaves_the_block_and_a_lost_recording_is_named(tmp_path: Path) -> None:
    wanted = commands(2)
    rest, struck = reality_strike(Misses(2), tmp_path / "a")(wanted)
    assert not struck.any()
    np.testing.assert_array_equal(rest, wanted.target_pose)
    with pytest.raises(CaromError, match="expected a recording for each of 2 strikes, got 1"):
        reality_strike(Misses(1), tmp_path / "b")(wanted)


HEXAGON = 0.05 * np.column_stack([np.cos(np.arange(6) * np.pi / 3), np.sin(np.arange(6) * np.pi / 3)])


@pytest.mark.parametrize("shape", ["square", "triangle", HEXAGON])
def test_a_policy_is_tried_on_a_stand_in_of_its_own_shape(tmp_path: Path, shape: str | np.ndarray) -> None:
    bodies = standin("nylon-low", shape, seed=0).bodies
    scene = task_scene(from_bodies(bodies["block"], bodies["striker"]))
    weights, low, seen = np.zeros((3, 8), np.float32), np.full(3, -1, np.float32), np.full(8, 10, np.float32)
    made_by = {"strikes_mean": strikes_of(scene), "scene": scene_to_dict(scene), "length_m": 0.2}
    straight = np.array([0.0, 0.0, -0.3], np.float32)  # a square blow on the middle, 0.41 m/s, whatever it sees
    saved = Policy("ppo", "test", "tanh", False, (weights,), (straight,), -seen, seen, low, -low, made_by)
    save_policy(tmp_path, saved)
    tried = rollout(tmp_path, on="nylon-low", routes=["1"], trials=20)
    (trials,) = tried.trials
    assert trials.route.length == 0.2
    assert trials.route.points[-1].tolist() == [0.2, 0.0]
    assert (trials.strikes > 0).all()
    moved = np.linalg.norm(np.diff(trials.path[:, :2, :2], axis=1)[:, 0], axis=1)
    assert (moved > 0.03).all()  # every blow met a side of this block
    with pytest.raises(CaromError, match="the policy was trained with shape"):
        run_trials(saved, standin_strike(LAB, seed=0), builtin("semi-cylinder"), ROUTES["1"], trials=1)


class Fake:
    def simulator(self, engine: str, *, threads: int) -> str:
        return engine


def test_a_training_is_known_by_all_that_its_model_holds_and_not_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "load_hybrid", lambda folder: Fake())

    def digest(name: str, friction: float) -> str:
        folder = tmp_path / name / "hybrid"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "networks.safetensors").write_bytes(b"weights")
        write_header(folder / "hybrid.json", {"friction": friction})
        _, made_by = training_engines(EngineOptions(tmp_path / name), seed=0, threads=1)
        return str(made_by["digest"])

    first = digest("a", 0.2)
    assert digest("b", 0.2) == first
    assert digest("a", 0.4) != first  # its friction is no weight of a network
