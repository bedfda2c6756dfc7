"""An identification keeps its values on disk and refuses files that are not one."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import yaml

from carom.core.errors import CaromError
from carom.identify import Errors, Estimate, Identification, read
from carom.scenes.parameters import known


@pytest.fixture
def found() -> Identification:
    estimates = (
        Estimate("striker_friction", 0.25, "1", 0.2, 0.31, (0.05, 1.0), "identified", "its interval is narrow"),
        Estimate("com_x", -0.001, "m", -0.004, 0.004, (-0.004, 0.004), "weakly identified", "it is wide"),
    )
    return Identification(
        method="grid",
        scene="square",
        estimates=estimates,
        training=Errors(1e-4, 0.02, 1.0, 10),
        held_out=None,
        held_out_by="leave-one-out",
        evaluations=2500,
        failures=3,
        seconds=1.234,
        seed=7,
        notes=("one",),
        extra={"a": 1},
    )


def test_round_trip_through_yaml(found, tmp_path):
    path = found.write(tmp_path / "model")
    assert path.name == "parameters.yaml"
    assert read(path) == found
    assert read(path.parent) == found
    assert [p.name for p in path.parent.iterdir()] == ["parameters.yaml"]  # nothing half-written is left
    content = yaml.safe_load(path.read_text())
    assert content["parameters"]["com_x"]["unit"] == "m"
    assert {"carom", "mujoco", "numpy"} <= set(content["made_with"])
    json.dumps(found.to_dict(), allow_nan=False)


def test_values_follow_the_order_asked_for(found):
    order = [known("com_x"), known("striker_friction")]
    np.testing.assert_array_equal(found.values(order), [-0.001, 0.25])
    with pytest.raises(CaromError, match="unknown parameter 'ground_friction'"):
        found.values([known("ground_friction")])


def test_damaged_files_are_refused(found, tmp_path):
    path = found.write(tmp_path / "p.yaml")
    with pytest.raises(CaromError, match="does not exist"):
        read(tmp_path / "other.yaml")
    good = path.read_text()
    good = re.sub("header_sha256: .*", "header_sha256: edited", good)
    for text, message in (
        ("a: [", "line 1: not valid YAML"),
        ("a: 1", "expected format: carom-parameters/1"),
        (
            good.replace("value: 0.25", "value: null"),
            "key 'parameters.striker_friction.value': input should be a valid number",
        ),
        (good.replace("verdict: identified", "verdict: identifed"), "did you mean 'identified'"),
        (good.replace("effort:", "efort:"), "key 'effort' is missing"),
        (good.replace("effort:", "extra_effort: 1\neffort:"), "unknown key 'extra_effort'"),
    ):
        path.write_text(text)
        with pytest.raises(CaromError, match=message):
            read(path)


@pytest.mark.parametrize("key", ["bounds", "interval_90"])
def test_limits_are_two_numbers(found, tmp_path, key):
    path = found.write(tmp_path / "p.yaml")
    content = yaml.safe_load(path.read_text())
    content["parameters"]["striker_friction"][key] = []
    content["header_sha256"] = "edited"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(CaromError, match=rf"p\.yaml: key 'parameters\.striker_friction\.{key}"):
        read(path)
