"""What a path holds, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.recordings import kind_of, read
from carom.recordings.formats.header import HEADER_NAME
from carom.view.bodies import FreeTakes
from carom.view.shown import Show
from carom.view.strikes import StrikeTakes

KNOWN = "a folder of recordings, an adapted model, a plan, a policy, a graph simulator, or a loop or one of its rounds"


def opened(path: Path, beside: Sequence[Path] = (), *, progress: Progress = silent) -> Show:
    """The show of a path; raises if there is nothing that can be shown."""
    if not path.exists():
        raise CaromError(f"{path} does not exist; expected {KNOWN}")
    if (path / HEADER_NAME).is_file():
        return shown_recordings(path, beside, progress=progress)
    raise CaromError(f"{path}: expected {KNOWN}; found none of them there")


def shown_recordings(path: Path, beside: Sequence[Path], *, progress: Progress) -> Show:
    """A folder of recordings, with engines beside it."""
    recordings = read(path)
    names = tuple(t.name for t in recordings.trajectories)
    kind = kind_of(recordings)
    if kind == "strikes":
        return Show(f"{path}: {len(names)} strikes", names, StrikeTakes.of(recordings))
    return Show(f"{path}: {len(names)} recordings of {kind}", names, FreeTakes(recordings))
