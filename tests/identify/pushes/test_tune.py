"""Tuning with pushes: parameters come back, windows begin at rests, verdicts are honest, wrong use is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from carom.bench.simulated_pushes import mujoco_pushes, servo_pushes
from carom.core.errors import CaromError
from carom.identify.pushes import Tuning, tune, windows_of
from carom.recordings import Recordings
from carom.scenes.pushing import push_scene

SCENE = push_scene("planar-cube")
TRUTH = {"ground_friction": 0.22, "striker_friction": 0.35, "mass_scale": 1.4, "actuator_delay": 0.033}


@pytest.fixture(scope="module")
def pushes() -> Recordings:
    return mujoco_pushes(SCENE, TRUTH, servo_pushes(SCENE, 5, 0), 0)


def test_frictions_mass_and_delay_come_back(pushes: Recordings) -> None:
    start = {"ground_friction": 0.35, "striker_friction": 0.25, "mass_scale": 0.8, "actuator_delay": 0.02}
    found = tune(SCENE, pushes, Tuning(tuple(TRUTH), method="gauss-newton", start=start, budget=190), threads=1)
    for name, true in TRUTH.items():
        estimate = found.identification[name]
        assert estimate.value == pytest.approx(true, rel=0.1), name
        assert estimate.low < true < estimate.high, name
        assert estimate.verdict != "not identifiable from these recordings"
        assert found.draws[name].shape == (64,)
        assert estimate.bounds[0] <= found.draws[name].min()
    assert found.values == {e.name: e.value for e in found.identification.estimates}
    assert found.identification.derived[0].value == pytest.approx(0.2 * found.values["mass_scale"])
    assert found.identification.held_out is not None
    assert found.identification.held_out.median_relative_error < 0.1


def test_short_pushes_are_one_window_and_long_ones_are_cut_at_rests(pushes: Recordings) -> None:
    whole = windows_of(SCENE, pushes)
    assert len(whole) == 5
    assert (whole.start.velocity == 0).all()
    cut = windows_of(SCENE, pushes, window=1.0)
    assert len(cut) > 5
    assert set(cut.recording) == set(range(5))
    # a window that begins later has the set-points of the time before in `held`
    later = np.flatnonzero(cut.recording[1:] == cut.recording[:-1]) + 1
    first = later - 1
    lengths = np.isfinite(cut.block[first, :, 0]).sum(axis=1) - 1
    for row, before, length in zip(later, first, lengths, strict=True):
        np.testing.assert_array_equal(cut.held[row, -1], cut.controls[before, length - 1])


def test_the_control_period_is_read_off(pushes: Recordings) -> None:
    assert windows_of(SCENE, pushes).period == pytest.approx(0.05)
    moved = replace(pushes, trajectories=(pushes.trajectories[0].until(1.0),))
    ramp = np.linspace(0, 0.1, len(moved.trajectories[0].time))
    steady = replace(moved.trajectories[0], controls={**moved.trajectories[0].controls, "tool_x": ramp})
    assert windows_of(SCENE, replace(moved, trajectories=(steady,))).period == pytest.approx(0.005)


def test_wrong_use_is_refused(pushes: Recordings) -> None:
    with pytest.raises(CaromError, match="unknown method 'cmaes'"):
        tune(SCENE, pushes, Tuning(method="cmaes"))  # type: ignore[arg-type]
    with pytest.raises(CaromError, match=r"unknown parameter of scene 'planar-cube' 'friction'"):
        tune(SCENE, pushes, Tuning(["friction"]))
    with pytest.raises(CaromError, match="budget: expected 3 replays of all pushes or more, got 2"):
        tune(SCENE, pushes, Tuning(["ground_friction"], budget=2))
    bare = replace(pushes.trajectories[0], controls={})
    with pytest.raises(CaromError, match=r"push_000.csv: .* missing columns: ctrl.tool_x, ctrl.tool_y"):
        tune(SCENE, replace(pushes, trajectories=(bare,)))
    still = replace(pushes.trajectories[0].until(0.3))
    place = {name: np.tile(p[:1], (len(still.time), 1)) for name, p in still.position_world.items()}
    joints = {name: np.full(len(still.time), v[0]) for name, v in still.controls.items()}
    still = replace(still, position_world=place, controls=joints)
    with pytest.raises(CaromError, match="nothing moves in these recordings"):
        tune(SCENE, replace(pushes, trajectories=(still,)))
