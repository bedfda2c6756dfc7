"""The report of identified strikes: parameters, outcomes and slides, with the numbers that were found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report_pages import downloads, good_page, next_commands, sections
from synthetic_recordings import Strike

from carom import recipes
from carom.compare.metrics import relative_error
from carom.learn.impact.shipped import shipped_bases
from carom.recipes.strikes import by_gradient, outcomes_with, usable_impacts
from carom.recordings import Recordings, read, scene_of, write

COUNT = 5


@pytest.fixture(scope="module")
def strikes(tmp_path_factory):
    """A folder of strikes; the files' names are what they should not be."""
    place = tmp_path_factory.mktemp("lab") / "my <b>lab"
    made = [
        Strike(striker_velocity=(0.05, 0.7 + 0.05 * s), velocity=(-0.1, 1.0 + 0.06 * s), duration=1.5).trajectory(s)
        for s in range(COUNT)
    ]
    named = tuple(replace(t, name=f"<b>hit_{i}.csv") for i, t in enumerate(made))
    write(place, Recordings(place, named[0].bodies, named))
    return place


@pytest.fixture(scope="module")
def identified(strikes):
    out = strikes.parent / "out"
    return recipes.identify(strikes, method="grid", out=out, threads=1), out


def test_strikes_have_a_page_with_parameters_outcomes_and_slides(identified, strikes):
    result, out = identified
    assert result.files == (out / "parameters.yaml", out / "report.html")
    page = good_page(out / "report.html")
    assert sections(page)[:5] == [
        "In short",
        "Parameters",
        "Parameters, in figures",
        "Predicted and measured outcomes",
        "Where and how it was struck",
    ]
    assert "Slides" in sections(page)
    assert "<b>" not in page.replace("<b style=", "")  # the dots of parameters are b elements; names are escaped
    found = result.groups[0].identification
    for estimate in found.estimates:
        assert estimate.name.replace("_", " ") in page
        assert estimate.verdict in page
    assert next_commands(page)[-2][:3] == ["carom", "adapt", str(strikes)]


def test_the_data_of_its_figures_are_what_was_found(identified, strikes):
    result, out = identified
    held = downloads((out / "report.html").read_text())
    found = result.groups[0].identification
    parameters = {row[0]: row for row in held["parameters.csv"][1:]}
    for estimate in found.estimates:
        assert float(parameters[estimate.name][2]) == pytest.approx(estimate.value, rel=1e-5)
    impacts = usable_impacts(read(strikes))
    outcomes = held["predicted-and-measured-outcomes.csv"]
    assert [row[0] for row in outcomes[1:]] == list(impacts.names)
    np.testing.assert_allclose([float(row[1]) for row in outcomes[1:]], impacts.post[:, 0], rtol=1e-4)
    errors = [float(row[-1]) for row in outcomes[1:]]
    assert np.median(errors) == pytest.approx(found.training.median_relative_error, rel=1e-3)
    friction = [float(row[1]) for row in held["slides.csv"][1:]]
    assert len(friction) == result.groups[0].facts["slides"]


def test_a_file_for_the_parameters_gets_no_page(strikes, tmp_path):
    result = recipes.identify(strikes, method="grid", out=tmp_path / "p.yaml", threads=1)
    assert result.files == (tmp_path / "p.yaml",)
    assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]


def test_outcomes_are_those_of_the_model_that_was_fitted(strikes):
    recordings = read(strikes)
    impacts, scene = usable_impacts(recordings), scene_of(recordings)
    found = by_gradient(shipped_bases(scene)[-1], impacts, fixed={}, seed=0)
    predicted = outcomes_with(found, recordings, impacts)
    error = relative_error(predicted, impacts.post, scene.gyration_radius)
    assert np.median(error) == pytest.approx(found.training.median_relative_error, rel=1e-3)
