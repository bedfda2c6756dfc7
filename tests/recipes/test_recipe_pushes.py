"""Policies of pushes as recipes: trained, tried in the simulator, on a stand-in and on a reality of one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

from carom import recipes
from carom.core.errors import CaromError
from carom.engines.pushing import push_simulator
from carom.envs.pushing import pushing_task
from carom.envs.pushing.files import fingerprint_of
from carom.identify.result import Errors, Estimate, Identification
from carom.reality import push_standin
from carom.recipes.training_pushes import RANDOM, random_draws
from carom.recipes.trying_pushes import task_of, try_in_reality
from carom.recordings import read
from carom.scenes.parameters import PARAMETERS
from carom.train import Policy
from carom.train.push_trials import try_in_simulator


def by_hand() -> Policy:
    """A policy without training: tool towards the block, by the difference that it observes."""
    weights = np.zeros((2, 17), dtype=np.float32)
    weights[0, 14], weights[1, 15] = 10.0, 10.0
    ends = np.full(17, 20.0, dtype=np.float32)
    return Policy(
        "ppo",
        "carom/PushBlock-v0",
        "tanh",
        False,
        (weights,),
        (np.zeros(2, dtype=np.float32),),
        -ends,
        ends,
        -np.ones(2, dtype=np.float32),
        np.ones(2, dtype=np.float32),
        made_by={"pushing": fingerprint_of(pushing_task("planar-cube"))},
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("policy") / "here"
    made = recipes.train_pushes("planar-cube", out, training=recipes.PushingTraining(steps=3840), randomise=True)
    assert made.to_dict()["in_own_simulator"]["trials"] == 200
    assert "warning: it succeeds in less than 0.8" in made.notes()[-1]  # one update teaches nothing, and it says so
    assert made.next_commands() == (f"carom rollout {out} --on laminate",)
    return out


def test_draws_are_spread_over_the_whole_ranges() -> None:
    draws = random_draws(64, 0)
    for name in RANDOM:
        values, known = np.array([draw[name] for draw in draws]), PARAMETERS[name]
        z = known.to_unit(values)
        assert 0 <= z.min() < 0.1
        assert 0.9 < z.max() <= 1


def test_a_rollout_in_the_simulator_and_on_a_stand_in(trained: Path) -> None:
    own = recipes.rollout_pushes(trained, trials=5)
    assert own.recordings is None
    assert (trained / "trials.gif").read_bytes()[:3] == b"GIF"
    lab = recipes.rollout_pushes(trained, on="plain", trials=3)
    assert lab.recordings == trained / "trials-001"
    assert len(list(lab.recordings.glob("push_*.csv"))) == 3
    assert len(lab.to_dict()["distance_m"]) == 3
    assert lab.next_commands() == (f"carom check {lab.recordings}",)


def test_simulator_and_plain_stand_in_agree_on_what_a_policy_does(tmp_path: Path) -> None:
    """A tool that always goes towards the block pushes it away; on a table without effects about as far."""
    task, policy = pushing_task("planar-cube"), by_hand()
    like = {"ground_friction": 0.35, "striker_friction": 0.35}
    simulator = push_simulator(task.scene, tuple(like))
    simulated = try_in_simulator(policy, task, simulator, trials=48, draws=[like])
    lab = try_in_reality(policy, task, push_standin("plain", task.scene, seed=0), tmp_path / "lab", trials=48)
    assert lab.away.mean() == pytest.approx(simulated.away.mean(), rel=0.25)
    with pytest.raises(CaromError, match="the policy was trained with scene planar-cube, here it is planar-t"):
        try_in_simulator(policy, pushing_task("planar-t"), simulator)


def test_ends_are_read_off_the_recordings(tmp_path: Path) -> None:
    task, policy = pushing_task("planar-cube"), by_hand()
    lab = push_standin("plain", task.scene, seed=0)
    found = try_in_reality(policy, task, lab, tmp_path / "lab", trials=4, seed=3)
    for row, trajectory in enumerate(read(tmp_path / "lab").trajectories):
        goal = [trajectory.tags["target_x"], trajectory.tags["target_y"]]
        end = trajectory.position_world["block"][-1, :2]
        assert found.away[row] == pytest.approx(float(np.hypot(*(end - goal))), abs=2e-3)
        start = trajectory.position_world["block"][0, :2]
        assert np.hypot(*(end - start)) > 0.02  # it was pushed
    assert (found.success == (found.away <= 0.02)).all()


def identification(*names: str) -> Identification:
    estimates = tuple(Estimate(n, 0.37, "1", 0.3, 0.4, (0.0, 1.0), "identified", "") for n in names)
    errors = Errors(0.0, 0.0, 1.0, 3)
    return Identification("cma", "pushes", estimates, errors, None, "", 1, 0, 1.0, 0)


def test_identified_parameters_are_those_of_its_simulator(tmp_path: Path) -> None:
    identification("ground_friction", "mass_scale", "face_tilt").write(tmp_path / "parameters.yaml")
    training = recipes.PushingTraining(steps=2048)
    made = recipes.train_pushes("planar-cube", tmp_path / "p", training=training, params=tmp_path)
    assert made.policy.made_by["draws"] == [{"ground_friction": 0.37, "mass_scale": 0.37}]
    identification("face_tilt").write(tmp_path / "other.yaml")
    with pytest.raises(CaromError, match=r"none of its parameters \(face_tilt\) has a meaning in a scene of pushing"):
        recipes.train_pushes("planar-cube", tmp_path / "q", params=tmp_path / "other.yaml")
    with pytest.raises(CaromError, match="--params and --randomise: give one of them"):
        recipes.train_pushes("planar-cube", tmp_path / "q", params=tmp_path, randomise=True)


def test_wrong_use_is_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(CaromError, match=r"--on: unknown reality of pushes 'laminat' \(did you mean 'laminate'"):
        recipes.rollout_pushes(trained, on="laminat")
    with pytest.raises(CaromError, match=r"expected a name that ends in \.gif"):
        recipes.rollout_pushes(trained, animation=tmp_path / "a.png")
    with pytest.raises(CaromError, match="trials: expected 1 to"):
        recipes.rollout_pushes(trained, trials=0)
    with pytest.raises(CaromError, match="unknown scene of pushing"):
        recipes.train_pushes("arm-cub", tmp_path / "x")
    with pytest.raises(CaromError, match="trained with scene planar-cube, here it is planar-t"):
        recipes.rollout_pushes(trained, scene="planar-t")
    other = by_hand()
    assert task_of(other).scene.name == "planar-cube"
