"""Targets given as a mesh: their mass properties, their view from above, and what to do when that is not convex.

A strike sees a target from above: only its outline there must be convex. A cup, or a block with a hollow
underside, is fine; a hook is not, and is struck on one of its convex parts or refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from carom.core.errors import SceneError
from carom.scenes.mesh_files import LARGEST, SUFFIXES, hull_outline, load_mesh
from carom.scenes.shapes import Body, Shape, polygon_properties
from carom.state import Array

MESH_SUFFIXES = SUFFIXES
CONVEX_SHARE = 0.98  #: of the hull's area, seen from above, that a convex target fills: the rest is rounding
PIXELS = 256  #: along each side of the picture in which the view from above is measured
PART_THRESHOLD = 0.05  #: concavity that coacd leaves in a part: its own default


def mesh_body(
    path: Path,
    *,
    name: str = "target",
    mass: float | None = None,
    scale: float = 1.0,
    part: int | None = None,
    inertia: tuple[float, ...] | None = None,
    com: tuple[float, float, float] | None = None,
) -> Body:
    """A target from an STL or OBJ file, as the extrusion of its outline seen from above.

    Mass properties that are not given are those of the whole solid, of even density, if the mesh is closed;
    `part` picks the convex part (1 is the largest) that is struck of a mesh that is not convex.
    """
    mesh = load_mesh(path)
    vertices, faces = np.asarray(mesh.vertices, dtype=float) * scale, np.asarray(mesh.faces)
    extent = np.ptp(vertices, axis=0)
    if extent.max() > LARGEST:
        raise SceneError(
            f"mesh {path.name} is {extent.max():g} m long; "
            f"if the file is in millimetres, add 'scale: {0.001 * scale:g}'"
        )
    if extent.min() <= 0:
        raise SceneError(f"mesh {path.name} is flat: it measures {' x '.join(f'{e:g}' for e in extent)} m")
    seen = vertices
    if part is not None:
        seen = _part(path, vertices, faces, part)
    else:
        refuse_hollow(f"mesh {path.name}", vertices[faces][..., :2], "add 'part: 1' to strike its largest convex part")
    if mesh.is_watertight and mass is not None:
        com, inertia = com or _centroid(mesh, scale), inertia or _inertia(mesh, scale, mass)
    shape = Shape("extruded", outline=hull_outline(seen[:, :2]), height=float(extent[2]))
    return Body(name, "target", shape, mass, inertia, com)


def _centroid(mesh: Any, scale: float) -> tuple[float, float, float]:
    x, y, z = (float(v) * scale for v in mesh.center_mass)
    return x, y, z


def _inertia(mesh: Any, scale: float, mass: float) -> tuple[float, float, float]:
    """Moments of inertia along the mesh's axes about its centre of mass [kg m^2]."""
    per_mass = np.diag(np.asarray(mesh.moment_inertia)) / float(mesh.volume) * scale**2
    x, y, z = (float(v) * mass for v in per_mass)
    return x, y, z


def fill_triangles(points: Array) -> Array:
    """Triangles [T, 3, 2] that fill the convex hull of points [n, 2]."""
    hull = np.asarray(hull_outline(points))
    return np.stack([np.broadcast_to(hull[0], (len(hull) - 2, 2)), hull[1:-1], hull[2:]], axis=1)


def refuse_hollow(what: str, triangles: Array, advice: str) -> None:
    """Raise if triangles [T, 3, 2], seen from above, leave out more of their convex hull than rounding would."""
    share = top_view_share(triangles)
    if share < CONVEX_SHARE:
        raise SceneError(
            f"{what} is not convex seen from above: it fills {100 * share:.0f} % of its convex hull; "
            f"{advice}, or give the outline of the part that is struck (shape: extruded)"
        )


def top_view_share(triangles: Array) -> float:
    """Area within the silhouette of triangles [T, 3, 2] as a share of its convex hull's; holes count as filled.

    Both are counted in one picture of `PIXELS` squared, so that what the grid rounds away cancels.
    """
    from scipy.ndimage import binary_fill_holes

    points = triangles.reshape(-1, 2)
    low, size = points.min(axis=0), float(np.ptp(points, axis=0).max())
    scaled = (triangles - low) / size * PIXELS
    covered = binary_fill_holes(_draw(scaled))
    return float(covered.sum() / _draw(fill_triangles(scaled.reshape(-1, 2))).sum())


def _draw(triangles: Array) -> np.ndarray:
    """Picture [PIXELS, PIXELS] of the pixels whose centres lie in any triangle [T, 3, 2], in pixel units."""
    picture = np.zeros((PIXELS, PIXELS), dtype=bool)
    corner = np.floor(triangles.min(axis=1)).astype(int)
    extent = (np.ceil(triangles.max(axis=1)).astype(int) - corner + 1).max(axis=1)
    side = 2 ** np.ceil(np.log2(np.maximum(extent, 2))).astype(int)
    for window in np.unique(side):  # triangles of like size together: few large arrays instead of many small ones
        rows = np.flatnonzero(side == window)
        for chunk in np.array_split(rows, -(-len(rows) * window * window // 2**22)):
            _draw_windows(picture, triangles[chunk], corner[chunk], int(window))
    return picture


def _draw_windows(picture: np.ndarray, triangles: Array, corner: np.ndarray, window: int) -> None:
    grid = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij"), axis=-1)
    pixel = corner[:, None, None] + grid  # [T, w, w, 2]
    a, b, c = (triangles[:, i, None, None] for i in range(3))
    turns = [_turn(q - p, pixel + 0.5 - p) for p, q in ((a, b), (b, c), (c, a))]
    area = _turn(b - a, c - a)
    sign = np.sign(area)
    # the edge itself belongs to the triangle: no cracks between neighbours; a triangle seen edge-on covers nothing
    inside = np.all([t * sign >= -1e-9 for t in turns], axis=0) & (np.abs(area) > 1e-9)
    inside &= ((pixel >= 0) & (pixel < PIXELS)).all(axis=-1)
    hit = pixel[inside]
    picture[hit[:, 0], hit[:, 1]] = True


def _turn(u: Array, v: Array) -> Array:
    return np.asarray(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])


def convex_parts(vertices: Array, faces: np.ndarray) -> tuple[Array, ...]:
    """Corners [n, 3] of the convex parts that a mesh splits into, largest outline first (needs coacd)."""
    try:
        import coacd
    except ImportError as error:
        raise SceneError("splitting a mesh into convex parts needs coacd: pip install 'carom[mesh]'") from error
    coacd.set_log_level("error")
    parts = coacd.run_coacd(coacd.Mesh(vertices, faces), threshold=PART_THRESHOLD, seed=0)
    corners = [np.asarray(v, dtype=float) for v, _ in parts]
    area = [polygon_properties(np.asarray(hull_outline(v[:, :2])))[0] for v in corners]
    return tuple(corners[i] for i in np.argsort(-np.asarray(area), kind="stable"))


def _part(path: Path, vertices: Array, faces: np.ndarray, part: int) -> Array:
    parts = convex_parts(vertices, faces)
    if not 1 <= part <= len(parts):
        raise SceneError(
            f"mesh {path.name} splits into {len(parts)} convex parts, largest first; there is no part {part}"
        )
    return parts[part - 1]
