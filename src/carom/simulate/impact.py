"""A learned impact as an engine needs it: the velocity at the instant of contact, checked, with what lies outside named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from carom.adapt.model import ImpactModel
from carom.distill.frames import contact_frames
from carom.scenes.strike import StrikeScene
from carom.simulate.guard import guard
from carom.simulate.slider import Slider
from carom.simulate.student import Student
from carom.state import Array, Strikes


@dataclass(frozen=True)
class LearnedImpact:
    """An impact model with what the recordings say about when its outcomes hold. It is an `Answer`."""

    scene: StrikeScene
    model: ImpactModel
    slider: Slider
    delay: float = 0.0  #: [s] after contact at which the model's outcomes were read: the ground has braked since
    lag: float = 0.0  #: [s] by which a target starts later than an instant impact would have it

    def outcome(self, strikes: Strikes) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
        """Velocities at contact [N, 3], whether they are within what was learned [N], whether they were guarded [N]."""
        frames = contact_frames(self.scene, strikes)
        said = self.model.predict_in(frames) if isinstance(self.model, Student) else self.model.predict(strikes)
        known = (said.known > 0) & np.isfinite(said.post).all(axis=1)
        post = np.where(known[:, None], said.post, strikes.target_velocity)
        checked = guard(self.scene, strikes, frames, self.at_contact(post, strikes.target_pose[:, 2]))
        return checked.post, known, checked.corrected & known

    def at_contact(self, post: Array, yaw: Array) -> Array:
        """Velocities [N, 3] at contact that the ground has braked to `post` [N, 3] after `delay`."""
        if not self.delay:
            return post
        with torch.no_grad():
            velocity = torch.as_tensor(post)
            grip = velocity.new_full((len(post),), self.slider.friction * self.slider.gravity)
            brake = self.slider.acceleration(torch.as_tensor(yaw), velocity, grip)
            return (velocity - self.delay * brake).numpy()
