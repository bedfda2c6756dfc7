"""Single bits flipped in the files of an artefact, to see that none is accepted silently."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from carom.core.errors import CaromError


def accepted_flips(folder: Path, load: Callable[[], str], count: int, seed: int = 0) -> list[str]:
    """Flips that are loaded although they change what `load` gives; each file is met as often as any other.

    `load` gives what was loaded as text, or raises a `CaromError` of one line.
    """
    rng, whole = np.random.default_rng(seed), load()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "tensorboard" not in path.parts)
    found = []
    for number in range(count):
        path = files[number % len(files)]
        content = bytearray(path.read_bytes())
        at, bit = int(rng.integers(len(content))), int(rng.integers(8))
        good = bytes(content)
        content[at] ^= 1 << bit
        path.write_bytes(content)
        try:
            if load() != whole:
                found.append(f"{path.name}: bit {bit} of byte {at}")
        except CaromError as error:
            if "\n" in str(error) or str(folder) not in str(error):
                found.append(f"{path.name}: bit {bit} of byte {at}: {error}")
        finally:
            path.write_bytes(good)
    return found
