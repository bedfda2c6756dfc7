"""The analytic teacher against textbook impacts: restitution, energy, friction, and the limits it must share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from strike_cases import FLAT, PUCK, ROUND, STRIKER_MASS, TARGET_MASS, compliant, energy, strikes

from carom.engines import compliant as module
from carom.engines.compliant import damping_for
from carom.learn.impact.sample import sample_strikes
from carom.scenes.parameters import known
from carom.scenes.strike import Striker, StrikeScene, builtin

REDUCED = 1 / (1 / TARGET_MASS + 1 / STRIKER_MASS)


@pytest.mark.parametrize("e", [0.05, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("scene", [ROUND, FLAT, PUCK], ids=["round", "flat", "puck"])
def test_central_impact_has_the_restitution_asked_for(scene: StrikeScene, e: float) -> None:
    post = compliant(scene, strikes([-0.07, 0.0], [0.5, 0.0]), restitution=e)
    expected = 0.5 * (1 + e) * STRIKER_MASS / (TARGET_MASS + STRIKER_MASS)
    np.testing.assert_allclose(post, [[expected, 0.0, 0.0]], rtol=0.02, atol=1e-9)


def test_a_held_striker_gives_one_plus_e_times_its_speed() -> None:
    held = replace(ROUND, striker=Striker(radius=0.02))
    post = compliant(held, strikes([-0.06, 0.0], [0.5, 0.0]), restitution=0.4)
    assert post[0, 0] == pytest.approx(0.7, rel=0.02)


def test_restitution_falls_with_speed_as_its_slope_says() -> None:
    held = replace(ROUND, striker=Striker(radius=0.02))
    speed = np.array([0.25, 0.5, 1.0])
    case = strikes(np.tile([-0.06, 0.0], (3, 1)), np.c_[speed, np.zeros(3)])
    post = compliant(held, case, restitution=0.5, restitution_slope=0.25)
    np.testing.assert_allclose(post[:, 0] / speed - 1, 0.5 * (speed / 0.5) ** -0.25, rtol=0.02)


def test_damping_table_is_the_inverse_of_restitution() -> None:
    e = np.linspace(0.05, 0.95, 10)
    assert (np.diff(damping_for(e)) < 0).all()
    assert damping_for(np.array([1.0]))[0] == pytest.approx(0.0, abs=0.01)


def test_eccentric_impact_without_friction_follows_the_rigid_formula() -> None:
    # J = (1 + e) v / (1/M + 1/m + l^2/(m k^2)); short contact, so that nothing moves meanwhile
    lever, v, e, k = 0.01, 0.5, 0.6, ROUND.gyration_radius
    post = compliant(ROUND, strikes([-0.06, lever], [v, 0.0]), restitution=e, contact_time=0.002)
    impulse = (1 + e) * v / (1 / REDUCED + lever**2 / (TARGET_MASS * k**2))
    expected = [impulse / TARGET_MASS, 0.0, -impulse * lever / (TARGET_MASS * k**2)]
    np.testing.assert_allclose(post[0] * [1, 1, k], np.array(expected) * [1, 1, k], atol=0.03 * v)


def test_frictionless_contact_makes_no_tangential_change_on_a_flat_side() -> None:
    post = compliant(ROUND, strikes([-0.06, 0.0], [[0.5, 0.2], [0.5, -0.2]]), contact_time=0.002)
    assert np.abs(post[:, 1]).max() < 0.003
    np.testing.assert_allclose(post[0], post[1] * [1, -1, -1], atol=1e-12)


def test_frictionless_contact_never_turns_a_disc() -> None:
    post = compliant(PUCK, strikes([-0.07, 0.0], [[0.5, 0.2], [0.5, -0.2]]), contact_time=0.01)
    assert np.abs(PUCK.gyration_radius * post[:, 2]).max() < 0.002  # every normal force points at its centre


def test_friction_turns_the_target_the_way_it_rubs() -> None:
    case = strikes(np.tile([-0.06, 0.0], (3, 1)), [0.5, 0.2])
    post = compliant(ROUND, case, striker_friction=[0.05, 0.15, 0.5])
    assert (np.diff(post[:2, 1]) > 0).all()
    assert (post[:, 2] < 0).all()  # rubbed along +y on its -x side it turns clockwise
    sliding = post[0, 1] / post[0, 0]
    assert sliding == pytest.approx(0.05, rel=0.25)  # Coulomb: tangential over normal impulse is the coefficient


def test_ground_friction_takes_speed_but_never_turns_it_round() -> None:
    case = strikes(np.tile([-0.06, 0.0], (3, 1)), [0.1, 0.0])
    post = compliant(ROUND, case, ground_friction=[0.01, 0.3, 1.0])[:, 0]
    assert (np.diff(post) < 0).all()
    assert (post >= 0).all()


@pytest.mark.parametrize("name", ["semi-cylinder", "square", "triangle"])
def test_energy_is_never_created(name: str) -> None:
    scene = replace(builtin(name), unknown=(), striker=Striker(radius=0.02, mass=STRIKER_MASS))
    rng = np.random.default_rng(4)
    case = sample_strikes(scene, 400, rng)
    given = {
        "striker_friction": rng.uniform(0.02, 1.0, 400),
        "restitution": rng.uniform(0.02, 0.98, 400),
        "contact_time": rng.uniform(0.002, 0.01, 400),
    }
    post = compliant(scene, case, **given)
    # the striker keeps at least the energy of what its momentum has become
    after = case.striker_velocity[:, :2] - scene.mass / STRIKER_MASS * post[:, :2]
    total = energy(scene, post) + 0.5 * STRIKER_MASS * (after**2).sum(-1)
    before = 0.5 * STRIKER_MASS * (case.striker_velocity**2).sum(-1)
    assert (total / before).max() < 1.02
    assert np.quantile(total / before, 0.95) < 1.0


def test_a_round_striker_and_a_very_narrow_face_agree() -> None:
    narrow = replace(FLAT, striker=Striker(width=1e-4, mass=STRIKER_MASS))
    velocity = [[0.5, 0.1], [0.4, -0.1], [0.7, 0.0]]
    a = compliant(ROUND, strikes([-0.06, 0.01], velocity), striker_friction=0.3)
    b = compliant(narrow, strikes([-0.04, 0.01], velocity), striker_friction=0.3)
    np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4)


def test_a_wide_flush_face_turns_the_target_less_than_a_point() -> None:
    case = strikes([-0.06, 0.008], [0.5, 0.0])
    spin = [
        compliant(replace(FLAT, striker=Striker(width=w, mass=STRIKER_MASS)), case)[0, 2] for w in (0.001, 0.03, 0.06)
    ]
    assert spin[0] == pytest.approx(compliant(ROUND, case)[0, 2], rel=0.01)
    assert spin[0] < 1.1 * spin[1] < 1.1 * spin[2] < 0


def test_finer_steps_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    case = sample_strikes(ROUND, 100, rng)
    coarse = compliant(ROUND, case, striker_friction=0.3)
    monkeypatch.setattr(module, "STEPS_PER_CONTACT", 96)
    fine = compliant(ROUND, case, striker_friction=0.3)
    monkeypatch.setattr(module, "STEPS_PER_CONTACT", 384)
    finest = compliant(ROUND, case, striker_friction=0.3)
    scale = [1, 1, ROUND.gyration_radius]
    first = np.linalg.norm((coarse - finest) * scale, axis=-1)
    second = np.linalg.norm((fine - finest) * scale, axis=-1)
    assert np.median(first) < 0.01
    assert np.median(second) < 0.5 * np.median(first)  # it converges


def test_outcome_of_a_strike_does_not_depend_on_its_neighbours() -> None:
    case = strikes(np.tile([-0.06, 0.0], (2, 1)), [0.5, 0.0], yaw=0.05)
    together = compliant(FLAT, case, contact_time=[0.03, 0.002])
    alone = compliant(FLAT, case[:1], contact_time=0.03)
    np.testing.assert_allclose(alone[0], together[0], rtol=1e-9)


def test_unknown_striker_mass_is_used() -> None:
    scene = replace(ROUND, unknown=(known("striker_mass"),))
    case = strikes(np.tile([-0.06, 0.0], (2, 1)), [0.5, 0.0])
    light, heavy = compliant(scene, case, striker_mass=[TARGET_MASS, 20.0], restitution=0.5)[:, 0]
    assert light == pytest.approx(0.5 * 1.5 / 2, rel=0.02)
    assert heavy == pytest.approx(0.5 * 1.5 * 20 / 20.2, rel=0.02)
