"""Scenes by name, from files and back; every refusal with its exact message."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from carom.core.errors import SceneError
from carom.scenes import load_scene, save_scene, scene_from_bodies, scene_from_dict, scene_to_dict
from carom.scenes.parameters import known, with_bounds
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import BUILTIN, Striker, StrikeScene, builtin

BLOCK = """\
format: carom-scene/1
name: my-block
units: {length: mm, angle: deg}
target: {shape: extruded, outline: [[-40, -20], [40, -20], [0, 40]], height: 50, mass: 0.2}
striker: {width: 40, forward: 90, mass: 2.0}
unknown: {face_width: [10, 80], face_tilt: [-6, 6], com_x: [-5, 5]}
bounds: {striker_friction: [0.05, 0.8]}
speed: [0.3, 0.7]
deflection: 15
"""


def write(folder: Path, text: str, name: str = "block.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(SceneError) as error:
        load_scene(write(folder, text))
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_scenes_survive_the_round_trip(name: str, tmp_path: Path) -> None:
    scene = load_scene(name)
    assert scene == builtin(name)
    assert scene_from_dict(json.loads(json.dumps(scene_to_dict(scene)))) == scene
    save_scene(scene, tmp_path / "scene.yaml")
    assert load_scene(tmp_path / "scene.yaml") == scene


def test_a_scene_with_everything_set_survives_the_round_trip() -> None:
    target = Body("t", "target", Shape("disc", radius=0.0333), 0.123, (1e-5, 1.1e-5, 1.7e-5), (0.001, -0.002, 0.0))
    unknown = (with_bounds("com_x", (-1 / 300, 1 / 70)), replace(known("striker_mass"), default=7.7))
    scene = StrikeScene(
        "all",
        target,
        Striker(radius=0.1 / 3, height=0.05, mass=2 / 3),
        unknown,
        (with_bounds("restitution", (0.1, 0.7)),),
        speed=(0.1, 0.9),
        deflection=0.123,
        face_angle=0.01,
    )
    assert scene_from_dict(json.loads(json.dumps(scene_to_dict(scene)))) == scene


def test_units_of_a_file_are_converted(tmp_path: Path) -> None:
    scene = load_scene(write(tmp_path, BLOCK))
    assert scene.name == "my-block"
    np.testing.assert_allclose(scene.outline.vertices, [[-0.04, -0.02], [0.04, -0.02], [0.0, 0.04]])
    assert scene.shape.full_height == pytest.approx(0.05)
    assert scene.striker.width == pytest.approx(0.04)
    assert scene.striker.forward == pytest.approx(np.pi / 2)
    assert scene.striker.mass == 2.0
    assert scene.deflection == pytest.approx(np.pi / 12)
    assert scene.speed == (0.3, 0.7)
    limits = {p.name: (p.low, p.high) for p in scene.unknown}
    assert limits["face_width"] == pytest.approx((0.01, 0.08))
    assert limits["face_tilt"] == pytest.approx((-np.pi / 30, np.pi / 30))
    assert scene.parameters()[0].high == 0.8


@pytest.mark.parametrize(
    ("stated", "striker"),
    [
        ("{radius: 20}", Striker(radius=0.02)),  # as older files have it
        ("{width: 40, forward: 90, mass: 2}", Striker(width=0.04, mass=2.0, forward=np.pi / 2)),
        ("{shape: cylinder, radius: 20, height: 40}", Striker(radius=0.02)),
        ("{shape: sphere, radius: 20}", Striker(radius=0.02)),
        ("{shape: disc, diameter: 40, height: 40}", Striker(radius=0.02)),
        ("{shape: face, width: 40, forward: y}", Striker(width=0.04, forward=np.pi / 2)),
        ("{shape: face, width: 40, forward: [0, 3, 0]}", Striker(width=0.04, forward=np.pi / 2)),
        ("{shape: box, size: [10, 30, 40]}", Striker(width=0.03)),
        ("{shape: box, size: [10, 30, 40], forward: -y}", Striker(width=0.01, forward=-np.pi / 2)),
    ],
)
def test_a_striker_is_stated_as_a_body_of_recordings_is(stated: str, striker: Striker, tmp_path: Path) -> None:
    lines = BLOCK.replace("face_width: [10, 80], face_tilt: [-6, 6], ", "").splitlines()
    lines[4] = f"striker: {stated}"
    found = load_scene(write(tmp_path, "\n".join(lines))).striker
    assert found.flat == striker.flat
    for key in ("radius", "width", "height", "mass", "forward"):
        assert getattr(found, key) == pytest.approx(getattr(striker, key)), key


def test_a_file_without_a_name_takes_its_own(tmp_path: Path) -> None:
    assert load_scene(write(tmp_path, BLOCK.replace("name: my-block\n", ""))).name == "block"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "deflection: 15",
            "defletion: 15",
            "block.yaml, line 9: unknown key 'defletion' (did you mean 'deflection'?); known: format",
        ),
        ("mass: 0.2}", "}", "block.yaml, line 4: key 'target.mass' is missing; add it"),
        ("mass: 0.2}", "mas: 0.2}", "block.yaml, line 4: unknown key in target 'mas' (did you mean 'mass'?); known: "),
        ("width: 40,", "size: [1, 40, 3],", "block.yaml, line 5: striker: 'size' needs a 'shape' beside it"),
        ("width: 40,", "shape: box, width: 40,", "block.yaml, line 5: striker: shape box needs size"),
        ("{width: 40,", "{width: 40, com: [0, 0, 0],", "block.yaml, line 5: striker: a scene's striker is known"),
        ("forward: 90", "forward: z", "block.yaml, line 5: striker: forward: a scene's striker looks along the ground"),
        ("mass: 0.2}", "mass: 0.2, forward: x}", "block.yaml, line 4: target: 'forward' says where a striker looks"),
        ("shape: extruded", "shape: face", "block.yaml, line 4: target: only a striker can be a face"),
        (
            ", forward: 90",
            ", foward: 90",
            "block.yaml, line 5: unknown key in striker 'foward' (did you mean 'forward'?); known: shape, size",
        ),
        ("length: mm", "length: inch", "block.yaml, line 3: units.length: expected 'm', 'cm' or 'mm', got 'inch'"),
        ("carom-scene/1", "carom-scene/2", "block.yaml, line 1: expected format: carom-scene/1, got 'carom-scene/2'"),
        ("format: carom-scene/1\n", "", "block.yaml, line 1: expected format: carom-scene/1, got nothing"),
        (
            "shape: extruded",
            "shape: extrude",
            "block.yaml, line 4: target: unknown shape 'extrude' (did you mean 'extruded'?); known: box",
        ),
        (", height: 50", "", "block.yaml, line 4: target: shape extruded needs height"),
        (
            "mass: 0.2}",
            "mass: 0.2, radius: 3}",
            "block.yaml, line 4: target: shape extruded has no 'radius'; it takes: height, outline",
        ),
        (
            "mass: 0.2}",
            "mass: -0.2}",
            "block.yaml, line 4: target: body 'target': mass must be positive [kg], got -0.2",
        ),
        (
            "[0, 40]]",
            "[0, 40], [-5, -10]]",
            "block.yaml, line 4: target: extruded: outline is not convex at corner 4; split it into convex parts",
        ),
        (
            "width: 40,",
            "width: 40, radius: 3,",
            "block.yaml, line 5: striker: give either a radius (round) or a width (flat face), in metres",
        ),
        (
            "{width: 40,",
            "{radius: 40,",
            "block.yaml: scene 'my-block': 'face_width' needs a flat face, this striker is round",
        ),
        ("com_x: [", "com_xx: [", "block.yaml, line 6: unknown: unknown parameter 'com_xx' (did you mean 'com_x'?)"),
        (
            "[-5, 5]",
            "[5, -5]",
            "block.yaml, line 6: unknown: parameter 'com_x': bounds must be two numbers, lower first",
        ),
        ("[-5, 5]", "[5]", "block.yaml, line 6: unknown: 'com_x' needs [lower, upper], got [5.0]"),
        ("[-5, 5]", "[-5, 5, 6]", "block.yaml, line 6: unknown: 'com_x': the default 0.006 lies outside its bounds"),
        ("com_x:", "striker_friction:", "block.yaml, line 6: unknown: 'striker_friction' belongs under 'bounds'"),
        (
            "bounds: {striker_friction",
            "bounds: {face_offset",
            "block.yaml, line 7: bounds: 'face_offset' belongs under 'unknown'",
        ),
        (
            "[0.3, 0.7]",
            "[0.7, 0.3]",
            "block.yaml: scene 'my-block': speed must be two positive numbers, lower first, got (0.7, 0.3)",
        ),
        (
            "deflection: 15",
            "deflection: 95",
            "block.yaml, line 9: deflection must lie between 0 and a right angle, got 95",
        ),
        (
            "deflection: 15",
            "arc: [15, 165]",
            "block.yaml, line 9: arc is the range of strikes on a semi-cylinder; leave it out here",
        ),
        ("speed: [0.3, 0.7]", "speed: fast", "block.yaml, line 8: speed: input should be a valid tuple, got 'fast'"),
        ("speed: [0.3, 0.7]", "name: again", "block.yaml, line 8: key 'name' is there twice; keep one"),
        ("speed: [", "speed: ]", "block.yaml, line 8: not valid YAML: expected the node content, but found ']'"),
        (
            "units: {length: mm",
            "units: {length: m",
            "block.yaml, line 4: target is 80 m wide; if its lengths are millimetres, say so: 'units: {length: mm}'",
        ),
        (
            "target: {",
            "roles: {target: a, striker: b}\ntarget: {",
            "block.yaml, line 4: roles name bodies of an MJCF; add 'mjcf: file.xml' or leave them out",
        ),
        (
            "target: {",
            "mjcf: a.xml\ntarget: {",
            "block.yaml, line 5: the MJCF gives the target; keep either 'mjcf' or 'target'",
        ),
        (
            "carom-scene/1",
            "carom-recordings/1",
            "block.yaml holds recordings, not a scene; read them and derive their scene: ",
        ),
    ],
)
def test_mistakes_in_a_file_are_named_with_their_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert BLOCK.count(old) == 1
    assert refusal(tmp_path, BLOCK.replace(old, new)).startswith(message)


def test_files_that_are_no_scene_at_all(tmp_path: Path) -> None:
    assert refusal(tmp_path, "- 1\n") == (
        "block.yaml: expected a mapping that starts with 'format: carom-scene/1', got no mapping"
    )
    no_striker = "format: carom-scene/1\ntarget: {shape: disc, diameter: 0.1, mass: 1}\n"
    assert refusal(tmp_path, no_striker) == "block.yaml: key 'striker' is missing; add it, or 'mjcf' with 'roles'"


def test_names_and_paths_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SceneError) as error:
        load_scene("sqare")
    assert str(error.value) == (
        "unknown scene 'sqare' (did you mean 'square'?); known: semi-cylinder, square, triangle, box; "
        "or give a scene file (.yaml)"
    )
    with pytest.raises(SceneError, match=r"^scene file nowhere.yaml does not exist; built-in scenes: semi-cylinder"):
        load_scene("nowhere.yaml")
    with pytest.raises(SceneError, match=r"is a folder; give a scene file, or one of the built-in scenes: semi-"):
        load_scene(tmp_path)


def test_recordings_are_pointed_to_their_own_way_in(tmp_path: Path) -> None:
    write(tmp_path, "format: carom-recordings/1\nbodies: {}\n", "recordings.yaml")
    wanted = "holds recordings, not a scene; read them and derive their scene: "
    for what in (tmp_path, tmp_path / "recordings.yaml"):
        with pytest.raises(SceneError, match=wanted + r"scene_from_bodies\(carom.recordings.read\(folder\).bodies\)$"):
            load_scene(what)


def test_a_scene_is_derived_from_the_bodies_of_recordings() -> None:
    box = Body("box", "target", Shape("box", size=(0.232, 0.232, 0.232)), 0.4)
    tool = Body("tool", "striker", Shape("sphere", radius=0.0145), 4.4)
    scene = scene_from_bodies({"box": box, "tool": tool, "floor": Body("floor", "ground")}, forward=0.5)
    assert scene.name == "box-by-tool"
    assert scene.striker.flat
    assert scene.striker.forward == 0.5
    assert {"face_width", "face_tilt", "face_offset", "striker_mass"} <= {p.name for p in scene.unknown}
    puck = Body("puck", "striker", Shape("disc", radius=0.03), 0.02)
    assert scene_from_bodies([box, puck]).striker.radius == 0.03


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ([], "the recordings declare no target (role: target); they have nobody"),
        ([Body("a", "striker")], "the recordings declare no target (role: target); they have a: striker"),
        ([Body("a", "target"), Body("b", "target")], "a strike scene has one target, these recordings have 2: a, b"),
        (
            [Body("a", "target", Shape("disc"), 1.0), Body("b", "striker", Shape("disc", radius=0.1))],
            "body 'a': its diameter is not the same in all recordings, or not stated",
        ),
        ([Body("a", "target")], "body 'a' has no shape: a scene cannot be derived from these recordings"),
        (
            [Body("a", "target", Shape("disc", radius=1.0), 1.0)],
            "the recordings declare no striker with a shape: a strike scene needs one (role: striker)",
        ),
    ],
)
def test_bodies_that_make_no_scene(bodies: list[Body], message: str) -> None:
    with pytest.raises(SceneError) as error:
        scene_from_bodies(bodies)
    assert str(error.value) == message
