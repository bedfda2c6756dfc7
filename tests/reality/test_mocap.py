"""The simulated motion capture: statistics of what it adds and takes away, and the motion it looks at."""

import numpy as np
import pytest

from carom.reality.mocap import Mocap, Motion, record
from carom.reality.pressure_slide import footprint, slide
from carom.scenes.shapes import Shape, polygon_properties

HALF = Shape("semi-cylinder", radius=0.05, height=0.05).planar_outline


def motion(count=1, duration=0.004, spin=3.0):
    _, centroid, second = polygon_properties(HALF)
    pose = np.tile([0.1, -0.2, 0.5], (count, 1))
    separation = np.tile([0.5, 0.3, spin], (count, 1))
    com = pose.copy()
    com[:, 0] += centroid[0] * np.cos(0.5) - centroid[1] * np.sin(0.5)
    com[:, 1] += centroid[0] * np.sin(0.5) + centroid[1] * np.cos(0.5)
    base = footprint(HALF, centroid, float(np.sqrt(second)))
    return Motion(
        target_pose=pose,
        com=centroid,
        striker_pose=np.tile([0.0, -0.3, 0.7], (count, 1)),
        striker_before=np.tile([0.4, 0.2], (count, 1)),
        striker_after=np.tile([0.36, 0.18], (count, 1)),
        separation=separation,
        duration=duration,
        slide=slide(base, com + separation * duration / 2, separation, 0.3),
    )


def streams(count, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(count)]


def test_noise_jitter_and_losses_are_as_stated():
    mocap = Mocap(after=2.0)
    sampled = record(motion(200), (0.025, 0.02), streams(200), mocap)
    resting = np.concatenate([s.target_position[:60] for s in sampled])
    assert np.nanstd(resting, axis=0) == pytest.approx([0.15e-3] * 3, rel=0.05)
    assert np.nanmean(resting, axis=0) == pytest.approx([0.1, -0.2, 0.025], abs=1e-5)
    q = np.concatenate([s.target_quaternion[:60] for s in sampled])
    yaw = 2 * np.arctan2(q[:, 3], q[:, 0])
    assert np.degrees(np.nanstd(yaw)) == pytest.approx(0.2, rel=0.05)
    assert np.nanmean(yaw) == pytest.approx(0.5, abs=1e-3)
    np.testing.assert_allclose(np.linalg.norm(q[~np.isnan(q[:, 0])], axis=1), 1, atol=2e-6)
    lost = np.concatenate([np.isnan(s.target_position[:, 0]) for s in sampled])
    assert lost.mean() == pytest.approx(0.01, rel=0.2)
    assert lost.sum() / (np.diff(lost.astype(int)) == 1).sum() > 2  # in bursts
    steps = np.concatenate([np.diff(s.time) for s in sampled])
    assert steps.mean() == pytest.approx(1 / 240, rel=1e-3)
    assert steps.std() == pytest.approx(np.sqrt(2) * 0.03 / 240, rel=0.05)
    assert steps.min() > 0


def test_a_lost_sample_is_lost_whole():
    for s in record(motion(50), (0.025, 0.02), streams(50), Mocap(lost=0.2)):
        gone = np.isnan(s.striker_position)
        assert (gone.all(1) == gone.any(1)).all()
        np.testing.assert_array_equal(gone[:, 0], np.isnan(s.striker_quaternion).all(1))
        assert gone.any()


def test_recording_spans_from_before_the_contact_to_after_rest():
    true = motion(20)
    for s in record(true, (0.025, 0.02), streams(20), Mocap()):
        assert s.time[-1] - s.time[0] == pytest.approx(0.3 + true.rest_time[0] + 0.1, abs=2 / 240)
    short = record(true, (0.025, 0.02), streams(20), Mocap(longest=0.4))
    assert all(s.time[-1] <= 0.401 for s in short)


def test_a_strike_does_not_depend_on_the_others():
    alone = record(motion(1), (0.025, 0.02), streams(1), Mocap())[0]
    among = record(motion(5), (0.025, 0.02), streams(5), Mocap())[0]
    np.testing.assert_array_equal(alone.time, among.time)
    np.testing.assert_array_equal(alone.target_position, among.target_position)


@pytest.mark.parametrize("duration", [0.0, 0.004])
def test_motion_is_continuous_and_starts_from_rest(duration):
    true = motion(duration=duration)
    times = np.linspace(-0.05, 0.4, 90_001)[None]
    target, striker = true.target_at(times)[0], true.striker_at(times)[0]
    rate = np.diff(target, axis=0) / np.diff(times[0])[:, None]
    assert np.abs(rate[times[0, 1:] < 0]).max() < 1e-9
    assert np.abs(np.diff(target, axis=0)).max() < 1e-4
    assert np.linalg.norm(np.diff(striker[:, :2], axis=0), axis=1).max() < 1e-5
    np.testing.assert_allclose(target[-1], true.target_at(np.array([[5.0]]))[0, 0], atol=1e-12)
    # at separation the target moves as stated, and the striker as the blow left it
    after = np.searchsorted(times[0], duration) + 2
    assert rate[after, 2] == pytest.approx(3.0, rel=0.01)
    way = np.diff(striker, axis=0)[:, :2] / np.diff(times[0])[:, None]
    assert way[0] == pytest.approx([0.4, 0.2], rel=1e-6)
    assert way[after] == pytest.approx([0.36, 0.18], rel=0.01)
    assert (way[-1] * way[0]).sum() < 0  # backs off at the end
