"""What three angles of a file are: a rotation vector or Euler angles. Names of columns do not always say it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from carom.state import Array

VECTOR, EULER = "vector", "XYZ"  #: Tracker's and Nexus's default; the one order of Vicon's own Euler angles
SAID = {VECTOR: "a rotation vector", EULER: "Euler angles XYZ"}
ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")  #: each about the axis as turned before
SMOOTHER = 5.0  #: times as smooth must one reading be where the other one jumps
LEAST_JUMP = 1e-3  #: [rad] below which steps say nothing
SAME = np.radians(0.5)  #: by which the readings may differ where it does not matter
TURNED = 0.1  #: [rad] by which a body must be turned to show an axis
WOBBLE = 0.01  #: [rad] root mean square by which a reading's axis must wobble to be the wrong one, and
STEADIER = 3.0  #: times as much as that of the other, which must wobble
STEADY = 0.02  #: [rad] at most
UPRIGHT, SLANTED = (
    0.04,
    0.08,
)  #: [rad] by which the axis of a body that slides in a plane is off its normal; of a wrong one
LEVEL, ACROSS = 0.003, 0.015  #: [m] that a body rises at most while it slides, and that it goes both ways


@dataclass(frozen=True)
class Turning:
    """A body's samples."""

    angles: Array  #: [T, 3] rad
    place: Array  #: [T, 3] m


def kind_of(asked: str | None, names: Sequence[str], bodies: Sequence[Turning]) -> tuple[str, list[str]]:
    """What the angles of a file's bodies are, and what is to be said of it: as the user says it, as names of columns
    do, as the bodies move."""
    if not bodies:
        return VECTOR, []
    named = asked or stated(names)
    if named is not None:
        what = "a rotation vector" if named == VECTOR else f"Euler angles {named}"
        return named, [f"RX RY RZ are {what}, as " + ("you say" if asked else "the columns' names say")]
    kind, words = shown(bodies)
    return kind, [words] if words else []


def stated(words: Sequence[str]) -> str | None:
    """The kind of angles that the columns' names state: "Global Angle (Helical) box:box"; None where they do not.

    >>> stated(["Global Angle (ZYX) box:box"]), stated(["Global Angle box:box"])
    ('ZYX', None)
    """
    for word in words:
        said = (re.search(r"angle[^(]*\(([^)]*)\)", word, flags=re.IGNORECASE) or ("", ""))[1].lower()
        if re.search(r"helical|axis|vector|rodrigues", said):
            return VECTOR
        order = re.search(r"(?<![a-z])(?:euler|rot|rotation|cardan)?[\s_-]*([xyz]{3})(?![a-z])", said)
        if order and order[1].upper() in ORDERS:
            return order[1].upper()
        if "euler" in said or "cardan" in said:
            return EULER
    return None


def read_as(kind: str, angles: Array) -> Any:
    """Rotations of SciPy's from angles [T, 3] rad of this kind."""
    from scipy.spatial.transform import Rotation

    if kind == VECTOR:
        return Rotation.from_rotvec(angles)
    return Rotation.from_euler(kind, angles[:, ["XYZ".index(axis) for axis in kind]])


def shown(bodies: Sequence[Turning]) -> tuple[str, str]:
    """The kind of a file's angles, as the motions show it, and what is to be said of it.

    A wrong reading jumps where angles wrap. It makes an axis wobble about which a body turns, or slants it where a body
    slides in a plane. Nothing is said where both readings are the same.
    """
    bodies = [each for each in bodies if len(each.angles) > 1]
    if any(_beyond(each.angles) for each in bodies):
        return VECTOR, "RX RY RZ are a rotation vector: they leave the bounds of Euler angles"
    pairs = [(read_as(VECTOR, each.angles), read_as(EULER, each.angles)) for each in bodies]
    apart = max((float((one.inv() * other).magnitude().max()) for one, other in pairs), default=0.0)
    if apart < SAME:
        return VECTOR, ""
    rough = [max(_roughness(pair[k]) for pair in pairs) for k in (0, 1)]
    for k, kind in enumerate(SAID):
        if rough[1 - k] > SMOOTHER * max(rough[k], LEAST_JUMP):
            return kind, f"RX RY RZ are {SAID[kind]}: as {SAID[(EULER, VECTOR)[k]]} they would jump"
    for each, pair in zip(bodies, pairs, strict=True):
        axes = [_axis(rotation, each.place) for rotation in pair]
        for k, kind in enumerate(SAID):
            (wobble, slant), (other, others) = axes[k], axes[1 - k]
            if other > max(STEADIER * wobble, WOBBLE) and wobble < STEADY:
                return (kind, f"RX RY RZ are {SAID[kind]}: a body then turns about one axis, which else would wobble")
            if slant < UPRIGHT and others > SLANTED:
                return kind, f"RX RY RZ are {SAID[kind]}: a body that slides in a plane then turns in that plane"
    return VECTOR, (
        "RX RY RZ are read as a rotation vector, Vicon's default, and nothing shows it: as Euler angles they would be "
        f"up to {np.degrees(apart):.3g} deg elsewhere; say --angles XYZ if the export was set so"
    )


def _beyond(angles: Array) -> bool:
    """Whether these are no Euler angles, whose second one is at most a right angle."""
    return bool((np.abs(angles[:, 1]) > np.pi / 2 + 1e-6).any() or (np.abs(angles) > np.pi + 1e-6).any())


def _roughness(rotation: Any) -> float:
    """The largest step between neighbours [rad]: what jumps is read in a wrong way."""
    return float((rotation[:-1].inv() * rotation[1:]).magnitude().max())


def _axis(rotation: Any, place: Array) -> tuple[float, float]:
    """How far off one axis a body's turns since its first sample are [rad], root mean square, and how far that axis is
    off the normal of the plane in which the body slides; 0 and NaN where it hardly turns, or slides in no plane."""
    vector = (rotation * rotation[0].inv()).as_rotvec()
    size = np.linalg.norm(vector, axis=-1)
    vector = vector[(size > TURNED) & (size < 3.0)]
    if len(vector) < 10:
        return 0.0, float("nan")
    _, singular, axes = np.linalg.svd(vector, full_matrices=False)
    wobble = float(np.sqrt((singular[1:] ** 2).sum() / len(vector)))
    way = np.ptp(place, axis=0)
    flat, middle, _ = np.argsort(way)
    if way[flat] > LEVEL or way[middle] < ACROSS:
        return wobble, float("nan")
    return wobble, float(np.arccos(min(abs(axes[0, flat]), 1.0)))
