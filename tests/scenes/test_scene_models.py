"""Targets from MJCF and mesh files: geometry and mass properties read right, what is not convex refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh

from carom.core.errors import SceneError
from carom.scenes import load_scene, scene_from_bodies, scene_from_dict, scene_to_dict
from carom.scenes.meshes import mesh_body, top_view_share
from carom.scenes.mjcf import bodies_from_mjcf, strike_spec
from carom.scenes.shapes import Body, Shape

ROLES = {"target": "block", "striker": "paddle"}
PADDLE = '<body name="paddle"><geom type="box" size=".01 .03 .02"/></body>'
L_SHAPE = np.array([[0, 0], [0.1, 0], [0.1, 0.03], [0.03, 0.03], [0.03, 0.1], [0, 0.1]])


def mjcf(folder: Path, block: str, paddle: str = PADDLE) -> Path:
    path = folder / "own.xml"
    path.write_text(f"<mujoco><worldbody><body name='block'>{block}</body>{paddle}</worldbody></mujoco>")
    return path


def scene_file(folder: Path, text: str) -> Path:
    path = folder / "own.yaml"
    path.write_text("format: carom-scene/1\n" + text)
    return path


def prism(outline: np.ndarray, height: float) -> trimesh.Trimesh:
    """An upright prism over an outline that the corner `outline[0]` sees all of."""
    count = len(outline)
    vertices = np.concatenate([np.c_[outline, np.full(count, z)] for z in (-height / 2, height / 2)])
    faces = [[0, i + 1, i] for i in range(1, count - 1)] + [
        [count, count + i, count + i + 1] for i in range(1, count - 1)
    ]
    for i in range(count):
        j = (i + 1) % count
        faces += [[i, j, count + j], [i, count + j, count + i]]
    return trimesh.Trimesh(vertices, faces)


def stl(folder: Path, mesh: trimesh.Trimesh, name: str = "part.stl") -> Path:
    mesh.export(folder / name)
    return folder / name


def test_mjcf_with_roles_becomes_a_scene(tmp_path: Path) -> None:
    mjcf(tmp_path, "<freejoint/><geom type='box' size='.05 .04 .02' mass='.3'/>")
    roles = "roles: {target: block, striker: paddle}\n"
    scene = load_scene(scene_file(tmp_path, f"mjcf: own.xml\n{roles}unknown: {{com_x: [-0.01, 0.01]}}\n"))
    assert scene.mass == pytest.approx(0.3)
    assert scene.shape.full_height == pytest.approx(0.04)
    assert scene.gyration_radius == pytest.approx(np.sqrt((0.1**2 + 0.08**2) / 12))
    assert scene.striker.width == pytest.approx(0.06)
    assert scene.striker.mass is None  # no joint: held stiffly
    assert [p.name for p in scene.unknown] == ["com_x"]
    assert scene_from_dict(scene_to_dict(scene)) == scene


def test_mjcf_inertia_is_about_the_vertical_whatever_order_mujoco_keeps(tmp_path: Path) -> None:
    # two boxes side by side: MuJoCo diagonalises and puts the largest value, the vertical one, first
    boxes = "".join(f"<geom type='box' size='.02 .04 .01' pos='{x} 0 0' mass='.1'/>" for x in (-0.02, 0.02))
    block = bodies_from_mjcf(mjcf(tmp_path, "<freejoint/>" + boxes), ROLES)["target"]
    assert block.gyration_radius == pytest.approx(0.08 * np.sqrt(2 / 12))


def test_mjcf_geoms_for_the_eye_only_do_not_collide(tmp_path: Path) -> None:
    hull = "<geom type='box' size='.5 .5 .5' contype='0' conaffinity='0' mass='0'/>"
    geoms = hull + "<geom type='cylinder' size='.05 .02' mass='.1'/>"
    block = bodies_from_mjcf(mjcf(tmp_path, "<freejoint/>" + geoms), ROLES)["target"]
    assert block.shape == Shape("cylinder", radius=0.05, height=0.04)


def test_mjcf_cylinder_on_its_side_is_a_rectangle_from_above(tmp_path: Path) -> None:
    geom = "<freejoint/><geom type='cylinder' size='.03 .05' euler='0 90 0' mass='.1'/>"
    block = bodies_from_mjcf(mjcf(tmp_path, geom), ROLES)["target"]
    assert block.shape is not None
    np.testing.assert_allclose(np.ptp(block.shape.planar_outline, axis=0), [0.1, 0.06], atol=1e-9)


@pytest.mark.parametrize(
    ("block", "paddle", "message"),
    [
        ("<geom size='1'/>", PADDLE, "own.yaml, line 2: body 'block' of the MJCF has no joint: a target must be free"),
        ("<freejoint/><geom size='1'/>", "", "own.yaml, line 2: roles: unknown body 'paddle'; known: block"),
        ("<freejoint/><gem/>", PADDLE, "own.yaml, line 2: MJCF file "),
        (
            "<freejoint/><geom type='box' size='.05 .0125 .01'/><geom type='box' size='.0125 .05 .01'/>",
            PADDLE,
            "own.yaml, line 2: body 'block' is not convex seen from above: it fills 61 % of its convex hull; "
            "keep the one convex geom that is struck, or give the outline of the part that is struck",
        ),
        (
            "<freejoint/><geom type='box' size='.05 .05 .01'/>",
            "<body name='paddle'><geom size='.01' pos='.1 0 0'/></body>",
            "own.yaml, line 2: body 'paddle': its round geom stands 0.1 m off the body's origin; move the body there",
        ),
    ],
)
def test_mjcf_that_cannot_be_struck(block: str, paddle: str, message: str, tmp_path: Path) -> None:
    mjcf(tmp_path, block, paddle)
    with pytest.raises(SceneError) as error:
        load_scene(scene_file(tmp_path, "mjcf: own.xml\nroles: {target: block, striker: paddle}\n"))
    assert str(error.value).startswith(message)


def test_mjcf_needs_roles_and_both_of_them(tmp_path: Path) -> None:
    path = mjcf(tmp_path, "<freejoint/><geom type='box' size='.05 .05 .01'/>")
    with pytest.raises(SceneError, match=r"^own.yaml, line 2: key 'roles' is missing; add"):
        load_scene(scene_file(tmp_path, "mjcf: own.xml\n"))
    with pytest.raises(SceneError, match=r"^own.yaml, line 3: key 'roles.striker' is missing; add it$"):
        load_scene(scene_file(tmp_path, "mjcf: own.xml\nroles: {target: block}\n"))
    with pytest.raises(
        SceneError, match=r"^own.xml is an MJCF, and a scene needs to know who strikes whom; write own.yaml"
    ):
        load_scene(path)


def test_mesh_target_keeps_the_mass_properties_of_its_solid(tmp_path: Path) -> None:
    cone = trimesh.creation.cone(0.05, 0.1, sections=96)
    cone.apply_translation([0.01, 0.02, 0])
    stl(tmp_path, cone)
    target = "target: {shape: mesh, file: part.stl, mass: 0.2}\nstriker: {radius: 0.02}\n"
    scene = load_scene(scene_file(tmp_path, target))
    assert scene.gyration_radius == pytest.approx(0.05 * np.sqrt(0.3), rel=2e-3)  # a disc's would be sqrt(1/2)
    np.testing.assert_allclose(scene.target.planar_com, [0.01, 0.02], atol=1e-6)
    assert scene.shape.full_height == pytest.approx(0.1)
    assert strike_spec(scene).compile().body("target").mass[0] == pytest.approx(0.2)
    assert scene_from_dict(scene_to_dict(scene)) == scene


def test_mesh_in_millimetres_is_noticed_and_scaled(tmp_path: Path) -> None:
    path = stl(tmp_path, trimesh.creation.box((80, 40, 30)))
    with pytest.raises(SceneError) as error:
        mesh_body(path, mass=0.2)
    assert str(error.value) == "mesh part.stl is 80 m long; if the file is in millimetres, add 'scale: 0.001'"
    body = mesh_body(path, mass=0.2, scale=0.001)
    assert body.gyration_radius == pytest.approx(np.hypot(0.08, 0.04) / np.sqrt(12))


def test_mesh_that_is_hollow_from_above_is_refused_by_name(tmp_path: Path) -> None:
    path = stl(tmp_path, prism(L_SHAPE, 0.05), "hook.stl")
    wanted = (
        "hook.stl is not convex seen from above: it fills 68 % of its convex hull; add 'part: 1' to strike its "
        "largest convex part, or give the outline of the part that is struck (shape: extruded)"
    )
    with pytest.raises(SceneError) as error:
        load_scene(scene_file(tmp_path, "target: {shape: mesh, file: hook.stl, mass: 0.2}\nstriker: {radius: 0.02}\n"))
    assert str(error.value) == f"own.yaml, line 2: target: mesh {wanted}"
    bodies = [
        Body("hook", "target", Shape("mesh", file=str(path)), 0.2),
        Body("s", "striker", Shape("disc", radius=0.1)),
    ]
    with pytest.raises(SceneError) as error:
        scene_from_bodies(bodies)
    assert str(error.value) == f"mesh {wanted}"


def test_part_of_a_mesh_is_struck_with_the_mass_of_the_whole(tmp_path: Path) -> None:
    pytest.importorskip("coacd")
    path = stl(tmp_path, prism(L_SHAPE, 0.05))
    body = mesh_body(path, mass=0.2, part=1)
    extent = np.sort(np.ptp(np.asarray(body.shape.outline), axis=0))  # type: ignore[union-attr]
    assert extent[0] == pytest.approx(0.03, abs=0.005)  # one leg of the hook
    whole = 0.03 * 0.1 + 0.07 * 0.03
    centroid = (0.03 * 0.1 * 0.05 + 0.03 * 0.07 * 0.015) / whole
    np.testing.assert_allclose(body.planar_com, [centroid, centroid], atol=1e-6)
    with pytest.raises(
        SceneError, match=r"^mesh part.stl splits into \d convex parts, largest first; there is no part 9$"
    ):
        mesh_body(path, mass=0.2, part=9)


@pytest.mark.parametrize("name", ["ring", "cup"])
def test_hollows_that_no_striker_meets_are_fine(name: str) -> None:
    ring = trimesh.creation.annulus(0.03, 0.05, 0.04)
    cup = trimesh.util.concatenate([ring, trimesh.creation.cylinder(0.05, 0.005)])
    mesh = {"ring": ring, "cup": cup}[name]
    assert mesh.volume < 0.9 * mesh.convex_hull.volume
    assert top_view_share(mesh.vertices[mesh.faces][..., :2]) > 0.99


def test_share_of_the_hull_is_an_area() -> None:
    mesh = prism(L_SHAPE, 0.05)
    hull_area = 0.1**2 - 0.07**2 / 2
    assert top_view_share(mesh.vertices[mesh.faces][..., :2]) == pytest.approx(0.0051 / hull_area, abs=0.004)


def test_bare_mesh_says_which_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(SceneError) as error:
        load_scene(stl(tmp_path, trimesh.creation.box((0.1, 0.1, 0.1))))
    assert str(error.value) == (
        "part.stl is a mesh, and a scene needs a mass and a striker too; write part.yaml beside it: {format: "
        "carom-scene/1, target: {shape: mesh, file: part.stl, mass: 0.2}, striker: {shape: sphere, radius: 0.02}}"
    )
    (tmp_path / "broken.obj").write_text("nothing")
    with pytest.raises(SceneError, match=r"^mesh file .*broken.obj (cannot be read|holds no triangles)"):
        mesh_body(tmp_path / "broken.obj", mass=1.0)
    with pytest.raises(SceneError, match=r"^mesh file .*none.stl does not exist$"):
        mesh_body(tmp_path / "none.stl", mass=1.0)
