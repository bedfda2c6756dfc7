"""Bodies written into a compiled batch move as a model compiled for them does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh
from rolled_bodies import Rolled

from carom.core.rotations import matrices, random_turn
from carom.engines.mujoco.engine import MujocoEngine
from carom.identify.tosses.simulate import Starts
from carom.scale.draws import Draw, apart, below
from carom.scenes.free import FreeScene, free_spec, timestep
from carom.scenes.mesh_files import inertia_from, moments_from
from carom.scenes.parameters import free_parameters
from carom.scenes.shapes import Body, Shape
from carom.scenes.solids import Variation, calibrated_body, mesh_solid, stretched
from carom.scenes.varied import VariedScene, principal_frame
from carom.state import Motion, SceneState

PARAMETERS = free_parameters(["friction", "stiffness", "damping", "tilt_x"])
VALUES = np.array([0.25, 30_000.0, 250.0, 0.01])
BASE = {
    "box": Shape("box", size=(0.1, 0.1, 0.1)),
    "sphere": Shape("sphere", radius=0.05),
    "cylinder": Shape("cylinder", radius=0.05, height=0.08),
}


def flight(bodies: tuple[Body, ...], seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    count = len(bodies)
    turns = np.array([random_turn(rng) for _ in bodies])
    position = np.array([[0.02 * i, 0.0, 0.12 + 0.25 * i] for i in range(count)])
    return Draw(bodies, position, turns, rng.normal(size=(count, 3)), 3 * rng.normal(size=(count, 3)), "test")


def varied(scene: FreeScene, parameters: tuple, *, meshes: list[Shape] | None = None, threads: int = 1) -> MujocoEngine:
    names = [p.name for p in parameters]
    return MujocoEngine(VariedScene(scene, tuple(meshes or ())), names, step=timestep(0.01), threads=threads)


def rolled(engine: MujocoEngine, draws: list[Draw], values: np.ndarray, samples: int) -> Motion:
    states = {n: np.array([getattr(d, n) for d in draws]) for n in ("position", "quaternion", "velocity", "spin")}
    own = {name: values[:, i] for i, name in enumerate(engine.parameters)}
    run = engine.open(SceneState(engine.layout.bodies, **states), own, bodies=[d.bodies for d in draws])
    return run.rollout((samples - 1) * 0.01, frames=samples)


def alone(scene: FreeScene, draw: Draw, samples: int) -> np.ndarray:
    """The same bodies in a model compiled for them."""
    batch = Rolled(scene, PARAMETERS, period=0.01, threads=1)
    states = (draw.position, draw.quaternion, draw.velocity, draw.spin)
    return batch.run(Starts.known(*(s[None] for s in states)), VALUES, samples).position[0]


@pytest.mark.parametrize("kind", ["box", "sphere", "cylinder"])
def test_varied_bodies_move_as_in_a_model_of_their_own(kind: str) -> None:
    rng, given = np.random.default_rng(3), Body("a", "target", BASE[kind], mass=0.4)
    scene = FreeScene("two", (given, given), 9.81, 0.02)
    batch = varied(scene, PARAMETERS, threads=2)
    draws = []
    for i in range(6):
        pair = [stretched(given, Variation().stretch(kind, rng), Variation().mass_factor(rng)) for _ in "ab"]
        draws.append(flight(tuple(calibrated_body(b, {"com_x": 0.004}, np.zeros(3)) for b in pair), i))
    found = rolled(batch, draws, np.tile(VALUES, (6, 1)), 45)
    assert not found.failed.any()
    for n in (0, 5):
        bodies = tuple(replace(b, name=f"b{i}") for i, b in enumerate(draws[n].bodies))
        own = alone(replace(scene, bodies=bodies), draws[n], 45)
        np.testing.assert_allclose(found.position[n], own, atol=1e-9)


def test_meshes_picked_per_simulation_move_as_in_a_model_of_their_own(tmp_path: Path) -> None:
    cone, lump = trimesh.creation.cone(radius=0.05, height=0.1), trimesh.creation.icosahedron()
    lump.apply_transform(np.diag([0.04, 0.06, 0.05, 1.0]))
    lump.apply_transform(trimesh.transformations.rotation_matrix(0.7, [1, 2, 3]))
    templates = []
    for name, mesh in (("cone", cone), ("lump", lump)):
        mesh.export(tmp_path / f"{name}.stl")
        templates.append(mesh_solid(tmp_path / f"{name}.stl"))
    rng = np.random.default_rng(1)
    stretches = [Variation().stretch("mesh", rng) for _ in range(4)]
    pool = [stretched(templates[k % 2], stretches[k], 1.3) for k in range(4)]
    scene = FreeScene("two", tuple(templates))
    batch = varied(scene, PARAMETERS, meshes=[b.solid for b in pool])
    draws = [flight((pool[i], pool[(i + 1) % 4]), i) for i in range(4)]
    found = rolled(batch, draws, np.tile(VALUES, (4, 1)), 40)
    for n in range(4):
        bodies = []
        for i, s in enumerate(draws[n].bodies):
            path = tmp_path / f"own_{n}_{i}.obj"
            trimesh.Trimesh(*s.solid.surface(), process=False).export(path, digits=12)
            bodies.append(Body(f"b{i}", "target", Shape("mesh", file=str(path)), mass=s.mass))
        own = alone(FreeScene("own", tuple(bodies)), draws[n], 40)
        # vertices are float32 in the engine, and a corner that lands is sensitive to the last digit
        np.testing.assert_allclose(found.position[n, :15], own[:15], atol=1e-6)
        np.testing.assert_allclose(found.position[n], own, atol=2e-3)


def test_mass_properties_of_a_stretched_mesh_are_those_of_the_stretched_solid(tmp_path: Path) -> None:
    mesh = trimesh.creation.cone(radius=0.05, height=0.12)
    mesh.apply_transform(trimesh.transformations.rotation_matrix(1.1, [1, 0.3, 0.2]))
    mesh.export(tmp_path / "cone.stl")
    body = stretched(mesh_solid(tmp_path / "cone.stl", density=500.0), np.array([0.8, 1.3, 1.1]))
    truth = trimesh.Trimesh(*body.solid.surface())
    truth.density = 500.0
    assert body.mass == pytest.approx(truth.mass, rel=1e-6)
    np.testing.assert_allclose(body.inertia_matrix, truth.moment_inertia, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(truth.center_mass, body.com, atol=1e-8)
    values, quaternion = principal_frame(body.inertia_matrix[None])
    turn = matrices(quaternion[0])
    np.testing.assert_allclose(turn @ np.diag(values[0]) @ turn.T, body.inertia_matrix, atol=1e-12)


def test_inertia_of_a_stretched_box_is_a_box_s() -> None:
    body = stretched(Body("a", "target", BASE["box"], mass=0.4), np.array([2.0, 1.0, 0.5]), 0.5)
    assert body.mass == pytest.approx(0.2)
    x, y, z = 0.2, 0.1, 0.05
    np.testing.assert_allclose(
        np.diag(body.inertia_matrix), 0.2 / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    )
    inertia = np.diag([1.0, 2.0, 2.5])
    np.testing.assert_allclose(inertia_from(moments_from(inertia, 0.7), 0.7), inertia)


@pytest.mark.parametrize("kind", ["box", "sphere", "cylinder"])
def test_surfaces_are_closed_outward_and_of_the_body_s_size(kind: str) -> None:
    body = stretched(Body("a", "target", BASE[kind], mass=0.4), np.array([1.2, 1.2, 1.2]))
    mesh = trimesh.Trimesh(*body.solid.surface())
    assert mesh.is_watertight
    assert mesh.volume > 0  # triangles wind outward
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), body.solid.extent, rtol=0.01)
    turn = matrices(random_turn(np.random.default_rng(0)))
    assert below(body, turn) == pytest.approx(-(mesh.vertices @ turn[2]).min(), rel=0.02)


@pytest.mark.parametrize("kind", ["box", "cylinder"])
def test_bodies_that_overlap_are_never_said_to_be_apart(kind: str) -> None:
    """Against MuJoCo's own distance between two geoms."""
    rng = np.random.default_rng(0)
    body = stretched(Body("a", "target", BASE[kind], mass=0.4), np.array([1.0, 1.0, 0.6]))
    scene = FreeScene("two", (body, replace(body, name="b")))
    model = free_spec(scene).compile()
    data, seen = mujoco.MjData(model), []
    for _ in range(300):
        position = np.array([[0, 0, 1.0], [0, 0, 1.0] + 0.06 * rng.normal(size=3)])
        turns = np.array([random_turn(rng) for _ in "ab"])
        data.qpos[:] = np.concatenate([position, turns], axis=-1).ravel()
        mujoco.mj_kinematics(model, data)
        gap = mujoco.mj_geomDistance(model, data, model.geom("a").id, model.geom("b").id, 1.0, None)
        seen.append((gap, apart((body, body), position, turns, planar=False)))
    gaps, said = np.array([g for g, _ in seen]), np.array([s for _, s in seen])
    assert (gaps < 0).sum() > 50
    assert not said[gaps < -1e-6].any()
    assert said[gaps > 0.005].mean() > 0.9


def test_rounded_edges_keep_a_box_on_its_corners_lower() -> None:
    """A radius takes the corners off: a box dropped on one rests on its face at the same height, but falls further."""
    parameters = free_parameters(["friction", "stiffness", "damping", "edge_radius"])
    body = Body("a", "target", BASE["box"], mass=0.4)
    flat = Draw((body,), np.array([[0, 0, 0.06]]), np.array([[1.0, 0, 0, 0]]), np.zeros((1, 3)), np.zeros((1, 3)), "")
    batch = varied(FreeScene("one", (body,)), parameters)
    values = np.array([[0.3, 30_000.0, 250.0, 1e-5], [0.3, 30_000.0, 250.0, 0.01], [0.3, 30_000.0, 250.0, 9.0]])
    found = rolled(batch, [flat] * 3, values, 60)
    assert not found.failed.any()
    np.testing.assert_allclose(found.position[:, -1, 0, 2], 0.05, atol=5e-4)
