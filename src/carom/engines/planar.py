"""Strikes as a planar view of a scene's states: the way from one to the other, and strikes opened as a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError
from carom.core.rotations import about_z, yaw
from carom.engines.approach import at_distance
from carom.engines.contract import (
    AimedStrikes,
    Rollout,
    Validation,
    control_array,
    frame_times,
    held_controls,
    no_derivatives,
    row_values,
    same_bodies,
    with_failed,
    without_bad_rows,
)
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body
from carom.scenes.strike import StrikeScene
from carom.state import Array, Contacts, Motion, SceneState, Strikes, cross, rotate

if TYPE_CHECKING:
    import torch

BODIES = ("target", "striker")  #: of a strike scene, in this order


def state_of(scene: StrikeScene, strikes: Strikes) -> SceneState:
    """Strikes as states of target and striker; the target stands on the ground."""
    count, half = len(strikes), scene.shape.full_height / 2
    position, quaternion = np.zeros((count, 2, 3)), np.zeros((count, 2, 4))
    velocity, spin = np.zeros((count, 2, 3)), np.zeros((count, 2, 3))
    for i, (pose, moving) in enumerate(
        ((strikes.target_pose, strikes.target_velocity), (strikes.striker_pose, strikes.striker_velocity))
    ):
        position[:, i, :2], velocity[:, i, :2], spin[:, i, 2] = pose[:, :2], moving[:, :2], moving[:, 2]
        quaternion[:, i] = about_z(pose[:, 2])
    position[:, 0, 2], position[:, 1, 2] = half, strikes.posture[:, 0]
    velocity[:, 1, 2] = strikes.posture[:, 3]
    velocity[:, 0, :2] -= cross(strikes.target_velocity[:, 2], _arm(scene, strikes.target_pose))
    return SceneState(BODIES, position, quaternion, velocity, spin)


def strikes_of(scene: StrikeScene, state: SceneState) -> Strikes:
    """The planar view of states of target and striker; what tips or leans is left out."""
    if state.bodies != BODIES or state.joints:
        got = ", ".join((*state.bodies, *state.joints)) or "none"
        raise CaromError(f"start: expected the bodies target and striker, and no joints; got {got}")
    pose = np.concatenate([state.position[..., :2], yaw(state.quaternion)[..., None]], axis=-1)
    moving = np.concatenate([state.velocity[..., :2], state.spin[..., 2:]], axis=-1)
    moving[:, 0, :2] += cross(state.spin[:, 0, 2], _arm(scene, pose[:, 0]))
    posture = np.zeros((len(state), 4))
    posture[:, 0], posture[:, 3] = state.position[:, 1, 2], state.velocity[:, 1, 2]
    return Strikes(pose[:, 0], moving[:, 0], pose[:, 1], moving[:, 1], posture)


def motion_of(scene: StrikeScene, rollout: Rollout, posture: Array) -> Motion:
    """A rollout of strikes as a motion of target and striker, who is held at this posture [N, 4]."""
    count, frames = rollout.time.shape
    position, quaternion = np.zeros((count, frames, 2, 3)), np.zeros((count, frames, 2, 4))
    for i, pose in enumerate((rollout.target_pose, rollout.striker_pose)):
        position[:, :, i, :2] = pose[..., :2]
        quaternion[:, :, i] = about_z(pose[..., 2])
    position[:, :, 0, 2], position[:, :, 1, 2] = scene.shape.full_height / 2, posture[:, :1]
    return Motion(BODIES, rollout.time, position, quaternion, rollout.status)


def _arm(scene: StrikeScene, pose: Array) -> Array:
    """From the target's frame to its declared centre of mass, world [N, 2] [m]."""
    return rotate(scene.target.planar_com, pose[:, 2])


class Stepping(Protocol):
    """Strikes that an engine can advance bit by bit."""

    @property
    def now(self) -> Strikes: ...

    @property
    def status(self) -> NDArray[np.int8]: ...

    def advance(self, duration: float, orders: Array | None) -> None:
        """Go on for `duration` [s], strikers at these velocities [N, 3]; None: as they are until they have struck."""
        ...


@final
class StrikeRun:
    """Strikes opened as a run, at once or bit by bit; controls are the striker's velocities."""

    def __init__(
        self, scene: StrikeScene, start: Strikes, stepping: Stepping | None, roll_out: Callable[..., Rollout]
    ) -> None:
        self.scene, self._start, self._stepping, self._roll_out, self._fresh = scene, start, stepping, roll_out, True
        self._end: tuple[Strikes, NDArray[np.int8]] | None = None  # of a rollout from the start

    @property
    def state(self) -> SceneState:
        if self._end is not None:
            return state_of(self.scene, self._end[0])
        return state_of(self.scene, self._start if self._stepping is None else self._stepping.now)

    @property
    def status(self) -> NDArray[np.int8]:
        if self._end is not None:
            return self._end[1].copy()
        return np.zeros(0, dtype=np.int8) if self._stepping is None else self._stepping.status.copy()

    def step(self, duration: float, controls: ArrayLike | None = None) -> SceneState:
        """See `Run`."""
        if not (np.isfinite(duration) and duration > 0):
            raise CaromError(f"duration: expected positive seconds, got {duration}")
        held = held_controls(controls, len(self._start), 3, several=False)
        self._go_on()
        if self._stepping is not None:
            self._stepping.advance(float(duration), None if held is None else held[:, 0])
        return self.state

    def rollout(self, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2) -> Motion:
        """See `Run`. From the start it is the engine's own rollout, which ends the run; later it goes on bit by bit."""
        if self._fresh:
            rolled = self._roll_out(self._start, duration, controls, frames=frames)
            still = np.zeros_like(self._start.striker_velocity)
            paths = (rolled.target_pose, rolled.target_velocity, rolled.striker_pose)
            target, going, striker = (path[:, -1] for path in paths)
            self._end = Strikes(target, going, striker, still, self._start.posture), rolled.status
            self._fresh = False
            return motion_of(self.scene, rolled, self._start.posture)
        times = frame_times(duration, len(self._start), frames)
        held = held_controls(controls, len(self._start), 3, several=True)
        self._go_on()
        if self._stepping is None:
            return motion_of(
                self.scene, self._roll_out(self._start, duration, controls, frames=frames), np.zeros((0, 4))
            )
        if np.ptp(times[:, -1]) > 0:
            raise CaromError("duration: once a run has been stepped, all rows go on for the same time")
        end, kept = float(times[0, -1]), [self._stepping.now]
        changes = np.zeros(1) if held is None else np.arange(held.shape[1]) / held.shape[1] * end
        stops = np.unique(np.concatenate([times[0], changes]))
        for before, after in pairwise(stops):
            which = int(np.searchsorted(changes, before, side="right")) - 1
            self._stepping.advance(float(after - before), None if held is None else held[:, which])
            if after in times[0]:
                kept.append(self._stepping.now)
        states = [state_of(self.scene, strikes) for strikes in kept]
        position, quaternion = (np.stack([getattr(s, n) for s in states], axis=1) for n in ("position", "quaternion"))
        return Motion(BODIES, times, position, quaternion, self.status)

    def _go_on(self) -> None:
        if self._end is not None:
            raise CaromError("this run is over: it was rolled out from its start; open another one")
        self._fresh = False

    def contacts(self) -> Contacts:
        """Engines of strikes know outcomes, not contacts."""
        raise CaromError("contacts: engines of strikes give outcomes, not contacts; open the scene in MujocoEngine")


class StrikeEngine(ABC):
    """What all engines of strikes share: checks at the door, rows without numbers, the way in as an `Engine`."""

    scene: StrikeScene
    values: Mapping[str, float] = MappingProxyType({})  #: that it was made with, by name

    @abstractmethod
    def judged(self, scene: StrikeScene) -> Validation:
        """Name what this engine would ignore in a strike scene, or cannot do."""

    @abstractmethod
    def rolled(self, initial: Strikes, times: Array, orders: Array | None, values: Mapping[str, Array]) -> Rollout:
        """Roll out one strike or more, all good, to instants [N, F], with orders [N, K, 3] and parameters [N]."""

    @abstractmethod
    def stepping(self, start: Strikes, bad: NDArray[np.bool_], values: Mapping[str, Array]) -> Stepping:
        """One strike or more to be advanced bit by bit; the bad ones [N] are only there to be counted as failed."""

    @property
    def takes(self) -> tuple[str, ...]:
        """Names of the parameters that may be given for each row."""
        return ()

    def validate(self, scene: Scene) -> Validation:
        """See `Engine`."""
        if isinstance(scene, StrikeScene):
            return self.judged(scene)
        return Validation(cannot=(f"scene '{scene.name}' has no striker and no target: engines of strikes need both",))

    def rollout(
        self, initial: Strikes, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2
    ) -> Rollout:
        """See `Simulator`."""
        return self._checked(initial, duration, controls, frames=frames, values={})

    def open(
        self,
        start: SceneState,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        bodies: Sequence[Sequence[Body]] | None = None,
    ) -> StrikeRun:
        """See `Engine`."""
        same_bodies(bodies)
        own, strikes = row_values(values, len(start), self.takes), strikes_of(self.scene, start)
        good, bad = without_bad_rows(strikes)
        stepping = self.stepping(good, bad, own) if len(good) else None
        return StrikeRun(self.scene, strikes, stepping, partial(self._checked, values=own))

    def before_contact(self, strikes: Strikes, distance: float) -> Strikes:
        """See `Simulator`; the face's offset and tilt, where they are known, say where it touches."""
        geometry = {name: np.full(len(strikes), value) for name, value in self.values.items()}
        return at_distance(self.scene, strikes, distance, geometry)

    def differentiable_rest(self, aimed: AimedStrikes) -> torch.Tensor:
        """See `Simulator`."""
        raise no_derivatives()

    def _checked(
        self,
        initial: Strikes,
        duration: ArrayLike,
        controls: ArrayLike | None = None,
        *,
        frames: int,
        values: Mapping[str, Array],
    ) -> Rollout:
        times, orders = frame_times(duration, len(initial), frames), control_array(controls, len(initial))
        if not len(initial):
            return _nothing(times)
        good, bad = without_bad_rows(initial)
        return with_failed(self.rolled(good, times, orders, values), bad)


def unknown_to_mujoco(scene: StrikeScene) -> tuple[str, ...]:
    """What a scene leaves unknown that only the analytic teacher knows, in words."""
    own = {p.name for p in scene.parameters("mujoco")}
    return tuple(f"unknown '{p.name}': has no meaning here" for p in scene.unknown if p.name not in own)


def _nothing(times: Array) -> Rollout:
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
