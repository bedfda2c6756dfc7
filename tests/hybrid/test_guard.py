"""What a learned outcome may do: never create energy, never drive the bodies into each other; nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from carom.engines.contact_frames import Frames, contact_frames
from carom.hybrid.guard import SLACK, guard
from carom.learn.impact.sample import sample_strikes
from carom.scenes.strike import Striker, StrikeScene, builtin
from carom.state import Array, Strikes

HELD = builtin("semi-cylinder")
LIGHT = replace(builtin("square"), striker=Striker(radius=0.02, mass=0.4))
both = pytest.mark.parametrize("scene", [HELD, LIGHT], ids=["held", "light"])
moving = pytest.mark.parametrize("spin", [0.0, 1.0], ids=["resting", "moving"])
COUNT = 400


def cases(scene: StrikeScene, spin: float = 0.0, seed: int = 0) -> tuple[Strikes, Frames]:
    rng = np.random.default_rng(seed)
    strikes = sample_strikes(scene, COUNT, rng)
    strikes = replace(strikes, target_velocity=spin * rng.uniform(-1, 1, (COUNT, 3)) * [0.08, 0.08, 1.0])
    frames = contact_frames(scene, strikes)
    keep = frames.velocity[:, 1] > 0.02  # the contact point itself closes in
    return strikes[keep], contact_frames(scene, strikes[keep])


def separation(scene: StrikeScene, strikes: Strikes, frames: Frames, post: Array) -> Array:
    """[N] speed at which the contact points part along the normal, the striker having got the reaction [m/s]."""
    normal = frames.axes[:, 1]
    arm = np.einsum("nai,na->ni", frames.axes, frames.lever)
    target = post[:, :2] + post[:, 2:] * np.column_stack([-arm[:, 1], arm[:, 0]])
    return ((target - recoiled(scene, strikes, post)) * normal).sum(axis=1)


def recoiled(scene: StrikeScene, strikes: Strikes, post: Array) -> Array:
    """[N, 2] the striker's velocity after the blow: what the target gained, it lost."""
    gained = scene.mass * (post - strikes.target_velocity)[:, :2]
    return strikes.striker_velocity[:, :2] - gained / scene.striker_mass


def created(scene: StrikeScene, strikes: Strikes, post: Array) -> Array:
    """[N] kinetic energy of both bodies after less that before [J]."""
    inertia = scene.mass * np.array([1, 1, scene.gyration_radius**2])
    target = 0.5 * (inertia * (post**2 - strikes.target_velocity**2)).sum(axis=1)
    striker = recoiled(scene, strikes, post) ** 2 - strikes.striker_velocity[:, :2] ** 2
    return target + 0.5 * scene.striker_mass * striker.sum(axis=1)


def rigid(scene: StrikeScene, strikes: Strikes, frames: Frames, restitution: float) -> Array:
    """Outcomes of a frictionless impact."""
    k2, lever = scene.gyration_radius**2, frames.lever[:, 0]
    push = (1 + restitution) * frames.velocity[:, 1] / (1 + scene.mass / scene.striker_mass + lever**2 / k2)
    return strikes.target_velocity + np.column_stack([push[:, None] * frames.axes[:, 1], push * lever / k2])


def wild(scene: StrikeScene, strikes: Strikes, seed: int = 1) -> Array:
    """Outcomes of any size and direction."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.uniform(-3, 1, (len(strikes), 1)))
    return strikes.target_velocity + size * rng.standard_normal((len(strikes), 3)) * [1, 1, 1 / scene.gyration_radius]


def joule(scene: StrikeScene, frames: Frames) -> Array:
    return scene.mass * frames.speed**2


@both
@moving
def test_no_outcome_creates_energy(scene: StrikeScene, spin: float) -> None:
    strikes, frames = cases(scene, spin)
    post = wild(scene, strikes)
    assert (created(scene, strikes, post) > 0).mean() > 0.3  # or there would be nothing to guard
    checked = guard(scene, strikes, frames, post)
    assert (created(scene, strikes, checked.post) <= 1e-6 * joule(scene, frames)).all()
    assert (checked.corrected[created(scene, strikes, post) > 1e-6 * joule(scene, frames)]).all()


@both
@moving
def test_no_outcome_drives_bodies_into_each_other(scene: StrikeScene, spin: float) -> None:
    strikes, frames = cases(scene, spin)
    post = wild(scene, strikes)
    assert (separation(scene, strikes, frames, post) < -SLACK * frames.speed).mean() > 0.3
    checked = guard(scene, strikes, frames, post)
    assert (separation(scene, strikes, frames, checked.post) >= -(SLACK + 1e-6) * frames.speed).all()


@both
def test_weak_outcomes_get_just_the_impulse_that_parts_the_bodies(scene: StrikeScene) -> None:
    strikes, frames = cases(scene)
    checked = guard(scene, strikes, frames, strikes.target_velocity)  # as if nothing had happened
    assert checked.corrected.all()
    np.testing.assert_allclose(checked.post, rigid(scene, strikes, frames, 0.0), atol=1e-9)
    np.testing.assert_allclose(separation(scene, strikes, frames, checked.post), 0.0, atol=1e-9)


@both
@pytest.mark.parametrize("spin", [0.0, 1.0], ids=["resting", "moving"])
@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.6, 0.99])
def test_admissible_outcomes_pass_bit_for_bit(scene: StrikeScene, spin: float, restitution: float) -> None:
    strikes, frames = cases(scene, spin)
    post = rigid(scene, strikes, frames, restitution)
    post[:, 2] *= 1 + 1e-6  # nothing round
    checked = guard(scene, strikes, frames, post)
    assert not checked.corrected.any()
    np.testing.assert_array_equal(checked.post, post)


@both
def test_too_lively_outcomes_become_elastic_ones(scene: StrikeScene) -> None:
    strikes, frames = cases(scene)
    checked = guard(scene, strikes, frames, rigid(scene, strikes, frames, 2.5))
    assert checked.corrected.all()
    np.testing.assert_allclose(checked.post, rigid(scene, strikes, frames, 1.0), atol=1e-9)
    np.testing.assert_allclose(created(scene, strikes, checked.post) / joule(scene, frames), 0.0, atol=1e-9)


@both
def test_guarding_twice_changes_nothing_more(scene: StrikeScene) -> None:
    strikes, frames = cases(scene)
    once = guard(scene, strikes, frames, wild(scene, strikes))
    twice = guard(scene, strikes, frames, once.post)
    np.testing.assert_allclose(twice.post, once.post, atol=1e-6)


@both
def test_rows_do_not_know_each_other(scene: StrikeScene) -> None:
    strikes, frames = cases(scene)
    post = wild(scene, strikes)
    together = guard(scene, strikes, frames, post)
    some = np.arange(0, len(strikes), 7)
    apart = guard(scene, strikes[some], contact_frames(scene, strikes[some]), post[some])
    np.testing.assert_allclose(apart.post, together.post[some], atol=1e-12)
    np.testing.assert_array_equal(apart.corrected, together.corrected[some])
