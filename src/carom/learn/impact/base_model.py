"""The base model `f(S_pre, P) -> S_post` of one teacher, and how it is kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from carom.engines.contact_frames import Frames, contact_frames, to_world
from carom.learn.impact.features import blow_scale, feature_names, features, mirror_signs, seen_from_declared
from carom.learn.impact.network import ImpactNetwork
from carom.learn.impact.ranges import Ranges, within_learned
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes


@dataclass(frozen=True)
class Preset:
    """How a base model is built and trained."""

    name: str
    contact_frame: bool  #: features and outcomes in the contact frame, scaled by speed, mirror symmetric
    width: int
    layers: int
    activation: str
    steps: int
    batch: int
    learning_rate: float
    weight_decay: float
    decay: bool  #: cosine decay of the learning rate


#: `paper` is section IV-A of CLASH; it doesn't give a batch size.
PRESETS = {
    "paper": Preset("paper", False, 128, 3, "relu", 1000, 4096, 1e-3, 0.01, False),
    "default": Preset("default", True, 128, 4, "silu", 6000, 1024, 3e-3, 1e-4, True),
}


@dataclass(frozen=True)
class BaseModel:
    """A network distilled from one teacher, frozen: outcomes for strikes and parameters, differentiable in both."""

    scene: StrikeScene
    teacher: str
    preset: Preset
    network: ImpactNetwork
    held_out: dict[str, float]  #: accuracy and error on simulated impacts that were not trained on
    curve: tuple[tuple[int, float, float], ...] = ()  #: (step, training loss, held-out loss)
    ranges: Ranges | None = None  #: that it has learned about; None: those of its scene

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.scene.parameters(self.teacher)

    def within(self, frames: Frames) -> Array:
        """1 where strikes are within what it has learned about [N], 0 elsewhere."""
        return within_learned(self.scene, frames) if self.ranges is None else self.ranges.within(self.scene, frames)

    def inputs(self, frames: Frames, values: torch.Tensor) -> torch.Tensor:
        """Network inputs [..., N, F] for parameters `values` [..., N, P] or [P]."""
        if values.ndim == 1:
            values = values.expand(len(frames), -1)
        if self.preset.contact_frame:
            return features(self.scene, self.teacher, frames, self.parameters, values).float()
        return plain_features(self.scene, frames, self.parameters, values).float()

    def of_mass_centre(self, frames: Frames, values: torch.Tensor) -> torch.Tensor:
        """Scaled outcomes of the actual centre of mass [..., N, 3], which is what the network learned."""
        y = self.network(self.inputs(frames, values))
        return y * self.scale(frames, values) if self.preset.contact_frame else plain_to_local(frames, y)

    def scale(self, frames: Frames, values: torch.Tensor) -> torch.Tensor:
        """What the network's outcomes are multiplied by [..., N, 1]."""
        if values.ndim == 1:
            values = values.expand(len(frames), -1)
        return blow_scale(self.scene, frames, self.parameters, values).float()

    def outcome(self, frames: Frames, values: torch.Tensor) -> torch.Tensor:
        """Scaled outcomes in the contact frame [..., N, 3], of the declared centre of mass as recordings have them."""
        if values.ndim == 1:
            values = values.expand(len(frames), -1)
        return seen_from_declared(self.scene, frames, self.parameters, values, self.of_mass_centre(frames, values))

    def predict(self, strikes: Strikes, values: Array) -> Array:
        """`S_post` in the world [..., N, 3] for parameters [P] or [..., N, P]."""
        frames = contact_frames(self.scene, strikes)
        with torch.no_grad():
            local = self.outcome(frames, torch.as_tensor(values)).double().numpy()
        return to_world(self.scene, frames, local)


def new_network(scene: StrikeScene, teacher: str, preset: Preset) -> ImpactNetwork:
    """An untrained network of the preset's form."""
    if preset.contact_frame:
        names = feature_names(scene, teacher)
        mirror: Sequence[float] | None = mirror_signs(names).tolist()
    else:
        names, mirror = plain_names(scene, scene.parameters(teacher)), None
    return ImpactNetwork(
        len(names), width=preset.width, layers=preset.layers, activation=preset.activation, mirror=mirror
    )


def plain_names(scene: StrikeScene, parameters: Sequence[Parameter]) -> tuple[str, ...]:
    state = ["point_x", "point_y", "velocity_x", "velocity_y"] + (["face_angle"] if scene.striker.flat else [])
    return (*state, *(p.name for p in parameters))


def plain_features(
    scene: StrikeScene, frames: Frames, parameters: Sequence[Parameter], values: torch.Tensor
) -> torch.Tensor:
    """The paper's inputs: impact point and velocity in the target's frame, and the parameters [..., N, F]."""
    velocity = np.einsum("nij,ni->nj", frames.axes_target, frames.velocity)
    state = [frames.point[:, 0], frames.point[:, 1], velocity[:, 0], velocity[:, 1]]
    state += [frames.angle] if scene.striker.flat else []
    columns = [torch.as_tensor(c, dtype=values.dtype).expand(values.shape[:-1]) for c in state]
    return torch.stack([*columns, *values.unbind(-1)], dim=-1)


def plain_targets(frames: Frames, local: Array) -> Array:
    """Scaled contact-frame outcomes as the paper's: velocities in the target's frame (vx, vy, k*wz) [N, 3] [m/s]."""
    change = local * frames.speed[:, None]
    linear = np.einsum("nij,ni->nj", frames.axes_target, change[:, :2])
    return np.concatenate([linear, change[:, 2:]], axis=-1)


def plain_to_local(frames: Frames, y: torch.Tensor) -> torch.Tensor:
    """The inverse of `plain_targets`, in torch [..., N, 3]."""
    axes = torch.as_tensor(frames.axes_target, dtype=y.dtype)
    linear = torch.einsum("nij,...nj->...ni", axes, y[..., :2])
    speed = torch.as_tensor(frames.speed, dtype=y.dtype)[:, None]
    return torch.cat([linear, y[..., 2:]], dim=-1) / speed
