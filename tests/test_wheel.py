"""What is installed from a wheel works outside of the clone: all files are in it, and it starts fast."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest
from synthetic_recordings import Strike

from carom.recordings import Recordings, write

CLONE = Path(__file__).resolve().parents[1]
#: what starts slowly, and is not needed to import Carom or to read its help
HEAVY = ("mujoco", "torch", "jax", "scipy", "sklearn", "pyarrow", "trimesh", "gymnasium", "stable_baselines3", "ray")
PARTS = ("pyproject.toml", "README.md", "LICENSE", "src")


def loaded_by(code: str) -> list[str]:
    """Which of the heavy libraries some code has loaded in the end."""
    after = f"import sys\ntry:\n {code}\nfinally:\n print('loaded', *[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", after], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["plan", "--help"], []])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = (
        f"sys.argv = ['carom', *{words!r}]\n from carom.cli import main\n try:\n  main()\n except SystemExit:\n  pass"
    )
    assert loaded_by(code) == []


def test_what_is_heavy_would_be_seen() -> None:
    assert loaded_by("import scipy") == ["scipy"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, made of the source distribution as `python -m build` does."""
    for name in ("build", "hatchling"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install carom[dev]")
    place = tmp_path_factory.mktemp("wheel")
    clone = place / "clone"
    clone.mkdir()
    for part in PARTS:
        if (CLONE / part).is_dir():
            shutil.copytree(CLONE / part, clone / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(CLONE / part, clone)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(place / "dist"), str(clone)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    (made,) = (place / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder with nothing but what the wheel brings."""
    place = wheel.parents[1] / "installed"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(place),
        str(wheel),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return place


def outside(installed: Path, folder: Path, *words: object) -> str:
    """What Python says with this installation, somewhere else."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    source = CLONE / "src"
    wanted = {p.relative_to(source).as_posix() for p in (source / "carom").rglob("*") if p.is_file()}
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("carom/")}
    assert packed == {name for name in wanted if "__pycache__" not in name}
    assert any(name.endswith(".safetensors") for name in packed)
    assert any(name.endswith(".j2") for name in packed)


def test_what_is_installed_works_outside_of_the_clone(installed: Path, tmp_path: Path) -> None:
    assert Path(outside(installed, tmp_path, "-c", "import carom; print(carom.__file__)").strip()).is_relative_to(
        installed
    )
    script = installed / "bin" / "carom"
    assert "identify" in outside(installed, tmp_path, script, "--help")
    hits = [Strike(striker_velocity=(0.05, 0.7 + 0.05 * s), duration=1.5).trajectory(s) for s in range(6)]
    named = tuple(replace(t, name=f"file_{i:02d}.csv") for i, t in enumerate(hits))
    write(tmp_path / "lab", Recordings(tmp_path / "lab", named[0].bodies, named))
    assert json.loads(outside(installed, tmp_path, script, "check", "lab", "--json", "-"))
    outside(
        installed, tmp_path, script, "identify", "lab", "--out", "found", "--json", "found.json"
    )  # shipped networks
    report = next(tmp_path.rglob("*.html")).read_text()  # a template
    assert "<html" in report
    assert "parameters" in (tmp_path / "found.json").read_text()
