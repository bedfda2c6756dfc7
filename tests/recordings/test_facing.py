"""Which way a striker faces must not depend on how its frame was drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.core.errors import RecordingError
from carom.core.rotations import from_scipy
from carom.recordings import Recordings, read, scene_of, strike_impacts
from carom.recordings.facing import faced
from carom.recordings.formats.writer import write
from carom.scenes.shapes import Body
from helpers.synthetic_recordings import BOX, TOOL, Strike

HEADINGS = np.radians([88.0, 91.0, 90.5, 89.0])  #: of the striker's face: it goes along +y
PITCH = np.array([0.03, -0.02, 0.05, 0.0])


def recordings(drawn: Rotation, tmp_path, *, tool: Body = TOOL) -> Recordings:
    """Four strikes of a tool that looks along +y and leans a little; `drawn`: its own frame in the upright one."""
    found = []
    for number, (heading, pitch) in enumerate(zip(HEADINGS, PITCH, strict=True)):
        one = Strike(noise=1e-5, yaw_noise=1e-5).trajectory(seed=number, name=f"hit_{number:03d}.csv")
        own = Rotation.from_euler("ZY", [heading, -pitch]) * drawn
        tilted = np.tile(from_scipy(own), (len(one.time), 1))
        bodies = {"box": BOX, "tool": tool}
        found.append(replace(one, bodies=bodies, quaternion_world={**one.quaternion_world, "tool": tilted}))
    return Recordings(tmp_path, {"box": BOX, "tool": tool}, tuple(found))


def facts(found: Recordings):
    strikes = strike_impacts(faced(found))[0].strikes
    return strikes.striker_pose[:, 2], strikes.posture[:, 1:3]


@pytest.mark.parametrize("angles", [(0, 90, 0), (90, 0, 90), (0, -90, 180), (90, 90, 0), (180, 0, 90)])
def test_heading_and_pitch_are_those_of_the_face_however_the_frame_lies(angles, tmp_path):
    heading, lean = facts(recordings(Rotation.from_euler("xyz", angles, degrees=True), tmp_path))
    np.testing.assert_allclose(np.angle(np.exp(1j * (heading - HEADINGS))), 0.0, atol=2e-3)
    np.testing.assert_allclose(lean[:, 0], PITCH, atol=2e-3)
    np.testing.assert_allclose(lean[:, 1], 0.0, atol=2e-3)


def test_an_upright_frame_stays_as_it_is(tmp_path):
    """A tool that stands upright keeps its frame, whichever way it looks: nothing is drawn anew for nothing."""
    upright = recordings(Rotation.from_euler("z", 37, degrees=True), tmp_path)
    assert faced(upright) is upright


def test_the_header_overrides(tmp_path):
    """`forward` names another axis than the approach: heading turns by the angle between them."""
    lying = Rotation.from_euler("y", 90, degrees=True)  # its own z looks ahead, its own x down
    plain, _ = facts(recordings(lying, tmp_path))
    stated, _ = facts(recordings(lying, tmp_path, tool=replace(TOOL, forward=(0.0, 1.0, 0.0))))
    np.testing.assert_allclose(np.angle(np.exp(1j * (stated - plain))), np.pi / 2, atol=0.01)
    with pytest.raises(RecordingError, match="forward axis points up or down"):
        faced(recordings(lying, tmp_path, tool=replace(TOOL, forward=(1.0, 0.0, 0.0))))


def test_forward_is_read_from_a_folder_and_written_again(tmp_path):
    lying = recordings(Rotation.from_euler("y", 90, degrees=True), tmp_path, tool=replace(TOOL, forward=(0, 0, 1)))
    write(tmp_path / "lab", lying)
    again = read(tmp_path / "lab")
    assert again.facing == {"tool": "forward as the header states"}
    assert scene_of(again).striker.flat
    text = (tmp_path / "lab" / "recordings.yaml").read_text()
    (tmp_path / "lab" / "recordings.yaml").write_text(text.replace("forward:", "forward: -w  #"))
    with pytest.raises(RecordingError, match="forward"):
        read(tmp_path / "lab")


def test_turning_the_frame_turns_nothing_that_is_learned_from(tmp_path):
    """The same strikes with frames drawn in two ways give the same arrays."""
    first, second = (
        strike_impacts(faced(recordings(Rotation.from_euler("xyz", angles, degrees=True), tmp_path)))[0]
        for angles in ((0, 90, 0), (90, 0, 90))
    )
    np.testing.assert_allclose(first.strikes.posture, second.strikes.posture, atol=1e-6)
    np.testing.assert_allclose(first.strikes.striker_pose, second.strikes.striker_pose, atol=1e-6)
