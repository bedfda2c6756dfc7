"""Meshes: files, read in one place; the convex solids that they hold; the surfaces of plain shapes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import SceneError
from carom.state import Array

LARGEST = 5.0  #: [m] a mesh that is longer than this is a file in millimetres
SUFFIXES = (".stl", ".obj")
MOST_BYTES = 20_000_000  #: of a mesh file: a binary STL has 400,000 triangles then, and a contact needs hundreds
FARTHEST = 1e6  #: corner of a mesh, in whatever unit the file has
MOST_PARTS = 20  #: of a compound
MOST_CORNERS = 500  #: of an outline: those of a circle are then within 0.002 % of its radius
CONVEX_SHARE = 0.995  #: of its convex hull's volume that a convex mesh fills: the rest is rounding
ROUND_SIDES = 24  #: sides of the polygon that stands for a circle where a body is given as a mesh
_CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2.0
_BOX_FACES = np.array(  # triangles of `_CUBE`, outward
    [
        [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5]],
        [[0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6]],
        [[0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]],
    ]
).reshape(12, 3)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A convex solid as triangles in its body's frame; two meshes are equal only if they are the same object."""

    name: str
    vertices: Array  #: [V, 3] m
    faces: NDArray[np.int64]  #: [F, 3] outward
    volume: float  #: [m^3]
    centroid: Array  #: [3] m
    moments: Array  #: [3, 3] second moments about the centroid, per mass [m^2]


def load_mesh(path: Path) -> Any:
    """A mesh file as a trimesh object, in metres; raises if it cannot be read. Treat it as read-only: it is kept."""
    if not path.is_file():
        raise SceneError(f"mesh file {path} does not exist")
    if path.suffix.lower() not in SUFFIXES:
        raise SceneError(f"mesh file {path}: expected {' or '.join(SUFFIXES)}, got '{path.suffix}'")
    if path.stat().st_size > MOST_BYTES:
        size = path.stat().st_size / 1e6
        raise SceneError(f"mesh file {path} has {size:.0f} MB; expected {MOST_BYTES / 1e6:.0f} at most: simplify it")
    return _loaded(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _loaded(path: Path, changed: int) -> Any:
    import trimesh

    options = {"skip_materials": True} if path.suffix.lower() == ".obj" else {}  # they name other files
    try:
        mesh = trimesh.load_mesh(path, **options)
        vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces)
    except Exception as error:  # trimesh raises whatever its many parsers raise
        raise SceneError(f"mesh file {path} cannot be read: {' '.join(str(error).split()):.200}") from error
    if not len(vertices) or not len(faces):
        raise SceneError(f"mesh file {path} holds no triangles")
    if not (np.abs(vertices) <= FARTHEST).all():  # nor is NaN
        raise SceneError(f"mesh file {path}: expected finite corners within {FARTHEST:g} of the origin")
    return mesh


def convex_mesh(path: Path, *, name: str = "", centred: bool = False) -> Mesh:
    """The solid in a mesh file; raises unless it is closed and convex. `centred`: its centroid becomes the origin."""
    mesh = load_mesh(path)
    longest = float(np.ptp(np.asarray(mesh.vertices), axis=0).max())
    if longest > LARGEST:
        raise SceneError(
            f"mesh {path} is {longest:g} m long; meshes are in metres: scale it, from millimetres by 0.001"
        )
    try:
        hull = mesh.convex_hull
    except Exception as error:  # trimesh and qhull raise whatever they like for a flat or broken mesh
        raise SceneError(f"mesh {path} encloses no volume: {str(error).splitlines()[0]}") from error
    if not mesh.is_watertight:
        raise SceneError(f"mesh {path} is not closed, so that it cannot be told whether it is convex; repair it first")
    share = abs(float(mesh.volume)) / float(hull.volume)
    if share < CONVEX_SHARE:
        raise SceneError(
            f"mesh {path} is not convex: it fills {100 * share:.0f} % of its convex hull; split it into convex parts, "
            "e.g. by coacd (pip install 'carom[mesh]'), and give those"
        )
    return solid_mesh(name or path.stem, hull, centred=centred)


def solid_mesh(name: str, mesh: Any, *, centred: bool = False) -> Mesh:
    """The solid that a closed trimesh object encloses."""
    centroid = np.asarray(mesh.center_mass, dtype=float)
    origin = centroid if centred else np.zeros(3)
    return Mesh(
        name,
        np.asarray(mesh.vertices, dtype=float) - origin,
        np.asarray(mesh.faces, dtype=np.int64),
        float(mesh.volume),
        centroid - origin,
        moments_from(np.asarray(mesh.moment_inertia) / float(mesh.volume), 1.0),
    )


def surface_of(kind: str, extent: Array) -> tuple[Array, NDArray[np.int64]]:
    """Vertices [V, 3] m and triangles [F, 3], outward, of a box, sphere, cylinder or disc of full lengths [3]."""
    if kind == "box":
        return _CUBE * extent, _BOX_FACES
    import trimesh

    if kind == "sphere":
        made = trimesh.creation.icosphere(subdivisions=2, radius=extent[0] / 2)
    elif kind in ("cylinder", "disc"):
        made = trimesh.creation.cylinder(radius=extent[0] / 2, height=extent[2], sections=ROUND_SIDES)
    else:
        raise SceneError(f"expected a box, sphere, cylinder or disc to make a surface of, got {kind}")
    return np.asarray(made.vertices, dtype=np.float64), np.asarray(made.faces, dtype=np.int64)


def moments_from(inertia: Array, mass: float) -> Array:
    """Second moments per mass [3, 3] [m^2] of an inertia [3, 3]; none is negative."""
    moments = (np.trace(inertia) / 2 * np.eye(3) - inertia) / mass
    np.fill_diagonal(moments, np.maximum(np.diag(moments), 0.0))
    return np.asarray(moments)


def inertia_from(moments: Array, mass: float) -> Array:
    """Inertia [3, 3] [kg m^2] of second moments per mass [3, 3] [m^2]."""
    return np.asarray(mass * (np.trace(moments) * np.eye(3) - moments))


def hull_outline(points: Array) -> tuple[tuple[float, float], ...]:
    """Convex outline of points [n, 2], counter-clockwise; of very many corners those that reach farthest all round."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = points[ConvexHull(points).vertices]
    except (QhullError, ValueError) as error:
        raise SceneError("seen from above it encloses no area: its corners lie on a line") from error
    if len(corners) > MOST_CORNERS:
        angle = np.linspace(0, 2 * np.pi, MOST_CORNERS, endpoint=False)
        farthest = np.argmax(corners @ np.stack([np.cos(angle), np.sin(angle)]), axis=0)
        corners = corners[np.unique(farthest)]
    return tuple((float(x), float(y)) for x, y in corners)
