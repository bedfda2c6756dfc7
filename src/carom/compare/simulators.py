"""The simulators that planning and whole motions are compared on, each learned from the same few strikes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.compare.baselines import Scratch
from carom.compare.methods import Lesson
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.hybrid.learned_impact import LearnedImpact
from carom.hybrid.model import learn_motion
from carom.hybrid.simulator import HybridSimulator
from carom.identify.strikes import search
from carom.identify.strikes.sliding import sliding_from
from carom.learn.impact.adapted_model import Prediction
from carom.learn.impact.student import teach
from carom.recordings import Recordings
from carom.scenes.strike import StrikeScene
from carom.state import Strikes


def mujoco_simulator(lesson: Lesson, *, threads: int = 0) -> MujocoSimulator:
    """Calibrated MuJoCo: contact parameters by CMA-ES on the strikes, ground friction from the slides."""
    found = search.cma(lesson.scene, lesson.train, fixed=lesson.fixed, seed=lesson.seed)
    names = lesson.scene.parameters("mujoco")
    values = dict(zip((p.name for p in names), found.values(names), strict=True))
    return MujocoSimulator(lesson.scene, values, threads=threads)


def hybrid_simulator(lesson: Lesson, recordings: Recordings, *, threads: int = 0) -> HybridSimulator:
    """Carom's hybrid, asked directly: the corrected model itself, without its student."""
    impact, sliding = learn_motion(
        lesson.bases, lesson.train, recordings, fixed=lesson.fixed, slides=lesson.slides, seed=lesson.seed
    )
    learned = LearnedImpact(lesson.scene, impact, sliding.slider(lesson.scene), sliding.lag)
    return HybridSimulator(learned, lesson.fixed, threads=threads)


def scratch_simulator(lesson: Lesson, recordings: Recordings, *, threads: int = 0) -> HybridSimulator:
    """The hybrid without pre-training: its impact network has seen the few strikes only, its sliding is the same."""
    sliding, departures = sliding_from(recordings, lesson.scene, slides=lesson.slides)
    network = _WithScene(lesson.scene, Scratch(lesson.scene, departures.applied_to(lesson.train), seed=lesson.seed))
    student = teach(network, posture=lesson.train.strikes.posture.mean(axis=0), seed=lesson.seed)
    learned = LearnedImpact(lesson.scene, student, sliding.slider(lesson.scene), sliding.lag)
    return HybridSimulator(learned, lesson.fixed, threads=threads)


@dataclass(frozen=True)
class _WithScene:
    """A baseline as a model that knows its scene."""

    scene: StrikeScene
    model: Scratch

    def predict(self, strikes: Strikes) -> Prediction:
        said = self.model.predict(strikes)
        return Prediction(said.post, np.full_like(said.post, np.nan), said.known)
