"""Single bits flipped in every kind of artefact: refused by name, or the numbers stay the same.

`python tests/fuzz/flips.py --count 2000 --seed 0`
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bit_flips import tried_flips
from readers import READERS
from run import make_seeds

#: artefacts with checksums: base and corrected models, policies, trainings, checkpoints, data sets, parameters, Parquet
KINDS = ("bases", "hybrid", "policy", "training", "checkpoint", "trajectories", "impacts", "parameters")
KINDS += ("graph", "graph-checkpoint")
RECORDED = ("recordings-parquet",)  #: its header is a person's file, without a checksum; its data have one


def flip(name: str, seeds: Path, count: int, seed: int, place: Path) -> dict[str, Any]:
    """Outcomes of flips in one kind, and those that were accepted with other numbers."""
    folder = place / name
    shutil.copytree(seeds / name, folder)
    only = "*.parquet" if name in RECORDED else "*"
    counts, wrong = tried_flips(folder, lambda: READERS[name].load(folder), count, seed=seed, only=only)
    return {**counts, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    every, found = (*KINDS, *RECORDED), {}
    with tempfile.TemporaryDirectory() as own:
        seeds = options.seeds or Path(own) / "seeds"
        make_seeds(seeds, list(every))
        for name in every:
            found[name] = flip(name, seeds, -(-options.count // len(every)), options.seed, Path(own) / "in")
            print(f"{name}: {found[name]}", flush=True)
    whole: Counter[str] = sum(
        (Counter({k: v for k, v in f.items() if k != "wrong"}) for f in found.values()), Counter()
    )
    print(f"{sum(whole.values())} flips: {dict(whole)}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(f["wrong"] for f in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
