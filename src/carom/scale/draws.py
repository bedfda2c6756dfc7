"""What one trajectory starts from: bodies, their states, parameters; drawn in the ground's own frame, then placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from carom.core.rotations import matrices, multiply, of_tilt
from carom.scenes.shapes import Body, Shape
from carom.scenes.solids import Variation, calibrated_body, stretched
from carom.state import Array

VARIANTS = 24  #: of each mesh in one shard: compiled once, shared by the shard's trajectories


@dataclass(frozen=True, eq=False)
class Draw:
    """Bodies and their states at the start; velocities of the frames, all in the world."""

    bodies: tuple[Body, ...]
    position: Array  #: [B, 3] m
    quaternion: Array  #: [B, 4]
    velocity: Array  #: [B, 3] m/s
    spin: Array  #: [B, 3] rad/s
    source: str  #: the scene, or the recording that it was drawn around
    overlap: bool = False  #: no start without overlap was found

    @property
    def kinds(self) -> tuple[str, ...]:
        """Shapes of the bodies: trajectories with the same ones run in one batch."""
        return tuple(b.solid.kind for b in self.bodies)


@dataclass(frozen=True, eq=False)
class Pool:
    """The stretched meshes of one shard: the engine compiles them once and each body takes one."""

    templates: tuple[Body, ...]  #: whose meshes they are
    stretch: Array  #: [K, 3]
    scale: tuple[float, ...]  #: [K] `length_scale` of each

    @classmethod
    def drawn(
        cls, templates: Sequence[Body], variation: Variation, scale: Sequence[float], seed: tuple[int, ...]
    ) -> Pool:
        """`VARIANTS` of each mesh among the templates, which have these scales."""
        rng = np.random.default_rng(np.random.SeedSequence(seed[0], spawn_key=seed[1:]))
        both = zip(templates, scale, strict=True)
        meshes = [(t, s) for t, s in both if t.solid.kind == "mesh" for _ in range(VARIANTS)]
        stretch = [variation.stretch("mesh", rng) for _ in meshes]
        return cls(tuple(t for t, _ in meshes), np.array(stretch).reshape(-1, 3), tuple(s for _, s in meshes))

    def shapes(self) -> tuple[Shape, ...]:
        """The stretched meshes."""
        return tuple(
            template.solid.stretched(stretch).stretched(np.full(3, scale))
            for template, stretch, scale in zip(self.templates, self.stretch, self.scale, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes the bodies of trajectories: like the templates, but varied and with the calibrated mass properties."""

    variation: Variation
    pool: Pool
    values: Mapping[str, float]  #: of the trajectory's parameters

    def make(self, template: Body, rng: np.random.Generator, *, name: str = "") -> Body:
        """A body like the template."""
        if template.solid.kind != "mesh":
            stretch = self.variation.stretch(template.solid.kind, rng)
        else:
            of_it = [k for k, t in enumerate(self.pool.templates) if t is template]
            stretch = self.pool.stretch[of_it[int(rng.integers(len(of_it)))]]
        body = stretched(template, stretch, self.variation.mass_factor(rng))
        return replace(calibrated_body(body, self.values, random_side(rng)), name=name or template.name)


def random_side(rng: np.random.Generator) -> Array:
    """One of the six directions along a body's axes [3]."""
    side = np.zeros(3)
    side[rng.integers(3)] = rng.choice([-1.0, 1.0])
    return side


def lean(values: Mapping[str, float]) -> Array:
    """Quaternion [4] of the ground, as the engine has it."""
    return of_tilt(values.get("tilt_x", 0.0), values.get("tilt_y", 0.0))


def turned(draw: Draw, quaternion: Array, height: float = 0.0) -> Draw:
    """The draw as a whole, turned about the origin and then lifted [m]."""
    rotation = matrices(quaternion)
    return replace(
        draw,
        position=draw.position @ rotation.T + [0.0, 0.0, height],
        quaternion=multiply(quaternion, draw.quaternion),
        velocity=draw.velocity @ rotation.T,
        spin=draw.spin @ rotation.T,
    )


def below(body: Body, rotation: Array) -> float:
    """How far the lowest point is under the frame's origin [m], turned by a matrix [3, 3], world from body."""
    return float(body.solid.support(-rotation[2:])[0])


def apart(bodies: tuple[Body, ...], position: Array, quaternion: Array, *, planar: bool) -> bool:
    """Whether no two bodies overlap: some direction separates each pair. May say no to a pair that only nearly does."""
    shapes = [b.solid for b in bodies]
    frames = matrices(quaternion)
    for a in range(len(shapes)):
        for b in range(a + 1, len(shapes)):
            line = position[b] - position[a]
            if planar:
                line = line * [1.0, 1.0, 0.0]
            distance = float(np.linalg.norm(line))
            if distance > shapes[a].reach + shapes[b].reach:
                continue
            axes = np.concatenate([frames[a].T, -frames[a].T, frames[b].T, -frames[b].T, [line / max(distance, 1e-9)]])
            if planar:
                axes = axes * [1.0, 1.0, 0.0]
                axes = axes[np.linalg.norm(axes, axis=-1) > 0.5]
            far = shapes[a].support(axes @ frames[a]) + shapes[b].support(-axes @ frames[b])
            if (axes @ line - far).max() < 0:
                return False
    return True
