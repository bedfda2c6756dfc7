"""One step of a round on disk: a folder that is complete when it has its header, and then is never made again.

The header holds the step's facts and the checksum of every file in the folder. What a step writes depends on the
loop's settings and on the steps before it alone, so a loop that was killed ends with the same bytes as one that was
not. Wall times are the one thing that differs: they are kept apart, in `times.jsonl` beside the rounds.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from carom.core.artefacts import Header, plain, read_header, versions, write_header
from carom.core.errors import CaromError, ModelError
from carom.core.locks import LOCK

STEPS = ("tune", "train", "deploy")
STEP, FORMAT = "step.json", "carom-loop-step/1"
TIMES = "times.jsonl"
UNCHECKED = (LOCK, "report.html")  #: a page is for people, and names its own folder
PACKAGES = ("mujoco", "numpy", "scipy", "torch", "stable-baselines3", "safetensors")
Facts = dict[str, Any]


class StepHeader(Header):
    """The header of a finished step."""

    round: int
    step: str
    seed: int
    facts: dict[str, Any]


@dataclass(frozen=True)
class Round:
    """One round of a loop: its number, its place, and the rounds before it."""

    number: int  #: from 1
    folder: Path
    seed: int
    earlier: tuple[Round, ...] = ()

    def place(self, step: str) -> Path:
        """The folder of a step."""
        return self.folder / step

    def facts(self, step: str) -> Facts:
        """What a finished step found; raises if it is not there or was changed."""
        return read_step(self.place(step))["facts"]  # type: ignore[no-any-return]

    def has(self, step: str) -> bool:
        """Whether a step is finished."""
        return (self.place(step) / STEP).is_file()

    @property
    def before(self) -> Round | None:
        """The round before this one."""
        return self.earlier[-1] if self.earlier else None


def read_step(place: Path) -> dict[str, Any]:
    """The header of a finished step, checked with every file that it lists."""
    path = place / STEP
    missing = f"{place} holds no finished step ({STEP} is missing); run: carom loop"
    header = read_header(path, StepHeader, FORMAT, missing=missing, again="carom loop, in a new folder,")
    found = _files(place)
    if found != header["files"]:
        changed = sorted(k for k in {*found, *header["files"]} if found.get(k) != header["files"].get(k))
        raise ModelError(
            f"{place}: {changed[0]} is not what this step wrote (SHA-256); put it back, or delete {place} and all "
            "later steps, and run the loop again"
        )
    return header


def made(now: Round, step: str, make: Callable[[Path], Facts], *, keep: bool = False) -> Facts:
    """The facts of a step: those on disk if it is complete; else it is made now.

    What a kill left of it is removed, unless its maker goes on from there (`keep`).
    """
    place = now.place(step)
    if (place / STEP).is_file():
        return read_step(place)["facts"]  # type: ignore[no-any-return]
    if not keep and place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True, exist_ok=True)
    start, used = perf_counter(), process_time()
    facts = make(place)
    noted(now, step, perf_counter() - start, process_time() - used)
    header = {
        "format": FORMAT,
        "round": now.number,
        "step": step,
        "seed": now.seed,
        "facts": plain(facts),
        "made_with": versions(PACKAGES),
        "files": _files(place),
    }
    write_header(place / STEP, header)
    return read_step(place)["facts"]  # type: ignore[no-any-return]


def noted(now: Round, step: str, seconds: float, core_seconds: float) -> None:
    """Keep the wall and processor time of a finished step; one that was interrupted counts from its last start."""
    times = {"seconds": round(seconds, 2), "core_seconds": round(core_seconds, 2)}
    line = json.dumps({"round": now.number, "step": step, **times})
    with (now.folder.parent / TIMES).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def seconds_of(folder: Path) -> Mapping[tuple[int, str], float]:
    """Wall time of the steps [s] by round and step; empty if it is not known."""
    path = folder / TIMES
    if not path.is_file():
        return {}
    found: dict[tuple[int, str], float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
            found[int(row["round"]), str(row["step"])] = float(row["seconds"])
        except (ValueError, LookupError, TypeError):
            continue  # torn by a kill
    return found


def step_times(folder: Path, step: str, kind: str = "seconds") -> list[float]:
    """Times of all finished steps of this kind [s]: `seconds` on the wall, or `core_seconds` of the processor."""
    rows = [json.loads(line) for line in (folder / TIMES).read_text(encoding="utf-8").splitlines() if line[-1:] == "}"]
    return [float(row[kind]) for row in rows if row["step"] == step]


def _files(place: Path) -> dict[str, str]:
    """SHA-256 of everything that a step wrote, by name; pages are left out."""
    found = {}
    for path in sorted(place.rglob("*")):
        if path.is_symlink():
            raise CaromError(f"{path}: expected a file, got a link; put the file itself there")
        name = path.relative_to(place).as_posix()
        if path.is_file() and name != STEP and path.name not in UNCHECKED:
            found[name] = sha256(path.read_bytes()).hexdigest()
    return found
