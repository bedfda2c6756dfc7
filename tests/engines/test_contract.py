"""One contract, every engine: opened at states, stepped or rolled out; statuses, rows and messages alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from test_strikes import Bounce, approaching, engine

from carom.core.errors import CaromError
from carom.engines import Engine, MjxSimulator, MujocoEngine
from carom.engines.planar import state_of, strikes_of
from carom.scenes.free import FreeScene, toss_scene
from carom.scenes.pushing import push_scene
from carom.scenes.scene import MjcfScene
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import builtin
from carom.scenes.varied import VariedScene
from carom.state import Array, SceneState, Status

#: An arm of two joints with position servos, whose hand pushes a block over the floor.
ARM = MjcfScene(
    "arm",
    """
    <mujoco>
      <option timestep="0.002" cone="elliptic"/>
      <worldbody>
        <geom name="floor" type="plane" size="2 2 0.1" contype="0" conaffinity="0"/>
        <body name="upper" pos="0 0 0.03">
          <joint name="shoulder" axis="0 0 1" damping="0.2"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.8" contype="0" conaffinity="0"/>
          <body name="lower" pos="0.3 0 0">
            <joint name="elbow" axis="0 0 1" damping="0.2"/>
            <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.02" mass="0.5" contype="0" conaffinity="0"/>
            <geom name="hand" type="sphere" pos="0.25 0 0" size="0.025" mass="0.1" contype="0" conaffinity="0"/>
          </body>
        </body>
        <body name="block" pos="0.45 0.12 0.03">
          <freejoint/>
          <geom name="block" type="box" size="0.04 0.04 0.03" mass="0.2" contype="0" conaffinity="0"/>
        </body>
      </worldbody>
      <contact>
        <pair name="hand" geom1="hand" geom2="block"/>
        <pair name="floor" geom1="floor" geom2="block"/>
      </contact>
      <actuator>
        <position joint="shoulder" kp="60" kv="4"/>
        <position joint="elbow" kp="60" kv="4"/>
      </actuator>
    </mujoco>
    """,
    roles={"arm": "upper", "tool": "lower", "target": "block"},
)
TWO = FreeScene(
    "two",
    (
        Body("cube", "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.3),
        Body("ball", "target", Shape("sphere", radius=0.04), mass=0.2),
    ),
)

CUBES = FreeScene(
    "cubes", tuple(Body(name, "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.3) for name in ("one", "two"))
)


@dataclass(frozen=True)
class Case:
    """An engine and states to open it at."""

    engine: Callable[[], Engine]
    states: Callable[[int], SceneState]
    controls: int  #: numbers in a control
    period: float = 0.01  #: [s] of a control
    parameter: str = ""  #: one that it takes
    exact: bool = True  #: whether steps and rollouts agree to the last digits


def flying(scene: FreeScene, count: int) -> SceneState:
    rng, bodies = np.random.default_rng(0), tuple(b.name for b in scene.bodies)
    position = rng.normal(size=(4, len(bodies), 3)) * 0.02 + [0.0, 0.0, 0.2]
    position[..., 0] += 0.3 * np.arange(len(bodies))
    turn = rng.normal(size=(4, len(bodies), 4))
    turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
    speed, spin = rng.normal(size=(2, 4, len(bodies), 3)) * 0.5
    return SceneState(bodies, position, turn, speed, spin)[np.arange(count)]


def reaching(count: int) -> SceneState:
    made = MujocoEngine(ARM, threads=1)
    start = made.home(4)
    return replace(start, joint_position=start.joint_position + [[-0.1 * i, 0.3] for i in range(4)])[np.arange(count)]


def striking(count: int) -> SceneState:
    square = builtin("square")
    held = replace(approaching(square, 4, seed=3), posture=np.tile([0.025, 0.0, 0.0, 0.0], (4, 1)))
    return state_of(square, held)[np.arange(count)]


def pushing(count: int) -> SceneState:
    """Tools beside a T, moving into it."""
    scene = push_scene("planar-t")
    block = np.column_stack([np.zeros((4, 2)), np.linspace(0, 1, 4)])
    start = scene.placed(block, np.column_stack([np.full(4, -0.1), 0.01 * np.arange(4)]))
    return replace(start, joint_velocity=np.tile([0.3, 0.0], (4, 1)))[np.arange(count)]


@cache
def mjx() -> Engine:
    pytest.importorskip("jax", reason="JAX is not installed: pip install carom[mjx]")
    pytest.importorskip("mujoco.mjx", reason="MJX is not installed: pip install carom[mjx]")
    return MjxSimulator(builtin("square"), {"ground_friction": 0.3})


@cache
def brax() -> Engine:
    pytest.importorskip("brax", reason="Brax is not installed: pip install carom[bench]")
    from carom.engines.brax import BraxEngine

    return BraxEngine(toss_scene(), ("friction",), pipeline="spring", step=0.001)


@cache
def graph() -> Engine:
    import torch

    from carom.learn.graph import GraphEngine, GraphModel, new_network

    torch.manual_seed(0)
    contact = {"friction": 0.3, "face_friction": 0.3, "stiffness": 20_000.0, "damping": 200.0}
    untrained = GraphModel(new_network(), 0.01, contact, {})
    return GraphEngine(untrained, CUBES, ("friction", "mass_scale"), dtype=torch.float64)


CASES = {
    "mujoco: free bodies": Case(
        cache(lambda: MujocoEngine(TWO, ("friction", "mass_scale"), step=0.001, threads=2)),
        lambda count: flying(TWO, count),
        0,
        parameter="friction",
    ),
    "mujoco: robot": Case(
        cache(lambda: MujocoEngine(ARM, ("friction",), threads=2)), reaching, 2, parameter="friction"
    ),
    "mujoco: pushing": Case(
        cache(lambda: MujocoEngine(push_scene("planar-t"), ("ground_friction",), threads=2)),
        pushing,
        2,
        parameter="ground_friction",
    ),
    "mujoco: strike scene": Case(
        cache(lambda: MujocoEngine(builtin("square"), ("striker_friction",), threads=2)),
        striking,
        0,
        parameter="striker_friction",
    ),
    "mujoco: strikes": Case(lambda: engine("mujoco"), striking, 3, parameter="striker_friction"),
    "hybrid: slider": Case(lambda: engine("hybrid"), striking, 3, exact=False),
    "hybrid: mujoco": Case(lambda: engine("hybrid-mujoco"), striking, 3, exact=False),  # rollouts take longer steps
    "mjx: strikes": Case(mjx, striking, 3),
    "graph": Case(graph, lambda count: flying(CUBES, count), 0, parameter="friction"),
    "brax": Case(brax, lambda count: flying(toss_scene(), count), 0, parameter="friction"),
}
SLOW = ("mjx: strikes", "brax")  #: they compile for long
every_engine = pytest.mark.parametrize(
    "case", [pytest.param(case, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, case in CASES.items()]
)
SOME = 3  #: rows; MJX pads to powers of two, so that 3 and 4 share a program


def poses(state: SceneState) -> Array:
    return np.concatenate([state.position, state.quaternion], axis=-1)


@every_engine
def test_a_run_is_opened_stepped_and_rolled_out(case: Case) -> None:
    start = case.states(SOME)
    run = case.engine().open(start)
    np.testing.assert_allclose(poses(run.state), poses(start), atol=1e-12)
    np.testing.assert_allclose(run.state.velocity, start.velocity, atol=1e-12)
    after = run.step(case.period)
    assert after.bodies == start.bodies
    assert after.joints == start.joints
    assert len(after) == SOME
    assert np.isfinite(poses(after)).all()
    assert run.status.dtype == np.int8
    assert (run.status != Status.FAILED).all()
    motion = case.engine().open(start).rollout(4 * case.period, frames=5)
    assert motion.position.shape == (SOME, 5, len(start.bodies), 3)
    assert motion.quaternion.shape == (SOME, 5, len(start.bodies), 4)
    np.testing.assert_allclose(motion.time, np.tile(np.arange(5) * case.period, (SOME, 1)), atol=1e-9)
    np.testing.assert_allclose(motion.position[:, 0], start.position, atol=1e-12)
    np.testing.assert_allclose(motion.position[:, 1], after.position, atol=1e-9 if case.exact else 1e-4)


@every_engine
def test_steps_one_after_the_other_are_a_rollout(case: Case) -> None:
    start = case.states(SOME)
    whole = case.engine().open(start).rollout(8 * case.period, frames=2)
    run = case.engine().open(start)
    for _ in range(8):
        run.step(case.period)
    tolerance = 1e-9 if case.exact else 2e-4
    np.testing.assert_allclose(run.state.position, whole.position[:, -1], atol=tolerance)


@every_engine
def test_a_rollout_leaves_the_run_at_its_end(case: Case) -> None:
    run = case.engine().open(case.states(SOME))
    motion = run.rollout(4 * case.period, frames=3)
    np.testing.assert_allclose(run.state.position[..., :2], motion.position[:, -1, :, :2], atol=1e-9)
    np.testing.assert_array_equal(run.status, motion.status)
    if case.controls == 3:
        with pytest.raises(CaromError, match="this run is over"):
            run.step(case.period)
        return
    again = run.rollout(4 * case.period, frames=3)
    whole = case.engine().open(case.states(SOME)).rollout(8 * case.period, frames=3)
    np.testing.assert_allclose(again.position[:, -1], whole.position[:, -1], atol=1e-9)


@every_engine
def test_an_empty_batch_is_fine(case: Case) -> None:
    start = case.states(4)[:0]
    run = case.engine().open(start)
    assert len(run.step(case.period)) == 0
    assert len(run.status) == 0
    assert case.engine().open(start).rollout(case.period, frames=3).position.shape == (0, 3, len(start.bodies), 3)


@every_engine
def test_a_row_that_is_no_numbers_fails_and_changes_no_other(case: Case) -> None:
    start = case.states(4)
    position = start.position.copy()
    position[1, 0, 0] = np.nan
    good, spoilt = (case.engine().open(s).rollout(5 * case.period) for s in (start, replace(start, position=position)))
    assert spoilt.status[1] == Status.FAILED
    assert (np.delete(spoilt.status, 1) != Status.FAILED).all()
    others = np.array([0, 2, 3])
    np.testing.assert_allclose(spoilt.position[others], good.position[others], atol=1e-12)
    run = case.engine().open(replace(start, position=position))
    run.step(case.period)
    assert run.status[1] == Status.FAILED


@every_engine
def test_a_row_does_not_depend_on_its_neighbours(case: Case) -> None:
    start = case.states(4)
    all_of_them = case.engine().open(start).rollout(5 * case.period, frames=3)
    three = case.engine().open(start[[3, 0, 1]]).rollout(5 * case.period, frames=3)
    np.testing.assert_allclose(three.position, all_of_them.position[[3, 0, 1]], rtol=0, atol=1e-12)


@every_engine
def test_parameters_differ_per_row_or_are_refused(case: Case) -> None:
    start, made = case.states(SOME), case.engine()
    if not case.parameter:
        with pytest.raises(CaromError, match="unknown parameter of this engine 'friction'"):
            made.open(start, {"friction": 0.2})
        return
    made.open(start, {case.parameter: [0.1, 0.2, 0.3]}).step(case.period)
    with pytest.raises(CaromError, match=f"parameter '{case.parameter}': expected a finite number, or 3 of them"):
        made.open(start, {case.parameter: [0.1, 0.2]})
    with pytest.raises(CaromError, match="unknown parameter of this engine 'frction'"):
        made.open(start, {"frction": 0.2})


@every_engine
def test_parameters_are_forgotten_when_it_is_opened_again(case: Case) -> None:
    if not case.parameter:
        pytest.skip("this engine takes no parameters")
    start, made = case.states(SOME), case.engine()
    plain = made.open(start).rollout(30 * case.period)
    made.open(start, {case.parameter: 0.05}).rollout(30 * case.period)
    again = made.open(start).rollout(30 * case.period)
    np.testing.assert_array_equal(again.position, plain.position)


@every_engine
def test_wrong_states_durations_and_controls_are_refused(case: Case) -> None:
    start, made = case.states(SOME), case.engine()
    other = SceneState(("nobody",), np.zeros((1, 1, 3)), [[[1.0, 0, 0, 0]]], np.zeros((1, 1, 3)), np.zeros((1, 1, 3)))
    with pytest.raises(CaromError, match=r"start: expected .*got nobody"):
        made.open(other)
    for duration in (0.0, -1.0, np.nan):
        with pytest.raises(CaromError, match="duration: expected"):
            made.open(start).rollout(duration)
    with pytest.raises(CaromError, match=r"controls: expected"):
        made.open(start).step(case.period, np.zeros((SOME, case.controls + 1)))
    with pytest.raises(CaromError, match="frames: expected 2 or more"):
        made.open(start).rollout(case.period, frames=1)


@every_engine
def test_it_says_what_it_makes_of_a_scene(case: Case) -> None:
    made = case.engine()
    assert made.validate(made.scene).ok
    foreign = ARM if case.controls == 3 else MjcfScene("ball", BALL_JOINT)
    verdict = made.validate(foreign)
    assert not verdict.ok
    assert all(verdict.cannot)


BALL_JOINT = "<mujoco><worldbody><body><joint type='ball'/><geom size='0.1'/></body></worldbody></mujoco>"


def test_an_arm_pushes_a_block_in_a_closed_loop() -> None:
    """256 arms, each with another friction of the floor, steer their hands by what they see; 2 s at 50 Hz."""
    count, period = 256, 0.02
    made = MujocoEngine(ARM, ("friction",), threads=2)
    start = made.home(count)
    start = replace(start, joint_position=np.tile([-0.3, 0.6], (count, 1)))
    friction = np.linspace(0.1, 0.8, count)
    run = made.open(start, {"friction": friction})
    touched = np.zeros(count, dtype=bool)
    state = run.state
    for _ in range(100):
        block, joints = state.position[:, 0], state.joint_position
        bearing = np.arctan2(block[:, 1], block[:, 0])
        state = run.step(period, np.column_stack([bearing + 0.1, joints[:, 1] - 0.2 * (joints[:, 1] - 0.4)]))
        touched |= np.linalg.norm(state.velocity[:, 0], axis=-1) > 0.02
    assert (run.status == Status.MOVING).all()
    assert touched.all()
    moved = np.linalg.norm(state.position[:, 0, :2] - start.position[:, 0, :2], axis=-1)
    assert (moved > 0.01).all()
    assert np.ptp(moved) > 1e-3  # parameters differ per row
    assert (np.abs(state.position[:, 0, 2] - 0.03) < 5e-3).all()  # nobody sank in or flew away
    contacts = run.contacts()
    floor = [i for i, pair in enumerate(contacts.bodies) if set(pair) == {"world", "block"}]
    assert set(contacts.row[floor]) == set(range(count))
    # the floor carries the block: over one step, its weight times the step
    weight = np.bincount(contacts.row[floor], np.abs(contacts.impulse[floor, 2]), count)
    assert np.median(weight) == pytest.approx(0.2 * 9.81 * made.timestep, rel=0.2)
    assert (np.abs(np.linalg.norm(contacts.normal, axis=-1) - 1) < 1e-9).all()


def test_a_run_is_over_when_its_engine_is_opened_again() -> None:
    for name in ("mujoco: free bodies", "mujoco: strikes"):
        case = CASES[name]
        former = case.engine().open(case.states(2))
        case.engine().open(case.states(2))
        with pytest.raises(CaromError, match="this run is over"):
            former.step(case.period)


def test_controls_of_a_rollout_are_held_in_turn() -> None:
    made = MujocoEngine(ARM, threads=1)
    start = reaching(2)
    targets = np.array([[[0.2, 0.1], [-0.2, 0.4]]]).repeat(2, axis=0)
    whole = made.open(start).rollout(0.4, targets, frames=3)
    run = made.open(start)
    run.step(0.2, targets[:, 0])
    np.testing.assert_allclose(whole.joint_position[:, 1], run.state.joint_position, atol=1e-9)
    run.step(0.2, targets[:, 1])
    np.testing.assert_allclose(whole.joint_position[:, 2], run.state.joint_position, atol=1e-9)


def test_no_control_is_left_out() -> None:
    """Steps and controls that do not divide evenly: each control is held for its share, to the nearest step."""
    made = MujocoEngine(ARM, threads=1)
    start, count = reaching(1), 22
    targets = np.random.default_rng(0).uniform(-0.5, 0.5, (1, count, 2))
    whole = made.open(start).rollout(0.77, targets, frames=2)
    run, at = made.open(start), np.rint(385 * np.arange(count + 1) / count).astype(int)
    for k in range(count):
        run.step((at[k + 1] - at[k]) * 0.002, targets[:, k])
    np.testing.assert_allclose(run.state.joint_position, whole.joint_position[:, -1], atol=1e-9)


def test_controls_count_after_steps_too() -> None:
    """A striker that is told to go in the first of four controls goes, however few frames are kept."""
    moved = []
    for frames in (2, 5):
        run = engine("hybrid").open(striking(1))
        run.step(0.002, np.zeros((1, 3)))
        controls = np.zeros((1, 4, 3))
        controls[0, 0, 1] = 0.3
        moved.append(run.rollout(0.04, controls, frames=frames).position[0, -1, 1])
    np.testing.assert_allclose(moved[0], moved[1], atol=1e-9)


def test_rows_with_other_bodies_are_checked() -> None:
    cube = Body("cube", "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.3)
    ball = Body("ball", "target", Shape("sphere", radius=0.04), mass=0.2)
    made = MujocoEngine(VariedScene(FreeScene("one", (cube,))), threads=1)
    start = replace(flying(FreeScene("one", (cube,)), 2), bodies=made.layout.bodies)
    made.open(start, bodies=[(cube,), (replace(cube, mass=0.5),)]).step(0.0009)
    for bodies, message in (
        (None, "its bodies differ per row"),
        ([(cube,)], "expected those of 2 rows, got 1"),
        ([(cube,), (ball,)], "expected box, each with a mass, in every row; got sphere"),
    ):
        with pytest.raises(CaromError, match=message):
            made.open(start, bodies=bodies)
    with pytest.raises(CaromError, match="the same in all rows; use a VariedScene"):
        MujocoEngine(TWO, threads=1).open(flying(TWO, 1), bodies=[TWO.bodies])


def test_rounded_edges_are_forgotten_too() -> None:
    made = MujocoEngine(toss_scene(), ("edge_radius",), step=0.001, threads=1)
    still = SceneState(("cube",), [[[0, 0, 0.06]]], [[[1.0, 0, 0, 0]]], np.zeros((1, 1, 3)), np.zeros((1, 1, 3)))
    for radius in (0.01, 0.0):
        height = made.open(still, {"edge_radius": radius}).rollout(0.5).position[0, -1, 0, 2]
        assert height == pytest.approx(0.05, abs=5e-4)


def test_a_planar_body_has_its_pose_in_the_world() -> None:
    puck = "<body name='puck' pos='{}'>{}<geom size='0.1' mass='1'/></body>"
    joints = "".join(
        f"<joint name='puck_{n}' type='{t}' axis='{a}'/>"
        for n, t, a in (("x", "slide", "1 0 0"), ("y", "slide", "0 1 0"), ("yaw", "hinge", "0 0 1"))
    )
    worlds = (f"<mujoco><worldbody>{puck.format(at, joints)}</worldbody></mujoco>" for at in ("0 0 .1", ".5 .2 .1"))
    centred, off = (MujocoEngine(MjcfScene("puck", xml)) for xml in worlds)
    assert centred.home(1).bodies == ("puck",)
    assert centred.home(1).position[0, 0].tolist() == [0.0, 0.0, 0.1]
    assert off.home(1).joints == ("puck_x", "puck_y", "puck_yaw")  # its joints are not its pose


def test_planar_strikes_and_states_are_two_views_of_one_thing() -> None:
    for name in ("square", "semi-cylinder"):
        scene = builtin(name)
        strikes = approaching(scene, 5, seed=1)
        moving = replace(strikes, target_velocity=np.random.default_rng(0).normal(size=(5, 3)))
        back = strikes_of(scene, state_of(scene, moving))
        for column in ("target_pose", "target_velocity", "striker_pose", "striker_velocity"):
            near = getattr(back, column) - getattr(moving, column)
            near[:, 2] = np.arctan2(np.sin(near[:, 2]), np.cos(near[:, 2]))
            np.testing.assert_allclose(near, 0, atol=1e-12)


def test_the_learned_impact_strikes_in_a_closed_loop() -> None:
    """A striker led bit by bit hits as one that was thrown: the network answers within a step."""
    scene = builtin("square")
    assert isinstance(engine("hybrid").impact.model, Bounce)  # type: ignore[attr-defined]
    start = striking(4)
    thrown = engine("hybrid").open(start).rollout(0.3).position[:, -1, 0]
    run = engine("hybrid").open(start)
    for _ in range(30):
        run.step(0.01)
    np.testing.assert_allclose(run.state.position[:, 0, :2], thrown[:, :2], atol=2e-4)
    assert (run.status != Status.MISSED).all()
    assert scene.mass > 0
