"""The stand-in for pushes: Coulomb's slide, the patch's torque, contact without overlap, bytes that repeat."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from recorded_pushes import servo_folder

from carom.core.errors import CaromError, SceneError
from carom.reality.push_contract import PushCommands, PushReality, PushTasks
from carom.reality.push_settings import INEXPRESSIBLE, PUSH_SETTINGS, PushEffects, find_push_setting
from carom.reality.push_standin import push_standin
from carom.reality.pushed_block import Drive, Pushed, Rubbing, Tip, base_of, impulse_at, step
from carom.recordings import read
from carom.recordings.pushes import gap_between
from carom.scenes.pushing import push_scene

SQUARE = 0.03 * np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]])
FAR = np.array([[1.0, 1.0]])  #: where a tool meets nothing
H = 0.0025


def slid(velocity: tuple[float, float, float], friction: float = 0.3, **more: float) -> Pushed:
    """A block that slides until it rests, no tool near."""
    base = base_of((SQUARE,), mass=0.2)
    state = Pushed(np.zeros((1, 2)), np.zeros(1), np.array([velocity]), FAR.copy(), np.zeros((1, 2)))
    rubbing = Rubbing(np.array([friction]), np.array([0.3]), **more)
    for _ in range(600):
        step(base, rubbing, state, Drive.along(np.zeros((1, 2))), H, tip=Tip(0.012))
    return state


def test_a_block_slides_as_far_as_coulomb_says_in_any_direction() -> None:
    for angle in (0.0, 0.7, 2.0):
        end = slid((0.5 * np.cos(angle), 0.5 * np.sin(angle), 0.0)).centre[0]
        np.testing.assert_allclose(np.linalg.norm(end), 0.25 / (2 * 0.3 * 9.81), rtol=0.02)
        np.testing.assert_allclose(np.arctan2(end[1], end[0]), angle, atol=1e-3)


def test_across_the_grain_it_slides_less_far() -> None:
    along, across = (slid(v, across=1.5).centre[0] for v in ((0.5, 0, 0), (0, 0.5, 0)))
    np.testing.assert_allclose(along[0] / across[1], 1.5, rtol=0.03)


def test_a_spinning_block_stops_by_the_torque_of_even_pressure() -> None:
    base = base_of((SQUARE,), mass=0.2)
    lever = float(base.share @ np.linalg.norm(base.points, axis=1))
    assert lever == pytest.approx(0.3826 * 0.06, rel=0.02)  # of a square
    turned = float(slid((0.0, 0.0, 10.0)).yaw[0])
    assert turned == pytest.approx(100 * base.gyration**2 / (2 * 0.3 * 9.81 * lever), rel=0.03)


def test_impulses_lie_in_the_cone_and_leave_no_approach() -> None:
    rng = np.random.default_rng(0)
    relative = rng.normal(size=(200, 2))
    half = rng.normal(size=(200, 2, 2))
    delassus = half @ np.swapaxes(half, 1, 2) + 0.1 * np.eye(2)
    friction = rng.uniform(0.05, 0.6, 200)
    impulse = impulse_at(relative, delassus, friction)
    after = relative[:, 0] + np.einsum("nb,nb->n", delassus[:, 0], impulse)
    assert (impulse[:, 0] >= 0).all()
    assert (np.abs(impulse[:, 1]) <= friction * impulse[:, 0] + 1e-12).all()
    assert (after[impulse[:, 0] > 0] > -1e-9).all()
    assert (impulse[relative[:, 0] > 0] == 0).all()


def test_without_inertia_a_block_stops_where_its_push_ends() -> None:
    base = base_of((SQUARE,), mass=0.2)
    ends = []
    for inertia in (True, False):
        state = Pushed(np.zeros((1, 2)), np.zeros(1), np.zeros((1, 3)), np.array([[-0.045, 0.0]]), np.zeros((1, 2)))
        rubbing = Rubbing(np.array([0.2]), np.array([0.3]))
        for k in range(300):
            drive = Drive.along(np.array([[0.5 if k < 60 else 0.0, 0.0]]))
            step(base, rubbing, state, drive, H, tip=Tip(0.012), inertia=inertia)
        ends.append(float(state.centre[0, 0] - state.tool[0, 0]))
    assert ends[1] == pytest.approx(0.042, abs=1e-3)
    assert ends[0] == pytest.approx(0.042 + 0.25 / (2 * 0.2 * 9.81), rel=0.05)


def test_the_same_seed_gives_the_same_bytes_and_the_tool_never_enters_the_block(tmp_path: Path) -> None:
    one, other = (servo_folder(tmp_path / name, 2) for name in ("one", "other"))
    for file in sorted(one.glob("*.csv")):
        assert file.read_bytes() == (other / file.name).read_bytes()
    assert isinstance(push_standin("felt", push_scene("planar-t"), seed=1), PushReality)
    for trajectory in read(one).trajectories:
        gap, shaped = gap_between(trajectory, "block", "tool")
        assert shaped
        assert np.nanmin(gap) > -1.5e-3  # noise and the turn's noise at the corners


def test_effects_can_be_switched_off_and_truth_is_told() -> None:
    none, every = PushEffects.none(), PUSH_SETTINGS["laminate"].effects
    assert all(getattr(none, f.name) == 0 for f in fields(none) if f.name != "inertia")
    assert set(INEXPRESSIBLE) == {f.name for f in fields(none) if getattr(every.expressible(), f.name) == 0} - {
        "inertia"
    }
    truth = push_standin("laminate", push_scene("planar-cube"), seed=3).truth
    assert truth["mass_scale"] == 1.25
    assert np.hypot(truth["tool_offset_x"], truth["tool_offset_y"]) == pytest.approx(every.misalignment)
    plain = push_standin("plain", push_scene("planar-cube"), seed=3).truth
    assert plain["pressure_spread"] == pytest.approx(0.541, abs=0.01)


def test_wrong_use_is_refused(tmp_path: Path) -> None:
    scene = push_scene("planar-cube")
    with pytest.raises(SceneError, match=r"unknown setting of pushes 'lamnate' \(did you mean 'laminate'"):
        find_push_setting("lamnate")
    start = scene.home(2)
    with pytest.raises(CaromError, match=r"target: expected an array of shape \(2, 3\)"):
        PushTasks(start, np.zeros((1, 3)), 3)
    with pytest.raises(CaromError, match="steps: expected 1 control period or more"):
        PushTasks(start, np.zeros((2, 3)), 0)
    with pytest.raises(CaromError, match="controls: expected finite set-points"):
        PushCommands(start, np.full((2, 3, 2), np.nan))
    lab = push_standin("plain", scene, seed=0)
    with pytest.raises(CaromError, match="expected at least one push, got none"):
        lab.deploy(lambda s: s.joint_position, PushTasks(start[[]], np.zeros((0, 3)), 2), tmp_path / "x", seed=0)
    assert replace(PushEffects(), delay=0.0).delay == 0.0
