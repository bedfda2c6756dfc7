"""What was measured: recordings on disk, their differentiation, their impacts, and what is wrong with them."""

from carom.recordings.check import check
from carom.recordings.findings import BodySummary, CheckReport, Finding
from carom.recordings.folder import read, write
from carom.recordings.impact import BodyMotion, Impact
from carom.recordings.native import read_native
from carom.recordings.segment import Phase, find_impacts, segment
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
    "find_impacts",
    "read",
    "read_native",
    "segment",
    "strike_impacts",
    "write",
]
