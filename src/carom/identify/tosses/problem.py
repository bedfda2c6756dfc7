"""The fit behind an identification from whole trajectories: which parameters, which recordings, which error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from carom.core.rotations import to_scipy
from carom.engines.mujoco.engine import Keep
from carom.identify.problem import GIVEN, Problem
from carom.identify.tosses.recorded import Motions, frame_errors
from carom.identify.tosses.sides import SIDES
from carom.identify.tosses.simulate import Sampled, Starts
from carom.scenes.free import FreeScene
from carom.scenes.parameters import FREE, Parameter
from carom.state import Array, Motion

SATURATES = 1.0  #: error of a frame (widths plus radians) at which it counts half: chaos beyond tells nothing
TURNED = 0.3  #: [rad] the same for the angle alone: beyond it lies another face
FAILED = 10.0  #: error of a rollout that the engine gave up
SHORT = 0.1  #: [s] after the first contact in which errors have not grown yet
PIECES = 4  #: stretches of time over which residuals are averaged
GOES_ON = 0.5  #: share of candidates that are simulated to the end


@dataclass(frozen=True, kw_only=True)
class MotionProblem(Problem):
    """Whole recordings to be explained by MuJoCo. Parameters that are looked for come first, held ones after them."""

    motions: Motions
    engine: Sampled

    @classmethod
    def of(
        cls, motions: Motions, parameters: Sequence[Parameter], held: Mapping[str, float], *, threads: int = 0
    ) -> MotionProblem:
        """Compile the engine for these parameters, `held` ones at a value."""
        written = (*parameters, *(FREE[name] for name in held))
        names = tuple(p.name for p in written)
        engine = Sampled.in_mujoco(motions.scene, names, period=motions.period, threads=threads)
        given = {name: (value, GIVEN) for name, value in held.items()}
        return cls(parameters=written, held=given, motions=motions, engine=engine)

    def holding(self, name: str, value: float) -> MotionProblem:
        """The same problem with a held parameter at another value."""
        return replace(self, held={**self.held, name: (value, self.held[name][1])})

    @property
    def scene(self) -> FreeScene:
        """What is simulated."""
        return self.motions.scene

    @property
    def short(self) -> int:
        """Samples of a short look: until shortly after the first contact."""
        return min(4 + round(SHORT / self.motions.period), self.motions.samples)

    def simulate(self, unit: Array, *, samples: int | None = None, keep: Keep | None = None) -> Motion:
        """Every recording with every point [C, A]: C times N rollouts in one batch, recordings fastest."""
        values = self.values(unit)
        count = len(self.motions)
        samples = self.motions.samples if samples is None else samples
        starts = self.motions.starts[np.tile(np.arange(count), len(values))]
        return self._run(starts, np.repeat(values, count, axis=0), samples, keep)

    def simulate_each(self, unit: Array) -> Motion:
        """Every recording [N] with a point of its own [N, A]."""
        return self._run(self.motions.starts, self.values(unit), self.motions.samples)

    def simulate_from(self, starts: Starts, unit: Array) -> Motion:
        """The first moments from other starts [C times N], recordings fastest, with one point [A]."""
        return self._run(starts, self.values(unit), self.short)

    def _run(self, starts: Starts, values: Array, samples: int, keep: Keep | None = None) -> Motion:
        named = {p.name: values[:, i] for i, p in enumerate(self.parameters)}
        motion = self.engine.simulate(starts, named, samples, keep=keep)
        self.effort.evaluations += len(starts)
        self.effort.failures += int(motion.failed.sum())
        self.effort.engine_seconds += motion.engine_seconds
        return motion

    def losses(self, unit: Array, *, short: bool = False, early: bool = False) -> Array:
        """What is minimised, for every point [C].

        With `short`, the mean saturated error until shortly after the first contact. Otherwise the geometric mean of
        position and rotation error of whole recordings, so that neither drowns the other: after some bounces a body
        lands on this side or on that, while how far it slides still tells about friction. With `early`, poor points
        are stopped on the way and count by how wrong it is to stand still from there.
        """
        unit = np.atleast_2d(unit)
        if short:
            return np.asarray(self.errors(self.simulate(unit, samples=self.short)).mean(axis=-1))
        keep = self._keep(len(unit)) if early and len(unit) > 3 else None
        position, rotation = self.whole(self.simulate(unit, keep=keep))
        return np.asarray(np.where(rotation > 0, np.sqrt(position * rotation), position))

    def whole(self, motion: Motion) -> tuple[Array, Array]:
        """Mean over recordings [C] of the distance over the width, and of the saturated angle (0: never measured)."""
        distance, angle = frame_errors(self.motions, motion)
        angle = angle / (1 + angle / TURNED)
        found = []
        for error in (distance / self.scene.widths, angle):
            seen = np.isfinite(error)
            mean = np.where(seen, error, 0.0).sum(axis=(-1, -2)) / np.maximum(seen.sum(axis=(-1, -2)), 1)
            found.append(np.where(motion.failed.reshape(mean.shape), FAILED, mean).mean(axis=-1))
        return found[0], found[1] if np.isfinite(self.motions.quaternion).any() else np.zeros_like(found[1])

    def errors(self, motion: Motion) -> Array:
        """Mean saturated error of every rollout [C, N]."""
        motions = self.motions.until(motion.position.shape[1])
        distance, angle = frame_errors(motions, motion)
        # a body whose orientation was not measured counts by its position alone
        error = distance / motions.scene.widths + np.where(np.isfinite(angle), angle, 0.0)
        seen = np.isfinite(error)
        error = np.where(seen, error / (1 + error / SATURATES), 0.0)
        mean = error.sum(axis=(-1, -2)) / np.maximum(seen.sum(axis=(-1, -2)), 1)
        return np.where(motion.failed.reshape(mean.shape), FAILED, mean)

    def _keep(self, points: int) -> Keep:
        """Go on with the better half of the points, judged by a third of the way."""
        sample = min(max(self.motions.samples // 3, self.short), self.motions.samples - 1)
        count = len(self.motions)

        def choose(position: Array, quaternion: Array) -> np.ndarray:
            seen = Motion.of([b.name for b in self.scene.bodies], self.motions.period, position, quaternion)
            loss = self.errors(seen).mean(axis=-1)
            best = np.argsort(loss)[: max(int(np.ceil(GOES_ON * points)), 2)]
            return np.repeat(np.isin(np.arange(points), best), count)

        return Keep(sample, choose)

    def residuals(self, unit: Array, *, short: bool = False) -> Array:
        """Numbers whose squares add up to what `losses` weighs, for every recording [C, N, R].

        Position over width and rotation vector, each frame's six shortened as one where they are large, averaged over
        `PIECES` stretches of the first moments and (unless `short`) of the whole: neighbouring frames err alike, and
        counting each would feign certainty.
        """
        return self.residuals_of(self.simulate(unit, samples=self.short if short else None))

    def residuals_of(self, motion: Motion) -> Array:
        """The `residuals` of motions [C times N], those of the first moments alone if the motions are short."""
        count, bodies = len(self.motions), len(self.scene.bodies)
        samples = motion.position.shape[1]
        turned = motion.quaternion.reshape(-1, count, samples, bodies, 4)
        offset = motion.position.reshape(-1, count, samples, bodies, 3) - self.motions.position[:, :samples]
        rotation = rotation_vectors(turned, np.broadcast_to(self.motions.quaternion[:, :samples], turned.shape))
        six = np.concatenate([offset / self.scene.widths[:, None], rotation], axis=-1)
        seen = np.isfinite(six)
        six = np.where(seen, six, 0.0)
        six = six / (1 + np.linalg.norm(six, axis=-1, keepdims=True) / SATURATES)
        pieces = []
        for last in dict.fromkeys((self.short, samples)):
            for part in np.array_split(np.arange(1, last), PIECES):
                total, number = six[:, :, part].sum(axis=2), seen[:, :, part].sum(axis=2)
                pieces.append(total / np.maximum(number, 1))
        out = np.stack(pieces, axis=2).reshape(len(six), count, -1)
        return np.where(motion.failed.reshape(-1, count, 1), FAILED, out)

    def best_sides(self, unit: Array) -> tuple[Array, Array]:
        """The side [N] that explains each recording best with one point [A], and all short errors [6, N]."""
        count = len(self.motions)
        starts = self.motions.starts[np.tile(np.arange(count), len(SIDES))]
        starts = replace(starts, side=np.repeat(SIDES, count, axis=0))
        errors = self.errors(self.simulate_from(starts, unit))
        return np.argmin(errors, axis=0), errors

    def with_sides(self, sides: Array) -> MotionProblem:
        """The same problem with these sides [N] of the mass."""
        motions = self.motions.with_sides(SIDES[np.asarray(sides, dtype=int)])
        return replace(self, motions=motions)


def rotation_vectors(one: Array, other: Array) -> Array:
    """Rotation vectors [..., 3] that turn the second quaternions [..., 4] into the first; NaN stays NaN."""
    flat, against = one.reshape(-1, 4), other.reshape(-1, 4)
    good = np.isfinite(flat).all(axis=-1) & np.isfinite(against).all(axis=-1)
    out = np.full((len(flat), 3), np.nan)
    if good.any():
        out[good] = (to_scipy(flat[good]) * to_scipy(against[good]).inv()).as_rotvec()
    return out.reshape(*one.shape[:-1], 3)
