"""The page: self-contained, readable without JavaScript, safe against what stands in a file name."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from report_pages import downloads

from carom.core.errors import CaromError
from carom.identify.result import Estimate
from carom.report import Figure, Next, Section, Step, Table, Text, write_report
from carom.report import figures as draw
from carom.report.chart import Chart, Data, Matrix, Panel, Points, Row, Rows

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
    friction = Estimate("striker_friction", 0.31, "1", 0.25, 0.37, (0.05, 1.0), "identified", "narrow")
    curve = [(s, 0.1 * np.exp(-s / 300), 0.12 * np.exp(-s / 300)) for s in range(0, 1000, 50)]
    names = [f"hit_{i:03d}.csv" for i in range(COUNT)]
    return [
        Text("In short", ("A **stand-in** reality.", "Run `carom evaluate`.")),
        Table("Methods", ("method", "accuracy@0.1"), (("ridge", 0.614), ("carom", 0.93)), "Five draws.", "carom"),
        Figure("Accuracy", draw.error_bars(["ridge", "carom"], [0.61, 0.93], [0.03, 0.02], "accuracy@0.1"), "Bars."),
        Figure("Predictions", draw.impact_scatter(measured, predicted, std, K, names), "Test strikes."),
        Figure("Strikes", draw.strike_map(outline, 0.05 * outward, before, measured[:, :2], predicted[:, :2]), "Map."),
        Figure("Parameters", draw.parameter_intervals([friction]), "Dots."),
        Figure("Training", draw.training_curves({"mujoco": curve}), "Lines."),
        Next((Step("Plan a strike.", "carom plan 'my model' --target 0.1 -0.2 0.3"), Step("Then rest."))),
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
    assert not re.findall(r"https?:|url\(|@import|<script", page)


def test_page_with_all_figures_is_small(page: str) -> None:
    assert len(page.encode()) < 200_000


def test_every_figure_is_drawn_and_its_numbers_can_be_taken_along(page: str) -> None:
    assert page.count('<svg class="panel"') == 5  # three of the predictions, the map, the training
    held = downloads(page)
    assert set(held) == {"accuracy.csv", "predictions.csv", "strikes.csv", "parameters.csv", "training.csv"}
    assert held["accuracy.csv"][2] == ["carom", "0.93", "0.02"]
    assert held["parameters.csv"][1][:5] == ["striker_friction", "1", "0.31", "0.25", "0.37"]
    assert len(held["predictions.csv"]) == len(held["strikes.csv"]) == COUNT + 1
    drawn = next(f.figure for f in _example() if isinstance(f, Figure) and f.title == "Training")
    assert isinstance(drawn, Chart)
    np.testing.assert_allclose([float(r[2]) for r in held["training.csv"][1:]], [r[2] for r in drawn.data.rows], 1e-5)


def test_what_to_do_next_is_the_last_section_and_its_commands_can_be_copied(page: str) -> None:
    last = page[page.rindex("<section") :]
    assert "<h2>What to do next</h2>" in last
    (command,) = re.findall(r"<pre>(.*?)</pre>", last, flags=re.S)
    assert unescape(re.sub(r"<[^>]+>", "", command)) == "carom plan 'my model' --target 0.1 -0.2 0.3"
    assert "Then rest." in last


def test_wide_tables_become_cards_on_a_phone(tmp_path: Path) -> None:
    wide = Table("Wide", ("a", "b", "<c>", "d"), ((1, 2, 3, 4),), "n")
    page = write_report(tmp_path / "r.html", [wide, Table("Narrow", ("a",), ((1,),), "n")], title="t").read_text(
        "utf-8"
    )
    assert page.count('<table class="cards">') == 1
    assert '<td class="number" data-label="&lt;c&gt;">3</td>' in page


def test_a_matrix_has_its_numbers_in_coloured_cells(tmp_path: Path) -> None:
    matrix = Matrix(("one", "two"), np.array([[1.0, np.nan], [-0.42, 1.0]]), Data(("a",), ((0.5,),)))
    page = write_report(tmp_path / "r.html", [Figure("M", matrix, "c")], title="t").read_text("utf-8")
    assert '<td style="background:transparent"></td>' in page
    assert re.search(r'<td style="background:#[0-9a-f]{6}">-.42</td>', page)
    assert downloads(page) == {"m.csv": [["a"], ["0.5"]]}


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
    nasty = "</title></pre>\"'><script>alert(1)</script>"
    data = Data((nasty,), ((nasty,),))
    points = Points([1.0], [1.0], "#000000", nasty, labels=[nasty])
    sections: list[Section] = [
        Text(nasty, (f"`{nasty}`", nasty)),
        Table(nasty, (nasty,) * 4, ((nasty,) * 4,), nasty),
        Figure(nasty, Chart((Panel(nasty, nasty, (points,), nasty),), data, nasty), nasty),
        Figure(nasty, Rows((Row(nasty, nasty, (), 0.5, "#000000", nasty),), (nasty,), data, nasty), nasty),
        Figure(nasty, Matrix((nasty,), np.ones((1, 1)), data, nasty), nasty),
        Next((Step(nasty, f"carom check {nasty}"),), nasty),
    ]
    page = write_report(tmp_path / "r.html", sections, title=nasty, subtitle=nasty).read_text(encoding="utf-8")
    assert "<script" not in page
    tags = _Tags()
    tags.feed(page)  # nothing was closed that was not open
    assert tags.open == []
    assert list(downloads(page).values()) == [[[nasty], [nasty]]]


def test_data_with_a_ragged_row_are_refused() -> None:
    with pytest.raises(CaromError, match="data, row 1: expected 2 cells, got 1"):
        Data(("a", "b"), ((1,),))


def test_table_with_a_ragged_row_is_refused() -> None:
    with pytest.raises(CaromError, match="table 'T', row 2: expected 2 cells, one for each column, got 1"):
        Table("T", ("a", "b"), ((1, 2), (3,)), "n")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CaromError, match="name of an HTML file"):
        write_report(tmp_path, [], title="t")
