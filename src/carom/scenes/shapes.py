"""Bodies and their shapes, as the recordings format names them: geometry, mass properties, planar outline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import SceneError, unknown_name
from carom.scenes.mesh_files import (
    MOST_CORNERS,
    MOST_PARTS,
    Mesh,
    hull_outline,
    inertia_from,
    load_mesh,
    moments_from,
    solid_mesh,
    surface_of,
)
from carom.scenes.outline import check_convex
from carom.state import Array

#: What each shape needs, beside its name.
SHAPE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "height"),
    "disc": ("diameter",),
    "semi-cylinder": ("radius", "height"),
    "extruded": ("outline", "height"),
    "compound": ("outlines", "height"),
    "mesh": ("file",),
}
ROLES = ("target", "striker", "ground", "arm", "tool", "other")
DISC_HEIGHT = 0.01  #: [m] a disc has no height of its own; planar quantities don't depend on it
FACE_THICKNESS = 0.01  #: [m] of a flat striker, behind its face
STRIKER_HEIGHT = 0.04  #: [m] of a striker where nobody states it
SHORTEST, LONGEST = 1e-4, 1e3  #: [m] lengths of bodies that an engine can count with, and nobody strikes others
LIGHTEST, HEAVIEST = 1e-6, 1e6  #: [kg] masses, likewise
LENGTHS, MASSES = (f"expected {low:g} to {high:g}" for low, high in ((SHORTEST, LONGEST), (LIGHTEST, HEAVIEST)))
ARC_SEGMENTS = 48  #: sides of the polygon that stands for a half circle


@dataclass(frozen=True)
class Shape:
    """A solid in its body's frame, of one of the kinds in `SHAPE_FIELDS`; convex, unless it is a compound."""

    kind: str
    size: tuple[float, ...] = ()  #: full lengths along x, y, z [m] of a box, or that a mesh is stretched to
    radius: float | None = None  #: [m]
    height: float | None = None  #: along z [m]
    outline: tuple[tuple[float, float], ...] = ()  #: extruded: corners, counter-clockwise [m]
    outlines: tuple[tuple[tuple[float, float], ...], ...] = ()  #: compound: those of its convex parts, side by side [m]
    file: str | None = None  #: mesh: path of an STL or OBJ file, in metres
    mesh: Mesh | None = None  #: mesh: its solid in memory, instead of a file

    def __post_init__(self) -> None:
        if self.kind not in SHAPE_FIELDS:
            raise SceneError(unknown_name("shape", self.kind, SHAPE_FIELDS))
        for name in ("radius", "height"):
            value = getattr(self, name)
            if value is not None and not SHORTEST <= value <= LONGEST:
                raise SceneError(f"{self.kind}: {name} must be a positive length in metres, got {value} ({LENGTHS})")
        if self.kind == "box" and (len(self.size) != 3 or not all(SHORTEST <= v <= LONGEST for v in self.size)):
            raise SceneError(f"box: size must be three positive lengths in metres, got {list(self.size)} ({LENGTHS})")
        if self.kind == "compound" and not 1 <= len(self.outlines) <= MOST_PARTS:
            raise SceneError(f"compound: expected 1 to {MOST_PARTS} outlines, got {len(self.outlines)}")
        for outline in (self.outline,) if self.kind == "extruded" else self.outlines:
            if len(outline) > MOST_CORNERS:
                raise SceneError(f"{self.kind}: outline has {len(outline)} corners; expected {MOST_CORNERS} at most")
            check_convex(np.asarray(outline, dtype=float), self.kind)
            wide = np.ptp(np.asarray(outline, dtype=float), axis=0)
            if not (wide.min() >= SHORTEST and wide.max() <= LONGEST):
                raise SceneError(f"{self.kind}: outline is {wide[0]:g} x {wide[1]:g} m wide ({LENGTHS})")

    @cached_property
    def planar_outline(self) -> Array:
        """Outline seen from above [V, 2], counter-clockwise, in the body's frame [m]."""
        if self.kind == "box":
            x, y = self.size[0] / 2, self.size[1] / 2
            return np.array([[-x, -y], [x, -y], [x, y], [-x, y]])
        if self.kind == "extruded":
            return np.asarray(self.outline, dtype=float)
        if self.kind == "mesh":
            return np.asarray(hull_outline(self.vertices[:, :2]))
        if self.kind == "compound":
            return np.asarray(hull_outline(np.concatenate(self.planar_parts)))
        radius = float(self.radius or 0.0)
        if self.kind == "semi-cylinder":
            angle = np.linspace(0.0, np.pi, ARC_SEGMENTS + 1)
        else:  # sphere, cylinder, disc: round seen from above
            angle = np.linspace(0.0, 2 * np.pi, 2 * ARC_SEGMENTS, endpoint=False)
        return radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    @property
    def planar_parts(self) -> tuple[Array, ...]:
        """Convex outlines [V, 2] that it is made of, seen from above: one, unless it is a compound."""
        if self.kind == "compound":
            return tuple(np.asarray(outline, dtype=float) for outline in self.outlines)
        return (self.planar_outline,)

    @cached_property
    def planar_moments(self) -> tuple[float, Array, float]:
        """Area [m^2], centroid [2] [m] and polar second moment about it per area [m^2], seen from above."""
        areas, centres, seconds = zip(*(polygon_properties(part) for part in self.planar_parts), strict=True)
        area, centre = np.array(areas), np.array(centres)
        middle = area @ centre / area.sum()
        second = area @ (np.array(seconds) + ((centre - middle) ** 2).sum(axis=1)) / area.sum()
        return float(area.sum()), middle, float(second)

    @cached_property
    def full_height(self) -> float:
        """Extent along z [m]."""
        if self.kind == "box":
            return self.size[2]
        if self.kind == "sphere":
            return 2 * float(self.radius or 0.0)
        if self.kind == "mesh":
            return float(np.ptp(self.vertices[:, 2]))
        return float(self.height or DISC_HEIGHT)

    @property
    def is_round(self) -> bool:
        """Whether it looks the same from every side, seen from above."""
        return self.kind in ("sphere", "cylinder", "disc")

    @cached_property
    def extent(self) -> Array:
        """Full lengths along its own x, y and z [3] [m]."""
        if self.size:
            return np.asarray(self.size, dtype=float)
        if self.kind == "mesh":
            return np.asarray(np.ptp(self.vertices, axis=0))
        if self.is_round:
            return np.array([2 * float(self.radius or 0.0)] * 2 + [self.full_height])
        return np.array([*np.ptp(self.planar_outline, axis=0), self.full_height])

    @property
    def width(self) -> float:
        """Its mean extent, or the diameter of a round one [m]."""
        return float(np.mean(self.extent[:2] if self.is_round else self.extent))

    @cached_property
    def hull(self) -> Mesh:
        """A mesh's convex solid before it is stretched: the one in memory, or the convex hull of the file's."""
        if self.mesh is not None:
            return self.mesh
        path = Path(str(self.file))
        return solid_mesh(path.stem, load_mesh(path).convex_hull)

    @property
    def mesh_factors(self) -> Array:
        """How far a mesh is stretched along x, y and z [3]: its `size` over the lengths of its solid."""
        return np.asarray(self.size) / np.ptp(self.hull.vertices, axis=0) if self.size else np.ones(3)

    @property
    def mesh_moments(self) -> Array:
        """Second moments of a mesh's solid about its centroid, per mass [3, 3] [m^2]."""
        return np.asarray(self.hull.moments * np.outer(self.mesh_factors, self.mesh_factors))

    @property
    def vertices(self) -> Array:
        """Vertices [V, 3] of a mesh [m]; of a file also those inside of its convex hull."""
        points = load_mesh(Path(str(self.file))).vertices if self.mesh is None else self.mesh.vertices
        return np.asarray(points, dtype=np.float64) * self.mesh_factors

    @cached_property
    def corners(self) -> Array:
        """Points [V, 3] in the body's frame [m]; their convex hull is the shape, or slightly smaller if it is round."""
        return self.surface()[0]

    @cached_property
    def reach(self) -> float:
        """Radius of the sphere about the frame's origin that holds all of it [m]."""
        if self.kind == "sphere":
            return float(self.radius or 0.0)
        return float(np.linalg.norm(self.corners, axis=-1).max())

    def surface(self) -> tuple[Array, NDArray[np.int64]]:
        """Vertices [V, 3] m in the body's frame and triangles [F, 3], outward: what a mesh network reads."""
        if self.kind == "mesh":
            return self.hull.vertices * self.mesh_factors, self.hull.faces
        return surface_of(self.kind, self.extent)

    def support(self, axes: Array) -> Array:
        """How far it reaches along directions [A, 3] in its own frame, from the frame's origin [A] [m]."""
        radius = float(self.radius or 0.0)
        if self.kind == "sphere":
            return np.asarray(radius * np.linalg.norm(axes, axis=-1))
        if self.is_round:
            across = np.linalg.norm(axes[:, :2], axis=-1)
            return np.asarray(across * radius + np.abs(axes[:, 2]) * self.full_height / 2)
        return np.asarray((axes @ self.corners.T).max(axis=-1))

    def stretched(self, factors: Array) -> Shape:
        """The shape with its lengths along x, y and z multiplied by factors [3]; those of a round one are alike."""
        if (np.asarray(factors) == 1.0).all():
            return self
        x, y, z = (float(v) for v in factors)
        size = tuple((self.extent * factors).tolist()) if self.kind in ("box", "mesh") else ()
        return replace(
            self,
            size=size,
            radius=None if self.radius is None else self.radius * x,
            height=None if self.height is None else self.height * z,
            outline=tuple((px * x, py * y) for px, py in self.outline),
            outlines=tuple(tuple((px * x, py * y) for px, py in outline) for outline in self.outlines),
        )

    def inertia(self, mass: float) -> tuple[float, ...]:
        """Inertia of a solid of this shape and mass [kg m^2], as in `Body.inertia`."""
        if self.kind == "mesh":
            return six_of(inertia_from(self.mesh_moments, mass))
        if self.kind == "box":
            x, y, z = (v / 2 for v in self.size)
            return mass * (y * y + z * z) / 3, mass * (x * x + z * z) / 3, mass * (x * x + y * y) / 3
        if not self.is_round:
            raise SceneError(f"the inertia of a {self.kind} is not known; expected box, sphere, cylinder, disc or mesh")
        r, h = float(self.radius or 0.0), self.full_height
        if self.kind == "sphere":
            return (2 * mass * r * r / 5,) * 3
        flat = mass * (3 * r * r + h * h) / 12
        return flat, flat, mass * r * r / 2


@dataclass(frozen=True)
class Body:
    """A rigid body of a scene or a recording: its role, shape and mass properties, where known."""

    name: str
    role: str
    shape: Shape | None = None
    mass: float | None = None  #: [kg]; a striker without one is held stiffly
    inertia: tuple[float, ...] | None = None  #: about the centre of mass [kg m^2]; see `inertia_matrix`
    com: tuple[float, float, float] | None = None  #: centre of mass in the body's frame [m]; None: the centroid
    forward: tuple[float, float, float] | None = None  #: where a striker looks, in its frame; None: along its approach
    extra: Mapping[str, Any] = field(default_factory=dict)  #: further keys of the file, kept when it is written again

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise SceneError(f"body '{self.name}': {unknown_name('role', self.role, ROLES)}")
        if self.mass is not None and not LIGHTEST <= self.mass <= HEAVIEST:
            raise SceneError(f"body '{self.name}': mass must be positive [kg], got {self.mass} ({MASSES})")
        if self.com is not None and not all(abs(v) <= LONGEST for v in self.com):
            raise SceneError(f"body '{self.name}': com must lie within {LONGEST:g} m, got {list(self.com)}")
        if self.inertia is not None and len(self.inertia) not in (3, 6):
            raise SceneError(f"body '{self.name}': inertia must be 3 or 6 numbers [kg m^2], got {len(self.inertia)}")

    @property
    def solid(self) -> Shape:
        """Its shape; raises if it has none."""
        if self.shape is None:
            raise SceneError(f"body '{self.name}' has no shape")
        return self.shape

    @property
    def centre(self) -> Array:
        """Centre of mass in the body's frame [3] [m]; where it is not stated, the centroid of a free body's shape."""
        if self.com is not None:
            return np.asarray(self.com, dtype=float)
        if self.shape is None or self.shape.kind != "mesh":
            return np.zeros(3)
        return np.asarray(self.shape.hull.centroid * self.shape.mesh_factors)

    @property
    def solid_inertia(self) -> tuple[float, ...]:
        """The stated inertia [kg m^2]; where it is missing or not finite, that of a solid of the body's shape."""
        if self.inertia is not None and np.isfinite(self.inertia).all():
            return self.inertia
        even = self.solid.inertia(float(self.mass or 0.0))
        if self.inertia is None or len(self.inertia) != len(even):
            return even
        return tuple(a if np.isfinite(a) else b for a, b in zip(self.inertia, even, strict=True))

    @property
    def inertia_matrix(self) -> Array:
        """Inertia about the centre of mass in the body's axes [3, 3] [kg m^2].

        `inertia` holds xx, yy, zz, or these and xy, xz, yz, as MuJoCo's `fullinertia` does.
        """
        xx, yy, zz, xy, xz, yz = (*self.solid_inertia, 0.0, 0.0, 0.0)[:6]
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def moments(self) -> Array:
        """Second moments of the mass about its centre, per mass, in the body's axes [3, 3] [m^2]."""
        unknown = self.inertia is None or not np.isfinite(self.inertia).all()
        if unknown and self.solid.kind == "mesh":
            return self.solid.mesh_moments
        return moments_from(self.inertia_matrix, float(self.mass or 0.0))

    @cached_property
    def planar_com(self) -> Array:
        """Centre of mass seen from above, in the body's frame [2] [m]."""
        if self.com is not None:
            return np.asarray(self.com[:2], dtype=float)
        return np.zeros(2) if self.shape is None else self.shape.planar_moments[1]

    @cached_property
    def gyration_radius(self) -> float:
        """Radius of gyration k about the vertical through the centre of mass [m]: the error norm's lever."""
        if self.inertia is not None and self.mass is not None:
            return float(np.sqrt(self.inertia[2] / self.mass))
        if self.shape is None:
            raise SceneError(f"body '{self.name}' has neither shape nor inertia: its radius of gyration is unknown")
        if self.shape.kind == "sphere":
            return float(np.sqrt(0.4) * float(self.shape.radius or 0.0))
        _, centroid, second_moment = self.shape.planar_moments
        return float(np.sqrt(second_moment + np.sum((self.planar_com - centroid) ** 2)))


def six_of(inertia: Array) -> tuple[float, ...]:
    """An inertia [3, 3] as `Body.inertia` holds it: xx, yy, zz, xy, xz, yz."""
    return tuple(float(inertia[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))


def polygon_properties(outline: Array) -> tuple[float, Array, float]:
    """Area [m^2], centroid [2] [m] and polar second moment about it per area [m^2] of a polygon [V, 2]."""
    x, y = outline.T
    x1, y1 = np.roll(outline, -1, axis=0).T
    cross = x * y1 - x1 * y
    area = cross.sum() / 2
    centroid = np.array([((x + x1) * cross).sum(), ((y + y1) * cross).sum()]) / (6 * area)
    about_origin = ((x * x + x * x1 + x1 * x1 + y * y + y * y1 + y1 * y1) * cross).sum() / (12 * area)
    return float(area), centroid, float(about_origin - centroid @ centroid)
