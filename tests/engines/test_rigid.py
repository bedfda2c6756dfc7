"""Routh's construction against physics: momentum, energy, and the cases that have a known answer."""

from __future__ import annotations

import numpy as np
import pytest

from carom.engines.rigid import inverse_mass_at, rigid_outcomes, routh_impulse
from carom.reality.rigid_impact import impact, inverse_mass
from carom.scenes.strike import builtin

MASS, INERTIA, STRIKER = 0.3, 2e-4, 2.5
RNG = np.random.default_rng(0)


def drawn(count: int = 4000):
    """Levers, relative velocities that approach, frictions and restitutions of all kinds."""
    lever = RNG.uniform(-0.05, 0.05, (count, 2))
    velocity = np.column_stack([RNG.normal(0, 0.5, count), -RNG.uniform(0.05, 1.0, count)])
    return lever, velocity, RNG.uniform(0.0, 1.5, count), RNG.uniform(0.0, 1.0, count)


def after(velocity, inverse, impulse):
    return velocity + np.einsum("nij,nj->ni", inverse, impulse)


def inverse_of(lever):
    return inverse_mass_at(lever, mass=MASS, inertia=INERTIA, striker_mass=STRIKER)


def test_the_inverse_mass_is_what_two_bodies_do():
    """Momentum: an impulse on the target and its opposite on the striker, and what the contact point does then."""
    lever, _, _, _ = drawn(50)
    impulse = RNG.normal(size=(50, 2))
    spin = (lever[:, 0] * impulse[:, 1] - lever[:, 1] * impulse[:, 0]) / INERTIA
    target = impulse / MASS + spin[:, None] * np.column_stack([-lever[:, 1], lever[:, 0]])
    striker = -impulse / STRIKER
    np.testing.assert_allclose(after(np.zeros((50, 2)), inverse_of(lever), impulse), target - striker, rtol=1e-9)


def test_friction_stays_in_its_cone_bodies_part_and_energy_never_grows():
    lever, velocity, mu, e = drawn()
    inverse = inverse_of(lever)
    impulse = routh_impulse(velocity, inverse, friction=mu, restitution=e)
    assert (impulse[:, 1] > 0).all()
    assert (np.abs(impulse[:, 0]) <= mu * impulse[:, 1] * (1 + 1e-12)).all()
    left = after(velocity, inverse, impulse)
    assert (left[:, 1] >= -1e-12).all()
    work = (impulse * (velocity + left)).sum(axis=1) / 2  # of the impulse on both bodies
    assert (work <= 1e-12).all()


def test_a_central_impact_without_slip_gives_back_e_of_the_speed():
    velocity = np.array([[0.0, -0.8]])
    inverse = inverse_of(np.array([[0.0, -0.03]]))
    impulse = routh_impulse(velocity, inverse, friction=0.4, restitution=0.6)
    np.testing.assert_allclose(after(velocity, inverse, impulse), [[0.0, 0.48]], atol=1e-12)
    assert impulse[0, 0] == pytest.approx(0.0)


def test_newtons_restitution_is_of_speeds_whatever_the_friction_and_a_mean_lies_between():
    lever, velocity, mu, e = drawn()
    inverse = inverse_of(lever)
    given = {"friction": mu, "restitution": e}
    poisson, between, newton = (routh_impulse(velocity, inverse, newton=share, **given) for share in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(after(velocity, inverse, newton)[:, 1], -e * np.minimum(velocity[:, 1], 0), atol=1e-12)
    assert (np.abs(newton[:, 0]) <= mu * newton[:, 1] * (1 + 1e-12)).all()
    assert (np.abs(newton - poisson).max(axis=1) > 1e-3 * poisson[:, 1]).mean() > 0.1
    np.testing.assert_allclose(between[:, 1], (poisson + newton)[:, 1] / 2)
    plain = routh_impulse(velocity, inverse, friction=0.0, restitution=e)
    np.testing.assert_allclose(routh_impulse(velocity, inverse, friction=0.0, restitution=e, newton=1.0), plain)


def test_much_friction_ends_in_sticking():
    velocity = np.array([[0.2, -0.8], [-0.2, -0.8]])
    inverse = inverse_of(np.array([[0.01, -0.03], [-0.01, -0.03]]))
    impulse = routh_impulse(velocity, inverse, friction=3.0, restitution=0.5)
    left = after(velocity, inverse, impulse)
    np.testing.assert_allclose(left[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(impulse[1], impulse[0] * [-1, 1])  # a mirror image


def test_a_slip_that_cannot_be_held_turns_round():
    lever = np.array([[0.04, -0.03]])
    inverse = inverse_of(lever)
    a, b = inverse[0, 0, 0], inverse[0, 0, 1]
    mu = 0.5 * abs(b) / a  # half of what would hold the contact
    velocity = np.array([[-np.sign(b) * 0.05, -0.8]])
    impulse = routh_impulse(velocity, inverse, friction=mu, restitution=0.3)
    left = after(velocity, inverse, impulse)
    assert np.sign(left[0, 0]) == -np.sign(velocity[0, 0])
    meets = 0.05 / (abs(b) + mu * a)
    turned = -np.sign(velocity[0, 0]) * mu * (meets - (impulse[0, 1] - meets))
    assert impulse[0, 0] == pytest.approx(turned)


def test_bodies_that_do_not_approach_get_no_impulse():
    impulse = routh_impulse(
        np.array([[0.3, 0.0], [0.3, 0.2]]), np.tile(np.eye(2), (2, 1, 1)), friction=1, restitution=1
    )
    np.testing.assert_array_equal(impulse, 0.0)
    assert routh_impulse(np.zeros((0, 2)), np.zeros((0, 2, 2)), friction=1, restitution=1).shape == (0, 2)


@pytest.mark.parametrize("case", ["frictionless", "central", "all slide"])
def test_it_agrees_with_the_stand_ins_law_where_both_restitutions_mean_the_same(case):
    """They do where one state of slip lasts throughout; elsewhere Poisson's and the energetic one differ."""
    lever, velocity, mu, e = drawn(500)
    if case == "frictionless":
        mu = np.zeros(500)
    if case == "central":
        lever[:, 0] = 0.0
    if case == "all slide":
        velocity[:, 0] = 50.0
        mu *= 0.1
    normal = np.tile([0.0, 1.0], (500, 1))
    theirs = inverse_mass(normal, lever, mass=MASS, inertia=INERTIA, striker=np.eye(2) / STRIKER)
    np.testing.assert_allclose(inverse_of(lever), theirs, rtol=1e-12, atol=1e-12)
    expected = impact(velocity, theirs, friction=mu, restitution=e).impulse
    np.testing.assert_allclose(
        routh_impulse(velocity, theirs, friction=mu, restitution=e), expected, rtol=1e-9, atol=1e-12
    )


def test_it_differs_from_the_stand_ins_law_elsewhere():
    lever, velocity, mu, e = drawn()
    inverse = inverse_of(lever)
    mine = routh_impulse(velocity, inverse, friction=mu, restitution=e)
    theirs = impact(velocity, inverse, friction=mu, restitution=e).impulse
    assert (np.abs(mine - theirs).max(axis=1) > 1e-3 * theirs[:, 1]).mean() > 0.1


def test_both_ends_of_a_flat_face_strike_in_turn():
    """A light block on a stiff wide face: at the end neither end approaches it, energy fell, and mirrors agree."""
    scene = builtin("square")
    rng = np.random.default_rng(3)
    lever = np.column_stack([rng.uniform(-0.02, 0.02, 200), np.full(200, -0.04)])
    velocity = np.column_stack([rng.uniform(-0.1, 0.1, 200), rng.uniform(0.2, 1.0, 200)])
    given = {"restitution": 0.4, "friction": 0.3, "striker_mass": 2.0}
    one = rigid_outcomes(scene, lever, velocity, face=(np.full(200, 0.015), np.full(200, -0.015)), **given)
    spin = one[:, 2] / scene.gyration_radius
    striker = velocity - scene.mass / 2.0 * one[:, :2]
    for end in (-0.015, 0.015):
        leaving = one[:, 1] + spin * (lever[:, 0] + end) - striker[:, 1]
        assert (leaving > -0.02 * velocity[:, 1]).all()
    before = 0.5 * 2.0 * (velocity**2).sum(axis=1)
    after_it = 0.5 * 2.0 * (striker**2).sum(axis=1) + 0.5 * scene.mass * (one**2).sum(axis=1)
    assert (after_it <= before * (1 + 1e-9)).all()
    flip = np.array([-1.0, 1.0])
    mirrored = rigid_outcomes(
        scene, lever * flip, velocity * flip, face=(np.full(200, -0.015), np.full(200, 0.015)), **given
    )
    np.testing.assert_allclose(mirrored, one * np.array([-1.0, 1.0, -1.0]), atol=1e-12)
    single = rigid_outcomes(scene, lever + np.array([0.015, 0.0]), velocity, **given)
    again = np.abs(single - one).max(axis=1) > 1e-6
    assert 0.05 < again.mean() < 1.0  # some blocks turn into the other end, some do not
