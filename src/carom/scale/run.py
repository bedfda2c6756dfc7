"""The whole of `carom scale`: trajectories of a calibrated engine by the thousand (few-shot paper, section III-B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from carom.core.artefacts import UNITS, versions
from carom.core.errors import CaromError
from carom.core.progress import Progress
from carom.core.rotations import matrices
from carom.core.work import PerProcess
from carom.engines.mujoco.engine import MujocoEngine
from carom.scale.calibration import Calibration, Calibrations
from carom.scale.draws import Draw, Maker, Pool, lean, turned
from carom.scale.reader import Trajectories, load, summary
from carom.scale.shards import COLUMNS, MADE_WITH, Part, Row, meshes_of, write_shards
from carom.scale.sources import Source
from carom.scenes.free import FreeScene, timestep
from carom.scenes.parameters import OF_BODIES
from carom.scenes.solids import Variation
from carom.scenes.varied import VariedScene
from carom.state import Array, SceneState

AWAY = 10.0  #: [m] further than this from its start a body has left the scene
STATE = ("position", "quaternion", "velocity", "spin")  #: of the bodies at the start
_Alike = tuple[tuple[str, ...], tuple[str, ...]]  #: kinds of the bodies, and parameters: these run in one batch
_START, _VALUES, _POOL = 0, 1, 2  #: what a random stream is for: with other parameters, starts stay the same


@dataclass(frozen=True, eq=False)
class Scaled:
    """A data set that `scale` or `augment` wrote, and what that took."""

    folder: Path
    made: int  #: trajectories made now; the others were there already
    seconds: float  #: wall time
    engine_seconds: float  #: of those, in the engine
    notes: tuple[str, ...] = ()  #: what a reader should know, like recordings that were left out

    @property
    def data(self) -> Trajectories:
        """All of it, read into memory."""
        return load(self.folder)

    def to_dict(self) -> dict[str, Any]:
        """What is in the folder and what making it took."""
        took = {"made_now": self.made, "seconds": self.seconds, "engine_seconds": self.engine_seconds}
        return {"data": str(self.folder), **summary(self.folder), **took}


def scale(
    source: Source,
    calibration: Calibration | Calibrations,
    out: Path,
    *,
    count: int = 3000,
    variation: Variation | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress | None = None,
) -> Scaled:
    """Simulate `count` trajectories of a source into `out`; after a kill the same call goes on where it stopped.

    Trajectory i depends on the seed and on i alone (where there are meshes, also on which shard it is in).
    """
    variation = variation or Variation()
    found = calibration if isinstance(calibration, Calibrations) else Calibrations((calibration,))
    for one in found.each:
        _refuse_mixtures(source, one)
    start = perf_counter()
    header = _header(source, found, variation, seed, {**source.made_from(), **found.made_from})
    report = None if progress is None else lambda done, total: progress("simulate trajectories", done, total)
    make = PerProcess(partial(_Shards, source, found, variation, seed, threads))
    made, in_engine = write_shards(out, count, header, make, progress=report)
    return Scaled(out, made, perf_counter() - start, in_engine, source.notes())


def _refuse_mixtures(source: Source, calibration: Calibration) -> None:
    names, meshes = calibration.names, any(t.solid.kind == "mesh" for t in source.templates)
    if meshes and calibration.spread and "length_scale" in names:
        low, high = calibration.interval[names.index("length_scale")]
        if low < high:
            raise CaromError("length_scale cannot be drawn for meshes, which are compiled; leave out --spread")
    useless = {"tilt_x", "tilt_y", "gravity", "torsional_friction", "rolling_friction"} & set(names)
    if source.planar and useless:
        raise CaromError(
            f"{', '.join(sorted(useless))}: has no effect over an air table; remove it from the parameters"
        )


def _header(
    source: Source, calibration: Calibrations, variation: Variation, seed: int, made_from: dict[str, Any]
) -> dict[str, Any]:
    least, most = calibration.range_of("gravity", source.gravity)
    return {
        "made_by": {"command": "scale", "how": "simulated in MuJoCo with these parameters"},
        "scene": source.name,
        "seed": seed,
        "period": float(source.period),
        "samples": source.samples,
        "units": UNITS,
        "gravity": least if least == most else [least, most],  # the rows' own, or the range that they are in
        "ground_height": source.ground_height,
        "planar": source.planar,
        "parameters": calibration.to_dict(),
        "ranges": {
            "start": source.ranges(),
            "size_factor": list(variation.size),
            "aspect_factor": [1 / variation.aspect, variation.aspect],
            "density_factor": list(variation.mass),
        },
        "bodies": [
            {"name": t.name, "kind": t.solid.kind, "extent_m": t.solid.extent.tolist(), "mass_kg": t.mass}
            for t in source.templates
        ],
        "meshes": meshes_of(source.templates),
        "columns": COLUMNS,
        "made_from": made_from,
        "made_with": versions(MADE_WITH),
    }


def _of_engine(names: Sequence[str]) -> list[str]:
    """Those of the parameters that are not part of the bodies."""
    return [name for name in names if name not in OF_BODIES]


class _Shards:
    """Makes the rows of shards; compiled models are kept from one to the next."""

    def __init__(
        self, source: Source, calibration: Calibrations, variation: Variation, seed: int, threads: int
    ) -> None:
        self.source, self.calibration, self.variation = source, calibration, variation
        self.seed, self.threads = seed, threads
        self._engines: dict[_Alike, MujocoEngine] = {}

    def __call__(self, part: Part) -> tuple[Sequence[Row], float]:
        """The trajectories of one shard: drawn one by one, simulated together by their number of bodies."""
        (shard, indices), in_engine = part, 0.0
        groups = [self.calibration.of(group) for group in self.source.groups_of_templates()]
        lengths = [dict(zip(one.names, one.value, strict=True)).get("length_scale", 1.0) for one in groups]
        pool = Pool.drawn(self.source.templates, self.variation, lengths, (self.seed, _POOL, shard))
        if len(pool.templates):
            self._engines.clear()  # the meshes are this shard's own
        drawn: list[tuple[Draw, dict[str, float]]] = []
        together: dict[_Alike, list[int]] = {}
        for row, index in enumerate(indices):
            one = self.calibration.of(self.source.group(self._random(_START, index)))
            named = dict(zip(one.names, one.draw(self._random(_VALUES, index)).tolist(), strict=True))
            draw = self.source.draw(Maker(self.variation, pool, named), self._random(_START, index))
            drawn.append((turned(draw, lean(named), self.source.ground_height), named))
            together.setdefault((draw.kinds, one.names), []).append(row)
        rows: dict[int, Row] = {}
        for alike, members in together.items():
            engine = self._engine(alike, drawn[members[0]][0], pool)
            draws = [drawn[row][0] for row in members]
            at, turn, going, spin = (np.array([getattr(draw, name) for draw in draws]) for name in STATE)
            start = SceneState(engine.layout.bodies, at, turn, going, spin)
            own = {name: np.array([drawn[row][1][name] for row in members]) for name in _of_engine(alike[1])}
            run = engine.open(start, own, bodies=[draw.bodies for draw in draws])
            motion = run.rollout((self.source.samples - 1) * self.source.period, frames=self.source.samples)
            in_engine += motion.engine_seconds
            for n, row in enumerate(members):
                draw, named = drawn[row]
                moved = motion.position[n], motion.quaternion[n]
                rows[row] = self._row(indices[row], draw, named, *moved, failed=bool(motion.failed[n]))
        return [rows[row] for row in range(len(indices))], in_engine

    def _random(self, purpose: int, index: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(purpose, index)))

    def _engine(self, alike: _Alike, draw: Draw, pool: Pool) -> MujocoEngine:
        if alike not in self._engines:
            source, names = self.source, _of_engine(alike[1])
            scene = FreeScene(source.name, draw.bodies, source.gravity, source.ground_height, source.planar)
            varied, step = VariedScene(scene, pool.shapes()), timestep(source.period)
            self._engines[alike] = MujocoEngine(varied, names, step=step, threads=self.threads)
        return self._engines[alike]

    def _row(
        self, index: int, draw: Draw, named: dict[str, float], position: Array, quaternion: Array, *, failed: bool
    ) -> Row:
        normal = matrices(lean(named))[:, 2]
        ground = np.array([*normal, normal[2] * self.source.ground_height])
        failed = failed or not (np.isfinite(position).all() and np.isfinite(quaternion).all())
        status = "overlap" if draw.overlap else "failed" if failed else "ok"
        position = np.where(np.isfinite(position), position, draw.position)
        quaternion = np.where(np.isfinite(quaternion), quaternion, draw.quaternion)
        if status == "ok" and _left(draw, position, None if self.source.planar else ground):
            status = "away"
        if self.source.planar:
            ground = np.full(4, np.nan)
        quaternion = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
        return Row(
            index,
            draw.source,
            status,
            draw.bodies,
            np.array([named.get(name, np.nan) for name in self.calibration.names]),
            named.get("gravity", self.source.gravity),
            ground,
            position,
            quaternion,
            draw.velocity,
            draw.spin,
        )


def _left(draw: Draw, position: Array, ground: Array | None) -> bool:
    """Whether a body ends far off, or under the ground."""
    if (np.linalg.norm(position - position[0], axis=-1) > AWAY).any():
        return True
    if ground is None:
        return False
    thinnest = np.array([float(b.solid.extent.min()) for b in draw.bodies])
    return bool(((position @ ground[:3] - ground[3]) < -0.5 * thinnest).any())
