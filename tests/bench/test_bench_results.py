"""The results format: what is written is what is read, whole or not at all, and tables say what the rows say."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from carom.bench.results import (
    Results,
    Row,
    main,
    markdown_table,
    metrics_of,
    new_results,
    read,
    readme_block,
    refreshed,
    rich_table,
    summarise,
)
from carom.core import work as checkpoint
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


@pytest.fixture
def results() -> Results:
    return Results(
        "robot-hits",
        "carom bench robot-hits",
        {"carom": "0.1.0", "python": "3.11"},
        {"cpu": "a processor", "cores": 2, "system": "Linux x86_64"},
        125.25,
        ROWS,
        ("Real strikes.",),
    )


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

    monkeypatch.setattr(checkpoint.os, "fsync", disk_full)
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


def test_lower_is_better_for_errors_and_tables_turn(results: Results) -> None:
    table = markdown_table(results, metrics=["median-relative-error"], settings="rows")
    assert "| setting | ridge | carom |" in table
    assert "| D1 | 0.12 ± 0.01 | **0.070 ± 0.010** |" in table


def test_unknown_metric_names_the_known(results: Results) -> None:
    with pytest.raises(CaromError, match=r"no metric 'acuracy'; known: accuracy@0\.1"):
        markdown_table(results, metrics=["acuracy"])


def test_rich_table_shows_the_same_figures(results: Results) -> None:
    out = StringIO()
    Console(file=out, width=120).print(rich_table(results))
    assert "0.61 ± 0.03" in out.getvalue()
    assert "accuracy@0.1" in out.getvalue()


README = "# Title\n\n<!-- bench:robot-hits:start -->\nold\n<!-- bench:robot-hits:end -->\n\nafter\n"


def test_readme_is_refreshed_once_and_then_stays(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "robot-hits.json")
    text, stale = refreshed(README, tmp_path)
    assert stale == ["robot-hits"]
    assert readme_block("robot-hits", tmp_path) in text
    assert "Real strikes." in text
    assert "`carom bench robot-hits`: 2 min on a processor, 2 cores; carom 0.1.0, python 3.11." in text
    assert text.startswith("# Title\n")
    assert text.endswith("-->\n\nafter\n")
    assert refreshed(text, tmp_path) == (text, [])


def test_readme_says_so_where_nothing_was_run(tmp_path: Path) -> None:
    text, _ = refreshed(README, tmp_path)
    assert "<!-- bench:robot-hits:start -->\n_not run yet_\n<!-- bench:robot-hits:end -->" in text


def test_readme_marker_without_end_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaromError, match=r"bench:distill:start.*has no matching"):
        refreshed(README + "<!-- bench:distill:start -->\n", tmp_path)


def test_main_checks_and_writes(results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme, folder = tmp_path / "README.md", tmp_path / "results"
    readme.write_text(README)
    results.write(folder / "robot-hits.json")
    arguments = ["--readme", str(readme), "--results", str(folder)]
    assert main([*arguments, "--check"]) == 1
    assert "robot-hits" in capsys.readouterr().err
    assert readme.read_text() == README  # checking changes nothing
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    assert main(["--readme", str(tmp_path / "none.md")]) == 2
