"""A coverage-guided run over one reader (needs atheris: pip install 'carom[fuzz]').

`python tests/fuzz/guided.py scene --runs 2000`: libFuzzer keeps inputs that reach new lines of Carom, and mutates those
as `mutations.py` does. Faults are written to `--out` and counted; the run goes on.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    import atheris
except ImportError:
    raise SystemExit("atheris is not installed (pip install 'carom[fuzz]'): no coverage-guided run") from None

with atheris.instrument_imports(include=["carom"]):
    from attempts import GOOD, Bench, limit_memory
    from mutations import mutated, reseal_folder
    from readers import READERS
    from run import make_seeds

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", choices=list(READERS))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="carom-guided-"))
    seeds = options.seeds or place / "seeds"
    make_seeds(seeds, [options.reader])
    bench = Bench.of(options.reader, seeds, place / "in")
    targets = sorted(set(bench.targets()))
    corpus = place / "corpus"
    corpus.mkdir()
    for number, path in enumerate(targets):
        (corpus / f"good-{number}").write_bytes(bytes([number]) + bench.contents[path])
    for path in (Path(__file__).parent / "corpus").glob(f"{options.reader}--*"):
        known = [n for n, target in enumerate(targets) if target.name == path.stem.split("--")[1]]
        if known:
            (corpus / path.name).write_bytes(bytes(known[:1]) + path.read_bytes())
    tried: dict[str, int] = {}

    def one(data: bytes) -> None:
        path = targets[(data[0] if data else 0) % len(targets)]
        path.write_bytes(data[1:])
        reseal_folder(bench.folder, bench.reader.headers)
        outcome = bench.attempt()
        bench.restore()
        tried[outcome.kind] = tried.get(outcome.kind, 0) + 1
        if outcome.kind not in GOOD:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{options.reader}--{path.name}--{tried[outcome.kind]}{path.suffix}").write_bytes(data[1:])
            print(f"{options.reader}: {outcome}", flush=True)
        if sum(tried.values()) == options.runs:
            print(f"{options.reader}: {tried}", flush=True)
            shutil.rmtree(place, ignore_errors=True)
            os._exit(int(any(kind not in GOOD for kind in tried)))

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = np.random.default_rng(seed)
        path = targets[(data[0] if data else 0) % len(targets)]
        return data[:1] + mutated(path, data[1:], rng)[: most - 1]

    arguments: list[Any] = [sys.argv[0], f"-runs={options.runs}", f"-seed={options.seed}", "-max_len=400000"]
    arguments += ["-verbosity=0", "-rss_limit_mb=0", str(corpus)]
    atheris.Setup(arguments, one, custom_mutator=mutate)
    bench.attempt()
    bench.restore()
    limit_memory()
    atheris.Fuzz()


if __name__ == "__main__":
    main()
