"""Ends of slides read off a table: against the integrator over all directions and speeds, at the ends, derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from carom.engines import slider_for
from carom.engines.slide_table import SlideTable
from carom.engines.slide_table_making import integrated_ends, make_table, velocities
from carom.engines.slider import Slider
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import Striker, StrikeScene, builtin
from carom.state import Array

SEMI, SQUARE = builtin("semi-cylinder"), builtin("square")
DISC = StrikeScene("disc", Body("disc", "target", Shape("cylinder", radius=0.05, height=0.05), 0.2), Striker(0.02))
TOP = 0.9  #: [m/s]


@pytest.fixture(scope="module")
def slider() -> Slider:
    """A base that looks the same from nowhere, its mass off its middle, on friction that grows with slip."""
    plain = slider_for(SEMI, 0.3, viscosity=0.05, size=0.9, offset=(0.002, -0.001))
    return replace(plain, table=make_table(plain, TOP))


@pytest.fixture(scope="module")
def square() -> Slider:
    plain = slider_for(SQUARE, 0.3)
    return replace(plain, table=make_table(plain, TOP))


def table_of(slider: Slider) -> SlideTable:
    assert slider.table is not None
    return slider.table


def drawn(slider: Slider, count: int, seed: int) -> Array:
    """Velocities [N, 3] of all directions and proportions, up to the speed that the table answers for."""
    rng = np.random.default_rng(seed)
    pace = table_of(slider).reach * rng.uniform(0, 1, count)
    return velocities(slider, rng.uniform(0, 2 * np.pi, count), np.arcsin(rng.uniform(-1, 1, count)), pace)


@pytest.mark.parametrize("name", ["slider", "square"])
def test_ends_are_those_of_the_integrator(name: str, request: pytest.FixtureRequest) -> None:
    slider: Slider = request.getfixturevalue(name)
    table, velocity = table_of(slider), drawn(slider, 3000, 3)
    assert table.reach > 0.8 * TOP
    expected = integrated_ends(slider, velocity)
    found, known = table.rests(np.zeros((len(velocity), 3)), velocity, table.grip)
    away = np.abs(found.pose - expected[:, :3])
    place, turn = np.linalg.norm(away[:, :2], axis=1), np.degrees(away[:, 2])
    assert known.all()
    assert np.quantile(place, 0.999) < 1e-4
    assert np.quantile(turn, 0.999) < 0.1
    assert place.max() < 1e-3
    np.testing.assert_allclose(found.time, expected[:, 3], atol=1e-3)


@pytest.mark.parametrize("speed", [0.0, 1e-9, 1e-4, 0.02, 0.7])
def test_pure_glide_and_pure_spin_end_as_the_integrator_has_them(slider: Slider, speed: float) -> None:
    turn = np.array([0.0, 1.0, 2.5, 4.0])
    ends = [velocities(slider, turn, np.full(4, angle), np.full(4, speed)) for angle in (0.0, 1e-9, -np.pi / 2)]
    velocity = np.concatenate(ends)
    centred = replace(slider, offset=(0.0, 0.0))
    np.testing.assert_allclose(
        centred.rests(np.zeros((12, 3)), velocity).pose, integrated_ends(slider, velocity)[:, :3], atol=5e-5
    )


def test_a_mass_centre_off_the_middle_and_the_start_count_as_in_the_integrator(slider: Slider) -> None:
    velocity, pose = drawn(slider, 200, 5) * 0.6, np.random.default_rng(1).uniform(-2, 2, (200, 3))
    found, plain = slider.rests(pose, velocity), replace(slider, table=None).rests(pose, velocity)
    np.testing.assert_allclose(found.pose[:, :2], plain.pose[:, :2], atol=1.5e-4)
    np.testing.assert_allclose(found.pose[:, 2], plain.pose[:, 2], atol=3e-3)
    centred = replace(slider, offset=(0.0, 0.0)).rests(pose, velocity).pose
    assert np.abs(centred - found.pose).max() > 1e-3


def test_what_is_too_fast_for_a_table_is_integrated(square: Slider) -> None:
    velocity = np.array([[0.3, 0.1, 2.0], [2.5, 0.0, 10.0]])
    pose, plain = np.zeros((2, 3)), replace(square, table=None)
    found, integrated = square.rests(pose, velocity), plain.rests(pose, velocity)
    assert table_of(square).rests(pose, velocity, 0.3 * 9.81)[1].tolist() == [True, False]
    np.testing.assert_array_equal(found.pose[1], integrated.pose[1])
    assert found.pose[0, 0] != integrated.pose[0, 0]
    ends = square.ends(torch.as_tensor(pose), torch.as_tensor(velocity))
    np.testing.assert_allclose(ends, found.pose, atol=1e-12)


def test_derivatives_are_those_of_finite_differences(slider: Slider) -> None:
    velocity = drawn(slider, 80, 7)
    velocity = velocity[slider.speed(torch.as_tensor(velocity)).numpy() > 0.2]
    pose = np.random.default_rng(2).uniform(-2, 2, velocity.shape)
    v, q = torch.as_tensor(velocity).requires_grad_(), torch.as_tensor(pose).requires_grad_()
    ends = slider.ends(q, v)
    found = [torch.autograd.grad(ends[:, i].sum(), (q, v), retain_graph=True) for i in range(3)]
    for which, by in enumerate((pose, velocity)):
        for j, step in enumerate((1e-3, 1e-3, 1e-3 if which == 0 else 2e-2)):
            nudge = np.zeros(3)
            nudge[j] = step
            apart = [
                slider.rests(*((by + sign * nudge, velocity) if which == 0 else (pose, by + sign * nudge))).pose
                for sign in (1, -1)
            ]
            finite = (apart[0] - apart[1]) / (2 * step)
            own = torch.stack([f[which][:, j] for f in found], dim=1).numpy()
            assert np.abs(own - finite).max() < 0.01 * max(np.abs(finite).max(), 1.0)


def test_a_table_goes_with_its_slider_only(square: Slider) -> None:
    plain = replace(square, table=None)
    assert replace(square, friction=0.2).table is square.table  # friction that does not grow only scales the ways
    for other in (replace(square, viscosity=0.1), replace(square, gyration=0.05), square.scaled(1.1)):
        assert other.table is None
    growing = replace(plain, viscosity=0.1)
    assert replace(growing, table=square.table).table is None


def test_another_friction_that_does_not_grow_needs_no_other_table(square: Slider) -> None:
    velocity = drawn(square, 300, 9) * 0.7
    other = replace(square, friction=0.2)
    found = other.rests(np.zeros((300, 3)), velocity).pose
    np.testing.assert_allclose(found, integrated_ends(other, velocity)[:, :3], atol=2e-3)
    assert np.linalg.norm((found - integrated_ends(other, velocity)[:, :3])[:, :2], axis=1).max() < 2e-4


@pytest.mark.parametrize("flip", [(-1.0, 1.0), (1.0, -1.0), None])
def test_a_mirrored_base_needs_half_the_slides_and_its_table_is_the_same(flip: tuple[float, float] | None) -> None:
    """Of a base that is its own mirror image in y, in x, or in none."""
    plain = slider_for(SEMI, 0.4)
    points = plain.points if flip is None or flip[0] < 0 else plain.points[:, ::-1].copy()
    lopsided = points[3:] - points[3:].mean(axis=0)
    base = replace(plain, points=lopsided if flip is None else points)
    taken: list[int] = []
    table = make_table(base, 0.4, progress=lambda done, total: taken.append(total))
    nodes = table.coefficients.shape[0] * (table.coefficients.shape[1] - 2) * (table.coefficients.shape[2] - 2)
    assert max(taken) == pytest.approx(nodes if flip is None else nodes / 2, rel=0.1)
    velocity = drawn(replace(base, table=table), 300, 4)
    away = table.rests(np.zeros_like(velocity), velocity, table.grip)[0].pose - integrated_ends(base, velocity)[:, :3]
    assert np.abs(away[:, :2]).max() < 1e-4
    assert np.abs(away[:, 2]).max() < 2e-3


@pytest.mark.parametrize(("scene", "folds"), [(SEMI, 1), (SQUARE, 4), (DISC, 4)], ids=lambda v: str(v))
def test_symmetry_of_a_base_saves_directions(scene: StrikeScene, folds: int) -> None:
    table = make_table(slider_for(scene, 0.4), 0.1)
    assert table.folds == folds
    assert table.coefficients.shape[0] == max(48 // folds, 12)
