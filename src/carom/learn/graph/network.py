"""The default network: every candidate gives an impulse at its point, equal and opposite on its two bodies.

Layers are unrolled steps of one solver: each sees how the points move after the impulses so far. Coefficients are
functions of invariants (gaps, speeds along and across the normal, effective masses, parameters), so nothing depends on
where north is; vectors are put together from the normal and the slip alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, final

import torch
from torch import nn

from carom.learn.graph.candidates import NEAR, Candidates, candidates
from carom.learn.graph.conditions import CONDITIONS
from carom.learn.graph.dynamics import Advanced, GraphNetwork, Moving, World, inertia_in_world, mean_spin
from carom.learn.graph.pairs import Bodies, Pairs, length, split
from carom.learn.graph.turning import turn

FLAT = 0.03  #: [rad] a face that leans less lies flat: a soft cover, a glued label or a burr decides what rubs
DEEPEST, EASED = 0.0025, 0.1  #: [m] that bodies may sink in; how much of what is more is undone in a step
ROUNDS = 10  #: in which a blow is stopped that the layers let go too deep
FASTEST = 0.9  #: [m/s] at which a layer pushes bodies apart
SPEED = 0.3  #: [m/s] that speeds are measured in
INPUTS = 15 + len(CONDITIONS)  #: invariants of a candidate


@dataclass(frozen=True)
class Sizes:
    """How large the network is."""

    hidden: int = 96
    memory: int = 24
    layers: int = 4


@final
class ImpulseNetwork(GraphNetwork):
    """Impulses [C, 3] of candidates [N s]; free motion is closed form."""

    preset = "default"

    def __init__(self, sizes: Sizes = Sizes()) -> None:  # noqa: B008 - frozen
        super().__init__()
        self.sizes = sizes
        width = INPUTS + 3 * sizes.memory + sizes.layers
        self.net = nn.Sequential(
            nn.Linear(width, sizes.hidden),
            nn.SiLU(),
            nn.Linear(sizes.hidden, sizes.hidden),
            nn.SiLU(),
            nn.Linear(sizes.hidden, sizes.memory + 4),
        )
        last = self.net[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(0.1)
            last.bias.zero_()
            last.bias[2] = -0.5

    def settings(self) -> dict[str, Any]:
        """What it takes to make this network again, weights apart."""
        return asdict(self.sizes)

    def advance(self, world: World, now: Moving, *, half: bool = False) -> Advanced:
        """See `GraphNetwork`."""
        step, solids = world.step, world.solids
        middle = now.rotation if half else turn(-step / 2 * now.spin) @ now.rotation
        momentum = torch.einsum("nbij,nbj->nbi", inertia_in_world(middle, solids.inertia), now.spin)
        falling = now.velocity.clone()
        falling[..., 2] = falling[..., 2] - step * world.gravity[:, None]
        here = inertia_in_world(now.rotation, solids.inertia)
        spin = torch.linalg.solve(here, momentum)
        with torch.no_grad():
            reach = step * (falling.norm(dim=-1) + spin.norm(dim=-1) * solids.reach)
        found = candidates(solids, now.position, now.rotation, world.ground, reach)
        impulse = found.point.new_zeros(0, 3)
        after, angular = falling, momentum
        if len(found):
            bodies = Bodies(1 / solids.mass.flatten(), torch.linalg.inv(here.flatten(0, 1)), now.position.flatten(0, 1))
            row = torch.div(found.second, now.position.shape[1], rounding_mode="floor")
            told = (world.conditions[row], None if world.nudge is None else world.nudge[row])
            impulse, after, pushed = self(found, bodies, falling.flatten(0, 1), spin.flatten(0, 1), told, step)
            after = after.reshape(falling.shape)
            angular = momentum + torch.einsum("nbij,nbj->nbi", here, pushed.reshape(spin.shape) - spin)
        if half:
            after, angular = (now.velocity + after) / 2, (momentum + angular) / 2
        turning = mean_spin(now.rotation, solids.inertia, angular, step)
        moved = Moving(now.position + step * after, turn(step * turning) @ now.rotation, after, turning)
        return Advanced(moved, found, impulse)

    def forward(
        self,
        found: Candidates,
        bodies: Bodies,
        velocity: torch.Tensor,
        spin: torch.Tensor,
        told: tuple[torch.Tensor, torch.Tensor | None],
        step: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Impulses [C, 3], and the bodies' velocities and spins [M, 3] after them, from those before.

        `told` are the candidates' conditions [C, K] and nudges [C, 4].
        """
        conditions, nudge = told
        pair = Pairs(found, bodies, velocity, spin, step)
        total = torch.zeros_like(found.point)
        memory = found.gap.new_zeros(len(found), self.sizes.memory)
        pooled = velocity.new_zeros(len(velocity), self.sizes.memory)
        count = pair.pool(torch.ones_like(found.gap)[:, None])[:, 0]
        free = pair.relative(velocity, spin)
        for layer in range(self.sizes.layers):
            inputs = self._inputs(pair, free, total, pair.relative(velocity, spin), conditions, step, count)
            which = found.gap.new_zeros(len(found), self.sizes.layers)
            which[:, layer] = 1.0
            out = self.net(torch.cat([inputs, memory, *pair.both(pooled), which], dim=-1))
            memory = torch.tanh(out[:, 4:])
            pooled = pair.pool(memory)
            coefficients = out[:, :4] if nudge is None else out[:, :4] + nudge
            change = self._impulse(pair, coefficients, total, pair.relative(velocity, spin), conditions, step)
            total = total + change
            velocity, spin = pair.apply(change, velocity, spin)
        return self._kept_apart(pair, total, velocity, spin, step)

    def _kept_apart(
        self, pair: Pairs, total: torch.Tensor, velocity: torch.Tensor, spin: torch.Tensor, step: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What layers leave of a blow that would drive two bodies deeper than `DEEPEST` into each other is stopped."""
        least, normal = _least(pair, step), pair.found.normal
        for _ in range(ROUNDS if bool((~pair.grounded).any()) else 0):
            along, _across = split(pair.relative(velocity, spin), normal)
            missing = torch.where(pair.grounded, torch.zeros_like(along), pair.mass_held * (least - along)).clamp_min(0)
            if not bool((missing > 0).any()):
                break
            change = missing[:, None] * normal
            total = total + change
            velocity, spin = pair.apply(change, velocity, spin)
        return total, velocity, spin

    def _inputs(
        self,
        pair: Pairs,
        free: torch.Tensor,
        total: torch.Tensor,
        now: torch.Tensor,
        conditions: torch.Tensor,
        step: float,
        count: torch.Tensor,
    ) -> torch.Tensor:
        found = pair.found
        along, across = split(now, found.normal)
        before, slip_before = split(free, found.normal)
        pressed, rubbed = split(total, found.normal)
        slip, slipped, rub = length(across), length(slip_before), length(rubbed)
        columns = [
            _bounded(found.gap),
            _bounded(found.gap + step * along),
            _bounded(found.gap + step * before),
            torch.asinh(along / (0.2 * SPEED)),
            torch.asinh(before / (0.2 * SPEED)),
            torch.asinh(slip / (0.2 * SPEED)),
            torch.asinh(slipped / (0.2 * SPEED)),
            torch.asinh(pressed / pair.mass / (0.2 * SPEED)),
            torch.asinh(rub / pair.mass_across / (0.2 * SPEED)),
            torch.log(pair.mass_across / pair.mass),
            torch.log(pair.share),
            *pair.ordered(_tilt(found.flat_first), _tilt(found.flat_second)),
            pair.both(torch.log(count.clamp_min(1.0))[:, None])[1][:, 0],
            (found.first < 0).to(found.gap.dtype),
        ]
        return torch.cat([torch.stack(columns, dim=-1), conditions], dim=-1)

    def _impulse(
        self,
        pair: Pairs,
        out: torch.Tensor,
        total: torch.Tensor,
        now: torch.Tensor,
        conditions: torch.Tensor,
        step: float,
    ) -> torch.Tensor:
        """What a layer adds: it stops part of the approach, pushes apart, and rubs within the friction cone.

        Bodies that lie deeper in each other than `DEEPEST` come apart slowly, and none strikes another so that it lies
        deeper in it after the step, whatever the network says.
        """
        normal = pair.found.normal
        along, across = split(now, normal)
        pressed, rubbed = split(total, normal)
        stopped, pushed = 2 * torch.sigmoid(out[:, 0]), FASTEST * torch.tanh(out[:, 1])
        press = torch.relu(pressed + pair.mass * pair.window * (-stopped * along + pushed))
        least = _least(pair, step)
        held = (least > 0) | ~pair.grounded
        press = torch.where(held, torch.maximum(press, pressed + pair.mass * (least - along)), press)
        rub = rubbed - (pair.mass_across * pair.window * torch.sigmoid(out[:, 2]))[:, None] * across
        edge, face = conditions[:, 0], conditions[:, 1]
        limit = (edge + (face - edge) * torch.sigmoid(out[:, 3])) * press
        rub = rub * (limit / length(rub).clamp_min(1e-12)).clamp_max(1.0)[:, None]
        return press[:, None] * normal + rub - total


def _least(pair: Pairs, step: float) -> torch.Tensor:
    """Speed [C] that points part with at least: to be no deeper than `DEEPEST` after the step, or to come out."""
    room = DEEPEST + pair.found.gap
    return torch.where(room < 0, -EASED * room, -room) / step


def _bounded(gap: torch.Tensor) -> torch.Tensor:
    """A distance over `NEAR`; what is far inside or outside looks alike."""
    return (gap / NEAR).clamp(-1.5, 3.0)


def _tilt(flat: torch.Tensor) -> torch.Tensor:
    """How far a face leans, from the cosine of its angle: 0 flat, about 0.2 from `FLAT` on, 2 for a corner ahead."""
    return torch.log1p((1 - flat).clamp_min(0.0) / (FLAT**2 / 2)) / 3
