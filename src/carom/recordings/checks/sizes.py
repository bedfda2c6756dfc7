"""Files whose lengths are not those of the others: where bodies meet, how high they lie, how they fall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from carom.recordings.checks.findings import Observation
from carom.recordings.checks.scale import radius
from carom.recordings.checks.strikes import Found
from carom.recordings.checks.tosses import Flight, Rest
from carom.recordings.impacts.frozen import frozen_at
from carom.recordings.trajectory import Recordings
from carom.state import Array

SURELY = 5.0  #: robust deviations beyond which a value is another one
SAME_GAP = 0.006  #: [m] by which contact distances of one pair of bodies may differ (a sample's way, and noise)
SMALL = (
    0.07  #: of the distance at contact: small bodies' distances may differ by less, but always by half of `SAME_GAP`
)
SAME_HEIGHT = 0.003  #: [m] by which heights of one body on one table may differ
SAME_SCALE = 0.05  #: by which heights at rest, and free falls, of tossed bodies may differ
FEW = 3  #: files from which a folder has something in common


def check_sizes(recordings: Recordings, impacts: Found) -> Iterator[Observation]:
    """Files whose contact distance, or whose height on the table, is not that of the others: sizes or units differ."""
    for kind, values in _measures(recordings, impacts).items():
        names, (data, least) = list(values), np.array(list(values.values())).T
        words, style = (
            ("the outlines are {value} at contact", "{:+.1f} mm apart")
            if kind[0] == "gap"
            else (f"'{kind[1]}' lies {{value}} high", "{:.1f} mm")
        )
        for row in _outliers(data, float(np.median(least))):
            middle = 1e3 * float(np.median(np.delete(data, row)))
            text = f"{words}, in most other files {style.format(middle)}"
            yield _other(text, names[row], 1e3 * float(data[row]), style)


def _other(text: str, file: str, value: float, style: str) -> Observation:
    advice = "are its lengths in another unit or scale, or its bodies of another size?"
    return Observation("warning", "other-size", text, file, value=value, style=style, advice=advice)


def _measures(recordings: Recordings, impacts: Found) -> dict[tuple[object, ...], dict[str, tuple[float, float]]]:
    """Gap at contact and height before it [m] by file, apart for each pair of bodies; by how much each may differ."""
    found: dict[tuple[object, ...], dict[str, tuple[float, float]]] = {}
    for trajectory in recordings.trajectories:
        strike = next((i for i in impacts[trajectory.name] if i.kind == "strike" and i.striker is not None), None)
        if strike is None or strike.striker is None or frozen_at(trajectory, strike) is not None:
            continue
        pair = strike.target, strike.striker
        # one file may state another size of the same body: that is what is looked for, so only kinds are compared
        shapes = [trajectory.bodies[name].shape for name in pair]
        masses = [trajectory.bodies[name].mass for name in pair]
        kind = (*pair, *(shape and shape.kind for shape in shapes), *masses)
        if np.isfinite(strike.gap):
            reach = sum(radius(trajectory.bodies[name]) or np.inf for name in pair)
            least = float(np.clip(SMALL * reach, SAME_GAP / 2, SAME_GAP))
            found.setdefault(("gap", *kind), {})[trajectory.name] = strike.gap, least
        z = trajectory.position_world[strike.target][:, 2]
        before = z[np.isfinite(z) & (trajectory.time < strike.time)]
        height = float(np.median(before)) if len(before) else float("nan")
        if np.isfinite(height):
            found.setdefault(("height", *kind), {})[trajectory.name] = height, SAME_HEIGHT
    return found


def check_toss_sizes(
    flights: Mapping[tuple[str, str], Flight], rests: Mapping[tuple[str, str], Rest]
) -> Iterator[Observation]:
    """Files in which a tossed body lies higher or lower at rest than in the others; unseen at rest, falls otherwise.

    A little higher may be the table: then the fall has to say the same. A fall alone may be odd because a hand had not
    let go.
    """
    for body in dict.fromkeys(body for _, body in (*rests, *flights)):
        lies = {file: rest for (file, name), rest in rests.items() if name == body}
        falls = {file: flight.gravity for (file, name), flight in flights.items() if name == body}
        usual = float(np.median(list(falls.values()))) if len(falls) >= FEW else float("nan")
        ground = float(np.median([rest.centre - rest.reach for rest in lies.values()])) if lies else 0.0
        height = {file: (rest.centre - ground) / rest.reach for file, rest in lies.items()}
        for file in _named_outliers(height, SAME_SCALE):
            rest, due = lies[file], ground + lies[file].reach
            as_much = (height[file] - 1) * (falls.get(file, usual) / usual - 1) > SAME_SCALE**2
            if abs(rest.centre - due) > SAME_HEIGHT or as_much:
                text = f"'{body}' comes to rest {{value}} high, where the other files make it {1e3 * due:.1f} mm"
                yield _other(text, file, 1e3 * rest.centre, "{:.1f} mm")
        for file in _named_outliers(falls, SAME_SCALE * abs(usual)):
            if file not in lies and abs(falls[file] - usual) > SURELY * flights[file, body].std:
                text = f"'{body}' falls with {{value}}, in most other files with {usual:.2f} m/s^2"
                yield _other(text, file, falls[file], "{:.2f} m/s^2")


def _named_outliers(values: Mapping[str, float], least: float) -> list[str]:
    names = list(values)
    return [names[row] for row in _outliers(np.array(list(values.values())), least)]


def _outliers(data: Array, least: float) -> NDArray[np.int64]:
    """Rows of the values that are clearly not where most of the others are."""
    if len(data) < FEW:
        return np.zeros(0, dtype=np.int64)
    away = np.abs(data - np.median(data))
    return np.flatnonzero(away > max(least, SURELY * 1.4826 * float(np.median(away))))
