"""The figure of growth: well-formed, and every row of its results in it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from carom.bench.growth_figure import growth_figure
from carom.bench.results import read

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "speed.json"


def test_every_row_is_a_dot_and_every_number_of_threads_has_a_name() -> None:
    results = read(RESULTS)
    rows = [row for row in results.rows if row.setting.startswith("growth, ")]
    threads = {row.setting.rpartition(", ")[2] for row in rows}
    root = ElementTree.fromstring(growth_figure(results))
    circles = root.findall(".//{*}circle")
    assert len(circles) == len(rows) + len(threads)
    assert threads <= {text.text for text in root.findall(".//{*}text")}
