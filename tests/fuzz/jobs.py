"""Long work in small: distil, scale and train so that each takes seconds, and what must be the same after any stop."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

from carom.core.errors import CaromError
from carom.core.locks import LOCK, locked

TIMED = ("timing", "facts", "header_sha256")  #: keys of headers with seconds in them, and the checksum over those
UNLIKE = ("times.jsonl", "report.html")  #: of a loop: seconds, and a page that names its own folder


def distil(out: Path) -> None:
    from carom.learn.impact.distill import DistillOptions, distill
    from carom.scenes.strike import builtin

    with mock.patch("carom.learn.impact.dataset.SHARD", 250):
        training = DistillOptions(steps=20)
        distill(builtin("square"), out, samples=2000, teachers=("compliant",), training=training, threads=1)


def scale(out: Path) -> None:
    from carom.scale import calibration, toss
    from carom.scale import scale as scaled

    with mock.patch("carom.scale.shards.SHARD", 10), locked(out):  # as the command does
        scaled(toss(duration=0.1), calibration(None), out, count=60, threads=1)


def train(out: Path) -> None:
    from toy_env import ToyVecEnv

    from carom.train import Training, preset_of
    from carom.train import train as trained

    numbers = {"envs": 4, "layers": (16, 16), "warm_up": 40, "batch": 40, "updates": 2, "rollout": 10, "buffer": 120}
    preset = replace(preset_of("fast", "sac"), **numbers)
    trained(ToyVecEnv, out, Training(algo="sac", steps=240, preset=preset, seed=3))


def loop_on_pushes(out: Path) -> None:
    from small_loops import pushes

    from carom.loop import loop

    loop(pushes(rounds=2), out)


def loop_on_strikes(out: Path) -> None:
    from small_loops import quick_strikes, strikes

    from carom.loop import loop

    with quick_strikes():
        loop(strikes(rounds=2), out)


JOBS: Mapping[str, Callable[[Path], None]] = {
    "distil": distil,
    "scale": scale,
    "train": train,
    "loop-pushes": loop_on_pushes,
    "loop-strikes": loop_on_strikes,
}


def content(out: Path) -> dict[str, str]:
    """SHA-256 of all files of a result, times in headers left out."""
    found = {}
    left_out = (LOCK, *UNLIKE)
    for path in sorted(p for p in out.rglob("*") if p.is_file() and "tensorboard" not in p.parts):
        if path.name in left_out:
            continue
        data = path.read_bytes()
        if path.suffix == ".json":
            data = json.dumps(_without_times(json.loads(data)), sort_keys=True).encode()
        found[path.relative_to(out).as_posix()] = sha256(data).hexdigest()
    return found


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k not in TIMED}
    return value


def forked(job: Callable[[Path], None], out: Path, told: Path) -> int:
    """Start a job in a copy of this process, which has all imported already; its id. Its error goes to `told`.

    It ends with 0, with 2 after a `CaromError`, with 1 after any other.
    """
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        job(out)
        code = 0
    except (CaromError, OSError) as error:
        told.write_text(str(error))
        code = 2 if isinstance(error, CaromError) else 1
    except BaseException:
        told.write_text(traceback.format_exc())
    finally:
        os._exit(code)
