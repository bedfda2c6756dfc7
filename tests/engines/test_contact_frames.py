"""Contact frames: hand-computed levers and velocities, and what must not depend on where north is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from strike_cases import FLAT, PUCK, ROUND, SQUARE, moved, strikes

from carom.engines.contact_frames import contact_frames, to_local, to_world
from carom.learn.impact.features import feature_names, features, mirror_signs
from carom.learn.impact.network import OUTPUT_SIGNS, ImpactNetwork
from carom.learn.impact.sample import sample_parameters, sample_strikes
from carom.scenes.parameters import known
from carom.scenes.strike import Striker, StrikeScene, builtin
from carom.state import Array, Strikes

UNKNOWN = tuple(known(n) for n in ("face_width", "face_tilt", "face_offset", "com_x", "com_y"))


def test_lever_and_velocity_of_a_strike_on_the_left_side() -> None:
    frames = contact_frames(ROUND, strikes([-0.06, 0.01], [0.5, 0.2]))
    # n points into the target along +x, t along -y: right-handed
    np.testing.assert_allclose(frames.axes[0], [[0, -1], [1, 0]], atol=1e-9)
    np.testing.assert_allclose(frames.point, [[-0.04, 0.01]], atol=1e-6)
    np.testing.assert_allclose(frames.lever, [[-0.01, -0.04]], atol=1e-6)
    np.testing.assert_allclose(frames.velocity, [[-0.2, 0.5]], atol=1e-9)
    assert frames.speed[0] == pytest.approx(np.hypot(0.5, 0.2))
    assert frames.curvature[0] == 0.0
    assert contact_frames(PUCK, strikes([-0.07, 0.0], [0.5, 0.0])).curvature[0] == pytest.approx(20.0)


def test_velocity_is_relative_to_the_moving_and_turning_target() -> None:
    case = strikes([-0.06, 0.01], [0.5, 0.0])
    case = replace(case, target_velocity=np.array([[0.1, 0.02, 2.0]]))
    frames = contact_frames(ROUND, case)
    # at the contact the target moves with (0.1, 0.02) + 2 x (-0.04, 0.01) = (0.08, -0.06); touching shifts y a little
    np.testing.assert_allclose(frames.velocity, [[-0.06, 0.42]], atol=2e-3)
    np.testing.assert_allclose(frames.before, [[0.1, 0.02, 2.0]])


def test_angle_of_a_flat_face_counts_counter_clockwise() -> None:
    angle = [float(contact_frames(FLAT, strikes([-0.06, 0.0], [0.5, 0.0], yaw=y)).angle[0]) for y in (-0.1, 0.0, 0.07)]
    assert angle == pytest.approx([-0.1, 0.0, 0.07])


@pytest.mark.parametrize("scene", [builtin("triangle"), replace(FLAT, unknown=UNKNOWN)], ids=["triangle", "flat"])
def test_features_do_not_depend_on_the_pose_of_the_whole_strike(scene: StrikeScene) -> None:
    rng = np.random.default_rng(0)
    case = replace(sample_strikes(scene, 40, rng), target_velocity=rng.normal(0, 0.05, (40, 3)))
    p = torch.from_numpy(sample_parameters(scene.parameters(), 40, rng))
    a = features(scene, "mujoco", contact_frames(scene, case), scene.parameters(), p)
    b = features(scene, "mujoco", contact_frames(scene, moved(case, 2.3, (0.7, -1.1))), scene.parameters(), p)
    assert a.shape == (40, len(feature_names(scene, "mujoco")))
    np.testing.assert_allclose(a, b, atol=2e-4)  # the touching point is found to a tenth of a micrometre


def test_to_world_is_the_inverse_of_to_local() -> None:
    scene, rng = builtin("semi-cylinder"), np.random.default_rng(1)
    case = moved(replace(sample_strikes(scene, 20, rng), target_velocity=rng.normal(0, 0.1, (20, 3))), 1.1, (0.3, 0.2))
    frames, post = contact_frames(scene, case), rng.normal(size=(5, 20, 3))
    np.testing.assert_allclose(to_world(scene, frames, to_local(scene, frames, post)), post, atol=1e-13)
    np.testing.assert_allclose(to_local(scene, frames, frames.before), 0.0, atol=1e-15)


def test_local_outcome_of_a_push_straight_in_is_along_n() -> None:
    frames = contact_frames(ROUND, strikes([-0.06, 0.0], [0.5, 0.0]))
    k = ROUND.gyration_radius
    np.testing.assert_allclose(to_local(ROUND, frames, np.array([[0.25, 0.05, 3.0]])), [[-0.1, 0.5, 6 * k]], atol=1e-12)


def mirrored(case: Strikes) -> Strikes:
    mirror = np.array([-1.0, 1.0, -1.0])
    pose = case.striker_pose * mirror + np.array([0.0, 0.0, np.pi])
    return replace(case, striker_pose=pose, striker_velocity=case.striker_velocity * mirror)


@pytest.mark.parametrize("scene", [builtin("semi-cylinder"), replace(FLAT, unknown=UNKNOWN)], ids=["round", "flat"])
def test_a_mirrored_strike_has_the_mirrored_features(scene: StrikeScene) -> None:
    rng = np.random.default_rng(2)
    parameters = scene.parameters()
    case, p = sample_strikes(scene, 30, rng), sample_parameters(parameters, 30, rng)
    flip = np.array([-1.0 if q.name in ("com_x", "face_tilt", "face_offset") else 1.0 for q in parameters])
    a = features(scene, "mujoco", contact_frames(scene, case), parameters, torch.from_numpy(p))
    b = features(scene, "mujoco", contact_frames(scene, mirrored(case)), parameters, torch.from_numpy(p * flip))
    np.testing.assert_allclose(a.numpy() * mirror_signs(feature_names(scene, "mujoco")), b.numpy(), atol=2e-4)


def test_network_keeps_mirror_symmetry_exactly() -> None:
    torch.manual_seed(0)
    signs = mirror_signs(("lever_t", "lever_n", "heading", "speed"))
    network = ImpactNetwork(4, width=16, layers=2, activation="silu", mirror=signs.tolist())
    network.get_buffer("shift").copy_(torch.tensor([0.0, 0.4, 0.0, -0.3]))
    network.get_buffer("scale").copy_(torch.tensor([0.5, 0.2, 1.5, 0.3]))
    x = torch.randn(50, 4)
    a, b = network(x), network(x * torch.from_numpy(signs).float())
    assert torch.equal(a * torch.tensor(OUTPUT_SIGNS), b)
    assert not torch.allclose(a[:, 0], torch.zeros(50))


def _lever(scene: StrikeScene, case: Strikes, name: str, value: float) -> Array:
    contact = [q for q in scene.parameters() if q.name not in ("com_x", "com_y")]
    values = torch.tensor([[*(q.default for q in contact), value]] * len(case)).double()
    x = features(scene, "mujoco", contact_frames(scene, case), (*contact, known(name)), values)
    return np.asarray(x[:, :2] * scene.gyration_radius)


def test_unknown_centre_of_mass_moves_the_lever_against_itself() -> None:
    case = strikes([-0.06, 0.01], [0.5, 0.0])
    np.testing.assert_allclose(_lever(ROUND, case, "com_y", 0.004), [[-0.006, -0.04]], atol=1e-6)
    np.testing.assert_allclose(_lever(ROUND, case, "com_x", 0.004), [[-0.01, -0.044]], atol=1e-6)


def test_unknown_offset_of_a_flat_face_is_a_strike_further_along() -> None:
    wide = StrikeScene("wide", SQUARE, Striker(width=0.02))
    case, further = strikes([-0.05, 0.0], [0.5, 0.0]), strikes([-0.05, 0.01], [0.5, 0.0])
    np.testing.assert_allclose(
        _lever(wide, case, "face_offset", 0.01), _lever(wide, further, "face_offset", 0.0), atol=1e-6
    )
