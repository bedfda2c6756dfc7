"""A Ray cluster of several nodes on this machine, whose workers and nodes can be lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.errors import CaromError
from carom.core.ray_work import QUIET

MEMORY = 80 * 2**20  #: [bytes] of shared memory of each node
BUSY = b"ray::make"  #: what Ray calls a process that makes a piece


@final
class LocalCluster:
    """Nodes of one core each; the first one holds what the cluster knows of itself, and is never lost."""

    def __init__(self, nodes: int) -> None:
        try:
            from ray.cluster_utils import Cluster
        except ImportError as error:
            raise CaromError("a cluster needs Ray: pip install 'carom[ray]'") from error
        head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self._nodes = nodes
        self.complete()

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return str(self._cluster.address)

    def complete(self) -> None:
        """Put new nodes in the place of those that are lost; Ray wants the main thread for it."""
        for _ in range(self._nodes - len(self._cluster.list_all_nodes())):
            self._cluster.add_node(num_cpus=1, object_store_memory=MEMORY)

    def lose_node(self, rng: np.random.Generator) -> bool:
        """Take a node away as if its plug were pulled."""
        others = [node for node in self._cluster.list_all_nodes() if node is not self._cluster.head_node]
        if not others:
            return False
        self._cluster.remove_node(others[int(rng.integers(len(others)))], allow_graceful=False)
        return True

    def lose_worker(self, rng: np.random.Generator) -> bool:
        """Kill a process that is making a piece, if there is one."""
        busy = [pid for raylet in self._raylets() for pid in _children(raylet) if _title(pid).startswith(BUSY)]
        if not busy:
            return False
        with suppress(ProcessLookupError):
            os.kill(busy[int(rng.integers(len(busy)))], signal.SIGKILL)
            return True
        return False

    def _raylets(self) -> list[int]:
        found = []
        for node in self._cluster.list_all_nodes():
            processes: Mapping[str, Any] = node.all_processes
            found += [info.process.pid for info in processes.get("raylet", ())]
        return found

    def close(self) -> None:
        """End all of it."""
        self._cluster.shutdown()


@contextmanager
def local_cluster(nodes: int) -> Iterator[LocalCluster]:
    """A cluster that `--on ray` finds as long as this lasts."""
    before = {name: os.environ.get(name) for name in (*QUIET, "RAY_ADDRESS")}
    os.environ.update(QUIET)
    cluster = LocalCluster(nodes)
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        yield cluster
    finally:
        cluster.close()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _children(process: int) -> list[int]:
    """Processes that another one has started."""
    try:
        return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _title(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
