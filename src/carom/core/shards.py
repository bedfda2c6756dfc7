"""A data set in Parquet files of equal size, the pieces of resumable work, with a header that has their checksums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from carom.core.artefacts import read_payload, write_header, write_payload
from carom.core.errors import CaromError

HEADER = "_header.json"  #: Parquet readers skip names that begin so, when they are given the folder


@dataclass(frozen=True)
class Shards:
    """`count` rows in files of `size` rows each, the last one with the rest. It is a `Store` of files by number.

    The header lists the checksum of every finished shard: one that was damaged, copied over another or made by another
    run is refused; one that the header does not list, because of a kill before it was told, is made again.
    """

    folder: Path
    name: str  #: how the files' names begin
    count: int
    size: int
    header: Mapping[str, Any]  #: as it is written, but for `files`
    files: dict[str, str] = field(default_factory=dict)  #: SHA-256 of the shards that are there, by name

    @property
    def keys(self) -> range:
        """The numbers of the shards."""
        return range(-(-self.count // self.size))

    def rows(self, key: int) -> range:
        """The rows of the whole that a shard holds."""
        return rows_of(key, self.count, self.size)

    def path(self, key: int) -> Path:
        """The file of a shard."""
        return self.folder / f"{self.name}-{key:05d}.parquet"

    def begin(self) -> None:
        """Write the header, with the shards that are there already."""
        write_header(self.folder / HEADER, {**self.header, "files": dict(sorted(self.files.items()))})

    def has(self, key: int) -> bool:
        """Whether a shard is there with all its rows; the last one of a smaller data set is not."""
        import pyarrow.parquet as pq  # 9 MB that only data sets need

        path = self.path(key)
        if not path.exists() or path.name not in self.files:
            return False
        try:
            return int(pq.read_metadata(pa.BufferReader(self._content(path))).num_rows) == len(self.rows(key))
        except (OSError, pa.ArrowException, ValueError, MemoryError) as error:
            raise _damaged(path, str(error)) from error

    def put(self, key: int, piece: bytes) -> None:
        """Keep a shard, made by `parquet`: the file first, then the header that lists it."""
        self.files[self.path(key).name] = write_payload(self.path(key), piece)
        self.begin()

    def read(self, key: int, *, columns: Sequence[str] | None = None) -> pa.Table:
        """One shard, or some columns of it."""
        import pyarrow.parquet as pq

        path = self.path(key)
        if not path.is_file() or path.name not in self.files:
            raise CaromError(f"{path} is missing: the run was interrupted; the same command goes on from there")
        try:
            file = pq.ParquetFile(pa.BufferReader(self._content(path)))
            if file.metadata.num_rows > self.size:
                raise _damaged(path, f"expected {self.size} rows at most, got {file.metadata.num_rows}")
            return file.read(columns=None if columns is None else list(columns))
        except (OSError, pa.ArrowException, ValueError, LookupError, TypeError, MemoryError) as error:
            raise _damaged(path, str(error)) from error

    def _content(self, path: Path) -> bytes:
        try:
            return read_payload(path, self.files, error=CaromError)
        except CaromError as error:
            raise _damaged(path, "its content is not what the header was written for") from error


def rows_of(key: int, count: int, size: int) -> range:
    """The rows that a shard holds, of `count` in all and `size` in each but the last."""
    return range(key * size, min((key + 1) * size, count))


def parquet(table: pa.Table) -> bytes:
    """A table as the content of a file."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def _damaged(path: Path, reason: str) -> CaromError:
    return CaromError(f"{path} is damaged ({' '.join(reason.split()):.200}); delete it and run the same command again")
