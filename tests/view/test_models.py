"""Models, plans, policies and pushes as motions: what is drawn is what the engines say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulated_strikes import simulated

from carom.core.errors import CaromError
from carom.core.rotations import yaw
from carom.engines import MujocoSimulator
from carom.engines.contract import Status
from carom.engines.mujoco.engine import MujocoEngine
from carom.envs.pushing.files import fingerprint_of, load_task
from carom.identify.result import Errors, Estimate, Identification
from carom.plan import approach
from carom.plan.search import HORIZON
from carom.reality import PushCommands, push_standin
from carom.recordings import read
from carom.scenes.pushing import push_scene
from carom.scenes.strike import builtin
from carom.train import Policy, save_policy
from carom.train.push_trials import still_policy
from carom.train.pushing import ENVIRONMENT
from carom.view import opened
from carom.view.beside import draws_from
from carom.view.learned import ModelTakes
from carom.view.planned import PlanFile, PlanTakes
from carom.view.shown import RECORDED, arrows_at, errors_of
from carom.view.strikes import StrikeEngineShown

PLAN = {
    "contact_point_target_frame_m": [-0.05, 0.005],
    "velocity_target_frame_m_s": [0.5, 0.0],
    "target_pose": [0.1, 0.2, 0.0],
    "wanted_pose": [0.3, 0.2, None],
    "expected_pose": [0.29, 0.2, 0.1],
}


def engines() -> tuple[StrikeEngineShown, ...]:
    """MuJoCo on the built-in square, and two with other friction as its draws."""
    scene = builtin("square")
    slick, rough = (MujocoSimulator(scene, {"ground_friction": f}, threads=1) for f in (0.2, 0.35))
    return (StrikeEngineShown("MuJoCo", MujocoSimulator(scene, {"ground_friction": 0.27}, threads=1), (slick, rough)),)


def test_a_models_strikes_are_shown_with_its_draws_and_what_was_measured() -> None:
    scene = builtin("square")
    train = simulated(scene, {"ground_friction": 0.27}, 2, seed=4)
    take = ModelTakes(train, scene, engines())(1)
    (track,) = take.tracks
    ends = [np.linalg.norm(g.position[-1, 0] - g.position[0, 0]) for g in track.ghosts]
    way = np.linalg.norm(track.position[-1, 0] - track.position[0, 0])
    assert ends[0] > way > ends[1]  # slick, as it is, rough
    assert errors_of(take) == {}
    measured = next(a for a in take.arrows if a.track == RECORDED)
    assert take.arrows.index(measured) in arrows_at(take, 0.1, set())  # it has no motion to be hidden with
    assert np.linalg.norm(measured.vector[:2]) == pytest.approx(scene.mass * np.linalg.norm(train.post[1, :2]))


def test_a_plan_is_shown_from_its_file_as_the_engine_carries_it_out(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    plan, scene = PlanFile.read(tmp_path / "plan.json"), builtin("square")
    take = PlanTakes(plan, scene, engines())(0)
    (track,) = take.tracks
    run = engines()[0].simulator.rollout(approach(scene, plan.commands), HORIZON)
    assert run.status[0] == Status.AT_REST
    assert np.allclose(track.position[-1, 0, :2], run.rest[0, :2], atol=1e-3)
    assert float(yaw(track.quaternion[-1, 0])) == pytest.approx(float(run.rest[0, 2]), abs=0.02)
    assert track.time[-1] < HORIZON / 2  # it is not watched lying there
    assert any("simulated strikes are planar" in words.lower() for words in take.words)
    wanted, expected = take.marks
    assert wanted.position[:2].tolist() == [0.3, 0.2]
    assert float(yaw(wanted.quaternion)) == pytest.approx(0.1)  # any yaw will do: drawn as the plan expects it
    assert expected.position[:2].tolist() == [0.29, 0.2]


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        "[]",
        "{}",
        '{"strike": 3}',
        json.dumps(PLAN | {"target_pose": [0, 0]}),
        json.dumps(PLAN | {"wanted_pose": 1}),
    ],
)
def test_a_file_that_is_no_plan_is_refused_by_name(tmp_path: Path, broken: str) -> None:
    (tmp_path / "x.json").write_text(broken)
    with pytest.raises(CaromError, match=r"x.json: expected the JSON of `carom plan`"):
        opened(tmp_path / "x.json")


def test_a_plan_without_its_model_says_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    with pytest.raises(CaromError, match="add --with MODEL"):
        opened(tmp_path / "plan.json")


def test_a_policys_trials_are_shown_in_its_simulator_and_on_a_stand_in(tmp_path: Path) -> None:
    seen, low = np.full(6, 10.0, np.float32), np.array([-1, -1, -1], np.float32)
    straight = (np.zeros((3, 6), np.float32),), (np.array([0.0, 0.0, 0.3], np.float32),)
    save_policy(tmp_path / "policy", Policy("ppo", "test", "tanh", False, *straight, -seen, seen, low, -low, {}))
    show = opened(tmp_path / "policy")
    assert show.names == ("route 1", "route 2", "route 3")
    take = show.take(0)
    own, lab = take.tracks
    assert (own.name, lab.name) == ("MuJoCo, default contact", "stand-in nylon-low")
    assert (np.diff(own.time) > 0).all()
    assert (np.diff(lab.time) > 0).all()
    low, high = take.box()
    assert (low < own.position[0, 0]).all()  # of a semi-cylinder too
    assert (high > own.position[0, 0]).all()
    route = take.paths["route"]
    assert np.linalg.norm(own.position[0, 0, :2] - route[0, :2]) < 0.1
    assert own.position[-1, 0, 0] != own.position[0, 0, 0]  # it was struck


def test_pushes_are_led_by_the_recorded_tool(tmp_path: Path) -> None:
    scene = push_scene("planar-cube")
    home = MujocoEngine(scene, threads=1).home(2)
    controls = np.repeat(home.joint_position[:, None], 40, axis=1)
    controls[:, :, 0] += np.linspace(0, 0.2, 40)
    controls[1, :, 1] += 0.02
    lab = push_standin("plain", scene, seed=1)
    show = opened(lab.execute(PushCommands(home, controls), tmp_path / "pushes", seed=3))
    take = show.take(0)
    real, made = take.tracks
    block, tool = (made.bodies.index(n) for n in ("block", "tool"))
    seen = real.position[:, real.bodies.index("tool")]
    assert np.nanmax(np.abs(made.position[:, tool] - seen)) < 2e-3
    pushed = made.position[-1, block] - made.position[0, block]
    assert pushed[0] > 0.05
    away = errors_of(take)[made.name][1]["block"][0]
    assert np.nanmax(away) < 0.25 * np.linalg.norm(pushed)  # a pushed block goes with its tool, whatever its friction
    assert all(a.vector[0] > 0 and a.unit == "N" for a in take.arrows)
    # it slides slowly: the tool pushes with friction times the block's weight
    weight = 9.81 * float(read(tmp_path / "pushes").bodies["block"].mass or 0)
    assert np.median([np.linalg.norm(a.vector) for a in take.arrows]) == pytest.approx(0.3 * weight, rel=0.15)


def test_a_policy_of_pushes_is_shown_on_a_stand_in(tmp_path: Path) -> None:
    task = load_task("planar-cube")
    save_policy(
        tmp_path / "policy",
        replace(still_policy(task), environment=ENVIRONMENT, made_by={"pushing": fingerprint_of(task)}),
    )
    show = opened(tmp_path / "policy")
    assert show.names == ("push 1", "push 2", "push 3", "push 4")
    assert "laminate" in show.title
    take = show.take(0)
    assert take.recorded is not None
    assert "no tool pushes a block in it" in take.words[0]  # it stands still


def test_draws_are_as_wide_as_intervals_and_keep_correlations() -> None:
    def estimate(name: str, value: float, half: float) -> Estimate:
        return Estimate(name, value, "1", value - half, value + half, (0.0, 10.0), "identified", "")

    errors = Errors(0.0, 0.0, 1.0, 3)
    estimates = (
        estimate("a", 5.0, 0.5),
        estimate("b", 5.0, 0.05),
        Estimate("c", 1.0, "1", 1.0, 1.0, (0, 2), "given", ""),
    )
    together = {"correlations": {"names": ["a", "b"], "matrix": [[1.0, 1.0], [1.0, 1.0]]}}
    found = Identification("cma", "toss", estimates, errors, None, "", 0, 0, 0.0, 0, extra=together)
    drawn = draws_from(found)
    a, b, c = (np.array([d[n] for d in drawn]) for n in "abc")
    assert 0.1 < a.std() < 0.6
    assert np.allclose(a - 5, 10 * (b - 5), atol=1e-6)
    assert (c == 1.0).all()


def test_identified_friction_leads_pushes_too(tmp_path: Path) -> None:
    scene = push_scene("planar-cube")
    home = MujocoEngine(scene, threads=1).home(1)
    controls = np.repeat(home.joint_position[:, None], 40, axis=1)
    controls[:, :, 0] += np.linspace(0, 0.2, 40)
    place = push_standin("plain", scene, seed=1).execute(PushCommands(home, controls), tmp_path / "pushes", seed=3)
    known = Estimate("ground_friction", 0.5, "1", 0.45, 0.55, (0.05, 1.0), "identified", "")
    found = Identification("cma", "planar-cube", (known,), Errors(0.0, 0.0, 1.0, 1), None, "", 0, 0, 0.0, 0)
    found.write(tmp_path / "parameters.yaml")
    take = opened(place, [tmp_path / "parameters.yaml"]).take(0)
    made = take.tracks[1]
    assert made.name == "MuJoCo, identified (cma)"
    assert len(made.ghosts) == 8
    weight = 9.81 * float(read(place).bodies["block"].mass or 0)
    assert np.median([np.linalg.norm(a.vector) for a in take.arrows]) == pytest.approx(0.5 * weight, rel=0.15)
    assert {a.track for a in take.arrows} == {made.name}
