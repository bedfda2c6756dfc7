"""Messages as bytes, decoded by their definitions: ROS 1's own form, and the CDR of ROS 2.

A decoded message is flat: `{"header.stamp.sec": 3, "pose.position.x": 0.1, ...}`; a list of messages is a list of such.
What comes from a damaged file ends in a `DamageError`, and takes no more memory than the message has bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, Literal

from carom.core.errors import CaromError, short
from carom.recordings.formats.bags.definitions import PRIMITIVES, TEXTS, Definitions, Dialect, Field

Values = dict[str, Any]
DEEPEST = 20  #: types within each other
MOST_STEPS = 5_000  #: of one type, with all that is in it


class DamageError(Exception):
    """A message's bytes are not what its definition says."""


class UndefinedError(CaromError):
    """Nobody knows what a type of message holds."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"no definition of the message type {short(kind)}")
        self.kind = kind


@dataclass(frozen=True)
class _Step:
    """Fields that are read at once: numbers side by side, or one text, or one list of anything."""

    of: Literal["numbers", "text", "wide text", "messages"]
    names: tuple[str, ...]
    codes: str = ""  #: of numbers, as `struct` has them
    size: int = 0  #: [bytes] of each number, which is what CDR aligns to
    count: int | None = None  #: of a list: how many, -1 where the message says so; None: single values
    inner: tuple[_Step, ...] = ()  #: of the elements of a list of messages

    @property
    def least(self) -> int:
        """Bytes that one element takes at least."""
        if self.of == "numbers":
            return self.size * len(self.names)
        if self.of == "messages":
            return sum(step.least * (1 if step.count is None else max(step.count, 0)) for step in self.inner)
        return 4


@dataclass
class _Cursor:
    """A place in a message."""

    data: bytes
    at: int
    origin: int  #: where CDR counts alignment from
    order: str  #: "<" or ">"
    widest: int  #: alignment at most [bytes]; 0: none
    ended: bool  #: whether texts end with a zero

    def numbers(self, codes: str, size: int) -> tuple[Any, ...]:
        size = min(size, self.widest)
        if size > 1:
            self.at += (self.origin - self.at) % size
        try:
            values = struct.unpack_from(self.order + codes, self.data, self.at)
        except struct.error as error:
            raise DamageError("it ends too early") from error
        self.at += struct.calcsize(self.order + codes)
        return values

    def count(self, stated: int, least: int) -> int:
        """How many elements of `least` bytes a list has; -1: the message says it."""
        count = int(self.numbers("I", 4)[0]) if stated < 0 else stated
        if count * max(least, 1) > len(self.data) - self.at:
            raise DamageError(f"a list of {count} is longer than the message")
        return count

    def text(self, *, wide: bool) -> str:
        length = self.count(-1, 1)
        raw = self.data[self.at : self.at + length]
        self.at += length
        if wide:
            return raw.decode("utf-16-le" if self.order == "<" else "utf-16-be", errors="replace")
        return (raw[:-1] if self.ended and raw.endswith(b"\0") else raw).decode("utf-8", errors="replace")


class Decoder:
    """Decodes messages of one type."""

    def __init__(self, kind: str, definitions: Definitions, dialect: Dialect) -> None:
        self.kind, self.dialect = kind, dialect
        self._definitions, self._left = definitions, MOST_STEPS
        self._steps = _joined(self._plan(kind, "", 0))

    def __call__(self, data: bytes) -> Values:
        """The fields of a message by their dotted names."""
        values: Values = {}
        if self.dialect == "ros1":
            cursor = _Cursor(data, 0, 0, "<", 0, False)
        else:
            if len(data) < 4 or data[0] != 0 or data[1] not in (0, 1, 6, 7):
                raise DamageError(f"its first bytes {data[:4].hex()} are not those of plain CDR")
            cursor = _Cursor(data, 4, 4, "<" if data[1] & 1 else ">", 8 if data[1] < 2 else 4, True)
        _read(self._steps, cursor, values)
        return values

    def fields(self) -> tuple[frozenset[str], ...]:
        """Names of the numbers and texts of a message, and of those of the elements of its lists of messages."""
        inner = [step.inner for step in self._steps if step.of == "messages"]
        return tuple(frozenset(n for step in steps for n in step.names) for steps in (self._steps, *inner))

    def _plan(self, kind: str, within: str, depth: int) -> list[_Step]:
        """The steps for a type's fields, with names that begin with `within`."""
        if depth > DEEPEST:
            raise CaromError(f"the message type {short(kind)} holds itself, or types {DEEPEST} deep")
        fields = self._definitions.get(kind)
        if fields is None:
            raise UndefinedError(kind)
        if not fields and self.dialect == "ros2":
            return [_Step("numbers", (f"{within}nothing",), "B", 1)]  # ROS 2 gives an empty type one byte
        steps: list[_Step] = []
        for each in fields:
            self._left -= 1
            if self._left < 0:
                raise CaromError(f"the message type {short(self.kind)} has more than {MOST_STEPS} fields")
            steps += self._steps_of(each, within, depth)
        return steps

    def _steps_of(self, each: Field, within: str, depth: int) -> list[_Step]:
        name = within + each.name
        if each.kind in TEXTS:
            return [_Step("text" if each.kind == "string" else "wide text", (name,), count=each.count)]
        if each.kind in PRIMITIVES:
            code, size = PRIMITIVES[each.kind]
            return [_Step("numbers", (name,), code, size, each.count)]
        inside = f"{name}." if each.count is None else ""
        if each.kind in ("time", "duration"):
            codes = "II" if each.kind == "time" else "ii"
            steps = [_Step("numbers", (f"{inside}sec", f"{inside}nanosec"), codes, 4)]
        else:
            steps = self._plan(each.kind, inside, depth + 1)
        return steps if each.count is None else [_Step("messages", (name,), count=each.count, inner=_joined(steps))]


def _joined(steps: list[_Step]) -> tuple[_Step, ...]:
    """Steps with single numbers of one size, side by side, read at once: they have to be aligned only once."""
    found: list[_Step] = []
    for step in steps:
        last = found[-1] if found else None
        if last is not None and all(
            s.of == "numbers" and s.count is None and s.size == step.size for s in (last, step)
        ):
            found[-1] = replace(last, names=last.names + step.names, codes=last.codes + step.codes)
        else:
            found.append(step)
    return tuple(found)


def _read(steps: tuple[_Step, ...], cursor: _Cursor, values: Values) -> None:
    for step in steps:
        if step.count is None:
            if step.of == "numbers":
                values.update(zip(step.names, cursor.numbers(step.codes, step.size), strict=True))
            else:
                values[step.names[0]] = cursor.text(wide=step.of == "wide text")
            continue
        count = cursor.count(step.count, step.least)
        if step.of == "numbers":
            values[step.names[0]] = cursor.numbers(f"{count}{step.codes}", step.size) if count else ()
        elif step.of == "messages":
            values[step.names[0]] = [_element(step.inner, cursor) for _ in range(count)]
        else:
            values[step.names[0]] = [cursor.text(wide=step.of == "wide text") for _ in range(count)]


def _element(steps: tuple[_Step, ...], cursor: _Cursor) -> Values:
    values: Values = {}
    _read(steps, cursor, values)
    return values
