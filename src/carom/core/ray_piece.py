"""What a worker of a Ray cluster does: it makes one piece, with the libraries and threads of where the command runs."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

from carom.core.artefacts import versions
from carom.core.errors import CaromError
from carom.core.work import share_cores

#: what has to be the same on every machine, or results would not be
SAME = ("mujoco", "numpy", "scipy", "torch", "pyarrow")


@dataclass(frozen=True)
class Made:
    """A piece that came back."""

    piece: Any
    error: BaseException | None  #: in its place
    seconds: float
    bytes: int
    machine: str
    worker: str


def job_of(function: Callable[[Any], Any]) -> tuple[Any, ...]:
    """What a worker has to have for a function of keys."""
    return function, versions(SAME), _math_threads()


def _math_threads() -> int | None:
    """Threads of torch and of linear algebra here: with as many, a piece has the same last digits over there."""
    return int(sys.modules["torch"].get_num_threads()) if "torch" in sys.modules else None


def make(job: list[Any], key: Any) -> Made:
    """Make one piece: what runs on a worker."""
    import ray

    context = ray.get_runtime_context()
    machine, worker = context.get_node_id(), context.get_worker_id()
    start, piece, error = perf_counter(), None, None
    try:
        function = _unpacked(job[0])
        start = perf_counter()  # without what unpacking takes, which is once for each worker
        piece = function(key)
    except Exception as reason:  # it is raised where the command runs
        error = _portable(reason)
    return Made(piece, error, perf_counter() - start, _size(piece), machine, worker)


def _unpacked(reference: Any) -> Callable[[Any], Any]:
    """The function of a job, or a word on why this worker cannot have it."""
    try:
        return _function(reference)
    except CaromError:
        raise
    except Exception as error:
        raise CaromError(f"a worker of the cluster cannot work: {last_line(error)}") from error


@lru_cache(maxsize=2)
def _function(reference: Any) -> Callable[[Any], Any]:
    """The function of a job, unpacked once by each worker."""
    import ray

    function, needed, math_threads = ray.get(reference)
    there = versions(SAME)
    other = [f"{name} {there.get(name, 'missing')} ({v} here)" for name, v in needed.items() if there.get(name) != v]
    if other:
        raise CaromError(f"machine {os.uname().nodename} of the cluster has {', '.join(other)}: results would differ")
    share_cores()
    if math_threads is not None:
        _same_math(math_threads)
    return function  # type: ignore[no-any-return]


def _same_math(count: int) -> None:
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(count)
    threadpool_limits(count, user_api="blas")


def _portable(error: Exception) -> Exception:
    """An error that can travel: those with parts that cannot are told in words."""
    try:
        pickle.dumps(error)
    except Exception:
        return CaromError(f"{type(error).__name__}: {error}")
    return error


def _size(piece: Any) -> int:
    """Bytes of a piece on its way; arrays are counted where they are."""
    parts: list[pickle.PickleBuffer] = []
    try:
        head = len(pickle.dumps(piece, protocol=5, buffer_callback=parts.append))
    except Exception:  # Ray's own packing takes more kinds
        return 0
    return head + sum(part.raw().nbytes for part in parts)


def last_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[-1].strip():.200} (is the same version of Carom installed there?)"
