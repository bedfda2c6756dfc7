"""The loop on pushes: rounds on a stand-in, residual, terms, a person, mistakes, and kills."""

from __future__ import annotations

import json
import os
import signal
import time

import numpy as np
import pytest
from jobs import content
from report_pages import good_page, sections
from small_loops import PUSHES

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

from carom.core.errors import CaromError
from carom.envs.pushing import pushing_task
from carom.loop import loop, read_config
from carom.loop.push_plans import random_pushes
from carom.reality.push_contract import PushCommands
from carom.reality.push_settings import EFFECTS, INEXPRESSIBLE, PUSH_SETTINGS
from carom.reality.push_standin import push_standin


def written(folder, **changes):
    path = folder / "loop.yaml"
    path.write_text(PUSHES.format(**{"rounds": 1, "method": "random", **changes}))
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Pushes at random, so that blocks are moved whatever a policy of one update does, and a residual."""
    path = written(tmp_path_factory.mktemp("pushes"))
    path.write_text(path.read_text() + "residual: true\n")
    return loop(path, path.parent / "quiet"), path


def test_a_round_tunes_trains_and_deploys(finished):
    result, _ = finished
    assert [row["recordings"] for row in result.rows] == [0, 4]
    assert {p["name"] for p in result.rows[1]["parameters"]} == {"ground_friction", "mass_scale", "actuator_delay"}
    assert all(p["low"] <= p["value"] <= p["high"] for p in result.rows[1]["parameters"])
    assert result.rows[1]["gap"]["conditional"] > 0
    assert set(result.rows[0]["held_out"]) == {"gap", "error_mm"}
    assert result.rows[0]["trials"] == 3


def test_the_page_has_the_figures_of_the_paper(finished):
    result, _ = finished
    page = good_page(result.report)
    expected = {"Success in reality", "One start and goal, repeated", "Real and simulated ways", "Error over time"}
    assert expected | {"Yaw over time", "The policy at work", "Parameters", "Rounds"} <= set(sections(page))
    assert result.next_commands()[0].startswith("carom check ")


def test_terms_are_paid_from_the_second_round_on(finished, tmp_path):
    """A round of either method goes on from recordings of random pushes."""
    from carom.loop.push_data import noise_of
    from carom.loop.push_terms import term_of
    from carom.loop.rounds import task_of
    from carom.loop.steps import Round
    from carom.recordings import read

    result, path = finished
    config = read_config(path).model_copy(update={"residual": False})
    task = task_of(config, result.out)
    first = Round(1, result.out / "round-01", 10_001)
    second = Round(2, result.out / "round-02", 20_001, (first,))
    folders = [read(first.place("deploy") / "recordings")]
    noise = noise_of(task.scene, folders)
    assert 1e-4 <= noise[0] < 4e-4  # the stand-in's is 0.15 mm
    model = task.model(second)
    start, goals = task.task.sample(5, np.random.default_rng(0))
    seen = task.task.observe(start, goals)
    for method in ("infogap", "ensemble"):
        term = term_of(method, task.task, model, folders, weight=0.5, noise=noise, policy=None, seed=3)
        paid = term(seen, np.zeros((5, 2)), seen)
        assert term.weight == 0.5
        assert np.isfinite(paid).all()
        assert (paid >= 0).all()
    far = seen + 5.0
    infogap = term_of("infogap", task.task, model, folders, weight=0.5, noise=noise, policy=None, seed=3)
    assert (infogap(far, np.zeros((5, 2)), far) > infogap(seen, np.zeros((5, 2)), seen)).all()
    assert term_of("random", task.task, model, folders, weight=0.5, noise=noise, policy=None, seed=3) is None


def test_a_killed_loop_ends_with_the_same_bytes(finished):
    result, path = finished
    out, rng = path.parent / "killed", np.random.default_rng(5)
    kills = 0
    while True:
        pid = os.fork()
        if not pid:
            loop(path, out)
            os._exit(0)
        until = time.monotonic() + float(rng.uniform(0.3, 3.0))
        while not (ended := os.waitpid(pid, os.WNOHANG)[0]) and (kills >= 3 or time.monotonic() < until):
            time.sleep(0.01)
        if ended:
            break
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        kills += 1
    assert kills
    assert content(out) == content(result.out)


def test_a_person_who_pushes(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text().replace("laminate", "person").replace("held_out: 3\n", ""))
    result = loop(path, tmp_path / "out")
    assert result.request is not None
    assert result.request.rows.shape == (4, 8)
    assert "ctrl.JOINT_measured" in result.request.words
    asked = result.request.rows
    task = pushing_task("planar-cube")
    way = np.linspace(asked[:, 3:5], asked[:, 5:7], 21)[1:].swapaxes(0, 1)
    start = task.scene.placed(asked[:, :3], asked[:, 3:5])
    push_standin("laminate", task.scene, seed=2).execute(PushCommands(start, way), result.request.folder, seed=3)
    done = loop(path, tmp_path / "out")
    assert done.request is None
    assert [row["recordings"] for row in done.rows] == [0, 4]
    assert done.rows[0]["success"] is None  # random pushes have no goal


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("planar-cube", "planar-cub", "scene: expected one of planar-cube, planar-t, arm-cube, arm-t for pushes"),
        ("laminate", "laminat", "reality: expected one of plain, laminate, felt, steel, module:Class, person"),
        ("laminate", "json:JSONDecoder", "reality: json:JSONDecoder: JSONDecoder is no PushReality"),
        ("recordings: 4", "recordings: 2", "a loop on pushes needs 3 in each round or more, got 2"),
        ("mass_scale", "mass_scal", "did you mean 'mass_scale'"),
    ],
)
def test_mistakes_leave_nothing_behind(tmp_path, old, new, said):
    path = written(tmp_path)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(CaromError) as error:
        loop(path, tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_random_pushes_move_blocks_of_every_scene():
    for name in ("planar-t", "arm-cube"):
        task = pushing_task(name)
        commands = random_pushes(task, 4, np.random.default_rng(0))
        lab = push_standin("laminate", task.scene, seed=0)
        from carom.reality.push_contract import PushTasks, follow

        tasks = PushTasks(commands.start, np.full((4, 3), np.nan), commands.controls.shape[1])
        poses = lab.watch(follow(commands.controls), tasks, seed=1)
        moved = np.linalg.norm(poses[:, -1, :2] - poses[:, 0, :2], axis=1)
        assert (moved > 5e-3).mean() >= 0.75, (name, moved)


def test_what_was_tuned_is_kept_with_its_draws(finished):
    result, _ = finished
    kept = json.loads((result.out / "round-02" / "tune" / "tuned.json").read_text())
    assert len(kept["draws"]) == 2
    assert set(kept["draws"][0]) == set(kept["values"])
    assert "residual" in kept


def test_expressible_effects_leave_out_all_that_no_parameter_expresses():
    effects = PUSH_SETTINGS["laminate"].effects
    kept = effects.expressible()
    assert {name for name in EFFECTS if getattr(kept, name) != getattr(effects, name)} == set(INEXPRESSIBLE)
