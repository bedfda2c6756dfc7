"""Where the markers are glued on must not matter, once `tracked` says it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml

from carom.core.errors import RecordingError
from carom.core.rotations import multiply, to_world
from carom.recordings import Recordings, check, find_impacts, read, write
from helpers.synthetic_recordings import Strike, toss

OFFSET = np.array([0.03, -0.02, 0.05])
TURN = np.array([0.5, 0.5, -0.5, 0.5])


def shifted(trajectory, body):
    """What a tracker sees of a marker frame at OFFSET and TURN in the body's own."""
    own = trajectory.quaternion_world[body]
    position = trajectory.position_world[body] + to_world(own, OFFSET)
    return replace(
        trajectory,
        position_world={**trajectory.position_world, body: position},
        quaternion_world={**trajectory.quaternion_world, body: multiply(own, TURN)},
    )


def folders(tmp_path, trajectory, body, *, own=False):
    one = Recordings(tmp_path, trajectory.bodies, (trajectory,))
    write(tmp_path / "plain", one)
    write(tmp_path / "moved", replace(one, trajectories=(shifted(trajectory, body),)))
    path = tmp_path / "moved" / "recordings.yaml"
    data = yaml.safe_load(path.read_text())
    stated = {"position": OFFSET.tolist(), "quaternion": TURN.tolist()}
    if own:
        data["bodies"][body]["tracked"] = {"position": [1.0, 1.0, 1.0]}
        data["trajectories"][0]["bodies"] = {body: {"tracked": stated}}
    else:
        data["bodies"][body]["tracked"] = stated
    path.write_text(yaml.safe_dump(data))
    return tmp_path / "plain", tmp_path / "moved"


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("trajectory", "body"), [(toss(), "cube"), (Strike().trajectory(), "box")])
def test_markers_elsewhere_give_the_same_motion_and_impacts(trajectory, body, own, tmp_path):
    plain, moved = (read(path).trajectories[0] for path in folders(tmp_path, trajectory, body, own=own))
    np.testing.assert_allclose(moved.position_world[body], plain.position_world[body], atol=1e-9)
    np.testing.assert_allclose(moved.quaternion_world[body], plain.quaternion_world[body], atol=1e-9)
    there, here = find_impacts(plain), find_impacts(moved)
    assert len(there) == len(here) > 0
    for a, b in zip(there, here, strict=True):
        np.testing.assert_allclose(b.post.velocity_world, a.post.velocity_world, atol=1e-5)


def test_check_states_the_tracked_frame(tmp_path):
    _, moved = folders(tmp_path, toss(), "cube")
    assert "at (30, -20, 50) mm, turned by 120 deg" in dict(check(moved).summary())["tracked frame of cube"]


def test_an_offset_needs_an_orientation(tmp_path):
    one = toss()
    _, moved = folders(tmp_path, one, "cube")
    blind = replace(one, quaternion_world={"cube": None})
    header = (moved / "recordings.yaml").read_text()
    write(moved, Recordings(moved, one.bodies, (blind,)))
    (moved / "recordings.yaml").write_text(header)
    with pytest.raises(RecordingError, match="its orientation is not measured here"):
        read(moved)
