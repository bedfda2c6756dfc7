"""Good files spoilt at random places, and what a reader makes of them."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from carom.core.errors import CaromError

LONGEST = 5.0  #: [s] of processor time that a reader may take
MOST = 1_000_000  #: [kB] that the process may grow by


def spoilt(
    file: Path, attempt: Callable[[], object], *, count: int, damaged: int | None = None, seed: int = 0
) -> tuple[int, int]:
    """How many spoilt copies were refused, and how many were read: `count` cut off, and as many with bytes changed.

    Whatever is no `CaromError`, or one that does not name the file in one line, or that takes long, raises.
    """
    rng = np.random.default_rng(seed)
    content = file.read_bytes()
    refused = accepted = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        for number in range(count + (count if damaged is None else damaged)):
            if number < count:
                bad = content[: int(rng.integers(len(content)))]
            else:
                changed = bytearray(content)
                for place in rng.integers(len(content), size=int(rng.integers(1, 9))):
                    changed[place] = int(rng.integers(256))
                bad = bytes(changed)
            file.write_bytes(bad)
            start = time.process_time()
            try:
                attempt()
                accepted += 1
            except CaromError as error:
                refused += 1
                words = str(error)
                assert "\n" not in words, (number, words)
                assert file.name in words or file.parent.name in words, (number, words)
            assert time.process_time() - start < LONGEST, number
    finally:
        file.write_bytes(content)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST
    return refused, accepted
