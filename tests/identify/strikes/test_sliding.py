"""Sliding and departures found again in recordings whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from carom.core.errors import CaromError
from carom.identify import Sliding, sliding_from
from carom.identify.strikes.sliding import PRIOR, Departures, _by_disagreement, _towards_prior
from carom.reality import Effects, Truth, sample_commands, standin
from carom.recordings import Recordings, Trajectory, read, scene_of, strike_impacts
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes, rotate

COUNT = 8


@dataclass(frozen=True)
class Lab:
    """A folder of strikes by rigid bodies with constant friction, and what is true of them."""

    friction: float
    recordings: Recordings
    scene: StrikeScene
    truth: Truth

    def post(self, names: tuple[str, ...]) -> Array:
        """True velocities [N, 3] of these files' targets as they set out."""
        return self.truth.post[[int(name[4:7]) for name in names]]

    def error(self, velocity: Array, names: tuple[str, ...]) -> Array:
        """[N] relative, in the norm of kinetic energy."""
        scale, true = np.array([1, 1, self.scene.gyration_radius]), self.post(names)
        return np.linalg.norm((velocity - true) * scale, axis=1) / np.linalg.norm(true * scale, axis=1)


@pytest.fixture(scope="module", params=[("resin-low", "semi-cylinder"), ("petg-cf-high", "square")], ids=lambda p: p[1])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    reality = standin(*request.param, seed=1, effects=Effects.none())
    commands = sample_commands(reality.shape, COUNT, np.random.default_rng(2))
    recordings = read(reality.execute(commands, tmp_path_factory.mktemp("lab") / "strikes", seed=4))
    truth = reality.truth(commands, seed=4)
    return Lab(reality.setting.ground_friction, recordings, scene_of(recordings), truth)


@pytest.fixture(scope="module")
def found(lab: Lab) -> tuple[Sliding, Departures]:
    return sliding_from(lab.recordings, lab.scene)


def test_friction_and_patch_are_found_again(lab: Lab, found: tuple[Sliding, Departures]) -> None:
    sliding, _ = found
    assert sliding.friction == pytest.approx(lab.friction, rel=0.03)
    assert abs(sliding.friction - lab.friction) < 4 * sliding.friction_std < 0.15 * lab.friction
    assert sliding.size == pytest.approx(1.0, abs=0.1)
    assert 0 <= sliding.viscosity < 0.03
    assert abs(sliding.lag) < 0.003  # an instant impact, and less than one period of the camera
    assert 0 < sliding.residual < 5e-4
    slider = sliding.slider(lab.scene)
    assert slider.friction == sliding.friction
    assert slider.gyration == lab.scene.gyration_radius


def test_a_mass_off_centre_is_found_and_slides_about_itself(tmp_path: Path) -> None:
    reality = standin("nylon-low", "square", seed=1, effects=replace(Effects.none(), com_offset=0.003))
    commands = sample_commands(reality.shape, COUNT, np.random.default_rng(2))
    recordings = read(reality.execute(commands, tmp_path / "strikes", seed=4))
    scene, truth = scene_of(recordings), reality.truth(commands, seed=4)
    sliding, _ = sliding_from(recordings, scene)
    declared_to_actual = rotate(truth.post[:, :2] - truth.post_mass_centre[:, :2], -truth.strikes.target_pose[:, 2])
    spin = truth.post[:, 2]
    offset = np.linalg.lstsq(
        np.concatenate([np.c_[0 * spin, spin], np.c_[-spin, 0 * spin]]), declared_to_actual.T.ravel(), rcond=None
    )[0]
    assert np.linalg.norm(offset) == pytest.approx(0.003, rel=0.05)  # the truth, from the two velocities
    np.testing.assert_allclose([sliding.com_x, sliding.com_y], offset, atol=4e-4)
    assert 0 < sliding.com_std < 5e-4
    assert sliding.mass_centre()["com_x"] == (sliding.com_x, sliding.com_std)
    ends = [
        _slid(replace(sliding, com_x=x, com_y=y), scene, truth) for x, y in ((sliding.com_x, sliding.com_y), (0.0, 0.0))
    ]
    off = [np.linalg.norm(end[:, :2] - truth.rest[:, :2], axis=1).mean() for end in ends]
    assert off[0] < 0.004
    assert off[0] < 0.5 * off[1]


def _slid(sliding: Sliding, scene: StrikeScene, truth: Truth) -> Array:
    """Where targets end that set out as they truly did [N, 3]."""
    start = truth.strikes.target_pose.copy()
    start[:, :2] += rotate(np.broadcast_to(scene.target.planar_com, (len(start), 2)), start[:, 2])
    with torch.no_grad():
        end = sliding.slider(scene).slide(torch.as_tensor(start), torch.as_tensor(truth.post)).pose[:, -1].numpy()
    end[:, :2] -= rotate(np.broadcast_to(scene.target.planar_com, (len(end), 2)), end[:, 2])
    return end


def test_departures_are_the_true_velocities_after_the_blow(lab: Lab, found: tuple[Sliding, Departures]) -> None:
    _, departures = found
    assert len(departures.names) == COUNT
    error = lab.error(departures.velocity, departures.names)
    assert error.max() < 0.02
    read_off, _ = strike_impacts(lab.recordings)
    assert np.median(error) < 0.7 * np.median(lab.error(read_off.post, read_off.names))
    off = np.abs(departures.velocity - lab.post(departures.names)) / departures.std
    assert np.quantile(off, 0.9) < 2.0  # what is stated as uncertain covers it
    assert (departures.std > 0).all()


@pytest.mark.parametrize("rising", [0.0, 0.2], ids=["pushed", "lifted"])
def test_targets_taken_away_after_rest_disturb_nothing(
    lab: Lab, found: tuple[Sliding, Departures], rising: float
) -> None:
    carried = tuple(_taken_away(t, rising) for t in lab.recordings.trajectories)
    sliding, departures = sliding_from(replace(lab.recordings, trajectories=carried), lab.scene)
    assert sliding.friction == pytest.approx(found[0].friction, rel=0.01)
    assert sliding.residual < 5e-4
    assert lab.error(departures.velocity, departures.names).max() < 0.02


def _taken_away(trajectory: Trajectory, rising: float) -> Trajectory:
    """The same recording, going on: the target rests for half a second and then leaves at 0.4 m/s."""
    rest, carried = np.arange(1, 121) / 240, np.arange(1, 181) / 240
    time = np.concatenate([trajectory.time, trajectory.time[-1] + np.append(rest, rest[-1] + carried)])
    position, quaternion = {}, {}
    for name in trajectory.bodies:
        path, turn = trajectory.position_world[name], trajectory.quaternion_world[name]
        assert turn is not None
        whole = np.isfinite(path).all(axis=1)
        away = np.concatenate([np.zeros((len(rest), 3)), carried[:, None] * [0.3, 0.26, rising]])
        moves = float(trajectory.bodies[name].role == "target")
        position[name] = np.concatenate([path, path[whole][-1] + moves * away])
        quaternion[name] = np.concatenate([turn, np.tile(turn[whole][-1], (len(away), 1))])
    return replace(trajectory, time=time, position_world=position, quaternion_world=quaternion)


def test_recordings_without_a_slide_are_refused(lab: Lab) -> None:
    still = []
    for trajectory in lab.recordings.trajectories[:2]:
        before = trajectory.time < trajectory.time[0] + 0.2
        still.append(
            replace(
                trajectory,
                time=trajectory.time[before],
                position_world={k: v[before] for k, v in trajectory.position_world.items()},
                quaternion_world={k: v[before] for k, v in trajectory.quaternion_world.items() if v is not None},
            )
        )
    with pytest.raises(CaromError):
        sliding_from(replace(lab.recordings, path=Path("still"), trajectories=tuple(still)), lab.scene)


def test_departures_replace_the_outcomes_they_name_and_no_others() -> None:
    zero = np.zeros((3, 3))
    impacts = Impacts(Strikes(zero, zero, zero, zero), np.full((3, 3), 1.0), np.full((3, 3), 0.1), ("a", "b", "c"))
    departures = Departures(("x", "c", "a"), np.arange(9.0).reshape(3, 3), np.full((3, 3), 0.5))
    changed = departures.applied_to(impacts)
    np.testing.assert_array_equal(changed.post, [[6, 7, 8], [1, 1, 1], [3, 4, 5]])
    np.testing.assert_array_equal(changed.post_std, [[0.5] * 3, [0.1] * 3, [0.5] * 3])
    assert changed.names == impacts.names
    assert changed.strikes is impacts.strikes
    np.testing.assert_array_equal(impacts.post, np.full((3, 3), 1.0))  # the given ones stay as they are


def test_slides_that_disagree_leave_the_centre_of_mass_open():
    """Ten slides of which two pull hard, against each other: less is known than their noise says, and zero counts."""
    rng = np.random.default_rng(0)
    stated = np.diag((0.1 * PRIOR) ** 2)
    alike = rng.standard_normal((10, 6)) / (0.1 * PRIOR) / np.sqrt(10)  # as large as the stated covariance has them
    agreeing = _by_disagreement(stated, alike)
    assert (np.sqrt(np.diag(agreeing) / np.diag(stated)) < 3).all()
    odd = alike.copy()
    odd[:2, 4] = np.array([1.0, -1.0]) * 8 / (0.1 * PRIOR[4])
    torn = _by_disagreement(stated, odd)
    assert torn[4, 4] > 20 * stated[4, 4]
    assert np.linalg.eigvalsh(torn).min() > 0
    theta, declared = np.full(6, 0.05), np.zeros(6)
    small, large = (_towards_prior(theta, covariance, declared) for covariance in (stated, torn))
    assert (small[:4] == 0).all()
    assert -0.05 <= large[4] < 5 * small[4] < 0
