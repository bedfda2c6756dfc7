"""Set-points given to a robot that pushes, one each control period, in any engine; and the delay before they act.

An actuator's delay is how set-points are applied, not what an engine knows: in each period the former set-points still
hold for the delay, then the new ones; in the engine's step in which they change, a mixture of both acts, so that a
motion depends smoothly on the delay. What was held before the first period is told by `held`, so that a run may be
opened in the middle of a push.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError
from carom.core.rotations import about_z, yaw
from carom.engines.contract import Engine, Run, row_values
from carom.engines.mujoco.engine import MujocoEngine
from carom.scenes.parameters import PARAMETERS
from carom.scenes.pushing import PushScene
from carom.state import Array, Motion, SceneState

PERIOD = 0.05  #: [s] of control
DELAY = "actuator_delay"  #: the parameter that is written into set-points


@final
class PushSimulator:
    """A scene of pushing in an engine, given set-points."""

    def __init__(self, engine: Engine, *, period: float = PERIOD) -> None:
        if not isinstance(engine.scene, PushScene):
            raise CaromError(f"pushing needs the engine of a PushScene, got scene '{engine.scene.name}'")
        self.engine, self.scene, self.period = engine, engine.scene, float(period)
        self.ticks = round(period / self.scene.timestep)  #: of the engine's step in a period
        if self.ticks < 1 or abs(self.ticks * self.scene.timestep - period) > 1e-9:
            raise CaromError(
                f"period: expected a multiple of the engine's step of {self.scene.timestep:g} s, got {period:g} s"
            )

    def open(
        self, start: SceneState, values: Mapping[str, ArrayLike] | None = None, *, held: ArrayLike | None = None
    ) -> PushRun:
        """Begin at these states; `held` [N, U] was set before (or [N, H, U], oldest first); None: joint positions."""
        own, late = self._values(values, len(start))
        return PushRun(self, self.engine.open(start, own), late, self._held(start, held))

    def replay(
        self,
        start: SceneState,
        controls: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        held: ArrayLike | None = None,
    ) -> Motion:
        """What comes of set-points [N, T, U], one in each period: poses at T + 1 instants."""
        given = np.asarray(controls, dtype=np.float64)
        width = len(self.scene.servos)
        if given.ndim != 3 or given.shape[0] != len(start) or given.shape[2] != width or not given.shape[1]:
            raise CaromError(f"controls: expected an array of shape ({len(start)}, T, {width}), got {given.shape}")
        own, late = self._values(values, len(start))
        if late.any():
            given = delayed(given, self._held(start, held), late, self.ticks)
        periods = given.shape[1] // (self.ticks if late.any() else 1)
        return self.engine.open(start, own).rollout(periods * self.period, given, frames=periods + 1)

    def _values(self, values: Mapping[str, ArrayLike] | None, count: int) -> tuple[dict[str, ArrayLike], Array]:
        """Values for the engine, and delays [N] in its steps, which need not be whole."""
        own = dict(values or {})
        given = row_values({DELAY: own.pop(DELAY, 0.0)}, count, (DELAY,))[DELAY]
        if count and not (given.min() >= 0 and given.max() <= PARAMETERS[DELAY].high + 1e-12):
            raise CaromError(
                f"{DELAY}: expected 0 to {PARAMETERS[DELAY].high:g} s, got {given.min():g} to {given.max():g} s"
            )
        late = given / self.scene.timestep
        whole = np.rint(late)
        return own, np.where(np.abs(late - whole) < 1e-6, whole, late)

    def _held(self, start: SceneState, held: ArrayLike | None) -> Array:
        """Set-points [N, H, U] before the first ones."""
        servos = list(self.scene.servos)
        if held is None:
            return start.joint_position[:, None, servos].copy()
        array = np.asarray(held, dtype=np.float64)
        array = array[:, None] if array.ndim == 2 else array
        if array.ndim != 3 or (len(array), array.shape[2]) != (len(start), len(servos)) or not array.shape[1]:
            raise CaromError(f"held: expected an array of shape ({len(start)}, {len(servos)}), got {np.shape(held)}")
        return array


@final
class PushRun:
    """N pushes on their way."""

    def __init__(self, simulator: PushSimulator, run: Run, late: Array, held: Array) -> None:
        self.simulator, self._run, self._late = simulator, run, late
        latest = int(np.ceil(late.max())) if len(late) else 0
        deep = 1 + latest // simulator.ticks  # periods that a set-point may be late
        lacking = max(0, deep - held.shape[1])
        self.held = np.concatenate([np.repeat(held[:, :1], lacking, axis=1), held], axis=1)  #: [N, H, U]

    @property
    def state(self) -> SceneState:
        """Where everything is now."""
        return self._run.state

    @property
    def status(self) -> NDArray[np.int8]:
        """How each row is doing [N]."""
        return self._run.status

    def step(self, controls: ArrayLike) -> SceneState:
        """One control period with these set-points [N, U]."""
        given = np.asarray(controls, dtype=np.float64)
        if given.shape != (len(self.held), self.held.shape[2]):
            raise CaromError(f"controls: expected shape ({len(self.held)}, {self.held.shape[2]}), got {given.shape}")
        known = np.concatenate([self.held, given[:, None]], axis=1)
        self.held = known[:, 1:]
        ticks, step = self.simulator.ticks, self.simulator.scene.timestep
        whole = np.floor(self._late).astype(np.int64)
        between = whole[self._late > whole]  # rows that mix two set-points for one step
        switches = np.unique(np.concatenate([whole % ticks, (between + 1) % ticks, [0, ticks]]))
        state = None
        for begin, end in pairwise(switches.tolist()):
            acting = _acting(known, known.shape[1] - 1, np.array([begin]), self._late, ticks)[:, 0]
            state = self._run.step((end - begin) * step, acting)
        return self.state if state is None else state


def delayed(controls: Array, held: Array, late: Array, ticks: int) -> Array:
    """Set-points [N, T * ticks, U] for each of the engine's steps, of set-points [N, T, U] that are `late` [N] steps.

    >>> delayed(np.array([[[1.0], [2.0]]]), np.zeros((1, 1, 1)), np.array([1.25]), 3)[0, :, 0].tolist()
    [0.0, 0.75, 1.0, 1.0, 1.75, 2.0]
    """
    known = np.concatenate([held, controls], axis=1)
    return _acting(known, held.shape[1], np.arange(controls.shape[1] * ticks), late, ticks)


def _acting(known: Array, first: int, tick: NDArray[np.int64], late: Array, ticks: int) -> Array:
    """What acts [N, K, U] at ticks [K] counted from set-point number `first` of those known [N, H, U]."""
    whole = np.floor(late).astype(np.int64)
    part, rows = (late - whole)[:, None, None], np.arange(len(known))[:, None]
    newer, older = (np.maximum(first + (tick[None] - whole[:, None] - k) // ticks, 0) for k in (0, 1))
    return np.asarray((1 - part) * known[rows, newer] + part * known[rows, older])


def flat_columns(scene: PushScene) -> tuple[str, ...]:
    """Names of the columns of `flat`: joints [rad] or [m], their velocities, the block's x, y, yaw and their rates."""
    names = scene.joint_names
    return (*names, *(f"{name}_velocity" for name in names), "x", "y", "yaw", "vx", "vy", "wz")


def flat(state: SceneState) -> Array:
    """States as rows [N, S] for whoever compares transitions: the block seen from above."""
    turn = yaw(state.quaternion[:, 0])
    block = [state.position[:, 0, :2], turn[:, None], state.velocity[:, 0, :2], state.spin[:, 0, 2:]]
    return np.concatenate([state.joint_position, state.joint_velocity, *block], axis=1)


def unflat(scene: PushScene, rows: Array) -> SceneState:
    """The states of `flat`'s rows [N, S]: the block upright on the table."""
    count, joints = len(rows), len(scene.joint_names)
    if rows.ndim != 2 or rows.shape[1] != 2 * joints + 6:
        raise CaromError(
            f"rows: expected {2 * joints + 6} columns ({', '.join(flat_columns(scene))}), got {rows.shape}"
        )
    block = rows[:, 2 * joints :]
    none = np.zeros(count)
    position = np.column_stack([block[:, :2], np.full(count, scene.rest_height)])
    velocity, spin = np.column_stack([block[:, 3:5], none]), np.column_stack([none, none, block[:, 5]])
    return SceneState(
        bodies=(scene.block_body,),
        position=position[:, None],
        quaternion=about_z(block[:, 2])[:, None],
        velocity=velocity[:, None],
        spin=spin[:, None],
        joints=scene.joint_names,
        joint_position=rows[:, :joints],
        joint_velocity=rows[:, joints : 2 * joints],
    )


def push_simulator(scene: PushScene, parameters: tuple[str, ...] = (), *, threads: int = 1) -> PushSimulator:
    """In MuJoCo, with values of these parameters for each row; `actuator_delay` is always one of them."""
    return PushSimulator(MujocoEngine(scene, tuple(p for p in parameters if p != DELAY), threads=threads))
