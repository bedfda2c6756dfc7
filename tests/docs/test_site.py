"""The documentation site builds without a warning, and every page is in its table of contents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("mkdocstrings", reason="the documentation's tools are not installed: pip install carom[docs]")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "carom.engines.contract.Engine" in (tmp_path / "site/api.html").read_text(encoding="utf-8")
    assert "fonts.googleapis" not in (tmp_path / "site/index.html").read_text(encoding="utf-8")


def test_every_page_is_in_the_table_of_contents() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    def pages(part: object) -> list[str]:
        if isinstance(part, str):
            return [part]
        return [page for each in (part.values() if isinstance(part, dict) else part) for page in pages(each)]

    there = {p.relative_to(ROOT / "docs").as_posix() for p in ROOT.glob("docs/**/*.md")}
    assert sorted(pages(settings["nav"])) == sorted(there)
