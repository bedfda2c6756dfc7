"""Scaled data: the same bytes for a seed, physics that holds, starts within their ranges, wrong input refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh
from simulated_tosses import CALIBRATED, parameters_file, tosses

from carom.core.errors import CaromError
from carom.core.rotations import matrices
from carom.recordings import Recordings, Trajectory, write
from carom.scale import Trajectories, Variation, calibration, cubes, dropped, load, recorded, scale, toss
from carom.scale.sources import CUBES, TOSS
from carom.scenes.parameters import FREE
from carom.scenes.shapes import Body, Shape
from carom.state import Array

NO_VARIATION = Variation(size=(1.0, 1.0), aspect=1.0, mass=(1.0, 1.0))


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carom.scale.shards.SHARD", 8)


@pytest.fixture(scope="module")
def tossed(tmp_path_factory: pytest.TempPathFactory) -> Trajectories:
    folder = tmp_path_factory.mktemp("tossed")
    params = parameters_file(folder / "p.yaml", CALIBRATED)
    return scale(toss(duration=1.2), calibration(params), folder / "data", count=60, seed=1).data


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def lowest(data: Trajectories, sample: int) -> Array:
    """Height [N] of the lowest point of the lowest body above the ground."""
    found = []
    for t in data:
        assert t.ground is not None
        corners = [b.solid.corners @ m.T for b, m in zip(t.bodies, matrices(t.quaternion[sample]), strict=True)]
        points = np.concatenate([c + p for c, p in zip(corners, t.position[sample], strict=True)])
        found.append((points @ np.array(t.ground.normal)).min() - t.ground.height)
    return np.array(found)


@pytest.mark.usefixtures("small_shards")
def test_same_bytes_on_any_threads_and_after_a_kill(tmp_path: Path) -> None:
    make = cubes(bodies=(1, 3), duration=0.15)
    scale(make, calibration(None), tmp_path / "whole", count=20, seed=5, threads=1)

    def stop(what: str, done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scale(make, calibration(None), tmp_path / "killed", count=20, seed=5, threads=2, progress=stop)
    assert len(list((tmp_path / "killed").glob("*.parquet"))) == 1
    with pytest.raises(CaromError, match=r"trajectories-00001.parquet is missing: the run was interrupted"):
        load(tmp_path / "killed")
    again = scale(make, calibration(None), tmp_path / "killed", count=20, seed=5, threads=2)
    assert again.made == 12
    assert bytes_of(tmp_path / "killed") == bytes_of(tmp_path / "whole")
    other = scale(make, calibration(None), tmp_path / "other", count=20, seed=6)
    assert bytes_of(tmp_path / "other") != bytes_of(tmp_path / "whole")
    # a smaller set that grows ends with the same bytes as well, its unfinished shard made anew
    scale(make, calibration(None), tmp_path / "grown", count=11, seed=5)
    assert scale(make, calibration(None), tmp_path / "grown", count=20, seed=5).made == 12
    assert bytes_of(tmp_path / "grown") == bytes_of(tmp_path / "whole")
    assert len(other.data) == 20


@pytest.mark.usefixtures("small_shards")
def test_a_trajectory_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    few = scale(toss(duration=0.3), calibration(None), tmp_path / "few", count=3, seed=2).data
    many = scale(toss(duration=0.3), calibration(None), tmp_path / "many", count=20, seed=2).data
    np.testing.assert_array_equal(few[2].position, many[2].position)
    assert not np.array_equal(many[2].start_velocity, many[10].start_velocity)  # another shard, other draws


def test_a_folder_with_other_data_is_refused(tmp_path: Path) -> None:
    scale(toss(duration=0.05), calibration(None), tmp_path, count=4)
    with pytest.raises(CaromError, match=r"holds trajectories with other settings: seed 0 \(now 1\); repeat them or"):
        scale(toss(duration=0.05), calibration(None), tmp_path, count=4, seed=1)
    with pytest.raises(CaromError, match=r"holds 4 trajectories already; ask for as many or more"):
        scale(toss(duration=0.05), calibration(None), tmp_path, count=3)
    (tmp_path / "trajectories-00000.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(CaromError, match=r"is damaged \(.*\); delete it and run the same command again"):
        scale(toss(duration=0.05), calibration(None), tmp_path, count=4)


def test_a_toss_never_gains_energy(tossed: Trajectories) -> None:
    flights = 0
    for t in tossed:
        body, dt = t.bodies[0], t.period
        rotation = matrices(t.quaternion[:, 0])
        relative = np.einsum("tji,tjk->tik", rotation[:-1], rotation[1:])
        half = (relative - relative.transpose(0, 2, 1)) / 2  # the turn between two samples, in the body's frame
        spin = np.stack([half[:, 2, 1], half[:, 0, 2], half[:, 1, 0]], axis=-1) / dt
        velocity = np.diff(t.position[:, 0], axis=0) / dt
        middle = (t.position[:-1, 0, 2] + t.position[1:, 0, 2]) / 2
        kinetic = (body.mass * (velocity**2).sum(-1) + np.einsum("ti,ij,tj->t", spin, body.inertia_matrix, spin)) / 2
        energy = kinetic + body.mass * t.gravity * middle
        start = body.mass * ((t.start_velocity**2).sum() / 2 + t.gravity * t.position[0, 0, 2])
        turn = rotation[0].T @ t.start_spin[0]
        start += turn @ body.inertia_matrix @ turn / 2
        if lowest(tossed[[t.index]], 1)[0] > 0.005:
            assert energy[0] == pytest.approx(start, rel=0.02)
            flights += 1
        assert energy.max() < 1.02 * start
        assert energy[-1] < start
    assert flights > 30


def test_bodies_fall_freely_until_they_touch(tossed: Trajectories) -> None:
    for t in tossed:
        flight = t.start_velocity[0, 2] * t.time - t.gravity * t.time**2 / 2
        centre = t.position[0, 0] + t.start_velocity[0] * t.time[5]
        clear = lowest(tossed[[t.index]], 5)[0] > 0.01 and lowest(tossed[[t.index]], 3)[0] > 0.01
        if clear:
            np.testing.assert_allclose(t.position[5, 0, :2], centre[:2], atol=1e-9)
            assert t.position[5, 0, 2] == pytest.approx(t.position[0, 0, 2] + flight[5], abs=5e-4)


def test_tosses_end_at_rest_on_the_ground(tossed: Trajectories) -> None:
    assert (tossed.status == "ok").all()
    low = lowest(tossed, -1)
    assert low.min() > -0.002  # contacts are soft: a body sinks in a little
    assert np.median(np.abs(low)) < 0.001
    position, _ = tossed.arrays()
    moved = np.linalg.norm(position[:, -1] - position[:, -5], axis=-1)
    assert np.median(moved) < 1e-4
    assert lowest(tossed, 0).min() >= TOSS["clearance_m"][0] - 1e-9


def test_pushed_cubes_keep_their_momentum_without_friction(tmp_path: Path) -> None:
    params = parameters_file(tmp_path / "p.yaml", CALIBRATED | {"friction": 0.0})
    data = scale(cubes(bodies=(1, 4), duration=0.4), calibration(params), tmp_path / "d", count=12).data
    struck = 0
    for t in data:
        mass = np.array([b.mass for b in t.bodies])
        momentum = np.einsum("b,tbi->ti", mass, np.diff(t.position, axis=0)) / t.period
        size = np.linalg.norm(momentum[0])
        np.testing.assert_allclose(momentum[:, :2], np.tile(momentum[0, :2], (len(momentum), 1)), atol=0.01 * size)
        struck += np.linalg.norm(t.position[-1, 1:] - t.position[0, 1:], axis=-1).max() > 0.01
    assert struck >= 10  # nearly every push reaches the others


def test_cubes_stand_apart_on_the_ground_and_vary(tmp_path: Path) -> None:
    data = scale(cubes(duration=0.05), calibration(None), tmp_path, count=40).data
    assert data.body_counts.min() == 2
    assert data.body_counts.max() == 11
    np.testing.assert_allclose(lowest(data, 0), 0.0, atol=1e-12)
    sizes = np.array([b.solid.extent for t in data for b in t.bodies])
    assert sizes.min() >= 0.1 * 0.7 / 1.25 - 1e-12
    assert sizes.max() <= 0.1 * 1.4 * 1.25 + 1e-12
    assert sizes.std(axis=0).min() > 0.005
    for t in data:
        speed = np.linalg.norm(t.start_velocity[0])
        assert CUBES["speed_m_s"][0] <= speed <= CUBES["speed_m_s"][1]
        assert not t.start_velocity[1:].any()
        standing = np.linalg.norm(t.position[2, 1:] - t.position[0, 1:], axis=-1)
        pushed = np.linalg.norm(t.position[2, 0] - t.position[0, 0])
        assert np.median(standing) < 0.002 + pushed  # bodies that overlap would be thrown apart
        density = [b.mass / np.prod(b.solid.extent) / 370 for b in t.bodies]
        assert 0.5 - 1e-9 <= min(density) <= max(density) <= 2 + 1e-9


def test_meshes_are_dropped_in_varying_number_and_come_to_rest(tmp_path: Path) -> None:
    trimesh.creation.icosahedron().apply_scale(0.05).export(tmp_path / "lump.obj")
    trimesh.creation.cone(radius=0.05, height=0.09, sections=12).export(tmp_path / "cone.stl")
    params = parameters_file(tmp_path / "p.yaml", CALIBRATED | {"friction": 0.6, "length_scale": 1.02})
    source = dropped([tmp_path / "lump.obj", tmp_path / "cone.stl"], bodies=(1, 3))
    data = scale(source, calibration(params), tmp_path / "d", count=30).data
    assert set(data.body_counts) == {1, 2, 3}
    assert set(data.ok.by_bodies()) == {1, 2, 3}
    assert {b.solid.mesh.name for t in data for b in t.bodies} == {"lump", "cone"}
    assert len({b.solid.size for t in data for b in t.bodies}) > 20
    assert (data.status == "ok").mean() > 0.95
    assert lowest(data.ok, -1).min() > -0.004
    assert lowest(data, 0).min() > 0
    with pytest.raises(CaromError, match=r"length_scale cannot be drawn for meshes"):
        scale(source, calibration(params, spread=True), tmp_path / "s", count=3)
    for t in data:
        mesh = trimesh.Trimesh(*t.bodies[0].solid.surface())
        assert mesh.is_convex
        np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), t.bodies[0].solid.extent)


def test_recordings_are_scaled_around_their_starts(tmp_path: Path) -> None:
    source = recorded(tosses(tmp_path / "real"))
    params = parameters_file(tmp_path / "p.yaml", CALIBRATED)
    data = scale(source, calibration(params), tmp_path / "d", count=40, variation=NO_VARIATION).data
    assert data.period == pytest.approx(1 / 120, rel=1e-6)
    assert {t.source for t in data} == {f"toss_{i}.csv" for i in range(5)}
    assert (data.status == "ok").all()
    starts = source.parts[0].motions.starts
    down = np.array([t.start_velocity[0, 2] for t in data])
    assert abs(down.mean() - starts.velocity[:, 0, 2].mean()) < 2 * starts.velocity[:, 0, 2].std()
    assert lowest(data, 0).min() > 0
    assert {b.solid.size for t in data for b in t.bodies} == {(0.1, 0.1, 0.1)}


def test_parameters_are_drawn_within_their_intervals(tmp_path: Path) -> None:
    params = parameters_file(tmp_path / "p.yaml", CALIBRATED | {"mass_scale": 1.1, "gravity": 9.6})
    data = scale(toss(duration=0.05), calibration(params, spread=True), tmp_path / "d", count=50).data
    names = ("friction", "stiffness", "damping", "mass_scale", "gravity")
    assert data.parameter_names == names
    for column, value in zip(data.parameters.T[:4], [0.2, 25_000.0, 150.0, 1.1], strict=True):
        assert 0.9 * value <= column.min() < 0.95 * value < 1.05 * value < column.max() <= 1.1 * value
    low, high = FREE["gravity"].low, FREE["gravity"].high  # nearer than the interval's ends, and nothing lies beyond
    assert low <= data.parameters[:, 4].min() < data.parameters[:, 4].max() <= high
    t = data[3]
    assert t.gravity == t.parameters["gravity"]
    fixed = scale(toss(duration=0.05), calibration(params), tmp_path / "f", count=5).data
    assert (fixed.parameters == fixed.parameters[0]).all()
    # mass_scale makes bodies heavier, and what is written is what was simulated
    plain = scale(toss(duration=0.05), calibration(None), tmp_path / "p", count=5).data
    assert fixed[0].bodies[0].mass / plain[0].bodies[0].mass == pytest.approx(1.1)
    np.testing.assert_array_equal(fixed[0].start_velocity, plain[0].start_velocity)  # starts do not depend on them


def test_header_says_how_the_data_were_made(tmp_path: Path) -> None:
    scale(toss(duration=0.05), calibration(None), tmp_path, count=2, seed=9)
    header = json.loads((tmp_path / "_header.json").read_text())
    assert header["format"] == "carom-trajectories/1"
    assert (header["seed"], header["count"], header["scene"]) == (9, 2, "toss")
    assert header["parameters"]["source"] == "defaults"
    assert header["parameters"]["values"]["friction"]["value"] == 0.3
    assert header["ranges"]["size_factor"] == [0.7, 1.4]
    assert {"carom", "mujoco", "numpy", "pyarrow"} == set(header["made_with"])


def test_a_simulation_that_flies_away_is_data(tmp_path: Path) -> None:
    """A contact without damping that is far too stiff for the step throws bodies away; the batch goes on."""
    params = parameters_file(tmp_path / "p.yaml", {"friction": 0.2, "stiffness": 3e7, "damping": 1e-3})
    data = scale(toss(duration=1.0), calibration(params), tmp_path / "d", count=10).data
    assert set(data.status) <= {"ok", "away", "failed"}
    assert (data.status != "ok").any()
    assert len(data.ok) == (data.status == "ok").sum()


def test_wrong_parameters_are_refused(tmp_path: Path) -> None:
    path = parameters_file(tmp_path / "p.yaml", {"striker_friction": 0.3})
    with pytest.raises(CaromError, match=r"p.yaml: unknown parameter of free bodies 'striker_friction'"):
        calibration(path)
    with pytest.raises(CaromError, match=r"expected a non-negative 'friction', got -0.1"):
        calibration(parameters_file(tmp_path / "n.yaml", {"friction": -0.1}))
    both = parameters_file(tmp_path / "b.yaml", {"stiffness": 2e4, "time_constant": 0.02})
    with pytest.raises(CaromError, match=r"stiffness and damping are one form of solref"):
        calibration(both)
    with pytest.raises(CaromError, match=r"--spread draws within identified intervals"):
        calibration(None, spread=True)


def test_wrong_meshes_are_refused(tmp_path: Path) -> None:
    trimesh.creation.annulus(0.03, 0.06, 0.05).export(tmp_path / "ring.stl")
    with pytest.raises(
        CaromError, match=r"ring.stl is not convex: it fills 75 % of its convex hull; split it .* coacd"
    ):
        dropped([tmp_path / "ring.stl"])
    trimesh.creation.box((80, 50, 20)).export(tmp_path / "mm.stl")
    with pytest.raises(CaromError, match=r"mm.stl is 80 m long; meshes are in metres"):
        dropped([tmp_path / "mm.stl"])
    box = trimesh.creation.box((0.1, 0.1, 0.1))
    box.update_faces(np.arange(len(box.faces)) > 1)
    box.export(tmp_path / "open.stl")
    with pytest.raises(CaromError, match=r"open.stl is not closed"):
        dropped([tmp_path / "open.stl"])
    with pytest.raises(CaromError, match=r"two meshes are called 'mm'"):
        dropped([tmp_path / "mm.stl", tmp_path / "mm.stl"])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: cubes(bodies=(0, 3)), r"--bodies: expected two numbers from 1 to 10, lower first, got 0 3"),
        (lambda: toss(rate=0.0), r"--rate: expected samples per second"),
        (lambda: toss(duration=0.001), r"--duration: expected two sample periods"),
        (lambda: toss(rate=1e4, duration=60.0), r"--rate, --duration: expected 20000 samples of a trajectory at most"),
        (lambda: Variation(size=(2.0, 1.0)), r"--size: expected two factors from 0.01 to 100, lower first, got 2 1"),
        (lambda: Variation(mass=(0.0, 1.0)), r"--mass: expected two factors from 0.01 to 100, lower first, got 0 1"),
        (lambda: Variation(aspect=0.5), r"--aspect: expected a factor from 1 to 10, got 0.5"),
        (lambda: Variation(aspect=1e300), r"--aspect: expected a factor from 1 to 10, got 1e\+300"),
        (lambda: Variation(aspect=float("nan")), r"--aspect: expected a factor from 1 to 10, got nan"),
    ],
)
def test_wrong_ranges_are_refused(make, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CaromError, match=said):
        make()


def test_real_tosses_can_be_scaled(shared_data: Path, tmp_path: Path) -> None:
    source = recorded(shared_data / "cube_toss" / "recordings", duration=0.4)
    params = parameters_file(tmp_path / "p.yaml", CALIBRATED)
    data = scale(source, calibration(params), tmp_path / "d", count=30).data
    assert (data.status == "ok").all()


def test_pucks_keep_their_momentum_and_the_table(shared_data: Path, tmp_path: Path) -> None:
    source = recorded(shared_data / "two_puck" / "rigid", duration=0.3)
    params = parameters_file(tmp_path / "p.yaml", CALIBRATED)
    data = scale(source, calibration(params), tmp_path / "d", count=30).data.ok
    assert len(data) == 30
    for t in data:
        assert t.ground is None
        np.testing.assert_array_equal(t.position[..., 2], np.tile(t.position[0, :, 2], (len(t), 1)))
        mass = np.array([b.mass for b in t.bodies])
        momentum = np.einsum("b,tbi->ti", mass, np.diff(t.position, axis=0)) / t.period
        largest = (mass * np.linalg.norm(t.start_velocity, axis=-1)).max()
        np.testing.assert_allclose(momentum, np.tile(momentum[0], (len(momentum), 1)), atol=0.005 * largest)
    wrong = parameters_file(tmp_path / "w.yaml", CALIBRATED | {"gravity": 9.8})
    with pytest.raises(CaromError, match=r"gravity: has no effect over an air table; remove it from the parameters"):
        scale(source, calibration(wrong), tmp_path / "w", count=3)


def test_a_body_held_by_an_arm_is_refused(tmp_path: Path) -> None:
    time = np.arange(60) / 100
    struck = np.maximum(time - 0.1, 0.0)
    box = Body("box", "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.4)
    tool = Body("tool", "striker", Shape("sphere", radius=0.02), mass=4.0)
    paths = {
        "box": np.column_stack([0.5 + 0.9 * struck - 0.75 * struck**2, 0 * time, 0 * time + 0.05]),
        "tool": np.column_stack([0.1 * time, 0 * time, 0 * time + 0.2]),
    }
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (60, 1))
    bodies = {"box": box, "tool": tool}
    moved = Trajectory("hit.csv", tmp_path / "hit.csv", time, paths, dict.fromkeys(bodies, upright), bodies)
    write(tmp_path / "hits", Recordings(tmp_path, bodies, (moved,)))
    with pytest.raises(CaromError, match=r"something holds one of them; only bodies that move freely can be scaled"):
        recorded(tmp_path / "hits")
