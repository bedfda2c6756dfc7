"""Malformed inputs by the thousand over all readers: `python tests/fuzz/run.py --count 100000 --seed 0`.

Workers try the inputs, each in a process with bounds; this process watches over them, goes on after one that died, and
says what was found. The same seed and number make the same input again: `--case NUMBER` tries a single one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attempts import GOOD, PATIENCE, Bench, names_of
from readers import READERS

CHUNK = 2500  #: cases of a process
MEMORY = Path("/dev/shm")  #: where there is one: readers that also write wait for the disk otherwise
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}


def make_seeds(folder: Path, readers: list[str]) -> None:
    """Good files of each reader, once."""
    for name in readers:
        if not (folder / name).is_dir():
            made = folder / f".{name}"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            READERS[name].make(made)
            made.rename(folder / name)


class Totals:
    """What came of all cases so far."""

    def __init__(self, readers: list[str]) -> None:
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in readers}
        self.seconds = dict.fromkeys(readers, 0.0)
        self.megabytes = dict.fromkeys(readers, 0.0)
        self.faults: list[dict[str, Any]] = []

    def add(self, line: dict[str, Any]) -> None:
        if "until" not in line:
            self.faults.append(line)
            return
        for name, counts in line["counts"].items():
            self.counts[name].update(counts)
            self.seconds[name] = max(self.seconds[name], line["seconds"][name])
            self.megabytes[name] = max(self.megabytes[name], line["megabytes"][name])

    def crash(self, case: int, reader: str, words: str) -> None:
        self.counts[reader]["crash"] += 1
        self.faults.append({"case": case, "reader": reader, "kind": "crash", "words": words})

    def to_dict(self) -> dict[str, Any]:
        whole: Counter[str] = sum(self.counts.values(), Counter())
        return {
            "inputs": sum(n for kind, n in whole.items() if kind != "same"),
            "outcomes": dict(whole),
            "by_reader": {n: {**c, "most_seconds": round(self.seconds[n], 3),
            "most_megabytes": round(self.megabytes[n])}
                          for n, c in self.counts.items()},
            "faults": self.faults[:500],
        }  # fmt: skip


def chunk(seeds: Path, readers: list[str], cases: range, seed: int, totals: Totals) -> subprocess.Popen[bytes]:
    place = Path(tempfile.mkdtemp(prefix="carom-fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    log = place / "log.jsonl"
    log.touch()
    command = [sys.executable, str(Path(__file__).with_name("attempts.py")), str(seeds), str(place / "in")]
    command += [",".join(readers), str(cases.start), str(cases.stop), str(seed), str(log)]
    process = subprocess.Popen(
        command, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.DEVNULL, stderr=(place / "err").open("wb")
    )
    process.place, process.cases = place, cases  # type: ignore[attr-defined]
    process.seen = (-1, time.monotonic())  # type: ignore[attr-defined]
    return process


def watch(process: Any) -> bool:
    """Whether a worker goes on; one that is stuck in a case is killed."""
    if process.poll() is not None:
        return False
    now = process.place / "log.jsonl.now"
    case = int(now.read_text() or 0) if now.is_file() and now.stat().st_size else -1
    if case != process.seen[0]:
        process.seen = (case, time.monotonic())
    elif case >= 0 and time.monotonic() - process.seen[1] > PATIENCE:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return False
    return True


def collect(process: Any, turns: list[str], totals: Totals) -> range:
    """The results of a worker that has ended; the cases that it left undone."""
    until = process.cases.start
    for line in (process.place / "log.jsonl").read_text().splitlines():
        found = json.loads(line)
        totals.add(found)
        until = found.get("until", until)
    if process.returncode == 0:
        shutil.rmtree(process.place, ignore_errors=True)
        return range(0)
    now = process.place / "log.jsonl.now"
    error = (process.place / "err").read_text(errors="replace")[-600:]
    if not now.is_file():
        raise SystemExit(f"a worker did not begin: {error}")
    case = int(now.read_text())
    totals.crash(case, turns[case % len(turns)], f"exit code {process.returncode}: {error}")
    for number in range(until, case):  # told nothing of, since the last hundred: they went well
        totals.counts[turns[number % len(turns)]]["accepted"] += 1
    shutil.rmtree(process.place, ignore_errors=True)
    return range(case + 1, process.cases.stop)


def run(seeds: Path, readers: list[str], cases: range, seed: int, workers: int, kept: Path | None = None) -> Totals:
    """Try cases by number; what came of them, which is also `kept` as JSON while they go on."""
    make_seeds(seeds, readers)
    totals, turns = Totals(readers), names_of(readers)
    size = min(CHUNK, -(-len(cases) // workers))
    waiting = [cases[a : a + size] for a in range(0, len(cases), size)]
    running: list[Any] = []
    while waiting or running:
        while waiting and len(running) < workers:
            running.append(chunk(seeds, readers, waiting.pop(0), seed, totals))
        time.sleep(0.2)
        for process in [p for p in running if not watch(p)]:
            running.remove(process)
            left = collect(process, turns, totals)
            if len(left):
                waiting.insert(0, left)
            whole = totals.to_dict()
            print(f"{whole['inputs']} inputs, {whole['outcomes']}", flush=True)
            if kept is not None:
                kept.write_text(json.dumps(whole, indent=1) + "\n")
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--readers", nargs="*", default=list(READERS), choices=list(READERS))
    parser.add_argument("--seeds", type=Path, help="folder of good files; it is made if it is not there")
    parser.add_argument("--case", type=int, help="try this one here, with its traceback")
    parser.add_argument("--json", type=Path, help="write what was found here")
    parser.add_argument("--names", action="store_true", help="print the names of the readers, and stop")
    options = parser.parse_args()
    if options.names:
        print(" ".join(READERS))
        return 0
    with tempfile.TemporaryDirectory() as own:
        seeds = options.seeds or Path(own) / "seeds"
        if options.case is not None:
            return single(seeds, options.readers, options.case, options.seed, Path(own) / "in")
        cases = range(options.first, options.first + options.count)
        totals = run(seeds, options.readers, cases, options.seed, options.workers, options.json)
    found = totals.to_dict()
    for name, counts in found["by_reader"].items():
        print(f"{name:20s} {counts}")
    for (reader, kind, words), many in Counter(
        (f["reader"], f["kind"], f["words"]) for f in found["faults"]
    ).most_common(60):
        case = next(f["case"] for f in found["faults"] if f["words"] == words and f["reader"] == reader)
        print(f"{many:5d} {reader} {kind} (case {case}): {words}")
    bad = {kind: n for kind, n in found["outcomes"].items() if kind not in GOOD}
    print(f"{found['inputs']} malformed inputs; faults: {bad or 'none'}")
    return 1 if bad else 0


def single(seeds: Path, readers: list[str], case: int, seed: int, place: Path) -> int:
    turns = names_of(readers)
    name = turns[case % len(turns)]
    make_seeds(seeds, [name])
    bench = Bench.of(name, seeds, place)
    bench.spoil(seed, case)
    for path, content in bench.contents.items():
        if path.read_bytes() != content:
            print(f"{path}: {path.read_bytes()[:3000]!r}")
    print(bench.attempt())
    print(bench.reader.load(bench.folder)[:300])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
