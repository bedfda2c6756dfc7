"""Work in pieces: a piece has a key, is made once and kept whole on disk, and is not made again after a kill.

What differs is how a piece is stored: a line of JSON (`Checkpoint`, for benchmarks) or a Parquet file
(`carom.core.shards.Shards`, for data sets).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeVar, final

from carom.core.artefacts import json_default
from carom.core.errors import CaromError
from carom.core.progress import Progress, Steps, steps_of

Key = TypeVar("Key", contravariant=True)
Piece = TypeVar("Piece", contravariant=True)
Rows = list[dict[str, Any]]


class Store(Protocol[Key, Piece]):
    """Where finished pieces are kept."""

    def has(self, key: Key) -> bool:
        """Whether this piece is there and whole."""
        ...

    def put(self, key: Key, piece: Piece) -> None:
        """Keep a finished piece. When this returns, the piece is on the disk."""
        ...


def make_pieces(
    keys: Sequence[Key], store: Store[Key, Piece], make: Callable[[Key], Piece], *, progress: Steps | None = None
) -> int:
    """Make the pieces that the store does not have yet, one after the other; returns how many.

    What `make` gives must depend on the key alone: then a run that was killed ends with the same bytes.
    """
    made = 0
    for number, key in enumerate(keys, start=1):
        if not store.has(key):
            store.put(key, make(key))
            made += 1
        if progress:
            progress(number, len(keys))
    return made


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
    pieces: Checkpoint, work: Sequence[tuple[str, Callable[[], Rows]]], progress: Progress
) -> tuple[Rows, float]:
    """The rows of all pieces of a benchmark (key, what to run), and the seconds that they took when they were made."""
    jobs = dict(work)

    def timed(key: str) -> Rows:
        start = perf_counter()
        return [*jobs[key](), {"setting": "", "metric": "seconds", "value": perf_counter() - start}]

    make_pieces(list(jobs), pieces, timed, progress=steps_of(progress, "pieces"))
    rows = [row for key in jobs for row in pieces.get(key)]
    return [row for row in rows if row["setting"]], float(sum(row["value"] for row in rows if not row["setting"]))


def fingerprint(settings: Mapping[str, Any]) -> str:
    """A short name for settings, the same in any order of their keys."""
    text = json.dumps(settings, sort_keys=True, default=json_default)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _drop_torn_line(path: Path) -> None:
    """Cut what follows the last line end: a kill in the middle of a write leaves half a line there."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        os.truncate(path, content.rfind(b"\n") + 1)
