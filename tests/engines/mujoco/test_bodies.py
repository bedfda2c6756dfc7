"""Rollouts of free bodies: laws of motion, parity with plain MuJoCo, and independence of neighbours and threads."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from free_recordings import starts_of_tosses
from rolled_bodies import Rolled
from scipy.spatial.transform import Rotation

from carom.core.errors import SceneError
from carom.core.rotations import to_body
from carom.engines.mujoco.engine import Keep
from carom.identify.tosses.restitution import contact_character
from carom.identify.tosses.simulate import Starts
from carom.scenes.free import FreeScene, toss_scene
from carom.scenes.parameters import FREE, Parameter, free_parameters
from carom.scenes.shapes import Body, Shape

PERIOD = 0.01
LEVEL = np.array([1.0, 0.0, 0.0, 0.0])
CONTACT = {"friction": 0.25, "stiffness": 15_000.0, "damping": 120.0}


def one(position, velocity, *, quaternion=LEVEL, spin=(0.0, 0.0, 0.0)):
    """A start of one body, known exactly."""
    return Starts.known(*(np.array(v, dtype=float)[None, None] for v in (position, quaternion, velocity, spin)))


def engine(names, scene=None, *, period=PERIOD, step=None, threads=1):
    return Rolled(scene or toss_scene(), free_parameters(tuple(names)), period=period, step=step, threads=threads)


def frames(quaternion):
    return Rotation.from_quat(quaternion[..., [1, 2, 3, 0]]).as_matrix()


def test_free_fall_is_the_parabola_to_the_first_order_of_the_step():
    start, samples = one([0.1, 0.2, 2.0], [0.5, -0.3, 1.0]), 31
    time = np.arange(samples) * PERIOD
    exact = np.array([0.1, 0.2, 2.0]) + np.outer(time, [0.5, -0.3, 1.0])
    exact[:, 2] -= 0.5 * 9.81 * time**2
    errors = []
    for step in (PERIOD / 10, PERIOD / 20):
        motion = engine((), step=step).run(start, np.zeros((1, 0)), samples)
        np.testing.assert_allclose(motion.position[0, :, 0, :2], exact[:, :2], atol=1e-12)
        errors.append(np.abs(motion.position[0, :, 0, 2] - exact[:, 2]).max())
    assert errors[0] == pytest.approx(0.5 * 9.81 * time[-1] * PERIOD / 10, rel=1e-6)  # semi-implicit Euler's
    assert errors[1] == pytest.approx(errors[0] / 2, rel=1e-6)


def test_in_flight_a_cube_keeps_its_spin_and_its_mass_centre_falls_freely():
    spin, com = np.array([3.0, -5.0, 4.0]), np.array([0.0, 0.008, 0.0])
    start = replace(one([0.0, 0.0, 3.0], [0.4, 0.0, 0.5], spin=spin), side=np.array([[0.0, 1.0, 0.0]]))
    samples, time = 41, np.arange(41) * PERIOD
    motion = engine(["com_offset"], step=PERIOD / 50).run(start, np.array([[0.008]]), samples)
    turn = frames(motion.quaternion[0, :, 0])
    vectors = Rotation.from_matrix(turn[1:] @ turn[:-1].transpose(0, 2, 1)).as_rotvec() / PERIOD
    np.testing.assert_allclose(vectors, np.tile(spin, (samples - 1, 1)), atol=2e-3)
    frame = motion.position[0, :, 0]
    centre = frame + turn @ com
    velocity = np.array([0.4, 0.0, 0.5]) + np.cross(spin, com)
    fall = centre[0] + np.outer(time, velocity) - np.outer(0.5 * 9.81 * time * (time + PERIOD / 50), [0, 0, 1.0])
    np.testing.assert_allclose(centre, fall, atol=5e-5)
    wobble = frame - (frame[0] + np.outer(time, velocity) - np.outer(0.5 * 9.81 * time**2, [0, 0, 1.0]))
    assert np.abs(wobble).max() > 2e-3  # the frame itself does not


@pytest.mark.parametrize(
    ("values", "mu"),
    [({**CONTACT, "friction": 0.2}, 0.2), ({**CONTACT, "friction": 0.35, "face_friction": 0.15}, 0.15)],
)
def test_a_cube_on_its_face_slows_down_by_friction(values, mu):
    height = 0.05 * (1.005 if "face_friction" in values else 1.0)
    samples = 31
    motion = engine(values).run(one([0, 0, height], [1.0, 0, 0]), np.array([list(values.values())]), samples)
    time, x = np.arange(samples) * PERIOD, motion.position[0, :, 0, 0]
    slowing = -2 * np.polyfit(time[5:25], x[5:25], 2)[0]
    assert slowing == pytest.approx(mu * 9.81, rel=0.02)
    assert np.abs(motion.quaternion[0, :, 0, 1:]).max() < 0.01  # it slides, it does not tumble


def test_rows_do_not_depend_on_their_neighbours_nor_on_threads():
    starts = starts_of_tosses(6, np.random.default_rng(3), np.array([0, 1, 2, 3, 4, 5]))
    names = ("friction", "stiffness", "damping", "inertia_scale", "com_offset", "face_friction", "length_scale")
    low = np.array([0.1, 5e3, 50.0, 0.8, 0.0, 0.1, 0.97])
    high = np.array([0.4, 5e4, 200.0, 1.3, 0.01, 0.3, 1.03])
    values = low + (high - low) * np.random.default_rng(4).random((6, 7))
    together = engine(names).run(starts, values, 70)
    threaded = engine(names, threads=2).run(starts, values, 70)
    np.testing.assert_array_equal(together.position, threaded.position)
    np.testing.assert_array_equal(together.quaternion, threaded.quaternion)
    alone = engine(names)
    for row in (4, 1):  # in another order, and with an engine that has run something else before
        motion = alone.run(starts[[row]], values[[row]], 70)
        np.testing.assert_array_equal(motion.position[0], together.position[row])
        np.testing.assert_array_equal(motion.quaternion[0], together.quaternion[row])


def test_a_rollout_that_fails_leaves_the_others_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log where it runs
    starts = starts_of_tosses(3, np.random.default_rng(3))
    bad = replace(starts, velocity=starts.velocity.copy())
    bad.velocity[1] = 1e9
    values = np.array([list(CONTACT.values())])
    good, mixed = engine(CONTACT).run(starts, values, 40), engine(CONTACT).run(bad, values, 40)
    assert mixed.failed.tolist() == [False, True, False]
    assert np.isfinite(mixed.position).all()
    np.testing.assert_array_equal(mixed.position[[0, 2]], good.position[[0, 2]])


def test_poor_candidates_stand_still_once_they_are_given_up():
    starts = starts_of_tosses(4, np.random.default_rng(3))
    values = np.array([list(CONTACT.values())])
    whole = engine(CONTACT).run(starts, values, 40)
    seen = []

    def choose(position, quaternion):
        seen.append((position.shape, quaternion.shape))
        return np.array([True, False, True, False])

    some = engine(CONTACT).run(starts, values, 40, keep=Keep(15, choose))
    assert seen == [((4, 16, 1, 3), (4, 16, 1, 4))]
    np.testing.assert_array_equal(some.position[[0, 2]], whole.position[[0, 2]])
    np.testing.assert_array_equal(some.position[[1, 3], 15:], whole.position[[1, 3], 15:16].repeat(25, axis=1))


def stepped(batch, values, starts, samples):
    """The same with `mj_step`, on the MJCF with the values written in."""
    model = batch.scene.spec_with(values, step=batch.step).compile()
    data = mujoco.MjData(model)
    data.qpos[:3], data.qpos[3:] = starts.position[0, 0], starts.quaternion[0, 0]
    data.qvel[:3] = starts.velocity[0, 0]
    data.qvel[3:] = to_body(starts.quaternion[0], starts.spin[0])[0]
    path = [data.qpos.copy()]
    for _ in range(samples - 1):
        mujoco.mj_step(model, data, nstep=round(batch.period / batch.step))
        path.append(data.qpos.copy())
    return np.array(path)


@pytest.mark.parametrize(
    "values",
    [
        CONTACT,
        {"friction": 0.2, "time_constant": 0.01, "damping_ratio": 0.4},
        {
            "friction": 0.3,
            "impedance_least": 0.92,
            "impedance_most": 0.97,
            "impedance_width": 0.003,
            "impedance_midpoint": 0.02,
            "impedance_power": 3.0,
        },
        {**CONTACT, "torsional_friction": 0.01},
        {**CONTACT, "torsional_friction": 0.01, "rolling_friction": 0.001},
        {**CONTACT, "length_scale": 0.97},
        {**CONTACT, "inertia_scale": 1.3},
        {**CONTACT, "mass_scale": 1.7},
        {**CONTACT, "gravity": 9.5},
        {**CONTACT, "com_x": 0.004, "com_y": -0.002, "com_z": 0.003},
        {**CONTACT, "face_friction": 0.1},
        {**CONTACT, "face_friction": 0.1, "length_scale": 1.03, "inertia_scale": 0.8, "gravity": 9.6},
        {**CONTACT, "tilt_x": 0.02, "tilt_y": -0.01},
        {**CONTACT, "edge_radius": 0.006},
    ],
    ids=lambda values: "+".join(n for n in values if n not in CONTACT) or "direct",
)
def test_the_written_mjcf_moves_as_the_batch_does(values):
    starts = starts_of_tosses(1, np.random.default_rng(8))
    batch, samples = engine(values), 75
    motion = batch.run(starts, np.array([list(values.values())]), samples)
    path = stepped(batch, values, starts, samples)
    met = np.flatnonzero(motion.position[0, :, 0, 2] < 0.09)[0]
    assert met < 50  # it has met the ground, and more than once
    np.testing.assert_allclose(motion.position[0, :, 0], path[:, :3], atol=1e-6)
    np.testing.assert_allclose(motion.quaternion[0, :, 0], path[:, 3:], atol=1e-5)


def test_wrong_parameters_are_refused_with_what_exists():
    stranger = Parameter("stickiness", "1", 0.0, 1.0, 0.5, False, "not a thing")
    with pytest.raises(SceneError, match="'stickiness' has no meaning in scene 'toss'; it takes: friction, "):
        Rolled(toss_scene(), (stranger,), period=PERIOD)


def discs(mass=(0.02, 0.05), radius=(0.025, 0.04)):
    a, b = (
        Body(name, role, Shape("disc", radius=r), mass=m)
        for name, role, r, m in zip(("a", "b"), ("striker", "target"), radius, mass, strict=True)
    )
    return FreeScene("table", (a, b), planar=True)


def collided(values, *, aside=0.0, period=0.002):
    """Velocities of two discs [2, 2] and spins [2] before and after a disc at 0.5 m/s meets one at rest."""
    position = np.array([[[-0.1, aside, 0.0], [0.0, 0.0, 0.0]]])
    velocity, still = np.array([[[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]]), np.zeros((1, 2, 3))
    starts = Starts.known(position, np.tile(LEVEL, (1, 2, 1)), velocity, still)
    batch = engine(values, discs(), period=period)
    motion = batch.run(starts, np.array([list(values.values())]), 301)
    path = motion.position[0, :, :, :2]
    yaw = np.unwrap(2 * np.arctan2(motion.quaternion[0, :, :, 3], motion.quaternion[0, :, :, 0]), axis=0)
    after = (path[-1] - path[-51]) / (50 * period)
    return velocity[0, :, :2], after, (yaw[-1] - yaw[-51]) / (50 * period), batch, path[-1]


@pytest.mark.parametrize("aside", [0.0, 0.03])
def test_colliding_discs_keep_momentum_and_their_contact_its_restitution(aside):
    values = {"friction": 0.2, "stiffness": 20_000.0, "damping": 60.0}
    before, after, spin, batch, end = collided(values, aside=aside)
    mass = np.array([0.02, 0.05])
    np.testing.assert_allclose(mass @ after, mass @ before, atol=1e-9)
    if aside == 0.0:
        restitution, contact_time = contact_character(values, batch.step)
        assert 0.2 < restitution < 0.9
        assert 0 < contact_time < 0.05
        assert (after[1, 0] - after[0, 0]) / 0.5 == pytest.approx(restitution, abs=0.03)
        np.testing.assert_allclose(spin, 0.0, atol=0.05)  # rolling on each other it would be 20 rad/s
        return
    inertia = batch.model.body_inertia[1:, 2]
    about_origin = mass * (end[:, 0] * after[:, 1] - end[:, 1] * after[:, 0]) + inertia * spin
    assert about_origin.sum() == pytest.approx(mass[0] * (0.0 * 0.0 - aside * 0.5), abs=1e-7)
    assert (np.abs(spin) > 0.1).all()  # friction turns both
    kinetic = 0.5 * (mass * (after**2).sum(axis=-1)).sum() + 0.5 * (inertia * spin**2).sum()
    assert kinetic < 0.5 * mass[0] * 0.25


def test_lengths_of_colliding_discs_count_recorded_over_real():
    values = {"friction": 0.0, "stiffness": 50_000.0, "damping": 200.0, "length_scale": 1.05}
    position = np.array([[[-0.1, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    velocity, still = np.array([[[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]]), np.zeros((1, 2, 3))
    starts = Starts.known(position, np.tile(LEVEL, (1, 2, 1)), velocity, still)
    path = engine(values, discs(), period=0.001).run(starts, np.array([list(values.values())]), 200).position[0]
    apart = np.linalg.norm(path[:, 0] - path[:, 1], axis=-1)
    assert apart.min() == pytest.approx(0.065 * 1.05, abs=1.5e-3)


def test_starts_move_with_what_their_estimate_assumed():
    start = one([0, 0, 1.0], [0.0, 0, 0])
    by_com, by_gravity = np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 3))
    by_com[0, 0] = 2 * np.eye(3)
    by_gravity[0, 0, 2] = 0.5
    start = replace(start, position_by_com=by_com, position_by_gravity=by_gravity, gravity=9.81)
    motion = engine(["com_x", "gravity"]).run(start, np.array([[0.003, 9.91]]), 1)
    np.testing.assert_allclose(motion.position[0, 0, 0], [0.006, 0.0, 1.05])


@pytest.mark.parametrize("name", ["stiffness", "time_constant", "damping", "damping_ratio"])
def test_half_a_solref_has_the_other_half_at_its_default(name):
    """In the batch and in the MJCF alike."""
    starts = starts_of_tosses(1, np.random.default_rng(8))
    value = FREE[name].default / 2
    batch = engine([name])
    motion = batch.run(starts, np.array([[value]]), 60)
    path = stepped(batch, {name: value}, starts, 60)
    np.testing.assert_allclose(motion.position[0, :, 0], path[:, :3], atol=1e-6)
