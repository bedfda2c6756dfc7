"""Whether lengths are in the header's unit: bodies meet as far apart as they are large, and fall as all things do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from carom.core.constants import LENGTHS
from carom.recordings.checks.bodies import too_wide
from carom.recordings.checks.findings import Observation
from carom.recordings.checks.upward import falls
from carom.recordings.differentiate import measured_rows
from carom.recordings.sampled import first_motion
from carom.recordings.trajectory import Recordings, Trajectory
from carom.scenes.shapes import Body

FACTORS = (1e3, 1e2, 1e-2, 1e-3)  #: by which one unit is taken for another
WITHIN = 2.0  #: factor by which a distance at contact may differ from the bodies' sizes
SHARE = 0.8  #: of the files that show something, from where on all lengths are in another unit


def check_scale(recordings: Recordings) -> Iterator[Observation]:
    """An error where all lengths are too large or too small by the ratio of two units."""
    if too_wide(recordings):
        return  # it is the stated sizes that are wrong, and that is said of the bodies
    seen = [factor for t in recordings.trajectories if (factor := _factor(t)) is not None]
    factor, count = Counter(seen).most_common(1)[0] if seen else (1.0, 0)
    if factor == 1.0 or count < SHARE * len(seen):
        return
    stated = recordings.units.length
    meant = next((name for name, metres in LENGTHS.items() if np.isclose(metres * factor, LENGTHS[stated])), None)
    word = f"{factor:g} times too large" if factor > 1 else f"{1 / factor:g} times too small"
    yield Observation(
        "error",
        "length-unit",
        f"lengths are {word} (in {count} of {len(seen)} files; bodies meet or fall as if they were)"
        + (f": the header says length: {stated}, and the samples look like {meant}" if meant else "")
        + "; state their unit, and sizes in the same one",
    )


def _factor(trajectory: Trajectory) -> float | None:
    """By which of the `FACTORS` the lengths of a file are too large; 1.0 if they fit, None if nothing shows it."""
    for target in trajectory.targets:
        for striker in trajectory.with_role("striker"):
            ratio = _apart(trajectory, target, striker)
            for factor in (1.0, *FACTORS):
                if ratio is not None and 1 / WITHIN < ratio / factor < WITHIN:
                    return factor
        for factor in (1.0, *FACTORS):
            if falls(trajectory, target, factor) is not None:
                return factor
    return None


def _apart(trajectory: Trajectory, target: str, striker: str) -> float | None:
    """How far apart two bodies are when the target begins to move, over how far apart their sizes say."""
    ours, theirs = trajectory.position_world[target], trajectory.position_world[striker]
    onset = first_motion(trajectory.time, ours, trajectory.period)
    sizes = [radius(trajectory.bodies[name]) for name in (target, striker)]
    if onset is None or None in sizes:
        return None
    rows = np.flatnonzero(measured_rows(ours) & measured_rows(theirs) & (trajectory.time <= onset.time))
    if not len(rows):
        return None
    reach = sum(size for size in sizes if size is not None)
    return float(np.linalg.norm(ours[rows[-1]] - theirs[rows[-1]])) / reach if reach > 0 else None


def radius(body: Body) -> float | None:
    """Mean distance [m] from a body's frame to its outline."""
    if body.shape is None:
        return None
    if body.shape.is_round:
        return float(body.shape.radius or 0.0)
    return float(np.linalg.norm(body.shape.planar_outline, axis=-1).mean())
