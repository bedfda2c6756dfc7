"""One small network in place of a whole corrected model: for the thousands of impacts a planner or a policy asks for.

The corrected model weighs hundreds of members for each prediction. Its outcomes over the scene's ranges are a smooth
function of five or six numbers, and a small network learns it in seconds. How well is measured on strikes that were
not trained on, and kept with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.core.progress import Steps
from carom.engines.contact_frames import SPEED_SCALE, Frames, contact_frames, to_local, to_world
from carom.learn.impact.adapted_model import Prediction
from carom.learn.impact.base_model import Preset
from carom.learn.impact.network import Answers, ImpactNetwork, answers_of
from carom.learn.impact.ranges import within_learned
from carom.learn.impact.sample import sample_strikes
from carom.learn.impact.training import Examples, fit_network
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

SAMPLES = 2560  #: strikes that the teacher is asked about
HELD_OUT = 512  #: of them kept for measuring
SMALL = Preset("student", True, 64, 3, "silu", 2000, 512, 1e-2, 1e-5, True)
SPREAD_STEPS = 800  #: of the training of the spread: a tenth of it more or less matters to nobody
RANGE = 0.1  #: by which the student's strikes go beyond the scene's ranges, so that planning at a bound is no edge
NOISE_FLOOR = 1e-3  #: standard deviation, as a share of the approach speed, below which it counts as none


class SceneModel(Protocol):
    """An impact model that knows its scene."""

    @property
    def scene(self) -> StrikeScene: ...

    def predict(self, strikes: Strikes) -> Prediction: ...


@dataclass(frozen=True)
class Student:
    """A small network that answers as its teacher does, with its spread; differentiable. It is an `ImpactModel`."""

    scene: StrikeScene
    network: ImpactNetwork  #: inputs to (t, n, k*spin) over the approach speed
    spread: ImpactNetwork | None  #: inputs to the logarithm of their standard deviations; None: the teacher states none
    fidelity: dict[str, float]  #: relative difference from the teacher on strikes that were not trained on

    def predict(self, strikes: Strikes) -> Prediction:
        """Outcomes of strikes, with their uncertainty; see `ImpactModel`."""
        return self.predict_in(contact_frames(self.scene, strikes))

    def predict_in(self, frames: Frames) -> Prediction:
        """Outcomes of strikes whose contact frames are known."""
        x = student_inputs(self.scene, frames)
        post = to_world(self.scene, frames, self._mean(x))
        return Prediction(post, self._stds(frames, x), within_learned(self.scene, frames))

    def post_in(self, frames: Frames) -> Array:
        """Velocities after the impact [N, 3] alone."""
        return to_world(self.scene, frames, self._mean(student_inputs(self.scene, frames)))

    @cached_property
    def _mean(self) -> Answers:
        return answers_of(self.network)

    @cached_property
    def _spread(self) -> Answers | None:
        return None if self.spread is None else answers_of(self.spread)

    def _stds(self, frames: Frames, x: NDArray[np.float32]) -> Array:
        """Standard deviations of vx, vy, wz [N, 3]."""
        if self._spread is None:
            return np.zeros((len(frames), 3))
        share = np.exp(self._spread(x)) * frames.speed[:, None]
        return np.column_stack([share[:, 0], share[:, 0], share[:, 2] / self.scene.gyration_radius])

    def local(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation [N, 3] of (t, n, k*spin) over the approach speed, for inputs [N, F]."""
        mean = self.network(x)
        if self.spread is None:
            return mean, torch.zeros_like(mean)
        return mean, torch.exp(self.spread(x))


@dataclass(frozen=True)
class Perturbed:
    """A student whose outcomes are off by `shift` standard deviations along t, n and spin. It is an `ImpactModel`."""

    student: Student
    shift: Array  #: [3]

    @property
    def scene(self) -> StrikeScene:
        return self.student.scene

    def predict(self, strikes: Strikes) -> Prediction:
        """See `ImpactModel`."""
        return self.predict_in(contact_frames(self.scene, strikes))

    def predict_in(self, frames: Frames) -> Prediction:
        """Outcomes of strikes whose contact frames are known."""
        said = self.student.predict_in(frames)
        linear = np.einsum("nai,a->ni", frames.axes, self.shift[:2]) * said.post_std[:, :1]
        post = said.post + np.column_stack([linear, self.shift[2] * said.post_std[:, 2]])
        return Prediction(post, said.post_std, said.known)

    def post_in(self, frames: Frames) -> Array:
        """Velocities after the impact [N, 3] alone."""
        return self.predict_in(frames).post


def student_inputs(scene: StrikeScene, frames: Frames) -> NDArray[np.float32]:
    """What the student sees of strikes [N, F]: contact point, normal, heading, speed, angle of a flat face."""
    heading = np.arctan2(frames.velocity[:, 0], frames.velocity[:, 1])
    columns = [
        frames.point / scene.gyration_radius,
        frames.axes_target[:, 1],
        heading[:, None],
        np.log(frames.speed / SPEED_SCALE)[:, None],
    ]
    columns += [frames.angle[:, None]] if scene.striker.flat else []
    return np.concatenate(columns, axis=-1).astype(np.float32)


def input_count(scene: StrikeScene) -> int:
    """F: how many numbers a student of this scene sees."""
    return 7 if scene.striker.flat else 6


def new_student_network(scene: StrikeScene) -> ImpactNetwork:
    """An untrained network of the student's form."""
    return ImpactNetwork(
        input_count(scene), width=SMALL.width, layers=SMALL.layers, activation=SMALL.activation, mirror=None
    )


def teach(
    model: SceneModel,
    *,
    posture: Array | None = None,
    seed: int = 0,
    steps: int | None = None,
    progress: Steps | None = None,
) -> Student:
    """A student of an impact model; `posture` [4] is how the striker is held, that of its strikes on average."""
    scene = model.scene
    strikes = _strikes_over_ranges(scene, posture, np.random.default_rng([seed, 5]))
    said = model.predict(strikes)
    frames = contact_frames(scene, strikes)
    if not np.isfinite(said.post).all():
        raise CaromError(f"scene '{scene.name}': the impact model gives no finite outcome within its own ranges")
    x = torch.as_tensor(student_inputs(scene, frames))
    y = torch.as_tensor(to_local(scene, frames, said.post)).float()
    network, difference = _learn(scene, x, y, seed, steps, progress)
    size = torch.linalg.vector_norm(y[:HELD_OUT], dim=-1).clamp_min(1e-6)
    relative = (torch.linalg.vector_norm(difference, dim=-1) / size).double().numpy()
    fidelity = {"median": float(np.median(relative)), "p95": float(np.quantile(relative, 0.95))}
    spread = None
    if np.isfinite(said.post_std).all() and (said.post_std > 0).any():
        k, speed = scene.gyration_radius, frames.speed[:, None]
        linear = np.sqrt((said.post_std[:, :2] ** 2).mean(axis=1, keepdims=True))
        share = np.concatenate([linear, linear, k * said.post_std[:, 2:]], axis=1) / speed
        logarithm = torch.as_tensor(np.log(np.maximum(share, NOISE_FLOOR))).float()
        spread, _ = _learn(scene, x, logarithm, seed + 1, steps or SPREAD_STEPS)
    return Student(scene, network, spread, fidelity)


def _strikes_over_ranges(scene: StrikeScene, posture: Array | None, rng: np.random.Generator) -> Strikes:
    strikes = sample_strikes(scene, SAMPLES, rng)
    # a little beyond the ranges: faster and slower, and turned further
    pace = 1 + RANGE * rng.uniform(-1, 1, (SAMPLES, 1))
    turn = RANGE * scene.deflection * rng.uniform(-1, 1, SAMPLES)
    c, s, v = np.cos(turn), np.sin(turn), strikes.striker_velocity
    turned = np.column_stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1], v[:, 2]])
    held = np.zeros((SAMPLES, 4)) if posture is None else np.tile(posture, (SAMPLES, 1))
    return Strikes(strikes.target_pose, strikes.target_velocity, strikes.striker_pose, pace * turned, held)


def _learn(
    scene: StrikeScene, x: torch.Tensor, y: torch.Tensor, seed: int, steps: int | None, progress: Steps | None = None
) -> tuple[ImpactNetwork, torch.Tensor]:
    """A network for y(x), and its difference on the held-out rows."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = new_student_network(scene)
    examples = Examples(x, y, torch.ones(len(y), 1), HELD_OUT)
    fit_network(network, examples, SMALL, steps=steps, seed=seed, progress=progress)
    with torch.no_grad():
        return network, network(x[:HELD_OUT]) - y[:HELD_OUT]
