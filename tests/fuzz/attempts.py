"""One malformed input after the other, each in bounds of time and memory: what its reader made of it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from mutations import mutated, reseal_folder
from readers import READERS, Reader

from carom.core.errors import CaromError

LONGEST = 5.0  #: [s] of processor time that a reader may take; of time by the clock it may take `PATIENCE`
PATIENCE = 60.0  #: [s]
MOST = 1 << 30  #: [bytes] that a reader may take beside what the process has before
LONGEST_MESSAGE = 1500  #: characters
GOOD = ("refused", "accepted", "same")  #: outcomes that are no fault


@dataclass(frozen=True)
class Outcome:
    """What came of one input."""

    kind: str  #: refused, accepted, same; or traceback, unnamed, lines, slow, memory, crash
    words: str = ""  #: the message, or where the traceback came from
    seconds: float = 0.0  #: of processor time
    megabytes: float = 0.0  #: that memory grew by at most


class SlowError(BaseException):
    """A reader takes too long. Not an `Exception`: no reader may take it for one of its own."""


@dataclass
class Bench:
    """A reader's good files in a folder of one's own, one of them spoilt at a time."""

    name: str
    folder: Path
    contents: dict[Path, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, seeds: Path, place: Path) -> Bench:
        folder = place / name
        shutil.copytree(seeds / name, folder)
        return cls(name, folder, {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()})

    @property
    def reader(self) -> Reader:
        return READERS[self.name]

    def targets(self) -> list[Path]:
        """Files that are spoilt, in turn."""
        return [p for pattern in self.reader.files for p in sorted(self.folder.glob(pattern)) if p in self.contents]

    def spoil(self, seed: int, number: int) -> bool:
        """Put a malformed file in its place; whether it differs from the good one."""
        rng = np.random.default_rng([seed, number, *self.name.encode()])
        targets = self.targets()
        path = targets[int(rng.integers(len(targets)))]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            content = mutated(path, self.contents[path], rng)
        path.write_bytes(content)
        if rng.random() < 0.85:
            reseal_folder(self.folder, self.reader.headers)
        return content != self.contents[path]

    def restore(self) -> None:
        """All files as they were; what a reader has written is gone."""
        for path in self.folder.rglob("*"):
            if path.is_file() and path not in self.contents:
                path.unlink()
        for path, content in self.contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)

    def attempt(self) -> Outcome:
        """What the reader makes of the folder as it is now.

        A refusal that a lack of memory led to is tried again with more room: many libraries ask at once for what a file
        claims to hold, and never touch it.
        """
        outcome = self._attempt()
        if outcome.kind != "claimed":
            return outcome
        with _more_room():
            again = self._attempt()
        return replace(again, kind="refused") if again.kind == "claimed" else again

    def _attempt(self) -> Outcome:
        before, start = _reset_peak(), time.process_time()
        words = ""
        try:
            with _time_limit(), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                self.reader.load(self.folder)
            kind = "accepted"
        except CaromError as error:
            kind, words = _refusal(error, self.folder)
        except SlowError:
            kind, words = "slow", traceback.format_exc(limit=-6)
        except MemoryError:
            kind, words = "memory", _place()
        except Exception:
            kind, words = "traceback", _place()
        grown = max(0.0, _peak() - before)
        if grown > MOST / 1e6:
            kind = "memory"
        return Outcome(kind, words, time.process_time() - start, grown)


def _refusal(error: CaromError, folder: Path) -> tuple[str, str]:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or "allocate memory" in str(cause):
            return "claimed", _place()
        cause = cause.__cause__ or cause.__context__
    words = str(error)
    named = str(folder) in words or any(p.name in words for p in folder.rglob("*") if p.is_file())
    if not named:
        return "unnamed", f"{words[:300]} <- {_place()}"
    if "\n" in words or "\r" in words or len(words) > LONGEST_MESSAGE:
        return "lines", f"{words[:300]!r} ({len(words)} characters) <- {_place()}"
    return "refused", words


def _place() -> str:
    """The error, and the last places in the package that it came through."""
    kind, error, trace = sys.exc_info()
    frames = [f for f in traceback.extract_tb(trace) if f"{os.sep}carom{os.sep}" in f.filename]
    ways = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames[-3:]))
    return f"{kind.__name__ if kind else ''}: {str(error)[:200]!r} at {ways}"


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise SlowError

    former = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)


def _reset_peak() -> float:
    """Memory now [MB]; its peak is counted anew from here."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def _peak() -> float:
    return _status("VmHWM")


def _status(name: str) -> float:
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 / 1e6 for line in file if line.startswith(name))
    except (OSError, StopIteration):
        return 0.0


def limit_memory() -> None:
    """From here on the process may take `MOST` more than it has."""
    room = int(_status("VmSize") * 1e6) + MOST
    resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))


@contextlib.contextmanager
def _more_room() -> Iterator[None]:
    room, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (room if room < 0 else room + 8 * MOST, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (room, most))


def names_of(readers: list[str]) -> list[str]:
    """Names of readers, each as often as its share of the cases."""
    return [name for name in readers for _ in range(READERS[name].share)]


def work(seeds: Path, place: Path, readers: list[str], cases: range, seed: int, log: Path) -> None:
    """Run cases by number; a line of JSON in `log` for each fault and each hundred cases, and the number of the case
    that is being tried in `log`.now, for who watches over this process."""
    benches = {name: Bench.of(name, seeds, place) for name in readers}
    for name, bench in benches.items():
        first = bench.attempt()
        if first.kind != "accepted":
            raise SystemExit(f"{name}: its good files are not accepted: {first}")
        bench.restore()
    limit_memory()
    turns = names_of(readers)
    counts: dict[str, Counter[str]] = {name: Counter() for name in readers}
    slowest, largest = dict.fromkeys(readers, 0.0), dict.fromkeys(readers, 0.0)
    now = os.open(f"{log}.now", os.O_RDWR | os.O_CREAT)
    with log.open("a") as file:
        for number in cases:
            bench = benches[turns[number % len(turns)]]
            os.pwrite(now, f"{number:012d}".encode(), 0)
            differs = bench.spoil(seed, number)
            outcome = bench.attempt() if differs else Outcome("same")
            bench.restore()
            counts[bench.name][outcome.kind] += 1
            slowest[bench.name] = max(slowest[bench.name], outcome.seconds)
            largest[bench.name] = max(largest[bench.name], outcome.megabytes)
            if outcome.kind not in GOOD:
                file.write(json.dumps({"case": number, "reader": bench.name, **asdict(outcome)}) + "\n")
            if number % 100 == 99 or number == cases[-1] or outcome.kind not in GOOD:
                told: dict[str, Any] = {"until": number + 1, "counts": counts, "seconds": slowest, "megabytes": largest}
                file.write(json.dumps(told) + "\n")
                file.flush()
                counts = {name: Counter() for name in readers}
    os.close(now)


if __name__ == "__main__":
    where, own, names, first, last, number, lines = sys.argv[1:]
    work(Path(where), Path(own), names.split(","), range(int(first), int(last)), int(number), Path(lines))
