"""N pushing tasks in lock step, in whatever pushes: the one implementation behind every environment of pushing.

An episode lasts the task's periods. Who leaves the table's part that is in reach is cut off there: all rewards are
negative, so an end would teach to leave. Neither is an end of the task (`truncated`, never `terminated`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError
from carom.engines.contract import Status
from carom.envs.pushing.starts import Goals
from carom.envs.pushing.task import Floats, PushingTask
from carom.scenes.pushing import PushScene
from carom.state import Array, SceneState

Mask = NDArray[np.bool_]
Draws = Sequence[Mapping[str, float]]  #: plausible simulators: values of the same parameters by name
SEEN = 20.0  #: greatest number in an observation, in its units; what is further off is seen there
LOST = -10.0  #: reward of a state that the engine gave up
_STATE = ("position", "quaternion", "velocity", "spin", "joint_position", "joint_velocity")
_ROWS = ("elapsed", "draw", "held")


class PushingRun(Protocol):
    """N pushes on their way, as `carom.engines.pushing.PushRun` has them."""

    held: Array  #: [N, H, U] set-points so far, newest last

    @property
    def state(self) -> SceneState: ...

    @property
    def status(self) -> NDArray[np.int8]: ...

    def step(self, controls: ArrayLike) -> SceneState: ...


class Pushes(Protocol):
    """What tasks are carried out in: `carom.engines.pushing.PushSimulator`, or one with a correction of its own."""

    @property
    def scene(self) -> PushScene: ...

    def open(
        self, start: SceneState, values: Mapping[str, ArrayLike] | None = None, *, held: ArrayLike | None = None
    ) -> PushingRun: ...


@dataclass(frozen=True)
class PushOutcome:
    """What one control period of N tasks brought."""

    observation: Floats  #: [N, O] of the state that it led to
    reward: Array  #: [N]
    truncated: Mask  #: [N] time is up, or outside
    outside: Mask  #: [N] block or tool has left, or the block has tipped over
    success: Mask  #: [N] the block is where it should be


@final
class PushingBatch:
    """N tasks, each at its own period. What was cut off must be reset before its next step.

    >>> from carom.engines.pushing import push_simulator
    >>> from carom.envs.pushing import pushing_task
    >>> task = pushing_task("planar-cube")
    >>> batch = PushingBatch(task, push_simulator(task.scene), count=2)
    >>> batch.observe().shape, batch.step(np.zeros((2, 2))).truncated.tolist()
    ((2, 17), [False, False])
    """

    def __init__(
        self, task: PushingTask, simulator: Pushes, *, count: int = 64, draws: Draws = (), seed: int = 0
    ) -> None:
        if count < 1:
            raise CaromError(f"count: expected 1 task or more, got {count}")
        self.task, self.count, self.seed, self.resets = task, count, seed, 0
        self._simulator, self._draws = simulator, checked_draws(draws)
        start, self.goals = task.sample(count, np.random.default_rng(0))
        self.elapsed = np.zeros(count, dtype=np.int64)  #: periods of the episode [N]
        self.draw = np.zeros(count, dtype=np.int64)  #: of the simulators, that each row is in [N]
        self._start, self._asked = start, list[Array]()
        self._run = simulator.open(start, self._values())
        self._now = self._run.state
        self.held = self._run.held
        self.reset(seed=seed)

    @property
    def state(self) -> SceneState:
        """Where everything is now."""
        return self._now

    def reset(self, rows: ArrayLike | None = None, *, seed: int | None = None) -> Floats:
        """Start these rows (mask or indices; None: all) anew; gives all rows' view."""
        index = np.arange(self.count) if rows is None else np.arange(self.count)[np.asarray(rows)]
        if seed is not None:
            self.seed, self.resets = seed, 0
        rng = np.random.default_rng([self.seed, self.resets])
        self.resets += 1
        fresh, goals = self.task.sample(len(index), rng)
        now = self._now
        parts: dict[str, Any] = {name: getattr(now, name).copy() for name in _STATE}
        for name in _STATE:
            parts[name][index] = getattr(fresh, name)
        self._start = replace(now, **parts)
        position, turn = self.goals.position.copy(), self.goals.quaternion.copy()
        position[index], turn[index] = goals.position, goals.quaternion
        self.goals = Goals(position, turn)
        self.elapsed[index] = 0
        self.draw[index] = rng.integers(max(1, len(self._draws)), size=len(index))
        self.held = self._run.held.copy()
        self.held[index] = fresh.joint_position[:, None, list(self.task.scene.servos)]
        self._open([])
        return self.observe()

    def _open(self, asked: list[Array]) -> None:
        self._asked = []
        self._run = self._simulator.open(self._start, self._values(), held=self.held)
        self._now = self._run.state
        for controls in asked:
            self._advance(controls)

    def _advance(self, controls: Array) -> SceneState:
        self._asked.append(controls)
        self._now = self._run.step(controls)
        return self._now

    def _values(self) -> dict[str, Array]:
        if not self._draws:
            return {}
        return {name: np.array([d[name] for d in self._draws])[self.draw] for name in self._draws[0]}

    def observe(self) -> Floats:
        """What each row sees [N, O]."""
        return self._seen(self._now)

    def _seen(self, state: SceneState) -> Floats:
        return np.clip(np.nan_to_num(self.task.observe(state, self.goals), nan=SEEN), -SEEN, SEEN)

    def step(self, actions: NDArray[Any]) -> PushOutcome:
        """One control period."""
        given = np.asarray(actions, dtype=np.float64)
        if given.shape != (self.count, self.task.acts) or not np.isfinite(given).all():
            raise CaromError(
                f"actions: expected {self.count} rows of {self.task.acts} finite numbers, got shape {given.shape}"
            )
        state = self._advance(self.task.controls(self._now, given))
        self.elapsed += 1
        lost = (self._run.status == Status.FAILED) | ~state.finite
        outside = self.task.outside(state) | lost
        reward = np.where(lost, LOST, np.nan_to_num(self.task.reward(state, self.goals), nan=LOST))
        success = self.task.success(state, self.goals) & ~outside
        ended = outside | (self.elapsed >= self.task.steps)
        return PushOutcome(self._seen(state), reward, ended, outside, success)

    def saved(self) -> dict[str, Any]:
        """All that the batch is, for a checkpoint: since the last start of a row it is done again, bit for bit."""
        asked = np.array(self._asked).reshape(len(self._asked), self.count, self.task.acts)
        return {
            "seed": self.seed,
            "resets": self.resets,
            "asked": asked,
            "goals": [self.goals.position, self.goals.quaternion],
            "start": {name: getattr(self._start, name) for name in _STATE},
            **{name: getattr(self, name).copy() for name in _ROWS},
        }

    def restore(self, state: Mapping[str, Any]) -> Floats:
        """Go on from `saved`; gives the observation that the next actions answer."""
        missing = {"seed", "resets", "asked", "goals", "start", *_ROWS} - set(state)
        if missing or len(state["elapsed"]) != self.count:
            raise CaromError(f"state: expected one of {self.count} pushing tasks, as `saved` gives it")
        self.seed, self.resets = int(state["seed"]), int(state["resets"])
        self.elapsed, self.draw, self.held = (np.array(state[name]) for name in _ROWS)
        self.goals = Goals(*(np.array(part) for part in state["goals"]))
        parts: dict[str, Any] = {name: np.array(state["start"][name]) for name in _STATE}
        self._start = replace(self._start, **parts)
        self._open(list(np.asarray(state["asked"], dtype=np.float64)))
        return self.observe()


def checked_draws(draws: Draws) -> tuple[dict[str, float], ...]:
    """The draws, of which each has the same parameters."""
    found = tuple({name: float(value) for name, value in draw.items()} for draw in draws)
    for number, draw in enumerate(found):
        if draw.keys() != found[0].keys():
            raise CaromError(
                f"draw {number}: expected the parameters of the first ({', '.join(found[0])}), got {', '.join(draw)}"
            )
        if not np.isfinite(list(draw.values())).all():
            raise CaromError(f"draw {number}: expected finite values, got {draw}")
    return found
