"""Options of the benchmarks: each states its own and refuses others; notes and commands are those of the results."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from carom.bench import MODULES, NAMES, run_benchmark
from carom.bench.benchmark import Benchmark, Options
from carom.bench.results import read
from carom.core.errors import CaromError

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def of(name: str) -> Benchmark:
    if name == "routes":
        pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    found: Benchmark = import_module(f"carom.bench.{MODULES[name]}").BENCHMARK
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_the_results_is_made_of_the_options_that_are_taken(name: str) -> None:
    results = read(RESULTS / f"{name}.json")
    given = re.sub(r" --only \S+", "", results.command)  # any benchmark may be run in part, and says so
    assert tuple(re.findall("--[a-z]+", given)) == of(name).takes
    assert results.name == of(name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_every_piece_has_a_key_of_its_own(name: str, tmp_path: Path) -> None:
    if of(name).data:
        (tmp_path / "D1").mkdir()
        (tmp_path / "D1" / "recordings.yaml").touch()
    options = Options(tmp_path, draws=3, samples=100, data=tmp_path)
    keys = [key for key, _ in of(name).work(options)]
    assert len(set(keys)) == len(keys) > 0


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(CaromError, match=r"bench recovery takes no --samples; it takes --draws$"):
        run_benchmark("recovery", samples=100)
    with pytest.raises(CaromError, match=r"bench planning takes no --data; it takes --draws$"):
        run_benchmark("planning", data=Path("lab"))
    with pytest.raises(TypeError, match="colour"):
        run_benchmark("planning", colour="blue")  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["robot-hits", "toss"])
def test_real_recordings_have_to_be_given(name: str) -> None:
    with pytest.raises(CaromError, match=f"{name} needs --data DIR: a folder of"):
        run_benchmark(name)


def test_an_unknown_name_has_a_hint() -> None:
    with pytest.raises(CaromError, match="did you mean 'planning'"):
        run_benchmark("planing")


def test_a_folder_without_recordings_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaromError, match=r"holds no recordings folder: expected .*/NAME/recordings\.yaml"):
        run_benchmark("robot-hits", data=tmp_path, out=tmp_path / "out")


def test_a_part_that_does_not_exist_is_named(tmp_path: Path) -> None:
    options = replace(Options(tmp_path, draws=1), only=("planar-cub",))
    with pytest.raises(CaromError, match=r"--only planar-cub: no piece begins so; they begin with"):
        of("recovery").run(options)
