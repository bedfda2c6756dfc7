"""Files and folders that Carom writes: whole or not at all, with a header that says what they are and how made."""

from __future__ import annotations

import errno
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from carom.core.errors import CaromError, ModelError, short

UNITS = {"length": "m", "angle": "rad", "time": "s", "mass": "kg"}  #: of models and of data sets
SEAL = "header_sha256"  #: key of a header's own checksum
UNFINISHED = ".carom-part"  #: how the names of files end that are still being written; a kill leaves them
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LARGEST_HEADER = 50_000_000  #: [bytes]; it may hold meshes
AGAIN = "run the command that made it again, or take a copy that is whole"
_UMASK = Lock()


class Keys(BaseModel):
    """What may stand in a part of a header: other keys are refused, and so are wrong types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Header(Keys):
    """What every header holds; each kind of artefact adds its own keys."""

    format: str
    made_with: dict[str, str]  #: versions of Carom and of the packages that the content depends on
    made_from: dict[str, Any] = {}  #: name and SHA-256 of recordings, of a parent artefact, and the like
    files: dict[str, str]  #: SHA-256 of every file that belongs to it, by name
    header_sha256: str  #: of all other keys


def atomically(path: Path, write: Callable[[io.BufferedIOBase], object]) -> None:
    """Write a file beside its place, then move it there, so that a reader never meets half of it."""
    with full_disks_told(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def full_disks_told(path: Path) -> Iterator[None]:
    """Turn the system's word for a full disk into a line that names what was being written, and says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise CaromError(f"{path}: no space left on the disk; free some, then run the same command again") from error


def _umask() -> int:
    """What the process takes away from the rights of new files. It can only be read by setting it."""
    with _UMASK:
        mask = os.umask(0o077)
        os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole; its folder is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomically(path, lambda file: file.write(text.encode()))


def write_payload(path: Path, content: bytes) -> str:
    """Write a file of an artefact as a whole; its SHA-256, for the header."""
    atomically(path, lambda file: file.write(content))
    return sha256(content).hexdigest()


def read_payload(path: Path, files: Mapping[str, str], *, error: type[CaromError] = ModelError) -> bytes:
    """The content of a file of an artefact; raises unless it is what the header's `files` say."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as problem:
        raise error(f"{path} is missing: the folder is incomplete; {AGAIN}") from problem
    except (OSError, ValueError) as problem:
        raise error(f"{path} cannot be read: {problem}") from problem
    stated = files.get(path.name)
    if stated is None:
        raise error(f"{path} does not belong to its folder: the header does not list it; {AGAIN}")
    if sha256(content).hexdigest() != stated:
        raise error(f"{path} is damaged: it is not the file that the header was written for (SHA-256); {AGAIN}")
    return content


def read_json(path: Path, *, error: type[CaromError] = ModelError) -> dict[str, Any]:
    """The object in a JSON file; raises `error` if the file is damaged."""
    try:
        if path.stat().st_size > LARGEST_HEADER:
            raise ValueError(f"expected at most {LARGEST_HEADER // 1_000_000} MB")
        value = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(value).encode()  # refuses what is nested too deep, and halves of characters
    except (OSError, ValueError, RecursionError) as problem:
        raise error(f"{path} is damaged: {' '.join(str(problem).split()):.200}") from problem
    if not isinstance(value, dict):
        raise error(f"{path} is damaged: expected an object, got {type(value).__name__}")
    return value


def seal(header: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a header with its own checksum, the last of its keys."""
    content = {**json.loads(json.dumps(header)), SEAL: ""}
    del content[SEAL]
    return {**content, SEAL: sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}


def write_header(path: Path, header: Mapping[str, Any]) -> str:
    """Write the header of an artefact as a whole, sealed; its checksum. Write it last: a folder with one is complete.

    `header["files"]` has the SHA-256 of each file that belongs to it.
    """
    sealed = seal({"files": {}, **header})
    write_text(path, json.dumps(sealed, indent=1) + "\n")
    return str(sealed[SEAL])


def read_header(
    path: Path,
    schema: type[Header],
    format: str,
    *,
    missing: str,
    again: str,
    units: Mapping[str, str] | None = None,
    error: type[CaromError] = ModelError,
) -> dict[str, Any]:
    """The header of an artefact, checked: its format, its checksum, its units if they are given, and every key.

    `missing` is the message if there is no such file, `again` the command that makes a new one.
    """
    if not path.is_file():
        raise error(missing)
    header = read_json(path, error=error)
    if header.get("format") != format:
        raise error(f"{path}: expected format {format}, got {short(header.get('format'))}")
    if SEAL not in header:
        raise error(f"{path} was made by an earlier version of Carom (it has no checksum); run {again} again")
    if header[SEAL] != seal(header)[SEAL]:
        raise error(f"{path} is damaged or was edited: its content does not fit its {SEAL}; run {again} again")
    if units is not None and header.get("units") != units:
        raise error(f"{path}: expected units {dict(units)}, got {header.get('units')!r:.100}; Carom works in SI units")
    check_keys(path, schema, header, again=again, error=error)
    return header


def check_keys(
    path: Path, schema: type[Keys], header: Mapping[str, Any], *, again: str, error: type[CaromError] = CaromError
) -> None:
    """Raise unless a header has the keys of its schema, with values of their types."""
    try:
        schema.model_validate_json(json.dumps(header))
    except ValidationError as problem:
        raise error(f"{path}: {_first(problem)}; run {again} again") from problem


def refuse_earlier(path: Path, *, again: str) -> None:
    """Raise if there is a header under the name that it had in earlier versions of Carom."""
    if path.is_file() and SEAL not in read_json(path, error=CaromError):
        raise CaromError(f"{path} was made by an earlier version of Carom (it has no checksum); run {again} again")


def _first(error: ValidationError) -> str:
    """The first of pydantic's complaints, with the key that it is about."""
    first = error.errors()[0]
    key = ".".join(map(short, first["loc"]))
    if first["type"] == "missing":
        return f"key '{key}' is missing"
    if first["type"] == "extra_forbidden":
        return f"unknown key '{key}'"
    return f"key '{key}': {first['msg'][0].lower()}{first['msg'][1:]}, got {first.get('input')!r:.60}"


def made_from(path: Path, files: Iterable[Path]) -> dict[str, str]:
    """Name of what an artefact was made from, and one SHA-256 of the names and the content of these of its files."""
    found = sha256()
    for file in sorted(set(files)):
        found.update(file.name.encode() + b"\0" + sha256(file.read_bytes()).digest())
    return {"name": path.resolve().name, "sha256": found.hexdigest()}


def refuse_other_settings(path: Path, settings: Mapping[str, Any], what: str, *, free: Iterable[str] = ()) -> None:
    """Raise if the settings in a file are not these: nothing is mixed with what was made otherwise.

    `what` names the content of the file's folder. Settings whose dotted name is in `free` may differ.
    """
    if not path.is_file():
        return
    there = read_json(path, error=CaromError)
    if SEAL not in there:
        raise CaromError(f"{path} was made by an earlier version of Carom (it has no checksum); choose another folder")
    if there[SEAL] != seal(there)[SEAL]:
        raise CaromError(f"{path} is damaged: its content does not fit its {SEAL}; delete {path.parent} and begin anew")
    old, new = (_flat({k: v for k, v in s.items() if k not in ("files", SEAL)}) for s in (there, seal(settings)))
    differ = [k for k in {**old, **new} if old.get(k) != new.get(k) and k not in set(free)]
    if differ:
        listed = ", ".join(f"{short(k)} {short(old.get(k))} (now {short(new.get(k))})" for k in differ[:5])
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
