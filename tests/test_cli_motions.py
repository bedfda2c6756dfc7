"""`carom identify` on tosses, as a user types it: files, JSON, and one line for every mistake."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import mujoco
import pytest
import trimesh
from free_recordings import TRUTH, flights, tosses_folder

from carom.cli import main
from carom.identify.tosses import search as motion_search
from carom.identify.tosses.search import Budget
from carom.recordings import read, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tosses_folder(tmp_path_factory.mktemp("tosses"), 6, seed=1)


@pytest.fixture
def carom(monkeypatch, capsys):
    """The command in this process, with a search that ends soon: exit code, stdout and stderr."""
    monkeypatch.setattr(motion_search, "Budget", lambda: Budget(first=2, sides=4, last=2, population=6))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["carom", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_a_folder_of_tosses_becomes_a_calibrated_scene(carom, folder, tmp_path):
    out = tmp_path / "out"
    code, said, err = carom("identify", folder, "--fit", 4, "--out", out, "--threads", 1, "--json", "-")
    assert code == 0, err
    found = json.loads(said)  # stdout holds the JSON and nothing else
    assert set(found["parameters"]) == set(TRUTH)
    assert {p.name for p in out.iterdir()} == {"parameters.yaml", "calibrated.xml", "report.html"}
    model = mujoco.MjModel.from_xml_path(str(out / "calibrated.xml"))
    gravity = found["parameters"]["gravity"]["value"]
    assert model.opt.gravity[2] == pytest.approx(-gravity, rel=1e-6)
    assert gravity == pytest.approx(TRUTH["gravity"], rel=0.02)
    assert model.npair == 4  # the cube, and its three pairs of faces
    assert (out / "report.html").read_text().lstrip().lower().startswith("<!doctype html>")


def test_a_table_is_printed_with_units_intervals_and_errors(carom, folder):
    code, said, err = carom(
        "identify",
        folder,
        "--fit",
        3,
        "--parameters",
        "friction,gravity",
        "--fix",
        "stiffness=12000",
        "--fix",
        "damping=90",
        "--threads",
        1,
    )
    assert code == 0, err
    for words in ("cma", "90 % interval", "m/s^2", "3 unseen recordings", "restitution", "given"):
        assert words in said, words


def test_bodies_that_show_nothing_are_named_and_the_others_kept(carom, folder, tmp_path):
    recordings = read(folder)
    both = replace(recordings, trajectories=flights(recordings, 2) + recordings.trajectories[2:5])
    write(tmp_path / "both", both)
    asked = ("identify", tmp_path / "both", "--parameters", "friction", "--fix", "stiffness=12000", "--threads", 1)
    code, said, err = carom(*asked, "--out", tmp_path / "out")
    assert code == 0, err
    assert "toss_00.csv and others of its bodies were passed over: " in err
    assert "it shows no contact: nothing lands" in " ".join(err.split())
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["toss_02"]
    assert "friction" in said


def test_recordings_without_contact_are_named_and_the_others_kept(carom, folder, tmp_path):
    """Of the same bodies: two of five only fly."""
    recordings = read(folder)
    cube = recordings.trajectories[0].bodies
    flying = tuple(replace(t, bodies=cube) for t in flights(recordings, 2))
    write(tmp_path / "some", replace(recordings, trajectories=flying + recordings.trajectories[2:5]))
    asked = ("--parameters", "friction", "--fix", "stiffness=12000", "--fix", "damping=90", "--threads", 1)
    code, _, err = carom("identify", tmp_path / "some", *asked, "--json", tmp_path / "found.json")
    assert code == 0, err
    why = "it shows no contact: nothing lands, and no two bodies meet"
    for name in ("toss_00.csv", "toss_01.csv"):
        assert f"{name} was left out: {why}" in " ".join(err.split())
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["extra"]["left_out"] == {"toss_00.csv": why, "toss_01.csv": why}
    assert found["extra"]["recordings"] == ["toss_02.csv", "toss_03.csv", "toss_04.csv"]


def test_recordings_of_flights_alone_are_refused(carom, folder, tmp_path):
    recordings = read(folder)
    write(tmp_path / "flights", replace(recordings, trajectories=flights(recordings, 3)))
    code, said, err = carom("identify", tmp_path / "flights", "--out", tmp_path / "out")
    assert code == 2
    assert "it shows no contact: nothing lands, and no two bodies meet" in err
    assert not said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--method", "grid"), "recordings of free bodies: unknown method 'grid'"),
        (("--method", "cmaes"), "unknown method 'cmaes' (did you mean 'cma'?)"),
        (("--fix", "friction"), "--fix: expected NAME=VALUE with a number, got 'friction'"),
        (("--fix", "friction=low"), "--fix: expected NAME=VALUE with a number, got 'friction=low'"),
        (("--fix", "mu=0.2"), "unknown parameter 'mu'"),
        (("--fix", "friction=-1"), "fixed parameter 'friction' must lie from 0 to 1 [1], got -1"),
        (("--fix", "friction=1e300"), "fixed parameter 'friction' must lie from 0 to 1 [1], got 1e+300"),
        (("--fix", "friction=nan"), "fixed parameter 'friction' must be a finite number [1], got nan"),
        (("--fix", "gravity=0"), "fixed parameter 'gravity' must lie from 9.2 to 10.2 [m/s^2], got 0"),
        (("--fix", "stiffness=0"), "fixed parameter 'stiffness' must lie from 200 to 300000 [1/s^2], got 0"),
        (("--fix", "damping=2900"), "fixed parameter 'damping' must lie from 2 to 1184 [1/s], got 2900"),
        (("--parameters", "frction"), "unknown parameter 'frction' (did you mean 'friction'?)"),
        (("--parameters", "stiffness,damping_ratio"), "stiffness and damping are one form of solref"),
        (("--fit", "0"), "Invalid value for '--fit'"),
        (("--model", "base"), "--model and --settle are for strikes; these are recordings of free bodies"),
        (("--settle", "0.05"), "--model and --settle are for strikes; these are recordings of free bodies"),
        (("--parameters", "mass_scale"), "none of these moves anything"),
    ],
)
def test_mistakes_end_in_one_line_and_code_two(carom, folder, wrong, message):
    code, said, err = carom("identify", folder, *wrong)
    assert code == 2
    assert message in err
    last = err.strip().splitlines()[-1]
    assert last.startswith("carom: ")
    assert message in last
    assert "Traceback" not in err
    assert not said


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--mesh", "lump.stl", "--density", "0"), "--density: expected from 1 to 30000 kg/m^3, got 0"),
        (("--mesh", "lump.stl", "--density", "nan"), "'--density': expected a number from -1e+06 to 1e+06, got nan"),
        (("toss", "--aspect", "1e300"), "'--aspect': expected a number from -1e+06 to 1e+06, got 1e+300"),
        (("toss", "--aspect", "0"), "--aspect: expected a factor from 1 to 10, got 0"),
        (("toss", "--size", "0", "1"), "--size: expected two factors from 0.01 to 100, lower first, got 0 1"),
        (("toss", "--mass", "1", "1e9"), "'--mass': expected a number from -1e+06 to 1e+06, got 1e+09"),
        (("toss", "--rate", "0"), "--rate: expected samples per second from 1 to 10000, got 0"),
        (("toss", "--duration", "0"), "--duration: expected more than 0 and up to 60 s, got 0"),
        (("toss", "--count", "1" + 30 * "0"), "'--count': expected at most 1,000,000,000, got a number of 31 digits"),
    ],
)
def test_nonsense_numbers_are_refused_with_their_bounds(carom, tmp_path, wrong, message):
    trimesh.creation.icosahedron().apply_scale(0.05).export(tmp_path / "lump.stl")
    given = [str(tmp_path / word) if word == "lump.stl" else word for word in wrong]
    code, said, err = carom("scale", *given, "--out", tmp_path / "out")
    assert code == 2
    assert message in err.strip().splitlines()[-1]
    assert "Traceback" not in err
    assert not said
    assert not (tmp_path / "out").exists()


def test_a_graph_simulator_is_trained_corrected_and_tried(carom, folder, tmp_path):
    """The way of docs/graph.md, with few trajectories and a short training."""
    fit, data, model = tmp_path / "fit", tmp_path / "data", tmp_path / "model"
    how = ("identify", folder, "--fit", 4, "--parameters", "friction,gravity", "--threads", 1)
    how += ("--fix", "stiffness=12000", "--fix", "damping=90")
    assert carom(*how, "--out", fit)[0] == 0
    code, _, err = carom("scale", folder, "--params", fit, "--count", 30, "--out", data, "--threads", 1)
    assert code == 0, err
    code, said, err = carom("train-graph", data, "--out", model, "--updates", 12)
    assert code == 0, err
    assert "held-out rollouts" in said
    assert (model / "graph.json").is_file()
    code, said, err = carom(*how, "--graph", model, "--out", fit)
    assert code == 0, err
    assert "the same, by the graph simulator, corrected" in said
    assert "correction of the graph simulator" in said
    assert (fit / "graph" / "graph.json").is_file()
    code, said, err = carom("identify", folder, "--graph", fit)
    assert (code, said) == (2, "")
    assert "holds no graph simulator (graph.json is missing); make one with: carom train-graph" in err
