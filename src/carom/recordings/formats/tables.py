"""One data file as named columns of float64: CSV, npz and Parquet; errors have their place, writes are whole."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from carom.core.arrays import ArraysError, read_npz
from carom.core.artefacts import atomically
from carom.recordings.faults import FaultError
from carom.state import Array

SUFFIXES = {".csv": "csv", ".npz": "npz", ".parquet": "parquet"}
MOST_CELLS = 20_000_000  #: of a data file: 200 samples a second of two bodies, for an hour
FARTHEST = 1e9  #: position, speed or the like in the file's unit; a farther one is no measurement
LATEST = 1e19  #: time in the file's unit: nanoseconds since 1970 are less
LONGEST_LINE = 1 << 20  #: [bytes] of names of columns
_CHECKSUM = b"carom_sha256"  #: key of a Parquet file's own checksum; files of others have none
_NULLS = ["", "nan", "NaN", "NAN"]


@dataclass(frozen=True)
class Table:
    """The columns of a data file and how to name its rows."""

    path: Path
    columns: Mapping[str, Array]  #: name -> [T]; NaN where a cell is empty
    lines: Array | None  #: [T] 1-based line of each row of a text file; None for a binary one

    def fault(self, message: str, *, code: str, index: int | None = None, column: str | None = None) -> FaultError:
        """A `FaultError` at a row of this file."""
        if index is None:
            return FaultError(message, code=code, file=self.path, column=column)
        if self.lines is None:
            return FaultError(message, code=code, file=self.path, row=index + 1, column=column, row_word="sample")
        return FaultError(message, code=code, file=self.path, row=int(self.lines[index]), column=column)


def read_table(path: Path) -> Table:
    """The columns of a CSV, npz or Parquet file, unconverted; a `FaultError` says where it is none."""
    if not path.is_file():
        raise FaultError("no such file, though it is listed; correct the list or add it", code="no-file", file=path)
    if path.suffix not in SUFFIXES:
        raise FaultError(
            f"unknown kind of data file '{path.suffix}'; expected {', '.join(SUFFIXES)}", code="bad-suffix", file=path
        )
    if path.stat().st_size == 0:
        raise FaultError("empty file; expected a header line and samples", code="empty", file=path)
    table = {".csv": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}[path.suffix](path)
    if "time" not in table.columns:
        raise table.fault(f"no column 'time'; found: {', '.join(list(table.columns)[:8])}", code="missing-column")
    if len(table.columns["time"]) < 2:
        raise table.fault(f"expected samples, got {len(table.columns['time'])} of them", code="empty")
    for name, values in table.columns.items():
        if np.isinf(values).any():
            index = int(np.argmax(np.isinf(values)))
            raise table.fault(
                "expected a finite number or an empty cell, got infinity; leave a lost sample's cell empty",
                code="not-a-number",
                index=index,
                column=name,
            )
        most = LATEST if name == "time" else FARTHEST
        far = np.abs(values) > most
        if far.any() and not name.startswith("ctrl."):
            index = int(np.argmax(far))
            raise table.fault(
                f"expected a number within {most:g}, got {values[index]:g}; leave a lost sample's cell empty",
                code="not-a-number",
                index=index,
                column=name,
            )
    return table


def _read_csv(path: Path) -> Table:
    with path.open("rb") as file:
        start = file.read(LONGEST_LINE)
    if b"\0" in start[:4096]:
        raise FaultError("not a text file; expected CSV", code="bad-file", file=path)
    first = re.split(rb"[\r\n]", start, maxsplit=1)[0]
    if len(first) == LONGEST_LINE:
        raise FaultError("the first line does not end; expected names of columns", code="bad-file", file=path, row=1)
    try:
        names = [name.strip() for name in next(csv.reader([first.decode("utf-8-sig")]), [])]
    except UnicodeDecodeError as error:
        raise FaultError("not UTF-8 text; save it as plain CSV", code="bad-file", file=path, row=1) from error
    except csv.Error as error:
        raise FaultError(f"expected names of columns: {error}", code="bad-file", file=path, row=1) from error
    _refuse_names(path, names)
    try:
        table = pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(use_threads=False, skip_rows=1, column_names=names),
            convert_options=pa_csv.ConvertOptions(
                column_types={name: pa.float64() for name in names}, null_values=_NULLS, strings_can_be_null=True
            ),
        )
        _refuse_large(path, table.num_rows, len(names))
        columns = {name: _column(table.column(name)) for name in names}
    except pa.ArrowInvalid as error:
        raise _find_csv_fault(path, names) from error
    return Table(path, columns, _lines(path, table.num_rows))


def _lines(path: Path, count: int) -> Array:
    """The line of each row [T] as an editor shows it, from 1: blank lines are no rows."""
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        lines = np.fromiter((i for i, text in enumerate(file, start=1) if text != "\n"), dtype=np.float64)[1:]
    return lines if len(lines) == count else np.arange(2.0, count + 2.0)


def _refuse_large(path: Path, rows: int, columns: int) -> None:
    if rows * columns > MOST_CELLS:
        message = f"{rows} rows of {columns} columns; expected at most {MOST_CELLS} cells: keep one event in a file"
        raise FaultError(message, code="too-large", file=path)


def _refuse_names(path: Path, names: list[str]) -> None:
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        raise FaultError(
            f"expected columns separated by commas, got {names[0][:40]!r}; save it with commas",
            code="bad-file",
            file=path,
            row=1,
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FaultError(
            "there are two columns of this name; rename or remove one",
            code="duplicate-column",
            file=path,
            row=1,
            column=twice[0],
        )


def _column(values: pa.ChunkedArray) -> Array:
    return np.array(values.to_numpy(), dtype=np.float64)  # a copy: Arrow's own buffers are read-only


def _find_csv_fault(path: Path, names: list[str]) -> FaultError:
    """The first row and column that stopped the fast reader, found by a slow pass."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.reader(file)
        try:
            return next((fault for cells in rows if (fault := _fault_in(path, rows.line_num, cells, names))), None) or (
                FaultError("not a CSV table of numbers", code="bad-file", file=path)
            )
        except csv.Error as error:
            return FaultError(f"not a row of numbers: {error}", code="bad-file", file=path, row=rows.line_num)


def _fault_in(path: Path, row: int, cells: list[str], names: list[str]) -> FaultError | None:
    if row == 1 or not cells:
        return None
    if len(cells) != len(names):
        return FaultError(
            f"expected {len(names)} cells as in the header, got {len(cells)}; complete or remove the row",
            code="row-length",
            file=path,
            row=row,
        )
    for name, cell in zip(names, cells, strict=True):
        if cell not in _NULLS and not _is_number(cell):
            return FaultError(
                f"expected a number or an empty cell, got {cell[:40]!r}; leave a lost sample's cell empty",
                code="not-a-number",
                file=path,
                row=row,
                column=name,
            )
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, other readers do not


def _read_npz(path: Path) -> Table:
    try:
        columns = read_npz(path, most=MOST_CELLS)
    except ArraysError as error:
        raise FaultError(
            f"cannot be read as npz ({error}); write it with carom or numpy.savez, plain numbers only",
            code="bad-file",
            file=path,
        ) from error
    count = len(columns["time"]) if columns.get("time", np.zeros(())).ndim == 1 else None
    for name, values in columns.items():
        if values.ndim != 1 or values.dtype.kind not in "fiu" or (count is not None and len(values) != count):
            raise FaultError(
                f"expected {count if count is not None else 'a row of'} numbers, got shape {values.shape} of "
                f"{values.dtype}",
                code="row-length" if values.dtype.kind in "fiu" else "not-a-number",
                file=path,
                column=name,
            )
    return Table(path, {name: values.astype(np.float64) for name, values in columns.items()}, None)


def _read_parquet(path: Path) -> Table:
    import pyarrow.parquet as pa_parquet  # 9 MB that other formats do not need

    try:
        with pa_parquet.ParquetFile(path, page_checksum_verification=True) as file:
            _refuse_large(path, file.metadata.num_rows, file.metadata.num_columns)
            table = file.read(use_threads=False)
        stated = (table.schema.metadata or {}).get(_CHECKSUM)
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, RuntimeError, MemoryError) as error:
        words = " ".join(str(error).split())
        raise FaultError(f"cannot be read as Parquet ({words:.200})", code="bad-file", file=path) from error
    _refuse_names(path, list(table.column_names))
    columns: dict[str, Array] = {}
    for name in table.column_names:
        kind = table.column(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise FaultError(f"expected numbers, got {kind}", code="not-a-number", file=path, column=name)
        columns[name] = _column(table.column(name))
    if stated is not None and stated != _checksum(columns):
        raise FaultError(
            "damaged: its numbers do not fit the checksum that was written with them; take a copy that is whole",
            code="damaged",
            file=path,
        )
    return Table(path, columns, None)


def _checksum(columns: Mapping[str, Array]) -> bytes:
    """SHA-256 of names and numbers; whatever NaN is lost is the same one."""
    found = sha256()
    for name, values in columns.items():
        numbers = np.where(np.isnan(values), np.nan, np.asarray(values, dtype=np.float64))
        found.update(f"{name}\n{len(values)}\n".encode() + numbers.astype("<f8").tobytes())
    return found.hexdigest().encode()


def write_table(path: Path, columns: Mapping[str, Array]) -> None:
    """Write named columns in the format that the suffix says, whole or not at all; NaN becomes an empty cell."""
    if path.suffix == ".npz":
        atomically(path, lambda file: np.savez(file, **dict(columns)))  # type: ignore[arg-type]
        return
    table = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    if path.suffix == ".parquet":
        import pyarrow.parquet as pa_parquet

        kept = {name: _column(table.column(name)) for name in columns}
        sealed = table.replace_schema_metadata({_CHECKSUM: _checksum(kept)})
        atomically(path, lambda file: pa_parquet.write_table(sealed, file, write_page_checksum=True))
        return

    def write(file: io.BufferedIOBase) -> None:
        file.write((",".join(columns) + "\n").encode())  # Arrow would put every name in quotes
        pa_csv.write_csv(table, file, pa_csv.WriteOptions(include_header=False))

    atomically(path, write)
