"""Data sets of LeRobot (v2.0, v2.1, v3.0): a folder with `meta/info.json` and Parquet files of rows by episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import read_json
from carom.core.errors import RecordingError, short
from carom.recordings.formats.clean import ordered, rate_of
from carom.recordings.formats.mapped_columns import tracks_of
from carom.recordings.formats.take import ReadOptions, Signal, Take
from carom.state import Array

NAME = "LeRobot data set"
INFO = Path("meta") / "info.json"
#: columns of every data set that are no measurement
INDICES = ("timestamp", "frame_index", "episode_index", "index", "task_index", "subtask_index")
MOST_NUMBERS = 50_000_000  #: of an episode's file
LARGEST = 400_000_000  #: [bytes] of a file of rows
ROUNDING = 2e-3  #: [s] by which stamps in float32 may differ from frame numbers over the rate


def recognise(path: Path, head: bytes) -> float:
    """By `meta/info.json` with features."""
    try:
        text = (path / INFO).read_text(encoding="utf-8", errors="replace")[:1_000_000] if path.is_dir() else ""
    except OSError:
        return 0.0
    return 0.95 if '"features"' in text and ('"codebase_version"' in text or '"fps"' in text) else 0.0


class _DamagedError(RecordingError):
    """A file of rows cannot be read at all; others beside it may."""


@dataclass(frozen=True)
class _About:
    """What `meta/info.json` says."""

    path: Path
    version: str
    fps: float | None
    names: Mapping[str, tuple[str, ...]]  #: of the columns of each feature of numbers
    images: tuple[str, ...]
    episodes: int | None


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """A take for each episode that is there: joints and actions as signals, bodies where the user maps them."""
    about = _about(path)
    files = sorted((path / "data").rglob("*.parquet"))
    if not files:
        raise RecordingError(
            f"{path}: expected Parquet files in its folder data, got none; download the data set whole"
        )
    takes: list[Take] = []
    broken: list[str] = []
    for file in files:
        try:
            takes += _takes(file, about, options)
        except _DamagedError as error:
            if len(files) == 1:
                raise
            broken.append(f"{file.name} is damaged and left out")
            last = error
    if not takes:
        if broken:
            raise last
        raise RecordingError(f"{path}: no rows in its {len(files)} Parquet files")
    numbers = [take.name for take in takes]
    twice = next((name for name in numbers if numbers.count(name) > 1), None)
    if twice is not None:
        raise RecordingError(f"{path}: {twice} is in two files of its folder data; remove one of them")
    if about.episodes is not None and about.episodes != len(takes):
        broken.append(f"{INFO.name} lists {about.episodes} episodes, {len(takes)} are there")
    return tuple(replace(t, said=(*t.said, *broken)) for t in sorted(takes, key=lambda take: take.name))


def _about(path: Path) -> _About:
    info = read_json(path / INFO, error=RecordingError)
    features = info.get("features")
    if not isinstance(features, dict):
        raise RecordingError(f"{path / INFO}: expected features, got {short(type(features).__name__)}")
    names: dict[str, tuple[str, ...]] = {}
    images: list[str] = []
    for name, feature in features.items():
        kind = feature.get("dtype") if isinstance(feature, dict) else None
        if kind in ("image", "video"):
            images.append(str(name))
        elif name not in INDICES and isinstance(feature, dict):
            names[str(name)] = tuple(_flat(feature.get("names")))
    fps, total = info.get("fps"), info.get("total_episodes")
    return _About(
        path,
        str(info.get("codebase_version", "")),
        float(fps) if isinstance(fps, int | float) and 0 < fps < 1e6 else None,
        names,
        tuple(images),
        total if isinstance(total, int) else None,
    )


def _flat(names: Any) -> Iterator[str]:
    """The names of a feature's columns: a list, a list in a list, or a mapping of lists."""
    if isinstance(names, str):
        yield names
    elif isinstance(names, list):
        for each in names:
            yield from _flat(each)
    elif isinstance(names, dict):
        if all(isinstance(value, int) for value in names.values()):
            yield from sorted(map(str, names), key=lambda name: int(names[name]))
            return
        for each in names.values():
            yield from _flat(each)


def _takes(file: Path, about: _About, options: ReadOptions) -> Iterator[Take]:
    columns, left_out = _columns(file, about)
    episode = columns.pop("episode_index", None)
    if not columns:
        raise _DamagedError(f"{file}: no columns of numbers in its rows; expected states, actions or stamps")
    count = len(next(iter(columns.values())))
    numbers = np.zeros(count) if episode is None else episode[:, 0]
    for number in np.unique(numbers[np.isfinite(numbers)]):
        rows = numbers == number
        own = {name: values[rows] for name, values in columns.items()}
        yield _take(file, f"episode_{int(number):06d}", own, about, options, left_out)


def _take(
    file: Path, name: str, columns: Mapping[str, Array], about: _About, options: ReadOptions, left_out: Sequence[str]
) -> Take:
    told: list[str] = []
    time, clock = _time(file, columns, about, options, told)
    kept, said = ordered(time)
    told += said
    vectors = {
        feature: (_labels(feature, values.shape[1], about.names.get(feature, ())), values)
        for feature, values in columns.items()
        if feature not in INDICES
    }
    tracks = tracks_of(file, vectors, time, options, told) if options.sources and vectors else ()
    signals = tuple(
        Signal(label, time[kept], values[kept, place])
        for labels, values in vectors.values()
        for place, label in enumerate(labels)
    )
    if not tracks:
        told.append("no bodies are mapped: joints and actions are read as signals alone")
    return Take(
        name,
        NAME,
        version=about.version,
        tracks=tracks,
        signals=signals,
        clock=clock,
        rate=rate_of(time[kept]),
        said=tuple(dict.fromkeys(told)),
        left_out=tuple(left_out),
    )


def _time(
    file: Path, columns: Mapping[str, Array], about: _About, options: ReadOptions, told: list[str]
) -> tuple[Array, str]:
    """Times of an episode's rows [T] s. Stamps are float32: frame numbers over the rate are finer where they agree."""
    frames = columns["frame_index"][:, 0] if "frame_index" in columns else None
    stamps = columns["timestamp"][:, 0] if "timestamp" in columns else None
    rate = options.rate or about.fps
    if options.rate is not None or stamps is None:
        if rate is None:
            raise RecordingError(f"{file}: no column timestamp and no fps in {INFO}; give --rate HZ")
        count = len(next(iter(columns.values())))
        return (np.arange(count) if frames is None else frames) / rate, f"frame numbers over {rate:g} Hz"
    if rate is not None and frames is not None:
        even = frames / rate
        if np.isfinite(even).all() and (np.abs(stamps - even) < ROUNDING + 1e-6 * np.abs(even)).all():
            return even, f"frame numbers over {rate:g} Hz, which the stamps (float32) agree with"
        good = stamps[np.isfinite(stamps)]
        if len(good) > 10 and len(np.unique(good)) < len(good) / 2:
            told.append(f"the stamps are too coarse (Unix time in float32): frame numbers over {rate:g} Hz count")
            return even, f"frame numbers over {rate:g} Hz"
        told.append(f"stamps do not fit {rate:g} rows per second: the stamps count")
    return stamps, "column timestamp"


def _labels(feature: str, width: int, names: Sequence[str]) -> list[str]:
    """Names for the columns of a feature; numbers where the data set names another count, or names one twice."""
    if width == 1 and len(names) < 2:
        return [feature]
    if len(names) != width or len(set(names)) != width:
        return [f"{feature}.{place}" for place in range(width)]
    return [f"{feature}.{name}" for name in names]


def _columns(file: Path, about: _About) -> tuple[dict[str, Array], list[str]]:
    """The columns of numbers of a file [T, C], and what is left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    left_out = [f"pictures: {short(', '.join(about.images))}"] if about.images else []
    found: dict[str, Array] = {}
    try:
        if file.stat().st_size > LARGEST:
            raise RecordingError(
                f"{file}: expected at most {LARGEST / 1e6:.0f} MB of rows; take a part of the data set"
            )
        table = pq.ParquetFile(file)
        kept = [field.name for field in table.schema_arrow if _is_numbers(field.type)]
        if (table.metadata.num_rows * max(len(kept), 1)) > MOST_NUMBERS:
            raise RecordingError(f"{file}: expected at most {MOST_NUMBERS} numbers, got {table.metadata.num_rows} rows")
        rows = table.read(columns=kept, use_threads=False)
        rows.validate(full=True)
        for name in rows.column_names:
            values = _array(rows.column(name).combine_chunks(), len(rows))
            if values is None:
                left_out.append(f"{short(name)}: its rows have different lengths")
            else:
                found[name] = values
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError, NotImplementedError) as error:
        raise _DamagedError(f"{file}: cannot be read as Parquet ({short(error)}); take a copy that is whole") from error
    return found, left_out


def _is_numbers(kind: Any) -> bool:
    import pyarrow.types as kinds

    if kinds.is_fixed_size_list(kind) or kinds.is_list(kind) or kinds.is_large_list(kind):
        kind = kind.value_type
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind))


def _array(column: Any, count: int) -> Array | None:
    """A column as [T, C]; None where its rows have different lengths."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)
    if not (kinds.is_fixed_size_list(column.type) or kinds.is_list(column.type) or kinds.is_large_list(column.type)):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))[:, None]
    if column.null_count:
        return None
    flat = column.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if count == 0 or len(flat) % count:
        return None
    width = len(flat) // count
    lengths = {width} if kinds.is_fixed_size_list(column.type) else set(column.value_lengths().to_pylist())
    return np.asarray(flat.reshape(count, width)) if lengths == {width} and width else None
