"""Which axis is up: a maker's rule, and what bodies show against it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.core.errors import RecordingError
from carom.recordings.imports.joining import ImportOptions, parts_of

TIME = np.arange(0, 2, 0.01)
WAY = 0.3 * np.clip(TIME - 0.5, 0, 1)
TURN = Rotation.from_rotvec(np.outer(0.5 * WAY, [0, 0, 1]))
UPRIGHT = Rotation.from_rotvec([-np.pi / 2, 0, 0])  #: from z-up to y-up


def slide(path: Path, frame: Rotation) -> Path:
    """A block that slides and turns on a table, as Vicon's Tracker writes it."""
    place = 1000 * frame.apply(np.column_stack([WAY, 0.4 * WAY, 0.05 + 0 * WAY]))
    turn = (frame * TURN).as_quat()
    lines = ["Objects", "100", ",,Global Angle (Quaternion) block:block", "Frame,Sub Frame,RX,RY,RZ,RW,TX,TY,TZ"]
    lines += [",,,,,,mm,mm,mm"]
    lines += [
        ",".join(map(str, [k + 1, 0, *q, *p]))
        for k, (q, p) in enumerate(zip(turn.tolist(), place.tolist(), strict=True))
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_rule_that_the_motion_agrees_with(tmp_path: Path) -> None:
    (part,) = parts_of(slide(tmp_path / "t.csv", Rotation.identity()), ImportOptions())
    assert part.up.axis == "z"
    assert "Vicon's rule, and how bodies move and rest agrees" in part.up.how


def test_a_rule_that_the_motion_speaks_against_is_asked_about(tmp_path: Path) -> None:
    """Tracker can be set to y-up: a block that slides across y must not stand on end."""
    file = slide(tmp_path / "t.csv", UPRIGHT)
    with pytest.raises(
        RecordingError, match=r"Vicon's rule is that z is up, but block moves in the plane across y; say"
    ):
        parts_of(file, ImportOptions())
    (part,) = parts_of(file, ImportOptions(up="y"))
    np.testing.assert_allclose(part.tracks[0].position[:, 2], 0.05, atol=1e-9)
