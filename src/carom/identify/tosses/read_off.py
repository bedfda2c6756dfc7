"""Parameters that recordings of free bodies show directly, without a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from carom.core.rotations import matrices
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.sides import is_cube
from carom.scenes.free_writing import PAD_HEIGHT
from carom.state import Array

FLAT = 0.3  #: [deg] lean against its resting pose up to which a box slides on its face
TWIRLS = 0.25  #: speed of a box's rim over that of its middle from which friction no longer acts against the path alone


def read_off(motions: Motions, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Parameters that need no search, with their standard errors.

    Gravity from flights, lengths from heights at rest, friction of faces from how cubes slow down that lie on one.
    """
    found: dict[str, tuple[float, float]] = {}
    flown = np.isfinite(motions.strange_std)
    if "gravity" in names and flown.any():
        fall = motions.starts.gravity - motions.strange[flown, 2]
        found["gravity"] = (float(np.median(fall)), _standard_error(fall, floor=0.1))
    body = motions.scene.bodies[0]
    if "length_scale" in names and motions.scene.planar:
        apart = np.linalg.norm(motions.position[:, :, 0, :2] - motions.position[:, :, 1, :2], axis=-1)
        nearest = np.nanmin(apart, axis=-1) / (motions.scene.widths[:2, None] / 2).sum()
        found["length_scale"] = (float(np.median(nearest)), _standard_error(nearest, floor=0.005))
    elif "length_scale" in names and len(motions.scene.bodies) == 1 and is_cube(body) and body.shape is not None:
        height = motions.position[:, :, 0, 2] - motions.scene.ground_height
        rest = [float(np.median(row[np.isfinite(row)][-5:])) for row in height if np.isfinite(row).sum() > 5]
        scale = np.array(rest) / (body.shape.size[2] / 2)
        if "face_friction" in names:  # its faces are simulated a hair prouder than its edges
            scale = scale / (1 + 2 * PAD_HEIGHT)
        level = scale[np.abs(scale - 1) < 0.06]  # on its face, not on an edge and not in the air
        if len(level):
            found["length_scale"] = (float(np.median(level)), _standard_error(level, floor=0.005))
    if "face_friction" in names and len(motions.scene.bodies) == 1 and is_cube(body):
        gravity = found.get("gravity", (motions.starts.gravity, 0.0))[0]
        slides = np.array([_slide(motions, n) for n in range(len(motions))]) / gravity
        slides = slides[np.isfinite(slides) & (slides > 0)]
        if len(slides):
            found["face_friction"] = (float(np.median(slides)), _standard_error(slides, floor=0.01))
    return found


def _slide(motions: Motions, row: int) -> float:
    """How fast a cube slows down [m/s^2] while it slides on a face, at the end of a recording; NaN if it does not."""
    position, quaternion = motions.position[row, :, 0], motions.quaternion[row, :, 0]
    good = np.flatnonzero(np.isfinite(position).all(axis=-1) & np.isfinite(quaternion).all(axis=-1))
    if len(good) < 12:
        return float("nan")
    time, path, frames = good * motions.period, position[good], matrices(quaternion[good])
    rest = np.median(frames[-5:, 2], axis=0)
    rest = rest / np.linalg.norm(rest)
    if np.abs(rest).max() < np.cos(np.radians(3.0)):
        return float("nan")  # it does not end on a face
    flat = np.arccos(np.clip(frames[:, 2] @ rest, -1.0, 1.0)) < np.radians(FLAT)
    speed = np.linalg.norm(np.gradient(path[:, :2], time, axis=0), axis=-1)
    moving = np.flatnonzero(speed > 0.05)
    last = int(moving[-1]) if len(moving) else 0
    first = last
    while first > 0 and flat[first]:
        first -= 1
    first += 2  # the sample after it came down
    if last - first < 8:
        return float("nan")
    tau = time[first:last] - time[first]
    design = np.stack([np.ones_like(tau), tau, 0.5 * tau**2], axis=-1)
    fit = np.linalg.lstsq(design, path[first:last, :2], rcond=None)[0]
    speed_first = max(float(np.linalg.norm(fit[1])), 1e-9)
    turns = Rotation.from_matrix(frames[first + 1 : last] @ np.swapaxes(frames[first : last - 1], -1, -2))
    turned = float(np.linalg.norm(turns.as_rotvec().sum(axis=0))) / tau[-1]
    if turned * motions.scene.widths[0] / 2 > TWIRLS * speed_first:
        return float("nan")
    return float(-fit[2] @ fit[1] / speed_first)


def _standard_error(values: Array, *, floor: float) -> float:
    """Standard error of a median; each value counts as uncertain by `floor` at least: a few may agree by chance."""
    spread = max(float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, floor)
    return float(1.25 * spread / np.sqrt(len(values)))
