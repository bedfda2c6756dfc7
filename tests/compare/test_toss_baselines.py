"""Baselines for tosses: what they find again of a simulator they know, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from rolled_bodies import Rolled

from carom.compare import toss_baselines
from carom.compare.toss_baselines import BASELINES, PUBLISHED, baseline, fit_by_cma, sysid_fit
from carom.core.errors import CaromError
from carom.identify.tosses.recorded import Motions, equation_1, motions_of, trajectory_errors
from carom.identify.tosses.simulate import Sampled, Starts
from carom.recordings import read
from carom.scenes.free import toss_scene
from carom.scenes.parameters import FREE, TABLE_II, free_parameters

PERIOD = 1 / 150


def tosses(count: int, *, samples: int = 45, seed: int = 0, **values: float) -> Motions:
    """Tosses simulated in MuJoCo with these values, as if they had been recorded."""
    rng = np.random.default_rng(seed)
    position = np.column_stack([rng.normal(0, 0.05, (count, 2)), np.full(count, 0.12)])[:, None]
    turn = rng.normal(size=(count, 1, 4))
    turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
    velocity = np.column_stack([rng.normal(0, 0.6, (count, 2)), np.full(count, -0.5)])[:, None]
    starts = Starts.known(position, turn, velocity, rng.normal(0, 4, (count, 1, 3)))
    scene = toss_scene()
    engine = Rolled(scene, free_parameters(list(values)), period=PERIOD, threads=1)
    motion = engine.run(starts, np.array([list(values.values())]), samples)
    none = np.zeros((count, 3))
    names = tuple(f"toss {i}" for i in range(count))
    made = Motions(
        scene,
        names,
        PERIOD,
        starts,
        motion.position.copy(),
        motion.quaternion.copy(),
        none,
        np.zeros((count, 3, 3)),
        np.ones(count),
    )
    made.quaternion[:, ::2] *= -1  # a tracker may turn the sign at any sample
    made.position[0, 15] = np.nan  # and lose some
    return made


def test_the_default_is_mujoco_as_it_comes():
    train = tosses(2)
    fitted = baseline("mujoco-default", train, seed=0)
    model = fitted.engine.engine.model
    np.testing.assert_array_equal(model.pair_friction[0, :2], 1.0)
    np.testing.assert_array_equal(model.pair_solref[0], [0.02, 1.0])
    np.testing.assert_array_equal(model.pair_solimp[0], [0.9, 0.95, 0.001, 0.5, 2.0])
    motion = fitted(train)
    assert motion.position.shape == train.position.shape
    assert fitted.loss == pytest.approx(equation_1(train, motion).mean())
    assert fitted.candidates == 0


def test_cma_finds_friction_again():
    train = tosses(4, friction=0.22, damping_ratio=0.5)
    names = ("friction", "damping_ratio")
    engine, calls = Sampled.in_mujoco(train.scene, names, period=PERIOD, threads=1), []
    mine = partial(fit_by_cma, engine, free_parameters(names), train, name="mine", seed=1)
    fitted = mine(generations=15, progress=lambda *said: calls.append(said))
    assert fitted.values["friction"] == pytest.approx(0.22, abs=0.02)
    assert fitted.loss < 0.1
    assert calls[-1] == ("fit mine", 15, 15)
    assert fitted.candidates == 15 * toss_baselines.POPULATION
    assert np.all(np.diff(fitted.losses) <= 0)
    assert mine(generations=3).losses == fitted.losses[:3]
    assert equation_1(train, fitted(train)).mean() == pytest.approx(fitted.loss, rel=1e-9)


def test_sysid_finds_friction_again_from_nearby(capsys):
    if not hasattr(pytest.importorskip("mujoco.sysid"), "optimize"):
        pytest.skip("mujoco.sysid lacks some packages: pip install carom[bench]")
    train = tosses(3, samples=20, friction=0.25, time_constant=0.02)
    start = {**toss_baselines.SYSID_START, "friction": 0.27}
    found = sysid_fit(train, ("friction", "time_constant"), start=start)
    assert found["friction"] == pytest.approx(0.25, abs=0.01)
    assert found["time_constant"] == pytest.approx(0.02, rel=0.1)
    assert capsys.readouterr().out == ""


def test_sysid_starts_where_mujoco_does():
    assert tuple(toss_baselines.SYSID_START) == TABLE_II
    model = toss_scene().spec().compile()
    start = list(toss_baselines.SYSID_START.values())
    np.testing.assert_array_equal(start[1:3], model.pair_solref[0])
    np.testing.assert_array_equal(start[3:], model.pair_solimp[0])


def test_refusals(monkeypatch):
    train = tosses(1)
    with pytest.raises(CaromError, match=r"unknown baseline 'brax-sprung' \(did you mean 'brax-spring'\?\)"):
        baseline("brax-sprung", train, seed=0)
    fitted = baseline("mujoco-default", train, seed=0)
    with pytest.raises(CaromError, match="'toss' has other bodies or ground"):
        fitted(replace(train, scene=toss_scene(side=0.2)))
    with pytest.raises(CaromError, match=r"fitted to samples 0.00666667 s apart; these are 0.01 s"):
        fitted(replace(train, period=0.01))
    monkeypatch.delattr("mujoco.sysid.optimize", raising=False)
    with pytest.raises(CaromError, match=r"mujoco.sysid lacks some packages; .* pip install carom\[bench\]"):
        sysid_fit(train)


def test_sysid_refuses_what_it_cannot_fit():
    if not hasattr(pytest.importorskip("mujoco.sysid"), "optimize"):
        pytest.skip("mujoco.sysid lacks some packages: pip install carom[bench]")
    train = tosses(1)
    with pytest.raises(CaromError, match=r"unknown parameter of mujoco.sysid's fit 'stiffness'"):
        sysid_fit(train, ("stiffness",))
    unseen = replace(train, quaternion=np.full_like(train.quaternion, np.nan))
    with pytest.raises(CaromError, match=r"toss 0: mujoco.sysid needs poses with orientation"):
        sysid_fit(unseen)


def test_published_fits_and_names():
    assert {p.simulator: (p.position, p.rotation) for p in PUBLISHED}["Drake"] == (13.5, 16.5)
    assert set(BASELINES) == {"mujoco-default", "mujoco-sysid", "brax-generalized", "brax-positional", "brax-spring"}
    assert FREE["friction"].default == toss_baselines.SYSID_START["friction"]


def test_real_tosses_are_beyond_the_default(shared_data):
    folder = shared_data / "cube_toss" / "recordings"
    if not folder.is_dir():
        pytest.skip(f"the tosses are not there ({folder})")
    motions, _ = motions_of(read(folder), range(6))
    position, angle = trajectory_errors(motions, baseline("mujoco-default", motions, seed=0)(motions))
    assert position.mean() > 0.5  # friction 1 stops the cube where it lands
    assert np.isfinite(angle).all()
