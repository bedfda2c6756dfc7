"""Strikes from approach to rest in MuJoCo, thousands at a time on its thread pool.

Alone it is the calibrated MuJoCo. With an `answer` it is the hybrid: MuJoCo still finds the contact, the answer gives
the outcome, and MuJoCo goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.engines.approach import at_distance
from carom.engines.contract import (
    AimedStrikes,
    Rollout,
    Validation,
    control_array,
    frame_times,
    no_derivatives,
    row_values,
    same_bodies,
    with_failed,
    without_bad_rows,
)
from carom.engines.mujoco.batch import ModelBatch
from carom.engines.mujoco.collide import Collider
from carom.engines.mujoco.strike_run import Answer, MujocoStrikes
from carom.engines.planar import StrikeRun, strikes_of
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body
from carom.scenes.strike import StrikeScene
from carom.state import Array, SceneState, Status, Strikes

if TYPE_CHECKING:
    import torch

CHUNK = 512  #: strikes that share one batch


@final
class MujocoSimulator:
    """Strikes of one scene in MuJoCo, with parameters by name; what is not given has its default."""

    def __init__(
        self,
        scene: StrikeScene,
        values: Mapping[str, float] | None = None,
        *,
        threads: int = 0,
        answer: Answer | None = None,
    ) -> None:
        self._scene, self.threads, self.answer = scene, threads, answer
        parameters = scene.parameters("mujoco")
        self.values = {p.name: float((values or {}).get(p.name, p.default)) for p in parameters}
        self.model = Collider(scene, parameters).model_with(np.array([self.values[p.name] for p in parameters]))
        self.batch = ModelBatch(self.model, threads=threads)

    def __deepcopy__(self, memo: dict[int, Any]) -> MujocoSimulator:
        """Another one alike: Gymnasium copies what environments are made of, and a batch cannot be copied."""
        return MujocoSimulator(self._scene, self.values, threads=self.threads, answer=self.answer)

    @property
    def scene(self) -> StrikeScene:
        return self._scene

    def validate(self, scene: Scene) -> Validation:
        """MuJoCo leaves out what only the analytic teacher knows."""
        if not isinstance(scene, StrikeScene):
            return Validation(cannot=(not_a_strike(scene),))
        own = {p.name for p in scene.parameters("mujoco")}
        return Validation(tuple(f"unknown '{p.name}': has no meaning here" for p in scene.unknown if p.name not in own))

    def rollout(
        self, initial: Strikes, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2
    ) -> Rollout:
        """See `Simulator`."""
        return self._rollout(initial, duration, controls, frames=frames, values={})

    def before_contact(self, strikes: Strikes, distance: float) -> Strikes:
        """See `Simulator`; the face's offset and tilt, where they are known, say where it touches."""
        geometry = {name: np.full(len(strikes), value) for name, value in self.values.items()}
        return at_distance(self._scene, strikes, distance, geometry)

    def differentiable_rest(self, aimed: AimedStrikes) -> torch.Tensor:
        """See `Simulator`."""
        raise no_derivatives()

    def open(
        self,
        start: SceneState,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        bodies: Sequence[Sequence[Body]] | None = None,
    ) -> StrikeRun:
        """See `Engine`; the parameters are those of the scene in MuJoCo."""
        same_bodies(bodies)
        strikes, own = strikes_of(self._scene, start), row_values(values, len(start), tuple(self.values))
        good, bad = without_bad_rows(strikes)
        stepping = MujocoStrikes(self, good, np.full((len(good), 1), np.inf), None, own) if len(good) else None
        if stepping is not None:
            stepping.status[bad] = Status.FAILED
        return StrikeRun(self._scene, strikes, stepping, partial(self._rollout, values=own))

    def _rollout(
        self,
        initial: Strikes,
        duration: ArrayLike,
        controls: ArrayLike | None = None,
        *,
        frames: int,
        values: Mapping[str, Array],
    ) -> Rollout:
        times = frame_times(duration, len(initial), frames)
        orders = control_array(controls, len(initial))
        if not len(initial):
            return nothing(times)
        initial, bad = without_bad_rows(initial)
        parts = []
        for low in range(0, len(initial), CHUNK):
            rows = slice(low, low + CHUNK)
            own = {name: value[rows] for name, value in values.items()}
            ordered = None if orders is None else orders[rows]
            parts.append(MujocoStrikes(self, initial[rows], times[rows], ordered, own).run())
        return with_failed(joined(parts), bad)


def not_a_strike(scene: Scene) -> str:
    """Why an engine of strikes cannot run a scene."""
    return f"scene '{scene.name}' has no striker and no target: engines of strikes need both"


def nothing(times: Array) -> Rollout:
    """The rollout of no strikes."""
    path, none, count = np.zeros((*times.shape, 3)), np.zeros(0), np.zeros(0, dtype=np.int64)
    return Rollout(times, path, path, path, none.astype(np.int8), none, np.zeros((0, 3)), count, count, count)


def taken(run: Rollout, rows: NDArray[np.int64]) -> Rollout:
    """These rows of a rollout, in this order."""
    return Rollout(**{name: getattr(run, name)[rows] for name in Rollout.__dataclass_fields__})


def joined(parts: list[Rollout]) -> Rollout:
    """Rollouts one after the other as one."""
    names = Rollout.__dataclass_fields__
    return Rollout(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})
