"""Bodies like a given one: of other size, aspect and mass, or with identified parameters written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from carom.core.errors import SceneError
from carom.scenes.mesh_files import convex_mesh, inertia_from
from carom.scenes.shapes import Body, Shape, six_of
from carom.state import Array

DENSITY = 370.0  #: [kg/m^3] of a mesh whose mass nobody states: that of the tossed acrylic cube
FACTORS = (0.01, 100.0)  #: within which sizes and densities may differ
MOST_ASPECT = 10.0


@dataclass(frozen=True)
class Variation:
    """How far bodies differ from the given ones; factors are drawn evenly on a logarithmic scale."""

    size: tuple[float, float] = (0.7, 1.4)  #: of all lengths
    aspect: float = 1.25  #: each length once more by up to this factor, up or down
    mass: tuple[float, float] = (0.5, 2.0)  #: of the mass that the new volume would have

    def __post_init__(self) -> None:
        for what, (low, high) in (("size", self.size), ("mass", self.mass)):
            if not FACTORS[0] <= low <= high <= FACTORS[1]:
                expected = f"two factors from {FACTORS[0]:g} to {FACTORS[1]:g}, lower first"
                raise SceneError(f"--{what}: expected {expected}, got {low:g} {high:g}")
        if not 1 <= self.aspect <= MOST_ASPECT:
            raise SceneError(f"--aspect: expected a factor from 1 to {MOST_ASPECT:g}, got {self.aspect:g}")

    def stretch(self, kind: str, rng: np.random.Generator) -> Array:
        """Factors [3] of a body's lengths: a sphere stays a sphere, a cylinder round."""
        whole = _log_uniform(self.size, rng)
        each = [_log_uniform((1 / self.aspect, self.aspect), rng) for _ in range(3)]
        if kind == "sphere":
            return np.full(3, whole)
        return whole * np.array([each[0], each[0] if kind == "cylinder" else each[1], each[2]])

    def mass_factor(self, rng: np.random.Generator) -> float:
        """Factor of the mass that the body's volume would have."""
        return _log_uniform(self.mass, rng)


def _log_uniform(bounds: tuple[float, float], rng: np.random.Generator) -> float:
    low, high = np.log(bounds[0]), np.log(bounds[1])
    return float(np.exp(low + rng.random() * (high - low)))


def stretched(body: Body, stretch: Array, mass_factor: float = 1.0) -> Body:
    """The body with its lengths multiplied by factors [3] and its density by another."""
    mass = float(body.mass or 0.0) * float(np.prod(stretch)) * mass_factor
    inertia = inertia_from(body.moments * np.outer(stretch, stretch), mass)
    com = _three(body.centre * stretch)
    return replace(body, shape=body.solid.stretched(stretch), mass=mass, inertia=six_of(inertia), com=com)


def calibrated_body(body: Body, values: Mapping[str, float], side: Array) -> Body:
    """The body with the parameters that belong to it written in; `side` [3] is where a `com_offset` points."""
    scale, heavier = float(values.get("length_scale", 1.0)), float(values.get("mass_scale", 1.0))
    com = body.centre * scale + [float(values.get(f"com_{axis}", 0.0)) for axis in "xyz"]
    inertia = np.array(body.solid_inertia) * heavier * scale**2 * float(values.get("inertia_scale", 1.0))
    return replace(
        body,
        shape=body.solid.stretched(np.full(3, scale)),
        mass=float(body.mass or 0.0) * heavier,
        com=_three(com + float(values.get("com_offset", 0.0)) * side),
        inertia=tuple(inertia.tolist()),
    )


def _three(values: Array) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return x, y, z


def solid_body(body: Body, *, ending: str = "") -> Body:
    """A body as others like it are made from: a box, sphere, cylinder or convex mesh in memory, with a mass.

    Meshes are listed by name: `ending` is added to the names of meshes, to tell those of several groups apart.
    """
    if body.shape is None or not body.mass:
        raise SceneError(f"body '{body.name}' needs a shape and a mass to make others like it")
    shape = body.shape
    if shape.kind == "mesh" and shape.mesh is None:
        name = body.name + ending
        return replace(body, name=name, shape=Shape("mesh", mesh=convex_mesh(Path(str(shape.file)), name=name)))
    if shape.kind == "disc":
        shape = replace(shape, kind="cylinder", height=shape.full_height)
    return replace(body, shape=shape)


def mesh_solid(path: Path, *, density: float = DENSITY) -> Body:
    """A body of even density in the shape of a convex mesh file, with its frame at its centre of mass."""
    mesh = convex_mesh(path, centred=True)
    return Body(path.stem, "target", Shape("mesh", mesh=mesh), density * mesh.volume)
