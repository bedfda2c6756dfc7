"""Flat faces: which end strikes hangs on milliradians, the other end arrives in time or not, and a face may lean."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from carom.compare.metrics import relative_error, summary
from carom.engines.contact_frames import contact_frames, to_world
from carom.engines.rigid import rigid_outcomes
from carom.learn import adapt
from carom.learn.impact.process import Process, condition, learn, points_of, told_by
from carom.learn.impact.rigid import EDGE, LEAST_END, RigidTeacher
from carom.learn.impact.sample import sample_strikes
from carom.scenes.strike import Striker, builtin
from carom.state import Impacts

HALF = 0.02  #: [m] of the face
FLAT = replace(builtin("square"), striker=Striker(width=2 * HALF), face_angle=0.04, unknown=())
ROUND = replace(builtin("square"), unknown=())
YIELDS = 0.01  #: of a striker that hardly gives way
GIVEN = {"striker_friction": 0.3, "restitution": 0.4, "restitution_slope": 0.0, "newton": 0.0, "striker_yields": YIELDS}


def no_network(scene):
    """In place of base models: they have learned nothing about any strike, so that only the rigid impact is left."""
    return (SimpleNamespace(scene=scene, teacher="compliant", held_out={}, within=lambda f: np.zeros(len(f))),)


def strikes_of(scene, count, seed=0):
    return sample_strikes(scene, count, np.random.default_rng(seed))


def values_of(teacher, **more):
    return torch.tensor([[{**GIVEN, **more}[p.name] for p in teacher.parameters]], dtype=torch.float64)


def blow(frames, end, *, once=False):
    """Scaled outcomes [N, 3] of a face whose one end (1 or -1) strikes first; `once`: and no other follows."""
    given = {"restitution": 0.4, "friction": 0.3, "striker_mass": FLAT.mass * (1 - YIELDS) / YIELDS}
    face = ends(frames, end)[: 1 if once else 2]
    return rigid_outcomes(FLAT, frames.lever, frames.velocity, face=face, **given) / frames.speed[:, None]


def ends(frames, end):
    """Where the face lands along the side [m]: on its own end, or on the corner that it stands out over."""
    room, _ = FLAT.outline.corners_around(frames.point)
    both = np.clip(room[:, 0], LEAST_END, HALF), -np.clip(room[:, 1], LEAST_END, HALF)
    return both if end > 0 else both[::-1]


def test_the_other_end_strikes_only_if_the_striker_goes_on():
    teacher, frames = RigidTeacher(FLAT), contact_frames(FLAT, strikes_of(FLAT, 300))
    clear = np.abs(frames.angle) > 5 * EDGE  # no doubt which end comes first
    end = np.where(frames.angle > 0, 1, -1)
    for follow, once in ((1e-6, True), (10.0, False)):
        chances, _ = teacher.ways(frames, values_of(teacher, follow_time=follow).expand(len(frames), -1))
        np.testing.assert_allclose(chances.sum(dim=0), 1.0, atol=1e-12)
        said = teacher.outcome(frames, values_of(teacher, follow_time=follow).expand(len(frames), -1)).numpy()
        expected = np.where(end[:, None] > 0, blow(frames, 1, once=once), blow(frames, -1, once=once))
        np.testing.assert_allclose(said[clear], expected[clear], atol=1e-4)
    twice = np.abs(blow(frames, 1, once=True) - blow(frames, 1)).max(axis=1) > 0.05
    assert 0.05 < twice.mean() < 0.95  # both happen


def test_a_recorded_outcome_tells_which_way_a_strike_went_and_others_take_the_likelier():
    ways = np.array([[[[0.0, 1.0, 0.3]]], [[[0.2, 1.3, -0.3]]]])
    chances, weights, columns = np.array([[[0.7]], [[0.3]]]), np.ones(1), np.zeros((1, 7))
    measured = np.array([[0.2, 1.28, -0.31]])
    told = points_of(told_by(chances, ways, measured), ways, weights, columns, recorded=True)
    np.testing.assert_allclose(told.mean[0], ways[1, 0, 0], atol=0.01)
    assert np.trace(told.scatter[0]) < 1e-3
    asked = points_of(chances, ways, weights, columns, recorded=False)
    np.testing.assert_allclose(asked.mean[0], ways[0, 0, 0], atol=0.03)  # the mean would lie 0.2 away
    assert np.trace(asked.scatter[0]) == pytest.approx(0.7 * 0.3 * ((ways[0] - ways[1]) ** 2).sum())


def test_a_strike_that_may_go_either_way_teaches_little():
    way = np.array([[0.0, 1.0, 0.0]])
    process = Process(0.02, offset=0.05)
    sure = points_of(np.ones((1, 1, 1)), way[None, None], np.ones(1), np.zeros((1, 7)), recorded=True)
    unsure = replace(sure, scatter=np.diag([0.0, 0.0, 0.3**2])[None])
    measured, none = way + np.array([0.0, 0.1, 0.1]), np.zeros((1, 3))
    firm, _ = condition(learn(process, sure, measured, none), sure)
    loose, spread = condition(learn(process, unsure, measured, none), unsure)
    assert abs(loose[0, 2]) < 0.1 * abs(firm[0, 2])
    assert loose[0, 1] == pytest.approx(firm[0, 1])  # along other axes it teaches as much as before
    assert spread[0, 2, 2] > 0.3**2


def test_ten_strikes_of_a_flat_face_predict_others():
    """A rigid reality whose striker goes on for 4 ms, and whose yaw is recorded with an error of 2 mrad."""
    strikes = strikes_of(FLAT, 110, seed=3)
    frames = contact_frames(FLAT, strikes)
    local = np.zeros((110, 3))
    for end in (1, -1):
        one, both = blow(frames, end, once=True), blow(frames, end)
        near, far = ends(frames, end)
        other = one[:, 1] + one[:, 2] / FLAT.gyration_radius * (frames.lever[:, 0] + far)
        closing = frames.velocity[:, 1] - other * frames.speed
        late = np.abs(near - far) * np.abs(frames.angle) > 0.004 * closing
        local = np.where((end * frames.angle > 0)[:, None], np.where(late[:, None], one, both), local)
    rng = np.random.default_rng(5)
    local *= 1 + 0.01 * rng.standard_normal((110, 1))
    seen = strikes.striker_pose + np.array([0.0, 0.0, 0.002]) * rng.standard_normal((110, 1))
    impacts = Impacts(
        replace(strikes, striker_pose=seen),
        to_world(FLAT, frames, local),
        np.full((110, 3), 0.003),
        tuple(f"hit_{i:03d}.csv" for i in range(110)),
    )
    model = adapt(no_network(FLAT), impacts[np.arange(10)])
    test = impacts[np.arange(10, 110)]
    error = relative_error(model.predict(test.strikes).post, test.post, FLAT.gyration_radius)
    assert summary(error)["accuracy@0.1"] >= 0.75


def test_a_face_that_stands_out_over_a_corner_lands_on_the_corner():
    """So it makes no difference by how much it stands out."""
    wide = replace(FLAT, striker=Striker(width=4 * HALF))
    frames = contact_frames(FLAT, strikes_of(FLAT, 300, seed=2))
    room, _ = FLAT.outline.corners_around(frames.point)
    over = (room < HALF).any(axis=1) & (np.abs(frames.angle) > 5 * EDGE)
    onto = np.where(frames.angle > 0, room[:, 0] < HALF, room[:, 1] < HALF) & over  # the end that lands first
    assert onto.sum() > 10
    once = {"follow_time": 1e-6}
    usual, wider = (
        RigidTeacher(s).outcome(frames, values_of(RigidTeacher(s), **once).expand(300, -1)).numpy()
        for s in (FLAT, wide)
    )
    np.testing.assert_allclose(wider[onto], usual[onto], atol=1e-4)
    inside = (room > 2 * HALF).all(axis=1) & (np.abs(frames.angle) > 5 * EDGE)
    assert (np.abs(wider - usual)[inside].max(axis=1) > 0.02).all()


@pytest.mark.parametrize(("scene", "least", "most"), [(FLAT, 1.02, 1.08), (ROUND, 0.99, 1.01)])
def test_nose_up_a_flat_face_is_expected_to_send_the_target_faster(scene, least, most):
    strikes = strikes_of(scene, 12, seed=1)
    teacher, frames = RigidTeacher(scene), contact_frames(scene, strikes)
    local = teacher.outcome(frames, values_of(teacher, follow_time=1.0).expand(12, -1)).numpy()
    names = tuple(f"hit_{i:03d}.csv" for i in range(12))
    model = adapt(no_network(scene), Impacts(strikes, to_world(scene, frames, local), np.full((12, 3), 0.003), names))

    def speeds(pitch):
        held = replace(strikes, posture=np.tile([0.0, pitch, 0.0, 0.0], (12, 1)))
        return np.linalg.norm(model.predict(held).post[:, :2], axis=1)

    assert least < np.median(speeds(0.025) / speeds(0.0)) < most
    assert (speeds(1.0) / speeds(0.0) < 1.4).all()  # an edge alone strikes long before
