"""The calibrated MJCF as a user opens it: at rest, predictions unchanged, and solid for what is added."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import trimesh

from carom.scenes.free import FreeScene, cubes_scene, timestep, toss_scene
from carom.scenes.free_opened import REST, opened_spec
from carom.scenes.shapes import Body, Shape

CONTACT = {"friction": 0.2, "stiffness": 20_000.0, "damping": 80.0}
STEP = timestep(1 / 148)


def mesh_scene(folder):
    """A hull that does not stand as it is declared: it tips over first."""
    path = folder / "lump.obj"
    trimesh.creation.cone(radius=0.05, height=0.09, sections=7).apply_transform(
        trimesh.transformations.rotation_matrix(2.8, [1.0, 0.3, 0.0])
    ).export(path)
    return FreeScene("mesh", (Body("lump", "target", Shape("mesh", file=path), mass=0.3),), ground_height=-0.01)


def solids():
    ball = Body("ball", "target", Shape("sphere", radius=0.04), mass=0.2)
    can = Body("can", "target", Shape("cylinder", radius=0.03, height=0.1), mass=0.2, com=(0.001, 0.0, -0.01))
    return FreeScene("solids", (ball, can), ground_height=0.02)


def pucks():
    a = Body("a", "striker", Shape("disc", radius=0.025), mass=0.0146)
    b = Body("b", "target", Shape("disc", radius=0.0625), mass=0.0433)
    return FreeScene("pucks", (a, b), planar=True)


CUBE = {**CONTACT, "face_friction": 0.15, "com_offset": 0.006, "length_scale": 0.97, "gravity": 9.64}
CASES = {
    "cube": (lambda _: toss_scene(), CUBE),
    "soft cube": (lambda _: toss_scene(), {"friction": 0.3, "stiffness": 250.0, "damping": 3.0}),
    "leaning ground": (lambda _: toss_scene(), {**CONTACT, "tilt_x": 0.02, "tilt_y": -0.01}),
    "rounded cube": (lambda _: toss_scene(), {**CONTACT, "edge_radius": 0.01}),
    "cubes": (lambda _: cubes_scene(3), CUBE),
    "solids": (lambda _: solids(), CONTACT),
    "mesh": (mesh_scene, CONTACT),
    "pucks": (lambda _: pucks(), {**CONTACT, "length_scale": 1.05}),
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    make, values = CASES[request.param]
    return make(tmp_path), values


def as_written(scene, values):
    """The file's text, read as MuJoCo does."""
    spec = opened_spec(scene, values, step=STEP)
    spec.compile()
    return mujoco.MjSpec.from_string(spec.to_xml())


def places(model, data):
    return np.array(data.xpos[1:]), np.array(data.xmat[1:])


def test_it_stays_where_it_begins(case):
    scene, values = case
    model = as_written(scene, values).compile()
    assert model.nkey == 1
    assert model.key(0).name == REST
    for reset in (mujoco.mj_resetData, lambda m, d: mujoco.mj_resetDataKeyframe(m, d, 0)):
        data = mujoco.MjData(model)
        reset(model, data)
        mujoco.mj_forward(model, data)
        begin, highest, (at, frame) = np.array(data.xpos), 0.0, places(model, data)
        for _ in range(round(2.0 / model.opt.timestep)):
            mujoco.mj_step(model, data)
            highest = max(highest, float(np.abs(data.xpos - begin).max()))
        assert highest < 0.001
        np.testing.assert_allclose(places(model, data)[1], frame, atol=0.01)
        assert np.isfinite(at).all()
    if not scene.planar:  # nothing begins under the ground, but for what a soft contact gives way
        lows = [data.geom(body.name).xpos[2] for body in scene.bodies]
        assert min(lows) > scene.ground_height


def test_bodies_meet_as_they_did_without_it(case):
    scene, values = case
    plain = scene.spec_with(values, step=STEP).compile()
    opened = opened_spec(scene, values, step=STEP).compile()
    rng, paths = np.random.default_rng(0), []
    start = np.array(mujoco.MjData(opened).qpos)
    going = 0.5 * rng.normal(size=opened.nv)
    if scene.planar:
        going = np.array([0.6, 0.02, 1.0, -0.6, 0.0, 0.0])
    else:
        start.reshape(-1, 7)[:, 2] += 0.1
        going[0] = 1.0
    met = 0
    for model in (plain, opened):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = start, going
        path = []
        for _ in range(900):
            mujoco.mj_step(model, data)
            path.append(np.array(data.qpos))
            met += data.ncon
        paths.append(path)
    assert met > 0
    np.testing.assert_array_equal(paths[0], paths[1])


@pytest.mark.parametrize("name", [name for name in CASES if name != "pucks"])
def test_what_is_added_does_not_fall_through(name, tmp_path):
    make, values = CASES[name]
    scene = make(tmp_path)
    spec = as_written(scene, values)
    first = spec.compile()
    data = mujoco.MjData(first)
    mujoco.mj_forward(first, data)
    top = data.body(scene.bodies[0].name).xpos
    box, ball = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_SPHERE
    for label, kind, size, place in (
        ("added_box", box, [0.04, 0.04, 0.02], [-0.5, 0.0]),
        ("added_ball", ball, [0.03, 0, 0], [0.0, 0.5]),
        ("on_top", box, [0.02, 0.02, 0.01], top[:2]),
    ):
        added = spec.worldbody.add_body(name=label, pos=[*place, scene.ground_height + 0.25])
        added.add_freejoint()
        added.add_geom(type=kind, size=size)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, nstep=round(2.0 / model.opt.timestep))
    lean = 0.03 * 0.6  # of the ground, at the places where they land
    assert data.body("added_box").xpos[2] - scene.ground_height == pytest.approx(0.02, abs=0.004 + lean)
    assert data.body("added_ball").xpos[2] - scene.ground_height == pytest.approx(0.03, abs=0.004 + lean)
    if name in ("cube", "leaning ground", "rounded cube", "cubes"):
        side = 0.1 * values.get("length_scale", 1.0)
        above = float(data.body("on_top").xpos[2] - data.body(scene.bodies[0].name).xpos[2])
        assert above == pytest.approx(side / 2 + 0.01, abs=0.003)  # it lies on the calibrated body


def test_a_puck_is_met_by_what_is_added():
    scene = pucks()
    spec = as_written(scene, CONTACT)
    added = spec.worldbody.add_body(name="ball", pos=[-0.2, 0.0, 0.0])
    added.add_freejoint()
    added.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.02, 0, 0], mass=0.02)
    model = spec.compile()
    data = mujoco.MjData(model)
    np.testing.assert_allclose(data.joint("b_x").qpos[0], 0.025 + 0.0625 + 0.02, atol=0.01)
    data.joint(model.joint(model.njnt - 1).name or model.njnt - 1).qvel[0] = 1.0
    mujoco.mj_step(model, data, nstep=300)
    assert data.joint("a_x").qpos[0] > 0.02  # the coordinate of a joint is the world's
    assert data.body("a").xpos[0] == pytest.approx(float(data.joint("a_x").qpos[0]), abs=0.01)


def test_a_thin_disc_opens_whatever_the_digits():
    """Its inertia about its axis is the sum of the other two, and six digits make it more."""
    for mass in np.linspace(0.005, 0.05, 40):
        half = mass * 0.025**2 / 4
        disc = Body("disc", "target", Shape("disc", radius=0.025), mass=float(mass), inertia=(half, half, 2 * half))
        model = as_written(FreeScene("disc", (disc,), planar=True), {**CONTACT, "length_scale": 1.011}).compile()
        np.testing.assert_allclose(model.body_inertia[1], [half * 1.011**2] * 2 + [2 * half * 1.011**2], rtol=1e-4)


def test_no_keyframe_of_rest_where_nothing_rests():
    """On ice that leans, a cube slides away for ever."""
    model = opened_spec(toss_scene(), {**CONTACT, "friction": 0.0, "tilt_x": 0.03}, step=STEP).compile()
    assert model.nkey == 0
