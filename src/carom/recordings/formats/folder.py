"""Reading a whole recordings folder, format version 1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from carom.core.constants import ANGLES, LENGTHS, TIMES
from carom.core.errors import unknown_name
from carom.recordings.facing import faced
from carom.recordings.faults import FaultError
from carom.recordings.formats.header import (
    HEADER_NAME,
    HeaderModel,
    TrajectoryModel,
    data_file,
    merge,
    read_header,
    to_body,
    to_ground,
    to_tracked,
)
from carom.recordings.formats.tables import SUFFIXES, Table, read_table
from carom.recordings.tracked import Tracked
from carom.recordings.trajectory import Recordings, Trajectory, Units
from carom.scenes.shapes import Body
from carom.state import Array

POSITION = ("x", "y", "z")
QUATERNION = ("qw", "qx", "qy", "qz")
VELOCITY = ("vx", "vy", "vz")
ANGULAR_VELOCITY = ("wx", "wy", "wz")
_GROUPS = (POSITION, QUATERNION, VELOCITY, ANGULAR_VELOCITY)
LONGEST_GAP, GAP_PERIODS = 10.0, 100.0  #: [s] and usual intervals without a sample: more is another clock, or a date
WORST_NORM = 0.01  #: a quaternion further than this from unit length is not a rounded rotation, but something else


def read(path: str | Path) -> Recordings:
    """All trajectories of a folder, in m, rad, s and z-up; stops at the first fault, with its file, row and column."""
    recordings, faults = read_leniently(path)
    if faults:
        raise faults[0]
    return recordings


def read_leniently(path: str | Path) -> tuple[Recordings, tuple[FaultError, ...]]:
    """The trajectories that can be read and the faults of those that cannot. A fault of the header still raises."""
    recordings, faults = read_as_drawn(path)
    return faced(recordings), faults


def read_as_drawn(path: str | Path) -> tuple[Recordings, tuple[FaultError, ...]]:
    """As `read_leniently`, with strikers' frames as the files have them: for who asks how these were meant."""
    folder = Path(path)
    header = read_header(folder)
    bodies = {name: to_body(name, model, header, folder, complete=False) for name, model in header.bodies.items()}
    if not bodies:
        raise FaultError("no bodies; name at least one", code="missing-key", file=folder / HEADER_NAME)
    trajectories: list[Trajectory] = []
    faults: list[FaultError] = []
    for model in _listed(folder, header):
        try:
            trajectories.append(_read_trajectory(folder, header, model))
        except FaultError as fault:
            faults.append(fault)
    units = Units(**header.units.model_dump(), frame=header.frame)
    ground = to_ground(header.ground, header, folder / HEADER_NAME)
    found = Recordings(
        folder,
        bodies,
        tuple(trajectories),
        header.gravity,
        ground,
        units,
        tracked=_tracked_words(header, folder),
        imported=header.imported,
    )
    return found, tuple(faults)


def _tracked_words(header: HeaderModel, folder: Path) -> dict[str, str]:
    """Bodies whose tracked frame is not their own, and where it is: one that all files share, or that some have."""
    words: dict[str, str] = {}
    for name, model in header.bodies.items():
        shared = to_tracked(name, model, header, folder)
        own = [t for t in header.trajectories or () if name in t.bodies and t.bodies[name].tracked is not None]
        stated = [] if shared is None else [shared.words]
        if own:
            stated.append(f"{len(own)} file{'s' if len(own) > 1 else ''} with another one")
        if stated:
            words[name] = "; ".join(stated)
    return words


def _listed(folder: Path, header: HeaderModel) -> list[TrajectoryModel]:
    if header.trajectories is not None:
        if not header.trajectories:
            message = "trajectories: expected one data file or more, got none; list them, or leave the key out"
            raise FaultError(message, code="empty", file=folder / HEADER_NAME)
        names = [model.file for model in header.trajectories]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise FaultError(f"trajectory '{twice}' is listed twice", code="duplicate-key", file=folder / HEADER_NAME)
        return header.trajectories
    names = sorted(p.name for p in folder.iterdir() if p.suffix in SUFFIXES and not p.name.startswith("."))
    if not names:
        raise FaultError(f"no data file ({', '.join(SUFFIXES)}) in this folder", code="no-file", file=folder)
    return [TrajectoryModel(file=name) for name in names]


def _read_trajectory(folder: Path, header: HeaderModel, model: TrajectoryModel) -> Trajectory:
    for name in model.bodies:
        if name not in header.bodies:
            message = f"trajectory {model.file}: {unknown_name('body', name, header.bodies)}"
            raise FaultError(message, code="unknown-body", file=folder / HEADER_NAME)
    stated = {name: merge(base, model.bodies.get(name)) for name, base in header.bodies.items()}
    declared = {name: to_body(name, body, header, folder, complete=True) for name, body in stated.items()}
    table = read_table(data_file(folder, model))
    groups = _grouped(table, declared)
    _check_time(table)
    _check_clock(table, TIMES[header.units.time])
    position: dict[str, Array] = {}
    quaternion: dict[str, Array | None] = {}
    velocity: dict[str, Array] = {}
    spin: dict[str, Array] = {}
    length, time = LENGTHS[header.units.length], TIMES[header.units.time]
    up = header.frame == "z-up"
    for name, body in declared.items():
        if POSITION not in groups.get(name, ()):
            if body.role in ("target", "striker"):
                raise table.fault(
                    f"body '{name}' ({body.role}) has no columns; expected {name}.x, {name}.y, {name}.z",
                    code="missing-column",
                    column=f"{name}.x",
                )
            continue  # a ground or an arm may be declared without being tracked
        position[name] = _turn(_stack(table, name, POSITION) * length, up)
        quaternion[name] = _orientation(table, name, model, up) if QUATERNION in groups[name] else None
        if VELOCITY in groups[name]:
            velocity[name] = _turn(_stack(table, name, VELOCITY) * (length / time), up)
        if ANGULAR_VELOCITY in groups[name]:
            spin[name] = _turn(_stack(table, name, ANGULAR_VELOCITY) * (ANGLES[header.units.angle] / time), up)
        tracked = to_tracked(name, stated[name], header, folder)
        if tracked is not None:
            _move(table, name, tracked, position, quaternion, velocity, spin)
    return Trajectory(
        name=model.file,
        path=table.path,
        time=table.columns["time"] * time,
        position_world=position,
        quaternion_world=quaternion,
        bodies={name: declared[name] for name in position},
        tags=model.tags,
        controls={n.removeprefix("ctrl."): v for n, v in table.columns.items() if n.startswith("ctrl.")},
        velocity_world=velocity,
        angular_velocity_world=spin,
    )


def _move(
    table: Table,
    name: str,
    tracked: Tracked,
    position: dict[str, Array],
    quaternion: dict[str, Array | None],
    velocity: dict[str, Array],
    spin: dict[str, Array],
) -> None:
    """Turn what was measured of the tracked frame into what the body's own frame does, in place."""
    measured = quaternion[name]
    if measured is None:
        if any(tracked.position):
            raise table.fault(
                f"tracked.position of '{name}' is stated, but its orientation is not measured here, and without it "
                "nobody knows which way the offset points; state tracked: {position: [0, 0, 0]} for this file",
                code="no-orientation",
                column=f"{name}.qw",
            )
        return
    if name in velocity and any(tracked.position) and name not in spin:
        raise table.fault(
            f"tracked.position of '{name}' is stated: its velocity needs {name}.wx, {name}.wy, {name}.wz too; add "
            "these columns or remove those of the velocity",
            code="missing-column",
            column=f"{name}.vx",
        )
    position[name], quaternion[name], lever = tracked.own(position[name], measured)
    if name in velocity and any(tracked.position):
        velocity[name] = velocity[name] + np.cross(spin[name], lever)


def _grouped(table: Table, declared: Mapping[str, Body]) -> dict[str, set[tuple[str, ...]]]:
    """Which groups of columns each body has; a group that is there in part, or of no known body, is a fault."""
    found: dict[str, set[str]] = {}
    for column in table.columns:
        body, dot, part = column.rpartition(".")
        if column == "time" or body == "ctrl" or column.startswith("ctrl."):
            continue
        if not dot or body not in declared:
            known = [f"{name}.x" for name in declared] if not dot else list(declared)
            message = unknown_name("column" if not dot else "body", body if dot else column, known)
            raise table.fault(f"{message}; name it in {HEADER_NAME}", code="unknown-column", column=column)
        parts = [p for group in _GROUPS for p in group]
        if part not in parts:
            raise table.fault(unknown_name("column ending", part, parts), code="unknown-column", column=column)
        found.setdefault(body, set()).add(part)
    groups: dict[str, set[tuple[str, ...]]] = {}
    for body, there in found.items():
        for group in _GROUPS:
            lacking = [part for part in group if part not in there]
            if len(lacking) == len(group):
                continue
            if lacking:
                raise table.fault(
                    f"missing, though {body}.{next(p for p in group if p in there)} is there; "
                    f"expected {', '.join(f'{body}.{p}' for p in group)}",
                    code="missing-column",
                    column=f"{body}.{lacking[0]}",
                )
            groups.setdefault(body, set()).add(group)
    return groups


def _check_time(table: Table) -> None:
    time = table.columns["time"]
    lost = ~np.isfinite(time)
    if lost.any():
        raise table.fault(
            "expected a time, got an empty cell; every row needs its time",
            code="no-time",
            index=int(np.argmax(lost)),
            column="time",
        )
    step = np.diff(time)
    if (step <= 0).any():
        index = int(np.argmax(step <= 0)) + 1
        word = "repeats" if step[index - 1] == 0 else "goes back"
        raise table.fault(
            f"expected a time after {time[index - 1]:.10g}, got {time[index]:.10g}: time {word} "
            f"({int((step <= 0).sum())} such rows); sort the rows or remove the repeated ones",
            code="time-order",
            index=index,
            column="time",
        )


def _check_clock(table: Table, unit: float) -> None:
    """Refuse a jump of the clock, by so many seconds for each unit of time: frames between would fill the memory."""
    step = np.diff(table.columns["time"]) * unit
    most = max(LONGEST_GAP, GAP_PERIODS * float(np.median(step)))
    if (jumps := step > most).any():
        index = int(np.argmax(jumps)) + 1
        raise table.fault(
            f"expected a sample within {most:.3g} s of the one before, got a jump in time of {step[index - 1]:.6g} s "
            f"({int(jumps.sum())} such rows); correct the clock, or split the recording there",
            code="clock-jump",
            index=index,
            column="time",
        )


def _stack(table: Table, body: str, parts: tuple[str, ...]) -> Array:
    values = np.stack([table.columns[f"{body}.{part}"] for part in parts], axis=-1)
    lost = np.isnan(values)
    half = lost.any(axis=-1) & ~lost.all(axis=-1)
    if half.any():
        index = int(np.argmax(half))
        raise table.fault(
            f"empty, though other cells of {body}.{parts[0]} to {body}.{parts[-1]} are not "
            f"({int(half.sum())} such rows); a lost sample leaves all {len(parts)} cells empty",
            code="half-empty",
            index=index,
            column=f"{body}.{parts[int(np.argmax(lost[index]))]}",
        )
    return np.asarray(values)


def _orientation(table: Table, body: str, model: TrajectoryModel, up: bool) -> Array | None:
    quaternion = _stack(table, body, QUATERNION)
    if np.isnan(quaternion).all():
        if model.orientation:
            raise table.fault(
                f"orientation: true is stated, but every quaternion of '{body}' is empty; state orientation: false",
                code="no-orientation",
                column=f"{body}.qw",
            )
        return None
    if model.orientation is False:
        return None  # the header says that these numbers are not a measurement
    norm = np.linalg.norm(quaternion, axis=-1)
    wrong = np.abs(norm - 1) > WORST_NORM  # NaN compares false: a lost sample
    if wrong.any():
        index = int(np.argmax(wrong))
        raise table.fault(
            f"expected a unit quaternion (w first), got length {norm[index]:.6g} ({int(wrong.sum())} such rows); "
            "check the columns' order and the units",
            code="quaternion-norm",
            index=index,
            column=f"{body}.qw",
        )
    if up:
        return quaternion
    # world only: the body's own frame, and with it its shape, stays as it was declared
    w, x, y, z = quaternion.T
    return np.asarray(np.stack([w - x, x + w, y - z, z + y], axis=-1) * np.sqrt(0.5))


def _turn(vectors: Array, up: bool) -> Array:
    """y-up world vectors in the z-up world: a quarter turn about x."""
    return vectors if up else np.stack([vectors[:, 0], -vectors[:, 2], vectors[:, 1]], axis=-1)
