"""What a folder shows: strikes of a tool on a target at rest, pushes, or bodies that move freely."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from carom.recordings.impacts.collisions import onset_of
from carom.recordings.impacts.ground import is_tossed
from carom.recordings.pushes import push_of
from carom.recordings.sampled import top_speed
from carom.recordings.trajectory import Recordings, Trajectory

Kind = Literal["strikes", "free bodies", "pushes"]


def kind_of(recordings: Recordings) -> Kind:
    """What most recordings of a folder show, by the roles in the header and by what moves.

    Nothing is tried out here: a faulty folder of strikes is one of strikes, and whoever uses it says what is wrong.
    """
    found = Counter(_kind(trajectory) for trajectory in recordings.trajectories)
    count = len(recordings.trajectories)
    return next((kind for kind in ("free bodies", "pushes") if 2 * found[kind] > count), "strikes")


def _kind(trajectory: Trajectory) -> Kind:
    """What one recording shows. Whoever meets a block that moves already, and stays with it, pushes it too."""
    if any(is_tossed(trajectory, name) for name in trajectory.targets):
        return "free bodies"
    if push_of(trajectory) is not None:
        return "pushes"
    return "free bodies" if _shows_free_bodies(trajectory) else "strikes"


def _shows_free_bodies(trajectory: Trajectory) -> bool:
    """Whether bodies are tossed, nothing is there to strike them, or the target moves before anything meets it."""
    targets = trajectory.targets
    if trajectory.with_role("striker"):
        return any(_moves_from_the_start(trajectory, name) for name in targets)
    tools = trajectory.with_role("tool", "arm", "other")  # perhaps a striker whose role was not stated
    return len(targets) != 1 or not tools or _moves_from_the_start(trajectory, targets[0])


def _moves_from_the_start(trajectory: Trajectory, body: str) -> bool:
    """Whether a body is on the move when the record begins; one that never moves is not."""
    if onset_of(trajectory, body) is not None:
        return False
    return top_speed(trajectory.time, trajectory.planar_com(body), trajectory.period) > 0
