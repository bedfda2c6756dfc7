"""The notebooks run from top to bottom, and show what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "docs" / "notebooks"


def shown(name: str) -> str:
    """All text that a notebook puts out when it is run."""
    nbformat = pytest.importorskip("nbformat", reason="notebooks need: pip install carom[docs]")
    nbclient = pytest.importorskip("nbclient", reason="notebooks need: pip install carom[docs]")
    pytest.importorskip("ipykernel", reason="notebooks need: pip install carom[docs]")
    book = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=900, kernel_name="python3").execute()
    outputs = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    return "".join(str(out.get("text", "")) for out in outputs)


def test_strikes() -> None:
    text = shown("strikes")
    share = {line.split("{")[0].strip(): re.search(r"'accuracy@0.1': ([\d.]+)", line) for line in text.splitlines()}
    carom, mean = share["Carom"], share["scaled mean"]
    assert carom is not None
    assert mean is not None
    assert float(carom[1]) > max(float(mean[1]), 0.5)
    assert "carried out" in text


def test_tosses() -> None:
    text = shown("tosses")
    found = re.search(r"^ *friction ([\d.]+)", text, re.MULTILINE)
    assert found is not None, text
    assert abs(float(found[1]) - 0.22) < 0.05
