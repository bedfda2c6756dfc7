"""Pieces of work whose worker is lost in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import monotonic, sleep

PATIENCE = 120.0  #: [s] that a piece waits at most


def cube(key: int) -> int:
    """A piece without more."""
    return key**3


def once_killed(folder: Path, victims: tuple[int, ...], key: int) -> int:
    """A piece that takes its worker along, the first time that it is made; `folder` knows which have been."""
    mark = folder / f"began-{key}"
    if key in victims and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return cube(key)


def waiting(folder: Path, key: int) -> int:
    """A piece that says on which node it is being made, and waits for `go`; for long, if its node is lost."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    (folder / f"{key}-on-{node}").touch()
    patience = monotonic() + PATIENCE
    while not ((folder / "go").exists() and not (folder / f"lost-{node}").exists()) and monotonic() < patience:
        sleep(0.05)
    return cube(key)


def deadly(key: int) -> int:
    """A piece that no worker outlives."""
    os.kill(os.getpid(), signal.SIGKILL)
    return key


def refused(key: int) -> int:
    """A piece that says what is wrong with it."""
    from carom.core.errors import CaromError

    raise CaromError(f"piece {key} has no floor")
