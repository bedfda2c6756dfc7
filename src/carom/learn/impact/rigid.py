"""The third teacher: a rigid impact with restitution and friction. It is a formula, so nothing has to be distilled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy.special import ndtr

from carom.engines.contact_frames import SPEED_SCALE, Frames, shifted
from carom.engines.rigid import rigid_outcomes
from carom.learn.impact.features import seen_from_declared
from carom.learn.impact.members import Teacher, outcomes
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array

EDGE = 0.004  #: [rad] sd of the angle of a flat face against the side: within it, either end may meet the target first
LEAST_END = 0.001  #: [m] from the middle of a flat face to where its ends land, at least
#: What restitution is a share of: textbooks say either, and bodies lie between.
NEWTON = Parameter(
    "newton", "1", 0.0, 1.0, 0.5, False, "restitution: 0 of the impulses (Poisson), 1 of speeds (Newton)"
)
#: Where no mass of the striker is declared: an arm of 3 kg that strikes 0.3 kg gives way by a tenth.
YIELDS = Parameter("striker_yields", "1", 0.005, 0.3, 0.04, True, "target's mass over that of target and striker")
#: One end of a flat face strikes first. The other one has some way to go, and arrives only if the striker goes on.
FOLLOW = Parameter("follow_time", "s", 0.001, 0.1, 0.03, True, "how long a striker goes on after its first contact")


@dataclass(frozen=True)
class RigidTeacher:
    """Outcomes of rigid impacts, asked like a base model."""

    scene: StrikeScene
    teacher: str = "rigid"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        declared, striker = self.scene.parameters(self.teacher), self.scene.striker
        held = striker.mass is None and "striker_mass" not in {p.name for p in declared}
        return (*declared, NEWTON, *((YIELDS,) if held else ()), *((FOLLOW,) if striker.flat else ()))

    def outcome(self, frames: Frames, values: torch.Tensor) -> torch.Tensor:
        """Scaled outcomes in the contact frame [..., N, 3] of the declared centre of mass, for values [..., N, P]."""
        chances, ways = self.ways(frames, values)
        return (chances[..., None] * ways).sum(dim=0)

    def ways(self, frames: Frames, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """How a strike may come out [W, ..., N, 3], as `outcome` has it, and with which chance each [W, ..., N].

        A round striker has one way. Of a flat face either end may strike first, and the other one may follow.
        """
        shape, index = values.shape[:-1], {p.name: i for i, p in enumerate(self.parameters)}

        def rows(known: Array) -> Array:
            return np.asarray(np.broadcast_to(known, shape).ravel())

        def column(name: str, otherwise: float = 0.0) -> Array:
            given = values[..., index[name]] if name in index else values.new_tensor(otherwise)
            return rows(given.double().numpy())

        lever_t, lever_n, angle = (rows(c.double().numpy()) for c in shifted(frames, self.parameters, values))
        lever = np.stack([lever_t, lever_n], axis=-1)
        velocity = np.stack([rows(c) for c in frames.velocity.T], axis=-1)
        pace = np.maximum(velocity[:, 1], 0.01) / SPEED_SCALE
        heavy = self._striker_mass(column)
        strike = partial(
            rigid_outcomes,
            self.scene,
            lever,
            velocity,
            restitution=np.clip(column("restitution", 0.5) * pace ** -column("restitution_slope"), 0.0, 1.0),
            friction=column("striker_friction", 0.3),
            striker_mass=heavy,
            newton=column(NEWTON.name),
        )
        found = [(np.ones(len(lever)), strike())] if not self.scene.striker.flat else []
        for near, far in self._ends(frames, column, rows) if self.scene.striker.flat else ():
            turn = np.sign(near) * angle
            one, both = strike(face=(near,)), strike(face=(near, far))
            other = one[:, 1] + one[:, 2] / self.scene.gyration_radius * (lever[:, 0] + far)
            closing = velocity[:, 1] - self.scene.mass / heavy * one[:, 1] - other  # of the other end
            reach = column(FOLLOW.name, FOLLOW.default) * np.maximum(closing, 0.0) / np.abs(near - far)  # [rad]
            alone = ndtr((turn - reach) / EDGE)
            found += [(alone, one), (ndtr(turn / EDGE) - alone, both)]
        chances = torch.from_numpy(np.stack([chance for chance, _ in found]).reshape(-1, *shape))
        scaled = np.stack([change for _, change in found]).reshape(-1, *shape, 3) / frames.speed[:, None]
        seen = partial(seen_from_declared, self.scene, frames, self.parameters, values)
        return chances, torch.stack([seen(way) for way in torch.from_numpy(scaled)])

    def _striker_mass(self, column: Callable[..., Array]) -> Array:
        """Effective mass of the striker [R] [kg]."""
        if YIELDS.name not in {p.name for p in self.parameters}:
            return column("striker_mass", self.scene.striker_mass)
        share = np.maximum(column(YIELDS.name), YIELDS.low)
        return np.asarray(self.scene.mass * (1 - share) / share)

    def _ends(
        self, frames: Frames, column: Callable[..., Array], rows: Callable[[Array], Array]
    ) -> tuple[tuple[Array, Array], ...]:
        """Where the face lands along the side, from its middle [R] [m]: first ahead and then behind, or in turn.

        A face that stands out over a corner lands on that.
        """
        half = column("face_width", float(self.scene.striker.width or 0.0)) / 2
        room, _ = self.scene.outline.corners_around(frames.point)
        offset = column("face_offset")
        ahead = np.clip(rows(room[:, 0]) + offset, LEAST_END, np.maximum(half, LEAST_END))
        behind = np.clip(rows(room[:, 1]) - offset, LEAST_END, np.maximum(half, LEAST_END))
        return (ahead, -behind), (-behind, ahead)


def ways_of(teacher: Teacher, frames: Frames, values: Array) -> tuple[Array, Array]:
    """Chances [W, M, N] of the ways [W, M, N, 3] in which strikes may come out, for each member's parameters [M, P].

    Only the rigid impact knows several. Networks have learned the mean.
    """
    if not isinstance(teacher, RigidTeacher):
        said = outcomes(teacher, frames, values)[None]
        return np.ones(said.shape[:-1]), said
    chances, ways = teacher.ways(frames, torch.as_tensor(values)[:, None, :].expand(-1, len(frames), -1))
    return chances.numpy(), ways.numpy()
