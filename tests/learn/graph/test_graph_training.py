"""Training of the graph simulator: it learns, it goes on after a kill to the same bytes, and its folder is checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sealed import reseal

from carom.core.errors import CaromError, ModelError
from carom.engines import MujocoEngine
from carom.learn.graph import GraphEngine, Recipe, Stage, load_graph, new_network, train_graph
from carom.learn.graph.training import rollout_errors
from carom.scale import Variation, calibration, scale, toss
from carom.scenes.free import toss_scene
from carom.state import SceneState

SHORT = Recipe(stages=(Stage(1, 128, 60), Stage(3, 16, 6)), single=32, judged_every=11)
SAME = Variation(size=(1.0, 1.0), aspect=1.0, mass=(1.0, 1.0))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tosses") / "data"
    source = toss(rate=100.0, duration=0.6)
    return scale(source, calibration(None), out, count=60, variation=SAME, threads=1).folder


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("graph") / "model"
    made = train_graph([data], out, recipe=SHORT)
    places = [row[2] for row in made.curve]
    assert places[-1] < 0.9 * places[0], "rollouts that it has not seen get better"
    return out


class KilledError(Exception):
    pass


def test_a_killed_training_ends_with_the_same_bytes(data: Path, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    for moment in (5, 25, 40, 62):

        def stop(_: str, done: int, __: int, moment: int = moment) -> None:
            if done == moment:
                raise KilledError

        with pytest.raises(KilledError):
            train_graph([data], out, recipe=SHORT, progress=stop)
    train_graph([data], out, recipe=SHORT)
    for name in ("network.safetensors", "graph.json"):
        assert (out / name).read_bytes() == (trained / name).read_bytes(), name
    assert not (out / "checkpoint").exists()


def test_a_training_is_not_mixed_with_another(data: Path, tmp_path: Path) -> None:
    def stop(_: str, done: int, __: int) -> None:
        if done == 12:
            raise KilledError

    with pytest.raises(KilledError):
        train_graph([data], tmp_path / "x", recipe=SHORT, progress=stop)
    with pytest.raises(CaromError, match="holds a training with other settings or other data"):
        train_graph([data], tmp_path / "x", recipe=SHORT, seed=1)


def test_what_is_saved_comes_back(trained: Path) -> None:
    model = load_graph(trained)
    assert model.step == pytest.approx(0.01)
    assert model.ranges["width"] == pytest.approx((0.1, 0.1))
    assert set(model.held_out) == {"place", "angle", "error"}
    again = load_graph(str(trained))
    for one, other in zip(model.network.parameters(), again.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_damaged_folders_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no graph simulator .*carom train-graph"):
        load_graph(tmp_path)
    place = tmp_path / "copy"
    place.mkdir()
    for name in ("network.safetensors", "graph.json"):
        (place / name).write_bytes((trained / name).read_bytes())
    weights = (place / "network.safetensors").read_bytes()
    (place / "network.safetensors").write_bytes(weights[:-3] + b"abc")
    with pytest.raises(ModelError, match=r"network\.safetensors is damaged"):
        load_graph(place)
    (place / "network.safetensors").write_bytes(weights)
    header = json.loads((place / "graph.json").read_text())
    reseal(place / "graph.json", **{**header, "sizes": {"hidden": 8, "memory": 4, "layers": 2}})
    with pytest.raises(ModelError, match=r"network\.safetensors is damaged"):
        load_graph(place)


def test_wrong_data_are_refused(data: Path, tmp_path: Path) -> None:
    few = scale(toss(rate=100.0, duration=0.3), calibration(None), tmp_path / "few", count=5, threads=1).folder
    with pytest.raises(CaromError, match="5 trajectories are too few to train on"):
        train_graph([few], tmp_path / "x")
    faster = scale(toss(rate=200.0, duration=0.3), calibration(None), tmp_path / "fast", count=5, threads=1).folder
    with pytest.raises(CaromError, match="different sample periods"):
        train_graph([data, faster], tmp_path / "x")
    rounded = scale(toss(rate=100.003, duration=0.3), calibration(None), tmp_path / "near", count=5, threads=1).folder
    with pytest.raises(CaromError, match="10 trajectories are too few"):
        train_graph([few, rounded], tmp_path / "x")
    with pytest.raises(CaromError, match="expected one folder"):
        train_graph([], tmp_path / "x")


def test_a_cube_that_lies_stays(trained: Path) -> None:
    """Even a short training keeps a cube from sinking in."""
    engine = GraphEngine(load_graph(trained), toss_scene())
    one, none = np.ones((1, 1, 1)), np.zeros((1, 1, 3))
    start = SceneState(("cube",), one * [0.0, 0.0, 0.05], one * [1.0, 0.0, 0.0, 0.0], none, none)
    motion = engine.open(start).rollout(1.0, frames=3)
    assert abs(motion.position[0, -1, 0, 2] - 0.05) < 0.01
    assert np.linalg.norm(motion.position[0, -1, 0, :2]) < 0.01


def test_durations_are_multiples_of_its_step(trained: Path) -> None:
    engine = GraphEngine(load_graph(trained), toss_scene())
    one, none = np.ones((1, 1, 1)), np.zeros((1, 1, 3))
    start = SceneState(("cube",), one * [0.0, 0.0, 0.3], one * [1.0, 0.0, 0.0, 0.0], none, none)
    with pytest.raises(CaromError, match="duration: expected a multiple of 10 ms"):
        engine.open(start).step(0.0137)
    flight = engine.open(start).rollout(0.1, frames=4).position[0, :, 0, 2]
    mujoco = MujocoEngine(toss_scene(), step=0.0005, threads=1).open(start).rollout(0.1, frames=4).position[0, :, 0, 2]
    assert flight == pytest.approx(mujoco, abs=5e-4)  # MuJoCo falls 0.25 mm too far; between steps the way is straight


def test_whoever_only_flies_is_predicted_without_error(tmp_path: Path) -> None:
    """Flight is closed form: rollouts that end before the ground are right with any weights."""
    from carom.learn.graph.examples import frames_of
    from carom.scale import load

    source = toss(rate=100.0, duration=0.06)
    data = scale(source, calibration(None), tmp_path / "flights", count=30, variation=SAME, threads=1).folder
    flights = [t for t in load(data).ok if t.position[..., 2].min() > 0.11]
    assert flights
    found = rollout_errors(new_network(), [frames_of(flights)])
    assert found["place"] < 1e-3
    assert found["angle"] < 1e-2


def test_mixed_data_are_told_apart(tmp_path: Path) -> None:
    """Trajectories that state other parameters than their neighbours: each is read by its own."""
    from carom.learn.graph.examples import contacts_of
    from carom.scale import load

    data = scale(toss(rate=100.0, duration=0.1), calibration(None), tmp_path / "x", count=2, threads=1).folder
    one, other = load(data).ok
    pair = [
        replace(one, parameters={"friction": 0.2, "face_friction": 0.4, "stiffness": 12_000.0}),
        replace(other, parameters={"friction": 0.3, "time_constant": 0.02, "damping_ratio": 1.0}),
    ]
    found = contacts_of(pair)
    assert found["face_friction"] == pytest.approx([0.4, 0.3])
    assert found["stiffness"] == pytest.approx([12_000.0, 2500.0])


def test_trajectories_that_are_too_short_are_refused(data: Path, tmp_path: Path) -> None:
    long = Recipe(stages=(Stage(1, 16, 2), Stage(80, 4, 2)))
    with pytest.raises(CaromError, match=r"have 61 samples at least, .* for 80 frames .* scale longer ones"):
        train_graph([data], tmp_path / "x", recipe=long)
