"""The third teacher: a rigid impact with restitution and friction. It is a formula, so nothing has to be distilled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from carom.engines.contact_frames import SPEED_SCALE, Frames, shifted
from carom.engines.rigid import rigid_outcomes
from carom.learn.impact.features import seen_from_declared
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene

EDGE = 0.01  #: [rad] of a flat face against the side within which the contact moves from one edge to the other


@dataclass(frozen=True)
class RigidTeacher:
    """Outcomes of rigid impacts, asked like a base model."""

    scene: StrikeScene
    teacher: str = "rigid"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.scene.parameters(self.teacher)

    def outcome(self, frames: Frames, values: torch.Tensor) -> torch.Tensor:
        """Scaled outcomes in the contact frame [..., N, 3] of the declared centre of mass, for values [..., N, P]."""
        shape, index = values.shape[:-1], {p.name: i for i, p in enumerate(self.parameters)}

        def value(name: str, otherwise: float) -> torch.Tensor:
            return values[..., index[name]] if name in index else values.new_tensor(otherwise)

        lever_t, lever_n, angle = shifted(frames, self.parameters, values)
        if self.scene.striker.flat:  # rigid bodies meet at an edge of the face
            width = value("face_width", float(self.scene.striker.width or 0.0))
            lever_t = lever_t + torch.tanh(angle / EDGE) * width / 2
        columns = [
            np.broadcast_to(c.double().numpy(), shape).ravel()
            for c in (
                lever_t,
                lever_n,
                value("restitution", 0.5),
                value("restitution_slope", 0.0),
                value("striker_friction", 0.3),
                value("striker_mass", self.scene.striker_mass),
            )
        ]
        velocity = np.broadcast_to(frames.velocity, (*shape, 2)).reshape(-1, 2)
        pace = np.maximum(velocity[:, 1], 0.01) / SPEED_SCALE
        restitution = np.clip(columns[2] * pace ** -columns[3], 0.0, 1.0)
        change = rigid_outcomes(
            self.scene,
            np.stack(columns[:2], axis=-1),
            velocity,
            restitution=restitution,
            friction=columns[4],
            striker_mass=columns[5],
        )
        scaled = torch.from_numpy(change.reshape(*shape, 3) / frames.speed[:, None])
        return seen_from_declared(self.scene, frames, self.parameters, values, scaled)
