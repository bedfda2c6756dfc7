"""What recordings say about everything but the blow itself: how the target slides, and when its motion begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.adapt.model import ImpactModel
from carom.identify.slides import SlideFriction, friction_from_slides
from carom.recordings import Recordings
from carom.recordings.impact import Impact
from carom.recordings.strikes import first_strike
from carom.scenes.strike import StrikeScene
from carom.simulate.impact import LearnedImpact
from carom.simulate.slider import slider_for
from carom.state import Array

PRIOR_SIZE = 0.3  #: how far, relatively, the weight may rest further out or in than evenly: standard deviation
SIZES = (0.3, 2.0)  #: of the patch, relative to an even pressure under the outline
MOST_LAG = 0.05  #: [s]


@dataclass(frozen=True)
class Sliding:
    """How a target slides and starts, from recordings."""

    friction: float  #: with the ground [1]
    size: float  #: of the pressure patch, relative to an even pressure under the outline [1]
    delay: float  #: after first motion, where outcomes were read [s]
    lag: float  #: by which targets start later than an instant impact would have it [s]


def sliding_from(
    recordings: Recordings, scene: StrikeScene, *, settle: float | None = None, slides: SlideFriction | None = None
) -> Sliding:
    """Friction and patch from the recorded slides, delay and lag from the recorded strikes."""
    slides = slides or friction_from_slides(recordings)
    size = patch_size(slides)
    strikes = [s for s, _ in (first_strike(t, settle=settle) for t in recordings.trajectories) if s is not None]
    delay = float(np.median([s.settle for s in strikes] or [0.0]))
    sliding = Sliding(slides.friction, size, delay, 0.0)
    late = [_lateness(s, impact_of(sliding, scene, None)) for s in strikes]
    lag = float(np.clip(np.nanmedian(late), -MOST_LAG, MOST_LAG)) if np.isfinite(late).any() else 0.0
    return Sliding(slides.friction, size, delay, lag)


def patch_size(slides: SlideFriction) -> float:
    """The patch's size from torsional friction, drawn towards an even pressure as far as its own error is large."""
    found = slides.torsion_length / slides.patch_length
    error = slides.torsion_std / slides.patch_length
    if not (np.isfinite(found) and np.isfinite(error)):
        return 1.0
    weight = PRIOR_SIZE**2 / (PRIOR_SIZE**2 + error**2)
    return float(np.clip(1 + weight * (found - 1), *SIZES))


def impact_of(sliding: Sliding, scene: StrikeScene, model: ImpactModel | None) -> LearnedImpact:
    """An impact model with this sliding, as an engine needs it."""
    slider = slider_for(scene, sliding.friction, size=sliding.size)
    return LearnedImpact(scene, model, slider, sliding.delay, sliding.lag)  # type: ignore[arg-type]


def _lateness(strike: Impact, impact: LearnedImpact) -> float:
    """How much later [s] a target is where an instant impact would have it, seen at the end of `settle`."""
    post = strike.post.planar_velocity
    com = np.asarray(impact.scene.target.planar_com)

    def centre(pose: Array) -> Array:
        c, s = np.cos(pose[2]), np.sin(pose[2])
        return np.array([pose[0] + c * com[0] - s * com[1], pose[1] + s * com[0] + c * com[1]])

    if not np.isfinite(post).all() or np.linalg.norm(post[:2]) < 0.02:
        return float("nan")
    start = impact.at_contact(post[None], np.array([strike.pre.yaw]))[0]
    mean = (start + post)[:2] / 2
    moved = centre(strike.post.planar_pose) - centre(strike.pre.planar_pose)
    return float(strike.settle - moved @ mean / (mean @ mean))
