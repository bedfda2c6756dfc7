"""Set-points and their delay: closed loop and replay agree, late ones act late, states survive as flat rows."""

from __future__ import annotations

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.engines import MujocoEngine
from carom.engines.pushing import PERIOD, PushSimulator, delayed, flat, flat_columns, push_simulator, unflat
from carom.scenes.free import toss_scene
from carom.scenes.pushing import push_scene

SCENE = push_scene("planar-cube")


def set_points(count: int, periods: int = 12) -> np.ndarray:
    rng = np.random.default_rng(0)
    return SCENE.home(count).joint_position[:, None] + rng.normal(size=(count, periods, 2)).cumsum(axis=1) * 0.02


@pytest.mark.parametrize("late", [0.0, 0.02, 0.05, 0.0637, 0.085])
def test_steps_and_replay_agree_with_any_delay(late: float) -> None:
    simulator, start, controls = push_simulator(SCENE), SCENE.home(3), set_points(3)
    values = {"actuator_delay": [late, 0.0, 0.03]}
    motion = simulator.replay(start, controls, values)
    run = simulator.open(start, values)
    states = [run.step(controls[:, k]) for k in range(12)]
    for k, state in enumerate(states):
        np.testing.assert_allclose(state.position, motion.position[:, k + 1], atol=1e-12)
        np.testing.assert_allclose(state.joint_position, motion.joint_position[:, k + 1], atol=1e-12)
    np.testing.assert_allclose(motion.time[0], PERIOD * np.arange(13))


def test_a_delay_of_a_period_is_the_same_motion_a_period_later() -> None:
    simulator, start, controls = push_simulator(SCENE), SCENE.home(1), set_points(1)
    prompt = simulator.replay(start, controls)
    late = simulator.replay(start, controls, {"actuator_delay": PERIOD})
    np.testing.assert_allclose(late.joint_position[:, 1], start.joint_position, atol=1e-6)  # nothing yet
    np.testing.assert_allclose(late.joint_position[:, 1:], prompt.joint_position[:, :-1], atol=1e-6)


def test_a_run_opened_in_the_middle_goes_on_with_what_was_held() -> None:
    simulator, start, controls = push_simulator(SCENE), SCENE.home(2), set_points(2)
    values = {"actuator_delay": 0.07}
    run = simulator.open(start, values)
    for k in range(6):
        middle = run.step(controls[:, k])
    again = simulator.open(middle, values, held=run.held)
    for k in range(6, 12):
        end = again.step(controls[:, k])
    whole = simulator.replay(start, controls, values)
    np.testing.assert_allclose(end.joint_position, whole.joint_position[:, -1], atol=1e-9)


def test_which_set_point_acts_when() -> None:
    controls = np.arange(1.0, 4.0).reshape(1, 3, 1)
    held = np.zeros((1, 1, 1))
    for late, expected in ((0, "112233"), (1, "011223"), (2, "001122"), (3, "000112")):
        acts = delayed(controls, held, np.array([late]), 2)[0, :, 0]
        assert "".join(str(int(v)) for v in acts) == expected


def test_a_motion_depends_smoothly_on_the_delay() -> None:
    simulator, controls = push_simulator(SCENE), set_points(1)
    late = np.linspace(0.02, 0.03, 11)  # over two of the engine's steps
    motion = simulator.replay(SCENE.home(11), np.tile(controls, (11, 1, 1)), {"actuator_delay": late})
    steps = np.diff(motion.joint_position[:, 6, 0])
    assert np.abs(steps).max() > 1e-5
    np.testing.assert_allclose(steps, steps.mean(), rtol=0.15)


def test_states_as_flat_rows_and_back() -> None:
    simulator, start, controls = push_simulator(SCENE), SCENE.home(2), set_points(2)
    run = simulator.open(start)
    for k in range(8):
        state = run.step(controls[:, k])
    rows = flat(state)
    assert rows.shape == (2, len(flat_columns(SCENE)))
    np.testing.assert_allclose(flat(unflat(SCENE, rows)), rows, atol=1e-12)
    assert flat_columns(SCENE)[-6:] == ("x", "y", "yaw", "vx", "vy", "wz")
    with pytest.raises(CaromError, match="rows: expected 10 columns"):
        unflat(SCENE, rows[:, 1:])


def test_wrong_use_is_refused() -> None:
    with pytest.raises(CaromError, match="pushing needs the engine of a PushScene, got scene 'toss'"):
        PushSimulator(MujocoEngine(toss_scene()))
    with pytest.raises(CaromError, match="period: expected a multiple of the engine"):
        PushSimulator(MujocoEngine(SCENE), period=0.012)
    simulator = push_simulator(SCENE)
    with pytest.raises(CaromError, match=r"actuator_delay: expected 0 to 0.1 s, got 0.2 to 0.2 s"):
        simulator.open(SCENE.home(1), {"actuator_delay": 0.2})
    with pytest.raises(CaromError, match=r"controls: expected an array of shape \(1, T, 2\)"):
        simulator.replay(SCENE.home(1), np.zeros((1, 3, 1)))
    with pytest.raises(CaromError, match=r"controls: expected shape \(1, 2\)"):
        simulator.open(SCENE.home(1)).step(np.zeros((1, 3)))
    with pytest.raises(CaromError, match=r"held: expected an array of shape \(1, 2\)"):
        simulator.open(SCENE.home(1), held=np.zeros((1, 3)))
