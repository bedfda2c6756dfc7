"""The task of pushing: rewards and errors against hand computation, observations, actions within the servos' limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.envs.pushing import Goals, PushingTask, Zone, pushing_task
from carom.envs.pushing.task import half_angle
from carom.scenes.pushing import OWN


def goals_at(x: float, y: float, yaw: float, height: float) -> Goals:
    return Goals(np.array([[x, y, height]]), about_z(np.array([yaw])))


def test_the_reward_of_the_cube_by_hand() -> None:
    task = pushing_task("planar-cube")
    state = task.scene.placed(np.array([[0.03, 0.04, 0.5]]), np.array([[0.0, 0.0]]))
    # goal 0.1 m from the block; the tool's tip (0, 0, 0.008) from the block's middle (0.03, 0.04, 0.03)
    reward = task.reward(state, goals_at(0.03, 0.14, 0.0, 0.03))
    tool = np.sqrt(0.03**2 + 0.04**2 + 0.022**2)
    assert reward[0] == pytest.approx(-(6.0 * 0.1 + 3.0 * tool))


def test_the_reward_of_the_t_by_hand_whatever_the_quaternions_signs() -> None:
    task = pushing_task("planar-t")
    state = task.scene.placed(np.array([[0.0, 0.0, 0.2]]), np.array([[0.2, 0.0]]))
    goals = goals_at(0.06, 0.08, 1.0, 0.02)
    expected = -(3.0 * 0.1 + 6.0 * 0.4)  # half of 0.8 rad, as the inner product of quaternions has it
    assert task.reward(state, goals)[0] == pytest.approx(expected)
    other = Goals(goals.position, -goals.quaternion)
    assert task.reward(state, other)[0] == pytest.approx(expected)
    away, turned = task.errors(state, other)
    assert (away[0], turned[0]) == (pytest.approx(0.1), pytest.approx(0.8))
    np.testing.assert_array_equal(task.observe(state, other), task.observe(state, goals))


def test_half_angles_of_turns_all_around() -> None:
    turn = np.linspace(-np.pi, np.pi, 9)
    np.testing.assert_allclose(half_angle(about_z(turn), about_z(0 * turn)), np.abs(turn) / 2, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "x", "yaw", "done"),
    [
        ("planar-cube", 0.0199, 2.0, True),
        ("planar-cube", 0.0201, 0.0, False),
        ("planar-t", 0.0299, np.radians(14.9), True),
        ("planar-t", 0.0299, np.radians(-15.1), False),
        ("planar-t", 0.0301, 0.0, False),
    ],
)
def test_what_counts_as_done(name: str, x: float, yaw: float, done: bool) -> None:
    task = pushing_task(name)
    state = task.scene.placed(np.array([[x, 0.0, yaw]]), np.array([[0.2, 0.0]]))
    assert task.success(state, goals_at(0.0, 0.0, 0.0, task.scene.rest_height))[0] == done


def test_an_observation_number_by_number() -> None:
    task = pushing_task("planar-t")
    state = task.scene.placed(np.array([[0.1, 0.0, 0.3]]), np.array([[0.0, -0.05]]))
    seen = task.observe(state, goals_at(0.0, 0.2, -0.4, 0.02))[0]
    tool, goal, block = np.array([0, -0.5, 0.08]), np.array([0, 2.0, 0.2]), np.array([1.0, 0, 0.2])
    turns = [np.cos(0.15), 0, 0, np.sin(0.15), np.cos(0.2), 0, 0, -np.sin(0.2)]
    expected = np.concatenate([[0.0, -0.5], tool, goal, block, goal - block, block - tool, turns])
    np.testing.assert_allclose(seen, expected, atol=1e-6)
    assert pushing_task("arm-cube").observed == 6 + 5 * 3
    assert pushing_task("arm-t").observed == 6 + 5 * 3 + 8


@pytest.mark.parametrize("name", OWN)
def test_starts_touch_nothing_and_goals_can_be_reached(name: str) -> None:
    task, count = pushing_task(name), 300
    state, goals = task.sample(count, np.random.default_rng(0))
    tip, block = task.scene.tool_position(state.joint_position), state.position[:, 0]
    reach = np.hypot(*task.scene.corners.reshape(-1, 2).T).max() + 0.012
    assert (np.hypot(*(tip - block)[:, :2].T) >= reach + 0.009).all()
    assert not task.outside(state).any()
    assert not task.places.border.outside(goals.position[:, :2]).any()
    assert (np.hypot(*(goals.position - block)[:, :2].T) >= task.places.least).all()
    assert not task.success(state, goals).any()
    _, turned = task.errors(state, goals)
    assert turned.max() <= np.pi if name.endswith("cube") else turned.max() <= task.places.turn + 1e-9


@pytest.mark.parametrize("name", OWN)
def test_actions_move_joints_by_their_reach_and_within_limits(name: str) -> None:
    task = pushing_task(name)
    state, _ = task.sample(4, np.random.default_rng(0))
    asked = task.controls(state, np.ones((4, task.acts)))
    np.testing.assert_allclose(asked - state.joint_position, task.reach)
    np.testing.assert_allclose(task.controls(state, np.full((4, task.acts), 7.0)), asked)  # actions are cut at 1
    edge = replace(state, joint_position=np.tile(task.scene.limits[:, 1] - 0.001, (4, 1)))
    assert (task.controls(edge, np.ones((4, task.acts))) <= task.scene.limits[:, 1]).all()


def test_a_controller_is_a_policy_with_goals() -> None:
    task = pushing_task("planar-cube")
    state, goals = task.sample(5, np.random.default_rng(0))
    control = task.controller(lambda seen: np.clip(seen[:, :2], -1, 1), goals)
    np.testing.assert_allclose(control(state), task.controls(state, np.clip(task.observe(state, goals)[:, :2], -1, 1)))


def test_blocks_that_tipped_or_left_are_outside() -> None:
    task = pushing_task("planar-cube")
    state = task.scene.placed(np.zeros((4, 3)), np.full((4, 2), 0.1))
    position, turn = state.position.copy(), state.quaternion.copy()
    position[1, 0, 0], position[2, 0, 2] = 0.33, 0.07
    turn[3, 0] = [np.cos(0.3), np.sin(0.3), 0, 0]  # leans by 0.6 rad
    assert task.outside(replace(state, position=position, quaternion=turn)).tolist() == [False, True, True, True]


def test_zones_are_drawn_within_themselves() -> None:
    zone = Zone(centre=(0.1, 0.0), near=0.1, far=0.3, aside=0.5)
    assert not zone.outside(zone.draw(500, np.random.default_rng(0))).any()
    assert zone.outside(np.array([[0.15, 0.0], [0.5, 0.0], [0.1, 0.2]])).all()


def test_a_task_without_steps_is_refused() -> None:
    task = pushing_task("planar-cube")
    with pytest.raises(CaromError, match="a task needs one step or more and a positive reach, got 0"):
        PushingTask(task.scene, task.places, 0, 0.03)
