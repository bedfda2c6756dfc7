"""The page: self-contained, readable without JavaScript, safe against what stands in a file name."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from carom.core.errors import CaromError
from carom.report import Figure, Section, Table, Text, write_report
from carom.report import figures as draw

RNG = np.random.default_rng(0)
COUNT, K = 60, 0.028


def _example() -> list[Section]:
    """A page as the demo makes it, from made-up but realistic strikes on a semi-cylinder."""
    theta = RNG.uniform(np.pi / 12, 11 * np.pi / 12, COUNT)
    outward, speed = np.stack([np.cos(theta), np.sin(theta)], axis=1), RNG.uniform(0.2, 0.8, (COUNT, 1))
    before = -speed * outward
    measured = np.column_stack([1.1 * before, 8 * speed[:, 0] * RNG.normal(size=COUNT)])
    std = 0.03 * speed * np.array([1.0, 1.0, 1 / K])
    predicted = measured + std * RNG.normal(size=measured.shape)
    arc = np.linspace(0, np.pi, 41)
    outline = 0.05 * np.stack([np.cos(arc), np.sin(arc)], axis=1)
    interval = draw.ParameterInterval(
        name="striker_friction",
        value=0.31,
        low=0.25,
        high=0.37,
        unit="1",
        bound_low=0.05,
        bound_high=1.0,
        verdict="identified",
        log=True,
    )
    curve = [(s, 0.1 * np.exp(-s / 300), 0.12 * np.exp(-s / 300)) for s in range(0, 1000, 50)]
    names = [f"hit_{i:03d}.csv" for i in range(COUNT)]
    return [
        Text("In short", ("A **stand-in** reality.", "Run `carom evaluate`.")),
        Table("Methods", ("method", "accuracy@0.1"), (("ridge", 0.614), ("carom", 0.93)), "Five draws.", "carom"),
        Figure("Accuracy", draw.error_bars(["ridge", "carom"], [0.61, 0.93], [0.03, 0.02], "accuracy@0.1")),
        Figure("Predictions", draw.impact_scatter(measured, predicted, std, K, names), "Test strikes."),
        Figure("Strikes", draw.strike_map(outline, 0.05 * outward, before, measured[:, :2], predicted[:, :2])),
        Figure("Parameters", draw.parameter_intervals([interval])),
        Figure("Training", draw.training_curves({"mujoco": curve})),
    ]


class _Tags(HTMLParser):
    """Checks that tags are closed in order, and collects what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [v for k, v in attrs if v and (k == "src" or (tag == "link" and k == "href"))]
        self.ids += [v for k, v in attrs if v and k == "id"]
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "out" / "report.html"
    assert write_report(path, _example(), title="Ten strikes", subtitle="nylon") == path
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_page_is_well_formed_and_loads_nothing(page: str) -> None:
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.loaded == []
    assert len(tags.ids) == len(set(tags.ids))


def test_plotly_is_there_once_and_every_figure_is_drawn(page: str) -> None:
    assert page.count("* plotly.js v") == 1
    assert len(re.findall(r"Plotly\.newPlot\(\s*[\"']figure-\d", page)) == 5


def test_no_chart_can_be_uploaded_by_a_wrong_click(page: str) -> None:
    assert page.count('"showSendToCloud": false') == 5


def test_tables_and_text_are_plain_html(page: str) -> None:
    assert '<td class="number">0.614</td>' in page
    assert '<tr class="best"><td>carom</td>' in page
    assert "Five draws." in page
    assert "A <strong>stand-in</strong> reality." in page
    assert "<code>carom evaluate</code>" in page


def test_page_without_figures_is_small(tmp_path: Path) -> None:
    path = write_report(tmp_path / "r.html", [Text("A", ("b",))], title="t")
    assert path.stat().st_size < 10_000


def test_names_from_files_are_escaped(tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script>"
    figure = go.Figure(go.Scatter(x=[1], y=[1], name="</script><script>alert(2)"))
    sections: list[Section] = [
        Text(nasty, (f"`{nasty}`", nasty)),
        Table(nasty, (nasty,), ((nasty,),), nasty),
        Figure(nasty, figure, nasty),
    ]
    page = write_report(tmp_path / "r.html", sections, title=nasty, subtitle=nasty).read_text(encoding="utf-8")
    assert "<script>alert" not in page


def test_table_with_a_ragged_row_is_refused() -> None:
    with pytest.raises(CaromError, match="table 'T', row 2: expected 2 cells, one for each column, got 1"):
        Table("T", ("a", "b"), ((1, 2), (3,)))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CaromError, match="name of an HTML file"):
        write_report(tmp_path, [], title="t")
