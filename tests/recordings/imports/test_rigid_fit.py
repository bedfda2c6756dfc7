"""Bodies from markers: the motion comes back, whatever single markers do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from capture_files import COUNT, MARKERS, NAMES, POSITION, TIME, TURN
from scipy.spatial.transform import Rotation

from carom.core.errors import RecordingError
from carom.recordings.formats.take import Markers, Take, Track
from carom.recordings.imports.rigid_fit import body_of


def take_of(points: np.ndarray) -> Take:
    return Take("take", "test", markers=(Markers(NAMES, TIME, points),))


def turned_as_the_body(track: Track, rows: np.ndarray | slice = slice(None)) -> float:
    """The largest error of the rotation since the first of these samples [rad]."""
    found = Rotation.from_quat(track.quaternion[rows], scalar_first=True)
    true = TURN[rows]
    return float(((found * found[0].inv()).inv() * (true * true[0].inv())).magnitude().max())


def test_the_motion_comes_back():
    track, said = body_of("take", take_of(MARKERS), "box", NAMES)
    assert turned_as_the_body(track) < 1e-6
    np.testing.assert_allclose(track.position, MARKERS.mean(axis=1), atol=1e-9)
    assert Rotation.from_quat(track.quaternion[0], scalar_first=True).magnitude() < 1e-9
    assert any("4 markers" in words for words in said)


def test_noise_is_averaged_and_lost_markers_do_no_harm():
    rng = np.random.default_rng(0)
    points = MARKERS + 2e-4 * rng.standard_normal(MARKERS.shape)
    points[5:15, 1] = np.nan
    points[20:24, :2] = np.nan  # two are too few
    track, said = body_of("take", take_of(points), "box", NAMES)
    assert np.isnan(track.position[20:24]).all()
    seen = np.setdiff1d(np.arange(COUNT), np.arange(20, 24))
    assert turned_as_the_body(track, seen) < 0.02
    middle = MARKERS.mean(axis=1)
    assert np.abs(track.position[seen] - middle[seen]).max() < 1e-3
    assert any("4 samples show fewer than three" in words for words in said)


def test_a_marker_that_jumps_is_left_out_there():
    points = MARKERS.copy()
    points[10:13, 2] += [0.05, 0.02, 0.0]
    track, said = body_of("take", take_of(points), "box", NAMES)
    assert turned_as_the_body(track) < 1e-3
    assert any("3 times a marker" in words for words in said)


def test_markers_that_are_not_one_body_are_refused():
    points = MARKERS.copy()
    points[:, 2] += np.column_stack([0.3 * np.sin(9 * TIME), 0 * TIME, 0 * TIME])
    with pytest.raises(RecordingError, match=r"body 'box': marker 'box:c' moves against the others"):
        body_of("take", take_of(points), "box", NAMES)
    points[:, 1] -= np.column_stack([0 * TIME, 0.2 * np.cos(9 * TIME), 0 * TIME])
    with pytest.raises(RecordingError, match=r"body 'box': (its markers move|marker 'box:.' moves) against"):
        body_of("take", take_of(points), "box", NAMES)


def test_one_marker_is_a_point_and_two_have_no_orientation():
    track, _ = body_of("take", take_of(MARKERS), "ball", NAMES[:1])
    assert track.quaternion is None
    np.testing.assert_allclose(track.position, MARKERS[:, 0])
    track, said = body_of("take", take_of(MARKERS), "rod", NAMES[:2])
    assert track.quaternion is None
    assert any("without orientation" in words for words in said)


def test_markers_of_which_never_three_are_seen_are_refused():
    points = MARKERS.copy()
    points[::2, :2] = np.nan
    points[1::2, 2:] = np.nan
    with pytest.raises(RecordingError, match="never are three of its 4 markers seen at once"):
        body_of("take", replace(take_of(points)), "box", NAMES)


def test_pieces_of_one_points_trajectory_are_joined():
    points = np.full(MARKERS.shape, np.nan)
    for piece, rows in enumerate((slice(0, 10), slice(12, 20), slice(20, 40))):
        points[rows, piece] = POSITION[rows]
    track, said = body_of("take", take_of(points), "ball", NAMES)
    assert track.quaternion is None
    assert np.isnan(track.position[10:12]).all()
    seen = np.r_[0:10, 12:40]
    np.testing.assert_array_equal(track.position[seen], POSITION[seen])
    assert any("3 trajectories" in words for words in said)


def test_a_body_that_moves_little_while_much_is_seen_is_not_mirrored():
    flat = POSITION[:, None] + np.array([[0.1, 0, 0], [0, 0.1, 0], [-0.1, 0, 0], [0, -0.1, 0]])
    track, _ = body_of("take", take_of(flat), "box", NAMES)
    assert Rotation.from_quat(track.quaternion, scalar_first=True).magnitude().max() < 1e-6
