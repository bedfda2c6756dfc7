"""The results format: what is written is what is read, whole or not at all, and tables say what the rows say."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from carom.bench.pages import block, main, refreshed
from carom.bench.results import Results, Row, new_results, read, summarise
from carom.bench.tables import grids, markdown_table, metrics_of, rich_tables
from carom.core import artefacts
from carom.core.errors import CaromError

ROWS = (
    Row("D1", "ridge", "median-relative-error", 0.12, 0.01, 10),
    Row("D1", "carom", "median-relative-error", 0.07, 0.01, 10),
    Row("D1", "ridge", "accuracy@0.05", 0.2, 0.02, 10),
    Row("D1", "carom", "accuracy@0.05", 0.4, 0.02, 10),
    Row("D1", "ridge", "accuracy@0.1", 0.404, 0.05, 10),
    Row("D2", "ridge", "accuracy@0.1", 0.65, 0.04, 10),
    Row("D1", "carom", "accuracy@0.1", 0.61, 0.031, 10),
    Row("D2", "carom", "accuracy@0.1", 0.81, math.nan, 1),
)


def _made(rows: Iterable[Row]) -> Results:
    return Results(
        "robot-hits",
        "carom bench robot-hits",
        {"carom": "0.1.0", "python": "3.11"},
        {"cpu": "a processor", "cores": 2, "system": "Linux x86_64"},
        125.25,
        tuple(rows),
        ("Real strikes.",),
    )


@pytest.fixture
def results() -> Results:
    return _made(ROWS)


def test_read_gives_back_what_was_written(results: Results, tmp_path: Path) -> None:
    again = read(results.write(tmp_path / "deep" / "robot-hits.json"))
    assert math.isnan(again.rows[-1].sd)  # NaN is null on disk: JSON has no NaN
    assert replace(again, rows=again.rows[:-1]) == replace(results, rows=results.rows[:-1])


def test_file_has_the_documented_fields_and_is_strict_json(results: Results, tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = results.write(tmp_path / "r.json").read_text(encoding="utf-8")
    content = json.loads(text, parse_constant=refuse)
    assert list(content) == ["name", "command", "versions", "machine", "seconds", "notes", "rows"]
    assert content["rows"][0] == {
        "setting": "D1",
        "method": "ridge",
        "metric": "median-relative-error",
        "mean": 0.12,
        "sd": 0.01,
        "n": 10,
    }


def test_results_are_written_beside_the_others_unless_told(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert results.write() == Path("benchmarks/results/robot-hits.json")
    assert (tmp_path / "benchmarks/results/robot-hits.json").is_file()


def test_a_failed_write_leaves_the_old_file_and_no_other(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = results.write(tmp_path / "r.json")
    before = path.read_bytes()

    def disk_full(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(artefacts.os, "fsync", disk_full)
    with pytest.raises(OSError, match="no space"):
        replace(results, seconds=1.0).write(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["r.json"]


@pytest.mark.parametrize("text", ["", "[]", '{"name": "x"}', '{"rows": [{"mean": 1}]}', '{"rows": 3}'])
def test_other_files_are_refused_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(CaromError, match=r"odd\.json: not a results file"):
        read(path)


def test_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CaromError, match="run the benchmark first"):
        read(tmp_path / "none.json")


def test_new_results_know_versions_and_machine() -> None:
    made = new_results("x", command="carom bench x", rows=ROWS, seconds=3.0)
    assert set(made.versions) == {"carom", "mujoco", "numpy", "torch", "python"}
    assert set(made.machine) == {"cpu", "cores", "system"}
    assert int(made.machine["cores"]) >= 1


def test_summarise_gives_mean_and_sample_sd() -> None:
    values = [{"setting": "s", "method": "m", "metric": "a", "value": v} for v in (1.0, 2.0, 3.0)]
    values.append({"setting": "s", "method": "other", "metric": "a", "value": 5})
    three, one = summarise(values)
    assert three == Row("s", "m", "a", 2.0, 1.0, 3)
    assert (one.mean, one.n) == (5.0, 1)
    assert math.isnan(one.sd)


def test_accuracies_come_first(results: Results) -> None:
    assert metrics_of(results) == ["accuracy@0.1", "accuracy@0.05", "median-relative-error"]


def test_markdown_table_has_methods_down_settings_across_and_the_best_in_bold(results: Results) -> None:
    table = markdown_table(results, metrics=["accuracy@0.1"])
    assert table == (
        "`accuracy@0.1` (mean ± sd, n = 1 to 10; higher is better)\n\n"
        "| method | D1 | D2 |\n|---|---:|---:|\n"
        "| ridge | 0.40 ± 0.05 | 0.65 ± 0.04 |\n| carom | **0.61 ± 0.03** | **0.81** |\n"
    )


def test_many_settings_go_down_and_lower_is_better_for_errors() -> None:
    rows = [
        Row(f"scene {i}", name, "median-relative-error", value, math.nan, 1)
        for i in range(6)
        for name, value in (("ridge", 0.12), ("carom", 0.07 + 0.001 * i))
    ]
    table = markdown_table(_made(rows))
    assert "| setting | ridge | carom |" in table
    assert "| scene 0 | 0.12 | **0.070** |" in table


def test_settings_with_other_methods_have_a_table_of_their_own_and_no_cell_is_empty() -> None:
    rows = [
        *(Row("full", name, "error", value, 0.1, 3) for name, value in (("a", 1.0), ("b", 2.0), ("c", 3.0))),
        *(Row("half", name, "error", value, 0.1, 3) for name, value in (("a", 4.0), ("b", 5.0))),
    ]
    full, half = grids(_made(rows))
    assert (full.columns, [name for name, _ in full.rows]) == (("full",), ["a", "b", "c"])
    assert (half.columns, [name for name, _ in half.rows]) == (("half",), ["a", "b"])
    assert all(cell.text for grid in (full, half) for _, cells in grid.rows for cell in cells)


def test_the_ends_of_an_interval_stand_in_the_cells_of_their_rate() -> None:
    rates = {"hybrid": (0.978, 0.93, 0.996), "mujoco": (0.0033, 0.0, 0.043)}
    rows = [
        Row("route-2", method, metric, value, 0.02, 3)
        for method, values in rates.items()
        for metric, value in zip(("success-rate", "success-rate-low", "success-rate-high"), values, strict=True)
    ]
    table = markdown_table(_made(rows))
    assert "| hybrid | **0.98 [0.93, 1.00]** |" in table
    assert "| mujoco | 0.00 [0.00, 0.04] |" in table
    assert "(mean [95 % interval], n = 3; higher is better)" in table
    assert "-low" not in table


def test_shares_of_trials_have_wilsons_interval_and_metrics_of_one_method_one_table() -> None:
    rows = [
        Row("friction", "carom", "covered", 0.9, 0.3, 10),
        Row("gravity", "carom", "covered", 1.0, 0.0, 10),
        Row("friction", "carom", "error-percent", 3.0, 0.5, 10),
        Row("gravity", "carom", "error-percent", 2.0, 0.5, 10),
    ]
    table = markdown_table(_made(rows))
    assert "| setting | covered | error-percent |" in table
    assert "| friction | 0.90 [0.60, 0.98] | 3.00 ± 0.50 |" in table  # 9 of 10


def test_what_is_the_same_everywhere_or_one_by_definition_is_no_table() -> None:
    rows = [Row(s, m, "reached", 1.0, 0.0, 3) for s in ("a", "b") for m in ("x", "y")]
    rows += [Row("a", m, "ratio-to-x", value, 0.1, 3) for m, value in (("x", 1.0), ("y", 7.0))]
    same, ratio = grids(_made(rows))
    assert not same.columns
    assert same.title == "`reached` (x; y; a; b): 1.00 [0.44, 1.00] (mean [95 % interval], n = 3)"
    assert ratio.title.startswith("`ratio-to-x` (y; a): 7.00 ± 0.10")


def test_unknown_metric_names_the_known(results: Results) -> None:
    with pytest.raises(CaromError, match=r"no metric 'acuracy'; known: accuracy@0\.1"):
        markdown_table(results, metrics=["acuracy"])


def test_rich_tables_show_the_same_figures(results: Results) -> None:
    out = StringIO()
    Console(file=out, width=120).print(*rich_tables(results))
    assert "0.61 ± 0.03" in out.getvalue()
    assert "accuracy@0.1" in out.getvalue()


README = "# Title\n\n<!-- bench:robot-hits:start -->\nold\n<!-- bench:robot-hits:end -->\n\nafter\n"


def test_a_page_is_refreshed_once_and_then_stays(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "robot-hits.json")
    text, stale = refreshed(README, tmp_path)
    assert stale == ["robot-hits"]
    assert block("robot-hits", tmp_path) in text
    assert "Real strikes." in text
    assert "`carom bench robot-hits`: 2 min on a processor, 2 cores; carom 0.1.0, python 3.11." in text
    assert text.startswith("# Title\n")
    assert text.endswith("-->\n\nafter\n")
    assert refreshed(text, tmp_path) == (text, [])


def test_a_page_says_so_where_nothing_was_run(tmp_path: Path) -> None:
    text, _ = refreshed(README, tmp_path)
    assert "<!-- bench:robot-hits:start -->\n_not run yet_\n<!-- bench:robot-hits:end -->" in text


def test_a_marker_without_end_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaromError, match=r"bench:distill:start.*has no matching"):
        refreshed(README + "<!-- bench:distill:start -->\n", tmp_path)


def test_main_checks_and_writes(results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme, folder = tmp_path / "README.md", tmp_path / "results"
    readme.write_text(README)
    results.write(folder / "robot-hits.json")
    arguments = [str(readme), "--results", str(folder)]
    assert main([*arguments, "--check"]) == 1
    assert "robot-hits" in capsys.readouterr().err
    assert readme.read_text() == README  # checking changes nothing
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    assert main([str(tmp_path / "none.md")]) == 2


def test_what_is_within_one_spread_of_the_best_has_a_mark() -> None:
    figures = (("a", 12.7, 1.7), ("b", 13.5, 2.7), ("c", 15.5, 2.0), ("d", 14.0, math.nan))
    table = markdown_table(_made([Row("fit-8", name, "error", mean, sd, 5) for name, mean, sd in figures]))
    assert "| a | **12.7 ± 1.7** |" in table
    assert "| b | 13.5 ± 2.7 ≈ |" in table
    assert "| c | 15.5 ± 2.0 |" in table
    assert "| d | 14.0 ≈ |" in table  # within the spread of the best
    assert "lower is better; ≈ within one sd of the best)" in table
    far = markdown_table(_made([Row("s", name, "error", mean, 0.1, 5) for name, mean in (("a", 1.0), ("b", 2.0))]))
    assert "≈" not in far


def test_diagnostic_rows_are_never_best() -> None:
    rows = [
        Row("diagnostic: what is left", name, "error", mean, 0.1, 5) for name, mean in (("carom", 12.7), ("x", 3.8))
    ]
    table = markdown_table(_made(rows))
    assert "**" not in table
    assert "≈" not in table


def test_published_tosses_have_a_setting_that_says_what_they_were_fitted_to() -> None:
    from carom.bench import toss

    results = read(Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "toss.json")
    published = [row for row in results.rows if row.method.startswith("published-")]
    assert sorted(map(str, published)) == sorted(map(str, toss.published()))
    assert {row.setting for row in published} == {"published, fitted to all tosses"}
    assert all(note in results.notes for note in toss.remarks(results.rows))
    table = markdown_table(results, metrics=["position-error-percent"])
    assert "start-noise | 3.84 ± 0.60 |" in table


def test_a_figure_within_one_spread_of_the_published_one_is_said_to_be() -> None:
    from carom.bench import toss

    near = Row("fit-8", "carom-cma", "position-error-percent", 12.7, 1.7, 5)
    (said,) = toss.remarks([*toss.published(), near])
    assert "within one spread of published-drake (13.5)" in said
    assert "carom-cma fit-8 (12.7 ± 1.7)" in said
    assert toss.remarks([*toss.published(), replace(near, mean=10.0)]) == []
