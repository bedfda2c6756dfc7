"""`carom bench ray`: what work on a cluster costs, whether losses change a result, and what large data sets would take.

The clusters have their nodes on this machine. So that more workers than cores can be tried, pieces of the efficiency
table wait instead of computing: it is the handing out that is measured, not the cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter, process_time, sleep

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.local_cluster import LocalCluster, local_cluster
from carom.bench.results import Row
from carom.core.errors import CaromError
from carom.core.ray_work import RayWorkers
from carom.core.work import Rows, in_order, on, workers
from carom.learn.impact.dataset import SHARD as IMPACTS
from carom.learn.impact.dataset import generate
from carom.scale import calibration, cubes, scale, toss
from carom.scale.shards import SHARD as TRAJECTORIES
from carom.scenes.strike import builtin

NODES = (1, 2, 4, 8)  #: of one core each
EMPTY = 500  #: pieces that do nothing
WAITS = (0.02, 0.2, 1.0)  #: [s] that a piece takes
SECONDS = 3.0  #: that the pieces of a waiting test take, if no worker is ever idle
TIMES = 3  #: that each is measured; the best counts, which other work has disturbed least
TRIES = 40  #: of handing out pieces until every node's worker has started
KILLED_NODES, KILLED_WORKERS = 1, 4  #: in each draw
EVERY = 1.0  #: [s] between two losses, on average
KILL_SCENE = "square"
MACHINES, CORES = (1, 10, 100), 16  #: of the reckoning on paper
COLLISIONS, MANY = 10**9, 10**6  #: what is reckoned: collisions, trajectories
DISK = 100e6  #: [bytes/s] that the command's machine writes, taken for the reckoning
TEACHERS = ("mujoco", "compliant")
PIECE = "a piece, on one core"


def _work(o: Options) -> Work:
    if not workers().here:
        raise CaromError("bench ray makes clusters of its own; run it without --on")
    costs = [(f"nodes/{nodes}", partial(_costs, nodes)) for nodes in NODES]
    losses = [(f"losses/{draw}", partial(_losses, o.seed + draw)) for draw in range(o.draws)]
    return [*costs, *losses, ("pieces", partial(_pieces, o.seed))]


def _notes(o: Options) -> Sequence[str]:
    return (
        "Ray clusters of nodes of one core each, all on this machine, which has other work to do. per-piece-ms: wall "
        f"time over {EMPTY} pieces that do nothing, all workers started. efficiency: share of the workers' time "
        f"that is spent inside of pieces which wait for as long as stated. Both are the best of {TIMES}.",
        f"losses: {o.draws} clusters of four nodes, on each of which {KILLED_WORKERS} workers were killed "
        f"(SIGKILL) in the middle of a piece and {KILLED_NODES} node was unplugged, at random moments: together "
        f"{o.draws * KILLED_WORKERS} workers and {o.draws * KILLED_NODES} nodes. The same data sets (distil by both "
        "teachers, scale) were made again until all losses had happened. same-bytes: share of the data sets that equal "
        "those made without a cluster, file by file (SHA-256).",
        f"on paper: processor time and bytes of a piece measured here on one core ({IMPACTS} collisions, or "
        f"{TRAJECTORIES} trajectories of a tossed cube, 1 s at 100 samples a second), the measured time per piece, "
        f"machines of {CORES} such cores that are all busy, and a command that writes {DISK / 1e6:.0f} MB/s. Hours are "
        "those of the slowest of the three: the cores, the handing out, the writing.",
    )


def _rows(values: Rows) -> tuple[Row, ...]:
    """Means of what was measured, and the reckoning."""
    from carom.bench.results import summarise

    measured = summarise(values)
    known = {(row.setting, row.method, row.metric): row.mean for row in measured}
    per_piece = max(known["pieces that do nothing", f"{nodes} nodes", "per-piece-ms"] for nodes in NODES) / 1e3
    found = []
    for kind, many, of_a_piece in (
        *((f"collisions ({teacher})", COLLISIONS, IMPACTS) for teacher in TEACHERS),
        ("trajectories", MANY, TRAJECTORIES),
    ):
        pieces = many / of_a_piece
        seconds, size = (known[PIECE, kind, metric] for metric in ("core-seconds", "megabytes"))
        title = f"10^{round(np.log10(many))} {kind}"
        found.append(Row(title, "on paper", "terabytes", pieces * size / 1e6, float("nan"), 1))
        found.append(Row(title, "on paper", "core-hours", pieces * seconds / 3600, float("nan"), 1))
        for machines in MACHINES:
            slowest = max(seconds / (machines * CORES), per_piece, size * 1e6 / DISK)
            name = f"hours-on-{machines}-machine{'' if machines == 1 else 's'}"
            found.append(Row(title, "on paper", name, pieces * slowest / 3600, float("nan"), 1))
    return (*measured, *found)


BENCHMARK = Benchmark(
    "ray",
    draws=5,
    settings=lambda o: {"seed": o.seed, "nodes": NODES, "waits": WAITS},
    work=_work,
    notes=_notes,
    rows=_rows,
)


def _nothing(key: int) -> int:
    return key


def _waits(seconds: float, key: int) -> int:
    sleep(seconds)
    return key


def _costs(nodes: int) -> Rows:
    """What it costs to hand out pieces to so many nodes."""
    rows: Rows = []

    def add(setting: str, metric: str, value: float) -> None:
        rows.append({"setting": setting, "method": f"{nodes} nodes", "metric": metric, "value": value})

    with local_cluster(nodes), on("ray") as made_by:
        assert isinstance(made_by, RayWorkers)
        for _ in range(TRIES):  # a worker takes seconds to start
            _spent(made_by, partial(_waits, 0.2), 2 * nodes)
            if len(made_by.cost.workers) >= nodes:
                break
        took = min(_spent(made_by, _nothing, EMPTY) for _ in range(TIMES))
        add("pieces that do nothing", "per-piece-ms", 1e3 * took / EMPTY)
        for seconds in WAITS:
            count = round(SECONDS / seconds) * nodes
            took = min(_spent(made_by, partial(_waits, seconds), count) for _ in range(TIMES))
            add(f"pieces of {seconds:g} s", "efficiency", count * seconds / (nodes * took))
    return rows


def _spent(made_by: RayWorkers, function: Callable[[int], int], count: int) -> float:
    """Wall time [s] of some pieces."""
    before = made_by.cost.seconds
    assert list(in_order(function, range(count))) == list(range(count))
    return made_by.cost.seconds - before


def _losses(seed: int) -> Rows:
    """Data sets made while workers and nodes are lost."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory(prefix="carom-") as name:
        place = Path(name)
        expected, alike, sets = _data_sets(place / "here", seed), 0, 0
        with local_cluster(4) as cluster, on("ray") as made_by:
            assert isinstance(made_by, RayWorkers)
            killer = _Killer(cluster, rng)
            with killer:
                while (killer.left and killer.hand.is_alive()) or not sets:
                    alike += _data_sets(place / f"there-{sets}", seed) == expected
                    sets += 1
                    cluster.complete()
            again = made_by.cost.again
    setting = "losses"
    values = {
        "workers-killed": float(KILLED_WORKERS - killer.left.count(False)),
        "nodes-killed": float(KILLED_NODES - killer.left.count(True)),
        "data-sets": float(sets),
        "pieces-made-again": float(again),
        "same-bytes": alike / sets,
    }
    return [{"setting": setting, "method": "ray", "metric": metric, "value": v} for metric, v in values.items()]


class _Killer:
    """Loses workers and nodes at random moments, in a random order, until as many are lost as should be."""

    def __init__(self, cluster: LocalCluster, rng: np.random.Generator) -> None:
        self.cluster, self.rng = cluster, rng
        self.left = [True] * KILLED_NODES + [False] * KILLED_WORKERS  # whether a whole node
        rng.shuffle(self.left)
        self.ended = Event()
        self.hand = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while self.left and not self.ended.wait(self.rng.uniform(0, 2 * EVERY)):
            lose = self.cluster.lose_node if self.left[-1] else self.cluster.lose_worker
            if lose(self.rng):
                self.left.pop()

    def __enter__(self) -> None:
        self.hand.start()

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.hand.join()


def _data_sets(place: Path, seed: int) -> dict[str, str]:
    """Impacts by both teachers and trajectories of cubes; checksums of their files."""
    scene = builtin(KILL_SCENE)
    generate(scene, "mujoco", 2048, place / "mujoco", seed=seed, shard=256, threads=1)
    generate(scene, "compliant", 4096, place / "compliant", seed=seed, shard=256, threads=1)
    scale(cubes(bodies=(1, 4), duration=0.5), calibration(None), place / "cubes", count=500, seed=seed, threads=1)
    files = [path for path in sorted(place.rglob("*")) if path.is_file()]
    return {str(path.relative_to(place)): sha256(path.read_bytes()).hexdigest() for path in files}


def _pieces(seed: int) -> Rows:
    """Processor time and bytes of one piece of each kind, on one core."""
    scene = builtin(KILL_SCENE)
    rows: Rows = []
    with TemporaryDirectory(prefix="carom-") as name:
        place = Path(name)
        kinds: dict[str, Callable[[], object]] = {
            f"collisions ({teacher})": partial(
                generate, scene, teacher, 3 * IMPACTS, place / teacher, seed=seed, threads=1
            )
            for teacher in TEACHERS
        }
        kinds["trajectories"] = partial(
            scale, toss(), calibration(None), place / "toss", count=3 * TRAJECTORIES, seed=seed, threads=1
        )
        for (kind, make), folder in zip(kinds.items(), (*TEACHERS, "toss"), strict=True):
            start, wall = process_time(), perf_counter()
            make()
            spent = min(process_time() - start, perf_counter() - wall)  # not of other threads
            size = sum(path.stat().st_size for path in (place / folder).glob("*.parquet"))
            for metric, value in (("core-seconds", spent / 3), ("megabytes", size / 3 / 1e6)):
                rows.append({"setting": PIECE, "method": kind, "metric": metric, "value": value})
    return rows
