"""What one trajectory starts from: bodies, their states, parameters; drawn in the ground's own frame, then placed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from carom.core.rotations import matrices, multiply, of_tilt
from carom.scenes.solids import Solid, Template, Variation, solid_of
from carom.state import Array

VARIANTS = 24  #: of each mesh in one shard: compiled once, shared by the shard's trajectories


@dataclass(frozen=True, eq=False)
class Draw:
    """Bodies and their states at the start; velocities of the frames, all in the world."""

    solids: tuple[Solid, ...]
    position: Array  #: [B, 3] m
    quaternion: Array  #: [B, 4]
    velocity: Array  #: [B, 3] m/s
    spin: Array  #: [B, 3] rad/s
    source: str  #: the scene, or the recording that it was drawn around
    overlap: bool = False  #: no start without overlap was found

    @property
    def kinds(self) -> tuple[str, ...]:
        """Shapes of the bodies: trajectories with the same ones run in one batch."""
        return tuple(s.kind for s in self.solids)


@dataclass(frozen=True, eq=False)
class Pool:
    """The stretched meshes of one shard: the engine compiles them once and each body takes one."""

    templates: tuple[Template, ...]  #: whose meshes they are
    stretch: Array  #: [K, 3]
    scale: float = 1.0  #: `length_scale`, the same for all

    @classmethod
    def drawn(cls, templates: tuple[Template, ...], variation: Variation, scale: float, seed: tuple[int, ...]) -> Pool:
        """`VARIANTS` of each mesh among the templates."""
        rng = np.random.default_rng(np.random.SeedSequence(seed[0], spawn_key=seed[1:]))
        meshes = [t for t in templates if t.kind == "mesh" for _ in range(VARIANTS)]
        stretch = [variation.stretch("mesh", rng) for _ in meshes]
        return cls(tuple(meshes), np.array(stretch).reshape(-1, 3), scale)

    def vertices(self) -> list[Array]:
        """Of each stretched mesh [V, 3] [m]."""
        found = []
        for template, stretch in zip(self.templates, self.stretch, strict=True):
            if template.vertices is not None:
                found.append(template.vertices * stretch * self.scale)
        return found


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes the bodies of trajectories: from templates, varied, with the calibrated mass properties."""

    variation: Variation
    pool: Pool
    values: Mapping[str, float]  #: of the trajectory's parameters

    def make(self, template: Template, rng: np.random.Generator, *, name: str = "") -> Solid:
        """A body like the template."""
        if template.kind != "mesh":
            stretch, variant = self.variation.stretch(template.kind, rng), -1
        else:
            of_it = [k for k, t in enumerate(self.pool.templates) if t is template]
            variant = of_it[int(rng.integers(len(of_it)))]
            stretch = self.pool.stretch[variant]
        solid = solid_of(template, stretch, self.variation.mass_factor(rng), name=name, variant=variant)
        return calibrated_solid(solid, self.values, random_side(rng))


def calibrated_solid(solid: Solid, values: Mapping[str, float], side: Array) -> Solid:
    """The body with the parameters that belong to it written in; `side` [3] is where a `com_offset` points."""
    scale = values.get("length_scale", 1.0)
    heavier = values.get("mass_scale", 1.0)
    com = solid.com * scale + [values.get(f"com_{axis}", 0.0) for axis in "xyz"]
    return replace(
        solid,
        size=solid.size * scale,
        mass=solid.mass * heavier,
        com=com + values.get("com_offset", 0.0) * side,
        inertia=solid.inertia * heavier * scale**2 * values.get("inertia_scale", 1.0),
    )


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


def apart(solids: tuple[Solid, ...], position: Array, quaternion: Array, *, planar: bool) -> bool:
    """Whether no two bodies overlap: some direction separates each pair. May say no to a pair that only nearly does."""
    reach = [s.radius for s in solids]
    frames = matrices(quaternion)
    for a in range(len(solids)):
        for b in range(a + 1, len(solids)):
            line = position[b] - position[a]
            if planar:
                line = line * [1.0, 1.0, 0.0]
            distance = float(np.linalg.norm(line))
            if distance > reach[a] + reach[b]:
                continue
            axes = np.concatenate([frames[a].T, -frames[a].T, frames[b].T, -frames[b].T, [line / max(distance, 1e-9)]])
            if planar:
                axes = axes * [1.0, 1.0, 0.0]
                axes = axes[np.linalg.norm(axes, axis=-1) > 0.5]
            far = _support(solids[a], frames[a], axes) + _support(solids[b], frames[b], -axes)
            if (axes @ line - far).max() < 0:
                return False
    return True


def _support(solid: Solid, rotation: Array, axes: Array) -> Array:
    """How far a body reaches along directions [A, 3] in the world, from its frame's origin [A] [m]."""
    local = axes @ rotation
    if solid.kind == "sphere":
        return np.asarray(solid.size[0] / 2 * np.linalg.norm(axes, axis=-1))
    if solid.kind == "cylinder":
        across = np.linalg.norm(local[:, :2], axis=-1)
        return np.asarray(across * solid.size[0] / 2 + np.abs(local[:, 2]) * solid.size[2] / 2)
    return np.asarray((local @ solid.corners.T).max(axis=-1))
