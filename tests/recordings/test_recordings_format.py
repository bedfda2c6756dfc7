"""Reading and writing the recordings format: what goes in comes out, in m, rad, s and z-up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from synthetic_recordings import BOX, TOOL, Strike, two_discs

from carom.core.artefacts import atomically
from carom.core.errors import RecordingError
from carom.recordings import Ground, Recordings, Trajectory, read, read_native, write
from carom.scenes.shapes import Body, Shape

FORMATS = ("csv", "npz", "parquet")


def assert_same(first: Trajectory, second: Trajectory) -> None:
    assert np.array_equal(first.time, second.time)
    assert dict(first.bodies) == dict(second.bodies)
    assert dict(first.tags) == dict(second.tags)
    for name in ("position_world", "quaternion_world", "controls", "velocity_world", "angular_velocity_world"):
        ours, theirs = getattr(first, name), getattr(second, name)
        assert set(ours) == set(theirs), name
        for key, values in ours.items():
            if values is None:
                assert theirs[key] is None
            else:
                assert np.array_equal(values, theirs[key], equal_nan=True), (name, key)


@pytest.mark.parametrize("file_format", FORMATS)
def test_round_trip_is_exact(tmp_path, file_format):
    strike = Strike(lost=0.1).trajectory()
    rng = np.random.default_rng(0)
    count = len(strike.time)
    strike = replace(
        strike,
        tags={"material": "nylon", "run": 3},
        controls={"grip": rng.standard_normal(count)},
        velocity_world={"box": rng.standard_normal((count, 3))},
        angular_velocity_world={"box": rng.standard_normal((count, 3))},
        bodies={"box": replace(BOX, mass=0.7, inertia=(1e-3, 1.1e-3, 1.2345678901234e-3)), "tool": TOOL},
    )
    folder = Recordings(tmp_path, {"box": BOX, "tool": TOOL}, (strike,), 9.79, Ground((0.0, 0.0, 1.0), 0.01))
    write(tmp_path / "out", folder, file_format=file_format)
    again = read(tmp_path / "out")
    assert_same(strike, again.trajectories[0])
    assert again.trajectories[0].name == f"hit_000.{file_format}"
    assert (again.gravity, again.ground) == (9.79, Ground((0.0, 0.0, 1.0), 0.01))
    assert dict(again.bodies) == {"box": BOX, "tool": TOOL}
    assert not [p for p in (tmp_path / "out").iterdir() if p.name.startswith(".")], "a temporary file was left behind"


@pytest.mark.parametrize("file_format", FORMATS)
def test_unmeasured_orientation_stays_unmeasured(tmp_path, file_format):
    pair, _ = two_discs()
    write(tmp_path, Recordings(tmp_path, pair.bodies, (pair,)), file_format=file_format)
    again = read(tmp_path).trajectories[0]
    assert again.quaternion_world == {"a": None, "b": None}
    assert_same(pair, again)


SHAPES = [
    Shape("box", size=(0.1, 0.2, 0.3)),
    Shape("sphere", radius=0.02),
    Shape("cylinder", radius=0.02, height=0.04),
    Shape("disc", radius=0.0255),
    Shape("semi-cylinder", radius=0.05, height=0.05),
    Shape("extruded", outline=((0.0, 0.0), (0.1, 0.0), (0.0, 0.1)), height=0.03),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kind)
def test_every_shape_round_trips(tmp_path, shape):
    body = Body("thing", "target", shape, mass=0.123456789, com=(0.001, 0.0, -0.002))
    t = np.array([0.0, 0.1])
    track = Trajectory("t.csv", Path("t.csv"), t, {"thing": np.zeros((2, 3))}, {"thing": None}, {"thing": body})
    write(tmp_path, Recordings(tmp_path, {"thing": body}, (track,)))
    assert read(tmp_path).bodies["thing"] == body


finite = st.floats(-1e6, 1e6, allow_nan=False)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.one_of(st.none(), st.tuples(finite, finite, finite)), min_size=2, max_size=12))
def test_any_numbers_round_trip_bit_for_bit(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("numbers")
    position = np.array([(np.nan,) * 3 if row is None else row for row in rows])
    body = Body("p", "other")
    t = np.cumsum(np.full(len(rows), 1 / 3))
    track = Trajectory("t.csv", Path("t.csv"), t, {"p": position}, {"p": None}, {"p": body})
    for file_format in FORMATS:
        write(folder, Recordings(folder, {"p": body}, (track,)), file_format=file_format)
        again = read(folder).trajectories[0]
        assert np.array_equal(again.position_world["p"], position, equal_nan=True)
        assert np.array_equal(again.time, t)


HEADER = """\
format: carom-recordings/1
units: {length: mm, angle: deg, time: ms}
frame: y-up
bodies:
  b: {role: target, shape: disc, diameter: 50, mass: 0.2, inertia_z: 1.0e-5, com: [1, 2, 3]}
ground: {height: 10}
"""
DATA = """\
time,b.x,b.y,b.z,b.qw,b.qx,b.qy,b.qz,b.vx,b.vy,b.vz,b.wx,b.wy,b.wz,ctrl.grip
0,100,200,300,1,0,0,0,1,2,3,180,90,0,7
5,100,200,300,0.1,0.5,-0.7,0.5,1,2,3,0,0,0,7
"""


def test_units_and_frame_are_converted(tmp_path):
    (tmp_path / "recordings.yaml").write_text(HEADER)
    (tmp_path / "a.csv").write_text(DATA)
    folder = read(tmp_path)
    assert (folder.units.length, folder.units.frame) == ("mm", "y-up")
    track = folder.trajectories[0]
    assert track.time == pytest.approx([0, 0.005])
    assert track.position_world["b"][0] == pytest.approx([0.1, -0.3, 0.2])
    assert track.velocity_world["b"][0] == pytest.approx([1.0, -3.0, 2.0])  # mm/ms = m/s
    assert track.angular_velocity_world["b"][0] == pytest.approx([np.pi * 1e3, 0.0, np.pi / 2 * 1e3])
    assert track.controls["grip"] == pytest.approx([7, 7])
    body = track.bodies["b"]
    assert body.shape == Shape("disc", radius=0.025)
    assert body.com == pytest.approx((0.001, 0.002, 0.003))
    assert body.inertia == (5e-6, 5e-6, 1e-5)
    assert folder.ground == Ground((0.0, 0.0, 1.0), 0.01)
    # a point fixed in the body is the same point of the room in both frames
    turn = Rotation.from_euler("x", 90, degrees=True)
    for row, original in enumerate(([1.0, 0, 0, 0], [0.1, 0.5, -0.7, 0.5])):
        q = track.quaternion_world["b"][row]
        arm = Rotation.from_quat(q[[1, 2, 3, 0]]).apply([0.1, 0.2, 0.3])
        before = Rotation.from_quat(np.array(original)[[1, 2, 3, 0]]).apply([0.1, 0.2, 0.3])
        assert arm == pytest.approx(turn.apply(before))


@pytest.mark.parametrize(("unit", "factor"), [("m", 1.0), ("cm", 0.01), ("mm", 0.001)])
@pytest.mark.parametrize(("clock", "second"), [("s", 1.0), ("ms", 1e-3), ("us", 1e-6)])
def test_every_unit(tmp_path, unit, factor, clock, second):
    (tmp_path / "recordings.yaml").write_text(
        f"format: carom-recordings/1\nunits: {{length: {unit}, time: {clock}}}\n"
        "bodies: {s: {role: target, shape: sphere, radius: 2}}\n"
    )
    (tmp_path / "a.csv").write_text("time,s.x,s.y,s.z\n1,1,2,3\n3,4,5,6\n")
    track = read(tmp_path).trajectories[0]
    assert track.time == pytest.approx(np.array([1, 3]) * second)
    assert track.position_world["s"] == pytest.approx(np.array([[1, 2, 3], [4, 5, 6]]) * factor)
    assert track.bodies["s"].shape.radius == pytest.approx(2 * factor)


def test_trajectories_override_bodies_and_unlisted_files_are_sorted(tmp_path):
    header = "format: carom-recordings/1\nbodies: {a: {role: target, shape: disc}}\n"
    (tmp_path / "recordings.yaml").write_text(
        header + "trajectories:\n  - {file: b.csv, bodies: {a: {diameter: 0.2, mass: 1.5}}, tags: {k: v}}\n"
    )
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).write_text("\ufefftime,a.x,a.y,a.z\r\n0,1,2,3\r\n\r\n0.1,,,\r\n", encoding="utf-8")
    only = read(tmp_path).trajectories
    assert [t.name for t in only] == ["b.csv"]
    assert only[0].bodies["a"].shape == Shape("disc", radius=0.1)
    assert only[0].bodies["a"].mass == 1.5
    assert np.isnan(only[0].position_world["a"][1]).all()
    (tmp_path / "recordings.yaml").write_text(header.replace("disc}", "disc, diameter: 0.1}"))
    assert [t.name for t in read(tmp_path).trajectories] == ["a.csv", "b.csv"]


def test_stated_lack_of_orientation_is_believed(tmp_path):
    (tmp_path / "recordings.yaml").write_text(
        "format: carom-recordings/1\nbodies: {a: {role: target}}\ntrajectories: [{file: a.csv, orientation: false}]\n"
    )
    (tmp_path / "a.csv").write_text("time,a.x,a.y,a.z,a.qw,a.qx,a.qy,a.qz\n0,1,2,3,1,0,0,0\n1,1,2,3,1,0,0,0\n")
    assert read(tmp_path).trajectories[0].quaternion_world["a"] is None


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")

    def fail(file):
        file.write(b"half")
        raise OSError("disc full")

    with pytest.raises(OSError, match="disc full"):
        atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_refuses_what_it_cannot_keep(tmp_path):
    track = Strike().trajectory()
    folder = Recordings(tmp_path, track.bodies, (track, replace(track, name="hit_000.npz")))
    with pytest.raises(RecordingError, match=r"two trajectories would both be written to hit_000\.csv"):
        write(tmp_path, folder)
    with pytest.raises(RecordingError, match=r"unknown file format 'cvs' \(did you mean 'csv'\?\)"):
        write(tmp_path, folder, file_format="cvs")


def test_values_that_only_some_trajectories_have(tmp_path):
    first = Strike().trajectory()
    second = replace(first, name="hit_001.csv", bodies={"box": replace(BOX, mass=None, com=(0.01, 0, 0)), "tool": TOOL})
    write(tmp_path, Recordings(tmp_path, {"box": BOX}, (first, second)))
    again = read(tmp_path).trajectories
    assert_same(first, again[0])
    assert_same(second, again[1])


class TestNative:
    """The two public layouts, made here with known content."""

    def state(self):
        t = np.arange(20) / 148
        turned = Rotation.from_rotvec(np.outer(t, [0.0, 0.0, 3.0])) * Rotation.from_euler("x", 1.1)
        body_spin = turned.inv().apply([0.0, 0.0, 3.0])
        position = np.column_stack([0.5 * t, 0 * t, 0.2 - 4.9 * t**2])
        return t, position, turned.as_quat()[:, [3, 0, 1, 2]], body_spin, np.gradient(position, t, axis=0)

    def test_both_layouts_give_the_same_toss(self, tmp_path):
        t, position, quaternion, spin, velocity = self.state()
        scaled = np.column_stack([position / 0.0524, quaternion, velocity / 0.0524, spin, np.zeros((20, 6))])
        torch.save(torch.tensor(scaled)[None], tmp_path / "nets.pt")
        torch.save(torch.tensor(np.column_stack([quaternion, position, spin, velocity])), tmp_path / "pll.pt")
        for name, layout in (("nets.pt", "contact_nets"), ("pll.pt", "dair_pll")):
            toss = read_native(tmp_path / name)
            assert toss.tags["layout"] == layout
            assert toss.time == pytest.approx(t)
            assert toss.position_world["cube"] == pytest.approx(position)
            assert toss.velocity_world["cube"] == pytest.approx(velocity)
            assert toss.angular_velocity_world["cube"] == pytest.approx(np.tile([0.0, 0.0, 3.0], (20, 1)))
            write(tmp_path / layout, Recordings(tmp_path, toss.bodies, (toss,)), file_format="npz")
            assert_same(toss, read(tmp_path / layout).trajectories[0])

    def test_what_it_refuses(self, tmp_path):
        torch.save(torch.zeros(5, 7), tmp_path / "wrong.pt")
        with pytest.raises(RecordingError, match=r"wrong\.pt: expected a tensor of shape .* got \(5, 7\)"):
            read_native(tmp_path / "wrong.pt")
        torch.save(torch.zeros(5, 13), tmp_path / "zeros.pt")
        with pytest.raises(RecordingError, match=r"zeros\.pt, sample 1: expected a unit quaternion, got length 0"):
            read_native(tmp_path / "zeros.pt")
        torch.save({"path": Path("x")}, tmp_path / "objects.pt")
        with pytest.raises(RecordingError, match=r"objects\.pt: not a plain tensor: loading it would have to run code"):
            read_native(tmp_path / "objects.pt")
        (tmp_path / "text.pt").write_text("hello, this is no tensor")
        with pytest.raises(RecordingError, match=r"text\.pt: "):
            read_native(tmp_path / "text.pt")
        with pytest.raises(RecordingError, match=r"none\.pt: no such file"):
            read_native(tmp_path / "none.pt")
