"""The fit behind tuning with pushes (Eq. 2 of the real-sim-real paper): windows played again, parameters per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError, unknown_name
from carom.core.rotations import about_z, multiply, unwrapped_yaw
from carom.engines.guided import GuidedSimulator
from carom.engines.mujoco.engine import MujocoEngine
from carom.engines.pushing import DELAY, PushSimulator
from carom.identify.problem import GIVEN, Held, Problem
from carom.identify.pushes.played import lengths, played
from carom.identify.pushes.windows import Windows
from carom.scenes.parameters import PARAMETERS, Parameter
from carom.scenes.pushing import GuidedScene, PushScene
from carom.state import Array, Motion, SceneState, wrap_angle

#: [m] off the recorded place at which an instant of block and tool counts half: beyond, another story is told
SATURATES = (0.03, 0.01)
KEPT = 0.9  #: of the windows say how large offsets are
LARGE = 10.0  #: typical offsets at which it counts half once it is known what a fit leaves over
FLOOR = (2e-4, 5e-5)  #: [m] that block and tool are surely not known better
FAILED = 0.1  #: [m] off, of a replay that the engine gave up
USUAL = (
    "ground_friction",
    "striker_friction",
    "mass_scale",
    "pressure_spread",
    "joint_friction",
    "tool_offset_x",
    "tool_offset_y",
    DELAY,
)  #: what is looked for where nobody says
#: what is looked for where the tool is led, and nobody says more
USUAL_LED = ("ground_friction", "striker_friction", "pressure_spread")
DIMENSIONS = 6  #: of one instant, all in m:
BLOCK, HAND = slice(0, 3), slice(3, 6)  #: the block's x, y and turn, the tool's x, y, z


class Simulator(Protocol):
    """What plays windows again: a robot that is given set-points, or a tool that is led."""

    @property
    def scene(self) -> PushScene | GuidedScene: ...

    def replay(
        self,
        start: SceneState,
        controls: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        held: ArrayLike | None = None,
    ) -> Motion: ...


def _simulator(scene: PushScene | GuidedScene, names: Sequence[str], period: float, threads: int) -> Simulator:
    if isinstance(scene, GuidedScene):
        return GuidedSimulator(scene, names, period=period, threads=threads)
    return PushSimulator(MujocoEngine(scene, names, threads=threads), period=period)


@dataclass(frozen=True, kw_only=True)
class PushProblem(Problem):
    """Windows of pushes to be explained by MuJoCo."""

    windows: Windows
    simulator: Simulator
    lever: float  #: by which the block's turn counts [m]: its corners' mean distance from its middle
    weight: Array  #: [6] of one instant's numbers
    half: tuple[float, float] = SATURATES  #: [m]
    whiten: Array | None = None  #: [W, R', R'] takes out of a window's numbers what its uncertain start may do

    @classmethod
    def of(
        cls,
        scene: PushScene | GuidedScene,
        windows: Windows,
        parameters: Sequence[Parameter],
        held: Held,
        *,
        threads: int = 0,
    ) -> PushProblem:
        """Compile the engine for these parameters."""
        names = tuple(p.name for p in parameters if p.name != DELAY)
        simulator = _simulator(scene, names, windows.period, threads)
        lever = float(np.linalg.norm(scene.corners, axis=-1).mean())
        return cls(
            parameters=tuple(parameters),
            held=held,
            windows=windows,
            simulator=simulator,
            lever=lever,
            weight=np.ones(DIMENSIONS),
        )

    def some(self, count: int, seed: int) -> PushProblem:
        """The same problem with at most so many of its windows, of as many recordings as there are."""
        w = self.windows
        if len(w) <= count:
            return self
        order = np.random.default_rng([seed, 5]).permutation(len(w))
        first = [int(order[np.flatnonzero(w.recording[order] == n)[0]]) for n in np.unique(w.recording[order])]
        rng_order = [*np.random.default_rng([seed, 6]).permutation(first), *(i for i in order if i not in first)]
        return replace(self, windows=w.some(np.sort(rng_order[:count])), whiten=None)

    def simulate(self, unit: Array) -> Motion:
        """Every window with every point [C, A]: C times W replays in one batch, windows fastest."""
        values = self.values(unit)
        return self._replay(np.tile(np.arange(len(self.windows)), len(values)), values, len(self.windows))

    def simulate_each(self, unit: Array) -> Motion:
        """Every window with the point of its recording [N, A]."""
        values = self.values(unit)[self.windows.recording]
        return self._replay(np.arange(len(self.windows)), values, 1)

    def _replay(self, rows: NDArray[np.int64], values: Array, times: int) -> Motion:
        w = self.windows
        named = {p.name: np.repeat(values[:, i], times) for i, p in enumerate(self.parameters)}

        def replay(some: NDArray[np.int64], periods: int) -> Motion:
            row, own = rows[some], {name: value[some] for name, value in named.items()}
            return self.simulator.replay(w.start[row], w.controls[row, :periods], own, held=w.held[row])

        motion = played(replay, lengths(w)[rows], w.controls.shape[1])
        self.effort.evaluations += len(rows)
        self.effort.failures += int(motion.failed.sum())
        self.effort.engine_seconds += motion.engine_seconds
        return motion

    def offsets(self, motion: Motion) -> Array:
        """Simulated less recorded [C, W, I, 6] [m], instants after the first; NaN where nothing was seen."""
        w = self.windows
        instants = slice(w.every, None, w.every)
        shape = (-1, len(w), w.block.shape[1] - 1)
        place = motion.position[:, instants, 0, :2].reshape(*shape, 2)
        turn = unwrapped_yaw(motion.quaternion[:, instants, 0].reshape(-1, 4)).reshape(shape)
        joints = motion.joint_position[:, instants]
        tip = self.simulator.scene.tool_position(joints.reshape(-1, joints.shape[-1])).reshape(*shape, 3)
        out = np.concatenate(
            [
                place - w.block[:, 1:, :2],
                self.lever * wrap_angle(turn - w.block[:, 1:, 2])[..., None],
                tip - w.tip[:, 1:],
            ],
            axis=-1,
        )
        failed = motion.failed.reshape(-1, len(w))[..., None, None]
        return np.where(failed & np.isfinite(out), FAILED / np.sqrt(DIMENSIONS), out)

    def residuals(self, unit: Array) -> Array:
        """For every recording [C, N, R]: offsets over their weights, shortened where they are large.

        Recordings with fewer windows, and poses that were not seen, leave zeros.
        """
        return self.residuals_of(self.offsets(self.simulate(np.atleast_2d(unit))))

    def residuals_of(self, offsets: Array) -> Array:
        """The `residuals` that such offsets [C, W, I, 6] make."""
        w = self.windows
        off = np.nan_to_num(offsets, nan=0.0)
        for part, half in zip((BLOCK, HAND), self.half, strict=True):
            off[..., part] /= 1 + np.linalg.norm(off[..., part], axis=-1, keepdims=True) / half
        off = (off * self.weight).reshape(len(off), len(w), -1)
        if self.whiten is not None:
            off = np.einsum("wij,cwj->cwi", self.whiten, off)
        most = int(np.bincount(w.recording).max())
        out = np.zeros((len(off), len(w.names), most, off.shape[-1]))
        seen = np.zeros(len(w.names), dtype=np.int64)
        for row, recording in enumerate(w.recording):
            out[:, recording, seen[recording]] = off[:, row]
            seen[recording] += 1
        return out.reshape(len(off), len(w.names), -1)

    def losses(self, unit: Array) -> Array:
        """What a search minimises [C]: logarithms of the block's mean square and of the tool's, added.

        So neither drowns the other, whatever their sizes are (the likelihood of two unknown variances).
        """
        off = self.offsets(self.simulate(np.atleast_2d(unit)))
        parts: list[Array] = []
        for part, half in zip((BLOCK, HAND), SATURATES, strict=True):
            size = np.linalg.norm(off[..., part], axis=-1)
            size = size / (1 + size / half)
            seen = np.isfinite(size)
            mean = np.where(seen, size**2, 0.0).sum(axis=(1, 2)) / np.maximum(seen.sum(axis=(1, 2)), 1)
            parts.append(np.log(mean + FLOOR[len(parts)] ** 2))
        return np.asarray(parts[0] + parts[1])

    def weighed(self, unit: Array) -> PushProblem:
        """The same problem with its numbers in units of what a point [A] leaves over, and alike independent.

        Block and tool each get a weight, but not beyond what is surely not known better (`FLOOR`). A block's start is
        read with an error that a push makes larger: what such errors would do is taken out (generalised least squares).
        """
        plain = replace(self, half=SATURATES, whiten=None, weight=np.ones(DIMENSIONS))
        off = plain.offsets(plain.simulate(unit[None]))[0]
        moved = np.stack([plain._started(unit, k) for k in range(6)], axis=-1)  # [W, I, 6, 6]
        left = off - _made_by_starts(off, moved)
        scales = [max(_size(left[..., k]), floor) for k, floor in zip((BLOCK, HAND), FLOOR, strict=True)]
        half = (min(LARGE * scales[0], SATURATES[0]), min(LARGE * scales[1], SATURATES[1]))
        weight = 1.0 / np.repeat(scales, 3)
        change = np.nan_to_num(moved * weight[:, None]).reshape(len(off), -1, 6)
        spread = np.eye(change.shape[1]) + change @ np.swapaxes(change, 1, 2)
        whiten = np.linalg.inv(np.linalg.cholesky(spread))
        return replace(self, weight=weight, half=half, whiten=whiten)

    def _started(self, unit: Array, k: int) -> Array:
        """What a standard error more of the start's number k (x, y, yaw, their rates) does to offsets [W, I, 6] [m]."""
        w = self.windows
        if not w.unsure[:, k].any():
            return np.zeros((len(w), w.block.shape[1] - 1, DIMENSIONS))
        ends = []
        for sign in (1.0, -1.0):
            step = np.zeros((len(w), 6))
            step[:, k] = sign * w.unsure[:, k]
            other = replace(self, windows=replace(w, start=started(w.start, step)), effort=self.effort)
            ends.append(other.offsets(other.simulate(unit[None]))[0])
        return np.asarray((ends[0] - ends[1]) / 2)


def _size(offsets: Array) -> float:
    """Root mean square [m] of offsets [W, I, 3], of each coordinate, without the largest tenth of the windows."""
    square = np.square(offsets).sum(axis=-1)
    seen = np.isfinite(square)
    each = np.where(seen, square, 0.0).sum(axis=-1) / np.maximum(seen.sum(axis=-1), 1) / 3
    return float(np.sqrt(np.mean(np.sort(each)[: max(int(np.ceil(KEPT * len(each))), 1)])))


def started(start: SceneState, step: Array) -> SceneState:
    """States with the block's x, y, yaw and their rates [W, 6] changed by so much."""
    position, velocity, spin = start.position.copy(), start.velocity.copy(), start.spin.copy()
    position[:, 0, :2] += step[:, :2]
    velocity[:, 0, :2] += step[:, 3:5]
    spin[:, 0, 2] += step[:, 5]
    turn = multiply(about_z(step[:, 2]), start.quaternion[:, 0])
    return replace(start, position=position, velocity=velocity, spin=spin, quaternion=turn[:, None])


def _made_by_starts(off: Array, moved: Array) -> Array:
    """The part of offsets [W, I, 6] that errors of the starts explain best, each as likely as its size says."""
    flat, change = np.nan_to_num(off).reshape(len(off), -1), np.nan_to_num(moved).reshape(len(off), -1, 6)
    noise = max(float(np.median(flat[flat != 0.0] ** 2)) if flat.any() else 0.0, FLOOR[0] ** 2)
    gram = np.swapaxes(change, 1, 2) @ change / noise + np.eye(6)
    found = np.linalg.solve(gram, np.einsum("wrk,wr->wk", change, flat)[..., None] / noise)
    return np.asarray((change @ found)[..., 0].reshape(off.shape))


def parameters_of(scene: PushScene | GuidedScene, names: Sequence[str]) -> tuple[Parameter, ...]:
    """The parameters of these names, with their bounds; refuses those the scene lacks."""
    takes = scene.takes if isinstance(scene, GuidedScene) else (*scene.takes, DELAY)
    for name in names:
        if name not in takes:
            raise CaromError(unknown_name(f"parameter of scene '{scene.name}'", name, takes))
    if not names:
        raise CaromError("every parameter is fixed: nothing is left to identify")
    return tuple(PARAMETERS[name] for name in dict.fromkeys(names))


def held_at(scene: PushScene | GuidedScene, fixed: Mapping[str, float]) -> tuple[Parameter, ...]:
    """The parameters that are held; refuses values out of their bounds."""
    for p in parameters_of(scene, tuple(fixed)) if fixed else ():
        if not p.low <= fixed[p.name] <= p.high:
            raise CaromError(
                f"fixed parameter '{p.name}' must lie from {p.low:g} to {p.high:g} [{p.unit}], got {fixed[p.name]:g}"
            )
    return tuple(PARAMETERS[name] for name in fixed)


def held_values(fixed: Mapping[str, float]) -> Held:
    """Their values, and why they are not looked for."""
    return {name: (float(value), GIVEN) for name, value in fixed.items()}


def given_values(parameters: Sequence[Parameter], start: Mapping[str, float] | None) -> Array | None:
    """A point [A] to begin at, in the unit cube; parameters that are not named begin at their defaults."""
    if start is None:
        return None
    known = {p.name for p in parameters}
    for name, value in start.items():
        if name in PARAMETERS and name not in known:
            continue  # of another search
        if name not in known:
            raise CaromError(unknown_name("parameter", name, known))
        if not np.isfinite(value):
            raise CaromError(f"start: parameter '{name}' must be a finite number, got {value}")
    values = [float(np.clip(start.get(p.name, p.default), p.low, p.high)) for p in parameters]
    return np.array([float(p.to_unit(v)) for p, v in zip(parameters, values, strict=True)])
