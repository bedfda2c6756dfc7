"""Where strikes end against where they should: errors, and how they are said."""

from __future__ import annotations

import numpy as np

from carom.state import Array, wrap_angle


def distances(poses: Array, wanted: Array) -> Array:
    """How far poses [N, 3] are from the wanted one, [N, 2]: distance [m], signed angle in (-pi, pi] [rad]."""
    return np.column_stack([np.linalg.norm(poses[:, :2] - wanted[:2], axis=1), wrap_angle(poses[:, 2] - wanted[2])])


def error(distance: float, angle: float) -> str:
    """An error [m, rad] in the units one reads it in."""
    if not np.isfinite(distance + angle):
        return "final pose unknown"
    degrees = round(float(np.degrees(angle)), 1) + 0.0  # no minus zero
    return f"position error {1e3 * distance:.1f} mm, yaw error {degrees:+.1f}°"


def statement(wanted: Array, planned: Array, executed: Array) -> str:
    """In words: the errors of what was executed [N, 3], and after them the plan's own."""
    plan = f"Planned: {error(*distances(planned[None], wanted)[0])}"
    off = distances(executed, wanted)
    known = np.abs(off[np.isfinite(off).all(axis=1)])
    if not len(off):
        said = "Not executed yet"
    elif len(off) == 1 or not len(known):
        said = f"Executed: {error(*off[0])}"
    else:
        (distance, angle), (far, wide) = known.mean(axis=0), known.max(axis=0)
        said = (
            f"Executed {len(off)} times, mean (largest) error: position {1e3 * distance:.1f} mm ({1e3 * far:.1f}), "
            f"yaw {np.degrees(angle):.1f}° ({np.degrees(wide):.1f})"
        )
        if len(known) < len(off):
            plan = f"{len(off) - len(known)} of {len(off)} without a final pose. {plan}"
    return f"**{said}.** {plan}."
