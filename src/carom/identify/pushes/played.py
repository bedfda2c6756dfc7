"""Windows played again only for as long as they last: a batch is as slow as its longest row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from carom.identify.pushes.windows import Windows
from carom.state import Array, Motion

GROUPS = 3  #: of windows that last about as long


def lengths(windows: Windows) -> NDArray[np.int64]:
    """Control periods [W] until the last instant at which a window's block or tool was seen."""
    seen = np.asarray(np.isfinite(windows.block).all(axis=-1) | np.isfinite(windows.tip).all(axis=-1))
    last = seen.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1)
    return np.asarray(np.maximum(last, 1) * windows.every)


def played(replay: Callable[[NDArray[np.int64], int], Motion], lasting: NDArray[np.int64], periods: int) -> Motion:
    """The motion of rows that last so many periods [N], `periods` at most; after its end a row stays where it is.

    `replay` plays some of the rows for so many periods.
    """
    order = np.argsort(lasting, kind="stable")
    groups = [group for group in np.array_split(order, GROUPS) if len(group)]
    parts = [replay(group, int(lasting[group].max())) for group in groups]
    whole = np.argsort(np.concatenate(groups), kind="stable")

    def together(name: str) -> Array:
        found = [getattr(part, name) for part in parts]
        found = [np.concatenate([f, np.repeat(f[:, -1:], periods + 1 - f.shape[1], axis=1)], axis=1) for f in found]
        return np.concatenate(found)[whole]

    return replace(
        parts[0],
        time=together("time"),
        position=together("position"),
        quaternion=together("quaternion"),
        joint_position=together("joint_position"),
        status=np.concatenate([part.status for part in parts])[whole],
        engine_seconds=sum(part.engine_seconds for part in parts),
    )
