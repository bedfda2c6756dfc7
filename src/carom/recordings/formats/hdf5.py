"""HDF5 files of robots' simulations and data sets (robosuite, robomimic and others): read as the user maps them.

HDF5 says what numbers are called and how many there are, not what they mean. So nothing is read without a mapping, and
a file without one is answered with what it holds and what a mapping looks like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.errors import CaromError, RecordingError, short, unknown_name
from carom.recordings.formats.clean import ordered, rate_of
from carom.recordings.formats.mapped_columns import name_and_columns, tracks_of
from carom.recordings.formats.pose_rows import seconds
from carom.recordings.formats.take import NoPosesError, ReadOptions, Signal, Take
from carom.state import Array

NAME = "HDF5"
MAGIC = b"\x89HDF\r\n\x1a\n"
STAMPS = ("time", "times", "timestamp", "timestamps", "t", "stamp", "stamps")
STATES = "states"  #: of robosuite and robomimic: MuJoCo's time, qpos and qvel side by side
W_FIRST = (STATES, "qpos", "state/qpos", "obs/qpos")
MOST_NUMBERS = 50_000_000  #: of a data set
MOST_OBJECTS, MOST_LISTED = 100_000, 12


@dataclass(frozen=True)
class _Dataset:
    """A data set of numbers."""

    path: str  #: in the file, without the first slash
    shape: tuple[int, ...]

    @property
    def group(self) -> str:
        """The group that it is in; empty: the file itself."""
        return self.path.rpartition("/")[0]


def recognise(path: Path, head: bytes) -> float:
    """By the bytes that HDF5 files begin with; MATLAB's begin with a text of 512 bytes."""
    return 0.9 if head.startswith(MAGIC) or head[512:520] == MAGIC else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """A take for each group (demonstration, episode) that has the data sets which the user names."""
    try:
        import h5py
    except ImportError as error:
        raise RecordingError(f"{path}: HDF5 needs the extra 'import': pip install 'carom[import]'") from error
    try:
        with h5py.File(path, "r") as file:
            return _takes(path, file, options)
    except CaromError:
        raise
    except Exception as error:  # a damaged file ends in almost any error of h5py's
        raise RecordingError(
            f"{path}: cannot be read as HDF5 ({short(error) or type(error).__name__}); take a copy that is whole"
        ) from error


def _takes(path: Path, file: Any, options: ReadOptions) -> tuple[Take, ...]:
    datasets = _datasets(file)
    if not options.sources:
        raise NoPosesError(f"{path}: {_how_to_map(datasets)}")
    wanted = {name_and_columns(source)[0] for sources in options.sources.values() for source in sources}
    groups = _groups(path, datasets, sorted(wanted))
    names = [group.rpartition("/")[2] or path.stem for group in groups]
    if len(set(names)) < len(names):
        names = [group.replace("/", "_") for group in groups]
    takes = (_take(path, file, group, wanted, datasets, options) for group in groups)
    return tuple(replace(take, name=name) for name, take in zip(names, takes, strict=True))


def _datasets(file: Any) -> dict[str, _Dataset]:
    """The data sets of numbers, by their place in the file; links to other files are not followed."""
    import h5py

    found: dict[str, _Dataset] = {}
    seen = 0
    waiting = [("", file)]
    while waiting:
        place, group = waiting.pop(0)
        for name in group:
            seen += 1
            if seen > MOST_OBJECTS or not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            each, where = group[name], f"{place}/{name}" if place else str(name)
            if isinstance(each, h5py.Group):
                if where.count("/") < 20:
                    waiting.append((where, each))
            elif isinstance(each, h5py.Dataset) and each.dtype.kind in "iuf" and 1 <= len(each.shape or ()) <= 2:
                found[where] = _Dataset(where, tuple(each.shape))
    return found


def _groups(path: Path, datasets: Mapping[str, _Dataset], wanted: Sequence[str]) -> list[str]:
    """The groups below which all data sets that are wanted are; one that is named from the file's root is in all."""
    relative = [name.strip("/") for name in wanted if name.strip("/") not in datasets]
    if not relative:
        return [""]
    found: set[str] | None = None
    for name in relative:
        there = {p.removesuffix(f"/{name}") for p in datasets if p.endswith(f"/{name}")}
        if not there:
            last = sorted({each for p in datasets for each in (p, p.rpartition("/")[2])})
            raise RecordingError(f"{path}: {unknown_name('data set', name, last)}")
        found = there if found is None else found & there
    if not found:
        raise RecordingError(f"{path}: no group has all of these data sets: {', '.join(relative)}")
    return sorted(found, key=lambda group: [int(w) if w.isdigit() else w for w in group.replace("/", "_").split("_")])


def _take(
    path: Path, file: Any, group: str, wanted: set[str], datasets: Mapping[str, _Dataset], options: ReadOptions
) -> Take:
    told: list[str] = []
    vectors: dict[str, tuple[Sequence[str], Array]] = {}
    for name in sorted(wanted):
        values = _values(path, file, datasets, _place(name, group, datasets))
        vectors[name] = ([f"{name}[{column}]" for column in range(values.shape[1])], values)
    counts = {len(values) for _, values in vectors.values()}
    if len(counts) > 1:
        raise RecordingError(f"{path}: {group or 'the file'}: data sets of different lengths: {sorted(counts)}")
    (count,) = counts
    time, clock = _time(path, file, group, count, vectors, datasets, options, told)
    kept, said = ordered(time)
    told += said
    tracks = tracks_of(path, vectors, time, options, told, w_first=W_FIRST)
    signals = tuple(
        Signal(label, time[kept], values[kept, column])
        for name in sorted(_beside(group, count, datasets, wanted))
        for values in (_values(path, file, datasets, f"{group}/{name}" if group else name),)
        for column, label in enumerate(
            [name] if values.shape[1] == 1 else [f"{name}.{c}" for c in range(values.shape[1])]
        )
    )
    return Take(
        path.stem,
        NAME,
        tracks=tracks,
        signals=signals,
        clock=clock,
        rate=rate_of(time[kept]),
        said=tuple(dict.fromkeys(told)),
    )


def _place(name: str, group: str, datasets: Mapping[str, _Dataset]) -> str:
    plain = name.strip("/")
    return plain if plain in datasets else f"{group}/{plain}"


def _values(path: Path, file: Any, datasets: Mapping[str, _Dataset], place: str) -> Array:
    if place not in datasets:
        raise RecordingError(f"{path}: {unknown_name('data set', place, datasets)}")
    shape = datasets[place].shape
    if int(np.prod(shape, dtype=np.float64)) > MOST_NUMBERS:
        raise RecordingError(f"{path}: data set {short(place)}: expected at most {MOST_NUMBERS} numbers, got {shape}")
    values = np.asarray(file[place][()], dtype=np.float64)
    return values[:, None] if values.ndim == 1 else values


def _beside(group: str, count: int, datasets: Mapping[str, _Dataset], wanted: set[str]) -> list[str]:
    """Small data sets in the same group with as many rows: joints, actions, forces."""
    return [
        name
        for each in datasets.values()
        if each.group == group and each.shape[0] == count and (each.shape[1:] or (1,))[0] <= 64
        if (name := each.path.rpartition("/")[2]) not in wanted and name.lower() not in STAMPS
    ]


def _time(
    path: Path,
    file: Any,
    group: str,
    count: int,
    vectors: Mapping[str, tuple[Sequence[str], Array]],
    datasets: Mapping[str, _Dataset],
    options: ReadOptions,
    told: list[str],
) -> tuple[Array, str]:
    """Times of the rows [T] s, and what they are."""
    if options.time is not None:
        name, part = name_and_columns(options.time)
        values = _values(path, file, datasets, _place(name, group, datasets))
        if len(values) != count or (part is not None and part.start >= values.shape[1]):
            raise RecordingError(f"{path}: --time {short(options.time)}: expected {count} rows, got {values.shape}")
        stamps, unit = seconds(path, values[:, part.start if part else 0], options.time_unit)
        told += [f"times are in {unit}"] if unit else []
        return stamps, f"data set {options.time}"
    if options.rate is not None:
        return np.arange(count) / options.rate, f"row numbers over {options.rate:g} Hz"
    for name in STAMPS:
        place = next((p for p in datasets if p.lower() == (f"{group}/{name}" if group else name).lower()), None)
        if place is not None and datasets[place].shape[0] == count:
            stamps, unit = seconds(path, _values(path, file, datasets, place)[:, 0], options.time_unit)
            told += [f"times are in {unit}"] if unit else []
            return stamps, f"data set {place}"
    if STATES in vectors and _even(first := vectors[STATES][1][:, 0]):
        told.append(f"the first column of {STATES} rises evenly: taken as times, as MuJoCo's states have them")
        return first, f"{STATES}[0]"
    raise RecordingError(
        f"{path}: no data set of times in {group or 'the file'}; name one with --time, or give --rate HZ"
    )


def _even(values: Array) -> bool:
    """Whether these rise in steps that hardly differ."""
    steps = np.diff(values)
    return len(steps) > 1 and bool(
        np.isfinite(steps).all() and (steps > 0).all() and steps.max() < 3 * np.median(steps)
    )


def _how_to_map(datasets: Mapping[str, _Dataset]) -> str:
    """What is in a file, and how a user says what it means."""
    if not datasets:
        return "no data sets of numbers in this HDF5 file"
    names: dict[str, tuple[int, tuple[int, ...]]] = {}
    for each in datasets.values():
        name = each.path.rpartition("/")[2] if each.group else each.path
        times, shape = names.get(name, (0, each.shape))
        names[name] = (times + 1, shape)
    listed = [
        f"{short(name)} {'x'.join(map(str, shape))}" + (f" ({times} times)" if times > 1 else "")
        for name, (times, shape) in list(names.items())[:MOST_LISTED]
    ]
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    example = max(names, key=lambda name: names[name][1][-1] if len(names[name][1]) == 2 else 0)
    return (
        f"HDF5 does not say what its numbers mean, and nothing is mapped; its data sets: {', '.join(listed)}{more}; "
        f"map a body with columns counted from 0: --map 'box={short(example)}[10:13],{short(example)}[13:17]' (x y z, "
        f"then the quaternion), and its times with --time 'NAME' or '{short(example)}[0]'"
    )
