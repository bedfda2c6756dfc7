"""Sensitivities of short motions, steps with them, and starts as nuisance parameters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from free_recordings import TRUTH, toss

from carom.identify.tosses.gauss_newton import fit_around, polished, with_refined_starts
from carom.identify.tosses.problem import MotionProblem
from carom.identify.tosses.sides import SIDES
from carom.recordings.starts import SPIN_STD, VELOCITY_STD
from carom.scenes.free import free_parameters, resolved, timestep

MIDDLE = {name: TRUTH[name] for name in ("friction", "stiffness", "damping", "inertia_scale")}
OFF_CENTRE = {**MIDDLE, "com_offset": TRUTH["com_offset"]}
EXACT = (0.0, 0.0)


def problem_of(motions, truth):
    """The problem of finding this truth, and the truth in its unit space."""
    parameters = resolved(free_parameters(tuple(truth)), timestep(motions.period))
    return (
        MotionProblem.of(motions, parameters, {}, threads=1),
        np.array([float(p.to_unit(truth[p.name])) for p in parameters]),
    )


def tosses(seed, truth=MIDDLE, **options):
    return toss(Path("tosses"), 5, seed=seed, truth=truth, samples=60, **options)


@pytest.fixture(scope="module")
def middle():
    """Tosses of a cube whose mass is in its middle."""
    return problem_of(tosses(4).motions, MIDDLE)


@pytest.fixture(scope="module")
def exact():
    """The same without noise: estimated starts are the true ones."""
    return problem_of(tosses(4, noise=EXACT).motions, MIDDLE)


def off_by(problem, other):
    """Distances [N] of velocities and of spins between the starts of two problems."""
    one, two = problem.motions.starts, other.motions.starts
    return np.linalg.norm(one.velocity - two.velocity, axis=-1)[:, 0], np.linalg.norm(one.spin - two.spin, axis=-1)[
        :, 0
    ]


@pytest.mark.parametrize("reach", [0.05, 0.02])
def test_sensitivities_agree_with_wide_central_differences(middle, reach):
    problem, unit = middle
    fit = fit_around(problem, unit, reach, seed=0)
    step = np.array([0.05, 0.0, 0.0, 0.0])
    above, below = problem.residuals(np.stack([unit + step, unit - step]), short=True)
    wide, found = (above - below) / 0.1, fit.jacobian[..., 0]
    assert fit.jacobian.shape == (*wide.shape, 4)
    assert np.linalg.norm(found - wide) < 0.4 * np.linalg.norm(wide)
    assert (found * wide).sum() > 0.95 * np.linalg.norm(found) * np.linalg.norm(wide)


def test_residuals_of_the_plane_are_near_those_of_its_middle(middle):
    problem, unit = middle
    there = unit + 0.05
    exactly = problem.residuals(there, short=True)[0]
    fit = fit_around(problem, there, 0.02, seed=0)
    np.testing.assert_array_equal(fit.unit, there)
    assert np.linalg.norm(fit.residual - exactly) < 0.3 * np.linalg.norm(exactly)


def test_sensitivities_are_the_same_for_the_same_seed(middle):
    problem, unit = middle
    one, again, other = (fit_around(problem, unit, 0.03, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.jacobian, again.jacobian)
    assert (one.jacobian != other.jacobian).any()


@pytest.mark.parametrize("off", [0.08, -0.08])
@pytest.mark.parametrize("seed", [1, 10])
def test_steps_lead_to_the_truth(seed, off):
    problem, unit = problem_of(tosses(seed).motions, MIDDLE)
    loss, found, _, sides = polished(problem, unit + off, seed=0)
    assert np.abs(found - unit).max() < 0.02
    assert loss < 0.1 * problem.losses(unit + off, short=True)[0]
    assert sides is None


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_steps_never_end_higher_than_they_began(middle, seed):
    """From anywhere: also where there is no way down to the truth."""
    problem, _ = middle
    begin = np.random.default_rng(seed).random(4)
    loss, found, after, _ = polished(problem, begin, seed=seed)
    assert loss <= problem.losses(begin, short=True)[0]
    assert loss == pytest.approx(after.losses(found, short=True)[0], rel=1e-9)
    assert (found >= 0).all()
    assert (found <= 1).all()


@pytest.mark.parametrize("wrong", [0, 4])
def test_a_wrong_side_is_put_right(wrong):
    tossed = tosses(6, OFF_CENTRE)
    problem, unit = problem_of(tossed.motions, OFF_CENTRE)
    sides = tossed.sides.copy()
    sides[wrong] ^= 1  # the side across
    before = problem.with_sides(sides).losses(unit + 0.04, short=True)[0]
    loss, _, after, found = polished(problem, unit + 0.04, 0, sides)
    np.testing.assert_array_equal(found, tossed.sides)
    np.testing.assert_array_equal(after.motions.starts.side, SIDES[tossed.sides])
    assert loss < 0.2 * before


@pytest.mark.parametrize("seed", [0, 1])
def test_disturbed_starts_come_nearer_to_the_true_ones(exact, seed):
    problem, unit = exact
    starts = problem.motions.starts
    x, _, z = np.eye(3)
    moved = replace(starts, velocity=starts.velocity + 0.01 * x, spin=starts.spin + 0.1 * z)
    disturbed = replace(problem, motions=replace(problem.motions, starts=moved))
    refined = with_refined_starts(disturbed, unit, seed)
    velocity, spin = off_by(refined, problem)
    assert velocity.mean() < 0.7 * 0.01
    assert spin.mean() < 0.7 * 0.1
    assert refined.losses(unit, short=True)[0] < 0.6 * disturbed.losses(unit, short=True)[0]
    np.testing.assert_array_equal(refined.motions.starts.position, starts.position)
    np.testing.assert_array_equal(refined.motions.starts.quaternion, starts.quaternion)


def test_exact_starts_hardly_move(exact):
    """By a fraction of what estimated starts are off by."""
    problem, unit = exact
    velocity, spin = off_by(with_refined_starts(problem, unit, 0), problem)
    assert velocity.mean() < 0.5 * VELOCITY_STD
    assert spin.mean() < 0.5 * SPIN_STD


def test_no_recording_fits_worse_from_a_refined_start(exact):
    problem, unit = exact
    refined = with_refined_starts(problem, unit, 0)
    before, after = (p.errors(p.simulate(unit[None], samples=p.short))[0] for p in (problem, refined))
    assert (after <= before).all()
