"""Folders of several groups of bodies: each recording is scaled with its own group's parameters, and headers say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from simulated_tosses import CALIBRATED, parameters_file, tosses

from carom import recipes
from carom.core.errors import CaromError
from carom.identify.parameter_files import parameter_files
from carom.identify.result import read as read_parameters
from carom.recordings import read, write
from carom.scale import calibration, load, scale, toss

LIGHT, HEAVY = CALIBRATED | {"friction": 0.1, "gravity": 9.7}, CALIBRATED | {"friction": 0.4, "length_scale": 1.02}


@pytest.fixture
def two_groups(tmp_path: Path) -> Path:
    """Tosses 0 and 1 of a light cube, 2 to 4 of a heavy one."""
    recordings = read(tosses(tmp_path / "one"))
    heavy = {"cube": replace(recordings.bodies["cube"], mass=1.5)}
    later = tuple(replace(t, bodies=heavy) for t in recordings.trajectories[2:])
    write(tmp_path / "lab", replace(recordings, trajectories=recordings.trajectories[:2] + later))
    return tmp_path / "lab"


def identified(out: Path, lab: Path, *, groups: dict[str, tuple[dict[str, float], list[str]]]) -> Path:
    """What `carom identify LAB --out OUT` leaves behind."""
    for name, (values, used) in groups.items():
        found = read_parameters(parameters_file(out / name / "parameters.yaml", values))
        made_from = {"recordings": read(lab).made_from()}
        replace(found, extra={"recordings": used}).write(out / name, made_from=made_from)
    return out


@pytest.fixture
def out(tmp_path: Path, two_groups: Path) -> Path:
    both = {"toss_0": (LIGHT, ["toss_0.csv"]), "toss_2": (HEAVY, ["toss_3.csv", "toss_4.csv"])}
    return identified(tmp_path / "fit", two_groups, groups=both)


def scaled(tmp_path: Path, scene: Path | str, params: Path, **options: object) -> recipes.ScaleResult:
    wanted = recipes.ScaleOptions(params=params, duration=0.05, **options)  # type: ignore[arg-type]
    return recipes.scale(tmp_path / "data", scene, options=wanted, count=24, threads=1)


def said_of(result: recipes.ScaleResult) -> list[str]:
    return [line for line in result.notes() if line.startswith("note: ")]


def test_each_recording_is_scaled_with_its_own_parameters(tmp_path: Path, two_groups: Path, out: Path) -> None:
    result = scaled(tmp_path, two_groups, out, size=(1.0, 1.0), aspect=1.0, mass=(1.0, 1.0))
    assert not said_of(result)
    data = load(tmp_path / "data")
    assert data.parameter_names == ("friction", "stiffness", "damping", "gravity", "length_scale")
    seen = set()
    for t in data:
        light = t.source in ("toss_0.csv", "toss_1.csv")
        assert dict(t.parameters) == (LIGHT if light else HEAVY)
        assert t.gravity == (9.7 if light else 9.81)
        assert t.bodies[0].mass == pytest.approx(0.37 if light else 1.5)
        np.testing.assert_allclose(t.bodies[0].solid.extent, 0.1 if light else 0.102)
        seen.add(t.source)
    assert seen == {f"toss_{i}.csv" for i in range(5)}
    stated = data.header["parameters"]
    assert stated["values"]["friction"] == {"value": None, "unit": "1", "interval": [0.1, 0.4]}
    assert [g["recordings"] for g in stated["groups"]] == [
        ["toss_0.csv", "toss_1.csv"],
        ["toss_2.csv", "toss_3.csv", "toss_4.csv"],
    ]
    assert stated["groups"][1]["values"]["friction"]["value"] == 0.4
    assert data.header["gravity"] == [9.7, 9.81]
    assert data.header["made_from"]["parameters"]["name"] == "fit"


def test_the_same_with_each_groups_file_alone(tmp_path: Path, two_groups: Path, out: Path) -> None:
    """A trajectory of a group is the one that its own parameters give, whatever the others are."""
    scaled(tmp_path / "both", two_groups, out)
    for name, sources in (("toss_0", ("toss_0.csv", "toss_1.csv")), ("toss_2", ("toss_2.csv", "toss_3.csv"))):
        result = scaled(tmp_path / name, two_groups, out / name)
        (note,) = said_of(result)
        assert "1 of 2 groups of bodies move by parameters that were identified from others" in note
        same = 0
        for one, other in zip(load(tmp_path / "both" / "data"), load(tmp_path / name / "data"), strict=True):
            assert one.source == other.source
            if one.source in sources:
                np.testing.assert_array_equal(one.position, other.position)
                same += 1
        assert same > 5


def test_groups_without_parameters_are_left_out_and_named(tmp_path: Path, two_groups: Path) -> None:
    others = {"toss_0": (LIGHT, ["toss_0.csv"]), "elsewhere": (HEAVY, ["another.csv"])}
    result = scaled(tmp_path, two_groups, identified(tmp_path / "fit", two_groups, groups=others))
    assert {t.source for t in load(tmp_path / "data")} == {"toss_0.csv", "toss_1.csv"}
    assert "note: toss_2.csv was left out: no parameters were identified from its bodies" in result.notes()


def test_a_scene_wants_one_of_them(tmp_path: Path, two_groups: Path, out: Path) -> None:
    with pytest.raises(CaromError) as refused:
        scaled(tmp_path, "toss", out)
    said = f"{out} holds the parameters of 2 groups of bodies (toss_0, toss_2); choose one: --params {out / 'toss_0'}"
    assert str(refused.value) == said
    scaled(tmp_path, "toss", out / "toss_0")
    only = identified(tmp_path / "only", two_groups, groups={"toss_2": (HEAVY, ["toss_3.csv"])})
    assert parameter_files(only) == (only / "toss_2" / "parameters.yaml",)  # the others showed nothing


def test_parameters_of_other_recordings_and_of_two_runs_are_refused(
    tmp_path: Path, two_groups: Path, out: Path
) -> None:
    other = tosses(tmp_path / "other", 3)
    with pytest.raises(CaromError, match=r"identified from other recordings \('lab', not 'other'\)"):
        scaled(tmp_path, other, out)
    with pytest.raises(CaromError, match=r"identified from other recordings \('lab', not 'other'\)"):
        recipes.suggest(other, params=out)
    two_groups.rename(tmp_path / "moved")  # the same content under another name is fine
    scaled(tmp_path, tmp_path / "moved", out)
    parameters_file(out / "parameters.yaml", LIGHT)
    with pytest.raises(CaromError, match=r"holds parameters.yaml and those of groups \(toss_0, toss_2\), of different"):
        parameter_files(out)


def test_suggestions_are_made_for_each_group(tmp_path: Path, two_groups: Path, out: Path) -> None:
    result = recipes.suggest(two_groups, params=out, count=1, threads=1)
    assert [group.title for group in result.groups] == ["toss_0.csv", "toss_3.csv and 1 more"]
    assert not result.identified_now


def test_gravity_has_one_truth(tmp_path: Path) -> None:
    params = parameters_file(tmp_path / "p.yaml", CALIBRATED | {"gravity": 9.6}, width=0.01)
    plain = scale(toss(duration=0.05), calibration(None), tmp_path / "plain", count=3).data
    fixed = scale(toss(duration=0.05), calibration(params), tmp_path / "fixed", count=3).data
    drawn = scale(toss(duration=0.05), calibration(params, spread=True), tmp_path / "drawn", count=20).data
    for data, stated in ((plain, 9.81), (fixed, 9.6)):
        assert data.header["gravity"] == stated
        assert {t.gravity for t in data} == {stated}
    low, high = drawn.header["gravity"]
    assert (low, high) == pytest.approx((9.504, 9.696))
    rows = [t.gravity for t in drawn]
    assert low <= min(rows) < max(rows) <= high


def test_parquet_readers_take_the_folder_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carom.scale.shards.SHARD", 2)
    recipes.scale(tmp_path / "data", "toss", options=recipes.ScaleOptions(duration=0.05), count=5, threads=1)
    table = pyarrow.parquet.read_table(tmp_path / "data")
    assert table["index"].to_pylist() == [0, 1, 2, 3, 4]
    assert load(tmp_path / "data")[4].position[-1].ravel().tolist() == table["position"][4].as_py()[-3:]
    (tmp_path / "data" / "_header.json").rename(tmp_path / "data" / "header.json")
    with pytest.raises(CaromError, match=r"header.json") as refused:
        load(tmp_path / "data")
    assert "\n" not in str(refused.value)
