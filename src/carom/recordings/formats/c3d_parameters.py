"""The parameters of a C3D file, and numbers as Intel's, DEC's and MIPS's processors wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from carom.recordings.faults import FaultError

BLOCK = 512  #: [bytes]
INTEL, DEC, MIPS = 84, 85, 86
MOST_DIMENSIONS = 7
_SIZES = {-1: 1, 1: 1, 2: 2, 4: 4}  #: [bytes] of a value by its kind


@dataclass(frozen=True)
class Floats:
    """How numbers are laid out in a file."""

    processor: int

    def words(self, content: bytes) -> NDArray[np.uint16]:
        """16-bit numbers without sign."""
        return np.frombuffer(content[: len(content) // 2 * 2], dtype=">u2" if self.processor == MIPS else "<u2").astype(
            np.uint16
        )

    def reals(self, content: bytes) -> NDArray[np.float64]:
        """32-bit floats. DEC's have their two halves the other way round, and an exponent that is larger by 2."""
        content = content[: len(content) // 4 * 4]
        if self.processor == MIPS:
            return np.frombuffer(content, dtype=">f4").astype(np.float64)
        if self.processor == INTEL:
            return np.frombuffer(content, dtype="<f4").astype(np.float64)
        halves = np.frombuffer(content, dtype="<u2").reshape(-1, 2)[:, ::-1]
        return np.ascontiguousarray(halves).view("<f4")[:, 0].astype(np.float64) / 4


@dataclass(frozen=True)
class Value:
    """One parameter: its kind (-1 text, 1 byte, 2 integer, 4 float), its dimensions, and its bytes."""

    kind: int
    shape: tuple[int, ...]
    content: bytes


@dataclass(frozen=True)
class Parameters:
    """All parameters by group and name, upper case."""

    floats: Floats
    values: dict[tuple[str, str], Value]

    def groups(self) -> set[str]:
        """Names of the groups that have a parameter."""
        return {group for group, _ in self.values}

    def numbers(self, group: str, name: str) -> NDArray[np.float64]:
        """The numbers of a parameter; none where there is no such one. Integers have no sign: counts exceed 32767."""
        value = self.values.get((group, name))
        if value is None or value.kind == -1:
            return np.zeros(0)
        if value.kind == 4:
            return self.floats.reals(value.content)
        if value.kind == 2:
            return self.floats.words(value.content).astype(np.float64)
        return np.frombuffer(value.content, dtype=np.uint8).astype(np.float64)

    def number(self, group: str, name: str) -> float | None:
        """The first number of a parameter."""
        found = self.numbers(group, name)
        return float(found[0]) if len(found) and np.isfinite(found[0]) else None

    def long_range(self, group: str, first: str, last: str) -> int | None:
        """The number of frames between two parameters of two 16-bit halves each."""
        ends = [self.numbers(group, name) for name in (first, last)]
        if any(len(end) < 2 or not np.isfinite(end).all() for end in ends):
            return None
        begin, past = (int(end[0]) + 65536 * int(end[1]) for end in ends)
        return past - begin + 1

    def texts(self, group: str, name: str) -> list[str]:
        """The texts of a parameter, without spaces at their ends."""
        value = self.values.get((group, name))
        if value is None or value.kind != -1:
            return []
        width = value.shape[0] if value.shape else len(value.content)
        if not width:
            return []
        pieces = [value.content[at : at + width] for at in range(0, len(value.content), width)]
        return [piece.decode("utf-8", errors="replace").replace("\0", " ").strip() for piece in pieces]

    def text(self, group: str, name: str) -> str:
        """The first text of a parameter."""
        return next(iter(self.texts(group, name)), "")


def read_parameters(path: Path, content: bytes) -> tuple[Floats, Parameters]:
    """How a file's numbers are laid out, and its parameters."""
    start = (content[0] - 1) * BLOCK
    if len(content) < start + 4:
        raise FaultError(
            f"its parameters should be at block {content[0]}, the file has {len(content) // BLOCK}; it is cut off",
            code="bad-file",
            file=path,
        )
    floats = Floats(content[start + 3])
    if floats.processor not in (INTEL, DEC, MIPS):
        raise FaultError(
            f"expected processor 84, 85 or 86, got {floats.processor}: no C3D file, or damaged",
            code="bad-file",
            file=path,
        )
    groups: dict[int, str] = {}
    found: list[tuple[int, str, Value]] = []
    at, past = start + 4, min(len(content), start + BLOCK * max(content[start + 2], 1))
    past = len(content) if content[start + 2] == 0 else past
    while at + 4 < past:
        name_size = abs(int.from_bytes(content[at : at + 1], signed=True))
        ident = int.from_bytes(content[at + 1 : at + 2], signed=True)
        if name_size == 0:
            break
        link = at + 2 + name_size
        if link + 3 > len(content):
            break
        name = content[at + 2 : link].decode("latin-1").strip().upper()
        step = int(floats.words(content[link : link + 2])[0])
        if ident < 0:
            groups[-ident] = name
        elif (value := _value(content, link + 2)) is not None:
            found.append((ident, name, value))
        if step == 0:
            break
        at = link + step
    return floats, Parameters(floats, {(groups.get(ident, ""), name): value for ident, name, value in found})


def _value(content: bytes, at: int) -> Value | None:
    """The parameter at a place; None where the file ends before it does, or where it is of no known kind."""
    if at + 2 > len(content):
        return None
    kind = int.from_bytes(content[at : at + 1], signed=True)
    dimensions = content[at + 1]
    if kind not in _SIZES or dimensions > MOST_DIMENSIONS:
        return None
    shape = tuple(content[at + 2 : at + 2 + dimensions])
    first = at + 2 + dimensions
    size = _SIZES[kind]
    for length in shape:
        size *= length
    return Value(kind, shape, content[first : first + size]) if first + size <= len(content) else None
