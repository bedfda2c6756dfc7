"""Takes of strikes: what was recorded, what engines make of the same strike, and how sure a model is of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from carom.compare.methods import MUJOCO_DEFAULT
from carom.core.rotations import about_z, multiply, unit
from carom.engines import MujocoSimulator
from carom.engines.contact_frames import contact_frames
from carom.engines.contract import Rollout, Simulator, Status
from carom.recordings import Recordings, Trajectory, scene_of
from carom.recordings.geometry import lowest_point
from carom.recordings.strikes import first_strike, strike_impacts
from carom.scenes.shapes import Shape
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes, rotate
from carom.view.shown import ARROW_STAYS, COLOURS, RECORDED, Arrow, Ghost, Take, Track

BEFORE = 0.15  #: [s] of approach that is simulated
FRAMES = 241  #: instants of a simulated motion
SHORTEST, LONGEST = 0.6, 8.0  #: [s] after contact that is simulated
SMALL = 0.008  #: [m] radius of the ball that stands for a body without a shape
STILL = 1e-6  #: [m] between two instants: less is rest
LIES = 0.4  #: [s] for which a target is seen at rest
LEAD = 0.6  #: [s] of a recording before contact that is shown
TARGET, STRIKER = "target", "striker"
#: said wherever simulated strikes are drawn
PLANAR = "Simulated strikes are planar: bodies keep the height and the lean that they have at contact."


@dataclass(frozen=True)
class StrikeEngineShown:
    """An engine of strikes, and engines that are as likely (its ghosts)."""

    name: str
    simulator: Simulator
    draws: tuple[Simulator, ...] = ()


def plain_mujoco(scene: StrikeScene) -> StrikeEngineShown:
    """MuJoCo as it comes: what every folder of strikes can be shown beside."""
    known = {p.name for p in scene.parameters("mujoco")}
    values = {name: value for name, value in MUJOCO_DEFAULT.items() if name in known}
    return StrikeEngineShown("MuJoCo, default contact", MujocoSimulator(scene, values, threads=1))


@dataclass(frozen=True)
class StrikeTakes:
    """The strikes of a folder, beside engines of the same scene."""

    recordings: Recordings
    engines: tuple[StrikeEngineShown, ...]
    impacts: Impacts
    left_out: Mapping[str, str]  #: why a recording has no simulated motion

    @classmethod
    def of(cls, recordings: Recordings, engines: Sequence[StrikeEngineShown] | None = None) -> StrikeTakes:
        """The strikes of a folder; engines None: MuJoCo with its default contact."""
        impacts, skipped = strike_impacts(recordings)
        shown = (plain_mujoco(scene_of(recordings)),) if engines is None else tuple(engines)
        return cls(recordings, shown, impacts, dict(skipped))

    def __call__(self, index: int) -> Take:
        """One recording, and each engine's motion from its approach."""
        trajectory = self.recordings.trajectories[index]
        strike, _ = first_strike(trajectory)
        zero = float(trajectory.time[0]) if strike is None else strike.time
        shapes = shapes_of(trajectory)
        if trajectory.name not in self.impacts.names or strike is None or strike.striker is None:
            reason = self.left_out.get(trajectory.name, "no strike was found")
            track = recorded_track(trajectory, zero)
            words = (f"Nothing is simulated beside this recording: {reason}.",)
            return Take(trajectory.name, shapes, (track,), ground=ground_under(trajectory), words=words)
        row = self.impacts[[self.impacts.names.index(trajectory.name)]]
        place = StrikePlace.of(trajectory, strike.target, strike.striker, row)
        tracks = [recorded_track(trajectory, zero, lead=LEAD)]
        reasons: list[str] = []
        scene = self.engines[0].simulator.scene if self.engines else scene_of(self.recordings)
        arrows = impulse_arrow(RECORDED, scene, row.strikes, row.post[0], place.height)
        duration = float(np.clip(trajectory.time[-1] - zero, SHORTEST, LONGEST))
        for number, engine in enumerate(self.engines):
            made, post, reason = simulated(engine, row.strikes, duration, place, COLOURS[number % len(COLOURS)])
            if made is None:
                reasons.append(f"{engine.name}: {reason}.")
                continue
            tracks.append(made)
            arrows += impulse_arrow(engine.name, scene, row.strikes, post, place.height)
        ground = ground_under(trajectory)
        own = tuple(tracks), tuple(arrows)
        told = (*reasons, PLANAR) if len(tracks) > 1 else tuple(reasons)
        return Take(trajectory.name, shapes, *own, ground=ground, words=told, judged=(strike.target,))


@dataclass(frozen=True)
class StrikePlace:
    """How a planar motion is set into the world of a recording."""

    bodies: tuple[str, str]  #: target and striker
    lift: tuple[float, float]  #: heights of their frames [m]
    rest: tuple[Array, Array]  #: quaternions [4] at contact
    yaw: tuple[float, float]  #: of these [rad]
    height: float  #: at which the striker touches [m]

    @classmethod
    def of(cls, trajectory: Trajectory, target: str, striker: str, row: Impacts) -> StrikePlace:
        """As both bodies are when they touch."""
        strikes = row.strikes
        yaws = float(strikes.target_pose[0, 2]), float(strikes.striker_pose[0, 2])
        before = trajectory.time <= _contact(trajectory)
        lift, turns = [], []
        for name, yaw in zip((target, striker), yaws, strict=True):
            z = trajectory.position_world[name][before, 2]
            good = z[np.isfinite(z)]
            lift.append(float(good[-1]) if len(good) else 0.0)
            measured = trajectory.quaternion_world[name]
            known = None if measured is None else measured[before & np.isfinite(measured).all(axis=1)]
            turns.append(about_z(yaw) if known is None or not len(known) else unit(known[-1]))
        return cls((target, striker), (lift[0], lift[1]), (turns[0], turns[1]), yaws, lift[1])

    @classmethod
    def flat(cls, scene: StrikeScene, row_yaw: tuple[float, float]) -> StrikePlace:
        """On level ground at height 0, where nothing was recorded."""
        half = scene.shape.full_height / 2
        turns = about_z(row_yaw[0]), about_z(row_yaw[1])
        return cls((TARGET, STRIKER), (half, half), turns, row_yaw, half)

    def still(self, strikes: Strikes) -> Track:
        """Both as they are when they touch, for a second."""
        (target, target_turn), (striker, striker_turn) = (
            self.set_in(np.repeat(pose, 2, axis=0), body)
            for body, pose in enumerate((strikes.target_pose, strikes.striker_pose))
        )
        position, turn = np.stack([target, striker], axis=1), np.stack([target_turn, striker_turn], axis=1)
        return Track("at contact", self.bodies, np.array([0.0, 1.0]), position, turn)

    def set_in(self, poses: Array, body: int) -> tuple[Array, Array]:
        """Positions [T, 3] and quaternions [T, 4] of planar poses [T, 3] of one of the two."""
        position = np.column_stack([poses[:, :2], np.full(len(poses), self.lift[body])])
        return position, multiply(about_z(poses[:, 2] - self.yaw[body]), self.rest[body])


def _contact(trajectory: Trajectory) -> float:
    strike, _ = first_strike(trajectory)
    return float(trajectory.time[-1]) if strike is None else strike.time


def shapes_of(trajectory: Trajectory) -> dict[str, Shape]:
    """The shape of every body, a small ball where none is stated."""
    return {n: b.shape or Shape("sphere", radius=SMALL) for n, b in trajectory.bodies.items()}


def recorded_track(trajectory: Trajectory, zero: float, *, lead: float = np.inf) -> Track:
    """A recording from `lead` [s] before its zero on; a body whose turn was not measured is drawn unturned."""
    keep = trajectory.time >= zero - lead
    names = tuple(trajectory.bodies)
    position = np.stack([trajectory.position_world[n][keep] for n in names], axis=1)
    turns = []
    for name in names:
        measured = trajectory.quaternion_world[name]
        still = np.tile([1.0, 0.0, 0.0, 0.0], (int(keep.sum()), 1))
        turns.append(still if measured is None else unit(measured[keep]))
    return Track(RECORDED, names, trajectory.time[keep] - zero, position, np.stack(turns, axis=1))


def ground_under(trajectory: Trajectory) -> float:
    """Height of the lowest point that a target ever has for a while [m]; 0 where nothing is known."""
    lows = []
    for name in trajectory.targets:
        body, quaternion = trajectory.bodies[name], trajectory.quaternion_world[name]
        position = trajectory.position_world[name]
        if body.shape is None:
            continue
        still = np.tile([1.0, 0.0, 0.0, 0.0], (len(position), 1))
        low = lowest_point(body.shape, position, still if quaternion is None else quaternion)
        low = low[np.isfinite(low)]
        if len(low):
            lows.append(float(np.quantile(low, 0.1)))
    return min(lows, default=0.0)


def simulated(
    engine: StrikeEngineShown,
    strikes: Strikes,
    duration: float,
    place: StrikePlace,
    colour: str,
    *,
    from_there: bool = False,
) -> tuple[Track | None, Array, str]:
    """An engine's motion of one strike and its draws', the velocity after contact [3], and why there is none.

    Strikers begin a moment before they touch, or, `from_there`, where the strike has them.
    """
    run = _run(engine.simulator, strikes, duration, from_there)
    lost = np.full(3, np.nan)
    if run.status[0] == Status.FAILED:
        return None, lost, "the simulation failed"
    if run.status[0] == Status.MISSED or not np.isfinite(run.contact_time[0]):
        return None, lost, "its striker misses the target"
    track = _track(engine.name, run, place, colour)
    ghosts = []
    for draw in engine.draws:
        other = _run(draw, strikes, duration, from_there)
        if other.status[0] not in (Status.FAILED, Status.MISSED) and np.isfinite(other.contact_time[0]):
            ghost = _track("", other, place, colour)
            ghosts.append(_on_times(ghost, track.time))
    track = Track(track.name, track.bodies, track.time, track.position, track.quaternion, colour, tuple(ghosts))
    return track, run.post[0], ""


def until_rest(tracks: Sequence[Track]) -> list[Track]:
    """The same motions, cut off together once all targets have come to rest and lain for a moment."""
    ends = []
    for track in tracks:
        moves = np.flatnonzero(np.abs(np.diff(track.position[:, 0], axis=0)).max(axis=1) > STILL)
        ends.append(float(track.time[moves[-1] + 1]) if len(moves) else 0.0)
    last = max(ends, default=0.0) + LIES
    cut = []
    for track in tracks:
        rows = slice(0, max(2, int(np.searchsorted(track.time, last))))
        ghosts = tuple(Ghost(g.position[rows], g.quaternion[rows]) for g in track.ghosts)
        own = track.time[rows], track.position[rows], track.quaternion[rows]
        cut.append(Track(track.name, track.bodies, *own, track.colour, ghosts))
    return cut


def _run(simulator: Simulator, strikes: Strikes, duration: float, from_there: bool) -> Rollout:
    relative = strikes.striker_velocity[:, :2] - strikes.target_velocity[:, :2]
    speed = max(float(np.linalg.norm(relative)), 1e-3)
    initial = strikes if from_there else simulator.before_contact(strikes, BEFORE * speed)
    return simulator.rollout(initial, BEFORE + duration, frames=FRAMES)


def _track(name: str, run: Rollout, place: StrikePlace, colour: str) -> Track:
    target, target_turn = place.set_in(run.target_pose[0], 0)
    striker, striker_turn = place.set_in(run.striker_pose[0], 1)
    return Track(
        name,
        place.bodies,
        run.time[0] - float(run.contact_time[0]),
        np.stack([target, striker], axis=1),
        np.stack([target_turn, striker_turn], axis=1),
        colour,
    )


def _on_times(track: Track, time: Array) -> Ghost:
    """A ghost at the instants of the motion that it belongs to: contacts are at zero in both."""
    rows = np.clip(np.searchsorted(track.time, time), 0, len(track.time) - 1)
    return Ghost(track.position[rows], track.quaternion[rows])


def impulse_arrow(name: str, scene: StrikeScene, strikes: Strikes, post: Array, height: float) -> list[Arrow]:
    """The impulse that changed the target's velocity, at the place of contact."""
    impulse = scene.mass * (post[:2] - strikes.target_velocity[0, :2])
    size = float(np.linalg.norm(impulse))
    if not np.isfinite(size) or size <= 0:
        return []
    pose = strikes.target_pose[0]
    point = pose[:2] + rotate(contact_frames(scene, strikes).point[0], pose[2])
    words = f"{name}: {size:.3g} N s at the contact"
    at = np.array([*point, height])
    return [Arrow(name, 0.0, ARROW_STAYS, at, np.array([*impulse, 0.0]), words, ends=True)]
