"""Rollouts in one batch, each with bodies of its own size, mass and mesh; compiled once for a number of bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import mujoco
import numpy as np
from mujoco.batch import Batch

from carom.core.errors import SceneError
from carom.core.rotations import from_scipy
from carom.engines.mujoco.bodies import CHUNK, FreeBatch, FreeMotion, FreeStarts
from carom.scenes.free import FreeScene
from carom.scenes.parameters import Parameter
from carom.scenes.shapes import Body, Shape
from carom.state import Array

MOST_ROUND = 0.8  #: of a box's shortest half length: edges are not rounded further
_PLACEHOLDER = {
    "box": Shape("box", size=(0.1, 0.1, 0.1)),
    "mesh": Shape("box", size=(0.1, 0.1, 0.1)),
    "sphere": Shape("sphere", radius=0.05),
    "cylinder": Shape("cylinder", radius=0.05, height=0.1),
}


class VariedBatch(FreeBatch):
    """Free bodies of the kinds of a scene's, over its ground; their geometry and masses are written per simulation.

    Bodies that are meshes take theirs from `meshes`, which are compiled once.
    """

    def __init__(
        self,
        scene: FreeScene,
        parameters: Sequence[Parameter],
        *,
        period: float,
        meshes: Sequence[Shape] = (),
        threads: int = 0,
    ) -> None:
        self.kinds = tuple(body.solid.kind for body in scene.bodies)
        bodies = tuple(Body(f"body_{i}", "target", _PLACEHOLDER[k], mass=1.0) for i, k in enumerate(self.kinds))
        super().__init__(replace(scene, bodies=bodies), parameters, period=period, threads=threads)
        self._rows: tuple[tuple[Body, ...], ...] = ()
        self._variant = {shape: k for k, shape in enumerate(meshes)}
        if "mesh" in self.kinds:
            self.model = self._with_meshes(meshes)

    def _with_meshes(self, meshes: Sequence[Shape]) -> mujoco.MjModel:
        spec = self.scene.spec(step=self.step, parameters=[p.name for p in self.parameters])
        for k, shape in enumerate(meshes):
            spec.add_mesh(name=f"mesh_{k}", uservert=np.asarray(shape.corners, dtype=np.float32).ravel())
        for body, kind in zip(self.scene.bodies, self.kinds, strict=True):
            if kind == "mesh":
                geom = spec.geom(body.name)
                geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_MESH, "mesh_0"
        try:
            return spec.compile()
        except ValueError as error:
            raise SceneError(f"a mesh cannot be simulated: {str(error).splitlines()[0]}") from error

    def roll(self, rows: Sequence[tuple[Body, ...]], starts: FreeStarts, values: Array, samples: int) -> FreeMotion:
        """Roll out each start with the bodies of its row and its row of `values` [N, P], the start included."""
        if len(rows) > CHUNK:
            raise ValueError(f"at most {CHUNK} rollouts at once, got {len(rows)}")
        self._rows = tuple(rows)
        return self.run(starts, values, samples)

    def _bodies(self, body: int) -> list[Body]:
        return [row[body] for row in self._rows]

    def centres(self, starts: FreeStarts, value: Mapping[str, Array]) -> Array:
        """Centres of mass in the bodies' frames [N, B, 3] [m]."""
        return np.array([[body.centre for body in row] for row in self._rows])

    def _write(self, batch: Batch, value: Mapping[str, Array], com: Array) -> None:
        """Each simulation's bodies, then its parameters, into its model."""
        mass, inertia = batch.expand("body_mass"), batch.expand("body_inertia")
        frame, centre = batch.expand("body_iquat"), batch.expand("body_ipos")
        for body in range(len(self.kinds)):
            bodies = self._bodies(body)
            mass[:, 1 + body] = [b.mass for b in bodies]
            principal, axes = principal_frame(np.array([b.inertia_matrix for b in bodies]))
            inertia[:, 1 + body], frame[:, 1 + body] = principal, axes
        centre[:, 1 : 1 + len(self.kinds)] = com
        none = np.zeros(batch.nsim)
        self._write_sizes(batch, none + 1.0, value.get("edge_radius", none))
        super()._write(batch, value, com)

    def _write_sizes(self, batch: Batch, scale: Array, radius: Array) -> None:
        """Lengths and meshes; a box with rounded edges is smaller by their radius and kept off by as much."""
        sizes, bounds, boxes = batch.expand("geom_size"), batch.expand("geom_rbound"), batch.expand("geom_aabb")
        off = np.zeros((batch.nsim, self.model.ngeom))
        for body, kind in enumerate(self.kinds):
            geom = self.model.geom(self.scene.bodies[body].name).id
            if kind == "mesh":
                self._write_mesh(batch, body, geom)
                continue
            half = np.array([b.solid.extent for b in self._bodies(body)]) / 2
            if kind == "box":
                off[:, geom] = np.minimum(radius, MOST_ROUND * half.min(axis=-1))
            kept = half - off[:, [geom]]
            boxes[:, geom, :3], boxes[:, geom, 3:] = 0.0, kept
            sizes[:, geom] = kept if kind == "box" else np.stack([half[:, 0], half[:, 2], 0 * radius], axis=-1)
            if kind == "sphere":
                sizes[:, geom, 1:] = 0.0
            across = kept if kind == "box" else half[:, :1] if kind == "sphere" else half[:, [0, 2]]
            bounds[:, geom] = np.linalg.norm(across, axis=-1)
        if off.any() or batch.expanded("pair_margin") is not None:
            batch.expand("pair_margin")[:] = off[:, self.model.pair_geom1] + off[:, self.model.pair_geom2]

    def _write_mesh(self, batch: Batch, body: int, geom: int) -> None:
        """The mesh that each simulation's body takes; MuJoCo turned each into its principal frame."""
        variant = np.array([self._variant[b.solid] for b in self._bodies(body)])
        batch.expand("geom_dataid")[:, geom] = variant
        batch.expand("geom_pos")[:, geom] = self.model.mesh_pos[variant]
        batch.expand("geom_quat")[:, geom] = self.model.mesh_quat[variant]
        box = np.array([self._mesh_box(int(k)) for k in range(self.model.nmesh)])
        batch.expand("geom_aabb")[:, geom] = box[variant]
        batch.expand("geom_size")[:, geom] = box[variant, 3:]
        batch.expand("geom_rbound")[:, geom] = self._mesh_reach()[variant]

    def _mesh_vertices(self, mesh: int) -> Array:
        first = int(self.model.mesh_vertadr[mesh])
        return np.asarray(self.model.mesh_vert[first : first + int(self.model.mesh_vertnum[mesh])], dtype=np.float64)

    def _mesh_box(self, mesh: int) -> Array:
        points = self._mesh_vertices(mesh)
        low, high = points.min(axis=0), points.max(axis=0)
        return np.concatenate([(low + high) / 2, (high - low) / 2])

    def _mesh_reach(self) -> Array:
        return np.array([np.linalg.norm(self._mesh_vertices(k), axis=-1).max() for k in range(self.model.nmesh)])


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
