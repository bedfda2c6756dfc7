"""Pieces of work on a Ray cluster of three nodes: what comes out is what this process makes, whoever dies meanwhile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import lost_pieces
import numpy as np
import pytest
from analytic_impacts import FRAMES, Analytic, measured
from free_recordings import TRUTH, toss
from lost_pieces import PATIENCE, cube, deadly, once_killed, refused, waiting
from synthetic_recordings import Strike

import carom
from carom import recipes
from carom.core import ray_work
from carom.core.errors import CaromError
from carom.core.work import in_order, make_pieces, on
from carom.identify import Outcomes, descend
from carom.identify.strikes import gradient
from carom.identify.tosses import search
from carom.identify.tosses.search import Budget
from carom.learn.impact.dataset import generate
from carom.recipes.tosses import FreeOptions, identify_free
from carom.recordings import Recordings, write
from carom.scale import calibration, cubes, scale
from carom.scenes.strike import builtin

pytest.importorskip("ray", reason="Ray is not installed: pip install carom[ray]")

HELPERS = (str(Path(lost_pieces.__file__).parent), str(Path(carom.__file__).parents[1]))
MEMORY = 80 * 2**20  #: [bytes] of each node's object store


class Kept(dict):
    """A store in memory."""

    has = dict.__contains__
    put = dict.__setitem__


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes of one core each, on this machine."""
    patch = pytest.MonkeyPatch()
    for name, value in {**ray_work.QUIET, "OMP_NUM_THREADS": "1"}.items():
        patch.setenv(name, value)
    patch.setenv("PYTHONPATH", os.pathsep.join([*HELPERS, os.environ.get("PYTHONPATH", "")]))
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            made.add_node(num_cpus=1, object_store_memory=MEMORY)
        patch.setenv("RAY_ADDRESS", made.address)
        yield made
    finally:
        made.shutdown()
        patch.undo()


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def untimed(value: Any) -> Any:
    """JSON without what differs between two runs of one machine: seconds, and checksums of files that hold some."""
    if isinstance(value, Mapping):
        unlike = ("seconds", "per_second", "share", "sha256", "seal", "timing")
        return {k: untimed(v) for k, v in value.items() if not any(word in k for word in unlike)}
    return [untimed(v) for v in value] if isinstance(value, list) else value


def test_pieces_that_lose_their_worker_are_made_again(cluster: Any, tmp_path: Path) -> None:
    keys, told = list(range(30)), []
    kept = Kept({4: 64})
    with on("ray") as made_by:
        make = partial(once_killed, tmp_path, (3, 11, 12, 25))
        assert make_pieces(keys, kept, make, progress=lambda *steps: told.append(steps)) == 29
        (said,) = made_by.costs()
    assert kept == {key: cube(key) for key in keys}
    assert told == [(done, 30) for done in range(1, 31)]  # one count, that never goes back
    assert said.startswith("ray: 29 pieces in ")
    assert "made again after a worker was lost" in said
    assert "MB came back" in said


def test_a_node_that_is_lost_costs_only_its_pieces(cluster: Any, tmp_path: Path) -> None:
    nodes = {node.node_id: node for node in cluster.list_all_nodes() if node is not cluster.head_node}
    lost: list[str] = []

    def unplug() -> None:
        patience = monotonic() + PATIENCE
        while not lost and monotonic() < patience:
            sleep(0.05)
            busy = {path.name.partition("-on-")[2] for path in tmp_path.glob("*-on-*")}
            lost.extend(sorted(busy & set(nodes))[:1])
        (tmp_path / f"lost-{lost[0]}").touch()
        cluster.remove_node(nodes[lost[0]], allow_graceful=False)
        (tmp_path / "go").touch()

    hand = Thread(target=unplug)
    hand.start()
    try:
        with on("ray") as made_by:
            found = list(in_order(partial(waiting, tmp_path), range(12)))
            again = made_by.cost.again
    finally:
        hand.join(PATIENCE)
        cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    assert len(lost) == 1
    assert again >= 1
    assert found == [cube(key) for key in range(12)]


def test_distil_and_scale_give_the_same_bytes(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carom.scale.shards.SHARD", 8)
    scene = builtin("square")
    for name, where in {"here": None, "there": "ray"}.items():
        with on(where) as made_by:
            for teacher in ("mujoco", "compliant"):
                generate(scene, teacher, 1000, tmp_path / name / teacher, seed=3, shard=256, threads=1)
            scale(cubes(bodies=(1, 2), duration=0.1), calibration(None), tmp_path / name / "cubes", count=20, seed=5)
            said = made_by.costs()
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "there")
    assert said[0].startswith("ray: 11 pieces in ")


def test_evaluate_and_distill_say_the_same(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carom.learn.impact.dataset.SHARD", 512)
    hits = [Strike(striker_velocity=(0.05, 0.7 + 0.05 * s), duration=1.5).trajectory(s) for s in range(6)]
    named = tuple(replace(t, name=f"file_{i:02d}.csv") for i, t in enumerate(hits))
    lab = tmp_path / "lab"
    write(lab, Recordings(lab, named[0].bodies, named))
    comparison = recipes.CompareOptions(("mean", "carom"), count=4)
    found = {}
    for name, where in {"here": None, "there": "ray"}.items():
        place = tmp_path / name
        with on(where):
            result = recipes.evaluate(lab, lab, out=place / "evaluation", comparison=comparison, threads=1)
            training = recipes.DistillOptions("default", 20)
            recipes.distill("square", place / "base", samples=1024, teachers=("compliant",), training=training)
        networks = {path.name: path.read_bytes() for path in (place / "base").glob("*.safetensors")}
        header = untimed(json.loads((place / "base" / "model.json").read_text()))
        scores = [{**asdict(s), "seconds": 0.0} for s in result.scores]
        found[name] = (scores, networks, header)
    np.testing.assert_equal(found["there"], found["here"])
    assert found["here"][1]


def test_the_restarts_of_a_search_end_alike(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "Budget", lambda: Budget(first=2, sides=1, last=1, population=4))
    held = {name: TRUTH[name] for name in ("stiffness", "damping")}
    truth = {"friction": 0.25, **held, "inertia_scale": 1.1}
    recordings = toss(Path("tosses"), 4, seed=4, truth=truth, samples=40).recordings
    found = {}
    for where in (None, "ray"):
        with on(where) as made_by:
            options = FreeOptions(("friction", "inertia_scale"), held, fit=3)
            (one,), _ = identify_free(recordings, options=options, threads=1, seed=2)
        found[where] = [(e.name, e.value, e.low, e.high) for e in one.identification.estimates]
    assert found["ray"] == found[None]
    assert "ray: " in made_by.costs()[0]


def test_the_starts_of_strikes_end_alike(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient, "ROWS", 100)
    outcomes = Outcomes(FRAMES, measured(0.003))
    found = {}
    for where in (None, "ray"):
        with on(where) as made_by:
            one = descend(Analytic(), outcomes, seed=3)
        found[where] = one.evaluations, [(e.name, e.value, e.low, e.high) for e in one.estimates], one.held_out
    assert found["ray"] == found[None]
    assert "ray: " in made_by.costs()[0]


def test_trainings_give_the_same_policies(cluster: Any, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    found = {}
    for name, where in {"here": None, "there": "ray"}.items():
        with on(where):
            result = recipes.train_seeds(
                tmp_path / name,
                (3, 8),
                engine=recipes.EngineOptions(simulator="mujoco"),
                training=recipes.Training(steps=384),
                threads=1,
            )
        each = [tmp_path / name / f"seed-{seed}" for seed in (3, 8)]
        weights = [(folder / "policy.safetensors").read_bytes() for folder in each]
        settings = [(folder / "settings.json").read_bytes() for folder in each]
        headers = [untimed(json.loads((folder / "policy.json").read_text())) for folder in each]
        found[name] = (weights, settings, headers, result.success)
    assert found["there"] == found["here"]
    assert found["here"][0][0] != found["here"][0][1]


def test_what_a_piece_says_is_said_here(cluster: Any) -> None:
    with pytest.raises(CaromError, match="piece 2 has no floor"), on("ray"):
        list(in_order(refused, [2]))


def test_a_piece_that_no_worker_outlives_is_given_up(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_work, "TRIES", 2)
    with pytest.raises(CaromError, match=r"piece 0 has lost 2 workers .*what was finished is kept"), on("ray"):
        list(in_order(deadly, [7]))


def test_a_cluster_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(CaromError, match=r"no Ray cluster answers at 127.0.0.1:9 .*ray start --head"), on("ray"):
        list(in_order(cube, [1]))
    with pytest.raises(CaromError, match=r"no Ray cluster answers at ray://127.0.0.1:9 "), on("ray://127.0.0.1:9"):
        list(in_order(cube, [1]))


def test_a_worker_without_the_same_code_is_named(cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "only_here.py").write_text("def cube(key):\n    return key**3\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = import_module("only_here").cube
    with pytest.raises(CaromError, match=r"a worker of the cluster cannot work: .*only_here.*same version"), on("ray"):
        list(in_order(own, [1]))
