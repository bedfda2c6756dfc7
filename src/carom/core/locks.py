"""One writer per folder: a lock file with process and host, which the system frees when its owner dies."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from carom.core.artefacts import UNFINISHED
from carom.core.errors import CaromError

LOCK = ".carom-lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made if it is not there; raises at once while another process, or this one, holds it.

    What a killed owner left unfinished is removed. A folder that stays empty is removed too.
    """
    if folder.exists() and not folder.is_dir():
        raise CaromError(f"{folder}: expected a folder, or a name for a new one; that is a file")
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    handle = _taken(path)
    try:
        for left in folder.rglob(f".*{UNFINISHED}"):
            left.unlink(missing_ok=True)
        yield
    finally:
        if _is_at(handle, path):  # not if the folder was replaced meanwhile
            path.unlink(missing_ok=True)
        os.close(handle)
        if new:
            with suppress(OSError):
                folder.rmdir()


def _taken(path: Path) -> int:
    """The open lock file, held."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _held(handle):
            owner = os.read(handle, 200).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise CaromError(
                f"{path.parent} is being written by {owner}; wait until that has ended, or choose another folder"
            )
        if _is_at(handle, path):  # else its owner has removed it between our opening and holding it
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return handle
        os.close(handle)


def _held(handle: int) -> bool:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: writes are still whole, and mixtures are refused by their checksums
    return True


def _is_at(handle: int, path: Path) -> bool:
    try:
        there, own = path.stat(), os.fstat(handle)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)
