"""The methods that `carom evaluate` sets side by side, each learning from the same few strikes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from carom.compare.baselines import Mean, Process, Ridge, Rigid, Scratch
from carom.core.errors import CaromError
from carom.engines.contact_frames import contact_frames, to_local
from carom.engines.mujoco.collide import FAILED, MISSED, Collider
from carom.identify.result import Identification
from carom.identify.strikes import gradient, search
from carom.identify.strikes.slides import SlideFriction
from carom.identify.strikes.surrogate import Outcomes
from carom.learn import adapt, fine_tune
from carom.learn.impact.adapted_model import ImpactModel, Prediction
from carom.learn.impact.base_model import BaseModel
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

#: MuJoCo's own defaults for a contact: friction 1, damping ratio 1.
MUJOCO_DEFAULT = {"striker_friction": 1.0, "ground_friction": 1.0, "striker_damping": 1.0, "ground_damping": 1.0}


@dataclass(frozen=True)
class Lesson:
    """What every method learns from."""

    scene: StrikeScene
    train: Impacts
    bases: Sequence[BaseModel]  #: Carom's default base models
    paper: BaseModel | None = None  #: the base model of the paper's recipe
    fixed: Mapping[str, float] = field(default_factory=dict)  #: identified otherwise, for instance ground friction
    seed: int = 0
    slides: SlideFriction | None = None  #: where they have been fitted already


@dataclass(frozen=True)
class InMujoco:
    """Predicts by running the strike in MuJoCo with these parameters."""

    scene: StrikeScene
    values: Array  #: [P] in the order of the scene's MuJoCo parameters

    def predict(self, strikes: Strikes) -> Prediction:
        run = Collider(self.scene, self.scene.parameters("mujoco")).run(
            strikes, np.tile(self.values, (len(strikes), 1))
        )
        lost = (run.status == FAILED) | (run.status == MISSED)
        post = np.where(lost[:, None], np.nan, run.post)
        return Prediction(post, np.full_like(post, np.nan), (~lost).astype(float))


def _mujoco_default(lesson: Lesson) -> ImpactModel:
    parameters = lesson.scene.parameters("mujoco")
    return InMujoco(lesson.scene, np.array([MUJOCO_DEFAULT.get(p.name, p.default) for p in parameters]))


def _in_mujoco(method: Callable[..., Identification]) -> Callable[[Lesson], ImpactModel]:
    def fit(lesson: Lesson) -> ImpactModel:
        found = method(lesson.scene, lesson.train, fixed=lesson.fixed, seed=lesson.seed)
        return InMujoco(lesson.scene, found.values(lesson.scene.parameters("mujoco")))

    return fit


@dataclass(frozen=True)
class InMjx:
    """Predicts with parameters identified by MJX gradients, on the simplified mesh that MJX can take."""

    scene: StrikeScene
    found: Identification

    def predict(self, strikes: Strikes) -> Prediction:
        from carom.identify.strikes import mjx

        post = mjx.predict(self.scene, self.found, strikes)
        return Prediction(post, np.full_like(post, np.nan), np.ones(len(post)))


def _mjx(lesson: Lesson) -> ImpactModel:
    from carom.identify.strikes import mjx

    return InMjx(lesson.scene, mjx.fit(lesson.scene, lesson.train, seed=lesson.seed))


def _clash_paper(lesson: Lesson) -> ImpactModel:
    if lesson.paper is None:
        raise CaromError("clash-paper needs a base model of the preset 'paper': carom distill SCENE --preset paper")
    frames = contact_frames(lesson.scene, lesson.train.strikes)
    local = to_local(lesson.scene, frames, lesson.train.post)
    outcomes = Outcomes(frames, local, frames.speed)
    found = gradient.descend(lesson.paper, outcomes, preset="paper", fixed=lesson.fixed, seed=lesson.seed)
    return fine_tune(lesson.paper, lesson.train, found.values(lesson.paper.parameters))


def _carom(lesson: Lesson) -> ImpactModel:
    return adapt(lesson.bases, lesson.train, fixed=lesson.fixed, seed=lesson.seed)


def _one_teacher(teacher: str) -> Callable[[Lesson], ImpactModel]:
    def fit(lesson: Lesson) -> ImpactModel:
        own = [b for b in lesson.bases if b.teacher == teacher]
        if not own:
            raise CaromError(f"no base model of the teacher '{teacher}'; distil with --teacher {teacher} or both")
        return adapt(own, lesson.train, fixed=lesson.fixed, seed=lesson.seed)

    return fit


@dataclass(frozen=True)
class Method:
    """One way to learn from a few strikes, and what it is in a line: tables, reports and docs say it in these words."""

    words: str
    learn: Callable[[Lesson], ImpactModel]


METHODS: Mapping[str, Method] = {
    "mujoco-default": Method("MuJoCo with its default contact; nothing is learned", _mujoco_default),
    "mujoco-grid": Method("MuJoCo, its contact parameters found by a grid search", _in_mujoco(search.grid)),
    "mujoco-cma": Method("MuJoCo, its contact parameters found by an evolution strategy", _in_mujoco(search.cma)),
    "mjx": Method("MuJoCo in JAX, its parameters found by gradients through the simulation", _mjx),
    "scratch": Method(
        "a neural network that knows only the recorded strikes",
        lambda lesson: Scratch(lesson.scene, lesson.train, seed=lesson.seed),
    ),
    "mean": Method(
        "the mean of the recorded outcomes, scaled by the approach speed",
        lambda lesson: Mean(lesson.scene, lesson.train),
    ),
    "ridge": Method(
        "a straight line through the recorded outcomes",
        lambda lesson: Ridge(lesson.scene, lesson.train, seed=lesson.seed),
    ),
    "gp": Method(
        "a smooth function of the recorded strikes alone (Gaussian process)",
        lambda lesson: Process(lesson.scene, lesson.train, seed=lesson.seed),
    ),
    "rigid": Method(
        "the textbook's rigid impact, its restitution and friction fitted",
        lambda lesson: Rigid(lesson.scene, lesson.train, seed=lesson.seed),
    ),
    "clash-paper": Method("CLASH's recipe: a network trained in simulation, fine-tuned on the strikes", _clash_paper),
    "carom": Method("Carom: simulated impacts, corrected with the recorded strikes", _carom),
}
#: The trivial predictor, the simplest statistics and the simplest physics: cheap enough for every comparison.
SIMPLE = ("mean", "ridge", "gp", "rigid")
#: Carom's correction with one teacher only: what the second teacher is worth.
ABLATIONS: Mapping[str, Method] = {
    "carom-mujoco-only": Method("Carom, taught by MuJoCo's impacts only", _one_teacher("mujoco")),
    "carom-analytic-only": Method("Carom, taught by an analytic compliant impact only", _one_teacher("compliant")),
}


def method_words(name: str) -> str:
    """What a method is, in a line."""
    return {**METHODS, **ABLATIONS}[name].words
