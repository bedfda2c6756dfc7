"""The real-sim-real loop (Algorithm 1 of the RSR paper): tune, train, deploy, and again.

    from carom.loop import loop
    result = loop("loop.yaml", "out/loop")

A loop that was killed goes on in the step it was in. One in which a person records stops there, says what is wanted,
and goes on when it is called again.
"""

from __future__ import annotations

import shutil
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from carom.core.artefacts import refuse_other_settings, versions, write_header
from carom.core.errors import CaromError
from carom.core.locks import locked
from carom.core.progress import Progress, silent
from carom.learn.impact.training import torch_threads
from carom.loop.config import LoopConfig, read_config
from carom.loop.person import Request, Waiting
from carom.loop.result import LoopResult
from carom.loop.steps import PACKAGES, STEPS, Round, made
from carom.loop.task import HELD_OUT, LoopTask
from carom.recordings.formats.header import HEADER_NAME

SETTINGS, FORMAT = "loop.json", "carom-loop-settings/1"
#: settings that may change between a stop and its continuation: more rounds make more of the same
FREE = ("config.rounds",)
SEEDS = 10_000  #: between the seeds of two rounds


def loop(config: str | Path | LoopConfig, out: str | Path, *, progress: Progress = silent) -> LoopResult:
    """Run the rounds of a loop that are not there yet; `config` is its file, `out` the folder for all it makes."""
    chosen = config if isinstance(config, LoopConfig) else read_config(config)
    named = None if isinstance(config, LoopConfig) else Path(config)
    place = Path(out)
    with locked(place), torch_threads(1):  # one thread: the same bytes on any number of cores
        return _loop(chosen, place, named, progress)


def _loop(config: LoopConfig, out: Path, named: Path | None, progress: Progress) -> LoopResult:
    settings = {"format": FORMAT, "config": config.settings(), "made_with": versions(PACKAGES)}
    refuse_other_settings(out / SETTINGS, settings, "a loop", free=FREE)
    task = task_of(config, out)
    write_header(out / SETTINGS, settings)
    rounds: list[Round] = []
    request: Request | None = None
    try:
        _hold_out(task, config, out)
        for number in range(1, config.rounds + 1):
            now = _number(out, number, config, rounds)
            _round(task, now, progress)
            rounds.append(now)
            progress("rounds", number, config.rounds)
        last = _number(out, config.rounds + 1, config, rounds)
        made(last, "tune", partial(task.tune, last, progress=partial(_told, progress, "all rounds, tune")))
        rounds.append(last)
    except Waiting as waiting:
        request = waiting.request
    return LoopResult.of(task, rounds, out, named, request)


def _number(out: Path, number: int, config: LoopConfig, earlier: list[Round]) -> Round:
    """A round by its number. The one after the last is tuned only: what all recordings say."""
    return Round(number, out / f"round-{number:02d}", config.seed + SEEDS * number, tuple(earlier))


def _round(task: LoopTask, now: Round, progress: Progress) -> None:
    """The three steps of Algorithm 1, each made once."""
    makers = {"tune": task.tune, "train": task.train, "deploy": task.deploy}
    going_on = {"tune": False, "train": True, "deploy": task.by_person}
    for step in STEPS:
        told = partial(_told, progress, f"round {now.number}, {step}")
        maker = partial(makers[step], now, progress=told)
        made(now, step, maker, keep=going_on[step])


def _told(progress: Progress, step: str, what: str, done: int, total: int) -> None:
    progress(f"{step}: {what}", done, total)


def _hold_out(task: LoopTask, config: LoopConfig, out: Path) -> None:
    """The recordings that are only measured with, made once; a kill leaves none or all."""
    place = out / HELD_OUT
    if not config.held_out or ((place / HEADER_NAME).is_file() and not task.by_person):
        return
    if not task.by_person and place.exists():
        shutil.rmtree(place)
    task.hold_out(place, config.held_out, config.seed)


def task_of(config: LoopConfig, out: Path) -> LoopTask:
    """The adapter for a loop's kind of task."""
    if config.task == "pushes":
        if find_spec("stable_baselines3") is None:
            raise CaromError("loops on pushes need Stable-Baselines3; install it with: pip install carom[rl]")
        from carom.loop.pushes import PushLoop

        return PushLoop(config, out)
    from carom.loop.strikes import StrikeLoop

    return StrikeLoop(config, out)
