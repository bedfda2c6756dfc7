"""SIGKILL at random moments of distil, scale and train; resumed each time, they end with the bytes of a quiet run.

`python tests/fuzz/kills.py --kills 30 --seed 0`
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from jobs import JOBS, content, forked


def kill_again_and_again(name: str, kills: int, seed: int, place: Path) -> dict[str, Any]:
    """Figures of one kind of work: kills, results that were finished, those that differ from the quiet one."""
    job, rng = JOBS[name], np.random.default_rng([seed, *name.encode()])
    quiet, told = place / name / "quiet", place / f"{name}.error"
    (place / name).mkdir()
    job(place / name / "warm")  # what a first run imports and compiles
    start = time.monotonic()
    job(quiet)
    length, expected = time.monotonic() - start, content(quiet)
    done, differ, errors, finished = 0, [], [], 0
    out = place / name / "0"
    while True:
        pid = forked(job, out, told)
        until = time.monotonic() + float(rng.uniform(0, 0.7 * length))
        ended = 0
        while not ended and (done >= kills or time.monotonic() < until):
            ended, status = os.waitpid(pid, os.WNOHANG)
            time.sleep(0.002)
        if not ended:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            done += 1
            continue
        if status:
            errors.append(told.read_text() if told.is_file() else f"status {status}")
            shutil.rmtree(out, ignore_errors=True)
            if len(errors) > 3:
                break
            continue
        finished += 1
        got = content(out)
        differ += [f"{out.name}/{k}" for k in {**expected, **got} if expected.get(k) != got.get(k)]
        shutil.rmtree(out)
        if done >= kills:
            break
        out = place / name / str(finished)
    return {"kills": done, "finished": finished, "differ": differ, "errors": errors, "seconds": round(length, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30, help="of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", nargs="*", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for name in options.work:
        with tempfile.TemporaryDirectory() as place:
            found[name] = kill_again_and_again(name, options.kills, options.seed, Path(place))
        print(f"{name}: {found[name]}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(f["differ"] or f["errors"] or f["kills"] < options.kills for f in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
