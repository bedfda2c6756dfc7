"""`D_sim`: simulated impacts as sharded Parquet that survives a kill, resumes, and is the same for a seed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from carom.core.errors import CaromError
from carom.core.progress import Steps
from carom.engines.compliant import simulate
from carom.engines.contact_frames import contact_frames, to_world
from carom.engines.mujoco.collide import FAILED, MISSED, Collider
from carom.learn.impact.sample import sample_parameters, sample_strikes
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

SHARD = 4096  #: impacts in a file: a kill loses at most these
FORMAT = "carom-impacts/1"
_STRIKE = ("striker_x", "striker_y", "striker_yaw", "striker_vx", "striker_vy")
_POST = ("post_vx", "post_vy", "post_wz")


@dataclass(frozen=True)
class ImpactData:
    """Simulated impacts: `(S_pre, P, S_post)`."""

    strikes: Strikes
    values: Array  #: [N, P] parameters, in the order of the scene's
    post: Array  #: [N, 3] vx, vy, wz of the target's actual centre of mass, world frame [m/s, m/s, rad/s]
    engine_share: float  #: of the wall time of what was simulated now; 1 if all was there already
    seconds: float  #: wall time of what was simulated now
    simulated: int  #: impacts simulated now; the others were read from disk


def generate(
    scene: StrikeScene,
    teacher: str,
    count: int,
    folder: Path,
    *,
    seed: int = 0,
    threads: int = 0,
    progress: Steps | None = None,
) -> ImpactData:
    """Simulate `count` impacts of the scene into `folder`, shard by shard, and return them.

    Shards that are there already are kept: after a kill the same call goes on where it stopped and ends
    with the same bytes.
    """
    parameters = scene.parameters(teacher)
    folder.mkdir(parents=True, exist_ok=True)
    _check_header(folder, scene, teacher, seed)
    collider = Collider(scene, parameters, threads=threads) if teacher == "mujoco" else None
    tables, seconds, engine, simulated = [], 0.0, 0.0, 0
    shards = -(-count // SHARD)
    for index in range(shards):
        path = folder / f"impacts-{index:05d}.parquet"
        if not path.exists():
            table, spent, inside = _simulate_shard(scene, parameters, collider, seed, index)
            seconds, engine, simulated = seconds + spent, engine + inside, simulated + SHARD
            temporary = path.with_suffix(".part")
            pq.write_table(table, temporary, compression="zstd")
            os.replace(temporary, path)
        tables.append(_read_shard(path, parameters))
        if progress:
            progress(min((index + 1) * SHARD, count), count)
    table = pa.concat_tables(tables).slice(0, count)
    return _as_data(table, parameters, engine / seconds if seconds else 1.0, seconds, simulated)


def _simulate_shard(
    scene: StrikeScene, parameters: tuple[Parameter, ...], collider: Collider | None, seed: int, index: int
) -> tuple[pa.Table, float, float]:
    from time import perf_counter

    start = perf_counter()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
    strikes = sample_strikes(scene, SHARD, rng)
    values = sample_parameters(parameters, SHARD, rng)
    if collider is not None:
        outcome = collider.run(strikes, values)
        post, status, engine = outcome.post_mass_centre, outcome.status, outcome.engine_seconds
    else:
        frames = contact_frames(scene, strikes)
        before = perf_counter()
        post = to_world(scene, frames, simulate(scene, frames, parameters, values))
        engine = perf_counter() - before
        status = np.where(np.isfinite(post).all(axis=-1), 0, FAILED).astype(np.int8)
    columns: dict[str, Any] = dict(
        zip(_STRIKE, np.c_[strikes.striker_pose, strikes.striker_velocity[:, :2]].T, strict=True)
    )
    columns |= {p.name: values[:, i] for i, p in enumerate(parameters)}
    columns |= dict(zip(_POST, post.T, strict=True)) | {"status": status}
    return pa.table(columns), perf_counter() - start, engine


def _read_shard(path: Path, parameters: tuple[Parameter, ...]) -> pa.Table:
    wanted = [*_STRIKE, *(p.name for p in parameters), *_POST, "status"]
    try:
        return pq.read_table(path, columns=wanted)
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        raise CaromError(
            f"{path} is damaged ({str(error).splitlines()[0]}); delete it and run the same command again"
        ) from error


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


def _check_header(folder: Path, scene: StrikeScene, teacher: str, seed: int) -> None:
    """Write how the data are made, or refuse to mix them with data made otherwise."""
    header = {
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
    }
    path = folder / "dataset.json"
    text = json.dumps(header, indent=1)
    if not path.exists():
        path.write_text(text)
        return
    if json.loads(path.read_text()) != json.loads(text):
        raise CaromError(f"{folder} holds impacts of another scene, teacher or seed; choose another --out or delete it")
