"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real recordings: beside the repository, or wherever CAROM_DATA says."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("CAROM_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real recordings are not there ({folder}); set CAROM_DATA to their folder")
    return folder
