"""Fixtures that all tests share."""

from __future__ import annotations

import os
from importlib.util import find_spec
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


#: environments and policies are an extra: without its libraries their tests are not collected
if not all(find_spec(name) for name in ("gymnasium", "PIL", "stable_baselines3")):
    collect_ignore_glob = ["envs/*", "train/*"]
