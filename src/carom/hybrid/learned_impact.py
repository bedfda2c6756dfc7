"""A learned impact as an engine needs it: velocities at contact, checked, and what lies outside named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carom.engines.contact_frames import contact_frames
from carom.engines.slider import Slider
from carom.hybrid.guard import absurd, guard
from carom.learn.impact.adapted_model import ImpactModel
from carom.learn.impact.student import Perturbed, Student
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes


@dataclass(frozen=True)
class LearnedImpact:
    """An impact model, the sliding that follows, and when that begins. It is an `Answer`.

    The model's outcomes are velocities at contact, as `calibrate.sliding_from` gives them.
    """

    scene: StrikeScene
    model: ImpactModel
    slider: Slider
    lag: float = 0.0  #: [s] by which a target starts later than an instant impact would have it

    def outcome(self, strikes: Strikes) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
        """Velocities at contact [N, 3], whether they are within what was learned [N], whether they were guarded [N]."""
        frames = contact_frames(self.scene, strikes)
        if isinstance(self.model, Student | Perturbed):
            said = self.model.predict_in(frames)
        else:
            said = self.model.predict(strikes)
        known = (said.known > 0) & ~absurd(self.scene, strikes, frames, said.post)
        post = np.where(known[:, None], said.post, strikes.target_velocity)
        checked = guard(self.scene, strikes, frames, post)
        return checked.post, known, checked.corrected & known
