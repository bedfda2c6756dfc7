"""Facts about real exports of other labs, read with small separate parsers: what `carom bench import` compares with.

The files themselves are not part of Carom; docs/importing.md says where they are from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from carom.recordings.formats.take import ReadOptions, Take
from carom.state import Array

Takes = Sequence[Take]


@dataclass(frozen=True)
class Fact:
    """One thing that a correct reader reproduces."""

    words: str
    found: Callable[[Takes], Sequence[float] | Array]
    expected: tuple[float, ...]
    within: float = 1e-6  #: of each number


@dataclass(frozen=True)
class Known:
    """What is known of a file."""

    facts: tuple[Fact, ...] = ()
    refused: str = ""  #: words that its refusal must have; empty: it is to be read
    names: tuple[str, ...] = ()  #: what `--map` says
    up: str | None = None
    read: ReadOptions = field(default_factory=ReadOptions)


def body(name: str, row: int) -> Callable[[Takes], Array]:
    """A body's place in a row."""
    return lambda takes: next(t for t in takes[0].tracks if t.name == name).position[row]


def turn(name: str, row: int) -> Callable[[Takes], Array]:
    """A body's quaternion in a row, w first."""

    def found(takes: Takes) -> Array:
        quaternion = next(t for t in takes[0].tracks if t.name == name).quaternion
        return np.full(4, np.nan) if quaternion is None else quaternion[row]

    return found


def point(name: str | int, row: int) -> Callable[[Takes], Array]:
    """A marker's place in a row."""

    def found(takes: Takes) -> Array:
        (cloud,) = takes[0].markers
        return np.asarray(cloud.position[row, name if isinstance(name, int) else cloud.names.index(name)])

    return found


def stamp(row: int) -> Callable[[Takes], Sequence[float]]:
    """The time of a row."""
    return lambda takes: (float((takes[0].tracks or takes[0].markers)[0].time[row]),)


def rows(takes: Takes) -> Sequence[float]:
    """How many samples each take has."""
    return [longest(take) for take in takes]


def longest(take: Take) -> int:
    """Samples of what was sampled most often."""
    stamps = [track.time for track in take.tracks] + [cloud.time for cloud in take.markers]
    return max((len(time) for time in (*stamps, *(signal.time for signal in take.signals))), default=0)


def rate(takes: Takes) -> Sequence[float]:
    """Samples per second."""
    return (takes[0].rate or 0.0,)


def bodies(takes: Takes) -> Sequence[float]:
    """How many bodies there are."""
    return (len(takes[0].tracks),)


def markers(takes: Takes) -> Sequence[float]:
    """How many markers there are."""
    return (sum(len(cloud.names) for cloud in takes[0].markers),)


def lost(takes: Takes) -> Sequence[float]:
    """In how many rows the first body was not seen."""
    return (int(np.isnan(takes[0].tracks[0].position).any(axis=1).sum()),)


def blank(takes: Takes) -> Sequence[float]:
    """How many cells of markers are empty."""
    return (int(np.isnan(takes[0].markers[0].position).sum()),)


def jumps(takes: Takes) -> Sequence[float]:
    """How often a quaternion turns into its negative from one row to the next."""
    quaternion = takes[0].tracks[0].quaternion
    if quaternion is None:
        return (float("nan"),)
    return (int((np.einsum("ti,ti->t", quaternion[1:], quaternion[:-1]) < 0).sum()),)


def speeds_about(instant: float, axis: int) -> Callable[[Takes], Sequence[float]]:
    """Speed of the first body along an axis just before and just after an instant [m/s]."""

    def found(takes: Takes) -> Sequence[float]:
        track = takes[0].tracks[0]
        seen = np.isfinite(track.position).all(axis=1)
        near = [np.abs(track.time - instant - side * 0.02) < 0.015 for side in (-1, 1)]
        return [float(np.polyfit(track.time[n & seen], track.position[n & seen, axis], 1)[0]) for n in near]

    return found


def bounces(*instants: float) -> Callable[[Takes], Sequence[float]]:
    """The largest change of a marker's vertical speed within 50 ms of each instant [m/s]."""

    def found(takes: Takes) -> Sequence[float]:
        (cloud,) = takes[0].markers
        period = float(np.median(np.diff(cloud.time)))
        near = [cloud.position[np.abs(cloud.time - instant) < 0.05, :, 2] for instant in instants]
        return [float(np.nanmax(np.ptp(np.diff(heights, axis=0), axis=0), initial=0.0)) / period for heights in near]

    return found


ALL_POINTS = ("*=other",)
_CUBE = {"cube": ("states[10:13]", "states[13:17]")}
FACTS: dict[str, Known] = {
    "motive/v1.21_cmu_sample_optitrack_take.csv": Known(
        (
            Fact("frames", rows, (250,)),
            Fact("rate", rate, (120,), 0.01),
            Fact("bodies", bodies, (1,)),
            Fact("place in row 0", body("Rigid Body 1", 0), (0.060002, 0.019150, 0.076611)),
            Fact("time of row 125", stamp(125), (1.041667,)),
        ),
        up="y",
    ),
    "motive/v1.22_diabolo_z_hop_1.csv": Known(
        (
            Fact("frames", rows, (726,)),
            Fact("bodies", bodies, (3,)),
            Fact("time of row 0", stamp(0), (176.0,)),
            Fact("place in row 0", body("diabolo_red", 0), (-0.205197, 0.638633, 0.006044)),
            Fact("quaternion in row 0", turn("diabolo_red", 0), (0.527493, -0.505105, -0.514809, 0.448990), 2e-6),
        )
    ),
    "motive/v1.23_aolab_take_5974.csv": Known(
        (
            Fact("frames", rows, (10460,)),
            Fact("rate", rate, (240,), 0.01),
            Fact("place in row 0", body("RigidBody", 0), (0.047597, 0.607298, 0.329784)),
            Fact("time of row 5230", stamp(5230), (21.791667,)),
            Fact("jumps of the quaternion's sign", jumps, (0,)),
        ),
        up="y",
    ),
    "motive/v1.23_basketball_Ball_6.csv": Known(
        (
            Fact("rows", rows, (8554,)),
            Fact("blank rows", lost, (3539,)),
            Fact("rate", rate, (360,), 0.01),
            Fact("place in row 0", body("Ball_6", 0), (1.642341, 1.106451, 1.497325)),
            Fact("speeds about the bounce at 3.317 s", speeds_about(3.317, 1), (-4.8, 3.9), 0.25),
        )
    ),
    "motive/v1.23_mm_ha5dzs_empty.csv": Known(refused="no rigid bodies"),
    "motive/v1.23_mm_ha5dzs_markers.csv": Known(
        (
            Fact("markers", markers, (18,)),
            Fact("place in row 0", point("Unlabeled 1036", 0), (2.659741943, -0.830793884, -2.862191650), 1e-8),
        ),
        names=ALL_POINTS,
        up="y",
    ),
    "vicon/nexus_trajectories_pyomeca_markers.csv": Known(
        (
            Fact("rows", rows, (580,)),
            Fact("rate", rate, (100,), 0.01),
            Fact("markers", markers, (51,)),
            Fact("blank cells", blank, (915,)),
            Fact("place in row 0", point("boite:gauche_ext", 0), (0.0441628, -0.276862, 0.675697)),
        ),
        names=("boite:target=boite:*",),
    ),
    "vicon/nexus_devices_pyomeca_analogs_head.csv": Known(refused="Devices"),
    "qualisys/qtm2024_jugglebot_3_throws_tracking_lost_on_each.tsv": Known(
        (
            Fact("frames", rows, (3649,)),
            Fact("rate", rate, (300,), 0.01),
            Fact("place in row 0", point("base_1", 0), (0.458340, -0.658915, 0.027162)),
            Fact("bounces at 1.757, 6.813, 10.543 s", bounces(1.757, 6.813, 10.543), (6.0, 6.0, 6.0), 4.0),
        ),
        names=ALL_POINTS,
    ),
    "qualisys/qtm2026_fileversion2_ballbutler.tsv": Known(
        (Fact("rows", rows, (810,)), Fact("place of marker 3 in row 0", point(2, 0), (-0.589436, -0.155123, 1.726711))),
        names=("Ball Butler - [345]=other",),
    ),
    "rosbag2/go2_vicon_test_6": Known(refused="--types Position.msg"),
    "rosbag2/bagel_split5": Known(refused="no poses in this bag"),
    "lerobot/v2.1_unitree_g1_first3": Known(
        (Fact("rows of the episodes", rows, (479, 393, 343)), Fact("rate", rate, (30,), 0.01)),
        names=("hand:tool=observation.state[0:3]",),
        up="z",
    ),
    "hdf5/robosuite1.0_lift_panda_demo.hdf5": Known(
        (
            Fact("rows", rows, (412,)),
            Fact("place of the cube in row 0", body("cube", 0), (0.0036, -0.0155, 0.8192), 5e-5),
        ),
        names=("cube:target=states[10:13],states[13:17]",),
        up="z",
        read=ReadOptions(sources=_CUBE),
    ),
    "c3d/kineticstoolkit_racing_full.c3d": Known(
        (
            Fact("frames", rows, (700,)),
            Fact("rate", rate, (69.9926,), 1e-4),
            Fact("points", markers, (46,)),
            Fact("place in row 0", point("WheelchairRearR", 0), (-0.9375, 0.8462, -0.2934), 5e-5),
        ),
        names=ALL_POINTS,
    ),
    "c3d/hsorby_c3d_test_file_01.c3d": Known(
        (Fact("frames", rows, (8,)), Fact("points", markers, (8,)), Fact("rate", rate, (120,), 0.01)),
        names=ALL_POINTS,
        up="z",
    ),
    "c3d/hsorby_c3d_test_file_02.c3d": Known(
        (Fact("frames", rows, (100,)), Fact("points", markers, (75,))), names=ALL_POINTS
    ),
    "trc/hsorby_test_file_02.trc": Known(
        (
            Fact("rows", rows, (936,)),
            Fact("markers", markers, (37,)),
            Fact("rate", rate, (200,), 0.01),
            Fact("time of row 0", stamp(0), (-0.005,)),
        ),
        names=ALL_POINTS,
        up="y",
    ),
    "trc/hsorby_test_file_04.trc": Known((Fact("rows", rows, (2,)),), names=ALL_POINTS, up="y"),
    "trc/pyomeca_markers.trc": Known(
        (Fact("rows", rows, (93,)), Fact("markers", markers, (51,))), names=ALL_POINTS, up="z"
    ),
}
