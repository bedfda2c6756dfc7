"""`carom identify` on folders of pushes: with set-points, and with poses alone; what it writes opens in MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from recorded_pushes import poses_folder, servo_folder

from carom.core.errors import CaromError
from carom.identify.pushes.written import spec_with
from carom.identify.result import read as read_parameters
from carom.recipes import FreeOptions, StrikeOptions, identify
from carom.recipes.pushes import scene_of_pushes
from carom.recordings import read
from carom.scenes.pushing import GuidedScene, PushScene, push_scene

HELD = {"mass_scale": 1.0, "pressure_spread": 0.54}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return servo_folder(tmp_path_factory.mktemp("pushes") / "servo", 2)


def test_identify_writes_parameters_calibrated_mjcf_and_a_report(folder: Path, tmp_path: Path) -> None:
    options = FreeOptions(parameters=["ground_friction"], fixed=HELD)
    found = identify(folder, method="gauss-newton", bodies=options, out=tmp_path / "out", threads=1)
    assert found.kind == "pushes"
    assert {path.name for path in found.files} == {"parameters.yaml", "calibrated.xml", "report.html"}
    again = read_parameters(tmp_path / "out")
    assert again["ground_friction"].verdict in ("identified", "weakly identified")
    assert again["mass_scale"].verdict == "given"
    assert "told them again" in again.notes[0]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "calibrated.xml"))
    ground = [i for i in range(model.npair) if model.pair(i).name.startswith("ground")]
    np.testing.assert_allclose(model.pair_friction[ground, 0], again["ground_friction"].value, rtol=1e-3)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Identified from pushes" in page
    assert "evaluate" in page
    assert any("carom evaluate" in line for line in found.next_commands())


def test_which_scene_pushes_are_played_in(folder: Path, tmp_path: Path) -> None:
    recordings = read(folder)
    scene, why = scene_of_pushes(recordings)
    assert isinstance(scene, PushScene)
    assert (scene.name, scene.mass) == ("planar-cube", 0.2)
    other = tuple(
        replace(t, controls={name.replace("tool", "axis"): v for name, v in t.controls.items()})
        for t in recordings.trajectories
    )
    led, why = scene_of_pushes(replace(recordings, trajectories=other))
    assert isinstance(led, GuidedScene)
    assert why.startswith("the set-points (ctrl.*) or the block are not those of a scene that Carom has")
    assert "no set-points" in scene_of_pushes(read(poses_folder(tmp_path / "poses", 2)))[1]


def test_tuned_values_stand_in_the_written_mjcf() -> None:
    scene = push_scene("planar-cube")
    values = {"ground_friction": 0.21, "mass_scale": 1.5, "tool_offset_x": 0.004, "joint_friction": 0.05}
    values |= {"pressure_spread": 0.6, "actuator_delay": 0.03}
    model = mujoco.MjModel.from_xml_string(spec_with(scene, values).to_xml())
    assert model.body("block").mass[0] == pytest.approx(0.3)
    assert model.geom("tool").pos[0] == pytest.approx(0.004)
    assert model.geom("foot_0").pos[0] == pytest.approx(0.6 * 0.03)
    assert model.joint("tool_x").frictionloss[0] == pytest.approx(0.05 * 20)
    assert model.pair("ground-foot_0").friction[0] == pytest.approx(0.21)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"strikes": StrikeOptions(settle=0.1)},
            "--model and --settle are for strikes; these are recordings of pushes",
        ),
        ({"bodies": FreeOptions(fit=3)}, "--fit, --refine-starts and --graph are for free bodies"),
        ({"method": "grid"}, "recordings of pushes: unknown method 'grid'"),
        ({"bodies": FreeOptions(parameters=["friction"])}, "unknown parameter of scene 'planar-cube' 'friction'"),
        ({"bodies": FreeOptions(fixed={"mass_scale": 9.0})}, "fixed parameter 'mass_scale' must lie from 0.5 to 2"),
    ],
)
def test_wrong_options_are_refused(folder: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(CaromError, match=message):
        identify(folder, **options)  # type: ignore[arg-type]
