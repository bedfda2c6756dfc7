"""Reality for pushes, the contract that a robot or a stand-in fulfils: commands or a policy in, recordings out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from carom.core.errors import CaromError
from carom.state import Array, SceneState

PERIOD = 0.05  #: [s] for which a set-point is held

#: measured states of N scenes -> set-points [N, U] of the robot's servos, held for a `PERIOD`
Controller = Callable[[SceneState], Array]


@dataclass(frozen=True)
class PushTasks:
    """N pushes that a controller is to carry out."""

    start: SceneState  #: where block and robot are put before each
    target: Array  #: [N, 3] x, y, yaw that the block should reach [m, m, rad]; NaN where there is none: kept as tags
    steps: int  #: control periods that each lasts

    def __post_init__(self) -> None:
        target = np.asarray(self.target, dtype=np.float64)
        if target.shape != (len(self.start), 3):
            raise CaromError(f"target: expected an array of shape ({len(self.start)}, 3), got {target.shape}")
        if self.steps < 1:
            raise CaromError(f"steps: expected 1 control period or more, got {self.steps}")
        object.__setattr__(self, "target", target)

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class PushCommands:
    """N pushes whose set-points are known beforehand."""

    start: SceneState
    controls: Array  #: [N, K, U] set-points, each held for a `PERIOD`

    def __post_init__(self) -> None:
        controls = np.ascontiguousarray(self.controls, dtype=np.float64)
        if controls.ndim != 3 or len(controls) != len(self.start) or not controls.shape[1]:
            raise CaromError(f"controls: expected an array of shape ({len(self.start)}, K, U), got {controls.shape}")
        if not np.isfinite(controls).all():
            raise CaromError("controls: expected finite set-points")
        object.__setattr__(self, "controls", controls)

    def __len__(self) -> int:
        return len(self.start)


@runtime_checkable
class PushReality(Protocol):
    """Something that pushes and is measured: a robot with motion capture, or a stand-in.

    Both ways give a folder of recordings with one data file per push: time, poses of block and tool, the set-points as
    `ctrl.JOINT`, measured joints as `ctrl.JOINT_measured`, and the target as tags. `seed` stands for everything that
    differs when the same is asked again; a robot may ignore it.
    """

    def execute(self, commands: PushCommands, folder: str | Path, *, seed: int) -> Path:
        """Carry out set-points that are known beforehand."""
        ...

    def deploy(self, controller: Controller, tasks: PushTasks, folder: str | Path, *, seed: int) -> Path:
        """Let a controller push: each period it gets what was measured and gives set-points."""
        ...


def follow(controls: Array) -> Controller:
    """The controller that gives these set-points [N, K, U], whatever it sees."""
    asked = iter(np.moveaxis(controls, 1, 0))

    def next_one(state: SceneState) -> Array:
        return np.asarray(next(asked))

    return next_one
