"""`D_sim`: simulated impacts in Parquet shards. The same seed gives the same bytes, also after a kill."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from carom.core.artefacts import Header, read_header, refuse_earlier, refuse_other_settings, versions
from carom.core.errors import CaromError
from carom.core.progress import Steps
from carom.core.shards import HEADER, Shards, parquet
from carom.core.work import PerProcess, make_pieces
from carom.engines.compliant import simulate
from carom.engines.contact_frames import contact_frames, to_world
from carom.engines.mujoco.collide import FAILED, MISSED, Collider
from carom.learn.impact.sample import sample_parameters, sample_strikes
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

SHARD = 4096  #: impacts in a file: a kill loses at most these
FORMAT = "carom-impacts/1"
EARLIER = "dataset.json"  #: the header's name in earlier versions
_STRIKE = ("striker_x", "striker_y", "striker_yaw", "striker_vx", "striker_vy")
_POST = ("post_vx", "post_vy", "post_wz")


class ImpactsHeader(Header):
    """The header of simulated impacts."""

    teacher: str
    seed: int
    shard: int
    scene: dict[str, Any]
    ranges: dict[str, Any]
    bounds: dict[str, tuple[float, float]]
    units: dict[str, str]


@dataclass(frozen=True)
class ImpactData:
    """Simulated impacts: `(S_pre, P, S_post)`."""

    strikes: Strikes
    values: Array  #: [N, P] parameters, in the order of the scene's
    post: Array  #: [N, 3] vx, vy, wz of the target's actual centre of mass, world frame [m/s, m/s, rad/s]
    engine_share: float  #: of the wall time of what was simulated now; 1 if all was there already
    seconds: float  #: wall time of what was simulated now
    simulated: int  #: impacts simulated now; the others were read from disk

    def first(self, count: int) -> ImpactData:
        """The first `count` impacts."""
        return replace(self, strikes=self.strikes[:count], values=self.values[:count], post=self.post[:count])


def generate(
    scene: StrikeScene,
    teacher: str,
    count: int,
    folder: Path,
    *,
    seed: int = 0,
    shard: int | None = None,
    threads: int = 0,
    progress: Steps | None = None,
) -> ImpactData:
    """Simulate `count` impacts of the scene into `folder`, `shard` in each file (`SHARD` if None), and return them.

    Shards that are there already are kept: after a kill the same call goes on where it stopped and ends
    with the same bytes.
    """
    shard = shard or SHARD
    folder.mkdir(parents=True, exist_ok=True)
    header = {**_header(scene, teacher, seed), "shard": shard}
    refuse_earlier(folder / EARLIER, again="carom distill, in a new folder,")
    files: dict[str, str] = {}
    if (folder / HEADER).exists():
        refuse_other_settings(folder / HEADER, header, "impacts")
        again = "carom distill, in a new folder,"
        files = read_header(folder / HEADER, ImpactsHeader, FORMAT, missing="", again=again, error=CaromError)["files"]
    whole = -(-count // shard) * shard  # all shards are full; the rest is cut off
    store = Shards(folder, "impacts", whole, shard, header, files)
    store.begin()
    kept, parameters = _Timed(store), scene.parameters(teacher)
    report = None if progress is None else lambda done, _: progress(min(done * shard, count), count)
    simulate_shard = PerProcess(partial(_Simulation, scene, teacher, seed, shard, threads))
    made = make_pieces(store.keys, kept, simulate_shard, progress=report)
    columns = [*_STRIKE, *(p.name for p in parameters), *_POST, "status"]
    table = pa.concat_tables([_checked(store, key, columns) for key in store.keys]).slice(0, count)
    return _as_data(table, parameters, kept.engine_share, kept.seconds, made * shard)


def _checked(store: Shards, key: int, columns: list[str]) -> pa.Table:
    """A shard with these columns, all of them numbers; a status tells where an outcome may be none."""
    table, path = store.read(key, columns=columns), store.path(key)
    if table.column_names != columns or len(table) != len(store.rows(key)):
        raise CaromError(f"{path} is damaged: expected {len(store.rows(key))} rows of {', '.join(columns)}")
    for name in columns:
        kind = pa.int8() if name == "status" else pa.float64()
        if table[name].type != kind or table[name].null_count:
            raise CaromError(f"{path} is damaged: column '{name}': expected {kind}, got {table[name].type}")
        good = table["status"].to_numpy() == 0 if name in _POST else slice(None)
        if not np.isfinite(table[name].to_numpy()[good]).all():
            raise CaromError(f"{path} is damaged: column '{name}' holds numbers that are not finite")
    return table


def simulated(scene: StrikeScene, teacher: str, count: int, *, seed: int = 0, threads: int = 0) -> ImpactData:
    """`count` impacts that are not kept on disk."""
    simulation, start = _Simulation(scene, teacher, seed, count, threads), perf_counter()
    table = simulation.table(0)
    spent = perf_counter() - start
    return _as_data(table, simulation.parameters, simulation.engine_seconds / spent, spent, count)


@dataclass(frozen=True)
class _Shard:
    """A shard of impacts, and what it took."""

    content: bytes
    seconds: float
    engine_seconds: float


@final
class _Timed:
    """A `Store` of shards that adds up the time which these took."""

    def __init__(self, store: Shards) -> None:
        self.store, self.seconds, self.engine_seconds = store, 0.0, 0.0

    @property
    def engine_share(self) -> float:
        """Share of the time that was spent in the engine; 1 if none was spent at all."""
        return self.engine_seconds / self.seconds if self.seconds else 1.0

    def has(self, key: int) -> bool:
        """See `Store`."""
        return self.store.has(key)

    def put(self, key: int, piece: _Shard) -> None:
        """See `Store`."""
        self.seconds += piece.seconds
        self.engine_seconds += piece.engine_seconds
        self.store.put(key, piece.content)


class _Simulation:
    """Simulates shards of impacts, which depend on the seed and on the shard's number."""

    def __init__(self, scene: StrikeScene, teacher: str, seed: int, size: int, threads: int) -> None:
        self.scene, self.seed, self.size, self.parameters = scene, seed, size, scene.parameters(teacher)
        self.collider = Collider(scene, self.parameters, threads=threads) if teacher == "mujoco" else None
        self.engine_seconds = 0.0

    def __call__(self, key: int) -> _Shard:
        """One shard."""
        start, before = perf_counter(), self.engine_seconds
        table = self.table(key)
        spent = perf_counter() - start
        return _Shard(parquet(table), spent, self.engine_seconds - before)

    def table(self, key: int) -> pa.Table:
        """The impacts of one shard."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(key,)))
        strikes = sample_strikes(self.scene, self.size, rng)
        values = sample_parameters(self.parameters, self.size, rng)
        post, status = self._outcomes(strikes, values)
        columns: dict[str, Any] = dict(
            zip(_STRIKE, np.c_[strikes.striker_pose, strikes.striker_velocity[:, :2]].T, strict=True)
        )
        columns |= {p.name: values[:, i] for i, p in enumerate(self.parameters)}
        columns |= dict(zip(_POST, post.T, strict=True)) | {"status": status}
        return pa.table(columns)

    def _outcomes(self, strikes: Strikes, values: Array) -> tuple[Array, NDArray[np.int8]]:
        """Velocities after the impacts [N, 3], and their status [N]."""
        if self.collider is not None:
            outcome = self.collider.run(strikes, values)
            self.engine_seconds += outcome.engine_seconds
            return outcome.post_mass_centre, outcome.status
        frames = contact_frames(self.scene, strikes)
        before = perf_counter()
        post = to_world(self.scene, frames, simulate(self.scene, frames, self.parameters, values))
        self.engine_seconds += perf_counter() - before
        return post, np.where(np.isfinite(post).all(axis=-1), 0, FAILED).astype(np.int8)


def _as_data(table: pa.Table, parameters: tuple[Parameter, ...], share: float, seconds: float, new: int) -> ImpactData:
    status = table["status"].to_numpy()
    good = (status != FAILED) & (status != MISSED)
    columns = {name: table[name].to_numpy()[good] for name in table.column_names}
    zero = np.zeros((int(good.sum()), 3))
    velocity = np.stack([columns["striker_vx"], columns["striker_vy"], zero[:, 0]], axis=-1)
    pose = np.stack([columns[n] for n in _STRIKE[:3]], axis=-1)
    values = np.stack([columns[p.name] for p in parameters], axis=-1)
    post = np.stack([columns[n] for n in _POST], axis=-1)
    return ImpactData(Strikes(zero, zero, pose, velocity), values, post, share, seconds, new)


def _header(scene: StrikeScene, teacher: str, seed: int) -> dict[str, Any]:
    """How the impacts are made: data made otherwise are not mixed with them."""
    return {
        "format": FORMAT,
        "teacher": teacher,
        "seed": seed,
        "scene": scene.signature(),
        "ranges": {
            "speed_m_s": list(scene.speed),
            "deflection_rad": scene.deflection,
            "arc_rad": scene.arc,
            "face_angle_rad": scene.face_angle,
        },
        "bounds": {p.name: [p.low, p.high] for p in scene.parameters(teacher)},
        "units": {"length": "m", "angle": "rad", "time": "s"},
        "made_from": {"scene": scene.name},
        "made_with": versions(("mujoco", "numpy", "pyarrow")),
    }
