"""Files and folders that Carom writes: whole or not at all, with a header that says what they are and how made."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from carom.core.errors import CaromError


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


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file as a whole; refuses numbers that JSON does not have."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """A copy that JSON can express: arrays as lists, paths as text, NaN and infinity as null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, str | int):
        return value
    raise CaromError(f"JSON cannot express the {type(value).__name__} {value!r}")


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Carom and of these packages, as far as they are installed: what an artefact was made with."""
    from carom.core.version import __version__

    found = {"carom": __version__}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
