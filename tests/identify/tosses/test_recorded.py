"""Recordings ready to be simulated: Eq. 1, what is grouped, what is skipped and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from free_recordings import RATE, TRUTH, toss
from rolled_bodies import Rolled

from carom.core.errors import CaromError
from carom.identify.tosses.recorded import equation_1, frame_errors, free_scene, groups, motions_of, trajectory_errors
from carom.recordings import Recordings, Trajectory
from carom.scenes.parameters import free_parameters
from carom.scenes.shapes import Body, Shape
from carom.state import Motion

EXACT = (0.0, 0.0)


@pytest.fixture(scope="module")
def tossed():
    return toss(Path("tosses"), 4, seed=2)


@pytest.fixture(scope="module")
def motions(tossed):
    return tossed.motions


def as_measured(motions):
    """A simulation that does what was measured (and anything where nothing was)."""
    return Motion.of(("cube",), motions.period, np.nan_to_num(motions.position), np.nan_to_num(motions.quaternion))


def test_equation_1_is_zero_for_the_same_motion_and_for_either_sign_of_a_quaternion(motions):
    same = as_measured(motions)
    np.testing.assert_allclose(equation_1(motions, same), 0.0, atol=1e-6)
    flipped = replace(same, quaternion=same.quaternion * np.where(np.arange(motions.samples) % 2, 1, -1)[:, None, None])
    np.testing.assert_allclose(equation_1(motions, flipped), equation_1(motions, same), atol=1e-12)


def test_equation_1_is_distance_over_width_plus_angle(motions):
    same, angle = as_measured(motions), 0.2
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    w, x, y, z = np.moveaxis(same.quaternion, -1, 0)
    turned = np.stack([c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w], axis=-1)  # about the world's z
    moved = replace(same, position=same.position + np.array([0.03, 0.0, 0.04]), quaternion=turned)
    position, rotation = trajectory_errors(motions, moved)
    np.testing.assert_allclose(position, 0.5, rtol=1e-9)  # 5 cm of a cube of 10 cm
    np.testing.assert_allclose(rotation, angle, rtol=1e-5)
    np.testing.assert_allclose(equation_1(motions, moved), 0.5 + angle, rtol=1e-5)
    assert position.shape == (1, 4)


def test_frames_that_were_not_measured_do_not_count(motions):
    distance, angle = frame_errors(motions, as_measured(motions))
    assert (np.isfinite(distance) == np.isfinite(motions.position[..., 0])).all()
    assert (np.isfinite(angle) == np.isfinite(motions.position[..., 0])).all()
    holes = motions.position.copy()
    holes[:, 5:20] = np.nan
    np.testing.assert_allclose(equation_1(replace(motions, position=holes), as_measured(motions)), 0.0, atol=1e-6)


def test_several_candidates_are_compared_at_once(motions):
    same = as_measured(motions)
    position = np.concatenate([same.position, same.position + np.array([0.1, 0, 0])])
    twice = Motion.of(("cube",), motions.period, position, np.concatenate([same.quaternion] * 2))
    found = equation_1(motions, twice)
    np.testing.assert_allclose(found, [[0.0] * 4, [1.0] * 4], atol=1e-5)


def test_the_true_parameters_reproduce_exact_recordings():
    tossed = toss(Path("tosses"), 4, seed=2, noise=EXACT)
    motions = tossed.motions.with_sides(np.eye(3)[tossed.sides // 2] * np.where(tossed.sides % 2, -1, 1)[:, None])
    engine = Rolled(motions.scene, free_parameters(tuple(TRUTH)), period=motions.period, threads=1)
    values = np.array([list(TRUTH.values())])
    first = motions.until(25)  # until bounces have enlarged what starts don't know
    motion = engine.run(motions.starts, values, 25)
    assert equation_1(first, motion).max() < 0.007  # half a step of gravity: 4 mm/s, hence 0.7 mm after 0.17 s
    values[0, 0] *= 1.5
    assert np.median(equation_1(first, engine.run(motions.starts, values, 25))) > 0.1


def test_rows_are_picked_and_cut(motions):
    some = motions[[2, 0]]
    assert some.names == (motions.names[2], motions.names[0])
    np.testing.assert_array_equal(some.starts.velocity, motions.starts.velocity[[2, 0]])
    assert np.isfinite(some.position[:, -1]).any()
    assert motions.until(7).samples == 7
    assert motions.period == pytest.approx(1 / RATE)


def pair(folder, masses, *, name="pair.csv", slows=0.0):
    """Two discs of these masses, the first on its way to the second."""
    time = np.arange(120) / 300
    travelled = 0.5 * time - 0.5 * slows * time**2
    a = np.column_stack([-0.15 + travelled, 0 * time, 0 * time])
    met = int(np.flatnonzero(a[:, 0] > -0.05)[0])
    b = np.zeros_like(a)
    b[met:, 0] = 0.3 * (time[met:] - time[met])
    a[met:, 0] = a[met, 0]
    bodies = {
        n: Body(n, role, Shape("disc", radius=0.025), mass=m)
        for n, role, m in zip(("a", "b"), ("striker", "target"), masses, strict=True)
    }
    return Trajectory(name, folder / name, time, {"a": a, "b": b}, {"a": None, "b": None}, bodies)


def test_recordings_of_the_same_bodies_are_grouped():
    folder = Path("pairs")
    made = [pair(folder, m, name=f"p{i}.csv") for i, m in enumerate([(0.1, 0.2), (0.1, 0.3), (0.1, 0.2), (0.1, 0.3)])]
    recordings = Recordings(folder, made[0].bodies, tuple(made))
    assert groups(recordings) == [[0, 2], [1, 3]]
    with pytest.raises(CaromError, match=r"pairs: p1.csv was recorded with other bodies; identify it apart"):
        motions_of(recordings)
    motions, skipped = motions_of(recordings, [1, 3])
    assert motions.names == ("p1.csv", "p3.csv")
    assert not skipped


def test_discs_that_keep_their_speed_glide_on_air():
    folder = Path("pairs")
    for slows, planar in ((0.0, True), (0.8, False)):
        trajectory = pair(folder, (0.1, 0.2), slows=slows)
        scene = free_scene(Recordings(folder, trajectory.bodies, (trajectory,)), [trajectory])
        assert scene.planar is planar
    np.testing.assert_allclose(scene.widths, 0.05)


def rested(trajectory, seconds):
    """The same after a rest at the beginning."""
    step = trajectory.period
    count = round(seconds / step)
    time = np.r_[np.arange(count) * step, count * step + trajectory.time]
    paths = {n: np.r_[np.repeat(p[:1], count, axis=0), p] for n, p in trajectory.position_world.items()}
    return replace(trajectory, time=time, position_world=paths)


def test_a_rest_at_the_beginning_is_no_air_table():
    for slows, planar in ((0.0, True), (0.8, False)):
        trajectory = rested(pair(Path("pairs"), (0.1, 0.2), slows=slows), 1.0)
        scene = free_scene(Recordings(Path("pairs"), trajectory.bodies, (trajectory,)), [trajectory])
        assert scene.planar is planar
    lying = replace(trajectory, position_world={n: p[:1] + 0 * p for n, p in trajectory.position_world.items()})
    assert not free_scene(Recordings(Path("pairs"), lying.bodies, (lying,)), [lying]).planar


def test_what_cannot_be_simulated_is_skipped_with_a_reason(tossed):
    recordings = tossed.recordings
    first = recordings.trajectories[0]
    late = replace(
        first,
        name="late.csv",
        path=Path("tosses/late.csv"),
        time=first.time[40:],
        position_world={"cube": first.position_world["cube"][40:] * [1, 1, 0.98]},
        quaternion_world={"cube": first.quaternion_world["cube"][40:]},
    )
    both = replace(recordings, trajectories=(late, *recordings.trajectories[1:]))
    motions, skipped = motions_of(both)
    assert motions.names == tuple(t.name for t in recordings.trajectories[1:])
    assert [name for name, _ in skipped] == ["late.csv"]
    assert "before the first contact" in skipped[0][1]
    with pytest.raises(CaromError, match=r"tosses: no recording can be simulated .* \(.*late.csv: "):
        motions_of(both, [0])


def test_a_recording_with_too_much_time_in_it_is_left_out_before_it_fills_the_memory(tossed):
    """Every gap is short enough for a reader, but there are many of them."""
    recordings = tossed.recordings
    first = recordings.trajectories[0]
    steps = np.full(len(first) - 1, 1 / RATE)
    steps[-40::4] = 8.0
    slow = replace(first, time=np.concatenate([[0.0], np.cumsum(steps)]))
    motions, skipped = motions_of(replace(recordings, trajectories=(slow, *recordings.trajectories[1:])))
    assert motions.names == tuple(t.name for t in recordings.trajectories[1:])
    ((name, reason),) = skipped
    assert name == first.name
    assert reason.startswith("expected 60 s and 100000 sample periods at most from the first contact on, got 80.")
    assert motions.samples <= max(len(t) for t in recordings.trajectories)
