"""N tasks in lock step: the one implementation behind every environment, and behind trials on a robot or stand-in.

It knows neither Gymnasium nor engines: it is given something that strikes (`Strike`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError
from carom.engines.contract import Simulator, Status
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.envs.outcome import Mask, Outcome
from carom.envs.sides import sides_of
from carom.envs.starts import DRAWS, Starts, uniform
from carom.envs.task import REACH, STRIKES, errors, left_zone, observe, place_in, rewards, task_scene, way_ahead
from carom.plan.search import HORIZON
from carom.plan.space import approach
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Array, StrikeCommands, rotate, wrap_angle

#: Carries out strikes: rests [N, 3] (x, y, yaw of the target's frame [m, m, rad]), and whether each came about [N]
Strike = Callable[[StrikeCommands], tuple[Array, Mask]]
Simulators = Simulator | Sequence[Simulator]  #: an engine, or several draws of an uncertain one

TRAIL = 16  #: former rests that are kept, to be drawn
#: of a batch's state
ROWS = ("pose", "goals", "stage", "strikes", "ended", "seeds", "episodes", "engine", "trail", "blow")


def engine_strike(simulator: Simulator) -> Strike:
    """Strikes carried out by an engine."""

    def strike(commands: StrikeCommands) -> tuple[Array, Mask]:
        run = simulator.rollout(approach(simulator.scene, commands), HORIZON)
        return run.rest, (run.status == Status.AT_REST) | (run.status == Status.MOVING)

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
        self.length = starts.length  #: of segments [m], by which observations are divided
        self._engines = list(strike) if isinstance(strike, Sequence) else [strike]
        self.sides, self._place = sides_of(self.scene), place_in(self.scene)
        self._headings = np.array([side.heading for side in self.sides])  # in the block's frame [S] [rad]
        self._leading = np.flatnonzero([side.leads for side in self.sides])  # the first is one of them
        self.pose = np.zeros((count, 3))  #: heading poses of the first side [N, 3] [m, m, rad]
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
        self.restart(rows, seeds=seeds)
        return self.observe()

    def restart(self, rows: ArrayLike | None = None, *, seeds: Sequence[int] | None = None) -> NDArray[np.int64]:
        """As `reset`, but gives the rows that start anew [M]: `observe` then says what is seen of them."""
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
        behind = self._leading[(drawn[:, DRAWS + 1] * len(self._leading)).astype(np.int64)]  # heads along the segment
        self.pose[index, 2] += self._headings[0] - self._headings[behind]
        self.stage[index], self.strikes[index], self.ended[index] = 0, 0, False
        self.trail[index], self.blow[index] = np.nan, np.nan
        return index

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
        return self.of_frame(self.pose)

    def of_frame(self, pose: Array) -> Array:
        """Poses of the block's own frame [N, 3], from heading poses [N, 3]."""
        yaw = pose[:, 2] - self._headings[0]
        return np.column_stack([pose[:, :2] - rotate(self._place, yaw), yaw])

    def of_heading(self, rest: Array) -> Array:
        """Heading poses [N, 3], from poses of the block's own frame [N, 3]."""
        return np.column_stack([rest[:, :2] + rotate(self._place, rest[:, 2]), rest[:, 2] + self._headings[0]])

    def _facing(self, direction: Array, yaw: Array, among: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these sides heads most in directions [M] [rad] of the table [M], of blocks at this yaw [M] [rad]."""
        if len(among) == 1:
            return np.full(len(direction), among[0])
        away = np.abs(wrap_angle(direction[:, None] - yaw[:, None] - self._headings[among]))
        return np.asarray(among[away.argmin(axis=1)])

    @property
    def side(self) -> NDArray[np.int64]:
        """Which side each block would be struck on now [N]: the one that looks most along the way."""
        return self._side(self.pose, self.points[self.current], self.goal)

    def _side(self, pose: Array, start: Array, goal: Array) -> NDArray[np.int64]:
        """The same for heading poses [M, 3] on segments from `start` [M, 2] to sub-goals [M, 3]."""
        if len(self.sides) == 1:
            return np.zeros(len(pose), dtype=np.int64)
        ahead = way_ahead(pose[:, :2], start, goal)
        return self._facing(ahead, pose[:, 2] - self._headings[0], np.arange(len(self.sides)))

    @property
    def heading(self) -> Array:
        """Where a square blow on that side would send each block [N] [rad]."""
        return np.asarray(self.pose[:, 2] + self._headings[self.side] - self._headings[0])

    def _turned(self, pose: Array, goal: Array) -> Array:
        """Sub-goals [M, 3] for heading poses [M, 3] of the first side, where any that leads may head on."""
        heading = self._facing(goal[:, 2], pose[:, 2] - self._headings[0], self._leading)
        turned = goal.copy()
        turned[:, 2] += self._headings[0] - self._headings[heading]
        return turned

    def observe(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """What a policy sees [N, 6]; of a block with several sides also where the one to strike is [N, 8].

        Of some rows only, if they are given.
        """
        index = np.arange(self.count) if rows is None else rows
        segment = self.current[index]
        pose, start, goal = self.pose[index], self.points[segment], self.goals[index, segment]
        side = self._headings[self._side(pose, start, goal)]
        goal, away = self._turned(pose, goal), side - self._headings[0]
        pose[:, 2] += away
        goal[:, 2] += away
        seen = observe(pose, start, goal, self.length)
        if len(self.sides) == 1:
            return seen
        return np.column_stack([seen, np.cos(side), np.sin(side)]).astype(np.float32)

    def commands(self, actions: ArrayLike, active: Mask | None = None) -> StrikeCommands:
        """The strikes that actions [N, 3] in [-1, 1] ask for: place on the side, deflection, speed; of active rows."""
        wanted = np.asarray(actions, dtype=np.float64)
        rows = np.ones(self.count, dtype=bool) if active is None else np.asarray(active, dtype=bool)
        if wanted.shape != (self.count, 3):
            raise CaromError(f"actions: expected an array of shape ({self.count}, 3), got {wanted.shape}")
        if np.isnan(wanted[rows]).any():
            worst = int(np.argmax(np.isnan(wanted).any(axis=1) & rows))
            raise CaromError(f"action of row {worst}: expected three numbers in [-1, 1], got {wanted[worst].tolist()}")
        unit = (np.clip(wanted[rows], -1.0, 1.0) + 1) / 2
        side, pose = self.side[rows], self.target_pose[rows]
        point, velocity = np.zeros((len(unit), 2)), np.zeros((len(unit), 2))
        for number in np.unique(side):
            own = side == number
            made = self.sides[number].space.commands(unit[own])
            point[own], velocity[own] = made.contact_point, made.velocity
        return StrikeCommands(point, velocity, pose)

    def step(self, actions: ArrayLike, active: ArrayLike | None = None) -> Outcome:
        """One strike at each row of the mask `active` [N] (None: all), all that share an engine in one call."""
        rows = np.ones(self.count, dtype=bool) if active is None else np.asarray(active, dtype=bool)
        if rows.shape != (self.count,):
            raise CaromError(f"active: expected a mask of shape ({self.count},), got {rows.shape}")
        if (rows & self.ended).any():
            raise CaromError(f"row {int(np.argmax(rows & self.ended))} has ended; reset it before the next strike")
        commands = self.commands(actions, rows)
        rest, carried_out = self.struck(commands, self.engine[rows])
        before, goal = self.pose.copy(), self.goal
        index = np.flatnonzero(rows)
        self._remember(index, commands)
        self.pose[index[carried_out]] = self.of_heading(rest[carried_out])
        self.strikes[index] += 1
        failed = np.zeros(self.count, dtype=bool)
        failed[index[~carried_out]] = True
        return self._judged(rows, before, goal, failed)

    def struck(self, commands: StrikeCommands, engine: NDArray[np.int64] | None = None) -> tuple[Array, Mask]:
        """What comes of strikes, each in one of the engines (None: the first); the tasks stay as they are."""
        rest, carried_out = np.zeros((len(commands), 3)), np.zeros(len(commands), dtype=bool)
        if engine is None or len(self._engines) == 1:
            if len(commands):
                rest, carried_out = _answer(self._engines[0](commands), len(commands))
            return rest, carried_out & np.isfinite(rest).all(axis=1)
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
        distance, turn = errors(self.pose, self._turned(self.pose, goal))
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
