"""Which axis of a take is up: as the user says it, as things fall, as the file or its maker says, as things move."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from carom.core.errors import RecordingError
from carom.recordings.formats.take import Take, Track
from carom.recordings.imports.mapping import Chosen
from carom.recordings.imports.upright import TURNS, Upward, fallen, in_millimetres, levelled

#: axes that point up by a maker's rule, where neither the file nor the motion tells
CONVENTIONS = {"ROS": "z", "MCAP": "z", "Vicon": "z", "EuRoC": "z", "KITTI": "-y", "LeRobot": "z"}


class UnknownUpError(RecordingError):
    """Nothing shows which axis of a file is up; files beside it may."""


def upward(path: Path, take: Take, chosen: Sequence[Chosen], asked_for: str | None) -> Upward:
    """Which axis is up: as the user says it, as things fall, as the file says, as things move and rest."""
    if asked_for is not None:
        return Upward(asked_for, "as you say")
    tracks = list(take.tracks)
    markers = [Track(n, c.time, c.position[:, k]) for c in take.markers for k, n in enumerate(c.names)]
    parts = {marker for body in chosen for marker in body.markers}
    asked = [t for t in tracks if t.name in {body.track for body in chosen}] + [m for m in markers if m.name in parts]
    if (found := fallen(asked) or fallen([*tracks, *markers])) is not None:
        return found
    if take.up is not None:
        return Upward(take.up, "as the file says")
    for maker, axis in CONVENTIONS.items():
        if take.format.startswith(maker):
            return _by_rule(path, maker, axis, levelled(asked))
    if any("MuJoCo" in words for words in take.said):
        return Upward("z", "MuJoCo's rule (say --up where it is not so)")
    if (found := levelled(asked)) is not None:
        return found
    words = ""
    if in_millimetres(asked):
        words = " (something falls with gravity if lengths are millimetres: perhaps --length-unit mm is missing)"
    usual = "; Motive's default is y" if take.format.startswith("OptiTrack") else ""
    raise UnknownUpError(
        f"{path}: which axis is up is not in the file, and nothing falls freely, moves in a plane or rests at one "
        f"height to show it{words}; say --up z or --up y (one of {', '.join(TURNS)}){usual}"
    )


def _by_rule(path: Path, maker: str, axis: str, seen: Upward | None) -> Upward:
    """The axis that a maker's rule says is up, unless bodies move or rest as if another one were."""
    if seen is None:
        return Upward(axis, f"{maker}'s rule, as nothing falls freely (say --up where it is not so)")
    if seen.axis.strip("-") == axis.strip("-"):
        return Upward(axis, f"{maker}'s rule, and how bodies move and rest agrees")
    how = seen.how.partition(", and")[0].removesuffix("it") + seen.axis.strip("-")
    raise RecordingError(
        f"{path}: {maker}'s rule is that {axis} is up, but {how}; say which axis is up: --up {axis}, or "
        f"--up {seen.axis}"
    )
