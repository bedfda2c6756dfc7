"""The fit behind tuning with pushes (Eq. 2 of the real-sim-real paper): windows played again, parameters per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError, unknown_name
from carom.core.rotations import unwrapped_yaw
from carom.engines.mujoco.engine import MujocoEngine
from carom.engines.pushing import DELAY, PushSimulator
from carom.identify.problem import Held, Problem
from carom.identify.pushes.windows import Windows
from carom.scenes.parameters import PARAMETERS, Parameter
from carom.scenes.pushing import PushScene
from carom.state import Array, Motion, wrap_angle

#: [m] off the recorded place at which an instant of block and tool counts half: beyond, another story is told
SATURATES = (0.03, 0.01)
LARGE = 10.0  #: typical offsets at which it counts half once it is known what a fit leaves over
TOOL = 20.0  #: weight of the tool's offsets before it is known what a fit leaves over: joints are measured better
FAILED = 0.1  #: [m] off, of a replay that the engine gave up
USUAL = (
    "ground_friction",
    "striker_friction",
    "mass_scale",
    "joint_friction",
    "tool_offset_x",
    "tool_offset_y",
    DELAY,
)  #: what is looked for where nobody says
DIMENSIONS = 6  #: of one instant, all in m:
BLOCK, HAND = slice(0, 3), slice(3, 6)  #: the block's x, y and turn, the tool's x, y, z


@dataclass(frozen=True, kw_only=True)
class PushProblem(Problem):
    """Windows of pushes to be explained by MuJoCo."""

    windows: Windows
    simulator: PushSimulator
    lever: float  #: by which the block's turn counts [m]: its corners' mean distance from its middle
    weight: Array  #: [6] of one instant's numbers
    half: tuple[float, float] = SATURATES  #: [m]

    @classmethod
    def of(
        cls, scene: PushScene, windows: Windows, parameters: Sequence[Parameter], held: Held, *, threads: int = 0
    ) -> PushProblem:
        """Compile the engine for these parameters."""
        names = tuple(p.name for p in parameters if p.name != DELAY)
        simulator = PushSimulator(MujocoEngine(scene, names, threads=threads), period=windows.period)
        lever = float(np.linalg.norm(scene.corners, axis=-1).mean())
        return cls(
            parameters=tuple(parameters),
            held=held,
            windows=windows,
            simulator=simulator,
            lever=lever,
            weight=np.repeat([1.0, TOOL], 3),
        )

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
        motion = self.simulator.replay(w.start[rows], w.controls[rows], named, held=w.held[rows])
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
        most = int(np.bincount(w.recording).max())
        out = np.zeros((len(off), len(w.names), most, off.shape[-1]))
        seen = np.zeros(len(w.names), dtype=np.int64)
        for row, recording in enumerate(w.recording):
            out[:, recording, seen[recording]] = off[:, row]
            seen[recording] += 1
        return out.reshape(len(off), len(w.names), -1)

    def losses(self, unit: Array) -> Array:
        """Mean square of what `residuals` gives [C]."""
        found = self.residuals(unit)
        return np.asarray((found**2).sum(axis=(-1, -2)) / np.isfinite(self.windows.block[:, 1:]).sum())

    def weighed(self, unit: Array, floor: tuple[float, float]) -> PushProblem:
        """The same problem with block and tool each counted in units of what a point [A] leaves over.

        The least are what is surely not known better: `floor` [m], of the block and of the tool.
        """
        off = self.offsets(self.simulate(unit[None]))[0]
        block, tool = (float(np.sqrt(np.nanmedian(np.square(off[..., k]).sum(axis=-1)) / 3)) for k in (BLOCK, HAND))
        scales = (max(block, floor[0]), max(tool, floor[1]))
        half = (min(LARGE * scales[0], SATURATES[0]), min(LARGE * scales[1], SATURATES[1]))
        return replace(self, weight=1.0 / np.repeat(scales, 3), half=half)


def parameters_of(scene: PushScene, names: Sequence[str] | None) -> tuple[Parameter, ...]:
    """The parameters of these names (None: the usual ones), with their bounds; refuses those the scene lacks."""
    takes = (*scene.takes, DELAY)
    for name in names or ():
        if name not in takes:
            raise CaromError(unknown_name(f"parameter of scene '{scene.name}'", name, takes))
    if names is not None and not names:
        raise CaromError("parameters: expected at least one name, got none")
    return tuple(PARAMETERS[name] for name in (dict.fromkeys(names) if names is not None else USUAL))


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
