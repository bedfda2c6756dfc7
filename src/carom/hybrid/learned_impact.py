"""A learned impact as an engine needs it: velocities at contact, checked, and what lies outside named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carom.engines.contact_frames import contact_frames
from carom.engines.slider import Slider
from carom.hybrid.guard import absurd, guard
from carom.learn.impact.adapted_model import ImpactModel
from carom.learn.impact.ranges import within_learned
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

    def outcome(self, strikes: Strikes, *, touch: bool = False) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
        """Velocities at contact [N, 3], whether they are within what was learned [N], whether they were guarded [N].

        `touch`: strikers touch their targets as they are, and need not be moved there.
        """
        frames = contact_frames(self.scene, strikes, touch=touch)
        if isinstance(self.model, Student | Perturbed):
            said, within = self.model.post_in(frames), within_learned(self.scene, frames)
        else:
            prediction = self.model.predict(strikes)
            said, within = prediction.post, prediction.known
        known = (within > 0) & ~absurd(self.scene, strikes, frames, said)
        post = np.where(known[:, None], said, strikes.target_velocity)
        checked = guard(self.scene, strikes, frames, post)
        return checked.post, known, checked.corrected & known
