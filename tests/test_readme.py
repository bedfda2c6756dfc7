"""README.md and the pages of docs have the tables of the results files, and the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from carom.bench.pages import FIGURES, PAGES, refreshed
from carom.bench.results import read

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_tables_are_those_of_the_results_files(page: Path) -> None:
    _, stale = refreshed((ROOT / page).read_text(encoding="utf-8"), RESULTS)
    if stale:
        pytest.fail(f"{page} differs from benchmarks/results for: {', '.join(stale)}; run `make docs` and commit it")


@pytest.mark.parametrize("figure", FIGURES, ids=str)
def test_figures_are_those_of_the_results_files(figure: Path) -> None:
    name, draw = FIGURES[figure]
    assert (ROOT / figure).read_text(encoding="utf-8") == draw(read(RESULTS / f"{name}.json")), "run `make docs`"


def test_every_results_file_has_its_tables() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    names = [path.stem for path in sorted(RESULTS.glob("*.json"))]
    missing = [name for name in names if f"<!-- bench:{name}:start -->" not in text]
    assert not missing, f"no page has '<!-- bench:NAME:start -->' block for: {', '.join(missing)}"


def test_the_readme_has_one_generated_table_and_at_most_150_lines() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- bench:([\w-]+):start -->", text) == ["summary"]
    assert len(text.splitlines()) <= 150


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    assert not missing, f"{page} links to what is not there: {', '.join(missing)}"


def test_what_is_called_slow_is_there() -> None:
    from conftest import SLOW, TESTS

    missing = [place for place in SLOW if not (TESTS / place.partition("::")[0]).exists()]
    assert not missing, f"tests/conftest.py calls slow what is not there: {', '.join(missing)}"


def test_pictures_are_small() -> None:
    for path in (ROOT / "docs/images").iterdir():
        assert path.stat().st_size < 300_000, path.name
