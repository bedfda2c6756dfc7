"""Rows of the graph simulator on their way: stepped, rolled out, and looked at."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError
from carom.core.rotations import from_scipy
from carom.engines.contract import frame_times, held_controls
from carom.learn.graph.dynamics import Advanced, Moving, World
from carom.learn.graph.turning import matrices_of, turn
from carom.state import Array, Contacts, Motion, SceneState, Status

if TYPE_CHECKING:
    from carom.learn.graph.engine import GraphEngine

LOST = 1e3  #: [m] a body that is further off was thrown out of the scene


def moving_of(engine: GraphEngine, world: World, start: SceneState) -> Moving:
    """A state about the centres of mass."""
    position, quaternion, velocity, spin = (
        engine.tensor(getattr(start, name)) for name in ("position", "quaternion", "velocity", "spin")
    )
    rotation = matrices_of(quaternion)
    arm = torch.einsum("nbij,nbj->nbi", rotation, world.solids.centre)
    return Moving(position + arm, rotation, velocity + torch.linalg.cross(spin, arm), spin)


@final
class GraphRun:
    """N rows on their way."""

    def __init__(self, engine: GraphEngine, start: SceneState, world: World) -> None:
        self.engine, self.world = engine, world
        self._names, self._seconds, self._fresh = start.bodies, 0.0, True
        self._status = np.where(start.finite, Status.MOVING, Status.FAILED).astype(np.int8)
        self._good = np.flatnonzero(start.finite)
        self._last = start
        self._advanced: Advanced | None = None
        rows = torch.as_tensor(self._good, device=engine.device)
        self._world = world[rows]
        self._now = moving_of(engine, self._world, start[self._good])

    def __len__(self) -> int:
        return len(self._status)

    @property
    def status(self) -> NDArray[np.int8]:
        return self._status.copy()

    @property
    def state(self) -> SceneState:
        """Where everything is; velocities are means since the last frame once it has been stepped."""
        return self._last

    @property
    def candidates(self) -> int:
        """How many places of possible contact the last step had, in all rows."""
        found = None if self._advanced is None else self._advanced.found
        return 0 if found is None else len(found)

    def step(self, duration: float, controls: ArrayLike | None = None) -> SceneState:
        """See `Run`: a whole number of the network's steps."""
        held_controls(controls, len(self), 0, several=False)
        for _ in range(self._steps(duration)):
            before = self._now
            self._advance()
        self._last = self._seen(before, 1.0)
        return self._last

    def rollout(self, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2) -> Motion:
        """See `Run`; all rows last as long. Frames between two steps lie on the way from the one to the other."""
        times = frame_times(duration, len(self), frames)
        held_controls(controls, len(self), 0, several=True)
        if len(self) and np.ptp(times[:, -1]) > 1e-9:
            raise CaromError("duration: the graph simulator takes one for all rows")
        count = self._steps(float(times[0, -1])) if len(self) else 0
        shape = (len(self), frames, len(self._names))
        position, quaternion = np.zeros((*shape, 3)), np.zeros((*shape, 4))
        position[:, 0], quaternion[:, 0] = self._last.position, self._last.quaternion
        at = np.linspace(0.0, count, frames)
        for step in range(count):
            before = self._now
            self._advance()
            inside = np.flatnonzero((at > step + 1e-9) & (at <= step + 1 + 1e-9))
            for frame in inside:
                seen = self._last = self._seen(before, float(at[frame]) - step)
                position[:, frame], quaternion[:, frame] = seen.position, seen.quaternion
        if count:
            self._last = self._seen(before, 1.0)
        return Motion(self._names, times, position, quaternion, self.status, engine_seconds=self._seconds)

    def contacts(self) -> Contacts:
        """What touched during the last step, with the impulses that the network gave."""
        if self._advanced is None:
            raise CaromError("the graph simulator has contacts once it has been stepped")
        _, found, impulse = self._advanced
        if found is None or impulse is None:
            preset = self.engine.network.preset
            raise CaromError(f"a graph simulator of the preset `{preset}` gives accelerations, no impulses of contacts")
        bodies = len(self._names)
        pressed = (impulse * found.normal).sum(-1) > 0
        second = found.second[pressed].cpu().numpy()
        first = found.first[pressed].cpu().numpy()
        names = tuple(
            ("world" if a < 0 else self._names[a % bodies], self._names[b % bodies])
            for a, b in zip(first.tolist(), second.tolist(), strict=True)
        )
        columns = (found.point, found.normal, found.gap, impulse)
        point, normal, gap, blow = (c[pressed].double().cpu().numpy() for c in columns)
        return Contacts(self._good[second // bodies], names, point, normal, gap, blow)

    def _steps(self, duration: float) -> int:
        if not (np.isfinite(duration) and duration > 0):
            raise CaromError(f"duration: expected positive seconds, got {duration}")
        count = round(duration / self.engine.timestep)
        if count < 1 or abs(count * self.engine.timestep - duration) > 1e-3 * self.engine.timestep * count:
            raise CaromError(
                f"duration: expected a multiple of {1e3 * self.engine.timestep:.6g} ms, the step that the graph "
                f"simulator was trained with; got {1e3 * duration:.6g} ms"
            )
        return count

    def _advance(self) -> None:
        if not len(self._good):
            return
        before = perf_counter()
        with torch.no_grad():
            self._advanced = self.engine.network.advance(self._world, self._now, half=self._fresh)
        self._now, self._fresh = self._advanced.moving, False
        self._seconds += perf_counter() - before

    def _seen(self, before: Moving, share: float) -> SceneState:
        """The bodies' frames after a share of the last step; rows that are lost fail and stay where they were."""
        if not len(self._good):
            return self._last
        now, step = self._now, self.engine.timestep
        turned = now.rotation if share == 1.0 else turn(share * step * now.spin) @ before.rotation
        place = now.position if share == 1.0 else before.position + share * step * now.velocity
        arm = torch.einsum("nbij,nbj->nbi", turned, self._world.solids.centre)
        moved = [
            value.double().cpu().numpy()
            for value in (place - arm, now.velocity - torch.linalg.cross(now.spin, arm), now.spin)
        ]
        matrix = turned.double().cpu().numpy()
        fine = np.isfinite(matrix).all(axis=(1, 2, 3)) & (np.abs(moved[0]).max(axis=(1, 2)) < LOST)
        rows = self._good[fine]
        self._status[self._good[~fine]] = Status.FAILED
        columns = {n: getattr(self._last, n).copy() for n in ("position", "quaternion", "velocity", "spin")}
        columns["position"][rows], columns["velocity"][rows], columns["spin"][rows] = (v[fine] for v in moved)
        columns["quaternion"][rows] = _quaternions(matrix[fine])
        return replace(self._last, **columns)


def _quaternions(matrices: Array) -> Array:
    from scipy.spatial.transform import Rotation

    return from_scipy(Rotation.from_matrix(matrices.reshape(-1, 3, 3))).reshape(*matrices.shape[:-2], 4)
