"""What was measured: recordings on disk, their differentiation, their impacts, and what is wrong with them."""

from carom.recordings.checks.check import check
from carom.recordings.checks.findings import BodySummary, CheckReport, Finding
from carom.recordings.formats.folder import read
from carom.recordings.formats.tensors import read_native
from carom.recordings.formats.writer import write
from carom.recordings.impacts.measured import BodyMotion, Impact
from carom.recordings.impacts.rest import end_pose, resting_pose, undisturbed_until
from carom.recordings.impacts.segment import Phase, find_impacts, segment
from carom.recordings.kind import kind_of
from carom.recordings.scene import check_scene, facing, scene_of
from carom.recordings.strikes import approaches, strike_impacts
from carom.recordings.trajectory import Ground, Recordings, Trajectory, Units

__all__ = [
    "BodyMotion",
    "BodySummary",
    "CheckReport",
    "Finding",
    "Ground",
    "Impact",
    "Phase",
    "Recordings",
    "Trajectory",
    "Units",
    "approaches",
    "check",
    "check_scene",
    "end_pose",
    "facing",
    "find_impacts",
    "kind_of",
    "read",
    "read_native",
    "resting_pose",
    "scene_of",
    "segment",
    "strike_impacts",
    "undisturbed_until",
    "write",
]
