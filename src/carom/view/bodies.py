"""Takes of free bodies: tosses and collisions beside engines, with their contacts and how sure parameters are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.errors import CaromError, RecordingError
from carom.core.rotations import of_tilt
from carom.engines.contract import Engine, Run
from carom.engines.mujoco.engine import MujocoEngine, MujocoRun
from carom.engines.mujoco.impulses import FrameImpulse, impulses_of
from carom.identify.tosses.recorded import Motions, motions_of
from carom.identify.tosses.result import SIDE_NAMES
from carom.identify.tosses.sides import SIDES
from carom.identify.tosses.simulate import Sampled
from carom.recordings import Recordings, Trajectory, find_impacts
from carom.recordings.geometry import lowest_point
from carom.recordings.starts import find_start
from carom.scenes.free import FreeScene, timestep
from carom.scenes.shapes import Body
from carom.state import Array, Motion
from carom.view.shown import COLOURS, RECORDED, Arrow, Ghost, Take, Track
from carom.view.strikes import ground_under, recorded_track, shapes_of

ALIKE = 1e-3  #: relative difference of two periods that are one
LEAST = 0.02  #: of the greatest impulse, below which an arrow would only be clutter


@dataclass(frozen=True)
class FreeEngineShown:
    """An engine of free bodies with values of its parameters, and draws of these that are as likely."""

    name: str
    values: Mapping[str, float]
    draws: tuple[Mapping[str, float], ...] = ()
    sides: Mapping[str, str] = field(default_factory=dict)  #: by recording, the side of the body that is heavy
    #: builds an engine for a scene and names of parameters, such as a learned one; None: MuJoCo
    learned: Callable[[FreeScene, tuple[str, ...]], Engine] | None = None

    def engine(self, scene: FreeScene, period: float) -> Engine:
        """The engine for a scene."""
        if self.learned is not None:
            return self.learned(scene, tuple(self.values))
        return MujocoEngine(scene, tuple(self.values), step=timestep(period), threads=1)

    def without_side(self) -> FreeEngineShown:
        """The same, the mass in the middle: what is known of a recording whose heavy side nobody knows."""
        middle = {"com_offset": 0.0}
        return replace(self, values={**self.values, **middle}, draws=tuple({**d, **middle} for d in self.draws))


AS_IT_COMES = FreeEngineShown("MuJoCo, as it comes", {})


@dataclass(frozen=True)
class FreeTakes:
    """The recordings of a folder of free bodies, beside engines."""

    recordings: Recordings
    engines: Mapping[int, tuple[FreeEngineShown, ...]] = field(default_factory=dict)  #: by recording; none: MuJoCo

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
        said: list[str] = []
        for number, engine in enumerate(self.engines.get(index, (AS_IT_COMES,))):
            if "com_offset" in engine.values and trajectory.name not in engine.sides:
                engine = engine.without_side()
                said.append(f"{engine.name}: which side is heavy is not known here; its mass is in the middle.")
            try:
                track, own = self._simulated(engine, motions, COLOURS[number % len(COLOURS)])
            except CaromError as reason:
                said.append(f"{engine.name} shows nothing: {reason}.")
                continue
            tracks.append(track)
            arrows += own
            if {"tilt_x", "tilt_y"} & engine.values.keys():
                leaning = of_tilt(engine.values.get("tilt_x", 0.0), engine.values.get("tilt_y", 0.0))
                tilt = tuple(float(v) for v in leaning)  # type: ignore[assignment]
        told = tuple(said)
        return Take(trajectory.name, shapes, tuple(tracks), strong(arrows), ground=ground, tilt=tilt, words=told)

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
        side = shown.sides.get(motions.names[0])
        known = motions if side is None else motions.with_sides(SIDES[[SIDE_NAMES.index(side)]])
        rows = (shown.values, *shown.draws)
        values = {name: np.array([float(row[name]) for row in rows]) for name in shown.values}
        motion = sampled.simulate(known.starts[np.zeros(len(rows), dtype=int)], values, motions.samples)
        good = [g for g in range(1, len(rows)) if not motion.failed[g]]
        ghosts = tuple(Ghost(motion.position[g], motion.quaternion[g]) for g in good)
        own = motion.time[0], motion.position[0], motion.quaternion[0]
        track = Track(shown.name, motion.bodies, *own, colour, ghosts)
        return track, [] if motion.failed[0] else contact_arrows(shown, known, motion)


def contact_arrows(shown: FreeEngineShown, motions: Motions, motion: Motion) -> list[Arrow]:
    """What an engine's contacts push during each sample period, at the mean of where they do."""
    engine = shown.engine(motions.scene, motions.period)
    own = {name: np.full(1, float(v)) for name, v in shown.values.items()}
    if "com_offset" in own:
        own["com_offset"] = motions.starts.offsets(own["com_offset"])
    run = engine.open(motions.starts.state(motions.scene, own), own)
    frames = motion.time.shape[1] - 1
    if isinstance(run, MujocoRun):
        told = impulses_of(run, 0, motions.period, frames)
    else:
        told = _step_by_step(run, float(getattr(engine, "timestep", motions.period)), motions.period, frames)
    arrows = []
    for one in told:
        size, (first, second) = float(np.linalg.norm(one.impulse)), one.bodies
        now, then = float(motion.time[0, one.frame]), float(motion.time[0, one.frame + 1])
        words = f"{shown.name}: {size:.3g} N s on {second} by {'the ground' if first == 'world' else first}"
        arrows.append(Arrow(shown.name, now, then, one.point, one.impulse, words))
    return arrows


def _step_by_step(run: Run, step: float, period: float, frames: int) -> list[FrameImpulse]:
    """The same of an engine that tells the contacts of the step that was, one step for each frame."""
    if abs(step - period) > ALIKE * period:
        return []
    found = []
    for frame in range(frames):
        run.step(step)
        told = run.contacts()
        for pair, point, impulse in zip(told.bodies, told.point, told.impulse, strict=True):
            found.append(FrameImpulse(frame, pair, point, impulse))
    return found


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
