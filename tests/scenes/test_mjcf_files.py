"""MJCF and mesh files of others: what they may ask for, and where their files may lie."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import trimesh

from carom.core.errors import SceneError
from carom.scenes import load_scene, mesh_files
from carom.scenes.mesh_files import MOST_CORNERS, hull_outline, load_mesh
from carom.scenes.scene import MjcfScene, mjcf_scene

BLOCK = '<body name="block"><freejoint/><geom type="box" size=".04 .04 .02" mass=".2"/></body>'
TOOL = '<body name="tool"><geom type="sphere" size=".02"/></body>'


def written(folder: Path, inside: str, *, after: str = "") -> Path:
    path = folder / "lab.xml"
    path.write_text(f"<mujoco>{after}<worldbody>{BLOCK}{TOOL}{inside}</worldbody></mujoco>")
    text = "format: carom-scene/1\nmjcf: lab.xml\nroles: {target: block, striker: tool}\n"
    (folder / "lab.yaml").write_text(text)
    return path


ASKED = {
    "height field": (
        '<asset><hfield name="h" nrow="20000" ncol="20000" size="1 1 1 1"/></asset>',
        "<hfield>: nrow x ncol: expected 4e+06 at most, got 4e+08",
    ),
    "texture": (
        '<asset><texture name="t" type="2d" builtin="flat" width="30000" height="30000"/></asset>',
        "<texture>: pixels: expected 4e+06 at most, got 9e+08",
    ),
    "memory": ('<size memory="100G"/>', "<size>: memory: expected 1e+09 at most"),
    "user data": ('<size nuserdata="900000000"/>', "<size>: nuserdata: expected 1e+06 at most"),
    "include": ('<include file="/etc/passwd"/>', "<include>: file '/etc/passwd' lies outside of the folder"),
    "mesh beside": (
        '<asset><mesh name="m" file="../x.stl"/></asset>',
        "<mesh>: file './../x.stl' lies outside of the folder",
    ),
    "folder of meshes": ('<compiler meshdir="/"/>', "<compiler>: file '/' lies outside of the folder"),
    "entities": ("<!DOCTYPE x>", "expected an MJCF without DOCTYPE and ENTITY"),
}


@pytest.mark.parametrize("kind", ASKED)
def test_what_an_mjcf_asks_for_is_bounded(kind: str, tmp_path: Path) -> None:
    snippet, message = ASKED[kind]
    path = written(tmp_path, "", after=snippet)
    for load in (lambda: load_scene(tmp_path / "lab.yaml"), lambda: mjcf_scene(path)):
        with pytest.raises(SceneError) as caught:
            load()
        assert f"MJCF file {path}" in str(caught.value)
        assert message in str(caught.value)


def test_copies_are_counted_together(tmp_path: Path) -> None:
    one = '<geom size=".01"/>'
    written(tmp_path, f'<replicate count="200"><replicate count="200">{one}</replicate></replicate>')
    with pytest.raises(SceneError, match=r"lab.xml: <replicate>: expected .* up to 10000 copies of one"):
        load_scene(tmp_path / "lab.yaml")
    written(tmp_path, f'<replicate count="3">{one}</replicate>')
    assert load_scene(tmp_path / "lab.yaml").mass == pytest.approx(0.2)


def test_a_picture_is_measured_before_it_is_unpacked(tmp_path: Path) -> None:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 50_000, 50_000)
    (tmp_path / "t.png").write_bytes(head + b"\x08\x02\0\0\0")
    written(tmp_path, "", after='<asset><texture name="t" type="2d" file="t.png"/></asset>')
    with pytest.raises(SceneError, match=r"<texture>: pixels of t.png: expected 4e\+06 at most, got 2.5e\+09"):
        load_scene(tmp_path / "lab.yaml")


def test_included_files_are_looked_over_too(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text('<mujoco><asset><hfield name="h" nrow="9999" ncol="9999"/></asset></mujoco>')
    written(tmp_path, "", after='<include file="part.xml"/>')
    with pytest.raises(SceneError, match=r"part.xml: <hfield>"):
        load_scene(tmp_path / "lab.yaml")


def test_refusals_of_mujoco_keep_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, '\n<geom type="sphere" size="x"/>')
    with pytest.raises(SceneError, match=r"lab.xml does not load: .*line 2") as caught:
        mjcf_scene(path)
    assert "\n" not in str(caught.value)
    path.write_text("<mujoco>")
    with pytest.raises(SceneError, match=r"lab.xml is not valid XML: .* line 1"):
        mjcf_scene(path)


def test_an_mjcf_that_does_not_compile_is_refused_at_the_door() -> None:
    with pytest.raises(SceneError, match=r"scene 'own' does not load: .*mass and inertia"):
        MjcfScene("own", xml="<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>")


TARGET = "target: {shape: box, size: [0.08, 0.08, 0.05], mass: 0.25}\nstriker: {radius: 0.02}\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "mass: 0.25",
            "mass: 0.25, inertia: [1, 1, 9]",
            "line 2: target: inertia [1.0, 1.0, 9.0] [kg m^2] is impossible",
        ),
        ("mass: 0.25", "mass: 1e-20", "line 2: target: body 'target': mass must be positive"),
        ("0.05]", "1e200]", "line 2: target: box: size must be three positive lengths in metres"),
        ("radius: 0.02", "radius: 1e-9", "line 3: striker: radius must be positive, got 1e-09"),
        ("radius: 0.02}", "radius: 0.02}\nbounds: []", "line 4: bounds: input should be a valid dictionary, got []"),
        ("radius: 0.02}", "radius: 0.02}\nspeed: [0.1, 1e300]", "speed must be two positive numbers"),
        ("shape: box, size: [0.08, 0.08, 0.05]", "shape: mesh, file: ../a.stl", "file '../a.stl' lies outside"),
        ("shape: box, size: [0.08, 0.08, 0.05]", f"shape: mesh, file: {'a' * 300}.stl", "a name of at most 200"),
        ("shape: box, size: [0.08, 0.08, 0.05]", f"{'shape' * 100}: box", "unknown key in target 'shapeshape"),
    ],
)
def test_scenes_that_no_engine_can_count_with_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert TARGET.count(old) == 1
    (tmp_path / "own.yaml").write_text("format: carom-scene/1\n" + TARGET.replace(old, new))
    with pytest.raises(SceneError) as caught:
        load_scene(tmp_path / "own.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("own.yaml")
    assert len(str(caught.value)) < 600


def test_meshes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cube = trimesh.creation.box((0.1, 0.1, 0.1))
    cube.export(tmp_path / "a.stl")
    cube.export(tmp_path / "a.ply")
    with pytest.raises(SceneError, match=r"a.ply: expected .stl or .obj, got '.ply'"):
        load_mesh(tmp_path / "a.ply")
    (tmp_path / "far.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1e30 0\nf 1 2 3\n")
    with pytest.raises(SceneError, match=r"far.obj: expected finite corners within 1e\+06"):
        load_mesh(tmp_path / "far.obj")
    monkeypatch.setattr(mesh_files, "MOST_BYTES", 100)
    with pytest.raises(SceneError, match=r"a.stl has 0 MB; expected 0 at most: simplify it"):
        load_mesh(tmp_path / "a.stl")


def test_an_outline_of_very_many_corners_keeps_its_size() -> None:
    angle = np.linspace(0, 2 * np.pi, 5000, endpoint=False)
    outline = np.asarray(hull_outline(0.05 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)))
    assert len(outline) <= MOST_CORNERS
    x, y = outline.T
    assert np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2 == pytest.approx(np.pi * 0.05**2, rel=1e-4)
