"""Scaled trajectories as a learner reads them: one folder, checked, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from carom.core.errors import CaromError, short
from carom.recordings.trajectory import Ground
from carom.scale.shards import STATUSES, read_header, read_rows, shards_of
from carom.scenes.mesh_files import Mesh, solid_mesh
from carom.scenes.shapes import HEAVIEST, LIGHTEST, LONGEST, SHORTEST, Body, Shape, six_of
from carom.state import Array

#: how many values a row has in a column: a number for each body, times the samples, or just a number
_PER_BODY = {"size": 3, "mass": 1, "com": 3, "inertia": 9, "start_velocity": 3, "start_spin": 3, "name": 1, "shape": 1}
_PER_SAMPLE = {"position": 3, "quaternion": 4}
_SHAPES = ("box", "sphere", "cylinder", "disc")
_FAR = 1e9  #: no body gets there before its simulation is given up
#: what numbers may be
_WITHIN = {
    "position": (-_FAR, _FAR),
    "quaternion": (-2.0, 2.0),
    "size": (SHORTEST, LONGEST),
    "mass": (LIGHTEST, HEAVIEST),
    "com": (-LONGEST, LONGEST),
    "inertia": (-_FAR, _FAR),
    "parameters": (-_FAR, _FAR),
}
_LISTS = (*_PER_BODY, *_PER_SAMPLE, "parameters", "ground")


@dataclass(frozen=True, eq=False)
class ScaledTrajectory:
    """One trajectory: its bodies, its parameters, and their motion."""

    index: int
    source: str  #: the scene, or the recording that it comes from
    status: str  #: one of `STATUSES`
    period: float  #: [s]
    bodies: tuple[Body, ...]
    parameters: Mapping[str, float]
    gravity: float  #: [m/s^2] downwards
    ground: Ground | None  #: None over an air table
    position: Array  #: [T, B, 3] m, of the bodies' frames
    quaternion: Array  #: [T, B, 4] w-first, world from body
    start_velocity: Array  #: [B, 3] m/s, of the frames; NaN if it was not set
    start_spin: Array  #: [B, 3] rad/s, world; NaN if it was not set

    def __len__(self) -> int:
        return len(self.position)

    @property
    def time(self) -> Array:
        """Time of each sample [T] [s]."""
        return np.asarray(np.arange(len(self.position)) * self.period, dtype=np.float64)


class _Lists:
    """A column of lists, read row by row without a copy; the arrays cannot be written to."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        whole = column.combine_chunks()
        whole = whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
        self.offsets = whole.offsets.to_numpy()
        self.values = whole.values.to_numpy(zero_copy_only=False)
        self.values.flags.writeable = False

    def __getitem__(self, row: int) -> Any:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.asarray(np.diff(self.offsets), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Columns:
    """All rows of all shards."""

    lists: Mapping[str, _Lists]
    plain: Mapping[str, NDArray[Any]]
    meshes: Mapping[str, Mesh]

    @classmethod
    def of(cls, table: pa.Table, header: Mapping[str, Any]) -> _Columns:
        meshes = {name: _mesh(name, m) for name, m in header["meshes"].items()}
        plain = {n: table[n].to_numpy() for n in ("index", "source", "status", "samples", "bodies", "gravity")}
        return cls({name: _Lists(table[name]) for name in _LISTS}, plain, meshes)


@dataclass(frozen=True, eq=False)
class Trajectories(Sequence[ScaledTrajectory]):
    """A folder of trajectories, in memory; made by `load`.

    `data[i]` is one of them, `data[3:9]` some; `data.ok` leaves out those that failed.
    """

    folder: Path
    header: Mapping[str, Any]
    rows: NDArray[np.int64]  #: of the folder, that are in this set
    columns: _Columns

    @property
    def period(self) -> float:
        """Time between two samples [s]."""
        return float(self.header["period"])

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the columns of `parameters`."""
        return tuple(self.header["parameters"]["values"])

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ScaledTrajectory]:
        return (self._at(int(row)) for row in self.rows)

    @overload
    def __getitem__(self, item: int) -> ScaledTrajectory: ...

    @overload
    def __getitem__(self, item: slice | list[int] | NDArray[Any]) -> Trajectories: ...

    def __getitem__(self, item: Any) -> Any:
        """One trajectory for a number, the dataset of some for a slice or an array."""
        if isinstance(item, int | np.integer):
            return self._at(int(self.rows[item]))
        return self._with(self.rows[item])

    def _with(self, rows: NDArray[np.int64]) -> Trajectories:
        return replace(self, rows=rows)

    @property
    def ok(self) -> Trajectories:
        """Those whose simulation went well."""
        return self._with(self.rows[self.status == "ok"])

    @property
    def status(self) -> NDArray[Any]:
        """Status of each trajectory [N]."""
        return np.asarray(self.columns.plain["status"][self.rows])

    @property
    def body_counts(self) -> NDArray[np.int64]:
        """Number of bodies of each trajectory [N]."""
        return np.asarray(self.columns.plain["bodies"][self.rows], dtype=np.int64)

    @property
    def parameters(self) -> Array:
        """Parameters of each trajectory [N, P], in the order of `parameter_names`."""
        empty = np.zeros((len(self), len(self.parameter_names)))
        return np.array([self.columns.lists["parameters"][r] for r in self.rows]).reshape(empty.shape)

    def by_bodies(self) -> dict[int, Trajectories]:
        """Trajectories with the same number of bodies together."""
        counts = self.body_counts
        return {int(n): self._with(self.rows[counts == n]) for n in np.unique(counts)}

    def arrays(self) -> tuple[Array, Array]:
        """Positions [N, T, B, 3] and quaternions [N, T, B, 4]; all must have as many bodies and samples."""
        shapes = {(int(self.columns.plain["samples"][r]), int(self.columns.plain["bodies"][r])) for r in self.rows}
        if len(shapes) != 1:
            raise CaromError(
                f"{self.folder}: trajectories of {len(shapes)} different lengths or numbers of bodies do not make one "
                "array; take them apart with by_bodies(), or one by one"
            )
        many = list(self)
        return np.stack([t.position for t in many]), np.stack([t.quaternion for t in many])

    def _at(self, row: int) -> ScaledTrajectory:
        count, samples = int(self.columns.plain["bodies"][row]), int(self.columns.plain["samples"][row])

        def part(name: str, *shape: int) -> Array:
            return np.asarray(self.columns.lists[name][row]).reshape(shape)

        ground = part("ground", 4)
        x, y, z, height = (float(v) for v in ground)
        values = part("parameters", len(self.parameter_names)).tolist()
        return ScaledTrajectory(
            index=int(self.columns.plain["index"][row]),
            source=str(self.columns.plain["source"][row]),
            status=str(self.columns.plain["status"][row]),
            period=self.period,
            bodies=self._bodies(row, count, part),
            parameters={n: v for n, v in zip(self.parameter_names, values, strict=True) if np.isfinite(v)},
            gravity=float(self.columns.plain["gravity"][row]),
            ground=Ground((x, y, z), height) if np.isfinite(ground).all() else None,
            position=part("position", samples, count, 3),
            quaternion=part("quaternion", samples, count, 4),
            start_velocity=part("start_velocity", count, 3),
            start_spin=part("start_spin", count, 3),
        )

    def _bodies(self, row: int, count: int, part: Any) -> tuple[Body, ...]:
        names, shapes = (self.columns.lists[name][row] for name in ("name", "shape"))
        size, mass, com = part("size", count, 3), part("mass", count), part("com", count, 3)
        inertia = part("inertia", count, 3, 3)
        return tuple(
            Body(
                str(names[b]),
                "target",
                _shape(str(shapes[b]), size[b], self.columns.meshes),
                float(mass[b]),
                six_of(inertia[b]),
                tuple(com[b].tolist()),
            )
            for b in range(count)
        )


def _mesh(name: str, saved: Mapping[str, Any]) -> Mesh:
    import trimesh

    vertices, faces = np.asarray(saved["vertices"], dtype=np.float64), np.asarray(saved["faces"], dtype=np.int64)
    if not (
        vertices.size and faces.size and np.isfinite(vertices).all() and 0 <= faces.min() <= faces.max() < len(vertices)
    ):
        raise ValueError(f"mesh '{name:.40}': expected finite vertices, and triangles between them")
    return solid_mesh(name, trimesh.Trimesh(vertices, faces, process=False))


def _shape(label: str, size: Array, meshes: Mapping[str, Mesh]) -> Shape:
    """The shape of this name in the format, of these full lengths [3] [m]."""
    x, _, z = lengths = tuple(size.tolist())
    if label.startswith("mesh:"):
        return Shape("mesh", size=lengths, mesh=meshes[label[5:]])
    if label == "box":
        return Shape("box", size=lengths)
    return Shape(label, radius=x / 2, height=z if label == "cylinder" else None)


def summary(folder: Path) -> dict[str, Any]:
    """What is in a folder of trajectories, without reading the motions: statuses, numbers of bodies and of samples."""
    header = read_header(folder)
    names, store = ["status", "bodies", "samples"], shards_of(folder, header)
    table = read_rows(folder, header, columns=names)
    status, bodies, samples = (table[name].to_numpy() for name in names)
    return {
        "scene": header["scene"],
        "how": header["made_by"]["how"],
        "parameters": header["parameters"]["source"],
        "trajectories": len(table),
        "status": {s: int((status == s).sum()) for s in STATUSES if (status == s).any()},
        "bodies": [int(bodies.min()), int(bodies.max())],
        "samples": [int(samples.min()), int(samples.max())],
        "period_s": header["period"],
        "megabytes": sum(store.path(key).stat().st_size for key in store.keys) / 1e6,
    }


def load(folder: str | Path) -> Trajectories:
    """Read a folder that `carom scale` wrote; raises if it is incomplete, damaged or not what its header says."""
    folder = Path(folder)
    header = read_header(folder)
    table = read_rows(folder, header)
    if len(table) != header["count"]:
        raise CaromError(
            f"{folder}: expected {header['count']} trajectories, got {len(table)}; run the same command again"
        )
    try:
        data = Trajectories(folder, header, np.arange(len(table)), _Columns.of(table, header))
        _check(data)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, pa.ArrowException) as error:
        words = f"{type(error).__name__} {' '.join(str(error).split()):.200}"
        raise CaromError(f"{folder}: its header or a shard is damaged: {words}") from error
    return data


def _check(data: Trajectories) -> None:
    """Raise unless every row has the lengths, statuses and numbers that the format promises."""
    plain, lists = data.columns.plain, data.columns.lists
    samples, bodies = plain["samples"].astype(np.int64), plain["bodies"].astype(np.int64)
    lengths = {name: each * bodies for name, each in _PER_BODY.items()}
    lengths |= {name: each * bodies * samples for name, each in _PER_SAMPLE.items()}
    lengths |= {"parameters": 0 * bodies + len(data.parameter_names), "ground": 0 * bodies + 4}
    for name, wanted in lengths.items():
        wrong = np.flatnonzero(lists[name].lengths != wanted)
        if len(wrong):
            row = int(wrong[0])
            raise CaromError(
                f"{data.folder}: trajectory {row}: expected {wanted[row]} values of '{name}', "
                f"got {lists[name].lengths[row]}; the shard is damaged"
            )
    unknown = sorted(set(data.status) - set(STATUSES))
    if unknown:
        raise CaromError(f"{data.folder}: unknown status '{unknown[0]}'; expected {', '.join(STATUSES)}")
    shapes = {s.split(":", 1)[1] for s in set(lists["shape"].values) if s.startswith("mesh:")} - set(
        data.columns.meshes
    )
    if shapes:
        raise CaromError(f"{data.folder}: mesh '{sorted(shapes)[0]}' is not in the header")
    unknown = sorted({s for s in set(lists["shape"].values) if not s.startswith("mesh:")} - set(_SHAPES))
    if unknown:
        raise CaromError(f"{data.folder}: unknown shape '{short(unknown[0])}'; expected {', '.join(_SHAPES)} or a mesh")
    for name, (low, high) in _WITHIN.items():
        values = lists[name].values
        if name == "parameters":  # NaN: the bodies of that row have no such parameter
            values = values[~np.isnan(values)]
        if not ((low <= values) & (values <= high)).all():  # nor is NaN
            raise CaromError(
                f"{data.folder}: '{name}' holds numbers that are not finite, or not from {low:g} to {high:g}; "
                "the shard is damaged"
            )
    norm = np.linalg.norm(lists["quaternion"].values.reshape(-1, 4), axis=-1)
    if np.abs(norm - 1).max(initial=0.0) > 1e-6:
        raise CaromError(f"{data.folder}: quaternions are not of unit length; the shard is damaged")
