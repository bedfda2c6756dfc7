"""Bodies whose size, aspect and mass vary between trajectories: what they are made from, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import SceneError
from carom.scenes.free import extents, inertia_of
from carom.scenes.meshes import LARGEST
from carom.scenes.shapes import Body, load_mesh
from carom.state import Array

CONVEX_SHARE = 0.995  #: of its convex hull's volume that a convex mesh fills: the rest is rounding
ROUND_SIDES = 24  #: sides of the polygon that stands for a circle where a body is given as a mesh
DENSITY = 370.0  #: [kg/m^3] of a mesh whose mass nobody states: that of the tossed acrylic cube
_CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2.0


@dataclass(frozen=True, eq=False)
class Template:
    """A body as given; trajectories are made with bodies like it, of other size, aspect and mass."""

    name: str
    kind: str  #: box, sphere, cylinder or mesh
    extent: Array  #: [3] full lengths along its own axes [m]
    mass: float  #: [kg]
    com: Array  #: [3] centre of mass in its frame [m]
    moments: Array  #: [3, 3] second moments of the mass about `com`, per mass, in its axes [m^2]
    vertices: Array | None = None  #: [V, 3] of a mesh, convex, in its frame [m]
    faces: NDArray[np.int64] | None = None  #: [F, 3] triangles of a mesh, outward


@dataclass(frozen=True, eq=False)
class Solid:
    """One body of one trajectory, as it was simulated."""

    name: str
    shape: str  #: box, sphere, cylinder (axis z), or mesh:NAME with NAME in the header's meshes
    size: Array  #: [3] full lengths along its own axes [m]
    mass: float  #: [kg]
    com: Array  #: [3] centre of mass in its frame [m]
    inertia: Array  #: [3, 3] about the centre of mass, in its axes [kg m^2]
    template_vertices: Array | None = None  #: [V, 3] of the mesh that it is stretched from [m]
    template_faces: NDArray[np.int64] | None = None  #: [F, 3]
    variant: int = -1  #: which mesh of the shard's pool the engine takes

    @property
    def kind(self) -> str:
        """Its shape without the name of a mesh."""
        return self.shape.split(":", 1)[0]

    @property
    def radius(self) -> float:
        """Of a sphere about its frame's origin that holds all of it [m]."""
        return float(self.size[0]) / 2 if self.kind == "sphere" else float(np.linalg.norm(self.corners, axis=-1).max())

    @property
    def corners(self) -> Array:
        """Points [V, 3] in its frame whose convex hull it is [m]; of a round body, whose hull is slightly smaller."""
        return self.surface()[0]

    def surface(self) -> tuple[Array, NDArray[np.int64]]:
        """Vertices [V, 3] m in its frame and triangles [F, 3], outward: what a mesh network reads."""
        import trimesh

        if self.kind == "mesh":
            if self.template_vertices is None or self.template_faces is None:
                raise SceneError(f"body '{self.name}' is a mesh without vertices")
            return self.template_vertices * (self.size / np.ptp(self.template_vertices, axis=0)), self.template_faces
        if self.kind == "box":
            return _CUBE * self.size, _BOX_FACES
        if self.kind == "sphere":
            ball = trimesh.creation.icosphere(subdivisions=2, radius=self.size[0] / 2)
        else:
            ball = trimesh.creation.cylinder(radius=self.size[0] / 2, height=self.size[2], sections=ROUND_SIDES)
        return np.asarray(ball.vertices, dtype=np.float64), np.asarray(ball.faces, dtype=np.int64)

    def below(self, rotation: Array) -> float:
        """How far its lowest point is under its frame's origin [m], turned by a matrix [3, 3], world from body."""
        if self.kind == "sphere":
            return float(self.size[0]) / 2
        if self.kind == "cylinder":
            up = float(np.clip(abs(rotation[2, 2]), 0.0, 1.0))
            return float(self.size[2] / 2 * up + self.size[0] / 2 * np.sqrt(1 - up**2))
        return float(-(self.corners @ rotation[2]).min())


#: triangles of `_CUBE`, outward
_BOX_FACES = np.array(
    [
        [0, 1, 3],
        [0, 3, 2],
        [4, 6, 7],
        [4, 7, 5],
        [0, 4, 5],
        [0, 5, 1],
        [2, 3, 7],
        [2, 7, 6],
        [0, 2, 6],
        [0, 6, 4],
        [1, 5, 7],
        [1, 7, 3],
    ]
)


@dataclass(frozen=True)
class Variation:
    """How far bodies differ from their templates; factors are drawn evenly on a logarithmic scale."""

    size: tuple[float, float] = (0.7, 1.4)  #: of all lengths
    aspect: float = 1.25  #: each length once more by up to this factor, up or down
    mass: tuple[float, float] = (0.5, 2.0)  #: of the mass that the new volume would have

    def __post_init__(self) -> None:
        for what, (low, high) in (("size", self.size), ("mass", self.mass)):
            if not (np.isfinite([low, high]).all() and 0 < low <= high):
                raise SceneError(f"--{what}: expected two positive factors, lower first, got {low:g} {high:g}")
        if not (np.isfinite(self.aspect) and self.aspect >= 1):
            raise SceneError(f"--aspect: expected a factor of 1 or more, got {self.aspect:g}")

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


def solid_of(template: Template, stretch: Array, mass_factor: float, *, name: str = "", variant: int = -1) -> Solid:
    """A body like the template with its lengths stretched by factors [3] and its density by another."""
    mass = template.mass * float(np.prod(stretch)) * mass_factor
    moments = template.moments * np.outer(stretch, stretch)
    return Solid(
        name=name or template.name,
        shape=f"mesh:{template.name}" if template.kind == "mesh" else template.kind,
        size=template.extent * stretch,
        mass=mass,
        com=template.com * stretch,
        inertia=inertia_from(moments, mass),
        template_vertices=template.vertices,
        template_faces=template.faces,
        variant=variant,
    )


def inertia_from(moments: Array, mass: float) -> Array:
    """Inertia [3, 3] [kg m^2] of second moments per mass [3, 3] [m^2]."""
    return np.asarray(mass * (np.trace(moments) * np.eye(3) - moments))


def moments_from(inertia: Array, mass: float) -> Array:
    """Second moments per mass [3, 3] [m^2] of an inertia [3, 3]; none is negative."""
    moments = (np.trace(inertia) / 2 * np.eye(3) - inertia) / mass
    np.fill_diagonal(moments, np.maximum(np.diag(moments), 0.0))
    return np.asarray(moments)


def template_of(body: Body) -> Template:
    """The template of a scene's or a recording's body."""
    shape, mass = body.shape, float(body.mass or 0.0)
    if shape is None or not mass:
        raise SceneError(f"body '{body.name}' needs a shape and a mass to make others like it")
    com = np.zeros(3) if body.com is None else np.asarray(body.com, dtype=float)
    if shape.kind == "mesh":
        made = mesh_template(Path(str(shape.file)), name=body.name, centred=False)
        known = body.inertia is not None and np.isfinite(body.inertia).all()
        moments = moments_from(np.diag(np.asarray(body.inertia, dtype=float)), mass) if known else made.moments
        return replace(made, mass=mass, com=made.com if body.com is None else com, moments=moments)
    kind = "cylinder" if shape.kind == "disc" else shape.kind
    return Template(body.name, kind, extents(shape), mass, com, moments_from(np.diag(inertia_of(body)), mass))


def mesh_template(path: Path, *, name: str = "", centred: bool = True, density: float = DENSITY) -> Template:
    """The template of a convex mesh file, of even density; `centred`: its frame is moved to its centre of mass."""
    mesh = load_mesh(path)
    longest = float(np.ptp(np.asarray(mesh.vertices), axis=0).max())
    if longest > LARGEST:
        raise SceneError(
            f"mesh {path} is {longest:g} m long; meshes are in metres: scale it, from millimetres by 0.001"
        )
    hull = convex_hull(mesh, path)
    com = np.asarray(hull.center_mass, dtype=float)
    vertices = np.asarray(hull.vertices, dtype=float) - (com if centred else 0.0)
    mass = density * float(hull.volume)
    moments = moments_from(np.asarray(hull.moment_inertia) / float(hull.volume), 1.0)
    return Template(
        name or path.stem,
        "mesh",
        np.ptp(vertices, axis=0),
        mass,
        np.zeros(3) if centred else com,
        moments,
        vertices,
        np.asarray(hull.faces, dtype=np.int64),
    )


def convex_hull(mesh: Any, path: Path) -> Any:
    """The hull of a mesh that is convex; raises for one that is not, or that is not closed."""
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
    return hull
