"""A strike by an arm's joints: on the line, within every limit, played back with other dynamics; and what stops it."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from carom import recipes
from carom.core.errors import CaromError
from carom.plan.arm import Arm, Limits, Rates, load_arm, read_limits
from carom.plan.export import CartesianLimits, strike_motion, write_motion
from carom.plan.joint_files import approach_motion
from carom.plan.joint_motion import Base, Blow, JointMotion, StrikelessError, joint_motion
from carom.plan.playback import play

pytest.importorskip("mink", reason="mink is not installed: pip install carom[robot]")

TIP = CartesianLimits(1.5, 8.0, 4000.0)
FAST = Limits(joints={"all": Rates(velocity=4.0, acceleration=40.0, jerk=4000.0)})
CONTACT, VELOCITY, HEIGHT = np.array([0.3, 0.1]), np.array([0.3, 0.1]), 0.03
BASE = Base(0.05, -0.02, 0.01, 0.3)


def asked(arm: Arm, velocity: Any = VELOCITY, contact: Any = CONTACT, **options: Any) -> JointMotion:
    more = {"base": BASE, "limits": TIP, "free_turn": True, **options}
    blow = Blow(np.array(contact), np.array(velocity), height=more.pop("height", HEIGHT), yaw=more.pop("yaw", 0.0))
    return joint_motion(arm, blow, **more)


@pytest.fixture(scope="module")
def arm() -> Arm:
    return load_arm("arm", limits=FAST)


@pytest.fixture(scope="module")
def motion(arm: Arm) -> JointMotion:
    return asked(arm)


def tips(motion: JointMotion) -> np.ndarray:
    """Where the site is [T, 3], by MuJoCo."""
    data, found = mujoco.MjData(motion.arm.model), []
    for joints in motion.position:
        data.qpos[motion.arm.place] = joints
        mujoco.mj_kinematics(motion.arm.model, data)
        found.append(data.site(motion.arm.site).xpos.copy())
    return np.array(found)


def test_the_tip_follows_its_line_and_strikes_as_commanded(motion: JointMotion) -> None:
    tip, there = motion.tip, tips(motion)
    np.testing.assert_allclose(there, motion.base.place(tip.position), atol=1e-6)
    k = tip.contact_index
    going = (there[k + 1] - there[k - 1]) * 0.5 * tip.rate
    np.testing.assert_allclose(going, motion.base.direction(np.append(VELOCITY, 0.0)[None])[0], atol=1e-4)
    np.testing.assert_allclose(motion.base.direction(np.eye(3))[0], [np.cos(0.3), -np.sin(0.3), 0], atol=1e-12)


def test_every_joint_keeps_every_limit(motion: JointMotion) -> None:
    arm, step = motion.arm, 1 / motion.tip.rate
    still = np.concatenate(
        [np.repeat(motion.position[:1], 3, 0), motion.position, np.repeat(motion.position[-1:], 3, 0)]
    )
    for order, most in ((1, arm.velocity), (2, arm.acceleration), (3, arm.jerk)):
        assert (np.abs(np.diff(still, order, axis=0)) / step**order <= 1.001 * most).all()
    assert (motion.position >= arm.range[:, 0]).all()
    assert (motion.position <= arm.range[:, 1]).all()
    assert (np.abs(motion.torque) <= arm.torque).all()
    assert {stop.limit for stop in motion.nearest} == {"range", "velocity", "acceleration", "jerk", "torque"}
    assert all(0 < stop.ratio <= 1 for stop in motion.nearest)


@pytest.mark.parametrize(
    ("velocity", "contact"), [((0.3, 0.1), (0.3, 0.1)), ((-0.4, 0.3), (0.4, 0.05)), ((0.0, -0.6), (0.35, 0.1))]
)
def test_played_back_on_other_dynamics_it_arrives(arm: Arm, velocity: Any, contact: Any) -> None:
    played = play(asked(arm, velocity, contact))
    assert played.range_kept
    assert played.position_error < 2e-3
    assert played.speed_error < 0.05
    assert played.torque_share < 1
    assert played.position_error > 1e-5  # it is not the model that the motion was planned with


def test_without_torque_it_does_not_arrive(motion: JointMotion) -> None:
    weak = replace(motion, arm=replace(motion.arm, torque=0.02 * motion.arm.torque))
    assert play(weak).position_error > 2e-3


def test_the_limit_that_stops_a_strike_is_named() -> None:
    slow = load_arm(
        "arm",
        limits=Limits(
            joints={
                "all": Rates(velocity=4, acceleration=40, jerk=4000),
                "joint_1": Rates(velocity=0.5, acceleration=40, jerk=4000),
            }
        ),
    )
    with pytest.raises(
        StrikelessError, match=r"velocity of joint_1: .* 0.5 allowed, .* from the contact; along this line"
    ) as said:
        asked(slow, (0.0, 0.6), (0.35, 0.0), base=Base())
    share = float(str(said.value).split("with up to ")[1].split()[0])
    assert 0.05 < share < 0.6
    asked(slow, (0.0, 0.9 * share), (0.35, 0.0), base=Base())  # as it says
    with pytest.raises(StrikelessError, match=r"the arm does not reach \(2.000, 0.000, 0.030 m\) in the world"):
        asked(slow, (0.2, 0.0), (2.0, 0.0))
    with pytest.raises(CaromError, match=r"above the robot's limit of 1.5 m/s"):
        asked(slow, (3.0, 0.0))


def test_the_way_to_the_start_keeps_the_limits(motion: JointMotion) -> None:
    arm = motion.arm
    way = approach_motion(arm, motion.position[0], 500.0)
    np.testing.assert_allclose(way[0], arm.home[arm.place], atol=1e-9)
    np.testing.assert_allclose(way[-1], motion.position[0], atol=1e-6)
    assert (np.abs(np.diff(way, axis=0)) * 500 <= 1.001 * arm.velocity).all()


@pytest.fixture(scope="module")
def strike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strike")
    way = strike_motion(CONTACT, VELOCITY, height=HEIGHT, yaw=0.2)
    write_motion(folder, way, strike={"striker": "round"}, base=(0.05, -0.02, 0.3))
    return folder


def test_files_say_the_same_in_every_form(strike: Path, tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text(
        "tip: {velocity: 1.5, acceleration: 8, jerk: 4000}\n"
        "joints: {all: {velocity: 4, acceleration: 40, jerk: 4000}}\n"
    )
    robot = recipes.RobotOptions("arm", limits=tmp_path / "limits.yaml")
    result = recipes.export(strike, tmp_path / "out", robot=robot)
    names = {"joints.csv", "joints.ros.json", "approach.csv", "tip.csv", "tip.ros.json", "trajectory.json"}
    assert {path.name for path in result.files} == names
    with (tmp_path / "out" / "joints.csv").open() as file:
        rows = list(csv.reader(file))
    table = np.array(rows[1:], dtype=float)
    whole = json.loads((tmp_path / "out" / "trajectory.json").read_text())
    ros = json.loads((tmp_path / "out" / "joints.ros.json").read_text())
    assert rows[0][:2] == ["time_s", "joint_1_rad"]
    assert ros["joint_names"] == whole["arm"]["joints"]
    np.testing.assert_array_equal([p["positions"] for p in ros["points"]], table[:, 1:7])
    np.testing.assert_array_equal(whole["set_points"]["position_rad"], table[:, 1:7])
    times = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in ros["points"]]
    np.testing.assert_allclose(times, table[:, 0], atol=1e-9)
    assert (np.diff(times) > 0).all()
    assert whole["contact"]["velocity_m_s"] == pytest.approx(BASE.direction(np.append(VELOCITY, 0.0)[None])[0])
    played = result.to_dict()["played_back"]
    assert played["position_error"] < 2e-3
    assert "wrote" in result.notes()[0]
    assert not [line for line in result.notes() if line.startswith("warning")]
    off = replace(result, played=replace(result.played, speed_error=0.08))
    assert re.search(r"warning: played back it is off by 0\.\d mm and 8% of its speed", " ".join(off.notes()))


def test_without_an_arm_the_tools_motion_is_written(strike: Path, tmp_path: Path) -> None:
    result = recipes.export(strike, tmp_path, robot=recipes.RobotOptions(base=(0.0, 0.0, 0.0)))
    whole = json.loads((tmp_path / "trajectory.json").read_text())["contact"]
    np.testing.assert_allclose(whole["position_m"], [*CONTACT, HEIGHT], atol=1e-9)
    ros = json.loads((tmp_path / "tip.ros.json").read_text())
    twist = ros["points"][whole["index"]]["velocities"][0]["linear"]
    assert [twist["x"], twist["y"], twist["z"]] == pytest.approx([0.3, 0.1, 0.0])
    assert len(result.files) == 3


def test_mistakes_are_one_line(strike: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("joints: {joint_9: {velocity: 1}}\n")
    (tmp_path / "worse.yaml").write_text("joints: {all: {velocity: -1}}\n")
    (tmp_path / "plain.xml").write_text(
        "<mujoco><worldbody><body><joint/><geom size='0.1'/></body></worldbody></mujoco>"
    )
    (tmp_path / "strike.json").write_text('{"format": "carom-strike/1", "contact": {}}')

    def refused(match: str, place: Path = strike, **options: Any) -> None:
        with pytest.raises(CaromError, match=match):
            recipes.export(place, tmp_path / "out", robot=recipes.RobotOptions(**options))

    refused("unknown joint 'joint_9'", arm="arm", limits=tmp_path / "bad.yaml")
    refused(
        r"worse.yaml: joints.all.velocity: .* greater than or equal to 0.05", arm="arm", limits=tmp_path / "worse.yaml"
    )
    refused("expected --tool SITE, .* it has none: add <site", arm=str(tmp_path / "plain.xml"))
    refused("2 joints lead to the site tool, expected 6 or more", arm="planar")
    refused("unknown site 'tol'", arm="arm", tool="tol")
    refused("--tool is for --arm", tool="tool")
    refused(r"gone.xml does not exist", arm="gone.xml")
    refused("no such file; expected strike.json", place=tmp_path / "gone")
    refused("contact.position_world_m: Field required", place=tmp_path)
    assert not (tmp_path / "out").exists()


def test_limits_that_nobody_states_are_careful() -> None:
    arm = load_arm("arm")
    assert arm.careful
    assert arm.velocity.tolist() == [2.0] * 6


def test_limits_name_joints_or_all(tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text("joints:\n  all: {velocity: 3}\n  joint_2: {velocity: 1, jerk: 50}\n")
    velocity, _, jerk = read_limits(tmp_path / "limits.yaml").of(["joint_1", "joint_2"])
    assert velocity.tolist() == [3.0, 1.0]
    assert jerk.tolist() == [1000.0, 50.0]
