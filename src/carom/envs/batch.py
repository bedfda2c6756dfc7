"""N tasks in lock step: the one implementation behind every environment, and behind trials on a robot or stand-in.

It knows neither Gymnasium nor engines: it is given something that strikes (`Strike`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError
from carom.engines.contract import Simulator, Status
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.envs.starts import DRAWS, Starts, uniform
from carom.envs.task import REACH, STRIKES, TERMS, errors, heading_angle, left_zone, observe, rewards, task_scene
from carom.plan.search import HORIZON
from carom.plan.space import approach, strike_space
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Array, StrikeCommands, rotate

Mask = NDArray[np.bool_]
#: Carries out strikes: rests [N, 3] (x, y, yaw of the target's frame [m, m, rad]), and whether each came about [N]
Strike = Callable[[StrikeCommands], tuple[Array, Mask]]
Simulators = Simulator | Sequence[Simulator]  #: an engine, or several draws of an uncertain one

TRAIL = 16  #: former rests that are kept, to be drawn
#: of a batch's state
ROWS = ("pose", "goals", "stage", "strikes", "ended", "seeds", "episodes", "engine", "trail", "blow")


@dataclass(frozen=True)
class Outcome:
    """What one strike at each of N tasks brought. Rows that were not struck are as they were, without reward."""

    observation: NDArray[np.float32]  #: [N, 6] of what comes next (dimensionless)
    terms: Array  #: [N, 4] of the reward, R1 to R4
    terminated: Mask  #: [N]
    reached: Mask  #: [N] the sub-goal was reached with this strike
    success: Mask  #: [N] and it was the last one
    left_zone: Mask  #: [N]
    strike_failed: Mask  #: [N] nothing was struck, or the engine gave up: the block stayed where it was
    strikes: NDArray[np.int64]  #: [N] used so far for the sub-goal that was struck at
    subgoals: NDArray[np.int64]  #: [N] reached so far
    position_error: Array  #: [N] distance to the sub-goal that was struck at [m]
    orientation_error: Array  #: [N] turn missing there, in (-pi, pi] [rad]

    @property
    def reward(self) -> Array:
        """R of Table V [N]."""
        return np.asarray(self.terms.sum(axis=1))

    def info(self) -> dict[str, Any]:
        """What environments tell beside the reward: arrays [N] by name, the reward's terms in a dict of their own."""
        return {
            "reward_terms": dict(zip(TERMS, self.terms.T, strict=True)),
            "strikes": self.strikes,
            "subgoals": self.subgoals,
            "is_success": self.success,
            "left_zone": self.left_zone,
            "position_error": self.position_error,
            "orientation_error": self.orientation_error,
            "strike_failed": self.strike_failed,
        }


def engine_strike(simulator: Simulator) -> Strike:
    """Strikes carried out by an engine."""

    def strike(commands: StrikeCommands) -> tuple[Array, Mask]:
        run = simulator.rollout(approach(simulator.scene, commands), HORIZON)
        return run.rest, np.isin(run.status, (Status.AT_REST, Status.MOVING))

    return strike


def make_batch(simulator: Simulators | None, starts: Starts, *, count: int = 1, seed: int | None = None) -> StrikeBatch:
    """Tasks in an engine. Of several engines (draws of an uncertain one) each episode gets one at random.

    None: MuJoCo with the defaults of the built-in semi-cylinder.
    """
    if simulator is None:
        simulator = MujocoSimulator(builtin("semi-cylinder"), threads=1 if count == 1 else 0)
    engines = list(simulator) if isinstance(simulator, Sequence) else [simulator]
    if not engines:
        raise CaromError("simulator: expected one or several, got an empty list")
    scene = engines[0].scene
    for index, engine in enumerate(engines):
        if engine.scene.signature() != scene.signature():
            raise CaromError(
                f"simulator {index}: expected scene '{scene.name}' like the first one's, got '{engine.scene.name}'"
            )
    return StrikeBatch([engine_strike(engine) for engine in engines], scene, starts=starts, count=count, seed=seed)


@final
class StrikeBatch:
    """N tasks, each at its own stage. What has ended must be reset before its next strike."""

    def __init__(
        self,
        strike: Strike | Sequence[Strike],
        scene: StrikeScene,
        *,
        starts: Starts,
        count: int = 1,
        seed: int | None = None,
    ) -> None:
        if count < 1:
            raise CaromError(f"count: expected 1 task or more, got {count}")
        self.scene, self.starts, self.count, self.points = task_scene(scene), starts, count, starts.points
        self._engines = list(strike) if isinstance(strike, Sequence) else [strike]
        self._space, self._heading = strike_space(self.scene, np.zeros(3)), heading_angle(self.scene)
        self.pose = np.zeros((count, 3))  #: heading poses [N, 3] [m, m, rad]
        self.goals = np.zeros((count, len(self.points) - 1, 3))  #: sub-goals [N, K, 3], heading poses
        self.stage = np.zeros(count, dtype=np.int64)  #: sub-goals reached [N]
        self.strikes = np.zeros(count, dtype=np.int64)  #: used for the current sub-goal [N]
        self.ended = np.ones(count, dtype=bool)  #: [N]
        self.episodes = np.full(count, -1, dtype=np.int64)  #: [N] since seeded
        self.trail = np.full((count, TRAIL, 3), np.nan)  #: former heading poses, newest last; NaN: none
        self.blow = np.full((count, 4), np.nan)  #: the last strike's contact and velocity, world [m, m, m/s, m/s]
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self.seeds = np.zeros(count, dtype=np.uint64)
        self.engine = np.zeros(count, dtype=np.int64)  #: which of the engines each task is struck in [N]
        self.reset(seeds=[seed + row for row in range(count)])

    def reset(self, rows: ArrayLike | None = None, *, seeds: Sequence[int] | None = None) -> NDArray[np.float32]:
        """Start these rows (mask or indices; None: all) anew: new seeds, or the next episode. Gives all rows' view."""
        index = np.arange(self.count) if rows is None else np.arange(self.count)[np.asarray(rows)]
        if seeds is not None:
            if len(seeds) != len(index):
                raise CaromError(f"seeds: expected {len(index)}, one for each row that starts anew, got {len(seeds)}")
            self.seeds[index] = np.array([int(s) % 2**64 for s in seeds], dtype=np.uint64)
            self.episodes[index] = -1
        self.episodes[index] += 1
        drawn = uniform(self.seeds[index], self.episodes[index])
        self.pose[index], self.goals[index] = self.starts.draw(drawn[:, :DRAWS])
        self.engine[index] = (drawn[:, DRAWS] * len(self._engines)).astype(np.int64)
        self.stage[index], self.strikes[index], self.ended[index] = 0, 0, False
        self.trail[index], self.blow[index] = np.nan, np.nan
        return self.observe()

    @property
    def current(self) -> NDArray[np.int64]:
        """Which segment each task is on [N]; those at the end of the route stay on the last."""
        return np.asarray(np.minimum(self.stage, self.goals.shape[1] - 1))

    @property
    def goal(self) -> Array:
        """The current sub-goals, heading poses [N, 3]."""
        return np.asarray(self.goals[np.arange(self.count), self.current])

    @property
    def target_pose(self) -> Array:
        """x, y, yaw of the block's own frame [N, 3] [m, m, rad]."""
        return self.pose - [0.0, 0.0, self._heading]

    def observe(self) -> NDArray[np.float32]:
        """What a policy sees [N, 6]."""
        return observe(self.pose, self.points[self.current], self.goal)

    def commands(self, actions: ArrayLike, active: Mask | None = None) -> StrikeCommands:
        """The strikes that actions [N, 3] in [-1, 1] ask for: place on the arc, deflection, speed; of active rows."""
        wanted = np.asarray(actions, dtype=np.float64)
        rows = np.ones(self.count, dtype=bool) if active is None else np.asarray(active, dtype=bool)
        if wanted.shape != (self.count, 3):
            raise CaromError(f"actions: expected an array of shape ({self.count}, 3), got {wanted.shape}")
        if np.isnan(wanted[rows]).any():
            worst = int(np.argmax(np.isnan(wanted).any(axis=1) & rows))
            raise CaromError(f"action of row {worst}: expected three numbers in [-1, 1], got {wanted[worst].tolist()}")
        unit = (np.clip(wanted[rows], -1.0, 1.0) + 1) / 2
        return replace(self._space.commands(unit), target_pose=self.target_pose[rows])

    def step(self, actions: ArrayLike, active: ArrayLike | None = None) -> Outcome:
        """One strike at each row of the mask `active` [N] (None: all), all that share an engine in one call."""
        rows = np.ones(self.count, dtype=bool) if active is None else np.asarray(active, dtype=bool)
        if rows.shape != (self.count,):
            raise CaromError(f"active: expected a mask of shape ({self.count},), got {rows.shape}")
        if (rows & self.ended).any():
            raise CaromError(f"row {int(np.argmax(rows & self.ended))} has ended; reset it before the next strike")
        commands = self.commands(actions, rows)
        rest, carried_out = self._struck(commands, self.engine[rows])
        before, goal = self.pose.copy(), self.goal
        index = np.flatnonzero(rows)
        self._remember(index, commands)
        self.pose[index[carried_out]] = rest[carried_out] + [0.0, 0.0, self._heading]
        self.strikes[index] += 1
        failed = np.zeros(self.count, dtype=bool)
        failed[index[~carried_out]] = True
        return self._judged(rows, before, goal, failed)

    def _struck(self, commands: StrikeCommands, engine: NDArray[np.int64]) -> tuple[Array, Mask]:
        rest, carried_out = np.zeros((len(commands), 3)), np.zeros(len(commands), dtype=bool)
        for number in np.unique(engine):
            own = engine == number
            rest[own], carried_out[own] = _answer(self._engines[number](commands[own]), int(own.sum()))
        return rest, carried_out & np.isfinite(rest).all(axis=1)

    def _remember(self, index: NDArray[np.int64], commands: StrikeCommands) -> None:
        yaw = commands.target_pose[:, 2]
        contact = commands.target_pose[:, :2] + rotate(commands.contact_point, yaw)
        self.blow[index] = np.concatenate([contact, rotate(commands.velocity, yaw)], axis=1)
        self.trail[index, :-1] = self.trail[index, 1:]
        self.trail[index, -1] = self.pose[index]

    def _judged(self, rows: Mask, before: Array, goal: Array, failed: Mask) -> Outcome:
        """Reward and end of each task; tasks whose sub-goal was reached go on to the next."""
        distance, turn = errors(self.pose, goal)
        left = rows & ~failed & left_zone(before[:, :2], self.pose[:, :2], self.points)
        reached = rows & ~left & (distance <= REACH)  # what left the zone on its way has not arrived
        strikes = self.strikes.copy()
        terms = np.where(rows[:, None], rewards(distance, turn, strikes, reached, left), 0.0)
        self.stage[reached] += 1
        self.strikes[reached] = 0
        success = reached & (self.stage == self.goals.shape[1])
        # Running out of strikes ends the task and is no truncation: a value bootstrapped there would reward dithering.
        exhausted = rows & ~reached & (strikes >= STRIKES)
        terminated = success | left | exhausted
        self.ended |= terminated
        return Outcome(
            self.observe(),
            terms,
            terminated,
            reached,
            success,
            left,
            failed,
            strikes,
            self.stage.copy(),
            distance,
            turn,
        )

    def state(self) -> dict[str, Any]:
        """All that the next step depends on, for a checkpoint: arrays by name."""
        return {name: getattr(self, name).copy() for name in ROWS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state` of the same tasks."""
        missing = [name for name in ROWS if name not in state]
        if missing:
            raise CaromError(f"state: expected {', '.join(ROWS)}; missing: {', '.join(missing)}")
        for name in ROWS:
            own, given = getattr(self, name), np.asarray(state[name])
            if given.shape != own.shape:
                raise CaromError(f"state: {name}: expected shape {own.shape}, got {given.shape}: it is of other tasks")
        for name in ROWS:
            own = getattr(self, name)
            own[...] = np.asarray(state[name]).astype(own.dtype)


def _answer(given: Any, count: int) -> tuple[Array, Mask]:
    """What a `Strike` gave back, checked: a user may have written it."""
    try:
        first, second = given
        rest, carried_out = np.asarray(first, dtype=np.float64), np.asarray(second)
    except (TypeError, ValueError) as error:
        raise CaromError(f"strike: expected rests [N, 3] and whether each came about [N], got {given!r:.80}") from error
    if rest.shape != (count, 3) or carried_out.shape != (count,) or carried_out.dtype != bool:
        raise CaromError(
            f"strike: expected rests of shape ({count}, 3) and {count} booleans, got shapes {rest.shape} and "
            f"{carried_out.shape} ({carried_out.dtype})"
        )
    return rest, carried_out
