"""The third teacher: a rigid impact with restitution and friction. It is a formula, so nothing has to be distilled."""

from __future__ import annotations

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
#: One end of a flat face strikes first. The other one has some way to go, and arrives only if the striker goes on.
FOLLOW = Parameter("follow_time", "s", 0.001, 0.1, 0.03, True, "how long a striker goes on after its first contact")


@dataclass(frozen=True)
class RigidTeacher:
    """Outcomes of rigid impacts, asked like a base model."""

    scene: StrikeScene
    teacher: str = "rigid"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.scene.parameters(self.teacher) + ((FOLLOW,) if self.scene.striker.flat else ())

    def outcome(self, frames: Frames, values: torch.Tensor) -> torch.Tensor:
        """Scaled outcomes in the contact frame [..., N, 3] of the declared centre of mass, for values [..., N, P]."""
        chances, ways = self.ways(frames, values)
        return (chances[..., None] * ways).sum(dim=0)

    def ways(self, frames: Frames, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """How a strike may come out [W, ..., N, 3], as `outcome` has it, and with which chance each [W, ..., N].

        A round striker has one way. Of a flat face either end may strike first, and the other one may follow.
        """
        shape, index = values.shape[:-1], {p.name: i for i, p in enumerate(self.parameters)}
        lever_t, lever_n, angle = shifted(frames, self.parameters, values)

        def column(name: str, otherwise: float) -> Array:
            given = values[..., index[name]] if name in index else values.new_tensor(otherwise)
            return np.asarray(np.broadcast_to(given.double().numpy(), shape).ravel())

        lever = np.stack([np.broadcast_to(c.double().numpy(), shape).ravel() for c in (lever_t, lever_n)], axis=-1)
        velocity = np.broadcast_to(frames.velocity, (*shape, 2)).reshape(-1, 2)
        pace = np.maximum(velocity[:, 1], 0.01) / SPEED_SCALE
        heavy = column("striker_mass", self.scene.striker_mass)
        strike = partial(
            rigid_outcomes,
            self.scene,
            lever,
            velocity,
            restitution=np.clip(column("restitution", 0.5) * pace ** -column("restitution_slope", 0.0), 0.0, 1.0),
            friction=column("striker_friction", 0.3),
            striker_mass=heavy,
        )
        found = [(np.ones(len(lever)), strike())] if not self.scene.striker.flat else []
        for end in (1, -1) if self.scene.striker.flat else ():
            half = column("face_width", float(self.scene.striker.width or 0.0)) / 2
            turn = end * np.broadcast_to(angle.double().numpy(), shape).ravel()
            one, both = strike(face=end * half, blows=1), strike(face=end * half)
            other = one[:, 1] + one[:, 2] / self.scene.gyration_radius * (lever[:, 0] - end * half)
            closing = velocity[:, 1] - self.scene.mass / heavy * one[:, 1] - other  # of the other end
            reach = column(FOLLOW.name, FOLLOW.default) * np.maximum(closing, 0.0) / (2 * half)  # [rad]
            alone = ndtr((turn - reach) / EDGE)
            found += [(alone, one), (ndtr(turn / EDGE) - alone, both)]
        chances = torch.from_numpy(np.stack([chance for chance, _ in found]).reshape(-1, *shape))
        scaled = np.stack([change for _, change in found]).reshape(-1, *shape, 3) / frames.speed[:, None]
        seen = partial(seen_from_declared, self.scene, frames, self.parameters, values)
        return chances, torch.stack([seen(way) for way in torch.from_numpy(scaled)])


def ways_of(teacher: Teacher, frames: Frames, values: Array) -> tuple[Array, Array]:
    """Chances [W, M, N] of the ways [W, M, N, 3] in which strikes may come out, for each member's parameters [M, P].

    Only the rigid impact knows several. Networks have learned the mean.
    """
    if not isinstance(teacher, RigidTeacher):
        said = outcomes(teacher, frames, values)[None]
        return np.ones(said.shape[:-1]), said
    chances, ways = teacher.ways(frames, torch.as_tensor(values)[:, None, :].expand(-1, len(frames), -1))
    return chances.numpy(), ways.numpy()
