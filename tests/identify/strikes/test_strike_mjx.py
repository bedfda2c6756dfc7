"""The MJX baseline: derivatives that match differences, and what it says where JAX is absent."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from simulated_strikes import simulated, strikes_at

from carom.core.errors import CaromError
from carom.engines.mjx.collide import pyramidal_collider
from carom.engines.mjx.load import float64, load
from carom.identify.strikes import mjx
from carom.identify.strikes.mjx_problem import MjxProblem
from carom.scenes.strike import builtin
from carom.state import Impacts


def test_absent_jax_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    scene = builtin("square")
    with pytest.raises(CaromError, match=r"pip install carom\[mjx\]"):
        mjx.fit(scene, simulated(scene, {}, 3, seed=0), seed=0)


def test_fit_and_its_derivatives(capsys, monkeypatch):
    pytest.importorskip("jax", reason="JAX is not installed: pip install carom[mjx]")
    pytest.importorskip("mujoco.mjx", reason="MJX is not installed: pip install carom[mjx]")
    capsys.readouterr()
    scene, true = builtin("square"), {"striker_friction": 0.25, "ground_friction": 0.35, "striker_damping": 0.6}
    parameters = scene.parameters()
    values = np.tile([true.get(p.name, p.default) for p in parameters], (6, 1))
    strikes = strikes_at(scene, 6, seed=3)
    post = pyramidal_collider(scene, parameters).run(strikes, values).post
    problems, of = [], MjxProblem.of
    monkeypatch.setattr(MjxProblem, "of", lambda *given: problems.append(of(*given)) or problems[0])
    impacts = Impacts(strikes, post, np.full_like(post, 0.01), tuple("abcdef"))
    found = mjx.fit(scene, impacts, seed=0, fixed={"ground_damping": 1.0})
    assert found["striker_friction"].value == pytest.approx(0.25, rel=0.3)
    assert found["striker_damping"].value == pytest.approx(0.6, rel=0.3)
    assert found["com_x"].verdict == found["ground_damping"].verdict == "given"
    assert found.training.accuracy >= 0.5
    assert capsys.readouterr().out == ""
    at, step = np.array([[0.3, 0.3, 0.8, 1.0]]), 1e-6
    with float64(load()[0]):  # the compiled rollout is there already
        residual, slope = problems[0].residuals(at)
        for column in range(3):
            difference = (problems[0].residuals(at + step * np.eye(4)[column])[0] - residual)[0] / step
            # a strike whose contact ends a step earlier or later jumps; most do not
            agree = np.isclose(difference, slope[0, :, :, column], atol=0.02, rtol=0.02).all(axis=-1)
            assert agree.mean() >= 0.6, column


def test_prediction_with_identified_parameters_needs_no_jax(monkeypatch):
    from carom.identify import Errors, Estimate, Identification

    monkeypatch.setitem(sys.modules, "jax", None)
    scene = builtin("semi-cylinder")
    estimates = tuple(
        Estimate(p.name, p.default, p.unit, p.low, p.high, (p.low, p.high), "given", "") for p in scene.parameters()
    )
    known = Identification("mjx", scene.name, estimates, Errors(0, 0, 1, 1), None, "", 0, 0, 0.0, 0)
    strikes = strikes_at(scene, 4, seed=1)
    post = mjx.predict(scene, known, strikes)
    assert post.shape == (4, 3)
    assert (np.linalg.norm(post[:, :2], axis=-1) > 0.05).all()
