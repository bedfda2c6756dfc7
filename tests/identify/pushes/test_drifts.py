"""What a tool's place is not known to: it decides whether a mass shows, however many instants a recording has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.bench.simulated_pushes import mujoco_pushes, servo_pushes, stiff_scene
from carom.identify import trust
from carom.identify.planes import Valley
from carom.identify.pushes import windows_of
from carom.identify.pushes.drifts import drifts
from carom.identify.pushes.problem import FLOOR, HAND, PushProblem, held_at, held_values, parameters_of
from carom.scenes.pushing import PushScene, push_scene

TRUTH = {"ground_friction": 0.2, "striker_friction": 0.25, "mass_scale": 1.3}


def fit_of_mass(scene: PushScene, speed: tuple[float, float], reach: float) -> tuple[PushProblem, trust.Fit]:
    """Five pushes explained by the true parameters, and by how their residuals change with the mass."""
    recordings = mujoco_pushes(scene, TRUTH, servo_pushes(scene, 5, 3, speed=speed), 3)
    known = {name: value for name, value in TRUTH.items() if name != "mass_scale"}
    parameters = (*parameters_of(scene, ["mass_scale"]), *held_at(scene, known))
    problem = PushProblem.of(scene, windows_of(scene, recordings), parameters, held_values(known), threads=1)
    unit = np.array([float(parameters[0].to_unit(TRUTH["mass_scale"]))])
    problem = problem.weighed(unit)
    valley = Valley.even(1, reach)
    points = valley.scattered(unit, 0, near=20)
    fit, counts = valley.smooth(unit, points, problem.residuals(points))
    return problem, replace(fit, drifts=tuple(counts * change for change in drifts(problem, unit)))


def width(fit: trust.Fit) -> float:
    low, high = trust.intervals(fit)
    return float(high[0] - low[0])


def test_a_mass_that_shows_by_micrometres_is_not_identifiable() -> None:
    _, fit = fit_of_mass(stiff_scene(), (0.03, 0.04), 0.3)
    assert width(fit) > trust.VAGUE
    # thousands of instants would say otherwise
    assert width(replace(fit, drifts=())) < 0.5 * width(fit)


def test_a_mass_that_holds_a_soft_servo_back_stays_identified() -> None:
    problem, fit = fit_of_mass(push_scene("planar-cube"), (0.15, 0.45), 0.05)
    assert width(fit) < trust.SHARP
    assert len(fit.drifts) == 2
    # as large as is said, in units of the weight of one number, and no larger
    largest = FLOOR[1] * problem.weight[HAND].max()
    for change in fit.drifts:
        assert 0.2 * largest < np.abs(change).max() < 1.5 * largest


def test_a_tool_that_stands_still_is_where_it_is() -> None:
    scene = push_scene("planar-cube")
    problem, fit = fit_of_mass(scene, (0.15, 0.45), 0.05)
    tip = np.repeat(problem.windows.tip[:, :1], problem.windows.tip.shape[1], axis=1)
    still = replace(problem, windows=replace(problem.windows, tip=tip))
    assert all((change == 0).all() for change in drifts(still, fit.unit))
    led = replace(problem, windows=replace(problem.windows, tip=np.full_like(tip, np.nan)))
    assert drifts(led, fit.unit) == ()
