"""A body from the markers that are stuck to it: the rotation and place that fit them best, sample by sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import RecordingError, short
from carom.core.rotations import from_scipy
from carom.recordings.formats.clean import FARTHEST, track
from carom.recordings.formats.take import Markers, Take, Track
from carom.state import Array

ROUNDS = 6  #: of fitting poses and the markers' places on the body in turn
SWAPPED = 0.006  #: [m] off its place: a marker is another one, or a reflection
TOGETHER = 0.01  #: of the samples, in which pieces of one point's trajectory may overlap
STRAYS = 0.4  #: of its samples, that a marker may be off its place
LOOSE = 0.02  #: [m] by which markers may wander (root mean square) before they are no rigid body
THIN = 0.004  #: [m] across, below which markers stand in a line and show no turn about it


def body_of(path: str, take: Take, name: str, wanted: tuple[str, ...]) -> tuple[Track, tuple[str, ...]]:
    """The track of a body made of markers of a take, and what was done."""
    cloud = _together(path, take, wanted)
    if len(wanted) == 1:
        return track(name, cloud.time, cloud.position[:, 0], None)
    seen = np.isfinite(cloud.position).all(axis=-1).sum(axis=1)
    if (seen > 1).sum() <= TOGETHER * max(int((seen > 0).sum()), 1):
        return _one_point(name, cloud)
    if len(wanted) == 2:
        made, said = track(name, cloud.time, cloud.position.mean(axis=1), None)
        return made, (*said, f"{name}: the middle of two markers, without orientation")
    return _fitted(path, name, cloud)


def _one_point(name: str, cloud: Markers) -> tuple[Track, tuple[str, ...]]:
    """A point whose trajectory is in pieces: each time it was lost, it got a new name."""
    seen = np.isfinite(cloud.position).all(axis=-1)
    first = np.argmax(seen, axis=1)
    place = cloud.position[np.arange(len(cloud.time)), first]
    made, said = track(name, cloud.time, place, None)
    pieces = int(seen.any(axis=0).sum())
    return made, (
        *said,
        f"{name}: {pieces} trajectories that are never seen together are taken for pieces of one point's",
    )


def _together(path: str, take: Take, wanted: tuple[str, ...]) -> Markers:
    for cloud in take.markers:
        if all(name in cloud.names for name in wanted):
            position = cloud.position[:, [cloud.names.index(name) for name in wanted]]
            far = np.abs(np.nan_to_num(position)).max(axis=-1, initial=0.0) > FARTHEST
            return Markers(wanted, cloud.time, np.where(far[..., None], np.nan, position))
    raise RecordingError(f"{path}: markers {short(', '.join(wanted))} are on different clocks; expected one body's")


def _fitted(path: str, name: str, cloud: Markers) -> tuple[Track, tuple[str, ...]]:
    points = cloud.position
    seen = np.asarray(np.isfinite(points).all(axis=-1))
    count = seen.sum(axis=1)
    if int(count.max(initial=0)) < 3:
        raise RecordingError(
            f"{path}: body '{short(name)}': never are three of its {points.shape[1]} markers seen at once"
        )
    first = int(np.argmax(count == count.max()))
    template = _template(points, seen, first)
    known = np.isfinite(template).all(axis=-1)
    place, turn, off = _poses(template, points, seen & known)
    bad = np.nan_to_num(off) > SWAPPED
    dropped = 0
    if bad.any():
        worst = bad & (off == np.nanmax(np.where(np.isfinite(off), off, -1.0), axis=1, keepdims=True))
        dropped = int(worst.sum())
        _refuse_strays(path, name, cloud, worst.sum(axis=0), seen.sum(axis=0))
        place, turn, off = _poses(template, points, seen & known & ~worst)
    rms = float(np.sqrt(np.nanmean(off**2))) if np.isfinite(off).any() else float("nan")
    if not rms < LOOSE:
        raise RecordingError(
            f"{path}: body '{short(name)}': its markers move against each other by {1e3 * rms:.3g} mm (rms); "
            f"expected markers that are stuck to one body, within {1e3 * LOOSE:g} mm"
        )
    loose = np.nan_to_num(np.nanmax(np.where(np.isfinite(off), off, 0.0), axis=1)) > LOOSE
    place[loose] = np.nan
    turn[loose] = np.nan
    made, said = track(name, cloud.time, place, turn)
    spread = np.linalg.svd(template[known] - template[known].mean(axis=0), compute_uv=False)
    words = [
        f"{name}: fitted to {int(known.sum())} markers, {1e3 * rms:.2g} mm root mean square off; its frame is at "
        f"their middle, with the world's axes at t = {cloud.time[first]:.6g} s (`tracked` in the header moves it)"
    ]
    if spread[1] / np.sqrt(known.sum()) < THIN:
        words.append(f"{name}: its markers stand almost in a line: turns about it are not measured well")
    if dropped:
        words.append(f"{name}: {dropped} times a marker was over {1e3 * SWAPPED:g} mm off its place: left out there")
    lost = int((count < 3).sum())
    if lost:
        words.append(f"{name}: {lost} samples show fewer than three of its markers: lost")
    return made, (*words, *said)


def _refuse_strays(path: str, name: str, cloud: Markers, off: NDArray[np.intp], seen: NDArray[np.intp]) -> None:
    """Raise if a marker is mostly elsewhere than on its body."""
    strays = [marker for marker, o, s in zip(cloud.names, off, seen, strict=True) if o > STRAYS * max(s, 1)]
    if strays:
        raise RecordingError(
            f"{path}: body '{short(name)}': marker '{short(strays[0])}' moves against the others by more than "
            f"{1e3 * SWAPPED:g} mm most of the time; leave it out of --map"
        )


def _template(points: Array, seen: NDArray[np.bool_], first: int) -> Array:
    """Places of the markers on the body [K, 3]: origin in the middle, the world's axes at sample `first`."""
    template = np.where(seen[first][:, None], points[first], np.nan)
    rows = np.flatnonzero((seen & seen[first]).sum(axis=1) >= 3)
    chosen = rows[:: max(len(rows) // 500, 1)]
    for _ in range(ROUNDS):
        known = np.isfinite(template).all(axis=-1)
        place, turn, off = _poses(template, points[chosen], seen[chosen] & known)
        off = np.nan_to_num(off)
        back = np.einsum("tji,tkj->tki", _matrices(turn), points[chosen] - place[:, None])
        good = seen[chosen] & np.isfinite(back).all(axis=-1) & (off < 5 * max(float(np.median(off)), 1e-4))
        found = np.full(template.shape, np.nan)
        enough = good.sum(axis=0) >= 1
        found[enough] = np.stack([np.median(back[good[:, k], k], axis=0) for k in np.flatnonzero(enough)])
        template = np.where(enough[:, None], found, template)
    # as the template was put together, it may have turned a little against the first sample
    place, turn, _ = _poses(template, points[first][None], (seen[first] & np.isfinite(template).all(axis=-1))[None])
    turned = np.einsum("ij,kj->ki", _matrices(turn)[0], template)
    middle = turned[np.isfinite(turned).all(axis=-1)].mean(axis=0)
    return np.asarray(turned - middle)


def _matrices(quaternion: Array) -> Array:
    from carom.core.rotations import matrices

    found = np.full((len(quaternion), 3, 3), np.nan)
    good = np.isfinite(quaternion).all(axis=-1)
    if good.any():
        found[good] = matrices(quaternion[good])
    return found


def _poses(template: Array, points: Array, used: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Places [T, 3], quaternions [T, 4] and how far each marker is off [T, K], by Kabsch's method; NaN: too few."""
    from scipy.spatial.transform import Rotation

    count = used.sum(axis=1)
    weight = used.astype(float)
    good = np.flatnonzero(count >= 3)
    place = np.full((len(points), 3), np.nan)
    turn = np.full((len(points), 4), np.nan)
    off = np.full(points.shape[:2], np.nan)
    if not len(good):
        return place, turn, off
    w, there = weight[good], np.where(used[good][..., None], points[good], 0.0)
    own = np.where(used[good][..., None], np.nan_to_num(template)[None], 0.0)
    total = count[good][:, None]
    middle, own_middle = there.sum(axis=1) / total, own.sum(axis=1) / total
    a, b = (own - own_middle[:, None]) * w[..., None], (there - middle[:, None]) * w[..., None]
    u, _, vt = np.linalg.svd(np.einsum("tki,tkj->tij", a, b))
    sign = np.sign(np.linalg.det(np.einsum("tij,tjk->tik", u, vt)))
    sign[sign == 0] = 1.0
    u[:, :, 2] *= sign[:, None]
    matrix = np.einsum("tij,tjk->tik", u, vt).transpose(0, 2, 1)
    turn[good] = from_scipy(Rotation.from_matrix(matrix))
    place[good] = middle - np.einsum("tij,tj->ti", matrix, own_middle)
    expected = np.einsum("tij,kj->tki", matrix, np.nan_to_num(template)) + place[good][:, None]
    off[good] = np.where(used[good], np.linalg.norm(points[good] - expected, axis=-1), np.nan)
    return place, turn, off
