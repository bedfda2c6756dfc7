"""Recorded pushes in a loop: replayed from where their blocks rested, the gap that is left, and single transitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from carom.core.errors import CaromError
from carom.core.rotations import yaw
from carom.engines.pushing import PERIOD, PushSimulator
from carom.envs.pushing import Goals, Pushes, PushingTask
from carom.identify.pushes import Windows, windows_of
from carom.learn.transition import CorrectedPushes, Moves, Residual, moves_of
from carom.learn.transition.residual import lever_of
from carom.recordings import Recordings
from carom.recordings.sampled import noise_floor
from carom.scenes.pushing import PushScene
from carom.state import Array, SceneState, rotate, wrap_angle
from carom.train.infogap import Transitions, conditional_kl, gap

AXES = ("x", "y", "turn")  #: in which a block's place is compared; the turn times a lever [m]
LEAST_NOISE = 1e-4  #: [m] of a measured place that is counted with at least
MOVED = 5e-4  #: [m] that a block has moved, really or in a replay, from which instant on it is compared
GAVE_UP = 0.2  #: [m] off, of a replay that an engine gave up

Act = Callable[[SceneState], Array]  #: from states to set-points


@final
@dataclass(frozen=True)
class PushModel:
    """A simulator of pushes as a round has it: an engine, its parameters, and perhaps a correction."""

    simulator: PushSimulator
    values: Mapping[str, float]  #: of the parameters that were tuned
    draws: tuple[Mapping[str, float], ...] = ()  #: as plausible as `values`
    residual: Residual | None = None

    @property
    def pushes(self) -> Pushes:
        """What environments are given."""
        if self.residual is None or not len(self.residual.centres):
            return self.simulator
        return CorrectedPushes(self.simulator, self.residual)

    def run(self, start: SceneState, controls: Array, held: Array | None = None, *, draw: int | None = None) -> Array:
        """Poses [N, K + 1, 3] (x, y, yaw) that come of set-points [N, K, U]; NaN of what the engine gave up."""
        given = iter(np.moveaxis(controls, 1, 0))
        return self.drive(start, lambda _: np.asarray(next(given)), controls.shape[1], held, draw=draw)

    def drive(
        self, start: SceneState, act: Act, periods: int, held: Array | None = None, *, draw: int | None = None
    ) -> Array:
        """The same in a closed loop: `act` gives the set-points of each period."""
        values = self.values if draw is None else self.draws[draw]
        run = self.pushes.open(start, {k: np.full(len(start), v) for k, v in values.items()}, held=held)
        poses = [poses_of(run.state)]
        for _ in range(periods):
            run.step(act(run.state))
            poses.append(poses_of(run.state))
        return np.stack(poses, axis=1)

    def replayed(self, windows: Windows, *, draw: int | None = None) -> Array:
        """Poses [W, I, 3] at the instants of windows."""
        if abs(windows.period - self.simulator.period) > 1e-9:
            other = PushSimulator(self.simulator.engine, period=windows.period)
            return PushModel(other, self.values, self.draws, None).replayed(windows, draw=draw)
        return self.run(windows.start, windows.controls, windows.held, draw=draw)[:, :: windows.every]


def poses_of(state: SceneState) -> Array:
    """Blocks from above [N, 3]: x, y, yaw."""
    return np.column_stack([state.position[:, 0, :2], yaw(state.quaternion[:, 0])])


def noise_of(scene: PushScene, folders: Sequence[Recordings]) -> Array:
    """Standard deviation of a measured place [3] [m], as recordings show it; the last one: turn times lever."""
    found = []
    for folder in folders:
        for trajectory in folder.trajectories:
            target = trajectory.targets[0]
            place = np.column_stack([trajectory.position_world[target][:, :2], trajectory.yaw(target)])
            found.append(noise_floor(trajectory.time, place))
    sd = np.nanmedian(np.array(found), axis=0) * [1.0, 1.0, lever_of(scene)]
    return np.asarray(np.maximum(np.nan_to_num(sd), LEAST_NOISE))


def offsets(scene: PushScene, windows: Windows, simulated: Array) -> tuple[Array, Array]:
    """Real and simulated places [R, 3] [m] of all instants compared: those in which a block has moved, or should have.

    Places are from where the block was at the window's beginning; the turn is times the lever.
    """
    lever = lever_of(scene)
    begin = windows.block[:, :1]

    def away(poses: Array) -> Array:
        off = poses - begin
        off[..., 2] = lever * wrap_angle(off[..., 2])
        return np.asarray(off[:, 1:])

    real, said = away(windows.block), away(np.where(np.isfinite(simulated), simulated, begin + GAVE_UP))
    size = np.maximum(np.linalg.norm(np.nan_to_num(real), axis=-1), np.linalg.norm(said, axis=-1))
    counts = (size > MOVED) & np.isfinite(real).all(axis=-1)
    return real[counts], said[counts]


def gaps_of(model: PushModel, folders: Sequence[Recordings]) -> dict[str, float]:
    """The gap of recorded transitions, of a control period each, by every estimator [nats]; their mean error [m].

    Over a whole push small differences grow, and a tool that just misses a corner decides: that is no gap.
    """
    scene = model.simulator.scene
    windows = windows_of(scene, folders, window=PERIOD)
    real, said = offsets(scene, windows, model.replayed(windows))
    if len(real) < 2:
        raise CaromError(
            f"{folders[-1].path}: no block moves in these pushes, so nothing can be compared or tuned; train the "
            "policy for longer (training.steps), or begin with method: random, in a new folder"
        )
    noise = noise_of(scene, folders)
    found = {"conditional": max(conditional_kl(real, said, noise), 0.0)}
    for name in ("gaussian", "kde", "knn"):
        try:
            found[name] = gap(name, real, said, noise)
        except CaromError:  # too few instants for it
            found[name] = float("nan")
    return found | {"error_m": float(np.linalg.norm((real - said)[:, :2], axis=1).mean())}


def goals_of(task: PushingTask, folders: Sequence[Recordings]) -> dict[str, Array]:
    """Where the block of each recording was to go [3], by its name; where it went, if nobody says."""
    found = {}
    for folder in folders:
        for t in folder.trajectories:
            asked = [t.tags.get(f"target_{axis}") for axis in ("x", "y", "yaw")]
            if all(isinstance(a, int | float) for a in asked):
                found[t.name] = np.array(asked, dtype=np.float64)
                continue
            target = t.targets[0]
            path = np.column_stack([t.position_world[target][:, :2], t.yaw(target)])
            path = path[np.isfinite(path).all(axis=1)]
            found[t.name] = path[-1] if len(path) else np.zeros(3)
    return found


def transitions_of(
    task: PushingTask, model: PushModel, folders: Sequence[Recordings], goals: Mapping[str, Array]
) -> Transitions:
    """The recorded transitions as the simulator has them, seen and acted as a policy does."""
    windows = windows_of(task.scene, folders, window=PERIOD)
    joints = windows.start.joint_position[:, list(task.scene.servos)]
    action = np.clip((windows.controls[:, 0] - joints) / task.reach, -1, 1)
    run = model.pushes.open(windows.start, _rows(model.values, len(windows)), held=windows.held)
    end = run.step(windows.controls[:, 0]) if windows.controls.shape[1] == 1 else _last(run, windows)
    wanted = goals_at(task, np.array([goals[windows.names[n]] for n in windows.recording]))
    seen = [np.nan_to_num(task.observe(state, wanted).astype(np.float64)) for state in (windows.start, end)]
    return Transitions(seen[0], action, seen[1])


def learned_residual(model: PushModel, folders: Sequence[Recordings]) -> tuple[Moves, Array, Any]:
    """Moves of the engine in recorded transitions, what they miss [N, 3], and of which recording each is [N]."""
    scene = model.simulator.scene
    windows = windows_of(scene, folders, window=PERIOD)
    run = model.simulator.open(windows.start, _rows(model.values, len(windows)), held=windows.held)
    end = _last(run, windows)
    moves = moves_of(scene, windows.start, end)
    off = windows.block[:, -1] - poses_of(end)
    turned = lever_of(scene) * wrap_angle(off[:, 2])
    return moves, np.column_stack([rotate(off[:, :2], -moves.turn), turned]), windows.recording


def _last(run: Any, windows: Windows) -> SceneState:
    for controls in np.moveaxis(windows.controls, 1, 0):
        run.step(controls)
    state: SceneState = run.state
    return state


def _rows(values: Mapping[str, float], count: int) -> dict[str, Array]:
    return {name: np.full(count, value) for name, value in values.items()}


def goals_at(task: PushingTask, poses: Array) -> Goals:
    """Goals at x, y, yaw [N, 3]."""
    state = task.scene.placed(poses, np.tile(task.scene.home(1).joint_position, (len(poses), 1)))
    return Goals(state.position[:, 0], state.quaternion[:, 0])
