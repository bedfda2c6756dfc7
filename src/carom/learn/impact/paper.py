"""The paper's own correction: identify by gradient, then ten small steps on the network (CLASH, section III-C)."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch

from carom.engines.contact_frames import contact_frames, to_local
from carom.learn.impact.adapted_model import Prediction, check_usable
from carom.learn.impact.base_model import BaseModel
from carom.learn.impact.ranges import within_learned
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

STEPS = 10  #: fine-tuning iterations of the paper
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 0.01


@dataclass(frozen=True)
class TunedModel:
    """A base model with fixed parameters, its network fine-tuned on real impacts."""

    base: BaseModel
    values: Array  #: [P] identified parameters

    @property
    def scene(self) -> StrikeScene:
        return self.base.scene

    def predict(self, strikes: Strikes) -> Prediction:
        """Outcomes of strikes; this method states no uncertainty."""
        frames = contact_frames(self.base.scene, strikes)
        post = self.base.predict(strikes, self.values)
        return Prediction(post, np.full_like(post, np.nan), within_learned(self.base.scene, frames))


def fine_tune(base: BaseModel, impacts: Impacts, values: Array, *, steps: int = STEPS) -> TunedModel:
    """Fine-tune a copy of the base model's network with the parameters fixed (AdamW, as section IV-A)."""
    scene = check_usable([base], impacts)
    frames = contact_frames(scene, impacts.strikes)
    scale = torch.as_tensor(frames.speed)[:, None]
    target = torch.as_tensor(to_local(scene, frames, impacts.post)) * scale
    network = copy.deepcopy(base.network)
    for p in network.parameters():
        p.requires_grad_(True)
    tuned = BaseModel(scene, base.teacher, base.preset, network, base.held_out, base.curve)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    inputs = torch.as_tensor(values)
    for _ in range(steps):
        loss = ((tuned.outcome(frames, inputs) * scale - target) ** 2).sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    for p in network.parameters():
        p.requires_grad_(False)
    return TunedModel(tuned, np.asarray(values, dtype=float))
