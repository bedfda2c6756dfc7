"""One data file as named columns of float64: CSV, npz and Parquet; errors have their place, writes are whole."""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from carom.core.artefacts import atomically
from carom.recordings.faults import FaultError
from carom.state import Array

SUFFIXES = {".csv": "csv", ".npz": "npz", ".parquet": "parquet"}
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
    return table


def _read_csv(path: Path) -> Table:
    raw = path.read_bytes()
    if b"\0" in raw[:4096]:
        raise FaultError("not a text file; expected CSV", code="bad-file", file=path)
    try:
        names = next(csv.reader([raw.split(b"\n", 1)[0].decode("utf-8-sig").rstrip("\r")]), [])
    except UnicodeDecodeError as error:
        raise FaultError("not UTF-8 text; save it as plain CSV", code="bad-file", file=path, row=1) from error
    names = [name.strip() for name in names]
    _refuse_names(path, names)
    try:
        table = pa_csv.read_csv(
            io.BytesIO(raw),
            read_options=pa_csv.ReadOptions(use_threads=False, skip_rows=1, column_names=names),
            convert_options=pa_csv.ConvertOptions(
                column_types={name: pa.float64() for name in names}, null_values=_NULLS, strings_can_be_null=True
            ),
        )
        columns = {name: _column(table.column(name)) for name in names}
    except pa.ArrowInvalid as error:
        raise _find_csv_fault(path, raw, names) from error
    count = table.num_rows
    lines = np.arange(2.0, count + 2.0)
    if raw.count(b"\n") > count + 1:  # blank lines were skipped; keep the numbers that an editor shows
        texts = raw.split(b"\n")[1:]
        lines = np.array([i + 2.0 for i, text in enumerate(texts) if text.strip(b"\r")])
    return Table(path, columns, lines)


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


def _find_csv_fault(path: Path, raw: bytes, names: list[str]) -> FaultError:
    """The first row and column that stopped the fast reader, found by a slow pass."""
    for row, cells in enumerate(csv.reader(io.StringIO(raw.decode("utf-8-sig", errors="replace"))), start=1):
        if row == 1 or not cells:
            continue
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
                    f"expected a number or an empty cell, got {cell!r}; leave a lost sample's cell empty",
                    code="not-a-number",
                    file=path,
                    row=row,
                    column=name,
                )
    return FaultError("not a CSV table of numbers", code="bad-file", file=path)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, other readers do not


def _read_npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            columns = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
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
    try:
        table = pa_parquet.read_table(path, use_threads=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise FaultError(f"cannot be read as Parquet ({error})", code="bad-file", file=path) from error
    _refuse_names(path, list(table.column_names))
    columns: dict[str, Array] = {}
    for name in table.column_names:
        kind = table.column(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise FaultError(f"expected numbers, got {kind}", code="not-a-number", file=path, column=name)
        columns[name] = _column(table.column(name))
    return Table(path, columns, None)


def write_table(path: Path, columns: Mapping[str, Array]) -> None:
    """Write named columns in the format that the suffix says, whole or not at all; NaN becomes an empty cell."""
    if path.suffix == ".npz":
        atomically(path, lambda file: np.savez(file, **dict(columns)))  # type: ignore[arg-type]
        return
    table = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    if path.suffix == ".parquet":
        atomically(path, lambda file: pa_parquet.write_table(table, file))
        return

    def write(file: io.BufferedIOBase) -> None:
        file.write((",".join(columns) + "\n").encode())  # Arrow would put every name in quotes
        pa_csv.write_csv(table, file, pa_csv.WriteOptions(include_header=False))

    atomically(path, write)
