"""Where a simulation of a recording begins: the state there, from nothing but the samples before the contact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.core.errors import RecordingError
from carom.core.rotations import matrices
from carom.recordings import Trajectory
from carom.recordings.starts import LEAD, find_start, first_contact
from carom.scenes.shapes import Body, Shape

RATE, G = 150.0, 9.7
VELOCITY, SPIN = np.array([0.8, -0.4, 0.9]), np.array([4.0, -3.0, 5.0])
CUBE = Body("cube", "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.37)
NOISE = (5e-5, float(np.radians(0.025)))  #: [m], [rad]


def flight(*, com=(0.0, 0.0, 0.0), noise=(0.0, 0.0), seed=0, height=0.3):
    """A cube in free flight about its centre of mass, that lies where it came down; and its true path."""
    time = np.arange(80) / RATE
    turn = Rotation.from_rotvec(np.outer(time, SPIN)) * Rotation.from_rotvec([0.3, 0.5, -0.2])
    centre = np.array([0.0, 0.0, height]) + np.outer(time, VELOCITY) - np.outer(0.5 * G * time**2, [0, 0, 1.0])
    position, quaternion = centre - turn.apply(com), turn.as_quat()[:, [3, 0, 1, 2]]
    down = int(np.flatnonzero(position[:, 2] < 0.05)[0])
    position[down:], quaternion[down:] = position[down], quaternion[down]
    rng = np.random.default_rng(seed)
    shaken = Rotation.from_rotvec(noise[1] * rng.normal(size=(80, 3))) * Rotation.from_quat(quaternion[:, [1, 2, 3, 0]])
    seen = position + noise[0] * rng.normal(size=(80, 3))
    return Trajectory(
        "toss.csv", Path("toss.csv"), time, {"cube": seen}, {"cube": shaken.as_quat()[:, [3, 0, 1, 2]]}, {"cube": CUBE}
    )


def changed(trajectory, rows, *, position=None, quaternion=None):
    """The trajectory with some rows of its only body replaced."""
    at, turn = trajectory.position_world["cube"].copy(), trajectory.quaternion_world["cube"].copy()
    at[rows] = at[rows] if position is None else position
    turn[rows] = turn[rows] if quaternion is None else quaternion
    return replace(trajectory, position_world={"cube": at}, quaternion_world={"cube": turn})


def test_an_exact_flight_gives_the_exact_state():
    start = find_start(flight(), gravity=G)
    time = start.index / RATE
    np.testing.assert_allclose(start.velocity[0], VELOCITY - [0, 0, G * time], atol=1e-9)
    np.testing.assert_allclose(start.spin[0], SPIN, atol=1e-6)
    np.testing.assert_allclose(start.position[0, 2], 0.3 + 0.9 * time - 0.5 * G * time**2, atol=1e-9)
    np.testing.assert_allclose(start.strange, 0.0, atol=1e-6)


def test_velocity_and_spin_are_right_within_the_noise():
    trajectory = flight(noise=NOISE)
    index = find_start(trajectory, gravity=G).index
    truth, errors = VELOCITY - [0, 0, G * index / RATE], []
    for seed in range(12):
        start = find_start(flight(noise=NOISE, seed=seed), gravity=G)
        assert abs(start.index - index) <= 1
        truth = VELOCITY - [0, 0, G * start.index / RATE]
        errors.append(np.concatenate([start.velocity[0] - truth, start.spin[0] - SPIN]))
    spread = np.sqrt(np.mean(np.square(errors), axis=0))
    # a straight line through 30 samples of 0.2 s knows its slope to noise * sqrt(12 / 30) / 0.2
    slope = np.sqrt(12 / 30) / 0.2
    assert (spread[:3] < 1.6 * NOISE[0] * slope).all()
    assert (spread[3:] < 1.6 * NOISE[1] * slope).all()
    assert (spread > 0).all()


def test_the_start_lies_shortly_before_the_first_contact():
    trajectory = flight()
    contact = first_contact(trajectory)
    corners = np.array([[x, y, z] for x in (-0.05, 0.05) for y in (-0.05, 0.05) for z in (-0.05, 0.05)])
    turn = matrices(trajectory.quaternion_world["cube"])
    low = trajectory.position_world["cube"][:, 2] + np.einsum("tj,cj->tc", turn[:, 2], corners).min(axis=-1)
    assert low[contact] < 0.002 <= low[contact - 1]
    assert find_start(trajectory, gravity=G).index == contact - LEAD
    assert first_contact(trajectory, ground_height=-0.05) > contact
    assert first_contact(trajectory, scale=0.9) > contact
    assert first_contact(trajectory, ground_height=-5.0) == len(trajectory)


def test_nothing_after_the_contact_counts():
    trajectory = flight(noise=NOISE)
    contact, rng = first_contact(trajectory), np.random.default_rng(1)
    rest = len(trajectory) - contact
    turn = rng.normal(size=(rest, 4))
    wild = changed(
        trajectory,
        slice(contact, None),
        position=rng.uniform(0.0, 0.05, (rest, 3)),
        quaternion=turn / np.linalg.norm(turn, axis=-1, keepdims=True),
    )
    one, other = find_start(trajectory, gravity=G), find_start(wild, gravity=G)
    for field in vars(one):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


def test_lost_samples_are_done_without():
    trajectory = flight(noise=NOISE)
    whole = find_start(trajectory, gravity=G)
    lost = changed(trajectory, [whole.index - 9, whole.index - 5, whole.index], position=np.nan, quaternion=np.nan)
    start = find_start(lost, gravity=G)
    assert start.index == whole.index
    np.testing.assert_allclose(start.velocity, whole.velocity, atol=1e-3)
    np.testing.assert_allclose(start.position, whole.position, atol=2e-4)
    np.testing.assert_allclose(start.spin, whole.spin, atol=1e-2)


def test_lost_orientations_are_done_without():
    trajectory = flight(noise=NOISE)
    whole = find_start(trajectory, gravity=G)
    start = find_start(changed(trajectory, [whole.index - 9, whole.index], quaternion=np.nan), gravity=G)
    np.testing.assert_allclose(start.velocity, whole.velocity, atol=1e-3)
    np.testing.assert_allclose(start.spin, whole.spin, atol=1e-2)
    assert np.isfinite(start.velocity_by_com).all()


def test_too_few_samples_before_the_contact_is_said():
    trajectory = flight()
    contact = first_contact(trajectory)
    late = replace(
        trajectory,
        time=trajectory.time[contact - 2 :],
        position_world={"cube": trajectory.position_world["cube"][contact - 2 :]},
        quaternion_world={"cube": trajectory.quaternion_world["cube"][contact - 2 :]},
    )
    with pytest.raises(RecordingError, match=r"toss.csv: only 2 samples before the first contact; 3 are needed"):
        find_start(late, gravity=G)
    gone = changed(trajectory, slice(2, contact), position=np.nan, quaternion=np.nan)
    with pytest.raises(RecordingError, match=r"toss.csv: fewer than 3 samples of 'cube' before the first contact"):
        find_start(gone, gravity=G)


def test_a_toss_needs_shape_and_orientation():
    trajectory = flight()
    blind = replace(trajectory, quaternion_world={"cube": None})
    with pytest.raises(RecordingError, match="a toss of 'cube' needs its shape and its orientation"):
        find_start(blind, gravity=G)


def test_the_estimate_follows_a_mass_that_lies_off_the_middle():
    """With the mass off centre the frame's path is no parabola: the corrections per metre make up for it."""
    com = np.array([0.004, -0.006, 0.003])
    start = find_start(flight(com=com), gravity=G)
    time = start.index / RATE
    turn = matrices(start.quaternion)[0]
    truth = VELOCITY - [0, 0, G * time] - np.cross(SPIN, turn @ com)
    corrected = start.velocity[0] + start.velocity_by_com[0] @ com
    assert np.abs(start.velocity[0] - truth).max() > 0.005
    np.testing.assert_allclose(corrected, truth, atol=1e-6)
    centre = np.array([0, 0, 0.3]) + time * VELOCITY - [0, 0, 0.5 * G * time**2]
    np.testing.assert_allclose(start.position[0] + start.position_by_com[0] @ com, centre - turn @ com, atol=1e-7)
    # and what looks like a strange acceleration in flight is what this centre of mass makes of it
    assert np.abs(start.strange[0]).max() > 0.05
    np.testing.assert_allclose(start.strange[0] + start.strange_by_com[0] @ com, 0.0, atol=1e-6)


def test_the_estimate_follows_gravity():
    trajectory = flight()
    assumed, right = find_start(trajectory, gravity=9.3), find_start(trajectory, gravity=G)
    moved = assumed.velocity[0] + (G - 9.3) * assumed.velocity_by_gravity[0]
    np.testing.assert_allclose(moved, right.velocity[0], atol=1e-9)
    placed = assumed.position[0] + (G - 9.3) * assumed.position_by_gravity[0]
    np.testing.assert_allclose(placed, right.position[0], atol=1e-9)
    assert assumed.strange[0, 2] == pytest.approx(9.3 - G, abs=1e-6)


def test_the_scatter_of_flights_is_as_said():
    """Standard errors of the acceleration are those seen over many noisy flights."""
    found = [find_start(flight(noise=NOISE, seed=s), gravity=G) for s in range(40)]
    spread = np.std([s.strange[0] for s in found], axis=0)
    said = np.mean([s.strange_std[0] for s in found])
    np.testing.assert_allclose(spread, said, rtol=0.35)


def test_gliding_bodies_start_before_they_meet():
    time = np.arange(100) / RATE
    a, b = np.zeros((100, 3)), np.zeros((100, 3))
    a[:, 0] = -0.2 + 0.5 * time
    met = int(np.flatnonzero(a[:, 0] > -0.05)[0])
    a[met:, 0] = a[met, 0] - 0.1 * (time[met:] - time[met])
    b[met:, 0] = 0.3 * (time[met:] - time[met])
    bodies = {n: Body(n, r, Shape("disc", radius=0.025), mass=0.02) for n, r in (("a", "striker"), ("b", "target"))}
    trajectory = Trajectory("pair.csv", Path("pair.csv"), time, {"a": a, "b": b}, {"a": None, "b": None}, bodies)
    start = find_start(trajectory, gravity=G)
    assert met - LEAD - 2 <= start.index < met
    np.testing.assert_allclose(start.velocity, [[0.5, 0, 0], [0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(start.velocity_by_gravity, 0.0)
