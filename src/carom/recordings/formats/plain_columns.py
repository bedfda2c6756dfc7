"""What the columns of a plain table are: names of bodies and axes in the many ways in which people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from carom.core.errors import RecordingError, short, unknown_name
from carom.recordings.formats.take import ReadOptions

#: how a column's name ends, and what it then is; longest first
_ENDS: tuple[tuple[str, str], ...] = (
    (r"(?:pose[._/])?(?:position|translation|pos|trans|location)[._/ ]?\[?([xyz012])\]?", "place"),
    (r"(?:pose[._/])?(?:orientation|rotation|quaternion|quat|rot|ori|q)[._/ ]?\[?([wxyz])\]?", "turn"),
    (r"(roll|pitch|yaw|theta|heading)", "angle"),
    (r"[pt]([xyz])", "place"),
    (r"([xyz])", "place"),
)
_TIME = re.compile(
    r"^[%#]?\s*(?:.*[._/])?(time|times|t|stamp|timestamp|time_?stamps?|secs?|seconds?|elapsed(?:_time)?|header[._]stamp)"
    r"(?:[ _.]*[\[(]?(s|sec|secs|seconds|ms|msec|us|usec|ns|nsec|nanoseconds)[\])]?)?$",
    flags=re.IGNORECASE,
)
_UNIT = re.compile(r"[ _]*[\[(]\s*(m|cm|mm|rad|deg|s|ms|us|ns)\s*[\])]$|_(mm|cm|m|deg|rad)$", flags=re.IGNORECASE)
_OTHER = re.compile(
    r"(force|torque|wrench|vel|velocity|twist|acc|accel|acceleration|omega|gyro|imu|linear|angular|cmd|ctrl|"
    r"command|std|cov|covariance|moment|magnet\w*|error|residual)$",
    flags=re.IGNORECASE,
)
TIME_UNITS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6, "ns": 1e-9,
    "nsec": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """A body's columns by what they hold: x y z, qw qx qy qz, roll pitch yaw; and the units that their names state."""

    name: str
    at: dict[str, int] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)  #: "length" and "angle", where names state them
    ordered: tuple[int, ...] | None = None  #: four columns of a quaternion whose order no name tells


def column_time(names: Sequence[str], options: ReadOptions) -> tuple[int | None, str | None]:
    """The column of times and the unit in its name; None where there is none."""
    if options.time is not None:
        column = find_column(names, options.time)
        match = _TIME.match(names[column])
        return column, match[2] if match else None
    found = [(column, match) for column, name in enumerate(names) if (match := _TIME.match(name.strip()))]
    # a message's own stamp is better than the time at which it was written down
    found.sort(key=lambda each: not re.search(r"header[._]stamp", names[each[0]], flags=re.IGNORECASE))
    return (found[0][0], found[0][1][2]) if found else (None, None)


def find_column(names: Sequence[str], wanted: str) -> int:
    """The place of a column by its name, or by its number from 1."""
    for column, name in enumerate(names):
        if name == wanted:
            return column
    for column, name in enumerate(names):
        if name.lower() == wanted.lower():
            return column
    if wanted.isdigit() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    raise RecordingError(unknown_name("column", wanted, [*names, f"a number from 1 to {len(names)}"]))


def expand(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names of columns with ranges of numbers spelt out.

    >>> expand(["2-4", "qw"], ["a", "b", "c", "d", "qw"])
    ['2', '3', '4', 'qw']
    """
    found: list[str] = []
    for each in wanted:
        match = re.fullmatch(r"(\d+)-(\d+)", each)
        if match and each not in names:
            first, last = int(match[1]), int(match[2])
            if not first <= last <= first + 20:
                raise RecordingError(f"columns {each}: expected a range such as 2-8")
            found += [str(i) for i in range(first, last + 1)]
        else:
            found.append(each)
    return found


def has_columns(names: Sequence[str], sources: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether some body's sources are columns of this table."""
    for wanted in sources.values():
        try:
            if len(expand(wanted, names)) >= 2 and all(find_column(names, each) >= 0 for each in expand(wanted, names)):
                return True
        except RecordingError:
            continue
    return False


def mapped(name: str, wanted: Sequence[str], names: Sequence[str]) -> Columns:
    """A body's columns as the user names them: places first, then the quaternion, unless names tell otherwise."""
    found = Columns(name)
    columns = [find_column(names, each) for each in expand(wanted, names)]
    parts = [_part(names[column]) for column in columns]
    known = [part[1] for part in parts if part is not None]
    if len(known) == len(columns) and len(set(known)) == len(known):
        for column, part in zip(columns, parts, strict=True):
            if part is not None:
                _add(found, part[1], column, names[column])
        return found
    if len(columns) not in (2, 3, 7):
        raise RecordingError(
            f"body '{short(name)}' is given {len(columns)} columns; expected 3 (x, y, z), 7 (and a quaternion), or "
            "columns whose names tell what they are"
        )
    for axis, column in zip("xyz", columns, strict=False):
        _add(found, axis, column, names[column])
    if len(columns) < 7:
        return found
    tail = [part[1] if part else "" for part in parts[3:]]
    if set(tail) == {"qw", "qx", "qy", "qz"}:
        for label, column in zip(tail, columns[3:], strict=True):
            found.at[label] = column
        return found
    return Columns(name, found.at, found.units, tuple(columns[3:]))


def guessed(names: Sequence[str], time: int | None, body: str) -> list[Columns]:
    """Bodies whose columns' names tell that they are poses, in their order; `body` names one without a name."""
    found: dict[str, Columns] = {}
    for column, name in enumerate(names):
        part = None if column == time else _part(name)
        if part is None:
            continue
        prefix, what = part
        if _OTHER.search(prefix):
            continue
        columns = found.setdefault(prefix.lower(), Columns(prefix or body))
        if what in columns.at:
            continue
        _add(columns, what, column, name)
    poses = [each for each in found.values() if _is_pose(each)]
    planar = any("z" not in each.at for each in poses)  # then others may have x and y alone
    return [each for each in found.values() if _is_pose(each) or (planar and set(each.at) == {"x", "y"})]


def _is_pose(columns: Columns) -> bool:
    return {"x", "y", "z"} <= set(columns.at) or {"x", "y", "yaw"} <= set(columns.at)


def _add(columns: Columns, what: str, column: int, name: str) -> None:
    columns.at[what] = column
    unit = _UNIT.search(name)
    if unit:
        word = (unit[1] or unit[2]).lower()
        columns.units["angle" if word in ("rad", "deg") else "length"] = word


def _part(name: str) -> tuple[str, str] | None:
    """A column's body and what it holds of it: 'box.qw' is ('box', 'qw'), 'pose.position.x' is ('', 'x')."""
    plain = _UNIT.sub("", name.strip())
    for end, kind in _ENDS:
        match = re.fullmatch(rf"(?:(.*?)(?:[._/ :-]|(?<=\])))??{end}", plain, flags=re.IGNORECASE)
        if match is None:
            continue
        letter = match[2].lower()
        prefix = re.sub(r"^(field|data|msg)\b[._]?|[._/]?(pose|transform)$", "", (match[1] or "").strip("._/ :-"))
        prefix = re.sub(r"(^|[._/])(pose|transform|pose[._/]pose)$", "", prefix)
        if kind == "place":
            return prefix, {"0": "x", "1": "y", "2": "z"}.get(letter, letter)
        if kind == "turn":
            return prefix, f"q{letter}"
        return prefix, "yaw" if letter in ("theta", "heading") else letter
    return None
