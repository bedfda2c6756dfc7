"""The MJX simulator against MuJoCo's own, strike by strike; one program is compiled for all of these tests."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.engines.approach import at_distance
from carom.engines.contract import Rollout, Status
from carom.engines.mjx.strikes import MjxSimulator
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.scenes.parameters import known
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import builtin
from carom.state import Strikes, rotate

VALUES = {"striker_friction": 0.25, "ground_friction": 0.35, "striker_damping": 0.5, "com_x": 0.002, "com_y": -0.001}
STEP = 1e-3
DURATION = 0.3


@pytest.fixture(scope="module")
def simulator() -> MjxSimulator:
    pytest.importorskip("jax", reason="JAX is not installed: pip install carom[mjx]")
    pytest.importorskip("mujoco.mjx", reason="MJX is not installed: pip install carom[mjx]")
    return MjxSimulator(builtin("square"), VALUES)


@pytest.fixture(scope="module")
def mujoco_own() -> MujocoSimulator:
    return MujocoSimulator(builtin("square"), VALUES, threads=1)


def strikes(gap: float = 0.01) -> Strikes:
    """Four strikes at the square's left side, the target turned so that its yaw passes pi; the first ones are slow."""
    scene, pose = builtin("square"), np.array([0.3, -0.2, 3.12])
    place, speed, turn = (
        np.array([0.01, -0.02, 0.025, 0.0]),
        np.array([0.25, 0.3, 0.6, 0.8]),
        np.array([0, 0.2, -0.2, 0]),
    )
    centre = np.column_stack([np.full(4, -0.06), place])
    velocity = speed[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    still, zero = np.zeros((4, 3)), np.zeros(4)
    there = pose[:2] + rotate(centre, np.full(4, pose[2]))
    made = Strikes(
        np.tile(pose, (4, 1)),
        still,
        np.column_stack([there, np.full(4, pose[2])]),
        np.column_stack([rotate(velocity, np.full(4, pose[2])), zero]),
    )
    return at_distance(scene, made, gap, {})


def same(run: Rollout, other: Rollout, *, frame_atol: float) -> None:
    """The same status and instants, and outcomes within 1 % (1e-4 is what is seen).

    MJX stops its solver after 20 iterations, and the sliding that follows adds up: poses differ by a tenth of a
    millimetre, and the velocity of a target that is about to stop by more than its pose.
    """
    k = builtin("square").gyration_radius
    np.testing.assert_array_equal(run.status, other.status)
    np.testing.assert_array_equal(run.impacts, other.impacts)
    np.testing.assert_array_equal(run.from_engine, run.impacts)
    np.testing.assert_allclose(run.contact_time, other.contact_time, atol=STEP)
    size = np.linalg.norm(other.post * [1, 1, k], axis=1)
    assert (np.linalg.norm((run.post - other.post) * [1, 1, k], axis=1) < 0.01 * size).all()
    np.testing.assert_allclose(run.time, other.time)
    np.testing.assert_allclose(run.target_pose * [1, 1, k], other.target_pose * [1, 1, k], atol=frame_atol)
    np.testing.assert_allclose(run.striker_pose, other.striker_pose, atol=frame_atol)
    np.testing.assert_allclose(run.target_velocity * [1, 1, k], other.target_velocity * [1, 1, k], atol=0.02)


def test_strikes_go_as_in_mujoco(simulator, mujoco_own):
    run = simulator.rollout(strikes(), DURATION, frames=7)
    same(run, mujoco_own.rollout(strikes(), DURATION, frames=7), frame_atol=5e-4)
    assert set(run.status) == {Status.AT_REST, Status.MOVING}
    assert (run.impacts == 1).all()
    assert not run.guarded.any()
    speed = np.linalg.norm(strikes().striker_velocity[:, :2], axis=1)
    np.testing.assert_allclose(run.contact_time, 0.01 / speed, atol=1.5 * STEP)
    assert np.abs(run.rest[:, 2]).max() > np.pi  # not wrapped
    resting = np.flatnonzero(run.status == Status.AT_REST)
    assert not run.target_velocity[resting, -1].any()


def test_every_strike_has_its_own_duration(simulator, mujoco_own):
    lasting = np.array([0.06, 0.123, 0.2, 0.0335])
    run, other = (engine.rollout(strikes(), lasting, frames=4) for engine in (simulator, mujoco_own))
    same(run, other, frame_atol=5e-4)
    np.testing.assert_allclose(run.time[:, -1], lasting)


def test_strikers_follow_orders(simulator, mujoco_own):
    first = strikes()
    there = first.striker_velocity
    # on, then back and turning, then on again: some strike twice
    orders = np.stack([there, 0.5 * there, -there + [0, 0, 2.0], 2 * there], axis=1)
    run, other = (engine.rollout(first, DURATION, orders, frames=7) for engine in (simulator, mujoco_own))
    same(run, other, frame_atol=2e-3)
    assert run.striker_pose[:, -1, 2].min() > first.striker_pose[0, 2] + 0.1


def test_a_strike_that_starts_at_the_target_counts(simulator):
    run = simulator.rollout(strikes(gap=1e-5), 0.1)
    assert (run.impacts == 1).all()
    assert (run.contact_time <= STEP).all()
    assert np.isfinite(run.post).all()


def test_misses_and_failures_are_data(simulator):
    base = simulator.rollout(strikes(), DURATION, frames=3)
    striker, velocity = strikes().striker_pose.copy(), strikes().striker_velocity.copy()
    velocity[1] *= -1  # away from the target
    velocity[2] = np.nan
    given = replace(strikes(), striker_pose=striker, striker_velocity=velocity)
    run = simulator.rollout(given, DURATION, frames=3)
    assert run.status[1] == Status.MISSED
    assert run.impacts[1] == 0
    assert np.isnan(run.contact_time[1])
    assert np.isnan(run.post[1]).all()
    np.testing.assert_allclose(run.rest[1], given.target_pose[1], atol=2e-5)  # it settles on the ground
    np.testing.assert_allclose(run.striker_pose[1, -1], striker[1] + DURATION * velocity[1], atol=1e-9)
    assert run.status[2] == Status.FAILED
    assert np.isnan(run.rest[2]).all()
    for row in (0, 3):  # what happens beside it does not matter to a strike
        for name in ("status", "contact_time", "post", "target_pose", "target_velocity", "striker_pose"):
            np.testing.assert_allclose(getattr(run, name)[row], getattr(base, name)[row], rtol=0, atol=1e-10)


def test_padding_does_not_show(simulator):
    three, four = (simulator.rollout(strikes()[:n], 0.1) for n in (3, 4))
    assert len(three) == 3
    assert three.target_pose.shape == (3, 2, 3)
    np.testing.assert_allclose(three.rest, four.rest[:3], rtol=0, atol=1e-12)
    assert len(simulator.rollout(strikes()[:0], 0.1)) == 0


def test_validate_names_what_is_left_out(simulator):
    assert simulator.validate(builtin("square")).ignored == ()
    round_one = simulator.validate(builtin("semi-cylinder"))
    assert round_one.ok
    assert round_one.ignored == ("the target's outline of 49 corners: a mesh of 20 in its place",)
    inertia = replace(builtin("square"), unknown=(known("striker_inertia"),))
    assert simulator.validate(inertia).ignored == ("unknown 'striker_inertia': has no meaning here",)
    ball = Body("ball", "target", Shape("sphere", radius=0.03), 0.1)
    rolls = simulator.validate(replace(builtin("square"), target=ball))
    assert not rolls.ok
    assert "a sphere rolls" in rolls.cannot[0]
    coarse = MjxSimulator(builtin("square"), pyramidal=True)
    assert coarse.validate(builtin("square")).ignored == ("elliptic friction cones: pyramids in their place",)


def test_absent_jax_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(CaromError, match=r"pip install carom\[mjx\]"):
        MjxSimulator(builtin("square"))


def test_the_module_needs_no_jax():
    code = "import sys; sys.modules['jax'] = None; import carom.engines.mjx.strikes"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
