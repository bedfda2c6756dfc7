"""Bodies from the columns that a user names, in files whose data are tables of vectors: LeRobot's and HDF5.

A source is a vector (`object_pose`), some of its columns (`states[10:13]`, counted from 0 as Python does; `states[0]`),
or the name of one column (`observation.state.x`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from carom.core.errors import RecordingError, short, unknown_name
from carom.recordings.formats.plain_columns import mapped
from carom.recordings.formats.plain_table import body_track
from carom.recordings.formats.take import ReadOptions, Track
from carom.state import Array

_SLICE = re.compile(r"(.+)\[\s*(\d+)\s*(?:(:)\s*(\d+)\s*)?\]")


def name_and_columns(source: str) -> tuple[str, slice | None]:
    """The vector of a source and which of its columns are meant; None: all of them, or it is a column's own name.

    >>> name_and_columns("states[10:13]"), name_and_columns("states")
    (('states', slice(10, 13, None)), ('states', None))
    """
    match = _SLICE.fullmatch(source)
    if match is None:
        return source, None
    first = int(match[2])
    return match[1], slice(first, int(match[4]) if match[3] else first + 1)


def columns_of(source: str, vectors: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of the columns of a source; `vectors` has those of each vector."""
    name, part = name_and_columns(source)
    if name in vectors:
        names = list(vectors[name])
        chosen = names if part is None else names[part]
        if part is not None and len(chosen) < part.stop - part.start:
            raise RecordingError(f"{short(source)}: expected columns from 0 to {len(names) - 1} of {short(name)}")
        return chosen
    if any(source in names for names in vectors.values()):
        return [source]
    raise RecordingError(unknown_name("source", source, vectors))


def tracks_of(
    path: Path,
    vectors: Mapping[str, tuple[Sequence[str], Array]],
    time: Array,
    options: ReadOptions,
    told: list[str],
    *,
    w_first: Sequence[str] = (),
) -> tuple[Track, ...]:
    """The bodies that the user maps, from vectors by name: the names of their columns, and these [T, C].

    `w_first`: vectors in which quaternions are known to have w first.
    """
    names = [name for columns, _ in vectors.values() for name in columns]
    data = np.concatenate([values for _, values in vectors.values()], axis=1)
    known = {name: columns for name, (columns, _) in vectors.items()}
    found: list[Track] = []
    for body, sources in options.sources.items():
        try:
            wanted = [column for source in sources for column in columns_of(source, known)]
            columns = mapped(body, wanted, names)
        except RecordingError as error:
            raise RecordingError(f"{path}: body '{short(body)}': {error}") from error
        own = options
        if options.quaternion_order is None and {name_and_columns(each)[0] for each in sources} <= set(w_first):
            own = replace(options, quaternion_order="wxyz")
            told.append(f"{body}: quaternions have w first, as MuJoCo's states do")
        found.append(body_track(path, columns, names, time, data, own, told))
    return tuple(found)
