"""Brax's pipelines against closed forms of flight, sliding and rest; one program is compiled for each of them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.engines import brax as brax_free
from carom.engines.brax import PIPELINES, ROWS, BraxEngine, brax_parameters
from carom.scenes.free import FreeScene, cubes_scene, timestep, toss_scene
from carom.scenes.shapes import Body, Shape
from carom.state import Motion, SceneState

PERIOD, HALF, GRAVITY = 1 / 150, 0.05, 9.81
SPEED = 0.5


@pytest.fixture(scope="module", params=PIPELINES)
def engine(request) -> BraxEngine:
    pytest.importorskip("brax", reason="Brax is not installed: pip install carom[bench]")
    return make(request.param)


def make(pipeline: str, scene: FreeScene | None = None, *, threads: int = 1) -> BraxEngine:
    scene = toss_scene(side=2 * HALF) if scene is None else scene
    names = [p.name for p in brax_parameters(pipeline)]
    return BraxEngine(scene, names, pipeline=pipeline, step=timestep(PERIOD), threads=threads)


def starts(position, velocity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0), turn=(1.0, 0.0, 0.0, 0.0), count=1) -> SceneState:
    rows = [np.tile(np.asarray(x, dtype=float), (count, 1, 1)) for x in (position, turn, velocity, spin)]
    return SceneState(("cube",), *rows)


def run(engine: BraxEngine, start: SceneState, samples: int, **values) -> Motion:
    """With these values as far as the pipeline has them, and no bounce."""
    own = {name: value for name, value in values.items() if name in engine.parameters}
    return engine.open(start, own).rollout((samples - 1) * PERIOD, frames=samples)


def test_flight_is_a_parabola(engine):
    velocity, spin = np.array([0.4, -0.3, 2.0]), np.array([0.0, 3.0, 4.0])
    turn = np.array([np.cos(0.4), np.sin(0.4), 0.0, 0.0])
    motion = run(engine, starts((0.1, 0.2, 0.6), velocity, spin, turn), 40)
    t = np.arange(40) * PERIOD
    fall = -0.5 * GRAVITY * (t**2 + t * engine.timestep)  # speed first, then place: what such steps add up to
    expected = np.array([0.1, 0.2, 0.6]) + np.outer(t, velocity) + np.outer(fall, [0, 0, 1])
    np.testing.assert_allclose(motion.position[0, :, 0], expected, atol=1e-9)
    angle = np.linalg.norm(spin) * t[-1] / 2
    about = np.concatenate([[np.cos(angle)], np.sin(angle) * spin / np.linalg.norm(spin)])
    w, x, y, z = about
    left = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    assert abs(motion.quaternion[0, -1, 0] @ (left @ turn)) == pytest.approx(1.0, abs=1e-6)
    assert not motion.failed.any()
    assert motion.engine_seconds > 0


def test_a_dropped_cube_comes_to_rest_on_the_ground(engine):
    tilt = np.array([np.cos(0.05), np.sin(0.05), 0.0, 0.0])
    motion = run(engine, starts((0.0, 0.0, 0.08), turn=tilt), 97, friction=0.5, time_constant=0.005)
    late = motion.position[0, -20:, 0]
    creeps = engine.pipeline == "positional"  # that one never quite lies still
    np.testing.assert_allclose(late[:, 2], HALF, atol=3e-3 if creeps else 1e-3)
    assert np.median(late[:, 2]) == pytest.approx(HALF, abs=1e-3)
    assert np.ptp(late, axis=0).max() < (5e-3 if creeps else 5e-4)
    assert np.abs(motion.quaternion[0, -1, 0, 1:3]).max() < 0.02


def test_friction_stops_a_cube_and_less_of_it_later(engine):
    frictions = np.array([1.0, 0.2, 0.05, 1.0])
    start = starts((0.0, 0.0, HALF - 1e-5), (SPEED, 0.0, 0.0), count=4)
    start.velocity[3] = 0.0
    ends = run(engine, start, 97, friction=frictions, time_constant=0.005).position[:, -1, 0]
    assert ends[0, 0] < ends[1, 0] < ends[2, 0]
    if engine.pipeline == "spring":
        assert ends[1, 0] == pytest.approx(SPEED**2 / (2 * 0.2 * GRAVITY), rel=0.1)
    if engine.pipeline != "positional":  # whose friction is far too small for so light a body
        assert ends[0, 0] < 0.03
        assert ends[2, 0] > 0.15
    assert np.abs(ends[3, :2]).max() < 1e-4  # what lies still stays


def test_rows_do_not_depend_on_their_neighbours(engine):
    many = starts((0.0, 0.0, 0.09), count=ROWS + 3)
    many = replace(many, velocity=np.random.default_rng(0).normal(0, 0.5, (len(many), 1, 3)))
    many.position[1, 0, 0] = np.nan
    friction = np.linspace(0.0, 1.0, len(many))
    whole = run(engine, many, 30, friction=friction)
    assert list(np.flatnonzero(whole.failed)) == [1]
    rows = [0, 2, ROWS + 1]
    alone = run(engine, many[rows], 30, friction=friction[rows])
    np.testing.assert_array_equal(alone.position, whole.position[rows])
    np.testing.assert_array_equal(alone.quaternion, whole.quaternion[rows])
    other = make(engine.pipeline, threads=2)
    np.testing.assert_array_equal(run(other, many, 30, friction=friction).position, whole.position)
    assert other.compile_seconds == 0  # the program is there already
    shorter = run(engine, many[rows], 11, friction=friction[rows])
    np.testing.assert_array_equal(shorter.position, whole.position[rows, :11])


def test_elasticity_gives_speed_back():
    """A cube falls on a corner right below its middle; on a face it hardly bounces, as Brax averages over contacts."""
    pytest.importorskip("brax", reason="Brax is not installed: pip install carom[bench]")
    engine, corner, drop = make("spring"), HALF * np.sqrt(3), 0.1
    axis, angle = np.array([1.0, -1.0, 0.0]) / np.sqrt(2), np.arccos(1 / np.sqrt(3))
    turn = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])  # the diagonal upright
    start = starts((0.0, 0.0, corner + drop), turn=turn, count=2)
    seen = run(engine, start, 60, friction=0.3, elasticity=[0.4, 0.8]).position[:, :, 0, 2]
    landed = int(np.sqrt(2 * drop / GRAVITY) / PERIOD) + 1
    np.testing.assert_allclose(seen[:, landed:].max(axis=1) - corner, drop * np.array([0.4, 0.8]) ** 2, rtol=0.12)


def test_what_went_wrong_keeps_its_last_good_pose():
    pose = np.arange(2 * 5 * 7, dtype=float).reshape(2, 5, 7)
    pose[1, 3] = np.nan
    assert list(brax_free._hold(pose)) == [False, True]
    np.testing.assert_array_equal(pose[1, 3], pose[1, 2])
    np.testing.assert_array_equal(pose[1, 4], pose[1, 2])


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (cubes_scene(2), r"Brax cannot simulate scene 'cubes': 3 bodies: one at a time"),
        (replace(toss_scene(), planar=True), "bodies that glide in a plane"),
        (
            FreeScene("can", (Body("can", "target", Shape("cylinder", radius=0.03, height=0.1), mass=0.2),)),
            "body 'can': shapes are box or sphere, not cylinder",
        ),
    ],
)
def test_scenes_that_it_refuses(scene, message):
    with pytest.raises(CaromError, match=message):
        make("spring", scene)


def test_parameters_and_pipelines_that_it_refuses():
    with pytest.raises(
        CaromError, match=r"'rolling_friction' has no meaning for Brax's spring .* friction, elasticity"
    ):
        BraxEngine(toss_scene(), ("rolling_friction",), pipeline="spring", step=0.001)
    with pytest.raises(CaromError, match="'elasticity' has no meaning for Brax's generalized pipeline"):
        BraxEngine(toss_scene(), ("elasticity",), pipeline="generalized", step=0.001)
    with pytest.raises(CaromError, match=r"unknown Brax pipeline 'sprung' .did you mean 'spring'"):
        brax_parameters("sprung")


def test_it_says_what_it_leaves_out():
    pytest.importorskip("brax", reason="Brax is not installed: pip install carom[bench]")
    said = make("positional").validate(toss_scene())
    assert said.ok
    assert "torsional and rolling friction" in said.ignored
    assert any("too far" in item for item in said.ignored)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "brax.io.mjcf", None)
    with pytest.raises(CaromError, match=r"Brax is not installed .* pip install carom\[bench\]"):
        make("spring")


def test_loading_says_nothing_on_stdout():
    pytest.importorskip("brax", reason="Brax is not installed: pip install carom[bench]")
    code = "from carom.engines import brax; brax.load('spring')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
