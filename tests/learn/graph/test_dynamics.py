"""Physics that holds whatever the weights are: momentum, symmetry about the vertical, flight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from carom.core.rotations import matrices, random_turn
from carom.learn.graph.dynamics import Moving, World, inertia_in_world
from carom.learn.graph.network import DEEPEST, ImpulseNetwork
from carom.learn.graph.solids import solids_of
from carom.learn.graph.turning import turn, turned_by
from carom.scenes.shapes import Body, Shape

BOX = Body("box", "target", Shape("box", size=(0.1, 0.08, 0.06)), mass=0.3, com=(0.004, -0.002, 0.003))
OTHER = Body("other", "target", Shape("box", size=(0.07, 0.09, 0.05)), mass=0.2)
STEP = 0.007
CONTACT = torch.tensor([[0.3, 0.2, 0.5, 0.4]], dtype=torch.float64)


def network(seed: int = 0) -> ImpulseNetwork:
    torch.manual_seed(seed)
    made = ImpulseNetwork().double()
    with torch.no_grad():
        for value in made.parameters():
            value += 0.05 * torch.randn_like(value)
    return made


def world(ground: float | None, rows: int = 1, gravity: float = 9.81) -> World:
    height = None if ground is None else torch.full((rows,), ground, dtype=torch.float64)
    solids = solids_of([(BOX, OTHER)] * rows, dtype=torch.float64)
    return World(solids, torch.full((rows,), gravity, dtype=torch.float64), height, CONTACT.expand(rows, 4), STEP)


def meeting(rows: int = 8, height: float = 1.0) -> Moving:
    """Pairs of boxes that fly into each other."""
    rng = np.random.default_rng(3)
    position, rotation = np.zeros((rows, 2, 3)), np.zeros((rows, 2, 3, 3))
    way = rng.normal(size=(rows, 3)) * [1, 1, 0.3]
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    position[:, 0, 2], position[:, 1] = height, 0.085 * way + [0, 0, height]
    for n in range(rows):
        rotation[n] = [matrices(random_turn(rng)) for _ in range(2)]
    velocity = rng.normal(size=(rows, 2, 3)) * 0.2
    velocity[:, 1] -= 0.8 * way
    parts = (position, rotation, velocity, 3 * rng.normal(size=(rows, 2, 3)))
    return Moving(*(torch.tensor(p) for p in parts))


def test_momentum_is_kept_when_bodies_meet() -> None:
    here, now = world(None, 8), meeting()
    impulses = 0
    for _ in range(6):
        mass, weight = here.solids.mass[..., None], STEP * 9.81 * here.solids.mass.sum(-1)
        before = (mass * now.velocity).sum(1)
        spun = inertia_in_world(turn(-STEP / 2 * now.spin) @ now.rotation, here.solids.inertia) @ now.spin[..., None]
        about = torch.linalg.cross(now.position, mass * now.velocity) + spun[..., 0]
        after, _, impulse = network().advance(here, now)
        impulses += int((impulse.norm(dim=-1) > 1e-6).sum())
        gained = (mass * after.velocity).sum(1) - before
        gained[:, 2] += weight
        assert gained.abs().max() < 1e-14
        turned = (
            inertia_in_world(turn(STEP / 2 * after.spin) @ now.rotation, here.solids.inertia) @ after.spin[..., None]
        )
        ended = torch.linalg.cross(now.position, mass * after.velocity) + turned[..., 0]
        fall = torch.linalg.cross(now.position, -STEP * 9.81 * mass * torch.tensor([0.0, 0.0, 1.0]).double())
        # the mean spin is found by two rounds of a fixed point: what is left is of third order in the step
        assert (ended - fall - about).sum(1).abs().max() < 2e-6
        now = after
    assert impulses > 5, "they did meet"


def test_what_happens_does_not_depend_on_where_north_is() -> None:
    here, now = world(0.0, 8), meeting(height=0.06)
    heading = turn(torch.tensor([0.0, 0.0, 1.1], dtype=torch.float64))
    turned = Moving(now.position @ heading.T, heading @ now.rotation, now.velocity @ heading.T, now.spin @ heading.T)
    net = network()
    for _ in range(10):
        now, turned = net.advance(here, now)[0], net.advance(here, turned)[0]
    assert torch.allclose(turned.position, now.position @ heading.T, atol=1e-11)
    assert torch.allclose(turned.rotation, heading @ now.rotation, atol=1e-10)


def test_flight_is_a_parabola_and_keeps_the_angular_momentum() -> None:
    here = world(0.0)
    spin = torch.tensor([[[1.0, 6.0, 0.4], [0.2, -0.3, 5.0]]], dtype=torch.float64)
    start = Moving(
        torch.tensor([[[0.0, 0.0, 2.0], [1.0, 0.0, 2.0]]]).double(),
        torch.eye(3).double().expand(1, 2, 3, 3),
        torch.tensor([[[0.5, 0.0, 1.0], [0.0, 0.3, 0.0]]]).double(),
        spin,
    )
    now, _, _ = network().advance(here, start, half=True)
    for _ in range(39):
        now, found, _ = network().advance(here, now)
        assert not len(found)
    time = 40 * STEP
    fallen = start.position + time * start.velocity
    fallen[..., 2] -= 9.81 / 2 * time**2
    assert torch.allclose(now.position, fallen, atol=1e-12)
    middle = turn(-STEP / 2 * now.spin) @ now.rotation
    before = inertia_in_world(start.rotation, here.solids.inertia) @ start.spin[..., None]
    after = inertia_in_world(middle, here.solids.inertia) @ now.spin[..., None]
    assert torch.allclose(before, after, rtol=2e-3, atol=1e-7)


def test_gradients_lead_through_contact() -> None:
    here, now = world(0.0, 8), meeting(height=0.06)
    net = network()
    speed = now.velocity.clone().requires_grad_()

    def end(velocity: torch.Tensor) -> torch.Tensor:
        state = Moving(now.position, now.rotation, velocity, now.spin)
        for _ in range(3):
            state = net.advance(here, state)[0]
        return state.position.sum()

    (gradient,) = torch.autograd.grad(end(speed), speed)
    change = torch.randn(speed.shape, generator=torch.Generator().manual_seed(0)).double()
    step = 1e-7
    with torch.no_grad():
        difference = (end(now.velocity + step * change) - end(now.velocity - step * change)) / (2 * step)
    assert float((gradient * change).sum()) == pytest.approx(float(difference), rel=1e-3)


def test_turns_there_and_back() -> None:
    vector = torch.randn(200, 3, generator=torch.Generator().manual_seed(1)).double()
    vector = vector * (3.0 / vector.norm(dim=-1, keepdim=True)).clamp_max(1.0)  # less than half a circle
    assert torch.allclose(turned_by(turn(vector)), vector, atol=1e-9)
    still = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    turn(still).sum().backward()
    assert torch.isfinite(still.grad).all()


def test_the_order_in_which_bodies_are_named_changes_nothing() -> None:
    here, now = world(0.0, 12), meeting(12, height=0.06)
    net, crossed = network(), 0

    def swapped(moving: Moving) -> Moving:
        return Moving(*(getattr(moving, n).flip(1) for n in ("position", "rotation", "velocity", "spin")))

    other = replace(here, solids=solids_of([(OTHER, BOX)] * 12, dtype=torch.float64))
    then = swapped(now)
    for _ in range(10):
        (now, found, impulse), (then, _, _) = net.advance(here, now), net.advance(other, then)
        crossed += int((impulse.norm(dim=-1)[found.crossed] > 1e-6).sum())
    assert crossed > 3, "edges have met"
    assert torch.allclose(swapped(then).velocity, now.velocity, atol=1e-9)
    assert torch.allclose(swapped(then).position, now.position, atol=1e-10)


def test_no_blow_drives_bodies_deep_into_each_other() -> None:
    """Boxes that slide into each other at three metres a second; an untrained network hardly pushes."""
    here, rows = world(None, 24, gravity=0.0), 24
    rng = torch.Generator().manual_seed(2)
    yaw = torch.zeros(rows, 2, 3, dtype=torch.float64)
    yaw[..., 2] = 0.4 * (torch.rand(rows, 2, generator=rng) - 0.5)
    position = torch.zeros_like(yaw)
    position[:, 1, 0] = 0.12 + 0.02 * torch.rand(rows, generator=rng)
    velocity = torch.zeros_like(yaw)
    velocity[:, 0, 0] = 3.0
    now, net = Moving(position, turn(yaw), velocity, 0 * yaw), network()
    deep, touched = torch.zeros(0, dtype=torch.float64), 0
    for _ in range(8):
        now, found, impulse = net.advance(here, now)
        deep = torch.cat([deep, -found.gap.detach()])
        touched += int((impulse.norm(dim=-1) > 1e-6).sum())
    assert touched > rows
    assert deep.max() < 1.5 * DEEPEST
