"""Long benchmarks survive a kill: finished pieces are kept on disk and not computed again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, final

from carom.core.errors import CaromError
from carom.core.progress import Progress


@final
class Checkpoint:
    """Finished pieces of a benchmark, one line of JSON each, appended and synced to disk as they are done.

    A piece is known by its key and by the settings of the run: pieces of other settings stay in the file and are not
    used, so going back to former settings finds their pieces again. A line torn by a kill is dropped; that piece alone
    is computed again.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "robot-hits.jsonl"
    >>> Checkpoint(path, {"draws": 10}).save("D1/0", [{"method": "carom", "value": 0.8}])
    >>> Checkpoint(path, {"draws": 10}).done("D1/0")
    [{'method': 'carom', 'value': 0.8}]
    >>> Checkpoint(path, {"draws": 5}).done("D1/0") is None
    True
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.fingerprint = fingerprint(settings)
        self._pieces = self._load()

    def __len__(self) -> int:
        """How many pieces of these settings are done."""
        return len(self._pieces)

    def done(self, key: str) -> list[dict[str, Any]] | None:
        """The rows of a finished piece, or None if it is still to do."""
        return self._pieces.get(key)

    def save(self, key: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Keep a finished piece. When this returns, the piece is on the disk."""
        piece = {"fingerprint": self.fingerprint, "key": key, "rows": [dict(r) for r in rows]}
        line = json.dumps(piece, default=_plain)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            _drop_torn_line(self.path)
            stream.write(line.encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._pieces[key] = json.loads(line)["rows"]  # as a later run will read it

    def _load(self) -> dict[str, list[dict[str, Any]]]:
        if not self.path.is_file():
            return {}
        pieces = {}
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                piece = json.loads(line)
                key, made_by, rows = piece["key"], piece["fingerprint"], piece["rows"]
            except (ValueError, TypeError, KeyError) as error:
                raise CaromError(
                    f"{self.path}, line {number}: not a finished piece of a benchmark; delete the line, or the file"
                ) from error
            if made_by == self.fingerprint:
                pieces[key] = rows
        return pieces


Rows = list[dict[str, Any]]


def run_pieces(
    pieces: Checkpoint,
    work: Sequence[tuple[str, Callable[[], Rows]]],
    progress: Progress,
) -> tuple[Rows, float]:
    """The rows of all pieces of work (key, what to run), each run once and kept; and the seconds they took."""
    rows: Rows = []
    seconds = 0.0
    for number, (key, run) in enumerate(work):
        done = pieces.done(key)
        if done is None:
            start = perf_counter()
            pieces.save(key, [*run(), {"setting": "", "metric": "seconds", "value": perf_counter() - start}])
            done = pieces.done(key) or []
        seconds += sum(row["value"] for row in done if not row["setting"])
        rows += [row for row in done if row["setting"]]
        progress("pieces", number + 1, len(work))
    return rows, seconds


def fingerprint(settings: Mapping[str, Any]) -> str:
    """A short name for settings, the same in any order of their keys."""
    text = json.dumps(settings, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _drop_torn_line(path: Path) -> None:
    """Cut what follows the last line end: a kill in the middle of a write leaves half a line there."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        os.truncate(path, content.rfind(b"\n") + 1)


def _plain(value: object) -> Any:
    """NumPy's scalars and arrays, and paths, as JSON has them; anything else is refused rather than guessed."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise CaromError(f"a benchmark's piece or settings: JSON cannot express the {type(value).__name__} {value!r}")
