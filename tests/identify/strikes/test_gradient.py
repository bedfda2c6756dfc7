"""Gradients through a frozen model recover its parameters, and intervals follow what the strikes can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analytic_impacts import CONTACT, FRAMES, TRUE, Analytic, measured

from carom.core.errors import CaromError
from carom.identify import Outcomes, descend
from carom.identify.strikes.gradient import PRESETS
from carom.scenes.parameters import Parameter


@pytest.mark.parametrize(("preset", "tolerance"), [("default", 0.03), ("paper", 0.1)])
def test_known_parameters_are_recovered(preset, tolerance):
    found = descend(Analytic(), Outcomes(FRAMES, measured(0.003)), preset=preset, seed=1, scene="stub")
    for name, true in zip(("striker_friction", "striker_damping", "com_x"), TRUE[[0, 1, 3]], strict=True):
        assert found[name].value == pytest.approx(true, rel=tolerance), name
        assert found[name].verdict == "identified", (name, found[name].reason)
    assert found.held_out is not None
    assert found.held_out.loss >= found.training.loss
    assert found.held_out.accuracy == 1.0


def test_what_the_model_does_not_use_is_not_identifiable():
    found = descend(Analytic(), Outcomes(FRAMES, measured(0.01)))
    assert found["ground_damping"].verdict == "not identifiable from these recordings"
    with pytest.raises(CaromError, match=r"nothing to identify.*ground_damping"):
        descend(Analytic(), Outcomes(FRAMES, measured(0.01)), parameters=["ground_damping"])


def test_intervals_hold_the_truth_nine_times_of_ten():
    few = replace(PRESETS["default"], starts=8)
    held = [
        [e.low <= true <= e.high for e, true in zip(found.estimates, TRUE, strict=True)]
        for found in (descend(Analytic(), Outcomes(FRAMES, measured(0.02, s)), seed=s, preset=few) for s in range(20))
    ]
    share = np.mean(held, axis=0)[[0, 1, 3]]
    assert (share >= 0.75).all(), share  # 20 draws of 90 %: fewer than 15 has a chance of about 1 in 100
    widths = [descend(Analytic(), Outcomes(FRAMES, measured(n, 1)))["striker_friction"] for n in (0.005, 0.05)]
    assert widths[0].high - widths[0].low < 0.3 * (widths[1].high - widths[1].low)


def test_a_value_beyond_the_bounds_ends_on_the_bound():
    tight = (*CONTACT[:1], Parameter("striker_damping", "1", 0.8, 3.0, 1.0, True), *CONTACT[2:])
    found = descend(Analytic(tight), Outcomes(FRAMES, measured(0.003)))
    assert found["striker_damping"].verdict == "on a bound"
    assert found["striker_damping"].value == pytest.approx(0.8, rel=0.01)


def test_unmeasured_spin_is_left_out_and_fixed_values_stay():
    local = measured(0.003)
    local[:, 2] = np.nan
    found = descend(Analytic(), Outcomes(FRAMES, local), fixed={"com_x": 0.0})
    assert found["com_x"].verdict == "given"
    assert found["striker_friction"].value == pytest.approx(0.25, rel=0.05)


def test_messages():
    with pytest.raises(CaromError, match=r"unknown preset 'papr'.*did you mean 'paper'"):
        descend(Analytic(), Outcomes(FRAMES, measured(0.0)), preset="papr")
    with pytest.raises(CaromError, match=r"expected measured outcomes of shape \(N, 3\)"):
        descend(Analytic(), Outcomes(FRAMES, measured(0.0)[:, :2]))
