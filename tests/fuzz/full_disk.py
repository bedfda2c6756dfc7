"""Distil and train on a full disk: one clear line, and the same bytes after there is space again.

`sudo python tests/fuzz/full_disk.py` mounts small file systems in memory; without the right to do so it bounds the size
of files instead.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jobs import JOBS, content, forked

SIZES = (8, 24, 64, 120)  #: [kB] of the file system, or of the largest file


def on_full_disk(name: str, kilobytes: int, expected: dict[str, str], place: Path) -> dict[str, Any]:
    """How a job ends where there is no space, and whether it ends as expected once there is."""
    out, told = place / "disk" / "out", place / "told"
    (place / "disk").mkdir()
    told.unlink(missing_ok=True)
    mounted = _mount(place / "disk", f"size={kilobytes}k")
    try:
        job = JOBS[name] if mounted else _bounded(JOBS[name], kilobytes * 1024)
        _, status = os.waitpid(forked(job, out, told), 0)
        code, words = os.waitstatus_to_exitcode(status), told.read_text() if told.is_file() else ""
        if mounted:
            _mount(place / "disk", "remount,size=100m")
        _, again = os.waitpid(forked(JOBS[name], out, told), 0)
        same = os.waitstatus_to_exitcode(again) == 0 and content(out) == expected
        clear = code == 0 or (code == 2 and "\n" not in words and "no space left" in words)
        return {"kilobytes": kilobytes, "code": code, "words": words, "resumed": same, "clear": clear, "mount": mounted}
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place / "disk")], check=False)
        shutil.rmtree(place / "disk", ignore_errors=True)


def _mount(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def _bounded(job: Callable[[Path], None], most: int) -> Callable[[Path], None]:
    def bounded(out: Path) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        try:
            job(out)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    return bounded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="[kB]")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    for name, job in JOBS.items():
        with tempfile.TemporaryDirectory() as place:
            job(Path(place) / "quiet")
            expected = content(Path(place) / "quiet")
            found[name] = [on_full_disk(name, size, expected, Path(place)) for size in options.sizes]
        for case in found[name]:
            print(f"{name}: {case}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(not (case["clear"] and case["resumed"]) for cases in found.values() for case in cases))


if __name__ == "__main__":
    raise SystemExit(main())
