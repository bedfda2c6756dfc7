"""`carom identify` and `carom suggest` of strikes: the default, what slides give, and that the two say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from carom import recipes
from carom.core.errors import CaromError
from carom.identify.result import Identification
from carom.identify.result import read as read_parameters
from carom.reality import SETTINGS, sample_commands, standin
from carom.recipes.strikes import slides_of
from carom.recordings import read

TRUTH = SETTINGS["nylon-low"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = standin("nylon-low", "square", seed=1)
    commands = sample_commands(lab.shape, 6, np.random.default_rng(1))
    return lab.execute(commands, tmp_path_factory.mktemp("lab") / "strikes", seed=1)


@pytest.fixture(scope="module")
def written(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parameters as `identify` writes them when nothing but the recordings is given."""
    out = tmp_path_factory.mktemp("found") / "parameters.yaml"
    assert recipes.identify(folder, out=out).files[0] == out
    return out


@pytest.fixture(scope="module")
def found(written: Path) -> Identification:
    return read_parameters(written)


def test_strikes_are_identified_without_a_model_or_a_method(found: Identification) -> None:
    friction = found["striker_friction"]
    assert friction.low < TRUTH.friction < friction.high
    assert friction.verdict != "on a bound"


def test_what_slides_give_has_their_interval(found: Identification, folder: Path) -> None:
    slides = slides_of(read(folder))
    assert slides is not None
    ground = found["ground_friction"]
    assert (ground.low, ground.high) == pytest.approx(slides.interval())
    assert ground.low < ground.value < ground.high
    assert ground.low < TRUTH.ground_friction < ground.high
    assert (ground.verdict, ground.reason) == ("identified", "read off 6 slides, without a search")
    assert found.extra["read_off"] == ["ground_friction"]


def test_suggestions_begin_with_what_identify_states_and_keep_off_corners(
    found: Identification, written: Path, folder: Path
) -> None:
    result = recipes.suggest(folder, params=written, count=2, threads=1)
    (group,) = result.groups
    first = group.suggestions[0]
    assert [s.name for s in first.spreads] == [e.name for e in found.estimates if e.name != "ground_friction"]
    for spread in first.spreads:
        stated = found[spread.name]
        assert spread.before == pytest.approx((stated.low, stated.high)), spread.name
        assert np.ptp(spread.after) <= np.ptp(spread.before) * (1 + 1e-9)
    printed = {row[0]: row[2] for row in result.tables()[1].rows}
    friction = found["striker_friction"]
    assert printed["striker_friction"] == f"{friction.low:.3g} to {friction.high:.3g}"
    for one in group.suggestions:  # a square of 80 mm
        assert 0.04 - min(abs(one.settings["x_m"]), abs(one.settings["y_m"])) >= 0.0049


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 2}, "--threads is for engines that search; --method gradient has no use for it"),
        ({"method": "least-squares"}, "recordings of strikes: unknown method 'least-squares'; known: gradient, cma"),
        ({"method": ""}, "recordings of strikes: unknown method ''"),
    ],
)
def test_options_without_a_meaning_are_refused_in_one_line(
    folder: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(CaromError, match=message):
        recipes.identify(folder, **options)  # type: ignore[arg-type]
