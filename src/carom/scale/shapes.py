"""The built-in `shapes`: convex solids of many kinds, tossed onto the ground and onto each other."""

from __future__ import annotations

import numpy as np

from carom.scale.sources import MOST_BODIES, PILE, Dropped, checked_bodies, sampling
from carom.scenes.mesh_files import solid_mesh
from carom.scenes.shapes import Body, Shape
from carom.scenes.solids import DENSITY
from carom.state import Array

WIDTH = 0.09  #: [m] of the solids, before they are varied
PRISMS = (5, 7, 8)  #: sides; triangles and hexagons are left to try what was learned on
UNEVEN = (4, 4, 5, 5, 7, 7, 8, 9)  #: sides of prisms whose corners lie anywhere on a circle
HULLS = 24  #: of random points
ROUND = 7  #: sides of the arc of a half cylinder
_SEED = 20_240  #: of the random hulls: they are the same in every data set


def shapes(
    *, bodies: tuple[int, int] | None = None, rate: float | None = None, duration: float | None = None
) -> Dropped:
    """A box, prisms, a half cylinder, a frustum and hulls of random points; how many fall together varies."""
    found = checked_bodies(bodies or PILE, MOST_BODIES)
    return Dropped("shapes", solids(), *sampling(rate, duration, seconds=1.0), bodies=found)


def solids() -> tuple[Body, ...]:
    """The solids, each about `WIDTH` wide and of even density, with its frame at its centre of mass."""
    rng = np.random.default_rng(_SEED)
    half = np.linspace(0.0, np.pi, ROUND + 1)
    points = {f"prism_{n}": _prism(_polygon(n)) for n in PRISMS}
    points["half_cylinder"] = _prism(np.stack([np.cos(half), np.sin(half)], axis=-1))
    square = _polygon(4)
    points["frustum"] = np.concatenate([np.c_[square, np.full(4, -0.7)], np.c_[0.6 * square, np.full(4, 0.7)]])
    for number, sides in enumerate(UNEVEN):
        points[f"uneven_{number}"] = _prism(_uneven(sides, rng), half=rng.uniform(0.3, 1.2))
    for number in range(HULLS):
        found = rng.normal(size=(int(rng.integers(6, 12)), 3))
        points[f"hull_{number}"] = found / np.linalg.norm(found, axis=-1, keepdims=True)
    box = Body("box", "target", Shape("box", size=(WIDTH,) * 3), DENSITY * WIDTH**3)
    return (box, *(_solid(name, corners) for name, corners in points.items()))


def _solid(name: str, points: Array) -> Body:
    import trimesh

    points = points * WIDTH / np.ptp(points, axis=0).mean()
    mesh = solid_mesh(name, trimesh.convex.convex_hull(points), centred=True)
    return Body(name, "target", Shape("mesh", mesh=mesh), DENSITY * mesh.volume)


def _polygon(sides: int) -> Array:
    angle = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _uneven(sides: int, rng: np.random.Generator) -> Array:
    """Corners on a circle: steps from one to the next differ by up to a factor of three."""
    step = rng.uniform(0.5, 1.5, sides)
    angle = 2 * np.pi * np.cumsum(step) / step.sum()
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _prism(outline: Array, *, half: float = 0.8) -> Array:
    return np.concatenate([np.c_[outline, np.full(len(outline), z)] for z in (-half, half)])
