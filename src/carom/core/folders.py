"""A folder that is written as a whole: made beside its place, then moved there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from carom.core.errors import CaromError
from carom.core.locks import LOCK

LONGEST_NAME = 200  #: of a file that another one names


def file_within(folder: Path, name: str, *, error: type[CaromError] = CaromError) -> Path:
    """The place of a file that another file of this folder names; raises if it would lie outside of the folder.

    A folder from someone else must not read what lies beside it. Links are followed: they are made on this machine.
    """
    if len(name.encode(errors="replace")) > LONGEST_NAME:
        raise error(f"file {name!r:.100}...: expected a name of at most {LONGEST_NAME} characters")
    if not name.isprintable():
        raise error(f"file {name!r:.100}: expected a name of printable characters")
    if not name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise error(
            f"file {name!r:.100} lies outside of the folder {folder}; expected a file in it: copy it there and name it "
            "without '/' at the beginning and without '..'"
        )
    return folder / name


def refuse_others(place: Path, own: Sequence[str]) -> None:
    """Raise if a folder holds anything but what `own` names, patterns included: it would be lost."""
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_file() and path.name != LOCK and not any(fnmatch(name, pattern) for pattern in own):
            raise CaromError(f"{place} holds {name}, which is no part of what is written there; choose another folder")


@contextmanager
def replacing(place: Path, own: Sequence[str]) -> Iterator[Path]:
    """A new folder to write into; when all went well it takes the place of the one that is there.

    A kill leaves the old folder as it was. The place must be held (`locked`), and hold nothing but what `own` names.
    """
    refuse_others(place, own)
    absolute = place.resolve()
    fresh, old = (absolute.parent / f".{absolute.name}.carom-{what}" for what in ("new", "old"))
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)  # of a run that was killed
    fresh.mkdir()
    try:
        yield fresh
        if absolute.exists():
            absolute.rename(old)
        fresh.rename(absolute)
    except BaseException:
        if old.exists() and not absolute.exists():
            old.rename(absolute)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
