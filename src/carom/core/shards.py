"""A data set in Parquet files of equal size, the pieces of resumable work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from carom.core.artefacts import atomically
from carom.core.errors import CaromError


@dataclass(frozen=True)
class Shards:
    """`count` rows in files of `size` rows each, the last one with the rest. It is a `Store` of tables by number."""

    folder: Path
    name: str  #: how the files' names begin
    count: int
    size: int

    @property
    def keys(self) -> range:
        """The numbers of the shards."""
        return range(-(-self.count // self.size))

    def rows(self, key: int) -> range:
        """The rows of the whole that a shard holds."""
        return range(key * self.size, min((key + 1) * self.size, self.count))

    def path(self, key: int) -> Path:
        """The file of a shard."""
        return self.folder / f"{self.name}-{key:05d}.parquet"

    def has(self, key: int) -> bool:
        """Whether a shard is there with all its rows; the last one of a smaller data set is not."""
        path = self.path(key)
        if not path.exists():
            return False
        try:
            return int(pq.read_metadata(path).num_rows) == len(self.rows(key))
        except (OSError, pa.ArrowInvalid) as error:
            raise _damaged(path, error) from error

    def put(self, key: int, piece: pa.Table) -> None:
        """Keep a shard."""
        atomically(self.path(key), lambda file: pq.write_table(piece, file, compression="zstd"))

    def read(self, key: int, *, columns: Sequence[str] | None = None) -> pa.Table:
        """One shard, or some columns of it."""
        path = self.path(key)
        if not path.is_file():
            raise CaromError(f"{path} is missing: the run was interrupted; the same command goes on from there")
        try:
            return pq.read_table(path, columns=None if columns is None else list(columns))
        except (OSError, pa.ArrowInvalid, KeyError) as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> CaromError:
    return CaromError(f"{path} is damaged ({str(error).splitlines()[0]}); delete it and run the same command again")
