"""Where the frame of a second file lies in that of the first, from a body that both saw: a turn about z and a shift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from carom.core.rotations import about_z, multiply, to_world
from carom.recordings.formats.take import Track
from carom.recordings.imports.clocks import at_times

FITS = 0.01  #: [m] root mean square, by which places of the shared body may differ after the turn and shift
SAME = 0.003  #: [m], and
SAME_TURN = 0.01  #: [rad]: frames that differ by less are taken for one
ACROSS = 0.05  #: [m] that the shared body must move to show a turn
FEWEST = 20


def brought_over(first: Sequence[Track], second: Sequence[Track], file: str, told: list[str]) -> tuple[Track, ...]:
    """The second file's tracks, whose clock is that of the first, in the first file's frame."""
    shared = [(a, b) for a in first for b in second if a.name == b.name]
    if not shared:
        told.append(f"{file}: its frame is taken to be that of the first file, as no body is in both")
        return tuple(second)
    for ours, theirs in shared:
        there = at_times(theirs, ours.time).position
        good = np.isfinite(there).all(axis=-1) & np.isfinite(ours.position).all(axis=-1)
        if good.sum() < FEWEST or np.ptp(there[good, :2], axis=0).max() < ACROSS:
            continue
        x, y = there[good], ours.position[good]
        a, b = x - x.mean(axis=0), y - y.mean(axis=0)
        yaw = float(np.arctan2((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum(), (a[:, :2] * b[:, :2]).sum()))
        turn = about_z(yaw)
        shift = y.mean(axis=0) - to_world(turn, x.mean(axis=0))
        rms = float(np.sqrt(((to_world(turn, x) + shift - y) ** 2).sum(axis=1).mean()))
        if rms > FITS:
            told.append(
                f"{file}: {ours.name} is in both files, but no turn and shift bring its places nearer than "
                f"{1e3 * rms:.3g} mm (its tracked points may differ): the file's frame is left as it is"
            )
            return tuple(second)
        if abs(yaw) < SAME_TURN and float(np.linalg.norm(shift)) < SAME:
            return tuple(second)
        x_mm, y_mm, z_mm = 1e3 * shift
        told.append(
            f"{file}: its frame is turned by {np.degrees(yaw):.4g} deg about z and shifted by ({x_mm:.4g}, {y_mm:.4g}, "
            f"{z_mm:.4g}) mm to lay {ours.name} over that of the first file ({1e3 * rms:.2g} mm root mean square off)"
        )
        return tuple(
            replace(
                each,
                position=to_world(turn, each.position) + shift,
                quaternion=None if each.quaternion is None else multiply(turn, each.quaternion),
            )
            for each in second
        )
    told.append(
        f"{file}: its frame is taken to be that of the first file, as no body in both moves enough to show more"
    )
    return tuple(second)
