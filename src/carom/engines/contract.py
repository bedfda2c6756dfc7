"""The contract of engines: one for all of them, batch first.

An engine is opened at states of a scene with values of its parameters, and then stepped with controls or rolled out.
Planners, environments, benchmarks and the loop take any engine; none of them knows which one runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError, unknown_name
from carom.scenes.parameters import PARAMETERS
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body
from carom.scenes.strike import StrikeScene
from carom.state import Array, Contacts, Motion, SceneState, Strikes
from carom.state import Status as Status

if TYPE_CHECKING:
    import torch

REST_SPEED = 2e-3  #: [m/s] of the target, spin times radius of gyration included, below which it is at rest


@dataclass(frozen=True)
class Rollout:
    """What came of N strikes: motion at F instants, spread evenly over each one's duration, and how it went."""

    time: Array  #: [N, F] since the start [s]
    target_pose: Array  #: [N, F, 3] x, y, yaw of the target's frame, yaw not wrapped [m, m, rad]
    target_velocity: Array  #: [N, F, 3] vx, vy, wz of the target's declared centre of mass [m/s, m/s, rad/s]
    striker_pose: Array  #: [N, F, 3] x, y, yaw of the striker's frame [m, m, rad]
    status: NDArray[np.int8]  #: [N] `Status`
    contact_time: Array  #: [N] of the first contact [s]; NaN: none
    post: Array  #: [N, 3] target velocity after the first contact, as `target_velocity`; NaN: none
    impacts: NDArray[np.int64]  #: [N] how often striker and target met
    from_engine: NDArray[np.int64]  #: [N] impacts answered by the engine's own contact (in MuJoCo: all of them)
    guarded: NDArray[np.int64]  #: [N] learned outcomes that were corrected because physics forbids them

    @property
    def rest(self) -> Array:
        """Pose of the target's frame at the end [N, 3] [m, m, rad]."""
        return self.target_pose[:, -1]

    def __len__(self) -> int:
        return len(self.status)


@dataclass(frozen=True)
class Validation:
    """What an engine makes of a scene."""

    ignored: tuple[str, ...] = ()  #: things that the scene declares and the engine leaves out
    cannot: tuple[str, ...] = ()  #: reasons why the engine cannot run the scene at all

    @property
    def ok(self) -> bool:
        return not self.cannot


class Run(Protocol):
    """N scenes on their way: stepped in a closed loop, or rolled out to their end."""

    @property
    def state(self) -> SceneState:
        """Where everything is now."""
        ...

    @property
    def status(self) -> NDArray[np.int8]:
        """How each row is doing [N], as `Status`."""
        ...

    def step(self, duration: float, controls: ArrayLike | None = None) -> SceneState:
        """Advance all rows by `duration` [s] with these controls [N, U], held; gives the state then."""
        ...

    def rollout(self, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2) -> Motion:
        """Advance by `duration` [s] (a number, or [N]) and keep `frames` instants, first and last included.

        `controls` [N, K, U] are each held for duration/K. A run of strikes that is rolled out from its start is over.
        """
        ...

    def contacts(self) -> Contacts:
        """What touches what; raises if the engine has no contacts to give."""
        ...


class Engine(Protocol):
    """Physics for one scene. All of them pass the suite in tests/engines/test_contract.py.

    `values` are parameters by name, each a number or one for each row [N]; what is not given is as the engine's model
    has it. An engine that takes none refuses them. An empty batch is fine. A row that cannot be simulated is marked as
    failed and never stops or changes another. Opening an engine again ends its former run.
    """

    @property
    def scene(self) -> Scene: ...

    def validate(self, scene: Scene) -> Validation:
        """Name what this engine would ignore in a scene, or cannot do."""
        ...

    def open(
        self,
        start: SceneState,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        bodies: Sequence[Sequence[Body]] | None = None,
    ) -> Run:
        """Begin at these states, which may be in contact; `bodies` are those of each row, where they differ."""
        ...


class Simulator(Engine, Protocol):
    """An engine of strikes, with the planar way in that planners and environments take."""

    @property
    def scene(self) -> StrikeScene: ...

    def rollout(
        self, initial: Strikes, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2
    ) -> Rollout:
        """Simulate N strikes for `duration` [s] (a number, or [N]), from states in which nothing touches yet.

        `controls` [N, K, 3] are the striker's velocities (vx, vy, wz), each held for duration/K. Without them it keeps
        its velocity until it has struck once and is then taken away. `frames` instants are kept, first and last
        included.
        """
        ...

    def before_contact(self, strikes: Strikes, distance: float) -> Strikes:
        """The same strikes a moment earlier: strikers `distance` [m] from where they touch, as this engine sees it."""
        ...

    def differentiable_rest(self, aimed: AimedStrikes) -> torch.Tensor:
        """Poses of the target's frame at rest [N, 3], differentiable in the strikes; refused by engines that can't."""
        ...


class AimedStrikes(NamedTuple):
    """N strikes on one resting target, as tensors that a planner differentiates by."""

    pose: Array  #: [3] x, y, yaw of the target's frame [m, m, rad]
    point: torch.Tensor  #: [N, 2] of contact, in the target's frame [m]
    inward: torch.Tensor  #: [N, 2] normal there, into the target
    turn: torch.Tensor  #: [N] of the velocity against it [rad]
    speed: torch.Tensor  #: [N] [m/s]


def frame_times(duration: ArrayLike, count: int, frames: int) -> Array:
    """Instants at which a rollout is kept [N, F] [s]; refuses durations that are not positive numbers."""
    given = np.asarray(duration, dtype=np.float64)
    fits = given.shape in ((), (count,))
    lasting = np.broadcast_to(given if fits else np.nan, (count,))
    if not (fits and np.isfinite(lasting).all() and (lasting > 0).all()):
        raise CaromError(f"duration: expected positive seconds, one number or {count}, got {np.asarray(duration)}")
    if frames < 2:
        raise CaromError(f"frames: expected 2 or more (start and end), got {frames}")
    return np.asarray(lasting[:, None] * np.linspace(0.0, 1.0, frames))


def without_bad_rows(initial: Strikes) -> tuple[Strikes, NDArray[np.bool_]]:
    """The strikes, rows with NaN replaced by harmless ones, and which those are [N]."""
    columns = (initial.target_pose, initial.target_velocity, initial.striker_pose, initial.striker_velocity)
    bad = np.zeros(len(initial), dtype=bool)
    for column in (*columns, initial.posture):
        bad |= ~np.isfinite(column).all(axis=1)
    if not bad.any():
        return initial, bad
    instead = (np.zeros(3), np.zeros(3), np.array([1e2, 0.0, 0.0]), np.zeros(3))
    a, b, c, d = (np.where(bad[:, None], value, column) for column, value in zip(columns, instead, strict=True))
    return Strikes(a, b, c, d, np.where(bad[:, None], 0.0, initial.posture)), bad


def with_failed(run: Rollout, bad: NDArray[np.bool_]) -> Rollout:
    """The same rollouts, those of bad strikes as failed."""
    if not bad.any():
        return run
    lost = {
        name: np.where(bad[:, None, None], np.nan, getattr(run, name))
        for name in ("target_pose", "target_velocity", "striker_pose")
    }
    return replace(run, status=np.where(bad, Status.FAILED, run.status).astype(np.int8), **lost)


def control_array(controls: ArrayLike | None, count: int) -> Array | None:
    """Controls as an array [N, K, 3], or None; refuses other shapes."""
    if controls is None:
        return None
    array = np.asarray(controls, dtype=np.float64)
    if array.ndim != 3 or array.shape[0] != count or array.shape[2] != 3 or not array.shape[1]:
        raise CaromError(
            f"controls: expected an array of shape ({count}, K, 3), velocities of the striker, got {array.shape}"
        )
    if not np.isfinite(array).all():
        raise CaromError("controls: expected finite velocities [m/s, m/s, rad/s]")
    return array


def held_controls(controls: ArrayLike | None, count: int, width: int, *, several: bool) -> Array | None:
    """Controls as an array [N, K, U], K = 1 unless `several`, or None; refuses other shapes and numbers."""
    if controls is None:
        return None
    array = np.asarray(controls, dtype=np.float64)
    wanted = f"({count}, K, {width})" if several else f"({count}, {width})"
    array = array if several or array.ndim != 2 else array[:, None]
    if array.ndim != 3 or array.shape[0] != count or array.shape[2] != width or not array.shape[1]:
        raise CaromError(f"controls: expected an array of shape {wanted}, got {np.shape(controls)}")
    if not np.isfinite(array).all():
        raise CaromError("controls: expected finite numbers")
    return array


def row_values(values: Mapping[str, ArrayLike] | None, count: int, known: Sequence[str]) -> dict[str, Array]:
    """Values of parameters by name as arrays [N]; refuses unknown names and other shapes."""
    found: dict[str, Array] = {}
    for name, value in (values or {}).items():
        if name not in known:
            raise CaromError(unknown_name("parameter of this engine", name, known))
        array = np.asarray(value, dtype=np.float64)
        vector = name in PARAMETERS and PARAMETERS[name].vector
        if vector and array.shape == (count, 3) and np.isfinite(array).all():
            found[name] = array
            continue
        if array.shape not in ((), (count,)) or not np.isfinite(array).all():
            raise CaromError(f"parameter '{name}': expected a finite number, or {count} of them, got {array}")
        found[name] = np.broadcast_to(array, (count,)).copy()
    return found


def same_bodies(bodies: Sequence[Sequence[Body]] | None) -> None:
    """Refuse bodies that differ from row to row."""
    if bodies is not None:
        raise CaromError("bodies: they cannot differ per row here; use MujocoEngine with a VariedScene")


def no_derivatives() -> CaromError:
    """What an engine without derivatives says."""
    return CaromError("method 'gradient' needs the hybrid with the slider; other engines take 'cma' or 'cem'")
