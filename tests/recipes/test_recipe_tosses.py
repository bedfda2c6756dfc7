"""Folders of free bodies: what is fitted and what tests it, what is written, what a reader is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from free_recordings import TRUTH, flights, toss

from carom.core.errors import CaromError
from carom.identify.result import read as read_parameters
from carom.identify.tosses import search as motion_search
from carom.identify.tosses.result import percent_errors
from carom.identify.tosses.search import Budget
from carom.recipes.tosses import FreeOptions, facts, identify_free, parameter_names, write_calibrated
from carom.scenes.parameters import TABLE_II

NAMES = ("friction", "inertia_scale")
CONTACT = {name: TRUTH[name] for name in ("stiffness", "damping")}


@pytest.fixture(scope="module")
def recordings():
    truth = {"friction": 0.25, **CONTACT, "inertia_scale": 1.1}
    return toss(Path("tosses"), 7, seed=4, truth=truth, samples=60).recordings


@pytest.fixture(scope="module")
def calibrated(recordings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(motion_search, "Budget", lambda: Budget(first=3, sides=8, last=4, population=8))
        found, _ = identify_free(recordings, options=FreeOptions(NAMES, CONTACT, fit=4), threads=1, seed=2)
    return found[0]


def test_what_the_fit_does_not_use_tests_it(calibrated, recordings):
    assert len(calibrated.trained) == 4
    assert calibrated.tested is not None
    assert len(calibrated.tested) == 3
    assert set(calibrated.trained.names) | set(calibrated.tested.names) == {t.name for t in recordings.trajectories}
    identification = calibrated.identification
    assert identification.held_out is not None
    assert identification.held_out.strikes == 3
    assert identification.held_out_by == "3 recordings that the fit has not seen"
    extra = identification.extra
    assert extra["errors_held_out"]["equation_1"] < extra["errors_before"]["equation_1"]
    assert extra["errors_held_out"]["equation_1"] == pytest.approx(
        extra["errors_held_out"]["position_percent"] / 100 + np.radians(extra["errors_held_out"]["rotation_deg"])
    )


def test_the_calibrated_file_opens_in_mujoco_and_falls(calibrated, tmp_path):
    paths = write_calibrated(tmp_path / "out", calibrated)
    assert {p.name for p in paths} == {"parameters.yaml", "calibrated.xml", "report.html"}
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "calibrated.xml"))
    values = calibrated.model.values
    np.testing.assert_allclose(model.pair_friction[0, :2], values["friction"], rtol=1e-5)
    np.testing.assert_allclose(model.pair_solref[0], [-CONTACT["stiffness"], -CONTACT["damping"]], rtol=1e-5)
    np.testing.assert_allclose(model.body_inertia[1], 0.37 * 0.01 / 6 * values["inertia_scale"], rtol=1e-5)
    data = mujoco.MjData(model)
    data.qpos[2] = 0.2
    mujoco.mj_step(model, data, nstep=2000)
    assert data.qpos[2] == pytest.approx(0.05, abs=1e-3)  # it lies on the ground
    again = read_parameters(tmp_path / "out")
    assert again["friction"].value == pytest.approx(calibrated.identification["friction"].value)
    assert "friction" in (tmp_path / "out" / "report.html").read_text()


def test_the_page_shows_the_errors_that_are_printed(calibrated, tmp_path, monkeypatch):
    """Unseen recordings are predicted once, by the most representative simulation: one figure, in both places."""
    other = calibrated.model.simulate(calibrated.tested, threads=1)
    moved = replace(other, position=other.position + 0.01)
    monkeypatch.setattr(type(calibrated.model), "predict", lambda *_, **__: moved)
    words = percent_errors(calibrated.tested, moved)
    shown = []
    monkeypatch.setattr(
        "carom.report.identified.identified_page",
        lambda path, found, motions, after, *_: shown.append(percent_errors(motions, after)) or path,
    )
    write_calibrated(tmp_path / "out", calibrated)
    assert shown == [pytest.approx(words)]


def test_a_reader_is_told_errors_and_the_contact(calibrated):
    told = facts(calibrated)
    assert list(told) == ["before", "after", "3 unseen recordings", "restitution", "contact time"]
    assert told["before"].endswith(" deg")
    assert "% of the width" in told["after"]
    assert 0 < float(told["restitution"]) < 1
    assert told["contact time"].endswith(" ms")


def test_groups_of_other_bodies_are_identified_apart(recordings, monkeypatch):
    monkeypatch.setattr(motion_search, "Budget", lambda: Budget(first=1, sides=2, last=1, population=6))
    heavy = replace(recordings.trajectories[0].bodies["cube"], mass=1.0)
    other = tuple(replace(t, bodies={"cube": heavy}) for t in recordings.trajectories[:2])
    seen = []
    both = replace(recordings, trajectories=other + recordings.trajectories[2:5])
    found, skipped = identify_free(
        both,
        options=FreeOptions(("friction",), CONTACT),
        threads=1,
        progress=lambda what, done, total: seen.append(what),
    )
    assert [len(c.trained) for c in found] == [2, 3]
    assert [c.trained.scene.bodies[0].mass for c in found] == [1.0, 0.37]
    assert all(c.tested is None for c in found)
    assert not skipped
    assert set(seen) == {"identify: cma, toss_00.csv", "identify: cma, toss_02.csv"}


def test_a_group_that_shows_nothing_is_named_and_the_others_are_kept(recordings, monkeypatch):
    monkeypatch.setattr(motion_search, "Budget", lambda: Budget(first=1, sides=2, last=1, population=6))
    flying, options = flights(recordings, 2), FreeOptions(("friction",), CONTACT)
    both = replace(recordings, trajectories=flying + recordings.trajectories[2:5])
    found, skipped = identify_free(both, options=options, threads=1)
    assert [c.trained.scene.bodies[0].mass for c in found] == [0.37]
    ((name, reason),) = skipped
    assert name == "toss_00.csv"
    assert "friction" in reason
    with pytest.raises(CaromError, match="friction"):  # nothing is left
        identify_free(replace(recordings, trajectories=flying), options=options, threads=1)


def test_wrong_requests_are_refused(recordings):
    with pytest.raises(CaromError, match=r"free bodies: unknown method 'grid'.*; known: cma, least-squares"):
        identify_free(recordings, method="grid")
    with pytest.raises(CaromError, match="--fit must be at least 1, got 0"):
        identify_free(recordings, options=FreeOptions(fit=0))


def test_names_come_as_a_list_and_the_papers_eight_have_one():
    assert parameter_names(None) is None
    assert parameter_names(["friction", " gravity", ""]) == ("friction", "gravity")
    assert parameter_names(["table-ii", "friction", "gravity"]) == (*TABLE_II, "gravity")
