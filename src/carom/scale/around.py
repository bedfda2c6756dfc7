"""Trajectories drawn around recorded ones: the same bodies, varied; starts within the recorded starts' spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.core.rotations import about_z, from_vector, matrices, multiply
from carom.identify.tosses.recorded import Motions, groups, motions_of
from carom.recordings import Recordings, read
from carom.recordings.geometry import lowest_point
from carom.recordings.impacts.ground import is_tossed
from carom.scale.calibration import Calibration, Calibrations
from carom.scale.draws import Draw, Maker, apart, below, turned
from carom.scale.sources import Source, sampling
from carom.scenes.shapes import Body
from carom.scenes.solids import solid_body
from carom.state import Array

BANDWIDTH = 0.3  #: of the recorded starts' standard deviation: how far a new start lies from a recorded one
TURN = 0.3  #: [rad] of a body's orientation against the recorded one, along each axis
AIRBORNE = 0.005  #: [m] above the ground at the start: a body that flies
HELD = 0.01  #: [m] above the ground without being tossed: a body that something holds
TRIES = 20  #: for bodies that do not overlap, each nearer to the recorded start and earlier
EARLIER = 0.002  #: [s] times the square of the try: how much earlier it begins


@dataclass(frozen=True, eq=False)
class Group:
    """Recordings of the same bodies."""

    templates: tuple[Body, ...]
    motions: Motions
    flying: NDArray[np.bool_]  #: [N, B] whether a body is in the air at the start
    clearance: Array  #: [N, B] of its lowest point at the start [m]
    speed_spread: Array  #: [B, 2] standard deviation of velocity, across and upwards [m/s]
    spin_spread: Array  #: [B, 2] of spin, across and about the vertical [rad/s]


@dataclass(frozen=True, eq=False)
class Recorded(Source):
    """The bodies of a recordings folder, started around where and how they were recorded."""

    parts: tuple[Group, ...] = ()
    recordings: Mapping[str, str] = field(default_factory=dict)  #: name and SHA-256
    skipped: tuple[tuple[str, str], ...] = ()  #: recordings that cannot be started from, and why

    def group(self, rng: np.random.Generator) -> int:
        """Which group of recordings is drawn around, each as often as it has recordings."""
        sizes = np.array([len(part.motions) for part in self.parts])
        return int(rng.choice(len(sizes), p=sizes / sizes.sum()))

    def groups_of_templates(self) -> tuple[int, ...]:
        """See `Source`."""
        return tuple(number for number, part in enumerate(self.parts) for _ in part.templates)

    def draw(self, make: Maker, rng: np.random.Generator) -> Draw:
        """A recorded start, changed: turned about the vertical, its bodies varied, its states moved a little."""
        part = self.parts[self.group(rng)]
        row = int(rng.integers(len(part.motions)))
        bodies = tuple(
            make.make(t, rng, name=b.name) for t, b in zip(part.templates, part.motions.scene.bodies, strict=True)
        )
        around = about_z(rng.uniform(0, 2 * np.pi))
        for attempt in range(TRIES):
            moved = self._near(part, row, bodies, rng, attempt)
            if apart(bodies, moved.position, moved.quaternion, planar=self.planar):
                return turned(moved, around)
        return replace(turned(moved, around), overlap=True)

    def _near(self, part: Group, row: int, bodies: tuple[Body, ...], rng: np.random.Generator, attempt: int) -> Draw:
        starts, close = part.motions.starts, BANDWIDTH * 0.85**attempt
        position = starts.position[row] - [0.0, 0.0, self.ground_height]
        quaternion, velocity, spin = (getattr(starts, n)[row].copy() for n in ("quaternion", "velocity", "spin"))
        position = position.copy()
        for b, body in enumerate(bodies):
            across, upwards = part.speed_spread[b]
            velocity[b] += close * rng.normal(size=3) * [across, across, upwards]
            spin[b] += close * rng.normal(size=3) * part.spin_spread[b][[0, 0, 1]]
            turn = TURN * (close / BANDWIDTH) * rng.normal(size=3)
            clearance = part.clearance[row, b] * np.exp(close * rng.normal())
            if not part.flying[row, b]:
                velocity[b, 2], spin[b, :2], turn[:2], clearance = 0.0, 0.0, 0.0, 0.0
            quaternion[b] = multiply(from_vector(turn), quaternion[b])
            if len(bodies) > 1:
                position[b, :2] -= EARLIER * attempt**2 * velocity[b, :2]
            if not self.planar:
                position[b, 2] = below(body, matrices(quaternion[b])) + max(clearance, 0.0)
        return Draw(bodies, position, quaternion, velocity, spin, part.motions.names[row])

    def made_from(self) -> dict[str, Any]:
        """The recordings."""
        return {"recordings": dict(self.recordings)}

    def notes(self) -> tuple[str, ...]:
        """Recordings that were left out, and why."""
        return tuple(f"{name} was left out: {why}" for name, why in self.skipped)

    def ranges(self) -> dict[str, Any]:
        """The recorded starts, and how far new ones lie from them."""
        return {
            "around": "recorded starts, turned about the vertical",
            "recordings": sum(len(part.motions) for part in self.parts),
            "bandwidth_over_spread": BANDWIDTH,
            "turn_rad": TURN,
            "spread": [
                {
                    "bodies": [t.name for t in part.templates],
                    "speed_m_s": part.speed_spread.round(6).tolist(),
                    "spin_rad_s": part.spin_spread.round(6).tolist(),
                }
                for part in self.parts
            ],
        }


def with_own_parameters(source: Recorded, found: Sequence[Calibration]) -> tuple[Recorded, Calibrations]:
    """Those of the groups that parameters were identified from, each with its own; the others are left out, and named.

    Raises if there are parameters of none.
    """
    kept, own, skipped = [], [], list(source.skipped)
    for part in source.parts:
        mine = [one for one in found if set(one.recordings) & set(part.motions.names)]
        if mine:
            kept.append(part)
            own.append(mine[0])
        else:
            skipped += [(name, "no parameters were identified from its bodies") for name in part.motions.names]
    if not kept:
        raise CaromError(f"{source.name}: holds none of the recordings that the parameters were identified from")
    templates = tuple(t for part in kept for t in part.templates)
    chosen = replace(source, parts=tuple(kept), templates=templates, skipped=tuple(skipped))
    return chosen, Calibrations(tuple(own), tuple(part.motions.names for part in kept))


def recorded(folder: Path, *, rate: float | None = None, duration: float | None = None) -> Recorded:
    """The source that a recordings folder makes."""
    recordings = read(folder)
    if not len(recordings):
        raise CaromError(f"{folder} holds no trajectory")
    parts: list[Group] = []
    skipped: list[tuple[str, str]] = []
    for rows in groups(recordings):
        try:
            motions, left_out = motions_of(recordings, rows)
        except CaromError as reason:
            skipped += [(recordings.trajectories[row].name, str(reason)) for row in rows]
            continue
        skipped += list(left_out)
        _refuse_held(recordings, rows, motions)
        parts.append(_group(motions, f"-{len(parts)}" if parts else ""))
    if not parts:
        raise CaromError(skipped[0][1])
    scenes = [part.motions.scene for part in parts]
    if len({(s.planar, s.gravity) for s in scenes}) > 1:
        raise CaromError(f"{folder}: some of its bodies glide and others do not; scale them apart")
    if len({part.motions.period for part in parts}) > 1 and rate is None:
        rate = 1 / float(np.median([part.motions.period for part in parts]))
    first = parts[0].motions
    seconds = max(part.motions.period * (part.motions.samples - 1) for part in parts)
    period, samples = sampling(rate, duration, seconds=seconds, period=first.period)
    return Recorded(
        folder.resolve().name,
        tuple(t for part in parts for t in part.templates),
        period,
        samples,
        gravity=scenes[0].gravity,
        ground_height=float(np.median([s.ground_height for s in scenes])),
        planar=scenes[0].planar,
        parts=tuple(parts),
        skipped=tuple(skipped),
        recordings=recordings.made_from(),
    )


def _refuse_held(recordings: Recordings, rows: list[int], motions: Motions) -> None:
    """Raise if a body is in the air and is not tossed: an arm holds it, and nobody would in a simulation."""
    scene, starts = motions.scene, motions.starts
    if scene.planar:
        return
    lows = [_clearance(b, starts.position[:, i], starts.quaternion[:, i]) for i, b in enumerate(scene.bodies)]
    heights = np.median(lows, axis=-1)
    heights = heights - min(heights.min(), scene.ground_height)
    for body, height in zip(scene.bodies, heights, strict=True):
        falls = body.role == "target" and any(is_tossed(recordings.trajectories[row], body.name) for row in rows)
        if not falls and height > HELD:
            raise CaromError(
                f"{recordings.path}: body '{body.name}' ({body.role}) starts {1e3 * height:.0f} mm above the lowest "
                "one and is not tossed: something holds one of them; only bodies that move freely can be scaled"
            )


def _group(motions: Motions, ending: str) -> Group:
    starts, scene = motions.starts, motions.scene
    clearance = np.stack(
        [_clearance(b, starts.position[:, i], starts.quaternion[:, i]) for i, b in enumerate(scene.bodies)], axis=-1
    )
    clearance = clearance - scene.ground_height
    flying = np.zeros_like(clearance, dtype=bool) if scene.planar else clearance > AIRBORNE
    deviation = starts.velocity.std(axis=0), starts.spin.std(axis=0)
    speed, spin = (np.stack([np.hypot(d[:, 0], d[:, 1]) / np.sqrt(2), d[:, 2]], axis=-1) for d in deviation)
    templates = tuple(solid_body(body, ending=ending) for body in scene.bodies)
    return Group(templates, motions, flying, clearance, speed, spin)


def _clearance(body: Body, position: Array, quaternion: Array) -> Array:
    return np.zeros(len(position)) if body.shape is None else lowest_point(body.shape, position, quaternion)
