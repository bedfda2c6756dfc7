"""Single bits flipped in the files of an artefact, to see that none is accepted silently."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from carom.core.errors import CaromError


def accepted_flips(folder: Path, load: Callable[[], str], count: int, seed: int = 0) -> list[str]:
    """Flips that are loaded although they change what `load` gives; each file is met as often as any other.

    `load` gives what was loaded as text, or raises a `CaromError` of one line.
    """
    return tried_flips(folder, load, count, seed=seed)[1]


def tried_flips(
    folder: Path, load: Callable[[], str], count: int, *, seed: int = 0, only: str = "*"
) -> tuple[Counter[str], list[str]]:
    """How many flips were refused, and how many gave the same; and those that were neither. `only`: of these files."""
    rng, whole = np.random.default_rng(seed), load()
    files = sorted(path for path in folder.rglob(only) if path.is_file() and "tensorboard" not in path.parts)
    kept = {path: path.read_bytes() for path in files}
    counts: Counter[str] = Counter()
    found = []
    for number in range(count):
        path = files[number % len(files)]
        content = bytearray(kept[path])
        at, bit = int(rng.integers(len(content))), int(rng.integers(8))
        content[at] ^= 1 << bit
        path.write_bytes(content)
        outcome = "refused"
        try:
            outcome = "same" if load() == whole else "other"
        except CaromError as error:
            if "\n" in str(error) or str(folder) not in str(error):
                outcome = f"unnamed: {error}"
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        for each, good in kept.items():
            if not each.is_file() or each.read_bytes() != good:
                each.write_bytes(good)
        counts[outcome.partition(":")[0]] += 1
        if outcome not in ("refused", "same"):
            found.append(f"{path.name}: bit {bit} of byte {at}: {outcome}")
    return counts, found
