"""Work in pieces: a piece has a key, is made once and kept whole on disk, and is not made again after a kill.

What differs is how a piece is stored: a line of JSON (`Checkpoint`, for benchmarks) or a Parquet file
(`carom.core.shards.Shards`, for data sets), and who makes it: this process, or a cluster (`on`). Whoever makes pieces
asks `workers` for it; where they are made is no part of what is computed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar, final

from carom.core.artefacts import json_default
from carom.core.errors import CaromError
from carom.core.progress import Progress, Steps, steps_of

Key = TypeVar("Key", contravariant=True)
Piece = TypeVar("Piece", contravariant=True)
K = TypeVar("K")
P = TypeVar("P")
Rows = list[dict[str, Any]]


class Store(Protocol[Key, Piece]):
    """Where finished pieces are kept."""

    def has(self, key: Key) -> bool:
        """Whether this piece is there and whole."""
        ...

    def put(self, key: Key, piece: Piece) -> None:
        """Keep a finished piece. When this returns, the piece is on the disk."""
        ...


class Workers(Protocol):
    """Who makes pieces."""

    @property
    def here(self) -> bool:
        """Whether this process makes them itself, one after the other."""
        ...

    def each(self, function: Callable[[K], P], keys: Sequence[K]) -> Iterator[tuple[K, P]]:
        """Every key with its piece, as they are finished; what nobody asks for any more is not made."""
        ...

    def costs(self) -> Sequence[str]:
        """What all of it has cost so far, in words; nothing where there is nothing to say."""
        ...


@final
class Here:
    """This process."""

    here = True

    def each(self, function: Callable[[K], P], keys: Sequence[K]) -> Iterator[tuple[K, P]]:
        """See `Workers`."""
        for key in keys:
            yield key, function(key)

    def costs(self) -> Sequence[str]:
        """See `Workers`."""
        return ()


_workers: ContextVar[Workers] = ContextVar("workers", default=Here())  # noqa: B039 (it has no state)
_threads = 0  #: of engines, where nobody says how many; 0: all cores


def workers() -> Workers:
    """Who makes pieces now."""
    return _workers.get()


@contextmanager
def on(where: str | None) -> Iterator[Workers]:
    """Pieces that are made inside of this are made on a Ray cluster: "ray", or "ray://" and its address; None: here.

    What comes out is the same. The workers that are given tell afterwards what it took.
    """
    if where is None:
        yield workers()
        return
    from carom.core.ray_work import ray_workers

    with ray_workers(where) as made_by:
        token = _workers.set(made_by)
        try:
            yield made_by
        finally:
            _workers.reset(token)


def threads(asked: int) -> int:
    """Threads for an engine that is asked for so many; 0, for all cores, is one where other workers share these."""
    return asked or _threads


def share_cores() -> None:
    """From here on an engine of this process has one thread, unless it is asked for more."""
    global _threads
    _threads = 1


@final
class PerProcess(Generic[K, P]):
    """A function of keys that every process makes for itself, once: what it compiles or loads is not sent around."""

    def __init__(self, make: Callable[[], Callable[[K], P]]) -> None:
        self._make = make
        self._function: Callable[[K], P] | None = None

    def __call__(self, key: K) -> P:
        if self._function is None:
            self._function = self._make()
        return self._function(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return PerProcess, (self._make,)


def make_pieces(keys: Sequence[K], store: Store[K, P], make: Callable[[K], P], *, progress: Steps | None = None) -> int:
    """Make the pieces that the store does not have yet, by whoever makes pieces; returns how many.

    What `make` gives must depend on the key alone: then a run that was killed ends with the same bytes, and so does one
    on many machines.
    """
    missing = [key for key in keys if not store.has(key)]
    done = len(keys) - len(missing)
    if progress and done:
        progress(done, len(keys))
    for key, piece in workers().each(make, missing):
        store.put(key, piece)
        done += 1
        if progress:
            progress(done, len(keys))
    return len(missing)


def in_order(function: Callable[[K], P], keys: Sequence[K]) -> Iterator[P]:
    """The pieces of the keys, in their order; on a cluster the next ones are being made meanwhile.

    >>> list(in_order(lambda key: key * key, [3, 1, 2]))
    [9, 1, 4]
    """
    early: dict[int, P] = {}
    numbered = _Numbered(function, keys)
    wanted = 0
    for number, piece in workers().each(numbered, range(len(keys))):
        early[number] = piece
        while wanted in early:
            yield early.pop(wanted)
            wanted += 1


@final
class _Numbered(Generic[K, P]):
    """A function of places in a list of keys, which may be alike or impossible to compare."""

    def __init__(self, function: Callable[[K], P], keys: Sequence[K]) -> None:
        self.function, self.keys = function, keys

    def __call__(self, number: int) -> P:
        return self.function(self.keys[number])


@final
class Checkpoint:
    """Finished pieces of a benchmark, one line of JSON each: a `Store` of rows by name.

    A piece is known by its key and by the settings of the run. Pieces of other settings stay in the file and are not
    used; going back to the former settings finds them again. A line torn by a kill is dropped, and only that piece is
    computed again.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "robot-hits.jsonl"
    >>> Checkpoint(path, {"draws": 10}).put("D1/0", [{"method": "carom", "value": 0.8}])
    >>> Checkpoint(path, {"draws": 10}).get("D1/0")
    [{'method': 'carom', 'value': 0.8}]
    >>> Checkpoint(path, {"draws": 5}).has("D1/0")
    False
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.fingerprint = fingerprint(settings)
        self._pieces = self._load()

    def has(self, key: str) -> bool:
        """See `Store`."""
        return key in self._pieces

    def get(self, key: str) -> Rows:
        """The rows of a finished piece."""
        return self._pieces[key]

    def put(self, key: str, piece: Iterable[Mapping[str, Any]]) -> None:
        """See `Store`."""
        line = json.dumps(
            {"fingerprint": self.fingerprint, "key": key, "rows": [dict(r) for r in piece]}, default=json_default
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            _drop_torn_line(self.path)
            stream.write(line.encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._pieces[key] = json.loads(line)["rows"]  # as a later run will read it

    def _load(self) -> dict[str, Rows]:
        if not self.path.is_file():
            return {}
        pieces = {}
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                piece = json.loads(line)
                key, made_by, rows = piece["key"], piece["fingerprint"], piece["rows"]
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise CaromError(
                    f"{self.path}, line {number}: not a finished piece of a benchmark; delete the line, or the file"
                ) from error
            if made_by == self.fingerprint:
                pieces[key] = rows
        return pieces


def run_pieces(
    pieces: Checkpoint, keys: Sequence[str], make: Callable[[str], Rows], progress: Progress
) -> tuple[Rows, float]:
    """The rows of all pieces of a benchmark, and the seconds that they took when they were made."""
    make_pieces(keys, pieces, _Timed(make), progress=steps_of(progress, "pieces"))
    rows = [row for key in keys for row in pieces.get(key)]
    return [row for row in rows if row["setting"]], float(sum(row["value"] for row in rows if not row["setting"]))


@final
class _Timed:
    """Rows, and a row of how many seconds they took."""

    def __init__(self, make: Callable[[str], Rows]) -> None:
        self.make = make

    def __call__(self, key: str) -> Rows:
        start = perf_counter()
        return [*self.make(key), {"setting": "", "metric": "seconds", "value": perf_counter() - start}]


def fingerprint(settings: Mapping[str, Any]) -> str:
    """A short name for settings, the same in any order of their keys."""
    text = json.dumps(settings, sort_keys=True, default=json_default)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _drop_torn_line(path: Path) -> None:
    """Cut what follows the last line end: a kill in the middle of a write leaves half a line there."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        os.truncate(path, content.rfind(b"\n") + 1)
