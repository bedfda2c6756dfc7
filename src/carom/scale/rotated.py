"""The paper's baseline of data augmentation: recorded trajectories, rotated about the vertical by random angles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from carom.core.artefacts import UNITS, versions
from carom.core.errors import CaromError
from carom.core.progress import Progress
from carom.core.rotations import about_z, multiply
from carom.identify.tosses.recorded import free_scene, groups
from carom.recordings import Recordings, Trajectory, read
from carom.scale.run import Scaled
from carom.scale.shards import COLUMNS, MADE_WITH, Part, Row, meshes_of, write_shards
from carom.scenes.shapes import Body
from carom.scenes.solids import solid_body, stretched
from carom.state import Array

EVEN = 0.1  #: of a period that a sample may lie off its instant
LEAST = 8  #: samples without a gap


@dataclass(frozen=True, eq=False)
class Piece:
    """The longest stretch of a recording in which no sample is lost."""

    name: str
    period: float  #: [s]
    bodies: tuple[Body, ...]
    position: Array  #: [T, B, 3] m
    quaternion: Array  #: [T, B, 4]
    gravity: float
    ground: Array  #: [4]


def augment(folder: Path, out: Path, *, count: int = 3000, seed: int = 0, progress: Progress | None = None) -> Scaled:
    """Write `count` recorded trajectories, each rotated about the vertical: gravity and contact stay as they are."""
    start = perf_counter()
    recordings = read(folder)
    pieces, skipped = pieces_of(recordings)
    header = {
        "made_by": {"command": "scale --augment", "how": "recordings, rotated about the vertical by random angles"},
        "scene": folder.resolve().name,
        "seed": seed,
        "period": pieces[0].period,
        "units": UNITS,
        "parameters": {"source": "none: measured, not simulated", "drawn": "", "values": {}},
        "ranges": {"angle_rad": [0.0, 2 * np.pi]},
        "recordings": {"count": len(pieces)},
        "meshes": meshes_of([body for piece in pieces for body in piece.bodies]),
        "columns": COLUMNS,
        "made_from": {"recordings": recordings.made_from()},
        "made_with": versions(MADE_WITH),
    }

    report = None if progress is None else lambda done, total: progress("rotate recordings", done, total)
    made, _ = write_shards(out, count, header, partial(_all_rotated, pieces, seed), progress=report)
    notes = tuple(f"{name} was left out: {why}" for name, why in skipped)
    return Scaled(out, made, perf_counter() - start, 0.0, notes)


def _all_rotated(pieces: Sequence[Piece], seed: int, part: Part) -> tuple[Sequence[Row], float]:
    """The rows of a shard; no engine has a part in them."""
    return [_rotated(pieces[i % len(pieces)], i, seed) for i in part[1]], 0.0


def _rotated(piece: Piece, index: int, seed: int) -> Row:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
    angle = float(rng.uniform(0, 2 * np.pi))
    ground = np.concatenate([turned_about_z(piece.ground[:3], angle), piece.ground[3:]])
    return Row(
        index,
        piece.name,
        "ok",
        piece.bodies,
        np.zeros(0),
        piece.gravity,
        ground,
        turned_about_z(piece.position, angle),
        multiply(about_z(angle), piece.quaternion),
    )


def turned_about_z(vectors: Array, angle: float) -> Array:
    """Vectors [..., 3] turned about the vertical; their heights stay the same to the last digit."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    return np.stack([np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y, z], axis=-1)


def pieces_of(recordings: Recordings) -> tuple[list[Piece], list[tuple[str, str]]]:
    """The recordings that can be rotated, and (name, reason) of those that cannot; raises if none can."""
    if not len(recordings):
        raise CaromError(f"{recordings.path} holds no trajectory")
    pieces: list[Piece] = []
    skipped: list[tuple[str, str]] = []
    period = float(np.median([t.period for t in recordings.trajectories]))
    for number, rows in enumerate(groups(recordings)):
        trajectories = [recordings.trajectories[row] for row in rows]
        scene = free_scene(recordings, trajectories)
        solids = (solid_body(b, ending=f"-{number}" if number else "") for b in scene.bodies)
        bodies = tuple(
            replace(stretched(s, np.ones(3)), name=b.name) for s, b in zip(solids, scene.bodies, strict=True)
        )
        ground = np.array([0.0, 0.0, 1.0, scene.ground_height])
        if recordings.ground is not None:
            ground = np.array([*recordings.ground.normal, recordings.ground.height])
        if scene.planar:
            ground = np.full(4, np.nan)
        for trajectory in trajectories:
            found = _stretch(trajectory, period)
            if isinstance(found, str):
                skipped.append((trajectory.name, found))
                continue
            pieces.append(Piece(trajectory.name, period, bodies, *found, scene.gravity, ground))
    if not pieces:
        raise CaromError(f"{recordings.path}: no recording can be rotated ({skipped[0][0]}: {skipped[0][1]})")
    return pieces, skipped


def _stretch(trajectory: Trajectory, period: float) -> tuple[Array, Array] | str:
    """Positions [T, B, 3] and quaternions [T, B, 4] of the longest stretch without a gap, or why there is none."""
    if any(q is None for q in trajectory.quaternion_world.values()):
        return "its orientation was not measured"
    if abs(trajectory.period - period) > 0.01 * period:
        return f"its samples are {trajectory.period:g} s apart, the others' {period:g} s"
    position = np.stack([trajectory.position_world[name] for name in trajectory.bodies], axis=1)
    quaternion = np.stack([np.asarray(trajectory.quaternion_world[name]) for name in trajectory.bodies], axis=1)
    good = np.isfinite(position).all(axis=(1, 2)) & np.isfinite(quaternion).all(axis=(1, 2))
    late = np.abs(np.diff(trajectory.time) - period) > EVEN * period
    # a stretch ends where a sample is lost, and before one that comes late
    begins = np.flatnonzero(np.concatenate([[True], late]) | ~good)
    ends = [*begins[1:], len(good)]
    best = max(((int(a) + (not good[a]), int(b)) for a, b in zip(begins, ends, strict=True)), key=lambda s: s[1] - s[0])
    if best[1] - best[0] < LEAST:
        return f"it has fewer than {LEAST} samples without a gap"
    rows = slice(*best)
    turns = quaternion[rows]
    return position[rows], turns / np.linalg.norm(turns, axis=-1, keepdims=True)
