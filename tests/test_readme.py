"""The README's benchmark tables are those of the results files."""

from __future__ import annotations

from pathlib import Path

import pytest

from carom.bench.results import refreshed

ROOT = Path(__file__).resolve().parents[1]


def test_readme_tables_are_those_of_the_results_files() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, stale = refreshed(text, ROOT / "benchmarks" / "results")
    if stale:
        pytest.fail(f"README.md differs from benchmarks/results for: {', '.join(stale)}; run `make docs` and commit it")


def test_readme_has_a_table_for_every_results_file() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [path.stem for path in sorted((ROOT / "benchmarks" / "results").glob("*.json"))]
    missing = [name for name in names if f"<!-- bench:{name}:start -->" not in text]
    assert not missing, f"README.md has no '<!-- bench:NAME:start -->' block for: {', '.join(missing)}"
