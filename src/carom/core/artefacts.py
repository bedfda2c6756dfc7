"""Files and folders that Carom writes: whole or not at all, with a header that says what they are and how made."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from carom.core.errors import CaromError, ModelError

UNITS = {"length": "m", "angle": "rad", "time": "s", "mass": "kg"}  #: of models and of data sets


def atomically(path: Path, write: Callable[[io.BufferedIOBase], object]) -> None:
    """Write a file beside its place, then move it there, so that a reader never meets half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole; its folder is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomically(path, lambda file: file.write(text.encode()))


def read_json(path: Path, *, error: type[CaromError] = ModelError) -> dict[str, Any]:
    """The object in a JSON file; raises `error` if the file is damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise error(f"{path} is damaged: {problem}") from problem
    if not isinstance(value, dict):
        raise error(f"{path} is damaged: expected an object, got {type(value).__name__}")
    return value


def write_header(path: Path, header: Mapping[str, Any]) -> None:
    """Write the header of an artefact as a whole. Write it last: a folder with a header is complete."""
    write_text(path, json.dumps(header, indent=1) + "\n")


def read_header(
    path: Path,
    format: str,
    *,
    missing: str,
    units: Mapping[str, str] | None = None,
    error: type[CaromError] = ModelError,
) -> dict[str, Any]:
    """The header of an artefact, checked for its format and, if they are given, its units.

    `missing` is the message if there is no such file.
    """
    if not path.is_file():
        raise error(missing)
    header = read_json(path, error=error)
    if header.get("format") != format:
        raise error(f"{path}: expected format {format}, got {header.get('format')}")
    if units is not None and header.get("units") != units:
        raise error(f"{path}: expected units {dict(units)}, got {header.get('units')}; Carom works in SI units")
    return header


def refuse_other_settings(path: Path, settings: Mapping[str, Any], what: str, *, free: Iterable[str] = ()) -> None:
    """Raise if the settings in a file are not these: nothing is mixed with what was made otherwise.

    `what` names the content of the file's folder. Settings whose dotted name is in `free` may differ.
    """
    if not path.is_file():
        return
    old, new = _flat(read_json(path, error=CaromError)), _flat(json.loads(json.dumps(settings)))
    differ = [k for k in {**old, **new} if old.get(k) != new.get(k) and k not in set(free)]
    if differ:
        listed = ", ".join(f"{k} {old.get(k)!s:.40} (now {new.get(k)!s:.40})" for k in differ)
        raise CaromError(
            f"{path.parent} holds {what} with other settings: {listed}; repeat them or choose another folder"
        )


def _flat(settings: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{within}{name}.") if isinstance(value, Mapping) else {f"{within}{name}": value}
    return found


def plain(value: Any) -> Any:
    """A copy that JSON can express: arrays as lists, paths as text, NaN and infinity as null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value if value is None or isinstance(value, str | int) else plain(json_default(value))


def json_default(value: object) -> Any:
    """The `default` of `json.dumps`: NumPy's scalars and arrays, and paths; anything else is refused."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise CaromError(f"JSON cannot express the {type(value).__name__} {value!r}")


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Carom and of those of these packages that are installed, for the header of an artefact."""
    from carom.core.version import __version__

    found = {"carom": __version__}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
