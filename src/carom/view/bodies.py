"""Takes of free bodies: tosses and collisions beside engines, with their contacts and how sure parameters are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.errors import CaromError, RecordingError
from carom.core.rotations import of_tilt
from carom.engines.contract import Engine
from carom.engines.mujoco.engine import MujocoEngine
from carom.identify.tosses.predict import MotionModel
from carom.identify.tosses.recorded import Motions, motions_of
from carom.identify.tosses.simulate import Sampled
from carom.recordings import Recordings, Trajectory, find_impacts
from carom.recordings.geometry import lowest_point
from carom.recordings.starts import find_start
from carom.scenes.free import FreeScene, timestep
from carom.scenes.shapes import Body
from carom.state import Array, Motion
from carom.view.shown import COLOURS, RECORDED, Arrow, Ghost, Take, Track
from carom.view.strikes import ground_under, recorded_track, shapes_of

LEAST = 0.02  #: of the greatest impulse, below which an arrow would only be clutter


@dataclass(frozen=True)
class FreeEngineShown:
    """An engine of free bodies with values of its parameters, and draws of these that are as likely."""

    name: str
    values: Mapping[str, float]
    draws: tuple[Mapping[str, float], ...] = ()
    model: MotionModel | None = None  #: where it is known how heavy sides lie; else its values alone
    learned: object | None = None  #: builds an engine for a scene and names of parameters; None: MuJoCo

    def engine(self, scene: FreeScene, period: float) -> Engine:
        """The engine for a scene."""
        if self.learned is not None:
            return self.learned(scene, tuple(self.values))  # type: ignore[operator,no-any-return]
        return MujocoEngine(scene, tuple(self.values), step=timestep(period), threads=1)


AS_IT_COMES = FreeEngineShown("MuJoCo, as it comes", {})


@dataclass(frozen=True)
class FreeTakes:
    """The recordings of a folder of free bodies, beside engines."""

    recordings: Recordings
    engines: tuple[FreeEngineShown, ...] = (AS_IT_COMES,)
    known: dict[str, str] = field(default_factory=dict)

    def __call__(self, index: int) -> Take:
        """One recording, and each engine's motion from shortly before its first contact."""
        trajectory = self.recordings.trajectories[index]
        shapes, ground = shapes_of(trajectory), self._ground(trajectory)
        try:
            motions, _ = motions_of(self.recordings, [index])
        except CaromError as reason:
            track = recorded_track(trajectory, float(trajectory.time[0]))
            words = (f"Nothing is simulated beside this recording: {reason}",)
            return Take(trajectory.name, shapes, (track,), ground=ground, words=words)
        zero = self._zero(trajectory, motions)
        recorded = recorded_track(trajectory, zero)
        if motions.scene.planar:
            ground = None if ground is None else ground_under(trajectory)
        tracks, arrows, tilt = [recorded], [*recorded_arrows(trajectory, zero)], (1.0, 0.0, 0.0, 0.0)
        for number, engine in enumerate(self.engines):
            track, own = self._simulated(engine, motions, COLOURS[number % len(COLOURS)])
            tracks.append(track)
            arrows += own
            if {"tilt_x", "tilt_y"} & engine.values.keys():
                leaning = of_tilt(engine.values.get("tilt_x", 0.0), engine.values.get("tilt_y", 0.0))
                tilt = tuple(float(v) for v in leaning)  # type: ignore[assignment]
        return Take(trajectory.name, shapes, tuple(tracks), strong(arrows), ground=ground, tilt=tilt)

    def _ground(self, trajectory: Trajectory) -> float | None:
        stated = self.recordings.ground
        return ground_under(trajectory) if stated is None else stated.height

    def _zero(self, trajectory: Trajectory, motions: Motions) -> float:
        """The time at which simulations begin."""
        gravity = GRAVITY if self.recordings.gravity is None else self.recordings.gravity
        try:
            start = find_start(trajectory, gravity=gravity, ground_height=motions.scene.ground_height)
        except RecordingError:  # motions_of has found one; this is for the type only
            return float(trajectory.time[0])
        return float(trajectory.time[start.index])

    def _simulated(self, shown: FreeEngineShown, motions: Motions, colour: str) -> tuple[Track, list[Arrow]]:
        sampled = Sampled(motions.scene, shown.engine(motions.scene, motions.period), motions.period)
        known = motions
        if shown.model is not None and shown.model.sides is not None:
            known = motions.with_sides(shown.model.sides.likeliest(motions))
        motion = sampled.simulate(known.starts, dict(shown.values), motions.samples)
        ghosts = []
        for values in shown.draws:
            other = sampled.simulate(known.starts, dict(values), motions.samples)
            if not other.failed[0]:
                ghosts.append(Ghost(other.position[0], other.quaternion[0]))
        track = Track(
            shown.name, motion.bodies, motion.time[0], motion.position[0], motion.quaternion[0], colour, tuple(ghosts)
        )
        contacts = shown.learned is None and not motion.failed[0]
        return track, contact_arrows(shown, known, motion) if contacts else []


def contact_arrows(shown: FreeEngineShown, motions: Motions, motion: Motion) -> list[Arrow]:
    """What MuJoCo's contacts push during each sample period, at the mean of where they do.

    The run is made a second time, step by step, because a rollout tells no contacts.
    """
    engine = MujocoEngine(motions.scene, tuple(shown.values), step=timestep(motions.period), threads=1)
    own = {name: np.full(1, float(v)) for name, v in shown.values.items()}
    if "com_offset" in own:
        own["com_offset"] = motions.starts.offsets(own["com_offset"])
    run = engine.open(motions.starts.state(motions.scene, own), own)
    arrows, steps = [], round(motions.period / engine.timestep)
    for frame in range(motion.time.shape[1] - 1):
        pushed: dict[tuple[str, str], tuple[Array, Array, float]] = {}
        for _ in range(steps):
            found = run.contacts()
            for pair, point, impulse in zip(found.bodies, found.point, found.impulse, strict=True):
                weight = float(np.linalg.norm(impulse))
                total, centre, heavy = pushed.get(pair, (np.zeros(3), np.zeros(3), 0.0))
                pushed[pair] = (total + impulse, centre + weight * point, heavy + weight)
            run.step(engine.timestep)
        for (first, second), (total, centre, heavy) in pushed.items():
            if heavy > 0:
                size = float(np.linalg.norm(total))
                now, then = float(motion.time[0, frame]), float(motion.time[0, frame + 1])
                words = f"{shown.name}: {size:.3g} N s on {second} by {'the ground' if first == 'world' else first}"
                arrows.append(Arrow(shown.name, now, then, centre / heavy, total, words))
    return arrows


def recorded_arrows(trajectory: Trajectory, zero: float) -> list[Arrow]:
    """Impulses that the recording shows: mass times the change of velocity at each contact that could be read."""
    arrows = []
    for impact in find_impacts(trajectory):
        body = trajectory.bodies[impact.target]
        change = impact.post.velocity_world - impact.pre.velocity_world
        change = change if impact.kind == "ground" else np.array([*change[:2], 0.0])
        if body.mass is None or not np.isfinite(change).all():
            continue
        impulse, words = body.mass * change, "the ground" if impact.striker is None else impact.striker
        point = _lowest(trajectory, impact.target, body, impact.time)
        size = float(np.linalg.norm(impulse))
        start = impact.time - zero
        told = f"{RECORDED}: {size:.3g} N s on {impact.target} by {words}"
        arrows.append(Arrow(RECORDED, start, start + max(impact.settle, 0.05), point, impulse, told))
    return arrows


def _lowest(trajectory: Trajectory, name: str, body: Body, at: float) -> Array:
    """The lowest corner of a body at a time, its centre where it has no shape [3] [m]."""
    good = np.flatnonzero(np.isfinite(trajectory.position_world[name]).all(axis=1))
    row = good[int(np.argmin(np.abs(trajectory.time[good] - at)))]
    place, measured = trajectory.position_world[name][row], trajectory.quaternion_world[name]
    if body.shape is None or measured is None or not np.isfinite(measured[row]).all():
        return np.asarray(place)
    low = lowest_point(body.shape, place[None], measured[row][None])[0]
    return np.array([place[0], place[1], low])


def strong(arrows: Sequence[Arrow]) -> tuple[Arrow, ...]:
    """Arrows that can be seen beside the greatest of their unit."""
    most = max((float(np.linalg.norm(a.vector)) for a in arrows), default=0.0)
    return tuple(a for a in arrows if float(np.linalg.norm(a.vector)) >= LEAST * most)
