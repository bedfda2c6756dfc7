"""What is shown at a time: poses between samples, arrows, errors against the recording."""

from __future__ import annotations

import numpy as np
import pytest

from carom.core.rotations import about_z
from carom.scenes.shapes import Shape
from carom.view import Arrow, Take, Track
from carom.view.shown import RECORDED, arrow_scale, arrows_at, errors_of, poses_at
from carom.view.solids import arrow, triangles


def line(name: str, speed: float, samples: int = 11, turn: float = 0.0) -> Track:
    """A cube that glides along x and turns evenly."""
    time = np.linspace(0.0, 1.0, samples)
    position = np.zeros((samples, 1, 3))
    position[:, 0, 0] = speed * time
    return Track(name, ("cube",), time, position, about_z(turn * time)[:, None])


def test_poses_are_between_samples_and_stay_at_the_ends() -> None:
    track = line("mujoco", 2.0, turn=1.0)
    for now, x in ((-1.0, 0.0), (0.25, 0.5), (0.55, 1.1), (9.0, 2.0)):
        place, turn, seen = poses_at(track.time, track.position, track.quaternion, now)
        assert seen.all()
        assert place[0, 0] == pytest.approx(x)
        assert np.allclose(turn[0], about_z(np.clip(now, 0, 1)), atol=1e-4)


def test_a_quaternion_and_its_negative_are_one_turn() -> None:
    track = line("mujoco", 0.0, turn=1.0)
    flipped = track.quaternion.copy()
    flipped[1::2] *= -1
    for now in (0.05, 0.33):
        turn = poses_at(track.time, track.position, flipped, now)[1][0]
        assert abs(float(turn @ about_z(now))) == pytest.approx(1.0, abs=1e-6)


def test_lost_samples_are_bridged_and_a_body_never_seen_is_hidden() -> None:
    track = line("recorded", 1.0)
    position = track.position.copy()
    position[3:7] = np.nan
    assert poses_at(track.time, position, track.quaternion, 0.5)[0][0, 0] == pytest.approx(0.5)
    assert not poses_at(track.time, np.full_like(position, np.nan), track.quaternion, 0.5)[2].any()


def test_errors_are_distances_and_angles_at_recorded_samples() -> None:
    cube = {"cube": Shape("box", size=(0.1, 0.1, 0.1))}
    take = Take("one", cube, (line(RECORDED, 1.0, 21), line("fast", 1.5, 300, turn=0.2)))
    time, by = errors_of(take)["fast"]
    away, angle = by["cube"]
    assert np.allclose(away, 0.5 * time, atol=1e-9)
    assert np.allclose(angle, 0.2 * time, atol=1e-4)
    assert errors_of(Take("none", cube, (line("fast", 1.0),))) == {}


def test_errors_cover_only_what_a_motion_covers() -> None:
    late = line("late", 1.0)
    late = Track("late", late.bodies, late.time + 0.5, late.position, late.quaternion)
    time, _ = errors_of(Take("one", {}, (line(RECORDED, 1.0), late)))["late"]
    assert time[0] >= 0.5 - 1e-9
    assert time[-1] <= 1.0


def test_arrows_are_seen_at_their_time_with_their_track() -> None:
    one = Arrow("a", 0.0, 0.2, np.zeros(3), np.array([0.0, 0.0, 2.0]), "2 N s")
    two = Arrow("b", 0.1, 0.3, np.zeros(3), np.array([0.5, 0.0, 0.0]), "0.5 N s")
    take = Take("t", {"cube": Shape("box", size=(0.1, 0.2, 0.1))}, (line("a", 1.0), line("b", 1.0)), (one, two))
    assert arrows_at(take, 0.15, {"a", "b"}) == [0, 1]
    assert arrows_at(take, 0.15, {"b"}) == [1]
    assert arrows_at(take, 0.25, {"a", "b"}) == [1]
    assert arrow_scale(take) == {"N s": pytest.approx(0.2 / 2.0)}  # the greatest is as long as the body is wide


@pytest.mark.parametrize(
    "shape",
    [
        Shape("box", size=(0.1, 0.2, 0.3)),
        Shape("sphere", radius=0.1),
        Shape("disc", radius=0.1),
        Shape("cylinder", radius=0.1, height=0.2),
        Shape("semi-cylinder", radius=0.1, height=0.05),
        Shape("extruded", outline=((0.0, 0.0), (0.2, 0.0), (0.1, 0.15)), height=0.05),
        Shape("compound", outlines=(((0, 0), (0.1, 0), (0.1, 0.1)), ((0.1, 0), (0.2, 0), (0.2, 0.1))), height=0.05),
    ],
    ids=lambda s: s.kind,
)
def test_triangles_look_outward_and_enclose_the_shape(shape: Shape) -> None:
    vertices, faces = triangles(shape)
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    volume = float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)
    exact = {"box": 0.006, "sphere": 4 / 3 * np.pi * 1e-3, "disc": np.pi * 1e-2 * 0.01, "cylinder": np.pi * 1e-2 * 0.2}
    wanted = exact.get(shape.kind, shape.planar_moments[0] * shape.full_height)
    assert volume == pytest.approx(wanted, rel=0.05)


def test_an_arrow_begins_at_its_point_and_ends_at_its_tip() -> None:
    for vector in (np.array([0.0, 0.0, 0.3]), np.array([0.2, -0.1, 0.05])):
        vertices, faces = arrow(np.array([1.0, 2.0, 3.0]), vector, 0.01)
        along = (vertices - [1.0, 2.0, 3.0]) @ vector / np.linalg.norm(vector)
        assert along.min() == pytest.approx(0.0, abs=1e-12)
        assert along.max() == pytest.approx(np.linalg.norm(vector))
        assert faces.max() == len(vertices) - 1
