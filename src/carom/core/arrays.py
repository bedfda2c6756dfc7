"""Named arrays in npz files, read within bounds: a few kilobytes of a zip archive can claim terabytes."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

#: what NumPy and zipfile raise for files that are none of theirs
_BROKEN = (ValueError, OSError, EOFError, LookupError, TypeError, ArithmeticError, RuntimeError, SyntaxError)
_FAULTS = (*_BROKEN, zipfile.BadZipFile, zlib.error, struct.error, AttributeError, MemoryError)


class ArraysError(Exception):
    """What is wrong with a file. Its readers turn it into an error of their own kind, with the file's name."""


def read_npz(source: Path | IO[bytes], *, most: int) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file by name, of plain numbers; raises if they have more than `most` values together."""
    try:
        with np.load(source, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ArraysError("expected an archive of arrays, got a single one")
            _refuse_large(archive, most)
            return {name: np.asarray(archive[name]) for name in archive.files}
    except _FAULTS as error:
        raise ArraysError(f"{type(error).__name__}: {' '.join(str(error).split()):.150}") from error


def _refuse_large(archive: Any, most: int) -> None:
    """Raise if the arrays, as their first bytes say, are larger than asked for; nothing is unpacked for that."""
    total = 0
    for name in archive.zip.namelist():
        with archive.zip.open(name) as file:
            if np.lib.format.read_magic(file) >= (2, 0):
                shape, _, kind = np.lib.format.read_array_header_2_0(file)
            else:
                shape, _, kind = np.lib.format.read_array_header_1_0(file)
        total += math.prod(shape) * max(1, kind.itemsize // 8)
    if total > most:
        raise ArraysError(f"expected at most {most} values, got {total}")
