"""Bodies and their shapes, as the recordings format names them: geometry, mass properties, planar outline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.errors import SceneError, unknown_name
from carom.state import Array

#: What each shape needs, beside its name.
SHAPE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "height"),
    "disc": ("diameter",),
    "semi-cylinder": ("radius", "height"),
    "extruded": ("outline", "height"),
    "mesh": ("file",),
}
ROLES = ("target", "striker", "ground", "arm", "tool", "other")
DISC_HEIGHT = 0.01  #: [m] a disc has no height of its own; planar quantities don't depend on it
ARC_SEGMENTS = 48  #: sides of the polygon that stands for a half circle


@dataclass(frozen=True)
class Shape:
    """A convex solid in its body's frame, of one of the kinds in `SHAPE_FIELDS`."""

    kind: str
    size: tuple[float, ...] = ()  #: box: full lengths along x, y, z [m]
    radius: float | None = None  #: [m]
    height: float | None = None  #: along z [m]
    outline: tuple[tuple[float, float], ...] = ()  #: extruded: corners, counter-clockwise [m]
    file: str | None = None  #: mesh: path of an STL or OBJ file, in metres

    def __post_init__(self) -> None:
        if self.kind not in SHAPE_FIELDS:
            raise SceneError(unknown_name("shape", self.kind, SHAPE_FIELDS))
        for name in ("radius", "height"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise SceneError(f"{self.kind}: {name} must be a positive length in metres, got {value}")
        if self.kind == "box" and (len(self.size) != 3 or min(self.size) <= 0):
            raise SceneError(f"box: size must be three positive lengths in metres, got {list(self.size)}")
        if self.kind == "extruded":
            check_convex(np.asarray(self.outline, dtype=float), "extruded")

    @cached_property
    def planar_outline(self) -> Array:
        """Outline seen from above [V, 2], counter-clockwise, in the body's frame [m]."""
        if self.kind == "box":
            x, y = self.size[0] / 2, self.size[1] / 2
            return np.array([[-x, -y], [x, -y], [x, y], [-x, y]])
        if self.kind == "extruded":
            return np.asarray(self.outline, dtype=float)
        if self.kind == "mesh":
            return mesh_outline(Path(str(self.file)))
        radius = float(self.radius or 0.0)
        if self.kind == "semi-cylinder":
            angle = np.linspace(0.0, np.pi, ARC_SEGMENTS + 1)
        else:  # sphere, cylinder, disc: round seen from above
            angle = np.linspace(0.0, 2 * np.pi, 2 * ARC_SEGMENTS, endpoint=False)
        return radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    @cached_property
    def full_height(self) -> float:
        """Extent along z [m]."""
        if self.kind == "box":
            return self.size[2]
        if self.kind == "sphere":
            return 2 * float(self.radius or 0.0)
        if self.kind == "mesh":
            return float(np.ptp(load_mesh(Path(str(self.file))).vertices[:, 2]))
        return float(self.height or DISC_HEIGHT)

    @property
    def is_round(self) -> bool:
        """Whether it looks the same from every side, seen from above."""
        return self.kind in ("sphere", "cylinder", "disc")


@dataclass(frozen=True)
class Body:
    """A rigid body of a scene or a recording: its role, shape and mass properties, where known."""

    name: str
    role: str
    shape: Shape | None = None
    mass: float | None = None  #: [kg]; a striker without one is held stiffly
    inertia: tuple[float, float, float] | None = None  #: principal values about the centre of mass [kg m^2]
    com: tuple[float, float, float] | None = None  #: centre of mass in the body's frame [m]; None: the centroid
    extra: Mapping[str, Any] = field(default_factory=dict)  #: further keys of the file, kept when it is written again

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise SceneError(f"body '{self.name}': {unknown_name('role', self.role, ROLES)}")
        if self.mass is not None and not (np.isfinite(self.mass) and self.mass > 0):
            raise SceneError(f"body '{self.name}': mass must be positive [kg], got {self.mass}")

    @cached_property
    def planar_com(self) -> Array:
        """Centre of mass seen from above, in the body's frame [2] [m]."""
        if self.com is not None:
            return np.asarray(self.com[:2], dtype=float)
        return np.zeros(2) if self.shape is None else polygon_properties(self.shape.planar_outline)[1]

    @cached_property
    def gyration_radius(self) -> float:
        """Radius of gyration k about the vertical through the centre of mass [m]: the error norm's lever."""
        if self.inertia is not None and self.mass is not None:
            return float(np.sqrt(self.inertia[2] / self.mass))
        if self.shape is None:
            raise SceneError(f"body '{self.name}' has neither shape nor inertia: its radius of gyration is unknown")
        if self.shape.kind == "sphere":
            return float(np.sqrt(0.4) * float(self.shape.radius or 0.0))
        _, centroid, second_moment = polygon_properties(self.shape.planar_outline)
        return float(np.sqrt(second_moment + np.sum((self.planar_com - centroid) ** 2)))


def polygon_properties(outline: Array) -> tuple[float, Array, float]:
    """Area [m^2], centroid [2] [m] and polar second moment about it per area [m^2] of a polygon [V, 2]."""
    x, y = outline.T
    x1, y1 = np.roll(outline, -1, axis=0).T
    cross = x * y1 - x1 * y
    area = cross.sum() / 2
    centroid = np.array([((x + x1) * cross).sum(), ((y + y1) * cross).sum()]) / (6 * area)
    about_origin = ((x * x + x * x1 + x1 * x1 + y * y + y * y1 + y1 * y1) * cross).sum() / (12 * area)
    return float(area), centroid, float(about_origin - centroid @ centroid)


def check_convex(outline: Array, what: str) -> None:
    """Raise unless the outline [V, 2] is a convex polygon, counter-clockwise."""
    if outline.ndim != 2 or outline.shape[1] != 2 or len(outline) < 3 or not np.isfinite(outline).all():
        raise SceneError(f"{what}: outline must be at least three [x, y] corners in metres, got shape {outline.shape}")
    edge = np.roll(outline, -1, axis=0) - outline
    length = np.linalg.norm(edge, axis=-1)
    if length.min() <= 1e-9:
        raise SceneError(f"{what}: outline has corner {int(np.argmin(length)) + 1} twice; list each corner once")
    turn = edge[:, 0] * np.roll(edge, -1, axis=0)[:, 1] - edge[:, 1] * np.roll(edge, -1, axis=0)[:, 0]
    if (turn <= 1e-12).all() and (turn < -1e-12).any():
        raise SceneError(f"{what}: outline runs clockwise; list its corners counter-clockwise")
    if (turn < -1e-9).any():
        corner = (int(np.argmin(turn)) + 1) % len(outline) + 1  # turn[i] is at the end of edge i; people count from 1
        raise SceneError(f"{what}: outline is not convex at corner {corner}; split it into convex parts")
    angle = np.arcsin(np.clip(turn / (length * np.roll(length, -1)), -1, 1))
    ahead = (edge * np.roll(edge, -1, axis=0)).sum(-1) >= 0
    if turn.max() <= 1e-12 or np.where(ahead, angle, np.pi - angle).sum() > 3 * np.pi:
        raise SceneError(f"{what}: outline encloses no area or crosses itself; list its corners in order")


def load_mesh(path: Path) -> Any:
    """A mesh file as a trimesh object, in metres; raises if it cannot be read."""
    import trimesh

    if not path.is_file():
        raise SceneError(f"mesh file {path} does not exist")
    try:
        mesh = trimesh.load_mesh(path)
    except Exception as error:  # trimesh raises whatever its many parsers raise
        raise SceneError(f"mesh file {path} cannot be read: {error}") from error
    if not len(getattr(mesh, "vertices", ())):
        raise SceneError(f"mesh file {path} holds no triangles")
    return mesh


def mesh_outline(path: Path) -> Array:
    """Convex outline of a mesh seen from above [V, 2], counter-clockwise [m]."""
    from scipy.spatial import ConvexHull

    points = np.asarray(load_mesh(path).vertices)[:, :2]
    return np.asarray(points[ConvexHull(points).vertices])
