"""Trajectories on disk: a JSON header and sharded Parquet, one row per trajectory; the same bytes after a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from pydantic import Field

from carom.core import artefacts
from carom.core.artefacts import UNITS, Header, Keys, refuse_earlier, refuse_other_settings
from carom.core.errors import CaromError
from carom.core.progress import Steps
from carom.core.shards import HEADER, Shards, parquet, rows_of
from carom.core.work import make_pieces
from carom.scenes.shapes import Body
from carom.state import Array

FORMAT = "carom-trajectories/1"
EARLIER = "header.json"  #: the header's name in earlier versions
FREE = ("made_from.recordings.name", "made_from.parameters.name")  #: folders and files may be moved meanwhile
SHARD = 250  #: trajectories in a file: a kill loses at most these
MOST = 10_000_000  #: trajectories of a data set
Part = tuple[int, range]  #: number of a shard, and of its trajectories
STATUSES = ("ok", "failed", "away", "overlap")
MADE_WITH = ("mujoco", "numpy", "pyarrow")  #: packages that the data depend on
_NUMBERS = pa.large_list(pa.float64())
_TEXTS = pa.list_(pa.string())
SCHEMA = pa.schema(
    [
        ("index", pa.int64()),
        ("source", pa.string()),
        ("status", pa.string()),
        ("samples", pa.int32()),
        ("bodies", pa.int32()),
        ("name", _TEXTS),
        ("shape", _TEXTS),
        ("size", _NUMBERS),
        ("mass", _NUMBERS),
        ("com", _NUMBERS),
        ("inertia", _NUMBERS),
        ("parameters", _NUMBERS),
        ("gravity", pa.float64()),
        ("ground", _NUMBERS),
        ("start_velocity", _NUMBERS),
        ("start_spin", _NUMBERS),
        ("position", _NUMBERS),
        ("quaternion", _NUMBERS),
    ]
)
#: what each column holds, for the header
COLUMNS = {
    "index": "number of the trajectory",
    "source": "the scene, or the recording that it was drawn around or rotated from",
    "status": "ok; failed: the engine gave up; away: a body left the scene; overlap: bodies began in each other",
    "samples": "T",
    "bodies": "B",
    "name": "[B]",
    "shape": "[B] box, sphere, cylinder (axis z) or mesh:NAME",
    "size": "[B, 3] full lengths along the body's axes [m], as simulated",
    "mass": "[B] kg",
    "com": "[B, 3] centre of mass in the body's frame [m]",
    "inertia": "[B, 3, 3] about the centre of mass, in the body's axes [kg m^2]",
    "parameters": "[P] in the order of the header's parameters; NaN: its group has no such one",
    "gravity": "of this trajectory [m/s^2], along -z",
    "ground": "[4] nx, ny, nz, height [m]: the points p with n . p = height; NaN over an air table",
    "start_velocity": "[B, 3] of the bodies' frames [m/s]; NaN if it was not set",
    "start_spin": "[B, 3] world [rad/s]; NaN if it was not set",
    "position": "[T, B, 3] of the bodies' frames [m]",
    "quaternion": "[T, B, 4] w-first, world from body",
}


class ParameterKeys(Keys):
    """What a header says of a parameter."""

    value: float | None  #: None: each group has its own
    unit: str
    interval: tuple[float, float]


class GroupKeys(Keys):
    """Parameters of trajectories that are drawn around some recordings."""

    recordings: list[str]
    values: dict[str, ParameterKeys]


class ParametersKeys(Keys):
    """What a header says of all parameters."""

    source: str
    drawn: str
    values: dict[str, ParameterKeys]
    groups: list[GroupKeys] = Field(default_factory=list)


class HowKeys(Keys):
    """By which command, and how, trajectories were made."""

    command: str
    how: str


class MeshKeys(Keys):
    """A mesh: vertices [V, 3] [m] and triangles [F, 3]."""

    vertices: list[tuple[float, float, float]]
    faces: list[tuple[int, int, int]]


class TrajectoriesHeader(Header):
    """The header of trajectories; what follows the columns is there if they were simulated."""

    count: int = Field(gt=0)
    shard: int = Field(gt=0)
    made_by: HowKeys
    scene: str
    seed: int
    period: float = Field(gt=0, allow_inf_nan=False)
    units: dict[str, str]
    parameters: ParametersKeys
    ranges: dict[str, Any]
    meshes: dict[str, MeshKeys]
    columns: dict[str, str]
    samples: int = 0
    gravity: float | tuple[float, float] = 0.0  #: of all rows, or the range that they are in
    ground_height: float = 0.0
    planar: bool = False
    bodies: list[dict[str, Any]] = Field(default_factory=list)
    recordings: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Row:
    """One trajectory as it is written."""

    index: int
    source: str
    status: str
    bodies: tuple[Body, ...]
    parameters: Array  #: [P]
    gravity: float
    ground: Array  #: [4]
    position: Array  #: [T, B, 3] m
    quaternion: Array  #: [T, B, 4]
    start_velocity: Array = field(default_factory=lambda: np.zeros(0))  #: [B, 3] m/s; empty: not known
    start_spin: Array = field(default_factory=lambda: np.zeros(0))  #: [B, 3] rad/s


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table of the format."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for row in rows:
        unknown = np.full((len(row.bodies), 3), np.nan)
        for name, value in (
            ("index", row.index),
            ("source", row.source),
            ("status", row.status),
            ("samples", len(row.position)),
            ("bodies", len(row.bodies)),
            ("name", [b.name for b in row.bodies]),
            ("shape", [_label(b) for b in row.bodies]),
            ("size", _flat([b.solid.extent for b in row.bodies])),
            ("mass", _flat([b.mass for b in row.bodies])),
            ("com", _flat([b.centre for b in row.bodies])),
            ("inertia", _flat([b.inertia_matrix for b in row.bodies])),
            ("parameters", _flat(row.parameters)),
            ("gravity", row.gravity),
            ("ground", _flat(row.ground)),
            ("start_velocity", _flat(row.start_velocity if row.start_velocity.size else unknown)),
            ("start_spin", _flat(row.start_spin if row.start_spin.size else unknown)),
            ("position", _flat(row.position)),
            ("quaternion", _flat(row.quaternion)),
        ):
            columns[name].append(value)
    return pa.table([_column(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names], SCHEMA)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """One column; lists of numbers from one flat array, which is much faster than from many."""
    if kind != _NUMBERS:
        return pa.array(values, kind)
    offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(values)))


def _label(body: Body) -> str:
    """The shape of a body as the format names it."""
    mesh = body.solid.mesh
    return body.solid.kind if mesh is None else f"mesh:{mesh.name}"


def _flat(values: Any) -> Array:
    return np.asarray(values, dtype=np.float64).ravel()


def shards_of(folder: Path, header: Mapping[str, Any]) -> Shards:
    """The files of a folder of trajectories with this header."""
    return Shards(folder, "trajectories", header["count"], header["shard"], header, dict(header.get("files", {})))


def write_shards(
    folder: Path,
    count: int,
    header: Mapping[str, Any],
    make: Callable[[Part], tuple[Sequence[Row], float]],
    *,
    progress: Steps | None = None,
) -> tuple[int, float]:
    """Write `count` trajectories, asking `make((shard, indices))` for rows and seconds in the engine where a shard is
    not there yet; returns how many were made, and those seconds.

    After a kill the same call goes on where it stopped and ends with the same bytes; so does one with a larger count.
    """
    if not 1 <= count <= MOST:
        raise CaromError(f"--count: expected from 1 to {MOST} trajectories, got {count}")
    if folder.exists() and not folder.is_dir():
        raise CaromError(f"--out {folder}: expected a folder, or a name for a new one; that is a file")
    whole = {"format": FORMAT, "count": count, "shard": SHARD, **header}
    store = shards_of(folder, {**whole, "files": _files_there(folder, whole)})
    store.begin()
    kept = _Counted(store)
    report = None if progress is None else lambda done, _: progress(min(done * SHARD, count), count)
    make_pieces(store.keys, kept, _Shard(make, count, SHARD), progress=report)
    return kept.made, kept.engine_seconds


@final
class _Shard:
    """The content of a shard by its number, and the seconds that it took in the engine."""

    def __init__(self, make: Callable[[Part], tuple[Sequence[Row], float]], count: int, size: int) -> None:
        self.make, self.count, self.size = make, count, size

    def __call__(self, shard: int) -> tuple[bytes, float]:
        rows, seconds = self.make((shard, rows_of(shard, self.count, self.size)))
        return parquet(table_of(rows)), seconds


@final
class _Counted:
    """A `Store` of shards that counts what was made."""

    def __init__(self, store: Shards) -> None:
        self.store, self.made, self.engine_seconds = store, 0, 0.0

    def has(self, key: int) -> bool:
        """See `Store`."""
        return self.store.has(key)

    def put(self, key: int, piece: tuple[bytes, float]) -> None:
        """See `Store`."""
        content, seconds = piece
        self.store.put(key, content)
        self.made += len(self.store.rows(key))
        self.engine_seconds += seconds


def _files_there(folder: Path, header: Mapping[str, Any]) -> dict[str, str]:
    """Shards that are there already, with their checksums; raises if they were made otherwise than `header` says."""
    path = folder / HEADER
    folder.mkdir(parents=True, exist_ok=True)
    refuse_earlier(folder / EARLIER, again="carom scale, in a new folder,")
    if path.exists():
        there = read_header(folder)
        refuse_other_settings(path, header, "trajectories", free=("count", *FREE))
        if there["count"] > header["count"]:
            raise CaromError(
                f"{folder} holds {there['count']} trajectories already; ask for as many or more, or delete it"
            )
        return dict(there["files"])
    if any(folder.glob("trajectories-*.parquet")):
        raise CaromError(f"{folder} holds trajectories without their {HEADER}; choose another --out or delete them")
    return {}


def read_header(folder: Path) -> dict[str, Any]:
    """The header of a folder of trajectories, checked for format and units."""
    path = folder / HEADER
    missing = f"{folder} holds no trajectories ({HEADER} is missing); make some with: carom scale --out {folder}"
    if not path.is_file():
        refuse_earlier(folder / EARLIER, again="carom scale, in a new folder,")
    return artefacts.read_header(
        path, TrajectoriesHeader, FORMAT, missing=missing, again="carom scale", units=UNITS, error=CaromError
    )


def read_rows(folder: Path, header: Mapping[str, Any], *, columns: list[str] | None = None) -> pa.Table:
    """All trajectories of a folder, with the columns of the format, or with some of them."""
    wanted, store = columns or SCHEMA.names, shards_of(folder, header)
    tables = []
    for key in store.keys:
        table = store.read(key, columns=columns)
        if not table.schema.equals(pa.schema([SCHEMA.field(name) for name in wanted])):
            missing = [name for name in wanted if name not in table.column_names]
            raise CaromError(
                f"{store.path(key)}: expected the columns of {FORMAT}; missing or of another type: {missing or 'some'}"
            )
        lost = next((name for name in wanted if _has_nulls(table[name])), None)
        if lost is not None:
            raise CaromError(f"{store.path(key)} is damaged: column '{lost}' has empty places")
        tables.append(table)
    return pa.concat_tables(tables)


def _has_nulls(column: pa.ChunkedArray) -> bool:
    lists = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    return bool(column.null_count or (lists and any(chunk.values.null_count for chunk in column.chunks)))


def meshes_of(bodies: Sequence[Body]) -> dict[str, Any]:
    """The meshes among some bodies, for the header."""
    meshes = [b.solid.mesh for b in bodies]
    return {m.name: {"vertices": m.vertices.tolist(), "faces": m.faces.tolist()} for m in meshes if m is not None}
