"""Scenes whose bodies differ from row to row in size, mass and mesh; compiled once for their kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from carom.core.errors import SceneError
from carom.core.rotations import from_scipy
from carom.scenes.free import FreeScene
from carom.scenes.free_writing import write_bodies, write_margins, write_pads
from carom.scenes.parameters import FREE, OF_BODIES, write_contacts
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body, Shape
from carom.state import Array

if TYPE_CHECKING:
    import mujoco

MOST_ROUND = 0.8  #: of a box's shortest half length: edges are not rounded further
_PLACEHOLDER = {
    "box": Shape("box", size=(0.1, 0.1, 0.1)),
    "mesh": Shape("box", size=(0.1, 0.1, 0.1)),
    "sphere": Shape("sphere", radius=0.05),
    "cylinder": Shape("cylinder", radius=0.05, height=0.1),
}


@final
@dataclass(frozen=True)
class VariedScene(Scene):
    """Free bodies of the kinds of another scene's, over its ground; each row names its own bodies.

    Bodies that are meshes take theirs from `meshes`, which are compiled once. Bodies are called body_0, body_1, ...
    """

    like: FreeScene
    meshes: tuple[Shape, ...] = ()

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.like.name

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Shapes of the bodies."""
        return tuple(_kind(body) for body in self.like.bodies)

    @cached_property
    def bare(self) -> FreeScene:
        """The scene with bodies that stand in for those of the rows."""
        bodies = tuple(Body(f"body_{i}", "target", _PLACEHOLDER[k], mass=1.0) for i, k in enumerate(self.kinds))
        return replace(self.like, bodies=bodies)

    @property
    def takes(self) -> tuple[str, ...]:
        """See `Scene`: what is part of a body is written into the rows' bodies before."""
        return tuple(name for name in FREE if name not in OF_BODIES)

    def spec(self, *, step: float | None = None, parameters: Sequence[str] = ()) -> mujoco.MjSpec:
        """See `Scene`."""
        import mujoco

        spec = self.bare.spec(step=step, parameters=parameters)
        if "mesh" not in self.kinds:
            return spec
        for k, shape in enumerate(self.meshes):
            spec.add_mesh(name=f"mesh_{k}", uservert=np.asarray(shape.corners, dtype=np.float32).ravel())
        for body, kind in zip(self.bare.bodies, self.kinds, strict=True):
            if kind == "mesh":
                geom = spec.geom(body.name)
                geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_MESH, "mesh_0"
        return spec

    def write(self, batch: Any, values: Mapping[str, Array]) -> None:
        """Refused: without bodies there is nothing to simulate."""
        raise SceneError(f"scene '{self.name}': its bodies differ per row; open it with bodies=")

    def check_rows(self, bodies: Sequence[Sequence[Body]] | None) -> None:
        """See `Scene`: each row needs as many bodies as the scene, of the same kinds, with a mass."""
        if bodies is None:
            raise SceneError(f"scene '{self.name}': its bodies differ per row; open it with bodies=")
        for row in bodies:
            kinds = tuple(_kind(body) for body in row)
            if kinds != self.kinds or any(body.mass is None for body in row):
                wanted, got = ", ".join(self.kinds), ", ".join(kinds)
                raise SceneError(f"bodies: expected {wanted}, each with a mass, in every row; got {got}")

    def write_rows(self, batch: Any, values: Mapping[str, Array], bodies: Sequence[Sequence[Body]]) -> None:
        """Each simulation's bodies, then its parameters, into its model."""
        mass, inertia = batch.expand("body_mass"), batch.expand("body_inertia")
        frame, centre = batch.expand("body_iquat"), batch.expand("body_ipos")
        com = np.array([[body.centre for body in row] for row in bodies])
        for i in range(len(self.kinds)):
            own = [row[i] for row in bodies]
            mass[:, 1 + i] = [b.mass for b in own]
            inertia[:, 1 + i], frame[:, 1 + i] = principal_frame(np.array([b.inertia_matrix for b in own]))
        centre[:, 1 : 1 + len(self.kinds)] = com
        self._write_sizes(batch, values.get("edge_radius", np.zeros(batch.nsim)), bodies)
        write_contacts(batch, values)
        write_bodies(self.bare, batch, values, com)

    def _write_sizes(self, batch: Any, radius: Array, bodies: Sequence[Sequence[Body]]) -> None:
        """Lengths and meshes; a box with rounded edges is smaller by their radius and kept off by as much."""
        sizes, bounds, boxes = batch.expand("geom_size"), batch.expand("geom_rbound"), batch.expand("geom_aabb")
        model = batch.model
        off = np.zeros((batch.nsim, model.ngeom))
        for i, kind in enumerate(self.kinds):
            geom, own = model.geom(self.bare.bodies[i].name).id, [row[i] for row in bodies]
            if kind == "mesh":
                self._write_meshes(batch, geom, own)
                continue
            half = np.array([b.solid.extent for b in own]) / 2
            if kind == "box":
                off[:, geom] = np.minimum(radius, MOST_ROUND * half.min(axis=-1))
                write_pads(batch, self.bare.bodies[i].name, half)
            kept = half - off[:, [geom]]
            boxes[:, geom, :3], boxes[:, geom, 3:] = 0.0, kept
            sizes[:, geom] = kept if kind == "box" else np.stack([half[:, 0], half[:, 2], 0 * radius], axis=-1)
            if kind == "sphere":
                sizes[:, geom, 1:] = 0.0
            across = kept if kind == "box" else half[:, :1] if kind == "sphere" else half[:, [0, 2]]
            bounds[:, geom] = np.linalg.norm(across, axis=-1)
        write_margins(batch, off)

    def _write_meshes(self, batch: Any, geom: int, own: Sequence[Body]) -> None:
        """The mesh that each simulation's body takes; MuJoCo turned each into its principal frame."""
        model, number = batch.model, {shape: k for k, shape in enumerate(self.meshes)}
        variant = np.array([number[b.solid] for b in own])
        points = [_vertices(model, k) for k in range(model.nmesh)]
        low, high = np.array([p.min(axis=0) for p in points]), np.array([p.max(axis=0) for p in points])
        box = np.concatenate([(low + high) / 2, (high - low) / 2], axis=-1)
        batch.expand("geom_dataid")[:, geom] = variant
        batch.expand("geom_pos")[:, geom] = model.mesh_pos[variant]
        batch.expand("geom_quat")[:, geom] = model.mesh_quat[variant]
        batch.expand("geom_aabb")[:, geom] = box[variant]
        batch.expand("geom_size")[:, geom] = box[variant, 3:]
        batch.expand("geom_rbound")[:, geom] = np.array([np.linalg.norm(p, axis=-1).max() for p in points])[variant]


def _kind(body: Body) -> str:
    return "cylinder" if body.solid.kind == "disc" else body.solid.kind


def _vertices(model: Any, mesh: int) -> Array:
    first = int(model.mesh_vertadr[mesh])
    return np.asarray(model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])], dtype=np.float64)


def principal_frame(inertia: Array) -> tuple[Array, Array]:
    """Principal values [N, 3] and quaternions [N, 4], body from principal frame, of inertias [N, 3, 3]."""
    from scipy.spatial.transform import Rotation

    diagonal = np.einsum("nii->ni", inertia)
    off = np.abs(inertia - diagonal[:, :, None] * np.eye(3)).max(axis=(1, 2))
    values, axes = np.linalg.eigh(inertia)
    axes[np.linalg.det(axes) < 0, :, 0] *= -1
    quaternion = from_scipy(Rotation.from_matrix(axes))
    plain = off <= 1e-12 * diagonal.max(axis=-1)
    values[plain], quaternion[plain] = diagonal[plain], [1.0, 0.0, 0.0, 0.0]
    return values, quaternion
