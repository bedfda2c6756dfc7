"""The reckoning on paper of `bench ray`: the slowest of cores, handing out, writing; and no cluster within another."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from carom.bench import cluster
from carom.bench.benchmark import Options
from carom.core import work
from carom.core.errors import CaromError


def measured(seconds: float, megabytes: float, per_piece: float) -> list[dict]:
    rows = []
    for kind in (*(f"collisions ({teacher})" for teacher in cluster.TEACHERS), "trajectories"):
        for metric, value in (("core-seconds", seconds), ("megabytes", megabytes)):
            rows.append({"setting": cluster.PIECE, "method": kind, "metric": metric, "value": value})
    for nodes in cluster.NODES:
        own = {"setting": "pieces that do nothing", "method": f"{nodes} nodes", "metric": "per-piece-ms"}
        rows.append({**own, "value": 1e3 * per_piece / nodes})
    return rows


def reckoned(**values: float) -> dict[str, float]:
    rows = cluster._rows(measured(**values))
    return {row.metric: row.mean for row in rows if row.setting == "10^6 trajectories"}


def test_the_slowest_part_says_how_long_it_takes() -> None:
    pieces = cluster.MANY / cluster.TRAJECTORIES
    busy = reckoned(seconds=8.0, megabytes=1e-3, per_piece=1e-6)
    assert busy["core-hours"] == pytest.approx(pieces * 8 / 3600)
    assert busy["hours-on-1-machine"] == pytest.approx(busy["core-hours"] / cluster.CORES)
    assert busy["hours-on-100-machines"] == pytest.approx(busy["core-hours"] / cluster.CORES / 100)
    handed = reckoned(seconds=0.1, megabytes=1e-3, per_piece=0.5)
    assert handed["hours-on-1-machine"] == handed["hours-on-100-machines"] == pytest.approx(pieces * 0.5 / 3600)
    written = reckoned(seconds=0.1, megabytes=400.0, per_piece=1e-6)
    assert written["hours-on-10-machines"] == pytest.approx(pieces * 4 / 3600)  # 100 MB/s
    assert written["terabytes"] == pytest.approx(pieces * 400 / 1e6)


def test_it_is_not_run_on_a_cluster(tmp_path) -> None:
    token = work._workers.set(SimpleNamespace(here=False))
    try:
        with pytest.raises(CaromError, match="bench ray makes clusters of its own; run it without --on"):
            cluster.BENCHMARK.run(Options(out=tmp_path, draws=1))
    finally:
        work._workers.reset(token)
