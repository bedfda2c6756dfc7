"""Scenes of free bodies: what they accept, their widths, and parameters written into them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from mujoco.batch import Batch

from carom.core.errors import SceneError
from carom.scenes.free import LONGEST_STEP, FreeScene, calibrated, cubes_scene, free_spec, timestep, toss_scene
from carom.scenes.parameters import FREE, TABLE_II, free_parameters, resolved
from carom.scenes.shapes import Body, Shape


def test_the_width_of_a_body_is_its_mean_extent_or_its_diameter():
    box = Body("box", "target", Shape("box", size=(0.1, 0.2, 0.3)), mass=1.0)
    disc = Body("disc", "target", Shape("disc", radius=0.04), mass=1.0)
    ball = Body("ball", "target", Shape("sphere", radius=0.05), mass=1.0)
    np.testing.assert_allclose(FreeScene("three", (box, disc, ball)).widths, [0.2, 0.08, 0.1])


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        ((), "scene 'bad' has no body that moves"),
        ((Body("b", "target", None, mass=1.0),), "body 'b': a free body needs a shape of box"),
        ((Body("b", "target", Shape("semi-cylinder", radius=0.1, height=0.1), mass=1.0),), "got semi-cylinder"),
        ((Body("b", "target", Shape("sphere", radius=0.1)),), "body 'b': a free body needs a mass [kg]"),
    ],
)
def test_a_scene_says_what_a_free_body_lacks(bodies, said):
    with pytest.raises(SceneError) as refused:
        FreeScene("bad", bodies)
    assert said in str(refused.value)


def test_cubes_stand_like_pins_and_there_are_at_most_ten():
    assert [b.role for b in cubes_scene(3).bodies] == ["striker", "target", "target", "target"]
    for count in (0, 11):
        with pytest.raises(SceneError, match=f"one to ten other cubes, got {count}"):
            cubes_scene(count)


def test_parameters_are_known_by_name_and_in_one_form_of_solref():
    assert [p.name for p in free_parameters(TABLE_II)] == list(TABLE_II)
    with pytest.raises(SceneError, match=r"unknown parameter 'frction' \(did you mean 'friction'\?\); known: friction"):
        free_parameters(["frction"])
    with pytest.raises(SceneError, match="stiffness and damping are one form of solref, time_constant"):
        free_parameters(["stiffness", "damping_ratio"])
    for p in FREE.values():
        assert p.low <= p.default <= p.high
        assert p.unit


def test_the_step_divides_the_period_and_bounds_the_hardness():
    for rate in (60.0, 148.0, 500.0, 2000.0):
        step = timestep(1 / rate)
        assert step <= LONGEST_STEP * (1 + 1e-12)
        assert 1 / rate / step == pytest.approx(round(1 / rate / step))
    hard = resolved(free_parameters(["friction", "stiffness", "damping"]), 0.001)
    assert [p.high for p in hard] == [1.0, 250_000.0, 1000.0]
    assert [p.low for p in hard] == [0.0, 200.0, 2.0]


def test_calibrated_scales_lengths_mass_inertia_and_gravity():
    declared = Body("cube", "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.5, com=(0.002, 0.0, 0.0))
    values = {"length_scale": 1.1, "mass_scale": 2.0, "inertia_scale": 0.5, "com_y": 0.003, "gravity": 9.6}
    made = calibrated(FreeScene("toss", (declared,)), values)
    body = made.bodies[0]
    assert made.gravity == 9.6
    assert body.mass == 1.0
    np.testing.assert_allclose(body.shape.size, 0.11)
    np.testing.assert_allclose(body.com, [0.0022, 0.003, 0.0])
    # a solid cube of m, s: m s^2 / 6; here twice the mass, 1.1 times the side, half of that inertia
    np.testing.assert_allclose(body.inertia, 0.5 * 0.01 / 6 * 2.0 * 1.1**2 * 0.5)
    assert made.bodies[0].name == "cube"


def test_inertia_is_the_declared_one_or_that_of_a_solid():
    cube = toss_scene(side=0.2, mass=3.0).bodies[0]
    np.testing.assert_allclose(cube.solid_inertia, 3.0 * 0.04 / 6)
    nan = float("nan")
    disc = Body("disc", "target", Shape("disc", radius=0.05), mass=1.0, inertia=(nan, nan, 7e-4))
    made = disc.solid_inertia
    assert made[2] == 7e-4
    assert np.isfinite(made).all()


def test_pads_stand_out_of_faces_and_weigh_nothing():
    plain, padded = (free_spec(toss_scene(), pads=p).compile() for p in (False, True))
    np.testing.assert_allclose(padded.body_mass, plain.body_mass)
    np.testing.assert_allclose(padded.body_inertia, plain.body_inertia)
    assert (plain.npair, padded.npair) == (1, 4)
    face = padded.geom("cube_face_z").size
    assert face[2] > 0.05
    assert max(face[:2]) < 0.05
    assert free_spec(cubes_scene(2)).compile().npair == 3 + 3  # each on the ground, and each with each


def test_bodies_of_a_planar_scene_move_in_three_ways_only():
    disc = Body("disc", "target", Shape("disc", radius=0.05), mass=1.0)
    model = free_spec(FreeScene("air", (disc,), planar=True)).compile()
    assert model.nv == 3
    assert not model.opt.gravity.any()
    assert mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, "ground") == -1


def test_rounded_edges_are_of_boxes_alone():
    box, ball = Shape("box", size=(0.1, 0.1, 0.1)), Shape("sphere", radius=0.05)
    scene = FreeScene("both", (Body("cube", "target", box, mass=1.0), Body("ball", "target", ball, mass=1.0)))
    written = scene.spec_with({"edge_radius": 0.003}).compile()
    batch = Batch(scene.spec(parameters=("edge_radius",)).compile(), 2, 1)
    scene.write(batch, {"edge_radius": np.array([0.003, 0.0])})
    expected = {"ground-cube": 0.003, "ground-ball": 0.0, "cube-ball": 0.003}  # a ball has no edges to be kept off by
    assert {written.pair(i).name: written.pair_margin[i] for i in range(written.npair)} == expected
    np.testing.assert_array_equal(batch.expand("pair_margin")[0], written.pair_margin)
    np.testing.assert_array_equal(batch.expand("pair_margin")[1], 0.0)
    np.testing.assert_allclose(batch.expand("geom_size")[0], written.geom_size, rtol=1e-12)
