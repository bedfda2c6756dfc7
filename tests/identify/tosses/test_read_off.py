"""Parameters that recordings show directly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from free_recordings import TRUTH, toss
from scipy.spatial.transform import Rotation

from carom.identify.tosses.read_off import _slide, read_off

READ = {"gravity": 0.01, "length_scale": 0.003, "face_friction": 0.06}  #: relative error that is allowed
SLOWS = 1.8  #: [m/s^2]


@pytest.fixture(scope="module", params=[0, 3])
def motions(request):
    return toss(Path("tosses"), 12, seed=request.param).motions


def sliding(motions, *, twirl=0.0, lean=0.0, speed=1.0, samples=90):
    """One cube that slides along x until it stands, turning evenly about the vertical meanwhile."""
    time = np.minimum(np.arange(samples) * motions.period, speed / SLOWS)
    position = np.zeros((1, samples, 1, 3))
    position[0, :, 0, 0], position[..., 2] = speed * time - 0.5 * SLOWS * time**2, 0.05
    turn = Rotation.from_rotvec(np.outer(twirl * time, [0.0, 0.0, 1.0])) * Rotation.from_rotvec([lean, 0.0, 0.0])
    quaternion = turn.as_quat()[None, :, None, [3, 0, 1, 2]]
    return replace(motions[[0]], position=position, quaternion=quaternion)


@pytest.mark.parametrize("name", READ)
def test_known_parameters_are_read_off(motions, name):
    value, error = read_off(motions, tuple(READ))[name]
    assert value == pytest.approx(TRUTH[name], rel=READ[name])
    assert 0 < error < 0.05 * value


def test_names_not_asked_for_are_not_returned(motions):
    assert read_off(motions, ()) == {}
    assert read_off(motions, ("friction", "stiffness", "com_offset")) == {}
    for name in READ:
        assert set(read_off(motions, ("friction", name))) == {name}


def test_a_cube_that_slides_on_a_face_slows_down_by_its_friction(motions):
    assert _slide(sliding(motions), 0) == pytest.approx(SLOWS, rel=1e-6)
    assert _slide(sliding(motions, twirl=2.0), 0) == pytest.approx(SLOWS, rel=1e-6)
    assert _slide(sliding(motions, lean=np.pi / 2), 0) == pytest.approx(SLOWS, rel=1e-6)  # another face


@pytest.mark.parametrize("odd", [{"lean": 0.1}, {"lean": np.pi / 4}, {"speed": 0.05}, {"samples": 10}])
def test_a_cube_that_does_not_end_on_a_face_or_hardly_slides_is_left_out(motions, odd):
    one = sliding(motions, **odd)
    assert np.isnan(_slide(one, 0))
    assert "face_friction" not in read_off(one, ("face_friction",))


@pytest.mark.parametrize("twirl", [5.5, -5.5, 12.0, 20.0])
def test_a_cube_that_twirls_is_left_out(motions, twirl):
    """Its friction no longer acts against its path alone."""
    one = sliding(motions, twirl=twirl)
    assert np.isnan(_slide(one, 0))
    assert "face_friction" not in read_off(one, ("face_friction",))
    both = replace(
        motions[[0, 1]],
        position=np.concatenate([one.position, sliding(motions).position]),
        quaternion=np.concatenate([one.quaternion, sliding(motions).quaternion]),
    )
    value, _ = read_off(both, ("face_friction",))["face_friction"]
    assert value == pytest.approx(SLOWS / both.starts.gravity, rel=1e-6)
