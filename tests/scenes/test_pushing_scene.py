"""Scenes of pushing: masses and inertias, limits of servos, parameters per row, and blocks that stay on the table."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from carom.core.errors import SceneError
from carom.core.rotations import axes
from carom.engines import MujocoEngine
from carom.engines.pushing import push_simulator
from carom.envs.pushing import pushing_task
from carom.scenes.parameters import PARAMETERS
from carom.scenes.pushing import OWN, PushScene, push_scene
from carom.scenes.pushing.robots import RANGES, TORQUES, arm_joints
from carom.scenes.pushing.writing import TAKES, damping_of
from carom.scenes.scene import MjcfScene
from carom.state import Status

OWN_MJCF = """
<mujoco>
  <option timestep="0.005" cone="elliptic"/>
  <worldbody>
    <geom name="table" type="plane" size="1 1 0.1" friction="0.4"/>
    <body name="cart">
      <joint name="cart_x" type="slide" axis="1 0 0"/>
      <geom type="box" pos="0 0 0.2" size="0.02 0.02 0.02" mass="0.3" contype="0" conaffinity="0"/>
      <body name="finger" pos="0 0 0.04">
        <joint name="cart_y" type="slide" axis="0 1 0"/>
        <geom type="sphere" size="0.015" mass="0.2"/>
      </body>
    </body>
    <body name="puck" pos="0.08 0 0.03">
      <freejoint/>
      <geom type="cylinder" size="0.04 0.03" mass="0.25"/>
    </body>
  </worldbody>
  <actuator>
    <position joint="cart_x" kp="200" kv="15" ctrlrange="-0.4 0.4"/>
    <position joint="cart_y" kp="200" kv="15" ctrlrange="-0.4 0.4"/>
  </actuator>
</mujoco>
"""


def test_the_t_weighs_and_turns_as_its_two_boxes_do() -> None:
    model = push_scene("planar-t").model
    body = model.body("block")
    bar, stem = np.array([0.12, 0.03, 0.04]), np.array([0.03, 0.09, 0.04])
    masses = 0.2 * np.array([bar.prod(), stem.prod()]) / (bar.prod() + stem.prod())
    assert body.mass[0] == pytest.approx(0.2)
    np.testing.assert_allclose(body.ipos, 0.0, atol=1e-9)  # its frame is at its centre of mass
    apart = 0.06  # between the boxes' centres: half of 30 mm and half of 90 mm
    reduced = masses.prod() / masses.sum()
    vertical = sum(m * (s[0] ** 2 + s[1] ** 2) / 12 for m, s in zip(masses, (bar, stem), strict=True))
    expected = vertical + reduced * apart**2
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, body.iquat)
    matrix = turn.reshape(3, 3) @ np.diag(body.inertia) @ turn.reshape(3, 3).T
    assert matrix[2, 2] == pytest.approx(expected, rel=1e-6)


def test_the_arm_is_as_strong_and_as_mobile_as_stated() -> None:
    model = push_scene("arm-cube").model
    joints = [model.joint(f"joint_{i}") for i in range(1, 7)]
    np.testing.assert_allclose([joint.range for joint in joints], RANGES)
    np.testing.assert_allclose(model.actuator_forcerange[:, 1], TORQUES)
    data = mujoco.MjData(model)
    data.ctrl[:] = [2.0, 0.17, -0.09, 1.57, 1.74, 3.14]  # far off: motors give what they can, and joints go no farther
    strongest, farthest = np.zeros(6), np.zeros(6)
    for _ in range(400):
        mujoco.mj_step(model, data)
        strongest = np.maximum(strongest, np.abs(data.actuator_force))
        farthest = np.maximum(farthest, np.abs(data.qpos[:6]))
    assert (strongest <= np.array(TORQUES) + 1e-9).all()
    assert strongest[0] == pytest.approx(TORQUES[0])
    assert (farthest <= np.abs(np.array(RANGES)).max(axis=1) + 0.02).all()


def test_the_arm_has_the_stated_ranges_torques_and_lengths() -> None:
    """Numbers of the issue, not of the module."""
    model = push_scene("arm-t").model
    low, high = [-3.14, -2.96, -0.09, -1.57, -1.74, -3.14], [2.09, 0.17, 3.14, 1.57, 1.74, 3.14]
    np.testing.assert_allclose(model.actuator_ctrlrange, np.column_stack([low, high]))
    np.testing.assert_allclose(model.actuator_forcerange, np.outer([24, 24, 24, 8, 8, 8], [-1, 1]))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    own = [int(model.joint(f"joint_{i}").qposadr[0]) for i in range(1, 7)]
    for _ in range(5):  # lengths do not hang on how the arm stands
        data.qpos[own] = rng.uniform(low, high)
        mujoco.mj_kinematics(model, data)
        shoulder, elbow, wrist = (data.xanchor[model.joint(f"joint_{i}").id] for i in (2, 3, 5))
        tip = data.site("tool").xpos
        found = [np.linalg.norm(b - a) for a, b in ((shoulder, elbow), (elbow, wrist), (wrist, tip))]
        np.testing.assert_allclose(found, [0.27, 0.29, 0.24], atol=1e-12)


def test_the_tools_tip_is_where_mujoco_has_it() -> None:
    rng = np.random.default_rng(0)
    for scene in (push_scene("arm-t"), push_scene("planar-cube")):
        data, model = mujoco.MjData(scene.model), scene.model
        own = [int(model.joint(name).qposadr[0]) for name in scene.joint_names]
        joints = rng.uniform(scene.limits[:, 0], scene.limits[:, 1], (20, len(own)))
        for row, tip in zip(joints, scene.tool_position(joints), strict=True):
            data.qpos[own] = row
            mujoco.mj_kinematics(model, data)
            np.testing.assert_allclose(data.site("tool").xpos, tip, atol=1e-12)


def test_joints_for_a_place_of_the_arms_tip() -> None:
    scene, rng = push_scene("arm-cube"), np.random.default_rng(1)
    away, bearing = rng.uniform(0.2, 0.5, 50), rng.uniform(-1, 1, 50)
    tip = np.column_stack([away * np.cos(bearing), away * np.sin(bearing), rng.uniform(0.01, 0.06, 50)])
    joints = arm_joints(tip)
    np.testing.assert_allclose(scene.tool_position(joints), tip, atol=1e-9)
    assert ((joints >= scene.limits[:, 0]) & (joints <= scene.limits[:, 1])).all()


@pytest.mark.parametrize("name", OWN)
def test_nothing_tips_or_flies_off_under_random_actions(name: str) -> None:
    task, rng, count = pushing_task(name), np.random.default_rng(3), 48
    state, _ = task.sample(count, rng)
    run = push_simulator(task.scene).open(state)
    away = np.zeros(count, dtype=bool)
    for step in range(task.steps):
        if step % 4 == 0:
            action = rng.uniform(-1, 1, (count, task.acts))
        state = run.step(task.controls(state, action))
        away |= task.outside(state)  # an episode is over there
        upright, height = axes(state.quaternion[:, 0])[:, 2, 2], state.position[:, 0, 2]
        most = 2.0 if task.scene.robot == "planar" else 25.0  # the arm's tool may come down on the block's edge
        assert np.degrees(np.arccos(np.clip(upright[~away].min(), -1, 1))) < most
        assert np.abs(height[~away] - task.scene.rest_height).max() < (0.001 if task.scene.robot == "planar" else 0.015)
    assert (run.status == Status.MOVING).all()
    assert away.mean() < 0.9


def pushed(scene: PushScene, parameter: str, values: np.ndarray) -> np.ndarray:
    """Where an off-centre push brings the block and the joints, for each value of a parameter."""
    simulator = push_simulator(scene, (parameter,))
    start = scene.placed(np.tile([0.0, 0.0, 0.1], (len(values), 1)), np.tile([-0.06, 0.01], (len(values), 1)))
    controls = np.tile([-0.06, 0.01], (len(values), 24, 1))
    controls[:, :, 0] += np.minimum(np.arange(1, 25) * 0.015, 0.18)
    motion = simulator.replay(start, controls, {parameter: values})
    assert (motion.status == Status.MOVING).all()
    return np.concatenate([motion.position[:, -1, 0], motion.joint_position[:, 10]], axis=1)


@pytest.mark.parametrize("parameter", [*TAKES, "actuator_delay"])
def test_every_parameter_acts_row_by_row(parameter: str) -> None:
    scene, known = push_scene("planar-cube"), PARAMETERS[parameter]
    low, high = known.from_unit(0.05), known.from_unit(0.95)
    ends = pushed(scene, parameter, np.array([low, high, low]))
    np.testing.assert_array_equal(ends[0], ends[2])  # rows do not depend on each other
    assert np.abs(ends[0] - ends[1]).max() > 2e-5
    assert np.abs(ends[:, 2] - scene.rest_height).max() < 2e-3  # and nothing flies off at its bounds


def test_friction_slows_a_block_as_coulomb_says() -> None:
    """A sliding cube stops after v^2 / (2 mu g)."""
    scene = push_scene("planar-cube")
    start = scene.placed(np.tile([0.0, 0.0, 0.0], (3, 1)), np.tile([-0.3, 0.0], (3, 1)))
    start.velocity[:, 0, 0] = 0.5
    friction = np.array([0.15, 0.3, 0.6])
    engine = MujocoEngine(scene, ("ground_friction", "mass_scale"), threads=1)
    held = start.joint_position[:, None]  # the tool stays away
    end = engine.open(start, {"ground_friction": friction}).rollout(1.0, held).position[:, -1, 0, 0]
    np.testing.assert_allclose(end, 0.25 / (2 * friction * 9.81), rtol=0.06)
    heavy = engine.open(start, {"mass_scale": 2.0}).rollout(1.0, held).position[:, -1, 0, 0]
    np.testing.assert_allclose(heavy, 0.25 / (2 * 0.3 * 9.81), rtol=0.06)  # whatever its mass


@pytest.mark.parametrize(("name", "loose"), [("planar-cube", 0.08), ("planar-t", 0.25)])
def test_pressure_spread_is_the_lever_of_friction_against_turning(name: str, loose: float) -> None:
    """A spinning block stops after w^2 I / (2 mu m g lever); how far it slides does not depend on the spread.

    The T's feet do not carry alike, so its lever is only about the mean one.
    """
    scene, spread = push_scene(name), np.array([0.4, 0.6, 1.0])
    start = scene.placed(np.zeros((3, 3)), np.tile([-0.3, 0.0], (3, 1)))
    start.spin[:, 0, 2] = 10.0
    engine = MujocoEngine(scene, ("ground_friction", "pressure_spread"), threads=1)
    values = {"ground_friction": 0.2, "pressure_spread": spread}
    held = start.joint_position[:, None]
    turned = 2 * np.arcsin(engine.open(start, values).rollout(0.6, held).quaternion[:, -1, 0, 3])
    model, body = scene.model, scene.model.body(scene.block_body).id
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    about_z = (data.ximat[body].reshape(3, 3) ** 2 @ model.body_inertia[body])[2]
    lever = spread * np.linalg.norm(scene.corners, axis=-1).mean()
    expected = 100.0 * about_z / (2 * 0.2 * float(model.body_mass[body]) * 9.81 * lever)
    np.testing.assert_allclose(turned, expected, rtol=loose)
    start = scene.placed(np.zeros((3, 3)), np.tile([-0.3, 0.0], (3, 1)))
    start.velocity[:, 0, 0] = 0.4
    assert (start.spin == 0).all()  # velocity and spin are not one array
    end = engine.open(start, values).rollout(1.0, held).position[:, -1, 0, 0]
    np.testing.assert_allclose(end, 0.16 / (2 * 0.2 * 9.81), rtol=0.05)


def test_restitution_is_the_share_of_speed_kept() -> None:
    """A cube that slides without friction into the held tool."""
    scene, wanted = push_scene("planar-cube"), np.array([0.2, 0.5, 0.8])
    start = scene.placed(np.tile([0.1, 0.0, 0.0], (3, 1)), np.zeros((3, 2)))
    start.velocity[:, 0, 0] = -0.3
    names = ("restitution", "ground_friction", "servo_stiffness", "joint_friction")
    engine = MujocoEngine(scene, names, threads=1)
    held = {"ground_friction": 1e-4, "servo_stiffness": 5.0, "joint_friction": 1.0}
    run = engine.open(start, {"restitution": wanted, **held})
    kept = run.rollout(0.8).position
    speed = run.state.velocity[:, 0, 0]
    assert np.isfinite(kept).all()
    np.testing.assert_allclose(speed / 0.3, wanted, atol=0.15)
    assert damping_of(np.array([1.0]))[0] < 0.01 < damping_of(np.array([0.5]))[0]


def test_restitution_and_damping_of_the_tool_are_one_thing() -> None:
    scene = push_scene("planar-cube")
    engine = MujocoEngine(scene, ("restitution", "striker_damping"), threads=1)
    with pytest.raises(SceneError, match="restitution and striker_damping are the same here"):
        engine.open(scene.home(1), {"restitution": 0.5, "striker_damping": 0.5})


def test_a_users_own_mjcf_is_pushed_by_its_roles() -> None:
    own = MjcfScene("mine", OWN_MJCF, roles={"target": "puck", "tool": "finger"})
    scene = PushScene("mine", own=own)
    assert (scene.block_body, scene.tool_body, scene.joint_names) == ("puck", "finger", ("cart_x", "cart_y"))
    simulator = push_simulator(scene, ("ground_friction", "mass_scale"))
    start = scene.home(2)
    controls = np.tile([0.15, 0.01], (2, 30, 1))
    motion = simulator.replay(start, controls, {"ground_friction": [0.2, 0.8]})
    moved = motion.position[:, -1, 0, 0] - 0.08
    assert (moved > 0.05).all()
    assert moved[0] != moved[1]
    np.testing.assert_allclose(motion.position[:, -1, 0, 2], 0.03, atol=2e-3)
    run = simulator.engine.open(simulator.scene.placed(np.array([[0.052, 0.0, 0.0]]), np.zeros((1, 2))))
    run.step(0.005)
    met = [set(pair) for pair in run.contacts().bodies]
    assert {"finger", "puck"} in met
    assert met.count({"finger", "puck"}) == 1  # its own contact and the pair are not both there


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: push_scene("planar-cub"), r"unknown scene of pushing 'planar-cub' \(did you mean 'planar-cube'\?\)"),
        (lambda: PushScene("x", block="l"), "unknown block 'l'"),
        (lambda: PushScene("x", robot="leg"), "unknown robot 'leg'"),
        (lambda: PushScene("x", mass=-1.0), r"scene 'x': the block needs a positive mass \[kg\], got -1.0"),
        (
            lambda: PushScene("x", own=MjcfScene("x", OWN_MJCF, roles={"target": "finger", "tool": "puck"})),
            "scene 'x': pushing needs one free joint, that of the target finger; got puck",
        ),
        (
            lambda: PushScene("x", own=MjcfScene("x", OWN_MJCF, roles={"target": "puck", "tool": "puck"})),
            "scene 'x': the tool puck is part of the target puck",
        ),
        (
            lambda: PushScene("x", own=MjcfScene("x", OWN_MJCF, roles={"target": "puck"})),
            "scene 'x': pushing needs the role tool",
        ),
        (
            lambda: PushScene(
                "x",
                own=MjcfScene(
                    "x",
                    OWN_MJCF.replace("position", "motor").replace('kp="200" kv="15"', ""),
                    roles={"target": "puck", "tool": "finger"},
                ),
            ),
            "actuator 0: pushing needs position servos on joints, with a ctrlrange",
        ),
    ],
)
def test_wrong_scenes_are_refused(make: object, message: str) -> None:
    with pytest.raises(SceneError, match=message):
        make()  # type: ignore[operator]


def test_the_same_mjcf_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text(OWN_MJCF)
    own = MjcfScene("mine", file=tmp_path / "mine.xml", roles={"target": "puck", "tool": "finger"})
    assert PushScene("mine", own=own).joint_names == ("cart_x", "cart_y")
