"""Sliding on a patch: closed forms, parity with MuJoCo, order of the integrator, symmetry, derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from carom.core.errors import SceneError
from carom.engines import MujocoSimulator, slider_for
from carom.engines.patch import drag, patch_of
from carom.engines.slider import GRAVITY, STEP, TAIL, Slide, Slider, at_times
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import Striker, StrikeScene, builtin
from carom.state import Array, Strikes, rotate

SEMI, SQUARE = builtin("semi-cylinder"), builtin("square")
DISC = StrikeScene("disc", Body("disc", "target", Shape("cylinder", radius=0.05, height=0.05), 0.2), Striker(0.02))
MU = 0.3
#: glide and spin of all proportions [m/s, m/s, rad/s]
MIXED = np.array([[0.5, 0.2, 5.0], [0.05, 0.0, 9.0], [-0.4, 0.3, -1.0], [0.7, 0.0, 0.02], [0.0, -0.3, 12.0]])


def tensor(values: object) -> torch.Tensor:
    return torch.as_tensor(np.atleast_2d(np.asarray(values, dtype=np.float64)))


def slid(slider: Slider, velocity: object, pose: object | None = None, **options: float) -> Slide:
    v = tensor(velocity)
    return slider.slide(torch.zeros_like(v) if pose is None else tensor(pose), v, **options)


def energies(slider: Slider, slide: Slide) -> torch.Tensor:
    """[N, S] twice the kinetic energy per mass at each instant."""
    return slider.speed(slide.velocity.reshape(-1, 3)).reshape(slide.time.shape) ** 2


@pytest.mark.parametrize("scene", [SEMI, SQUARE, DISC], ids=lambda s: s.name)
def test_pure_translation_stops_after_v2_over_2_mu_g(scene: StrikeScene) -> None:
    speed = np.array([0.05, 0.4, 1.3])
    slide = slid(slider_for(scene, MU), speed[:, None] * [0.6, -0.8, 0.0], np.tile([0.1, 0.2, 0.7], (3, 1)))
    away = (slide.pose[:, -1] - slide.pose[:, 0]).numpy()
    np.testing.assert_allclose(np.linalg.norm(away[:, :2], axis=1), speed**2 / (2 * MU * GRAVITY), rtol=1e-9)
    np.testing.assert_allclose(slide.time[:, -1], speed / (MU * GRAVITY), rtol=1e-9)
    np.testing.assert_allclose(away[:, 2], 0.0, atol=1e-9)


@pytest.mark.parametrize("scene", [SQUARE, DISC], ids=lambda s: s.name)
def test_pure_spin_stops_after_the_angle_that_its_mean_lever_gives(scene: StrikeScene) -> None:
    slider, spin = slider_for(scene, MU), 8.0
    square = (slider.points**2).sum(axis=1)
    smooth = float((square / np.sqrt(square + slider.cell**2 / 12)).mean())  # lever with slip averaged over a cell
    slide = slid(slider, [0.0, 0.0, spin])
    angle = float(slide.pose[0, -1, 2])
    assert angle == pytest.approx((spin * slider.gyration) ** 2 / (2 * MU * GRAVITY * smooth), rel=1e-6)
    assert smooth == pytest.approx(float(np.sqrt(square).mean()), rel=0.02)
    np.testing.assert_allclose(slide.pose[0, -1, :2], 0.0, atol=1e-9)


def test_spin_of_a_disc_is_braked_at_two_thirds_of_its_radius() -> None:
    angle = float(slid(slider_for(DISC, MU), [0.0, 0.0, 8.0]).pose[0, -1, 2])
    assert angle == pytest.approx(8.0**2 * 0.05**2 / 2 / (2 * MU * GRAVITY * 2 / 3 * 0.05), rel=0.02)


@pytest.mark.parametrize("scene", [SEMI, SQUARE], ids=lambda s: s.name)
def test_mujoco_agrees_in_pure_translation(scene: StrikeScene) -> None:
    velocity = np.array([[0.3, 0.0, 0.0], [0.0, 0.5, 0.0], [-0.4, 0.4, 0.0]])
    far = np.tile([5.0, 5.0, 0.0], (3, 1))
    mujoco = MujocoSimulator(scene, {"ground_friction": MU}, threads=1)
    run = mujoco.rollout(Strikes(np.zeros((3, 3)), velocity, far, np.zeros((3, 3))), 0.3, frames=4)
    slide = slid(slider_for(scene, MU), velocity)
    expected = at_times(slide, torch.as_tensor(run.time))[0].numpy()
    way = np.linalg.norm(expected[:, :, :2], axis=-1)
    difference = np.linalg.norm(run.target_pose[:, :, :2] - expected[:, :, :2], axis=-1)
    assert (difference[:, 1:] < 0.02 * way[:, 1:]).all()
    assert np.abs(run.target_pose[..., 2]).max() < 0.02


def test_order_of_convergence() -> None:
    slider = slider_for(SEMI, MU)

    def end(step: float) -> Array:
        return slid(slider, MIXED[:3], step=step, tail=1e-4).pose[:, -1].numpy() * [1, 1, slider.gyration]

    fine = end(0.025)
    errors = [np.linalg.norm(end(step) - fine) for step in (0.2, 0.1, 0.05)]
    assert errors[0] < 1e-6
    assert errors[0] / errors[1] > 8
    assert errors[1] / errors[2] > 8


def test_usual_steps_are_off_by_a_tenth_of_a_millimetre_at_most() -> None:
    rng = np.random.default_rng(2)
    velocity = rng.uniform(-1, 1, (200, 3)) * [0.8, 0.8, 12.0]
    for scene in (SEMI, SQUARE):
        slider = slider_for(scene, MU)
        usual, fine = slid(slider, velocity), slid(slider, velocity, step=0.05, tail=1e-3)
        error = (usual.pose[:, -1] - fine.pose[:, -1]).numpy() * [1, 1, slider.gyration]
        assert np.linalg.norm(error, axis=1).max() < 1e-4


@pytest.mark.parametrize("viscosity", [0.05, 0.3])
def test_friction_that_grows_with_speed_brakes_translation_by_the_closed_form(viscosity: float) -> None:
    slider, v = slider_for(SEMI, MU, viscosity=viscosity), 0.9
    rate, ratio = GRAVITY * viscosity, MU / viscosity
    stop = np.log(1 + v / ratio) / rate
    slide = slid(slider, [v, 0.0, 0.0], step=0.1, tail=1e-4)
    assert float(slide.time[0, -1]) == pytest.approx(stop, rel=1e-5)
    assert float(slide.pose[0, -1, 0]) == pytest.approx(v / rate - ratio * stop, rel=1e-5)
    t = slide.time[0].numpy()
    np.testing.assert_allclose(slide.velocity[0, :, 0], (v + ratio) * np.exp(-rate * t) - ratio, atol=1e-5)
    pose = (v + ratio) / rate * (1 - np.exp(-rate * t)) - ratio * t
    np.testing.assert_allclose(slide.pose[0, :, 0], pose, atol=1e-6)


def test_viscosity_also_brakes_spin() -> None:
    plain, thick = (slid(slider_for(SQUARE, MU, viscosity=c), [0.0, 0.0, 10.0]) for c in (0.0, 0.3))
    assert float(thick.pose[0, -1, 2]) < 0.9 * float(plain.pose[0, -1, 2])


@pytest.mark.parametrize("viscosity", [0.0, 0.2])
def test_energy_never_grows_and_rest_is_final(viscosity: float) -> None:
    slider = slider_for(SEMI, MU, viscosity=viscosity)
    slide = slid(slider, [*MIXED.tolist(), [0.0, 0.0, 0.0]])
    assert (torch.diff(energies(slider, slide), dim=1) <= 1e-15).all()
    assert not slide.velocity[:, -1].any()
    assert (torch.diff(slide.time, dim=1) >= 0).all()
    np.testing.assert_allclose(slide.pose[-1], 0.0, atol=1e-9)


def test_friction_does_the_work_that_the_motion_loses() -> None:
    """The acceleration is that of the regression's patch model, and opposes the motion."""
    slider, patch = slider_for(SEMI, MU), patch_of(SEMI.target)
    yaw = np.linspace(-2, 2, len(MIXED))
    grip = torch.full((len(MIXED),), MU * GRAVITY, dtype=torch.float64)
    got = slider.acceleration(torch.as_tensor(yaw), torch.as_tensor(MIXED), grip)
    direction, lever = drag(patch, yaw, MIXED)
    expected = -MU * GRAVITY * np.column_stack([direction, lever / slider.gyration**2])
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert ((got.numpy() * MIXED * [1, 1, slider.gyration**2]).sum(axis=1) < 0).all()


def test_spin_lets_a_body_glide_further() -> None:
    slide = slid(slider_for(SEMI, MU), [[0.5, 0.0, 0.0], [0.5, 0.0, 8.0]])
    assert float(slide.pose[1, -1, 0]) > 1.1 * float(slide.pose[0, -1, 0])


def test_slide_turns_and_moves_with_the_world() -> None:
    slider, turn, shift = slider_for(SEMI, MU), 2.1, np.array([0.4, -1.3])
    pose = np.random.default_rng(1).uniform(-1, 1, MIXED.shape)
    here = slid(slider, MIXED, pose).pose[:, -1].numpy()
    there = (
        slid(
            slider,
            np.c_[rotate(MIXED[:, :2], turn), MIXED[:, 2]],
            np.c_[rotate(pose[:, :2], turn) + shift, pose[:, 2] + turn],
        )
        .pose[:, -1]
        .numpy()
    )
    np.testing.assert_allclose(there[:, :2], rotate(here[:, :2], turn) + shift, atol=1e-10)
    np.testing.assert_allclose(there[:, 2], here[:, 2] + turn, atol=1e-10)


def test_mirrored_velocities_slide_to_mirrored_places() -> None:
    flip = np.array([-1.0, 1.0, -1.0])  # the semi-cylinder is its own image in x
    slider = slider_for(SEMI, MU)
    one, other = slid(slider, MIXED), slid(slider, MIXED * flip)
    np.testing.assert_allclose(other.pose[:, -1], one.pose[:, -1].numpy() * flip, atol=1e-9)


def test_rows_of_a_batch_do_not_know_each_other() -> None:
    slider = slider_for(SEMI, MU)
    together = slid(slider, MIXED)
    times = torch.linspace(0, 0.5, 11, dtype=torch.float64)[None]
    for i, row in enumerate(MIXED):
        alone = slid(slider, row)
        np.testing.assert_allclose(alone.pose[0, -1], together.pose[i, -1], atol=1e-12)
        between = at_times(Slide(*(column[i : i + 1] for column in together)), times)[0]
        np.testing.assert_allclose(at_times(alone, times)[0], between, atol=1e-12)


def test_own_friction_of_each_body_replaces_the_sliders() -> None:
    slider, mu = slider_for(SQUARE, MU), torch.tensor([0.1, 0.2, 0.5], dtype=torch.float64)
    slide = slider.slide(torch.zeros(3, 3, dtype=torch.float64), tensor(np.tile([0.6, 0.0, 0.0], (3, 1))), friction=mu)
    np.testing.assert_allclose(slide.pose[:, -1, 0], 0.6**2 / (2 * mu * GRAVITY), rtol=1e-9)


@pytest.mark.parametrize(("step", "tail", "near"), [(0.1, 0.01, 2e-3), (STEP, TAIL, 5e-3)], ids=["fine", "usual"])
def test_derivatives_are_those_of_finite_differences(step: float, tail: float, near: float) -> None:
    """By velocity and by each body's own friction; coarse steps depend on the velocity a little, which is left out."""
    slider, h = slider_for(SEMI, MU, viscosity=0.1), 1e-5
    scale = torch.tensor([1, 1, slider.gyration], dtype=torch.float64)

    def end(inputs: torch.Tensor) -> torch.Tensor:
        """Resting pose [N, 3] for (vx, vy, k wz, friction) [N, 4]; turning times k."""
        velocity = inputs[:, :3] / scale
        start = torch.zeros_like(velocity)
        return slider.slide(start, velocity, friction=inputs[:, 3], step=step, tail=tail).pose[:, -1] * scale

    x = torch.cat([tensor(MIXED) * scale, torch.full((len(MIXED), 1), MU, dtype=torch.float64)], dim=1).requires_grad_()
    by_graph = torch.stack([torch.autograd.grad(end(x)[:, i].sum(), x)[0] for i in range(3)], dim=1)
    with torch.no_grad():
        nudges = h * torch.eye(4, dtype=torch.float64)
        finite = torch.stack([(end(x + n) - end(x - n)) / (2 * h) for n in nudges], dim=-1)
    assert (finite[:, :, 3].norm(dim=1) > 1e-3).all()
    for part in (slice(0, 3), slice(3, 4)):
        error = (by_graph - finite)[..., part].norm(dim=(1, 2)) / finite[..., part].norm(dim=(1, 2))
        assert float(error.max()) < near


def test_disc_ends_with_the_same_ratio_of_glide_to_spin_however_it_began() -> None:
    """v / (R w) -> 0.653 (Farkas et al., Phys. Rev. Lett. 90, 248302): a disc stops gliding and spinning at once."""
    slide = slid(slider_for(DISC, MU), [[0.5, 0.0, 5.0], [0.1, 0.0, 8.0], [0.3, 0.3, 2.0]], step=0.05, tail=1e-5)
    vx, vy, spin = slide.velocity[:, -2].numpy().T
    ratio = np.hypot(vx, vy) / (0.05 * np.abs(spin))
    np.testing.assert_allclose(ratio, 0.653, rtol=0.04)  # of even pressure; here it stands on a grid of points
    assert np.ptp(ratio) < 0.01


def test_between_instants_poses_hit_the_knots_and_hold_the_ends() -> None:
    slide = slid(slider_for(SEMI, MU), MIXED)
    pose, velocity = at_times(slide, slide.time)
    np.testing.assert_allclose(pose, slide.pose, atol=1e-12)
    np.testing.assert_allclose(velocity, slide.velocity, atol=1e-12)
    ends = torch.tensor([[-1.0, 0.0, 50.0, 60.0]], dtype=torch.float64).expand(len(MIXED), -1)
    pose, velocity = at_times(slide, ends)
    for column, knot in zip(range(4), (0, 0, -1, -1), strict=True):
        np.testing.assert_allclose(pose[:, column], slide.pose[:, knot], atol=1e-12)
    assert not velocity[:, 2:].any()


def test_between_instants_poses_follow_a_fine_slide() -> None:
    slider = slider_for(SEMI, MU)
    times = torch.linspace(0, 0.4, 41, dtype=torch.float64).expand(len(MIXED), -1)
    usual, fine = (at_times(s, times)[0].numpy() for s in (slid(slider, MIXED), slid(slider, MIXED, step=0.02)))
    assert np.linalg.norm((usual - fine) * [1, 1, slider.gyration], axis=-1).max() < 2e-4


def test_weight_further_out_brakes_spin_sooner_and_glide_the_same() -> None:
    inner, outer = slider_for(SQUARE, MU, size=0.8), slider_for(SQUARE, MU, size=1.2)
    angles = [float(slid(s, [0.0, 0.0, 8.0]).pose[0, -1, 2]) for s in (inner, outer)]
    assert angles[0] / angles[1] == pytest.approx(1.5, rel=1e-6)
    ways = [float(slid(s, [0.5, 0.0, 0.0]).pose[0, -1, 0]) for s in (inner, outer)]
    assert ways[0] == pytest.approx(ways[1], rel=1e-9)


def test_what_cannot_slide_is_refused() -> None:
    ball = replace(SQUARE, target=Body("ball", "target", Shape("sphere", radius=0.05), 0.1))
    with pytest.raises(SceneError, match=r"^scene 'square': its target does not stand on a face"):
        slider_for(ball, MU)
    for friction in (0.0, -0.1, float("nan"), float("inf")):
        with pytest.raises(SceneError, match=r"^friction with the ground: expected a positive number, got "):
            slider_for(SQUARE, friction)
