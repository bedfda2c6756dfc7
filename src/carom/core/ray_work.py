"""Pieces of work on a Ray cluster: one that is there, by its address, or one of this machine's cores for this command.

A piece is a task of one core. When the worker or the machine that makes it dies, the piece is made again elsewhere;
nothing else is lost. Pieces come back to the command, which writes them: the cluster needs no shared disk.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, TypeVar, final

from carom.core.errors import CaromError
from carom.core.ray_address import SCHEME, THIS, check_place, refuse_silence, unreached
from carom.core.ray_piece import Made, job_of, last_line, make

K = TypeVar("K")
P = TypeVar("P")

TRIES = 20  #: workers that a piece may outlive before it is taken for the reason
AHEAD = 2  #: pieces per core that wait for it, so that it need not wait for them
WAIT = 0.5  #: [s] between two looks at how many cores there are
PATIENCE = 60.0  #: [s] without any core after which a cluster counts as gone
STORE = 200 * 2**20  #: [bytes] of shared memory for pieces on their way, on a cluster of one's own
#: Ray as quiet as it can be; and it reports to nobody
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_task_events_report_interval_ms": "0",
}


@dataclass
class Cost:
    """What pieces took."""

    pieces: int = 0  #: that were made
    again: int = 0  #: times that one was made again, because its worker or machine was lost
    seconds: float = 0.0  #: wall time in which pieces were made
    working: float = 0.0  #: [s] inside of the pieces, added up
    bytes: int = 0  #: that came back
    machines: set[str] = field(default_factory=set)  #: that made them
    workers: set[str] = field(default_factory=set)

    def words(self) -> str:
        """All of it in a line."""
        if not self.pieces:
            return "ray: nothing was left to make"
        lost = f", {self.again} made again after a worker was lost" if self.again else ""
        return (
            f"ray: {_count(self.pieces, 'piece')} in {self.seconds:.1f} s ({self.working:.1f} s of work by "
            f"{_count(len(self.workers), 'worker')} on {_count(len(self.machines), 'node')}{lost}), "
            f"{self.bytes / 1e6:.3g} MB came back"
        )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@final
class RayWorkers:
    """A cluster. It is looked for, or started, when the first piece is asked for."""

    here = False

    def __init__(self, where: str) -> None:
        check_place(where)
        self.where, self.cost = where, Cost()
        self._own: Path | None = None  # folder of a cluster of our own
        self._begun = False

    def each(self, function: Callable[[K], P], keys: Sequence[K]) -> Iterator[tuple[K, P]]:
        """See `carom.core.work.Workers`; raises what a piece raises."""
        if not keys:
            return
        self._begin()
        start = perf_counter()
        try:
            for number, piece in _Run(function, keys, self.cost).pieces():
                yield keys[number], piece
        finally:
            self.cost.seconds += perf_counter() - start

    def costs(self) -> Sequence[str]:
        """See `Workers`."""
        return (self.cost.words(),)

    def cores(self) -> float:
        """Cores of the cluster now."""
        self._begin()
        return _cores()

    def _begin(self) -> None:
        if self._begun:
            return
        address = self.where.removeprefix(SCHEME) if self.where.startswith(SCHEME) else os.environ.get("RAY_ADDRESS")
        os.environ.update({name: os.environ.get(name, value) for name, value in QUIET.items()})
        ray = _ray()
        refuse_silence(self.where, address)
        quiet = {"logging_level": logging.CRITICAL, "log_to_driver": False, "configure_logging": True}
        warnings.filterwarnings("ignore", module="ray")
        try:
            if address is None:
                self._own = Path(tempfile.mkdtemp(prefix="carom-"))  # short: sockets' names have 107 letters at most
                ray.init("local", include_dashboard=False, object_store_memory=STORE, _temp_dir=str(self._own), **quiet)
            elif address == THIS or not self.where.startswith(SCHEME):
                ray.init(address, **quiet)
            else:
                ray.init(self.where, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
            self.close()
            raise CaromError(unreached(self.where, address, error)) from error
        self._begun = True

    def close(self) -> None:
        """Let go of the cluster; one of our own ends."""
        if self._begun or self._own is not None:
            with suppress(Exception):
                _ray().shutdown()
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
        self._begun, self._own = False, None


@contextmanager
def ray_workers(where: str) -> Iterator[RayWorkers]:
    """The workers of a cluster; they are let go in the end, whatever happens."""
    workers = RayWorkers(where)
    try:
        yield workers
    finally:
        workers.close()


def _ray() -> Any:
    import ray

    return ray


def _cores() -> float:
    return float(_ray().cluster_resources().get("CPU", 0.0))


class _Run:
    """One list of pieces on its way through the cluster."""

    def __init__(self, function: Callable[[K], P], keys: Sequence[K], cost: Cost) -> None:
        ray = _ray()
        self.keys, self.cost = keys, cost
        self.left = list(range(len(keys)))[::-1]
        self.running: dict[Any, int] = {}
        self.lost = [0] * len(keys)
        self.looked = -1.0
        self.idle_since = monotonic()
        self.room = 0
        # retries are ours: Ray's own are not seen, and would have to be found in its logs
        self.task = ray.remote(num_cpus=1, max_retries=0)(make)
        # in a list, or each task would unpack it anew
        self.job = [ray.put(job_of(function))]

    def pieces(self) -> Iterator[tuple[int, Any]]:
        """Numbers of keys, and what was made for them, as they come."""
        ray = _ray()
        try:
            while self.left or self.running:
                self._send()
                done, _ = ray.wait(list(self.running), num_returns=1, timeout=WAIT) if self.running else ([], [])
                for reference in done:
                    number = self.running.pop(reference)
                    if (made := self._received(reference, number)) is not None:
                        yield number, made.piece
        finally:
            for reference in self.running:
                with suppress(Exception):
                    ray.cancel(reference)

    def _send(self) -> None:
        """Hand out as many pieces as there is room for."""
        if monotonic() - self.looked > WAIT:
            cores = _cores()
            self.looked = monotonic()
            self.room = int(AHEAD * cores)
            if cores:
                self.idle_since = self.looked
            elif self.looked - self.idle_since > PATIENCE:
                raise CaromError(f"the Ray cluster has had no cores for {PATIENCE:.0f} s; what was finished is kept")
        while self.left and len(self.running) < self.room:
            number = self.left.pop()
            self.running[self.task.remote(self.job, self.keys[number])] = number

    def _received(self, reference: Any, number: int) -> Made | None:
        """What came back; None if it was lost on the way and is to be made again."""
        from ray.exceptions import RayError, RayTaskError

        try:
            made: Made = _ray().get(reference)
        except RayTaskError as error:  # before the piece could begin, for instance without Carom over there
            raise CaromError(f"a worker of the cluster cannot work: {last_line(error)}") from error
        except RayError as error:
            self.lost[number] += 1
            self.cost.again += 1
            if self.lost[number] >= TRIES:
                raise CaromError(
                    f"piece {number} has lost {TRIES} workers ({type(error).__name__}): perhaps it needs more memory "
                    "than they have; what was finished is kept"
                ) from error
            self.left.append(number)
            return None
        if made.error is not None:
            raise made.error
        self.cost.pieces += 1
        self.cost.working += made.seconds
        self.cost.bytes += made.bytes
        self.cost.machines.add(made.machine)
        self.cost.workers.add(made.worker)
        return made
