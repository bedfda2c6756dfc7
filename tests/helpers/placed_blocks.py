"""A strike for tests that puts blocks where the test says."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from carom.engines.contract import Rollout, Status, Validation, frame_times
from carom.envs import RouteStarts, SegmentStarts, StrikeBatch, route_from
from carom.envs.sides import sides_of
from carom.envs.starts import Starts
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Array, StrikeCommands, Strikes

SCENE = builtin("semi-cylinder")
EXACT = SegmentStarts(0.0, 0.0, 0.0)  # one start: on the segment's start, heading along it


class Placed:
    """Rests are the heading poses in `next`, whatever the blow; None where the strike misses."""

    def __init__(self) -> None:
        self.next: list[tuple[float, float, float] | None] = []
        self.calls: list[StrikeCommands] = []

    def __call__(self, commands: StrikeCommands) -> tuple[Array, np.ndarray]:
        self.calls.append(commands)
        ok = np.array([p is not None for p in self.next])
        rest = np.array([p if p is not None else (np.nan,) * 3 for p in self.next], dtype=np.float64)
        return rest - [0.0, 0.0, sides_of(SCENE)[0].heading], ok


class Pushes:
    """A Simulator in closed form, for tests of everything but physics: a block goes as far as it was struck fast."""

    scene: StrikeScene = SCENE

    def rollout(
        self, initial: Strikes, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2
    ) -> Rollout:
        time, count = frame_times(duration, len(initial), frames), len(initial)
        path = np.repeat(initial.target_pose[:, None], frames, axis=1)
        path[:, -1] += initial.striker_velocity * 0.4
        path[:, -1, 2] += 0.3 * np.sin(initial.striker_pose[:, 2] - initial.target_pose[:, 2] + np.pi / 2)
        none = np.zeros(count, dtype=np.int64)
        status = np.full(count, Status.AT_REST, dtype=np.int8)
        return Rollout(time, path, 0 * path, path, status, time[:, 0], path[:, 0], none + 1, none, none)

    def validate(self, scene: StrikeScene) -> Validation:
        return Validation()


def placed(starts: Starts = EXACT, count: int = 1) -> tuple[StrikeBatch, Placed]:
    strike = Placed()
    return StrikeBatch(strike, SCENE, starts=starts, count=count, seed=0), strike


def on_route(which: object) -> tuple[StrikeBatch, Placed]:
    return placed(RouteStarts(route_from(which)))  # type: ignore[arg-type]
